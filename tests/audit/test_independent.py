"""One-run audits of independent canaries: the law of right guesses by enumeration, quadrature."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import optimize, special, stats

from accountant.audit import Guesses, count_guesses, one_run_mu
from accountant.audit.one_run import independent_tail
from accountant.errors import AccountantError

mp = mpmath.mpf


def quantised(mu, edges):
    """The two laws of the cell of a normal variable, by the coin: μ-GDP, by post-processing."""
    ends = np.array([-np.inf, *edges, np.inf])
    return [np.diff(special.ndtr(ends - shift)) for shift in (0.0, mu)]


def best_tail(channels, made, correct):
    """The largest probability of so many right guesses, over every guesser, by enumeration."""
    m = len(channels)
    coins = list(itertools.product((0, 1), repeat=m))
    guessers = [
        dict(zip(chosen, bits, strict=True))
        for chosen in itertools.combinations(range(m), made)
        for bits in itertools.product((0, 1), repeat=made)
    ]
    total = 0.0
    for y in itertools.product(*(range(len(c[0])) for c in channels)):
        weights = [math.prod(channels[i][s[i]][y[i]] for i in range(m)) / 2**m for s in coins]
        total += max(
            sum(
                w
                for w, s in zip(weights, coins, strict=True)
                if sum(s[i] == bit for i, bit in guess.items()) >= correct
            )
            for guess in guessers
        )
    return total


@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_no_guesser_of_independent_canaries_exceeds_the_tail(m, mu):
    edges = [[mu / 2], [-0.4, mu / 2, mu + 0.4], [mu / 2 - 1.0, mu / 2, mu / 2 + 1.0]]
    channels = [quantised(mu, edges[i]) for i in range(m)]
    for made in range(1, m + 1):
        for correct in range(1, made + 1):
            found = independent_tail(m, made, correct, mu)
            assert best_tail(channels, made, correct) <= found * (1 + 1e-12)


def test_signs_attain_the_tail_when_every_coin_is_guessed():
    for mu in (0.3, 1.0, 3.0):
        channels = [quantised(mu, [mu / 2])] * 3
        for correct in (1, 2, 3):
            best = best_tail(channels, 3, correct)
            assert independent_tail(3, 3, correct, mu) == pytest.approx(best, rel=1e-8)


def exact_tail(m, r, v, mu):
    """The expectation of Theorem A14, integrated over the place of the cut."""
    half = mp(mu) / 2

    def right(t):
        a, b = mpmath.ncdf(half - t), mpmath.ncdf(-half - t)
        return a / (a + b)

    def integrand(t):
        share = mpmath.ncdf(half - t) + mpmath.ncdf(-half - t)
        slope = mpmath.npdf(t - half) + mpmath.npdf(t + half)
        law = share**r * (1 - share) ** (m - r - 1) / mpmath.beta(r + 1, m - r)
        p = right(t)
        tail = sum(mpmath.binomial(r, j) * p**j * (1 - p) ** (r - j) for j in range(v, r + 1))
        return law * slope * tail

    return mpmath.quad(integrand, [0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 6, 12])


@pytest.mark.long
@pytest.mark.parametrize(
    ("m", "r", "v", "mu"),
    [(2, 1, 1, 1.0), (5, 2, 2, 0.5), (20, 5, 5, 1.0), (40, 30, 24, 0.7), (60, 20, 19, 0.0)],
)
def test_the_tail_is_the_integral(m, r, v, mu):
    with mpmath.workdps(30):
        truth = exact_tail(m, r, v, mu)
    found = independent_tail(m, r, v, mu)
    assert truth <= found <= truth * mp("1.05")


def least_attained(m, r, v, error):
    """A μ at which some mechanism has v right guesses with a higher probability (Theorem A13)."""
    found = math.inf
    for often in error * (1 + np.geomspace(1e-3, 1, 40)):
        x = special.betaincinv(v, r - v + 1, error / often * (1 + 1e-9))
        assert often * stats.binom.sf(v - 1, r, x) > error
        found = min(
            found, special.ndtri(x * often * r / m) - special.ndtri((1 - x) * often * r / m)
        )
    return found


@pytest.mark.parametrize(
    ("m", "r", "v", "near"),
    [(1000, 100, 90, 0.85), (1000, 1000, 691, 0.9), (10**5, 10**4, 9_030, 0.97)],
)
def test_what_no_bound_without_independence_can_certify(m, r, v, near):
    most = least_attained(m, r, v, 0.05)
    assert near * most <= one_run_mu(Guesses(m, r, v)) <= most
    # The claim of independence is one more claim: here it is what is refuted.
    assert one_run_mu(Guesses(m, r, v), independent=True) > most


def test_canaries_that_depend_on_one_another_refute_the_independence():
    m, mu = 1000, 1.0
    least = next(v for v in range(m + 1) if independent_tail(m, m, v, mu) <= 0.05)
    assert least == 716
    worst = 0.0
    for often in np.geomspace(0.05, 1.0, 200):
        reached = [special.ndtri(x * often) - special.ndtri((1 - x) * often) for x in (0.5, 0.999)]
        if reached[1] > mu > reached[0]:
            x = optimize.brentq(
                lambda x, c=often: special.ndtri(x * c) - special.ndtri((1 - x) * c) - mu,
                0.5,
                0.999,
            )
            worst = max(worst, often * stats.binom.sf(least - 1, m, x))
    assert worst == pytest.approx(0.72, abs=0.01)


@pytest.mark.long
def test_honest_scores_are_rarely_flagged_and_nearly_all_is_seen():
    rng, m, mu, runs = np.random.default_rng(3), 1000, 1.0, 200
    guesses = []
    for _ in range(runs):
        coins = rng.random(m) < 0.5
        guesses.append(count_guesses(rng.standard_normal(m) + mu * coins, coins, 500))
    flagged = sum(independent_tail(*each[:3], mu) <= 0.2 for each in guesses)
    assert stats.binom.isf(0.999, runs, 0.2) / 2 <= flagged <= stats.binom.isf(1e-6, runs, 0.2)
    found = np.mean([one_run_mu(each, independent=True) for each in guesses[:10]])
    assert mu > found > 1.5 * np.mean([one_run_mu(each) for each in guesses[:10]])


@pytest.mark.long
def test_parameters_at_their_ends():
    for m, r in [(1, 1), (2, 1), (10**6, 1), (10**6, 10**6 - 1), (2**40, 2**39), (2**40, 2**40)]:
        for mu in (0.0, 1e-300, 1e-9, 1.0, 20.0, 80.0, 700.0):
            tails = [independent_tail(m, r, v, mu) for v in sorted({0, 1, r // 2, r})]
            assert tails[0] >= 1.0
            assert all(0.0 <= tail <= 1.0 for tail in tails)
            assert sorted(tails, reverse=True) == tails
            # At least what guessing blindly gives.
            assert tails[-1] >= 0.5**r
    assert independent_tail(10, 5, 5, 700.0) == 1.0
    assert one_run_mu(Guesses(10, 5, 0), independent=True) == 0.0
    assert one_run_mu(Guesses(100, 50, 50), independent=True) > 1.0


def test_the_bound_is_where_the_tail_reaches_the_error():
    guesses = Guesses(1000, 300, 250)
    found = one_run_mu(guesses, independent=True)
    assert independent_tail(1000, 300, 250, found) <= 0.05
    assert independent_tail(1000, 300, 250, found + 1e-9) > 0.05
    with pytest.raises(AccountantError, match="independent"):
        one_run_mu(guesses, independent="yes")
