"""What an attacker can do: against the Gaussian's closed form and brute force over tests."""

import itertools
import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant import attack, get_delta
from accountant.analyses import tradeoff as to
from accountant.analyses.gdp import gdp_delta_bounds
from accountant.analyses.optimal import optimal_delta_bounds
from accountant.errors import ArgumentTypeError, DomainError
from support.exact_laws import quantile
from support.strategies import log_uniform

mp = mpmath.mpf


def gaussian_miss(x, mu):
    """Φ(Φ⁻¹(1 - x) - μ) in 50 digits."""
    return mp(1 - x) if x in (0.0, 1.0) else mpmath.ncdf(-quantile(x) - mu)


def gaussian(mu):
    return (lambda e: gdp_delta_bounds(mu, e).upper, lambda e: gdp_delta_bounds(mu, e).lower)


RATES = [0.0, 1e-30, 1e-15, 1e-9, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-6, 1 - 1e-12, 1.0]


@pytest.mark.long(keep=11)
@pytest.mark.parametrize("fpr", RATES)
@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 4.0])
def test_gaussian(mu, fpr):
    upper, lower = gaussian(mu)
    with mpmath.workdps(60):
        truth = gaussian_miss(fpr, mu)
        bounds = to.tradeoff_bounds(fpr, upper, lower)
        assert bounds.lower <= truth <= bounds.upper
        assert bounds.lower == to.tradeoff(fpr, upper)
        assert bounds.width <= 2e-3 * (1.0 - fpr) * min(mu, 1.0) + 1e-14
        caught = to.attack_tpr(fpr, upper)
        assert caught >= 1 - truth
        assert caught <= (1 - truth) * (1 + mp("1e-8")) + mp(10) ** -289
        assert truth - bounds.lower <= mp("1e-4") * truth


@pytest.mark.parametrize("fpr", [1e-3, 0.3, 0.9])
def test_loose_profiles_give_loose_brackets(fpr):
    upper, lower = gaussian(1.0)
    tight = to.tradeoff_bounds(fpr, upper, lower)
    loose = to.tradeoff_bounds(fpr, lambda e: min(1.02 * upper(e), 1.0), lambda e: 0.98 * lower(e))
    assert loose.lower < tight.lower <= tight.upper < loose.upper
    # With profile_lower the truth, the truth stays inside.
    truth = gaussian_miss(fpr, 1.0)
    one_sided = to.tradeoff_bounds(fpr, lambda e: min(1.02 * upper(e), 1.0), lower)
    assert one_sided.lower <= truth <= one_sided.upper
    other = to.tradeoff_bounds(fpr, upper, lambda e: 0.98 * lower(e))
    assert other.lower <= truth <= other.upper
    assert other.upper > truth * (1 + mp("1e-4"))


pytestmark = pytest.mark.usefixtures("sixty_digits")


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("epsilons", [(0.5,), (0.5, 1.0), (2.0, 0.3, 0.1)])
def test_brute_force_of_randomised_response(epsilons):
    # Every deterministic test of the composed mechanism; randomised ones lie between.
    outcomes = []
    for signs in itertools.product((1, -1), repeat=len(epsilons)):
        p = mpmath.fprod(
            1 / (1 + mpmath.exp(-s * mp(e))) for s, e in zip(signs, epsilons, strict=True)
        )
        q = mpmath.fprod(
            1 / (1 + mpmath.exp(s * mp(e))) for s, e in zip(signs, epsilons, strict=True)
        )
        outcomes.append((p, q))
    parts = [(e, 0.0) for e in epsilons]

    def upper(e):
        return optimal_delta_bounds(parts, e).upper

    corners = [
        (mpmath.fsum(q for p, q in chosen), mpmath.fsum(p for p, q in chosen))
        for size in range(len(outcomes) + 1)
        for chosen in itertools.combinations(outcomes, size)
    ]
    for x, caught in corners:
        rate = min(float(x), 1.0)
        slack = abs(mp(rate) - x) * mpmath.exp(sum(epsilons))
        assert to.attack_tpr(rate, upper) >= caught - slack
        assert to.tradeoff(rate, upper) <= 1 - caught + slack
    # And the bound is attained by the likelihood-ratio tests.
    ordered = sorted(outcomes, key=lambda each: -each[0] / each[1])
    for k in range(1, len(ordered)):
        x, caught = (mpmath.fsum(each[i] for each in ordered[:k]) for i in (1, 0))
        assert to.attack_tpr(float(x), upper) <= caught + mp("1e-6")
    advantage = max(caught - x for x, caught in corners)
    assert advantage <= to.membership_advantage(upper) <= advantage + mp("1e-11")
    for prior in (0.01, 0.3, 0.5, 0.9):
        accuracy = mpmath.fsum(max(mp(prior) * p, (1 - mp(prior)) * q) for p, q in outcomes)
        got = to.bayes_accuracy(prior, upper)
        assert accuracy <= got <= accuracy + mp("1e-11")
        for failure in (0.01, 0.2, 0.6):
            bound = to.posterior_bound(prior, failure, upper)
            exceeding = mpmath.fsum(
                p
                for p, q in outcomes
                if mp(prior) * p / (mp(prior) * p + (1 - mp(prior)) * q) > bound
            )
            assert exceeding <= failure


def test_directions():
    # P = (1, 0), Q = (½, ½): one direction has H(ε) = (1 - e^ε/2)₊, the other ½ at every ε >= 0.
    def remove(e):
        return max(1.0 - math.exp(e) / 2, 0.0) if e < 2 else 0.0

    def add(e):
        return 0.5

    for x in (0.0, 0.1, 0.25, 0.5, 0.75, 1.0):
        miss = max(1.0 - 2.0 * x, 0.0)
        assert to.tradeoff(x, remove, reverse=add) == pytest.approx(miss, abs=1e-6)
        assert to.tradeoff(x, remove, reverse=add) <= miss
        assert (
            to.tradeoff(x, add, reverse=remove)
            == pytest.approx(max((1 - x) / 2, 0) if x >= 0 else 1, abs=1e-3)
            or x == 0
        )
    assert to.membership_advantage(remove, reverse=add) == 0.5
    assert to.membership_advantage(lambda e: 0.7, reverse=add) == 0.5
    # Guessing absence from prior 0.2: P(S) = 1, Q(S) = ½ never pays; from 0.8 it does not either.
    assert to.bayes_accuracy(0.2, remove, reverse=add) == pytest.approx(0.8)
    assert to.bayes_accuracy(0.8, remove, reverse=add) == pytest.approx(0.9)


@pytest.mark.long
@given(
    mu=log_uniform(1e-2, 8.0, 1.0),
    fpr=st.one_of(log_uniform(1e-12, 1.0, 1e-3), st.floats(0.0, 1.0)),
    prior=st.floats(0.001, 0.999),
)
def test_laws(mu, fpr, prior):
    upper, _ = gaussian(mu)
    rate = to.attack_tpr(fpr, upper)
    assert fpr * (1 - 1e-15) <= rate <= 1.0
    assert rate - fpr <= to.membership_advantage(upper) * (1 + 1e-9) + 1e-15
    # An attack is a guess.
    assert prior * rate + (1 - prior) * (1 - fpr) <= to.bayes_accuracy(prior, upper) * (1 + 1e-6)
    value = to.positive_predictive_value(prior, fpr, upper)
    assert prior <= value <= 1.0
    if fpr > 0:
        assert value == pytest.approx(
            max(prior * rate / (prior * rate + (1 - prior) * fpr), prior), rel=1e-12
        )


def test_limits():
    perfect = lambda e: 0.0  # noqa: E731
    exposed = lambda e: 1.0  # noqa: E731
    assert to.attack_tpr(0.0, perfect) <= 1e-289
    assert to.attack_tpr(0.0, exposed) == 1.0
    for x in (0.1, 1e-6, 0.7, 1 / 3):
        assert x <= to.attack_tpr(x, perfect) <= x * (1 + 1e-14)
        assert to.tradeoff(x, perfect) + mp(x) <= 1
    assert to.tradeoff(0.3, exposed) == 0.0
    assert to.membership_advantage(perfect) == 0.0
    assert to.bayes_accuracy(0.3, perfect) == pytest.approx(0.7)
    assert to.bayes_accuracy(0.3, exposed) == 1.0
    assert to.posterior_bound(0.3, 0.01, perfect) == pytest.approx(0.3)
    assert to.posterior_bound(0.3, 0.01, exposed) == 1.0
    assert to.positive_predictive_value(0.3, 0.0, exposed) == 1.0
    pure = lambda e: max(0.0, (math.e - math.exp(min(e, 2.0))) / (1 + math.e))  # noqa: E731
    assert to.attack_tpr(0.01, pure) == pytest.approx(0.01 * math.e, rel=1e-6)


@pytest.mark.parametrize("fpr", [1e-4, 0.01, 0.5, 0.99])
def test_dp_sgd(fpr):
    settings = (0.01, 1.0, 1000)
    rate = attack.attack_tpr(*settings, fpr)
    # No better than the bound that any single ε gives.
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        assert rate <= math.exp(epsilon) * fpr + get_delta(*settings, epsilon) + 1e-12
    # Close to what a simulated attack reaches is not tested here; it must beat blind guessing.
    assert rate > fpr
    assert attack.membership_advantage(*settings) == get_delta(*settings, 0.0)
    assert attack.bayes_accuracy(*settings, 0.5) == pytest.approx(
        0.5 + get_delta(*settings, 0.0) / 2
    )
    assert attack.positive_predictive_value(*settings, 0.5, fpr) == pytest.approx(
        rate / (rate + fpr)
    )


def test_dp_sgd_at_q_one_is_the_gaussian():
    with mpmath.workdps(50):
        truth = 1 - gaussian_miss(1e-6, 1.0)
        assert truth <= attack.attack_tpr(1.0, 2.0, 4, 1e-6) <= truth * (1 + mp("1e-6"))


def test_a_simulated_attack_stays_below():
    import numpy as np

    rng = np.random.default_rng(0)
    q, sigma, steps, n = 0.3, 1.0, 10, 40_000
    noise = rng.normal(0.0, sigma, (2, n, steps))
    noise[1] += rng.random((n, steps)) < q
    scores = np.log1p(q * np.expm1((2 * noise - 1) / (2 * sigma**2))).sum(axis=-1)
    for fpr in (0.01, 0.1, 0.5):
        caught = float((scores[1] > np.quantile(scores[0], 1 - fpr)).mean())
        bound = attack.attack_tpr(q, sigma, steps, fpr)
        assert caught <= bound + 5 * math.sqrt(0.25 / n) + 5 * math.sqrt(fpr / n) * caught / fpr
        assert caught >= 0.85 * bound  # the likelihood-ratio test nearly attains it


def test_refuses():
    perfect = lambda e: 0.0  # noqa: E731
    for case in (
        lambda: to.tradeoff(-0.1, perfect),
        lambda: to.tradeoff(math.nan, perfect),
        lambda: to.attack_tpr(1.1, perfect),
        lambda: to.attack_tpr(0.1, lambda e: 2.0),
        lambda: to.attack_tpr(0.1, lambda e: math.nan),
        lambda: to.bayes_accuracy(0.0, perfect),
        lambda: to.bayes_accuracy(1.0, perfect),
        lambda: to.posterior_bound(0.5, 0.0, perfect),
        lambda: to.positive_predictive_value(1.0, 0.5, perfect),
        lambda: attack.attack_tpr(1.5, 1.0, 10, 0.1),
        lambda: attack.attack_tpr(0.5, -1.0, 10, 0.1),
        lambda: attack.attack_tpr(0.5, 1.0, -1, 0.1),
        lambda: attack.attack_tpr(0.5, 1.0, 10, 2.0),
    ):
        with pytest.raises(DomainError):
            case()
    for case in (
        lambda: to.tradeoff(0.1, 0.5),
        lambda: to.tradeoff("0.1", perfect),
        lambda: to.tradeoff(0.1, perfect, reverse=0.5),
        lambda: attack.attack_tpr(0.5, 1.0, 10.0, 0.1),
        lambda: attack.membership_advantage([0.5], 1.0, 10),
    ):
        with pytest.raises(ArgumentTypeError):
            case()
