"""What mutation testing (support/hardening) found nobody watching in the audits' bounds."""

import math

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

from accountant.analyses import gdp
from accountant.audit import (
    Guesses,
    count_guesses,
    epsilon_lower_bound,
    error_rates,
    mu_lower_bound,
    one_run,
    one_run_epsilon,
    one_run_mu,
    one_run_p_value,
    two_sample,
)
from accountant.audit.confidence import binomial_mode, binomial_tail, clopper_pearson_upper
from accountant.audit.two_sample import epsilon_from_rates, mu_from_rates
from accountant.errors import AccountantError, DomainError

mp = mpmath.mpf


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(40):
        yield


def pmf(n, p, j):
    return mpmath.binomial(n, j) * mp(p) ** j * (1 - mp(p)) ** (n - j)


def tail(n, p, v):
    return sum(pmf(n, p, j) for j in range(v, n + 1))


def quantile(p):
    return mpmath.sqrt(2) * mpmath.erfinv(2 * mp(p) - 1)


def assert_margin(found, truth, least, most):
    """The trusted functions are a billionth off at most: that much is left free."""
    assert truth * (1 + mp(least)) <= found <= truth * (1 + mp(most))


@pytest.mark.parametrize(("k", "n"), [(0, 1), (0, 50), (1, 2), (3, 17), (40, 60), (59, 60)])
@pytest.mark.parametrize("error", [0.4, 0.025, 1e-6])
def test_confidence_bounds_leave_room_for_the_library(k, n, error):
    found = clopper_pearson_upper(k, n, error)
    # Where so few successes have probability ``error``: bisection on the exact tail.
    low, high = mp(0), mp(1)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 - tail(n, middle, k + 1) > error else (low, middle)
    assert_margin(found, high, "0.9e-9", "1.1e-9") if high < 1 - 1e-8 else found == 1.0


def test_confidence_bounds_at_the_ends():
    assert clopper_pearson_upper(5, 5, 0.05) == clopper_pearson_upper(1, 1, 0.5) == 1.0
    assert clopper_pearson_upper(0, 1, 1e-12) <= 1.0
    for k, n in ((-1, 5), (6, 5), (0, 0)):
        with pytest.raises(DomainError):
            clopper_pearson_upper(k, n, 0.05)
    for error in (0.0, 1.0):
        with pytest.raises(DomainError):
            clopper_pearson_upper(1, 5, error)


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (2, 0.9), (7, 0.3), (40, 0.5), (60, 0.01)])
def test_binomial_probabilities_leave_room_for_the_library(n, p):
    for v in range(1, n + 1):
        exact = tail(n, p, v)
        if exact < 1 - 1e-8:
            assert_margin(binomial_tail(v, n, p) - 1e-300, exact, "0.9e-9", "1.1e-9")
        assert binomial_tail(v, n, p) <= 1.0
    mode = max(pmf(n, p, j) for j in range(n + 1))
    assert_margin(binomial_mode(n, p), mode, "0.9e-9", "1.1e-9")


def test_binomial_probabilities_at_the_ends():
    assert binomial_tail(0, 5, 0.0) == binomial_tail(-1, 5, 0.3) == 1.0
    assert binomial_tail(6, 5, 1.0) == binomial_tail(1, 5, 0.0) == 0.0
    assert binomial_tail(5, 5, 1.0) == 1.0
    assert binomial_tail(1, 1, 0.25) == pytest.approx(0.25, rel=2e-9)
    assert 1e-300 <= binomial_tail(2000, 2000, 1e-3) <= 2e-300
    assert binomial_mode(0, 0.3) == binomial_mode(5, 0.0) == binomial_mode(5, 1.0) == 1.0
    assert binomial_mode(1, 0.5) == pytest.approx(0.5, rel=2e-9)
    assert binomial_tail(1, 5, math.nan) == 1.0


@pytest.mark.parametrize("n", [10**4, 10**6, 10**9, 2**40])
@pytest.mark.parametrize("p", [0.5, 0.731, 0.99999, 1 - 2.0**-40])
def test_binomial_modes_of_many_trials(n, p):
    # lgamma's rounding, absolute in the logarithm, grows with n log n.
    j = int(mpmath.floor((n + 1) * mp(p)))
    log = mpmath.loggamma(n + 1) - mpmath.loggamma(j + 1) - mpmath.loggamma(n - j + 1)
    powers = j * mpmath.log(mp(p)), (n - j) * mpmath.log(1 - mp(p))
    size = mpmath.loggamma(n + 1) + mpmath.loggamma(j + 1) + abs(mpmath.loggamma(n - j + 1))
    size = (size - sum(powers)) * mp(2) ** -53
    found = mp(binomial_mode(n, p))
    assert found == 1 or 12 * size + mp("0.9e-9") <= mpmath.log(found) - log - sum(powers)
    assert mpmath.log(found) - log - sum(powers) <= 20 * size + mp("1.1e-9")


@pytest.mark.parametrize("n", [10**6, 10**9, 2**40])
@pytest.mark.parametrize("p", [0.5, 0.731])
def test_binomial_tails_of_many_trials(n, p):
    for deviations in (0, 5):
        v = int(n * p + deviations * math.sqrt(n * p * (1 - p)))
        with ctx.workprec(160):
            exact = arb(p).beta_lower(arb(v), arb(n - v + 1), regularized=True)
            assert exact <= arb(binomial_tail(v, n, p)) <= exact * (1 + arb("2e-9"))
            upper = clopper_pearson_upper(v, n, 0.025)
            fewer = 1 - arb(upper).beta_lower(arb(v + 1), arb(n - v), regularized=True)
            assert fewer <= arb(0.025)
    with pytest.raises(DomainError):
        clopper_pearson_upper(1, 2**40 + 1, 0.025)
    with pytest.raises(DomainError):
        one_run_epsilon(Guesses(2**40 + 1, 10, 10), delta=0.0)


def test_one_given_threshold_is_counted_on_everything():
    x, y = [0.0, 1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 3.0, 5.0]
    (rate,) = error_rates(x, y, confidence=0.9, threshold=2.0)
    assert rate.fpr == clopper_pearson_upper(2, 5, 0.05)  # 3 and 4 are above
    assert rate.fnr == clopper_pearson_upper(2, 4, 0.05)  # the two at it are not
    assert rate.threshold == 2.0
    low, high = error_rates(x, y, confidence=0.9, threshold=(1.0, 2.5))
    assert low.fpr == clopper_pearson_upper(3, 5, 0.025)
    assert low.fnr == clopper_pearson_upper(0, 4, 0.025)
    assert high.fnr == clopper_pearson_upper(2, 4, 0.025)
    (half,) = error_rates(np.array([True, False]), np.array([1, 1]), threshold=0.5)
    assert half.fpr == clopper_pearson_upper(1, 2, (1.0 - 0.95) / 2)


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
    rates = error_rates(x, y, confidence=0.9, threshold="ranks")
    ranks = two_sample._candidates(40, two_sample.RANKS)
    assert len(rates) == len(ranks)
    for k, rate in zip(ranks, rates, strict=True):
        share = 0.05 / len(ranks)
        assert int((x > rate.threshold).sum()) == k - 1
        assert rate.fpr == clopper_pearson_upper(k - 1, 40, share)
        assert rate.fnr == clopper_pearson_upper(int((y <= rate.threshold).sum()), 30, share)


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
    found = epsilon_lower_bound(x, y, delta=0.01, threshold=0.5)
    assert found == pytest.approx(epsilon_from_rates(fpr, fnr, 0.01), rel=1e-12)
    assert mu_lower_bound(x, y, threshold=0.5) == pytest.approx(mu_from_rates(fpr, fnr), rel=1e-12)
    both = epsilon_lower_bound(x, y, delta=0.01, threshold=(0.5, 7.0))
    fpr, fnr = clopper_pearson_upper(5, 55, 0.0125), clopper_pearson_upper(0, 60, 0.0125)
    assert both == pytest.approx(epsilon_from_rates(fpr, fnr, 0.01), rel=1e-9)
    assert two_sample.gaussian_epsilon(1.0, 1e-5) == gdp.gdp_epsilon_bounds(1.0, 1e-5).lower
    assert two_sample.gaussian_epsilon(0.0, 1e-5) == 0.0


def p_value(m, r, v, epsilon, delta):
    """Theorem A7 from its statement."""
    p = 1 / (1 + mpmath.exp(-mp(epsilon)))
    short = sum(
        max(pmf(k, p, j) for j in range(max(0, k - (r - v)), min(k, v - 1) + 1)) for k in range(r)
    )
    return min(mp(1), tail(r, p, v) + (1 - p) * mp(delta) * m * short / r)


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-2])
@pytest.mark.parametrize(
    ("m", "r", "v"), [(1, 1, 1), (5, 5, 4), (20, 20, 17), (20, 8, 8), (40, 10, 9), (30, 30, 1)]
)
def test_p_values_are_the_theorems(m, r, v, epsilon, delta):
    truth = p_value(m, r, v, epsilon, delta)
    found = one_run_p_value(Guesses(m, r, v), epsilon, delta)
    assert truth <= found <= truth * (1 + mp("1e-6")) + mp("1e-11")


def test_p_values_at_the_ends():
    assert one_run_p_value(Guesses(5, 5, 0), 1.0, 0.1) == 1.0
    assert one_run_p_value(Guesses(5, 5, 0), 1.0, 0.0) == 1.0
    assert one_run_p_value(Guesses(50, 5, 5), 1.0, 0.9) <= 1.0


@pytest.mark.parametrize(("r", "v"), [(100, 95), (1000, 600), (10, 10)])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_bound_is_where_the_p_value_reaches_the_error(r, v, delta):
    guesses = Guesses(1000, r, v)
    found = one_run_epsilon(guesses, delta=delta)
    assert found > 0.0
    assert one_run_p_value(guesses, found, delta) <= 1 - 0.95
    assert one_run_p_value(guesses, found + 1e-9, delta) > 1 - 0.95
    mu = one_run_mu(guesses)
    assert one_run.refutes_curve(guesses, one_run._gaussian_curve(mu), 1 - 0.95)
    assert not one_run.refutes_curve(guesses, one_run._gaussian_curve(mu + 1e-9), 1 - 0.95)


def test_what_refutes_nothing():
    for guesses in (Guesses(10, 10, 5), Guesses(10, 1, 1), Guesses(10, 10, 0)):
        assert one_run_epsilon(guesses, delta=0.0) == one_run_mu(guesses) == 0.0
    for guesses in (Guesses(3, 4, 2), Guesses(3, 2, 3), Guesses(3, 2, -1), Guesses(3, 0, 0)):
        with pytest.raises(AccountantError):
            one_run_epsilon(guesses, delta=0.0)
    assert one_run_epsilon(Guesses(1, 1, 1), delta=0.0, confidence=0.5) == 0.0
    assert one_run_epsilon(Guesses(10, 5, 5), delta=0.0, confidence=0.5) > 1.0


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_the_curve_of_an_audit_is_just_below_the_gaussians(mu):
    curve = one_run._gaussian_curve(mu)
    for fpr in (1e-9, 0.01, 0.3, 0.7, 0.999):
        truth = mpmath.ncdf(-quantile(fpr) - mu)
        assert truth * (1 - mp("2e-11")) - mp("2e-15") <= curve(fpr) <= truth * (1 - mp("1e-12"))
    assert (curve(0.0), curve(1.0)) == (1.0, 0.0)


def test_a_curve_is_refuted_by_one_pass_over_the_counts():
    # Perfect privacy: the counts are binomial, and the pass is exact for all guesses made.
    perfect = lambda fpr: 1.0 - fpr  # noqa: E731
    for m, v in ((4, 4), (6, 6), (8, 7), (20, 17)):
        refuted = [
            error for error in np.geomspace(1e-7, 0.9, 400)
            if one_run.refutes_curve(Guesses(m, m, v), perfect, float(error))
        ]  # fmt: skip
        # Never where the exact tail allows it, and some above.
        assert not any(error <= tail(m, 0.5, v) * (1 - 1e-9) for error in refuted)
    curve = one_run._gaussian_curve(0.5)
    assert one_run.refutes_curve(Guesses(20, 20, 20), curve, 0.05)
    assert not one_run.refutes_curve(Guesses(20, 20, 10), curve, 0.05)


def test_guesses_are_the_ends_of_the_scores():
    scores = np.array([0.3, -2.0, 5.0, 1.0, 4.0, -7.0])
    coins = np.array([False, False, True, True, False, True])
    # In order: 5 1 0 3 4 2, with coins T F F T F T.
    for made, correct in ((1, 1), (2, 1), (3, 1), (4, 2), (5, 3), (6, 4)):
        assert count_guesses(scores, coins, made) == Guesses(6, made, correct)


def test_the_error_is_shared():
    asked = []

    def bound(made, confidence):
        asked.append(confidence)
        return made % 7

    assert one_run.best_of([3, 13, 5], bound, 0.85) == (6, 13)
    assert asked == pytest.approx([0.95] * 3, rel=1e-12)


def test_the_chance_of_a_right_guess_is_rounded_up_to_one():
    for epsilon in (0.0, 0.3, 5.0, 30.0, 37.0, 700.0, 1e6):
        truth = 1 / (1 + mpmath.exp(-mp(epsilon)))
        assert truth <= one_run._sigmoid_up(epsilon) <= min(truth * (1 + mp("2e-14")), 1)


def least_total(guesses, curve, error):
    """Theorem A8: the least total probability, the masses from the observed count down."""
    m, r, v = guesses
    masses = {v: mp(error)}
    for w in range(v, 0, -1):
        right = sum(j * p for j, p in masses.items())
        wrong = sum((r - j) * p for j, p in masses.items())
        needed = m * mp(curve(float(max(1 - right / m, 0)))) - wrong
        masses[w - 1] = max(needed, 0) / (r - w + 1)
    return sum(masses.values())


@pytest.mark.parametrize("mu", [0.0, 0.3, 1.5])
@pytest.mark.parametrize(("m", "r", "v"), [(5, 5, 5), (20, 20, 16), (30, 12, 12), (40, 9, 7)])
def test_curves_are_refuted_where_the_theorem_says_so(m, r, v, mu):
    guesses, curve = Guesses(m, r, v), one_run._gaussian_curve(mu)
    low, high = 0.0, 1.0
    for _ in range(45):
        middle = 0.5 * (low + high)
        refuted = one_run.refutes_curve(guesses, curve, middle)
        low, high = (low, middle) if refuted else (middle, high)
    assert (high == 1.0) == ((m, mu) == (40, 1.5))  # seven of nine are no surprise there
    assert high == 1.0 or least_total(guesses, curve, high) > 1
    assert least_total(guesses, curve, high * (1 - 1e-6)) <= 1 + mp("2e-9")
