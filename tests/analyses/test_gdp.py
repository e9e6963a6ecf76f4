"""Profiles and compositions of Gaussian differential privacy, against mpmath."""

import math

import mpmath
import pytest

import accountant as ac
from accountant.analyses import gdp


@pytest.mark.parametrize("mu", [1e-8, 0.3, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.5, 3.0, 40.0])
def test_gaussian_profiles_enclose_the_truth_closely(mu, epsilon):
    found = gdp.gdp_delta_bounds(mu, epsilon)
    with mpmath.workdps(400):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        tail = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2  # noqa: E731
        truth = tail(e / m - m / 2) - mpmath.exp(e) * tail(e / m + m / 2)
        assert found.lower <= truth <= found.upper
        assert found.upper <= truth * (1 + mpmath.mpf(10) ** -9) + mpmath.mpf(10) ** -289
        if found.lower > 1e-290 and found.upper < 1.0:
            assert found.lower >= truth * (1 - mpmath.mpf(10) ** -9)
            inverse = gdp.gdp_epsilon_bounds(mu, found.upper)
            assert inverse.lower <= epsilon
            assert inverse.lower <= inverse.upper
            assert inverse.lower >= epsilon * (1 - 1e-6) - 1e-6


def test_composed_gaussian_privacy_is_the_root_of_the_squares_rounded_up():
    parts = [(0.1, 3), (1.7, 10**6), (1e-9, 1), (0.0, 5)]
    with mpmath.workdps(60):
        truth = mpmath.sqrt(sum(n * mpmath.mpf(mu) ** 2 for mu, n in parts))
        assert truth <= gdp.compose_gdp(parts) <= truth * (1 + mpmath.mpf(10) ** -14)


@pytest.mark.parametrize("mu", [5e-324, 1e-310, 1e-305, 1e-300, 3e-299, 1e-250])
def test_gaussian_profiles_of_next_to_no_loss(mu):
    found = gdp.gdp_delta_bounds(mu, 0.0)
    with mpmath.workdps(30):
        truth = mpmath.erf(mpmath.mpf(mu) / mpmath.sqrt(8))
        assert found.lower <= truth <= found.upper <= truth + mpmath.mpf(10) ** -265


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
