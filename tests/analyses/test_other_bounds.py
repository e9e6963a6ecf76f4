"""Bounds that hold whatever the analysis."""

import math

import pytest
from mpmath import mp, mpf, sqrt

import accountant as ac
from accountant.analyses.solver import bounded_otherwise


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 0.1, 0.5, 3.0, 700.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-6, 0.3, 0.9999])
def test_a_stated_guarantee_is_met_at_its_own_delta(epsilon, delta):
    """Above every finite loss the profile is δ itself: rounding made ε infinite there."""
    stated = ac.ApproximateDP(epsilon, delta=delta)
    found = stated.epsilon_bounds(delta)
    assert found.lower <= epsilon == found.upper == stated.epsilon(delta)
    less = stated.epsilon_bounds(math.nextafter(delta, 0.0))
    assert less.upper == math.inf


def test_it_is_infinite_where_more_fails_than_is_allowed():
    parts = ((ac.ApproximateDP(0.5, delta=1e-6).pairs()[0], 2),)
    assert bounded_otherwise(parts, 1.9e-6, 2e-6) == math.inf
    assert bounded_otherwise(parts, 2e-6, 2e-6) == 1.0


@pytest.mark.parametrize("delta", [0.1, 1e-10, 1e-200, 1e-295, 1e-320])
def test_where_a_gaussian_dominates(delta):
    """H(ε) of a normal distance μ, by mpmath at the ε returned: at most δ."""
    parts = ((ac.GDP(0.3).pairs()[0], 4),)
    found = bounded_otherwise(parts, delta, 0.0)
    with mp.workdps(400):
        mu, epsilon = mpf(0.3) * 2, mpf(found)
        above = lambda x: mp.erfc(x / sqrt(mpf(2))) / 2  # noqa: E731
        profile = above(epsilon / mu - mu / 2) - mp.exp(epsilon) * above(epsilon / mu + mu / 2)
        assert profile <= mpf(delta)
        assert profile >= mpf(delta) * (1 - mpf("1e-6")) - mpf("1e-323")
