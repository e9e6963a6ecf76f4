"""Calibration: the best value whose certified ε meets the target, beside one that does not."""

import math

import numpy as np
import pytest
from hypothesis import given

import accountant as ac
from accountant._core import answers as core
from support.strategies import (
    counts,
    deltas,
    noise_multipliers,
    sampling_probabilities,
    target_epsilons,
)


def cost(q, sigma, steps, delta, records=1):
    """Return the certified ε; infinite where none is certified."""
    try:
        return ac.get_epsilon(q, sigma, steps, delta, user_records=records)
    except ac.PrecisionError:
        return math.inf


def best_sigma(target, delta, q, steps, records=1):
    """Calibrate, and look at the answer and at the next smaller double."""
    found = ac.calibrate_sigma(target, delta, q, steps, user_records=records)
    assert cost(q, found, steps, delta, records) <= target
    assert cost(q, math.nextafter(found, 0.0), steps, delta, records) > target
    return found


def best_steps(target, delta, q, sigma, records=1):
    found = ac.calibrate_steps(target, delta, q=q, sigma=sigma, user_records=records)
    assert type(found) is int
    assert cost(q, sigma, found, delta, records) <= target
    assert cost(q, sigma, found + 1, delta, records) > target
    return found


def best_q(target, delta, sigma, steps, records=1):
    found = ac.calibrate_q(target, delta, sigma=sigma, steps=steps, user_records=records)
    assert 0.0 <= found <= 1.0
    assert cost(found, sigma, steps, delta, records) <= target
    assert found == 1.0 or cost(math.nextafter(found, 1.0), sigma, steps, delta, records) > target
    return found


@pytest.mark.long
@given(target_epsilons, deltas, sampling_probabilities, noise_multipliers, counts)
def test_answers_are_beside_what_misses_the_target(target, delta, q, sigma, steps):
    used = 1.0 if q == 1.0 else -math.expm1(steps * math.log1p(-q))
    if delta < 0.99 * used:
        best_sigma(target, delta, q, steps)
    best_q(target, delta, sigma, steps)


@given(target_epsilons, deltas, sampling_probabilities, noise_multipliers)
def test_steps(target, delta, q, sigma):
    try:
        best_steps(target, delta, q, sigma)
    except ac.DomainError:
        assert cost(q, sigma, 2**53, delta) <= target


@pytest.mark.parametrize("target", [1e-6, 1e-4, 1e-2, 1.0, 30.0, 1000.0, 1e4, 1e8, 1e200])
def test_both_ends_of_the_range_and_beyond(target):
    best_sigma(target, 1e-5, 1.0, 1)
    if 1e-4 <= target <= 1000.0:  # tight, too
        sigma, q = best_sigma(target, 1e-5, 0.01, 1000), best_q(target, 1e-5, 1.0, 1000)
        assert target * (1 - 1e-6) <= cost(0.01, sigma, 1000, 1e-5)
        assert q == 1.0 or target * (1 - 1e-6) <= cost(q, 1.0, 1000, 1e-5)


@pytest.mark.parametrize(
    ("target", "delta"), [(0.1, 1e-5), (1.0, 1e-9), (8.0, 1e-5), (0.5, 0.2), (300.0, 1e-5)]
)
@pytest.mark.parametrize("steps", [1, 7, 10**6])
def test_calibrated_gaussians(target, delta, steps):
    sigma = best_sigma(target, delta, 1.0, steps)
    assert best_steps(target, delta, 1.0, sigma) >= steps
    assert best_q(target, delta, sigma, steps) == 1.0


@pytest.mark.parametrize(
    ("target", "delta", "sigma", "records"),
    [(1.0, 1e-5, 1.0, 1), (4.0, 1e-6, 0.7, 1), (4.0, 1e-6, 2.0, 2), (4.0, 1e-6, 2.0, 7)],
)
def test_samples_and_the_records_of_a_user(target, delta, sigma, records):
    assert 0.0 < best_q(target, delta, sigma, 20, records) < 1.0
    best_steps(target, delta, 0.05 if records == 1 else 0.01, sigma, records)
    best_sigma(target, delta, 0.05 if records == 1 else 0.01, 300, records)


def test_answers_at_the_ends():
    assert ac.calibrate_steps(0.01, 1e-5, q=1.0, sigma=0.5) == 0
    assert ac.calibrate_steps(1e-3, 1e-5, q=1.0, sigma=1.0) == 0
    for target, sigma, steps in ((100.0, 10.0, 1), (1e-4, math.inf, 10**9), (1e-4, 0.3, 0)):
        assert ac.calibrate_q(target, 1e-5, sigma=sigma, steps=steps) == 1.0
    assert ac.calibrate_q(1.0, 1e-5, sigma=1e-3, steps=1) < 2e-5


def test_defaults_are_the_plain_gaussian():
    assert ac.calibrate_sigma(1.0) == ac.calibrate_sigma(1.0, 1e-5, 1.0, 1)
    # The analytic Gaussian mechanism (Balle, Wang 2018) at ε = 1, δ = 1e-5.
    assert math.isclose(ac.calibrate_sigma(1.0), 3.730631634815942, rel_tol=1e-9)


def test_the_exact_integer_by_brute_force():
    for target in (0.5, 1.0, 2.0):
        steps = ac.calibrate_steps(target, 1e-5, q=0.05, sigma=2.0)
        spent = [ac.get_epsilon(0.05, 2.0, n, 1e-5) for n in range(steps + 20)]
        assert [n for n, e in enumerate(spent) if e <= target][-1] == steps


def test_arrays():
    targets = np.array([[0.5], [4.0]])
    delta = np.array([1e-5, 1e-7, 1e-9])
    sigma = ac.calibrate_sigma(targets, delta, 0.01, 500)
    steps = ac.calibrate_steps(targets, delta, q=0.01, sigma=1.0)
    q = ac.calibrate_q(targets, delta, sigma=1.0, steps=500)
    assert sigma.shape == steps.shape == q.shape == (2, 3)
    assert (sigma.dtype, steps.dtype, q.dtype) == (np.float64, np.int64, np.float64)
    for i, j in np.ndindex(2, 3):
        t, d = float(targets[i, 0]), float(delta[j])
        assert sigma[i, j] == ac.calibrate_sigma(t, d, 0.01, 500)
        assert steps[i, j] == ac.calibrate_steps(t, d, q=0.01, sigma=1.0)
        assert q[i, j] == ac.calibrate_q(t, d, sigma=1.0, steps=500)
    threaded = ac.calibrate_sigma(targets, delta, 0.01, 500, workers=2)
    assert np.array_equal(sigma, threaded)


@pytest.mark.parametrize(
    ("q", "steps", "delta"), [(0.0, 10, 1e-5), (0.1, 0, 1e-5), (1e-6, 9, 1e-5), (0.5, 1, 0.6)]
)
def test_no_smallest_noise(q, steps, delta):
    with pytest.raises(ac.DomainError, match=r"calibrate_sigma has no smallest answer.*delta"):
        ac.calibrate_sigma(1.0, delta, q, steps)


def test_no_certified_noise():
    with pytest.raises(ac.PrecisionError, match=r"target_eps = 1\.5e-179 at delta = 5e-324"):
        ac.calibrate_sigma(1.5e-179, 5e-324)


@pytest.mark.parametrize(("q", "sigma", "says"), [(0.0, 1.0, "q = 0"), (0.1, math.inf, "inf")])
def test_unlimited_steps(q, sigma, says):
    with pytest.raises(ac.DomainError, match=f"calibrate_steps has no largest answer.*{says}"):
        ac.calibrate_steps(1.0, 1e-5, q=q, sigma=sigma)


def test_more_steps_than_can_be_counted():
    with pytest.raises(ac.DomainError, match=r"even 2\*\*53 steps"):
        ac.calibrate_steps(1.0, 1e-5, q=1e-12, sigma=100.0)


@pytest.mark.parametrize(
    "calibrate",
    [
        lambda: ac.calibrate_sigma(1.0, 0.0),
        lambda: ac.calibrate_steps(1.0, 0.0, q=0.1, sigma=1.0),
        lambda: ac.calibrate_q(1.0, 0, sigma=1.0, steps=1),
    ],
)
def test_no_target_is_reached_at_delta_zero(calibrate):
    with pytest.raises(ac.DomainError, match=r"delta must be a probability in \(0, 1\).*infinite"):
        calibrate()


@pytest.mark.parametrize("other", [0.5, 1.0, 1.5, 3.0])
def test_both_directions_are_within_the_target(other):
    # The other direction costs a factor of the first; the dearer one decides.
    def cost(q, sigma, steps, delta, direction):
        return q * steps / sigma * (1.0 if direction == core.REMOVE else max(other, 1.0))

    def spent(q, sigma, steps):
        return cost(q, sigma, steps, 0.0, core.EITHER)

    sigma = core.calibrate_sigma(3.0, 1e-5, 0.5, 100, 1.0, cost)
    assert spent(0.5, sigma, 100) <= 3.0 < spent(0.5, math.nextafter(sigma, 0.0), 100)
    steps = core.calibrate_steps(3.0, 1e-5, 0.5, 7.0, 1.0, cost)
    assert spent(0.5, 7.0, steps) <= 3.0 < spent(0.5, 7.0, steps + 1)
    q = core.calibrate_q(3.0, 1e-5, 7.0, 100, 1.0, cost)
    assert spent(q, 7.0, 100) <= 3.0 < spent(math.nextafter(q, 1.0), 7.0, 100)


def test_what_is_certified_in_one_direction_only_is_not_certified():
    def cost(q, sigma, steps, delta, direction):
        if direction == core.REMOVE or q < 0.25:
            return q
        raise ac.PrecisionError("no")

    assert core.calibrate_q(0.5, 1e-5, 1.0, 1, 1.0, cost) == math.nextafter(0.25, 0.0)


def test_what_cannot_be_certified_costs_infinitely_much():
    def refuses(*given):
        raise ac.PrecisionError("no")

    assert core.calibrate_q(1.0, 1e-5, 1.0, 1, 1.0, refuses) == 0.0
    assert core.calibrate_steps(1.0, 1e-5, 0.1, 1.0, 1.0, refuses) == 0.0
    with pytest.raises(ac.PrecisionError):
        core.calibrate_sigma(1.0, 1e-5, 0.1, 1, 1.0, refuses)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_a_cost_raises_ends_the_search(error):
    calls = []

    def raises(*given):
        calls.append(given)
        raise error

    with pytest.raises(error):
        core.calibrate_sigma(1.0, 1e-5, 0.1, 1, 1.0, raises)
    assert len(calls) == 1


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("target", [5e-324, 1e-300, 1e300])
def test_extreme_questions_have_an_answer_or_a_reason(target):
    """First guesses underflow and overflow; the search begins at an end of the range then."""
    for q, sigma, steps, delta in [
        (1e-300, 1e-150, 134, 1e-5),
        (0.5, 1e-200, 2**53, 1e-300),
        (1.0, 1e200, 1, 1e-300),
        (1e-263, 1.0, 7, 1e-300),
    ]:
        for question, answer in [
            (lambda: ac.calibrate_sigma(target, delta, q, steps), (q, None, steps)),  # noqa: B023
            (lambda: ac.calibrate_steps(target, delta, q=q, sigma=sigma), (q, sigma, None)),  # noqa: B023
            (lambda: ac.calibrate_q(target, delta, sigma=sigma, steps=steps), (None, sigma, steps)),  # noqa: B023
        ]:
            try:
                found = question()
            except ac.AccountantError:
                continue
            asked = [found if part is None else part for part in answer]
            assert cost(*asked, delta) <= target


def test_records_broadcast():
    both = ac.calibrate_steps([4.0, 5.0], 1e-6, q=0.01, sigma=2.0, user_records=[1, 3])
    assert both[0] == ac.calibrate_steps(4.0, 1e-6, q=0.01, sigma=2.0)
    assert both[1] == ac.calibrate_steps(5.0, 1e-6, q=0.01, sigma=2.0, user_records=3)
    with pytest.raises(ac.DomainError, match="some record of a user"):
        ac.calibrate_sigma(1.0, 0.1, 1e-3, 10, user_records=3)
