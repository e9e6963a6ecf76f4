"""Plain Gaussian releases that merge into one with next to no noise."""

import math

import mpmath
import pytest

import accountant as ac


@pytest.mark.parametrize("noise", [5e-324, 1e-310, 1e-303])
@pytest.mark.parametrize("other", [1e-200, 1.0, 1e200])
def test_noise_that_underflows_hides_nothing(noise, other):
    """The core refuses noise of 0, which was the merged one: the least double serves."""
    both = ac.Gaussian(other) + 10**9 * ac.Gaussian(noise)
    delta, epsilon = both.delta_bounds(3.0), both.epsilon_bounds(1e-5)
    assert delta.upper == 1.0
    assert 0.0 <= delta.lower <= 1.0
    assert epsilon.upper == math.inf
    assert 0.0 <= epsilon.lower < math.inf


def test_equal_parts_that_are_together_more_than_the_core_counts():
    whole = 2**53 * ac.GDP(1.0) + 2**53 * ac.Gaussian(1.0)
    found = whole.epsilon_bounds(1e-6)
    with mpmath.workdps(50):
        mu = mpmath.mpf(2) ** 27

        def delta(epsilon):
            near, far = (-mpmath.mpf(epsilon) / mu + sign * mu / 2 for sign in (1, -1))
            return mpmath.ncdf(near) - mpmath.exp(mpmath.mpf(epsilon)) * mpmath.ncdf(far)

        assert delta(found.upper) <= 1e-6 <= delta(found.lower)
    assert found.upper - found.lower <= 1e-9 * found.upper
