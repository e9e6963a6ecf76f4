"""The one search of an ε, lower ends without what was not listed, and bounds of any analysis."""

import math
import random

import pytest
from mpmath import mp, mpf, sqrt

import accountant as ac
from accountant.analyses.solver import (
    below_crossing,
    bounded_otherwise,
    bracket_crossing,
    delta_listed,
    epsilon_listed,
)
from accountant.bounds import Bounds


@pytest.mark.parametrize("doubt", [0.0, 1e-14, 1e-9, 1e-3])
@pytest.mark.parametrize("delta", [0.4, 1e-5, 1e-60])
def test_both_ends_of_a_crossing_are_certified(doubt, delta):
    """Bounds that wiggle in their last digits, as sums of rounded terms do."""
    seen = {}

    def side(epsilon, which):
        noise = 1.0 + 0.5 * doubt * random.Random(repr(epsilon)).random()
        value = math.exp(-3.0 * epsilon) * noise * (1.0 + doubt if which else 1.0 - doubt)
        seen[epsilon, which] = value
        return value

    found = bracket_crossing(side, delta, 1.0, 200.0)
    assert seen[found.upper, 1] <= delta < seen[found.lower, 0]
    truth = -math.log(delta) / 3.0
    assert found.lower < truth * (1.0 + 1e-15)
    assert truth * (1.0 - 1e-15) < found.upper
    assert found.width <= (1e-10 + 4.0 * doubt) * (1.0 + truth)
    assert len(seen) <= 120


def test_a_profile_that_does_not_cross():
    assert bracket_crossing(lambda epsilon, side: 0.5, 0.1, 1.0, 10.0) is None
    assert below_crossing(lambda epsilon: 0.05, 0.1, 1.0, 10.0) == 0.0


def test_a_delta_is_lowered_by_what_was_left_out():
    assert delta_listed(Bounds(0.5, 0.6), 0.0) == Bounds(0.5, 0.6)
    found = delta_listed(Bounds(0.5, 0.6), 0.25)
    assert 0.0 < 0.25 - found.lower < 1e-15
    assert found.upper == 0.6
    assert delta_listed(Bounds(1e-26, 1e-20), 1e-25) == Bounds(0.0, 1e-20)


def test_an_epsilon_is_that_of_a_larger_delta():
    asked = []

    def counted(delta):
        asked.append(delta)
        return Bounds(1.0 / delta, 2.0 / delta)

    assert epsilon_listed(counted, 0.25, 0.0) == Bounds(4.0, 8.0)
    assert epsilon_listed(counted, 0.25, 0.25) == Bounds(1.0 / math.nextafter(0.5, 1.0), 8.0)
    assert asked[-1] > 0.5
    assert epsilon_listed(counted, 0.9, 0.2).lower == 0.0


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
        # Farther out a bound suffices, however wide.
        assert profile >= mpf(delta) * (1 - mpf("1e-6")) or delta < 1e-289
