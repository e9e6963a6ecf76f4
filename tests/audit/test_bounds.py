"""Confidence bounds of audits: exact coverage by enumeration, simulated coverage, safe rounding."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import accountant as ac
from accountant.audit import epsilon_lower_bound, error_rates, mu_lower_bound
from accountant.audit.confidence import binomial_mode, binomial_tail, clopper_pearson_upper
from accountant.audit.curve import TradeoffCurve
from accountant.audit.two_sample import epsilon_from_rates, mu_from_rates
from accountant.errors import AccountantError


def binomial_terms(n, p, last):
    """P{Bin(n, p) = j} for j up to ``last``, to 40 digits, each from the one before."""
    p = mpmath.mpf(p)
    if p == 1:
        return [mpmath.mpf(int(j == n)) for j in range(last + 1)]
    terms = [(1 - p) ** n]
    for j in range(last):
        terms.append(terms[-1] * (n - j) / (j + 1) * p / (1 - p))
    return terms


@given(st.integers(1, 300), st.data(), st.sampled_from([0.5, 0.05, 0.025, 1e-3, 1e-6]))
def test_clopper_pearson_is_rounded_to_the_safe_side(n, data, error):
    k = data.draw(st.integers(0, n))
    assert_clopper_pearson(k, n, error)


@pytest.mark.parametrize("n", [10**5, 10**7])
@pytest.mark.parametrize("k", [0, 1, 17, 2000])
def test_clopper_pearson_with_many_observations(n, k):
    assert_clopper_pearson(k, n, 0.025)


def assert_clopper_pearson(k, n, error):
    upper = clopper_pearson_upper(k, n, error)
    if k == n:
        assert upper == 1.0
        return
    with mpmath.workdps(40):
        # At the bound so few successes have probability at most the error; it is no looser than
        # that.
        assert sum(binomial_terms(n, upper, k)) <= mpmath.mpf(error)
        tighter = mpmath.mpf(upper) * (1 - mpmath.mpf("1e-8"))
        assert sum(binomial_terms(n, tighter, k)) > mpmath.mpf(error)


@given(st.integers(0, 200), st.data(), st.floats(0.0, 1.0))
def test_binomial_tails_are_rounded_up(n, data, p):
    v = data.draw(st.integers(0, n + 1))
    with mpmath.workdps(40):
        terms = binomial_terms(n, p, n)
        exact, mode = min(1, sum(terms[v:], mpmath.mpf(0))), max(terms)
        assert exact <= binomial_tail(v, n, p) <= exact * (1 + mpmath.mpf("1e-8")) + 1e-290
        assert mode <= binomial_mode(n, p) <= mode * (1 + mpmath.mpf("1e-6"))


def exact_flagging(p, q, n, confidence, threshold, flagged):
    """The probability that paired samples of n outcomes are flagged, by enumeration of counts."""
    total = 0.0
    ps, qs = stats.multinomial(n, p), stats.multinomial(n, q)
    counts = [c for c in itertools.product(range(n + 1), repeat=len(p)) if sum(c) == n]
    for a in counts:
        x = np.repeat(np.arange(len(p)), a)
        for b in counts:
            y = np.repeat(np.arange(len(q)), b)
            if flagged(x, y, confidence, threshold):
                total += ps.pmf(a) * qs.pmf(b)
    return total


@pytest.mark.parametrize("threshold", [0.5, "ranks"])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.5])
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_randomised_response_is_flagged_no_more_often_than_allowed(threshold, epsilon, confidence):
    # Every pair of samples of size 7, with its probability; the claim is the truth.
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))

    def flagged(x, y, sure, cut):
        return epsilon_lower_bound(x, y, delta=0.0, confidence=sure, threshold=cut) > epsilon

    found = exact_flagging(
        [truth, 1 - truth], [1 - truth, truth], 7, confidence, threshold, flagged
    )
    assert found <= 1 - confidence
    if confidence == 0.5 and threshold == 0.5:
        assert found > 0.01  # it can flag: the test above is not idle


def test_three_outcomes_with_ties_are_flagged_no_more_often_than_allowed():
    # The order statistics tie all the time here.
    p, q = [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]

    def flagged(x, y, sure, cut):
        return epsilon_lower_bound(x, y, delta=0.0, confidence=sure, threshold=cut) > math.log(6)

    for confidence in (0.5, 0.9):
        assert exact_flagging(p, q, 5, confidence, "ranks", flagged) <= 1 - confidence


@pytest.mark.parametrize("threshold", ["split", "ranks", 0.25, ("split", 0.25)], ids=str)
def test_an_honest_gaussian_mechanism_is_rarely_flagged(threshold):
    rng, runs, n, mu = np.random.default_rng(7), 400, 200, 0.5
    flagged = sum(
        mu_lower_bound(
            rng.standard_normal(n), mu + rng.standard_normal(n), confidence=0.8, threshold=threshold
        )
        > mu
        for _ in range(runs)
    )
    # The allowed 20 %, plus what 400 runs leave open at 1e-6.
    assert flagged <= stats.binom.isf(1e-6, runs, 0.2)


def test_choosing_on_the_same_observations_would_cheat():
    # What the split and the ranks protect from: the best of many thresholds, uncorrected.
    rng, runs, n, cheated, honest = np.random.default_rng(1), 200, 200, 0, 0
    given = {"delta": 0.0, "confidence": 0.5}
    for _ in range(runs):
        x, y = rng.standard_normal((2, n))
        cuts = np.concatenate([x, y])[::4]
        cheated += any(epsilon_lower_bound(x, y, threshold=c, **given) > 0.0 for c in cuts)
        honest += epsilon_lower_bound(x, y, threshold="ranks", **given) > 0.0
    assert cheated > stats.binom.isf(1e-3, runs, 0.5)
    assert honest <= runs // 2


@given(st.floats(1e-6, 0.999), st.floats(1e-6, 0.999), st.floats(0.0, 0.3))
def test_rates_refute_no_epsilon_that_allows_them(fpr, fnr, delta):
    epsilon = epsilon_from_rates(fpr, fnr, delta)
    with mpmath.workdps(40):
        e = mpmath.exp(mpmath.mpf(epsilon))
        first = 1 - mpmath.mpf(fnr) - mpmath.mpf(delta) - e * mpmath.mpf(fpr)
        second = 1 - mpmath.mpf(fpr) - mpmath.mpf(delta) - e * mpmath.mpf(fnr)
        assert epsilon == 0.0 or max(first, second) >= 0


@given(st.floats(1e-12, 1 - 1e-12), st.floats(1e-12, 1 - 1e-12))
def test_mu_of_rates_is_rounded_down(fpr, fnr):
    mu = mu_from_rates(fpr, fnr)
    with mpmath.workdps(50):
        f, g = mpmath.mpf(fpr), mpmath.mpf(fnr)
        exact = mpmath.sqrt(2) * (mpmath.erfinv(1 - 2 * f) + mpmath.erfinv(1 - 2 * g))
        assert mu <= max(exact, 0) <= mu * (1 + mpmath.mpf("1e-8")) + mpmath.mpf("1e-8")


@given(st.floats(0.05, 6.0), st.floats(0.0, 1.0))
def test_the_curve_of_a_gaussian_is_below_the_exact_one(mu, fpr):
    curve = TradeoffCurve.of(ac.Gaussian(1.0 / mu))
    with mpmath.workdps(30):
        x = mpmath.mpf(fpr)
        exact = mpmath.ncdf(-mpmath.sqrt(2) * mpmath.erfinv(2 * x - 1) - mu) if 0 < x < 1 else 1 - x
        assert curve(fpr) <= exact
        assert curve(fpr) >= exact - mpmath.mpf("0.01")


def test_the_curve_is_its_own_inverse_and_vectorised():
    curve = TradeoffCurve.of_dp_sgd(0.1, 1.0, 50)
    x = np.linspace(0.0, 1.0, 101)
    y = curve(x)
    assert y.shape == x.shape
    assert (np.diff(y) <= 0).all()
    assert curve(curve(0.2)) == pytest.approx(0.2, abs=1e-9)
    assert [curve(v) for v in x] == y.tolist()


@pytest.mark.parametrize(
    "given",
    [
        {"without": []},
        {"without": [math.nan]},
        {"without": [[1.0]]},
        {"without": ["a"]},
        {"without": [1.0]},
        {"confidence": 1.0},
        {"confidence": 0.4},
        {"threshold": "best"},
        {"threshold": math.nan},
        {"threshold": ()},
    ],
)
def test_bad_input_is_refused(given):
    settings = {"without": [0.0, 1.0], "with_canary": [0.0, 1.0]} | given
    with pytest.raises(AccountantError):
        error_rates(settings.pop("without"), settings.pop("with_canary"), **settings)


@pytest.mark.parametrize("n", [5, 40, 3000])
def test_rates_at_order_statistics_are_quantiles_of_their_law(n):
    x = np.random.default_rng(n).random(n)
    rates = error_rates(x, x, confidence=0.9, threshold="ranks")
    descending = np.sort(x)[::-1]
    for rate in rates:
        k = int(np.flatnonzero(descending == rate.threshold)[0]) + 1
        # Above the k-th largest of n uniform variables lies a beta variable's share.
        exact = stats.beta.isf(0.05 / len(rates), k, n - k + 1)
        assert exact <= rate.fpr <= exact * (1 + 1e-8)


def test_what_chose_the_threshold_is_not_counted():
    # The first halves are told apart by every threshold in between, the second ones by none.
    x = np.concatenate([np.zeros(500), np.tile([0.0, 1.0], 250)])
    y = np.concatenate([np.ones(500), np.tile([0.0, 1.0], 250)])
    assert epsilon_lower_bound(x, y, delta=0.0) == 0.0
    assert epsilon_lower_bound(x, y, delta=0.0, threshold=0.5) > 0.5


@pytest.mark.parametrize("n", [1, 7, 40])
@pytest.mark.parametrize("error", [0.05, 0.3])
def test_a_bound_on_a_proportion_covers_it(n, error):
    """Whatever the proportion: just above the bound of k, k and fewer are that improbable."""
    with mpmath.workdps(40):
        for k in range(n):
            p = mpmath.mpf(clopper_pearson_upper(k, n, error))
            few = sum(mpmath.binomial(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1))
            assert few <= error
            assert few >= error * (1 - mpmath.mpf("1e-6"))
    assert clopper_pearson_upper(n, n, error) == 1.0
