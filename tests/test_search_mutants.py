"""What mutation testing (support/hardening) found nobody watching in searches."""

import math

import numpy as np
import pytest

import accountant as ac
from accountant.calibration import subsampled_gaussian as calibration
from accountant.search import COUNTS, DOUBLES, boundary

LARGEST = DOUBLES.rank(1.7976931348623157e308)


@pytest.mark.parametrize("guess", [5e-324, 1e-3, 2.0, 2.5, 1e300])
@pytest.mark.parametrize("answer", [1e-300, 0.3, 2.0, 1e200])
@pytest.mark.parametrize("grows", [True, False])
def test_a_step_is_found_from_both_sides(guess, answer, grows):
    def cost(x):
        return 1.0 if (x <= answer) == grows else math.nextafter(1.0, 2.0)

    cheap, dear = (1, LARGEST) if grows else (LARGEST, 1)
    rank = boundary(cost, 1.0, DOUBLES, guess, cheap, dear)
    best = answer if grows else math.nextafter(answer, math.inf)
    assert DOUBLES.value(rank) == best


@pytest.mark.parametrize("target", [5e-324, 1e-300, 1.0, 1.7e308])
def test_a_target_is_met_exactly_or_not_at_all(target):
    dearer = math.nextafter(target, math.inf)
    for wrong in (dearer, math.nan, math.inf):
        rank = boundary(lambda n: target if n <= 5 else wrong, target, COUNTS, 3.0, 1, 2**53)  # noqa: B023
        assert rank == 5
        assert boundary(lambda _: wrong, target, COUNTS, 3.0, 1, 2**53) is None  # noqa: B023
    assert boundary(lambda _: target, target, COUNTS, 3.0, 1, 2**53) == 2**53


def test_neighbours_and_ends():
    for most in (1, 2, 3, 2**53 - 1):
        for guess in (1.0, 2.0, 3.0, 9e15):
            found = boundary(lambda n: n, float(most), COUNTS, guess, 1, 2**53)
            assert found == most
    for end in (1, 2):
        assert boundary(lambda _: 0.0, 1.0, COUNTS, 1.0, 1, end) == end
        assert boundary(lambda _: 2.0, 1.0, COUNTS, 1.0, 1, end) is None


@pytest.mark.parametrize("other", [0.5, 1.0, 1.5, 3.0])
def test_both_directions_are_within_the_target(other):
    # The other direction costs a factor of the first; the dearer one decides.
    def cost(x, direction):
        return x if direction == calibration.REMOVE else x * max(other, 1.0)

    rank = calibration._boundary(cost, 3.0, DOUBLES, 1.0, 1, LARGEST)
    found = DOUBLES.value(rank)
    after = DOUBLES.value(rank + 1)
    assert cost(found, calibration.EITHER) <= 3.0 < cost(after, calibration.EITHER)
    assert calibration._boundary(lambda x, _: 4.0, 3.0, DOUBLES, 1.0, 1, LARGEST) is None
    # What is certified in one direction only is not certified.
    rank = calibration._boundary(
        lambda x, d: x if d == calibration.REMOVE or x < 2.0 else math.inf,
        3.0, DOUBLES, 1.0, 1, LARGEST,
    )  # fmt: skip
    assert DOUBLES.value(rank) == math.nextafter(2.0, 0.0)


def test_what_cannot_be_certified_costs_infinitely_much(monkeypatch):
    def refuses(*given):
        raise ac.PrecisionError("no")

    monkeypatch.setattr(calibration.core, "epsilon_bounds", refuses)
    assert calibration._cost(0.1, 1.0, 1.0, 1e-5, calibration.EITHER) == math.inf
    monkeypatch.setattr(calibration.core, "epsilon_bounds", lambda *given: (1.0, 2.0))
    assert calibration._cost(0.1, 1.0, 1.0, 1e-5, calibration.EITHER) == 2.0


def cost(q, sigma, steps, delta):
    try:
        return ac.get_epsilon(q, sigma, steps, delta)
    except ac.PrecisionError:
        return math.inf


@pytest.mark.parametrize(
    ("target", "delta"), [(0.1, 1e-5), (1.0, 1e-9), (8.0, 1e-5), (0.5, 0.2), (300.0, 1e-5)]
)
@pytest.mark.parametrize("steps", [1, 7, 10**6])
def test_calibrated_gaussians_beside_their_neighbours(target, delta, steps):
    sigma = ac.calibrate_sigma(target, delta, 1.0, steps)
    assert cost(1.0, sigma, steps, delta) <= target
    assert cost(1.0, math.nextafter(sigma, 0.0), steps, delta) > target
    found = ac.calibrate_steps(target, delta, q=1.0, sigma=sigma)
    assert cost(1.0, sigma, found, delta) <= target < cost(1.0, sigma, found + 1, delta)
    assert found >= steps
    assert ac.calibrate_q(target, delta, sigma=sigma, steps=steps) == 1.0


@pytest.mark.parametrize(("target", "delta", "sigma"), [(1.0, 1e-5, 1.0), (4.0, 1e-6, 0.7)])
def test_calibrated_sampling_beside_its_neighbours(target, delta, sigma):
    q = ac.calibrate_q(target, delta, sigma=sigma, steps=20)
    assert 0.0 < q < 1.0
    assert cost(q, sigma, 20, delta) <= target < cost(math.nextafter(q, 1.0), sigma, 20, delta)
    steps = ac.calibrate_steps(target, delta, q=0.05, sigma=sigma)
    assert cost(0.05, sigma, steps, delta) <= target < cost(0.05, sigma, steps + 1, delta)
    found = ac.calibrate_sigma(target, delta, 0.05, 20)
    assert cost(0.05, found, 20, delta) <= target < cost(0.05, math.nextafter(found, 0), 20, delta)


def test_calibrations_at_the_ends():
    assert ac.calibrate_q(1.0, 1e-5, sigma=1e-3, steps=1) < 2e-5
    assert ac.calibrate_steps(1e-3, 1e-5, q=1.0, sigma=1.0) == 0
    grid = ac.calibrate_sigma(np.array([0.5, 2.0]), 1e-5)
    assert grid.tolist() == [ac.calibrate_sigma(0.5), ac.calibrate_sigma(2.0)]
