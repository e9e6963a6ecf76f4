"""Two-sample audits: exact coverage by enumeration, simulated coverage, safe rounding."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from accountant.audit import epsilon_lower_bound, error_rates, mu_lower_bound
from accountant.audit.two_sample import epsilon_from_rates, mu_from_rates
from accountant.errors import AccountantError


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
@pytest.mark.parametrize("direction", ["both", "higher", "lower"])
def test_randomised_response_is_flagged_no_more_often_than_allowed(
    threshold, epsilon, confidence, direction
):
    # Every pair of samples of size 7, with its probability; the claim is the truth.
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))

    def flagged(x, y, sure, cut):
        given = {"confidence": sure, "threshold": cut, "direction": direction}
        return epsilon_lower_bound(x, y, delta=0.0, **given) > epsilon

    found = exact_flagging(
        [truth, 1 - truth], [1 - truth, truth], 7, confidence, threshold, flagged
    )
    assert found <= 1 - confidence
    if confidence == 0.5 and threshold == 0.5 and (direction == "higher" or not epsilon):
        assert found > 0.01  # it can flag: the test above is not idle


def test_three_outcomes_with_ties_are_flagged_no_more_often_than_allowed():
    # The order statistics tie all the time here.
    p, q = [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]

    def flagged(x, y, sure, cut):
        return epsilon_lower_bound(x, y, delta=0.0, confidence=sure, threshold=cut) > math.log(6)

    for confidence in (0.5, 0.9):
        assert exact_flagging(p, q, 5, confidence, "ranks", flagged) <= 1 - confidence


@pytest.mark.long
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


@pytest.mark.long
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
    rates = error_rates(x, x, confidence=0.9, threshold="ranks", direction="higher")
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


@pytest.mark.long
@pytest.mark.parametrize("threshold", [1.0, (0.5, 1.5), "ranks"], ids=str)
def test_rates_of_both_directions_hold_together(threshold):
    """Exactly, for all samples of size 6 of laws on 0, 1, 2, with each sample's probability."""
    p, q, n = [0.3, 0.4, 0.3], [0.1, 0.6, 0.3], 6
    counts = [c for c in itertools.product(range(n + 1), repeat=3) if sum(c) == n]
    worst = {"higher": 0.0, "lower": 0.0, "both": 0.0}
    for direction in worst:
        for a, b in itertools.product(counts, repeat=2):
            x, y = (np.repeat(np.arange(3.0), each) for each in (a, b))
            rates = error_rates(x, y, confidence=0.5, threshold=threshold, direction=direction)
            if not all(holds(rate, p, q) for rate in rates):
                chance = stats.multinomial(n, p).pmf(a) * stats.multinomial(n, q).pmf(b)
                worst[direction] += chance
    assert max(worst.values()) <= 0.5
    assert worst["both"] > 0.0


def holds(rate, p, q):
    """Tell whether the true error rates of a test are within their bounds."""
    way = 1.0 if rate.direction == "higher" else -1.0
    accused = [way * score > way * rate.threshold for score in range(3)]
    alarms = math.fsum(chance for chance, each in zip(p, accused, strict=True) if each)
    misses = math.fsum(chance for chance, each in zip(q, accused, strict=True) if not each)
    return alarms <= rate.fpr + 1e-15 and misses <= rate.fnr + 1e-15


def test_the_half_that_chose_the_direction_is_not_counted():
    """All samples of four and four of one law: nothing may be seen more often than allowed."""
    flagged = 0.0
    for x in itertools.product([0.0, 1.0], repeat=4):
        for y in itertools.product([0.0, 1.0], repeat=4):
            found = epsilon_lower_bound(x, y, delta=0.0, confidence=0.5)
            flagged += (found > 0.0) / 2**8
    assert flagged <= 0.5
    # The first half sees low scores accuse, the second half the contrary.
    turned = epsilon_lower_bound(
        [0.0] * 50 + [1.0] * 50, [1.0] * 50 + [0.0] * 50, delta=0.0, threshold="split"
    )
    assert turned == 0.0


@pytest.mark.parametrize("threshold", ["split", "ranks", 2.5, ("split", 2.5)], ids=str)
def test_scores_that_are_lower_with_the_canary_are_seen(threshold):
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal(2000), 5.0 + rng.standard_normal(2000)
    negated = {2.5: -2.5, ("split", 2.5): ("split", -2.5)}.get(threshold, threshold)
    high = epsilon_lower_bound(x, y, delta=1e-5, threshold=threshold)
    low = epsilon_lower_bound(-x, -y, delta=1e-5, threshold=negated)
    assert high == low > 4.0
    told = {rate.direction for rate in error_rates(-x, -y, threshold=negated)}
    assert told == ({"lower"} if threshold == "split" else {"higher", "lower"})
    assert mu_lower_bound(-x, -y, threshold=negated) == mu_lower_bound(x, y, threshold=threshold)
    assert epsilon_lower_bound(-x, -y, delta=1e-5, threshold=negated, direction="higher") < 0.5
