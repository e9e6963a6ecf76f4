"""Far tails of plain Gaussian noise against mpmath."""

import math

import mpmath
import pytest

import accountant as ac
from accountant.analyses.gaussian_tail import tail_delta, tail_epsilon


def profile(mu, epsilon):
    with mpmath.mp.workdps(420):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(-(e / m - m / 2)) - mpmath.exp(e) * mpmath.ncdf(-(e / m + m / 2))


@pytest.mark.parametrize("sigma", [0.01, 0.3, 1.0, 7.0, 1e4])
@pytest.mark.parametrize("steps", [1, 100])
def test_epsilon_where_delta_is_next_to_nothing(sigma, steps):
    release = ac.Gaussian(sigma) * steps
    for delta in (1e-290, 1e-300, 5e-324):
        found = release.epsilon_bounds(delta)
        mu = mpmath.sqrt(steps) / mpmath.mpf(sigma)
        assert profile(mu, found.upper) <= delta <= profile(mu, found.lower)
        assert found.upper - found.lower <= 1e-10 * found.upper


@pytest.mark.parametrize("sigma", [0.05, 1.0, 30.0])
def test_delta_where_it_is_next_to_nothing(sigma):
    release = ac.Gaussian(sigma)
    for a in (36.5, 37.3, 38.4, 39.5, 60.0):
        epsilon = a / sigma + 0.5 / sigma**2
        found = release.delta_bounds(epsilon)
        truth = profile(1 / mpmath.mpf(sigma), epsilon)
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower <= 1e-8 * found.upper + 1e-322


def test_distances_that_are_not_known_exactly():
    found = tail_epsilon(1.01, 0.99, 1e-300)
    assert profile(1.01, found.upper) <= 1e-300 <= profile(0.99, found.lower)
    near = tail_delta(1.01, 0.99, 37.0)
    assert near.lower <= profile(0.99, 37.0)
    assert profile(1.01, 37.0) <= near.upper


def test_nothing_is_claimed_where_the_tail_is_near():
    assert tail_delta(1.0, 1.0, 5.0).upper == 1.0
    assert tail_delta(0.0, 0.0, 5.0).upper == 1.0
    assert ac.Gaussian(math.inf).delta_bounds(5.0).upper == 0.0
    assert ac.Gaussian(math.inf).epsilon_bounds(1e-300).upper == 0.0
    for sigma in (1e-300, 1e-9, 1e9, 1e300):
        for release in (ac.Gaussian(sigma), ac.Gaussian(sigma) + ac.Gaussian(2.0 * sigma)):
            found = release.epsilon_bounds(1e-300)
            assert 0.0 <= found.lower <= found.upper
            found = release.delta_bounds(700.0)
            assert 0.0 <= found.lower <= found.upper <= 1.0


def test_they_join_what_the_core_answers():
    release = ac.Gaussian(2.0) * 9
    above, below = release.epsilon_bounds(1.001e-289), release.epsilon_bounds(0.999e-289)
    assert above.lower <= below.upper
    assert above.upper <= below.upper * (1.0 + 1e-3)
