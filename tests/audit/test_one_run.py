"""One-run audits: bounds against exact laws of small mechanisms, found by enumeration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from accountant.audit import Guesses, count_guesses, one_run_epsilon, one_run_mu, one_run_p_value
from accountant.audit.one_run import refutes_curve
from accountant.audit.report import TradeoffCurve
from accountant.errors import AccountantError
from support.oracle.one_run import most_right_guesses

LEVELS = np.concatenate([np.geomspace(1e-6, 0.1, 30), np.linspace(0.1, 1.0, 46)[:-1]])


def law_of_correct(kernel, guesses):
    """The law of the number of right guesses: coins uniform, outputs by ``kernel[coins][y]``."""
    m = len(next(iter(kernel)))
    law = np.zeros(m + 1)
    for coins, row in kernel.items():
        for y, p in enumerate(row):
            correct = sum(g == s for g, s in zip(guesses[y], coins, strict=True) if g is not None)
            law[correct] += p / 2**m
    return law


def worst_delta(kernel, epsilon):
    """The largest hockey-stick divergence over flips of one coin."""
    worst = 0.0
    for coins, row in kernel.items():
        for i in range(len(coins)):
            other = kernel[(*coins[:i], 1 - coins[i], *coins[i + 1 :])]
            worst = max(worst, np.maximum(row - math.exp(epsilon) * other, 0.0).sum())
    return worst


def coins_of(m):
    return list(itertools.product((0, 1), repeat=m))


def best_guesses(kernel, made):
    """For every output the ``made`` guesses whose posteriors are surest."""
    m = len(next(iter(kernel)))
    outputs = len(next(iter(kernel.values())))
    guesses = []
    for y in range(outputs):
        weights = np.array([[row[y] * s for s in coins] for coins, row in kernel.items()])
        total = sum(row[y] for row in kernel.values())
        posterior = weights.sum(axis=0) / max(total, 1e-300)
        sure = np.argsort(-np.abs(posterior - 0.5), kind="stable")[:made]
        guesses.append([int(posterior[i] > 0.5) if i in sure else None for i in range(m)])
    return guesses


def assert_sound(kernel, made, epsilon, delta, curve):
    m = len(next(iter(kernel)))
    law = law_of_correct(kernel, best_guesses(kernel, made))
    tails = np.minimum(np.cumsum(law[::-1])[::-1], 1.0)
    for v in range(1, made + 1):
        guesses = Guesses(m, made, v)
        assert tails[v] <= one_run_p_value(guesses, epsilon, delta)
        for error in LEVELS:
            if tails[v] >= error * (1 + 1e-9):
                assert not refutes_curve(guesses, curve, error)


@pytest.mark.long
@settings(max_examples=150)
@given(st.integers(1, 4), st.integers(2, 5), st.floats(0.0, 3.0), st.integers(0, 2**31), st.data())
def test_no_bound_is_below_the_exact_tail(m, outputs, epsilon, seed, data):
    rng = np.random.default_rng(seed)
    sharpness = rng.choice([0.3, 1.0, 4.0])
    kernel = {c: rng.dirichlet(np.full(outputs, sharpness)) for c in coins_of(m)}
    made = data.draw(st.integers(1, m))
    delta = worst_delta(kernel, epsilon)
    # The whole profile of this very kernel is its certificate.
    grid = np.linspace(0.0, 6.0, 40)
    curve = TradeoffCurve(grid, [min(1.0, worst_delta(kernel, e) + 1e-12) for e in grid])
    assert_sound(kernel, made, epsilon, delta, curve)


@pytest.mark.parametrize("m", [1, 2, 3, 4])
@pytest.mark.parametrize("delta", [0.0, 0.01, 0.05])
def test_naming_one_record_in_public(m, delta):
    # With probability m δ a random coin is published, otherwise randomised responses of all.
    epsilon = 0.8
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    kernel = {}
    for coins in coins_of(m):
        responses = [
            (1 - m * delta)
            * math.prod(truth if a == b else 1 - truth for a, b in zip(coins, y, strict=True))
            for y in coins_of(m)
        ]
        named = [delta * (coins[i] == value) for i in range(m) for value in (0, 1)]
        kernel[coins] = np.array(responses + named)
    assert worst_delta(kernel, epsilon) <= delta * (1 + 1e-9) + 1e-12
    curve = TradeoffCurve([epsilon], [min(1.0, delta + 1e-12)])
    for made in range(1, m + 1):
        assert_sound(kernel, made, epsilon, delta, curve)
    if m == 1 and delta:
        # Attained without slack when there is one coin.
        law = law_of_correct(kernel, best_guesses(kernel, 1))
        assert law[1] == pytest.approx(one_run_p_value(Guesses(1, 1, 1), epsilon, delta), rel=1e-6)


def test_pure_randomised_response_attains_the_binomial_tail():
    m, epsilon = 5, 1.0
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    for v in range(m + 1):
        exact = stats.binom.sf(v - 1, m, truth)
        assert one_run_p_value(Guesses(m, m, v), epsilon, 0.0) == pytest.approx(exact, rel=1e-8)


def against_the_best_mechanism(m, made, correct, growth, delta):
    """The p-value, and the exact probability under the best private table: it must be less."""
    won, spent = most_right_guesses(m, made, correct, growth, delta)
    epsilon = math.nextafter(math.log(growth), math.inf) if growth > 1 else 0.0
    paid = float(spent)
    paid = math.nextafter(paid, 1.0) if Fraction(paid) < spent else paid
    bound = one_run_p_value(Guesses(m, made, correct), epsilon, paid)
    assert Fraction(bound) >= won, (m, made, correct, growth, delta)
    return bound, won


SETTINGS = [(m, r, v) for m in range(1, 5) for r in range(1, m + 1) for v in range(1, r + 1)]
GROWTHS = [Fraction(1), Fraction(4, 3), Fraction(5, 2), Fraction(8)]


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize(("m", "made", "correct"), [s for s in SETTINGS if s[0] < 4])
def test_no_private_mechanism_exceeds_the_p_value(m, made, correct, growth):
    for delta in (1e-3, 0.02, 0.1, 0.3):
        bound, won = against_the_best_mechanism(m, made, correct, growth, delta)
        # Near the truth as well: no room for a term forgotten on the safe side.
        assert bound <= float(won) + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize(("m", "made", "correct"), [s for s in SETTINGS if s[0] == 4])
def test_no_private_mechanism_of_four_coins_exceeds_the_p_value(m, made, correct, growth):
    for delta in (1e-3, 0.02, 0.1, 0.3):
        against_the_best_mechanism(m, made, correct, growth, delta)


def published(m, r, v, epsilon, delta):
    """Steinke, Nasr and Jagielski's bound as their published code evaluates it."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    beta = stats.binom.sf(v - 1, r, p)
    gain = max((stats.binom.sf(v - i - 1, r, p) - beta) / i for i in range(1, v + 1))
    return beta + 2 * m * delta * gain


def test_the_published_addition_is_exceeded_and_ours_is_attained():
    bound, won = against_the_best_mechanism(2, 2, 1, Fraction(math.e), 0.1)
    assert published(2, 2, 1, 1.0, 0.1) == pytest.approx(0.9566, abs=1e-4)
    assert won > 0.9617
    assert bound == pytest.approx(float(won), abs=1e-6)


def test_known_answers():
    for m, r, v in [(1000, 100, 75), (1000, 1000, 560), (10_000, 300, 280)]:
        for epsilon in (0.1, 0.7, 2.0):
            ours = one_run_p_value(Guesses(m, r, v), epsilon, 1e-5)
            assert ours >= stats.binom.sf(v - 1, r, math.exp(epsilon) / (1 + math.exp(epsilon)))
        # At the level of a confidence bound ours is the sharper one.
        found = one_run_epsilon(Guesses(m, r, v), delta=1e-5)
        assert published(m, r, v, found, 1e-5) >= 0.05
    assert one_run_epsilon(Guesses(1000, 100, 75), delta=0.0) == pytest.approx(0.701, abs=2e-3)


@pytest.mark.long
def test_honest_scores_are_rarely_flagged():
    rng, m, mu, runs = np.random.default_rng(2), 400, 1.0, 300
    epsilon = 4.3772  # of the 1-GDP mechanism at 1e-5, rounded up
    by_epsilon = by_mu = 0
    for _ in range(runs):
        coins = rng.random(m) < 0.5
        guesses = count_guesses(rng.standard_normal(m) + mu * coins, coins, 50)
        by_epsilon += one_run_epsilon(guesses, delta=1e-5, confidence=0.8) > epsilon
        by_mu += one_run_mu(guesses, confidence=0.8) > mu
    assert by_epsilon == 0  # far from it: one ε cannot see a Gaussian
    assert by_mu <= stats.binom.isf(1e-6, runs, 0.2)


def test_the_curve_sees_more_than_epsilon():
    rng, m = np.random.default_rng(0), 10_000
    coins = rng.random(m) < 0.5
    guesses = count_guesses(rng.standard_normal(m) + coins, coins, 1250)
    from accountant.analyses.gdp import gdp_epsilon_bounds

    by_mu = gdp_epsilon_bounds(one_run_mu(guesses), 1e-5).lower
    assert by_mu > 1.25 * one_run_epsilon(guesses, delta=1e-5)
    assert by_mu < gdp_epsilon_bounds(1.0, 1e-5).upper


def test_counting():
    scores = np.array([5.0, -3.0, 0.1, 4.0, -9.0])
    coins = np.array([True, False, True, False, True])
    assert count_guesses(scores, coins, 2) == Guesses(5, 2, 1, "both")
    assert count_guesses(scores, coins, 5) == Guesses(5, 5, 3, "both")
    for direction, wrong in {"higher": 0, "lower": 2, "both": 2}.items():
        found = count_guesses([1.0, 2.0], [True, False], 2, direction=direction)
        assert found == (2, 2, wrong, direction)
    for bad in (
        {"made": 6},
        {"made": 0},
        {"direction": "up"},
        {"scores": [1.0]},
        {"scores": [math.nan] * 5},
    ):
        with pytest.raises(AccountantError):
            count_guesses(**({"scores": scores, "included": coins, "made": 2} | bad))
    with pytest.raises(AccountantError):
        one_run_epsilon(Guesses(5, 6, 2), delta=0.0)


def test_scores_that_are_lower_with_a_canary_are_seen():
    """Losses are: they said "not refuted" of what the same scores negated refute."""
    rng = np.random.default_rng(4)
    coins = rng.random(2000) < 0.5
    scores = rng.standard_normal(2000) + 3.0 * coins
    seen = [count_guesses(way * scores, coins, 500) for way in (1.0, -1.0)]
    assert seen[0] == seen[1]
    assert seen[0].direction == "both"
    assert one_run_epsilon(seen[0], delta=1e-5) > 3.0
    assert one_run_mu(seen[0]) > 1.5
    assert one_run_mu(seen[0], independent=True) > 2.0
    wrong = count_guesses(-scores, coins, 500, direction="higher")
    assert one_run_epsilon(wrong, delta=1e-5) == 0.0


@pytest.mark.parametrize("made", [1, 4, 5, 8])
def test_two_guessers_share_the_error(made):
    """All 2⁸ coins, of which the scores say nothing: an honest mechanism, ε = μ = 0."""
    scores = np.random.default_rng(made).standard_normal(8)
    found = [
        count_guesses(scores, coins, made) for coins in itertools.product([False, True], repeat=8)
    ]
    values = np.array([one_run_p_value(each, 0.0, 0.0) for each in found])
    for level in set(values.tolist()):
        assert np.mean(values <= level) <= level * (1 + 1e-12)
    flagged = [one_run_epsilon(each, delta=0.0, confidence=0.7) > 0.0 for each in found]
    assert np.mean(flagged) <= 0.3


@pytest.mark.parametrize("more", [{}, {"independent": True}], ids=str)
def test_two_guessers_are_told_the_bound_of_one_at_half_the_error(more):
    two = count_guesses(np.arange(60.0), np.arange(60) >= 28, 40)
    one = count_guesses(np.arange(60.0), np.arange(60) >= 28, 40, direction="higher")
    assert two[:3] == one[:3] == (60, 40, 40)
    expected = one_run_mu(one, confidence=0.95, **more)
    assert one_run_mu(two, confidence=0.9, **more) == pytest.approx(expected, abs=1e-9)
    expected = one_run_epsilon(one, delta=1e-5, confidence=0.95)
    assert one_run_epsilon(two, delta=1e-5, confidence=0.9) == pytest.approx(expected, abs=1e-9)
