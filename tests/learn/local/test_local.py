"""The local model: laws, bias and variance on 100,000 users, closed forms, shuffling."""

import itertools
import math
import warnings

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant.errors import ArgumentTypeError, DomainError
from accountant.learn.local import (
    KaryResponse,
    Rappor,
    ShuffledResponses,
    estimate_mean,
    randomize_gaussian,
    randomize_laplace,
    shuffled_epsilon,
)
from accountant.mechanisms.selection import ShuffledBounds

USERS = 100_000
SHARES = np.array([0.4, 0.3, 0.2, 0.1, 0.0])


def users():
    return np.repeat(np.arange(5), (SHARES * USERS).astype(int))


def agrees(estimate):
    # The noise's standard deviation is known, so five of them bound the error.
    errors = (estimate.counts - SHARES * USERS) / np.sqrt(estimate.variance)
    assert np.abs(errors).max() < 5.0
    return errors


def test_randomised_response_has_its_law_and_its_estimate_its_variance():
    response = KaryResponse(1.5, 5)
    reports = response.randomize(users(), rng=1)
    p = math.exp(1.5) / (math.exp(1.5) + 4.0)
    of_zero = np.bincount(reports[:40_000], minlength=5)
    law = np.array([p, *[(1 - p) / 4] * 4])
    assert stats.chisquare(of_zero, 40_000 * law).pvalue > 1e-4
    assert stats.chisquare(np.roll(of_zero, 1), 40_000 * law).pvalue < 1e-12
    agrees(response.estimate(reports))
    # The variance stated is the variance seen.
    errors = [agrees(response.estimate(response.randomize(users(), rng=s))) for s in range(2, 22)]
    assert 60.0 < np.sum(np.square(errors)) < 150.0  # 100 in expectation, σ = 14


def test_costs_are_the_closed_forms():
    assert KaryResponse(1.5, 5).mechanism.epsilon(0.0) == pytest.approx(1.5, rel=1e-12)
    one = Rappor(5, 0.5)
    assert one.permanent_epsilon == pytest.approx(2.0 * math.log(0.75 / 0.25), rel=1e-12)
    assert one.report_epsilon == pytest.approx(one.permanent_epsilon, rel=1e-12)
    two = Rappor(5, 0.5, 0.5, 0.75)
    q, p = 0.25 * 1.25 + 0.5 * 0.75, 0.25 * 1.25 + 0.5 * 0.5
    expected = math.log(q * (1 - p) / (p * (1 - q)))
    assert two.report_epsilon == pytest.approx(expected, rel=1e-12)
    assert two.report_mechanism.epsilon(0.0) >= expected
    assert two.report_mechanism.relation is Relation.REPLACE_ONE


def test_the_loss_of_rappor_by_brute_force():
    one = Rappor(3, 0.4, 0.1, 0.8)
    p, q = 0.2 * 0.9 + 0.6 * 0.1, 0.2 * 0.9 + 0.6 * 0.8

    def chance(bits, value, low, high):
        return math.prod(
            (high if i == value else low) if b else 1 - (high if i == value else low)
            for i, b in enumerate(bits)
        )

    for low, high, epsilon in ((p, q, one.report_epsilon), (0.2, 0.8, one.permanent_epsilon)):
        worst = max(
            abs(math.log(chance(bits, a, low, high) / chance(bits, b, low, high)))
            for bits in itertools.product((0, 1), repeat=3)
            for a, b in itertools.permutations(range(3), 2)
        )
        assert worst <= epsilon == pytest.approx(worst, rel=1e-12)


def test_rappor_estimates():
    for one in (Rappor(5, 0.5), Rappor(5, 0.25, 0.35, 0.65)):
        kept = one.permanent(users(), rng=2)
        agrees(one.estimate(one.report(kept, rng=3)))
        errors = [
            agrees(one.estimate(one.report(one.permanent(users(), rng=s), rng=s + 100)))
            for s in range(4, 10)
        ]
        assert np.sum(np.square(errors)) < 70.0  # 30 in expectation


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_means_of_bounded_values(noise):
    values = np.linspace(-1.0, 3.0, USERS)
    make = randomize_laplace if noise == "laplace" else randomize_gaussian
    reports = make(values, (0.0, 2.0), 1.0, rng=4)
    truth = np.clip(values, 0.0, 2.0).mean()
    found = estimate_mean(reports)
    assert abs(found.mean - truth) < 5.0 * math.sqrt(found.variance)
    errors = reports.values - np.clip(values, 0.0, 2.0)
    assert errors.var() == pytest.approx(reports.noise_variance, rel=0.03)
    assert not reports.private
    assert reports.mechanism.relation is Relation.REPLACE_ONE
    if noise == "laplace":
        assert reports.mechanism.epsilon(0.0) == pytest.approx(1.0, rel=1e-9)
        assert reports.mechanism.epsilon(0.0) <= 1.0
    else:
        assert reports.mechanism.epsilon(1e-6) == pytest.approx(ac.Gaussian(1.0).epsilon(1e-6))


def test_local_against_central_error():
    # The same ε costs the local model a factor of about √n.
    local = estimate_mean(randomize_laplace(np.full(USERS, 0.3), (0.0, 1.0), 1.0)).variance
    central = 2.0 / USERS**2
    assert local / central == pytest.approx(USERS, rel=1e-6)


def shuffled_law(chances, values):
    """The exact law of the histogram of independent reports, by convolution."""
    law = {(0,) * len(chances[0]): mpf(1)}
    for value in values:
        grown = {}
        for counts, mass in law.items():
            for report, chance in enumerate(chances[value]):
                key = tuple(c + (i == report) for i, c in enumerate(counts))
                grown[key] = grown.get(key, 0) + mass * chance
        law = grown
    return law


@pytest.mark.long(keep=7)
@pytest.mark.parametrize(("k", "n"), [(2, 1), (2, 6), (2, 15), (3, 7), (4, 5)])
@pytest.mark.parametrize("epsilon", [0.5, 1.5])
@mp.workdps(40)
def test_shuffling_by_brute_force(k, n, epsilon):
    a = mp.exp(mpf(epsilon))
    chances = [[(a if i == j else 1) / (a + k - 1) for j in range(k)] for i in range(k)]
    bounds = [ShuffledBounds(epsilon, n, k), ShuffledBounds(epsilon, n, None)]
    for others in itertools.combinations_with_replacement(range(k), n - 1):
        one, two = (shuffled_law(chances, (first, *others)) for first in (0, 1))
        for at in (0.0, 0.1, 0.4, 0.9 * epsilon):
            truth = sum(max(one[x] - mp.exp(mpf(at)) * two[x], 0) for x in one)
            assert truth <= bounds[0].delta(at) + mpf(10) ** -28  # of the digits of the oracle
            assert bounds[0].delta(at) <= bounds[1].delta(at) + 1e-9
    assert bounds[0].delta(epsilon) == 0.0


def test_shuffling_binary_responses_is_attained():
    # All others hold values whose clones are the whole report only when ε is small; with n = 1
    # nothing is shuffled, and the bound is randomised response itself.
    for at in (0.0, 0.3, 0.7):
        alone = ac.RandomizedResponse(1.0, relation=Relation.REPLACE_ONE).delta(at)
        assert ShuffledBounds(1.0, 1, 2).delta(at) == pytest.approx(alone, rel=1e-8)


@pytest.mark.long
def test_shuffling_amplifies():
    found = [shuffled_epsilon(1.0, dataset_size=n, delta=1e-6) for n in (1000, 10_000, 100_000)]
    assert found[0] > found[1] > found[2]
    assert found[0] / found[2] == pytest.approx(10.0, rel=0.2)
    assert shuffled_epsilon(1.0, dataset_size=10_000, delta=1e-6, k=2) < found[1] < 1.0
    assert shuffled_epsilon(1.0, dataset_size=10_000, delta=1e-6, k=10) <= found[1] * (1 + 1e-9)
    mechanism = ShuffledResponses(1.0, dataset_size=10_000)
    assert mechanism == eval(repr(mechanism))
    ledger = ac.Accountant()
    ledger.compose(mechanism, 3)
    ledger.compose(ac.Gaussian(5.0, relation=Relation.REPLACE_ONE))
    assert found[1] < ledger.epsilon(1e-6)
    assert ac.Accountant.from_json(ledger.to_json()).epsilon(1e-6) == ledger.epsilon(1e-6)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: KaryResponse(0.0, 3), DomainError),
        (lambda: KaryResponse(math.nan, 3), DomainError),
        (lambda: KaryResponse(1.0, 1), DomainError),
        (lambda: KaryResponse(1.0, 3.0), ArgumentTypeError),
        (lambda: KaryResponse(1.0, 3).randomize(np.zeros((1, 2))), DomainError),
        (lambda: KaryResponse(1.0, 3).randomize(np.array(["0"])), ArgumentTypeError),
        (lambda: KaryResponse(1.0, 3).estimate([0, 3]), DomainError),
        (lambda: Rappor(3, 0.0), DomainError),
        (lambda: Rappor(3, 0.5, 0.7, 0.3), DomainError),
        (lambda: Rappor(3, 0.5).estimate(np.zeros((4, 2), bool)), DomainError),
        (lambda: randomize_laplace([0.1], (1.0, 0.0), 1.0), DomainError),
        (lambda: randomize_laplace([0.1], (0.0, 1.0), -1.0), DomainError),
        (lambda: randomize_gaussian([0.1], (0.0, 1.0), 0.0), DomainError),
        (lambda: ShuffledResponses(0.0, dataset_size=10), DomainError),
        (lambda: ShuffledResponses(1.0, dataset_size=0), DomainError),
        (lambda: ShuffledResponses(1.0, dataset_size=10.0), ArgumentTypeError),
    ],
)
def test_bad_input_is_refused(call, error):
    with pytest.raises(error):
        call()


def test_values_outside_the_bounds_are_reported_as_the_ends():
    for make, level in ((randomize_laplace, 50.0), (randomize_gaussian, 0.02)):
        reports = make([1e9, -1e9, 1.0, 0.0], (0.0, 1.0), level, rng=1)
        assert np.abs(reports.values - [1.0, 0.0, 1.0, 0.0]).max() < 1.0


def test_a_seed_warns_where_no_result_can_say_it():
    rappor = Rappor(3, 0.5, 0.25, 0.75)
    bits = rappor.permanent([0, 1])
    for call in (
        lambda **given: KaryResponse(1.0, 3).randomize([0, 1], **given),
        lambda **given: rappor.permanent([0, 1], **given),
        lambda **given: rappor.report(bits, **given),
    ):
        with pytest.warns(UserWarning, match="not private"):
            call(rng=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call()


def test_a_value_that_cannot_be_read_counts_as_the_least():
    """Whether a call raised used to tell of one user's value."""
    few = KaryResponse(40.0, 3).randomize([2, "?", None, float("nan"), 7, 0.5, [1], 1])
    assert few.tolist() == [2, 0, 0, 0, 0, 0, 0, 1]
    noisy = randomize_laplace([0.5, "?", None, [1.0], float("-inf"), 9], (0.25, 1.0), 1e6).values
    assert np.allclose(noisy, [0.5, 0.25, 0.25, 0.25, 0.25, 1.0], atol=1e-3)
