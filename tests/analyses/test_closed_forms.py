"""Plain Gaussian releases that merge into one with next to no noise."""

import math

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
