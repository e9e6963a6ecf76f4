"""Mixtures of next to no distance, whose losses rounding hides, and shifts that are not listed."""

import math

import numpy as np
import pytest

from accountant import sampling
from accountant.mechanisms.mixture import repeated_draws
from accountant.pairs.base import DominatingPair

WEIGHTS = (1.0 - 6e-9, 6e-9)


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("distance", [2e-13, 2e-15, 2e-19])
def test_an_edge_beyond_every_loss_has_no_mass_above(distance, add):
    """A table that rounding makes flat ends at its first point; its end is that of the grid."""
    pair = repeated_draws(WEIGHTS, distance, add=add)
    edge = 2.0 * pair.loss_error
    above, below = pair.masses(np.array([edge])), pair.masses(np.array([-edge]))
    assert above.p[-1] == above.q[-1] == 0.0
    assert below.p[0] == below.q[0] == 0.0


@pytest.mark.parametrize("noise", [1e13, 1e14, 1e15, 1e17])
def test_little_loss_is_neither_missed_nor_made_up(noise):
    """The distance of the laws: at least that of one draw, at most that of the expected number."""
    one = sampling.WithReplacementSampled(noise, batch_size=6, dataset_size=10**9)
    found = one.delta_bounds(1e-200)
    most = 6e-9 * math.erf(1.0 / noise / math.sqrt(2.0))
    assert found.upper >= 0.9999 * most
    assert found.lower <= 1.0001 * most


@pytest.mark.long
def test_what_is_not_listed_is_in_no_lower_end():
    """At ε = 0.9 next to nothing is lost; the shifts that were left out carry 1e-26."""
    one = sampling.WithReplacementSampled(1e10, batch_size=6, dataset_size=10**9)
    pair = one.pairs()[0]
    assert pair.left_out == pair.infinite_mass > 0.0
    assert DominatingPair.left_out.fget(pair) == 0.0
    for mechanism in (one, one + one):
        found = mechanism.delta_bounds(0.9)
        assert found.lower == 0.0 < found.upper < 1e-24
        # and at a δ below what was left out every ε would do
        assert mechanism.epsilon_bounds(1e-30).lower < 1e-3


def test_the_largest_shift_bounds_what_was_left_out():
    one = sampling.WithReplacementSampled(4.0, batch_size=6, dataset_size=10**9)
    assert one.mu() == pytest.approx(3.0)
    pair = repeated_draws(WEIGHTS, 1.0, remainder=1e-26)
    assert pair.mu == math.inf
