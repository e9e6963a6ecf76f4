"""Plain Gaussian noise in the far tails, and next to none of it, against mpmath: valid, if wide."""

import math
import sys

import mpmath
import pytest

import accountant as ac

LARGEST = sys.float_info.max


def profile(mu, epsilon):
    with mpmath.mp.workdps(420):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(-(e / m - m / 2)) - mpmath.exp(e) * mpmath.ncdf(-(e / m + m / 2))


@pytest.mark.parametrize("sigma", [0.01, 0.3, 1.0, 7.0, 1e4])
@pytest.mark.parametrize("steps", [1, 100])
def test_epsilon_where_delta_is_next_to_nothing(sigma, steps):
    mu = mpmath.sqrt(steps) / mpmath.mpf(sigma)
    for delta in (1e-290, 1e-300, 1e-309, 5e-324):
        found = (ac.Gaussian(sigma) * steps).epsilon_bounds(delta)
        assert found == ac.epsilon_bounds(1.0, sigma, steps, delta)
        assert profile(mu, found.upper) <= delta <= profile(mu, found.lower)
        assert found.upper <= mu * (mu / 2 + 39)


@pytest.mark.parametrize("sigma", [0.05, 1.0, 30.0])
def test_delta_where_it_is_next_to_nothing(sigma):
    for a in (36.5, 37.3, 38.4, 39.5, 60.0, 1e6, 1e200):
        epsilon = a / sigma + 0.5 / sigma**2
        found = ac.delta_bounds(1.0, sigma, 1, epsilon)
        assert found == ac.Gaussian(sigma).delta_bounds(epsilon)
        truth = profile(1 / mpmath.mpf(sigma), epsilon) if a < 100 else mpmath.mpf(0)
        assert found.lower <= truth <= found.upper < 1e-288


def test_nothing_is_released():
    assert ac.Gaussian(math.inf).delta_bounds(5.0).upper == 0.0
    assert ac.Gaussian(math.inf).epsilon_bounds(1e-300).upper == 0.0


@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-5, 0.5, 1.0 - 2.0**-53])
@pytest.mark.parametrize("sigma", [5e-324, 1e-300, 1e-155, 1.06e-154, 1e-150, 1e-100, 1e-21])
def test_next_to_no_noise(sigma, delta):
    with mpmath.mp.workdps(60):
        mu = 1 / mpmath.mpf(sigma)
        # Of a normal tail beyond 40 deviations no double is as small.
        least, most = (mu * (mu / 2 + a) for a in (-40, 40))
        for count in (1, 10**9):
            found = (ac.Gaussian(sigma) * count).epsilon_bounds(delta)
            assert found == ac.epsilon_bounds(1.0, sigma, count, delta)
            if count == 1:
                assert found.lower <= least
                assert most <= found.upper
            assert found.upper <= count * most * (1 + 1e-13) or found.upper == math.inf


@pytest.mark.parametrize("sigma", [5e-324, 1e-300, 1e-150, 1e-100, 1e-21])
def test_deltas_of_next_to_no_noise(sigma):
    mu = 1 / mpmath.mpf(sigma)
    for epsilon in (0.0, 1.0, 1e39, 1e41, 1e250, LARGEST):
        found = ac.Gaussian(sigma).delta_bounds(epsilon)
        assert found == ac.delta_bounds(1.0, sigma, 1, epsilon)
        assert (found.upper == 1.0) if epsilon < mu * mu / 2 else (found.lower == 0.0)
