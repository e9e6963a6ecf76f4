"""What mutation testing (support/hardening) found nobody watching in two-sample audits."""

import math

import mpmath
import numpy as np
import pytest

from accountant.analyses import gdp
from accountant.audit import epsilon_lower_bound, error_rates, mu_lower_bound, two_sample
from accountant.audit.two_sample import clopper_pearson_upper, epsilon_from_rates, mu_from_rates
from accountant.errors import DomainError
from support.exact_laws import quantile

mp = mpmath.mpf


pytestmark = pytest.mark.usefixtures("sixty_digits")


def test_one_given_threshold_is_counted_on_everything():
    x, y = [0.0, 1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 3.0, 5.0]
    (rate,) = error_rates(x, y, confidence=0.9, threshold=2.0, direction="higher")
    assert rate.fpr == clopper_pearson_upper(2, 5, 0.05)  # 3 and 4 are above
    assert rate.fnr == clopper_pearson_upper(2, 4, 0.05)  # the two at it are not
    assert rate.threshold == 2.0
    low, high = error_rates(x, y, confidence=0.9, threshold=(1.0, 2.5), direction="higher")
    assert low.fpr == clopper_pearson_upper(3, 5, 0.025)
    assert low.fnr == clopper_pearson_upper(0, 4, 0.025)
    assert high.fnr == clopper_pearson_upper(2, 4, 0.025)
    half, other = error_rates(np.array([True, False]), np.array([1, 1]), threshold=0.5)
    assert half.fpr == other.fpr == clopper_pearson_upper(1, 2, (1.0 - 0.95) / 4)
    assert (half.direction, other.direction) == ("higher", "lower")
    assert (half.fnr, other.fnr) == (clopper_pearson_upper(0, 2, (1.0 - 0.95) / 4), 1.0)
    # Below 2 lie two of five without and none of four with; the others are misses.
    (lower,) = error_rates(x, y, confidence=0.9, threshold=2.0, direction="lower")
    assert lower == (clopper_pearson_upper(2, 5, 0.05), 1.0, 2.0, "lower")


def test_halves_choose_and_count():
    x, y = np.array([0.0, 1.0, 9.0, 9.0, 0.0]), np.array([5.0, 6.0, 7.0])
    (rate,) = error_rates(x, y, confidence=0.9)
    # The first two of five, the first of three chose; the others count.
    assert rate.fpr == clopper_pearson_upper(int((x[2:] > rate.threshold).sum()), 3, 0.05)
    assert rate.fnr == clopper_pearson_upper(int((y[1:] <= rate.threshold).sum()), 2, 0.05)
    assert len(error_rates(x[:2], y[:2])) == 1
    for a, b in ((x[:1], y), (x, y[:1])):
        with pytest.raises(DomainError):
            error_rates(a, b)
    for bad in ([], [1.0, math.nan], [math.nan]):
        with pytest.raises(DomainError):
            error_rates(bad, y)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 100, 5000])
@pytest.mark.parametrize("count", [12, 160])
def test_ranks_are_dense_at_both_ends(n, count):
    ranks = two_sample._candidates(n, count)
    assert ranks == sorted(set(ranks))
    assert (ranks[0], ranks[-1]) == (1, n)
    assert len(ranks) <= count
    assert {n + 1 - k for k in ranks} == set(ranks)
    if n >= 100:
        assert len(ranks) >= min(count, 80) - 2
        assert (
            max(np.diff(np.log(ranks[: len(ranks) // 2]))) < math.log(n / 2) / (count / 2 - 1) + 0.7
        )


def test_ranks_bound_the_rates_of_their_own_thresholds():
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal(40), rng.standard_normal(30) + 1
    rates = error_rates(x, y, confidence=0.9, threshold="ranks", direction="higher")
    ranks = two_sample._candidates(40, two_sample.RANKS)
    assert len(rates) == len(ranks)
    for k, rate in zip(ranks, rates, strict=True):
        share = 0.05 / len(ranks)
        assert int((x > rate.threshold).sum()) == k - 1
        assert rate.fpr == clopper_pearson_upper(k - 1, 40, share)
        assert rate.fnr == clopper_pearson_upper(int((y <= rate.threshold).sum()), 30, share)
    # The same of what is negated, in the other direction, and both at half of the error.
    lower = error_rates(-x, -y, confidence=0.9, threshold="ranks", direction="lower")
    assert [rate[:2] for rate in lower] == [rate[:2] for rate in rates]
    assert [rate.threshold for rate in lower] == [-rate.threshold for rate in rates]
    both = error_rates(x, y, confidence=0.8, threshold="ranks")
    assert both[: len(ranks)] == rates
    assert len(both) == 2 * len(ranks)


def test_the_threshold_chosen_is_the_best():
    rng = np.random.default_rng(8)
    for objective in (mu_from_rates, lambda a, b: epsilon_from_rates(a, b, 1e-3)):
        x, y = rng.standard_normal(60), rng.standard_normal(50) + 2
        chosen = two_sample.best_threshold(x, y, 0.025, objective)

        def value(cut, share, x=x, y=y, objective=objective):
            return objective(
                clopper_pearson_upper(int((x > cut).sum()), 60, share),
                clopper_pearson_upper(int((y <= cut).sum()), 50, share),
            )

        # Sixty and fifty scores are all candidates.
        assert value(chosen, 0.025 / 100) == max(value(c, 0.025 / 100) for c in [*x, *y])
    # Where the smaller error sees nothing, the larger chooses.
    x, y = np.arange(5.0), np.arange(5.0) + 3
    chosen = two_sample.best_threshold(x, y, 0.3, mu_from_rates)
    values = [
        mu_from_rates(
            clopper_pearson_upper(int((x > c).sum()), 5, 0.3),
            clopper_pearson_upper(int((y <= c).sum()), 5, 0.3),
        )
        for c in (*x, *y)
    ]
    assert values[[*x, *y].index(chosen)] == max(values) > 0
    # With nothing to see: in the middle.
    assert two_sample.best_threshold(np.zeros(3), np.zeros(3), 0.01, mu_from_rates) == 0.0
    six = np.arange(6.0)
    assert two_sample.best_threshold(six, six, 0.01, mu_from_rates) == 3.0


@pytest.mark.parametrize("rates", [(0.01, 0.3), (0.3, 0.01), (1e-9, 1e-9), (0.2, 0.2)])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.1])
def test_rates_refute_exactly_what_they_do(rates, delta):
    f, g = map(mp, rates)
    truth = max(mpmath.log((1 - g - mp(delta)) / f), mpmath.log((1 - f - mp(delta)) / g))
    found = epsilon_from_rates(*rates, delta)
    assert truth * (1 - mp("1.1e-9")) - mp("2e-14") <= found <= truth * (1 - mp("0.9e-9"))
    mu = -quantile(rates[0]) - quantile(rates[1])
    assert mu * (1 - mp("1.1e-9")) <= mu_from_rates(*rates) <= mu * (1 - mp("0.9e-9"))


def test_rates_that_refute_nothing():
    for rates in ((0.5, 0.5), (0.9, 0.9), (1.0, 1.0), (1.0, 0.5), (0.3, 0.7)):
        assert epsilon_from_rates(*rates, 0.0) == 0.0
        assert mu_from_rates(*rates) == 0.0
    assert epsilon_from_rates(0.4, 0.4, 0.2) == 0.0
    assert epsilon_from_rates(0.4, 0.4, 0.19) > 0.0


def test_bounds_are_those_of_the_best_test():
    x, y = [0] * 50 + [1] * 5, [1] * 60
    fpr, fnr = clopper_pearson_upper(5, 55, 0.025), clopper_pearson_upper(0, 60, 0.025)
    given = {"direction": "higher"}
    found = epsilon_lower_bound(x, y, delta=0.01, threshold=0.5, **given)
    assert found == pytest.approx(epsilon_from_rates(fpr, fnr, 0.01), rel=1e-12)
    found = mu_lower_bound(x, y, threshold=0.5, **given)
    assert found == pytest.approx(mu_from_rates(fpr, fnr), rel=1e-12)
    both = epsilon_lower_bound(x, y, delta=0.01, threshold=(0.5, 7.0), **given)
    fpr, fnr = clopper_pearson_upper(5, 55, 0.0125), clopper_pearson_upper(0, 60, 0.0125)
    assert both == pytest.approx(epsilon_from_rates(fpr, fnr, 0.01), rel=1e-9)
    assert two_sample.gaussian_epsilon(1.0, 1e-5) == gdp.gdp_epsilon_bounds(1.0, 1e-5).lower
    assert two_sample.gaussian_epsilon(0.0, 1e-5) == 0.0
