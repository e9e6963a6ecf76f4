"""Draws with replacement at the ends of their parameters."""

import math
import sys

import pytest
from mpmath import expm1, log1p, mp, mpf

from accountant import NeighbouringRelation, sampling

REPLACE = NeighbouringRelation.REPLACE_ONE


@pytest.mark.parametrize(("batch", "total"), [(1, 10**9), (7, 10**12), (3, 2), (1, 2**53)])
def test_noise_that_hides_nothing_tells_who_was_drawn(batch, total):
    """δ is the chance of a draw, to the last digits: one part in 1e6 too much was a lower end."""
    found = sampling.WithReplacementSampled(
        1e-200, batch_size=batch, dataset_size=total
    ).delta_bounds(1.0)
    with mp.workdps(60):
        truth = -expm1(batch * log1p(-1 / mpf(total)))
        assert mpf(found.lower) <= truth <= mpf(found.upper)
    assert found.upper <= found.lower * (1.0 + 1e-13)


@pytest.mark.parametrize("noise", [1e-100, 1e-110, 1e-154])
def test_an_epsilon_is_claimed_from_below_where_it_is_finite(noise):
    """The loss is at most that of the largest shift, not infinite."""
    one = sampling.WithReplacementSampled(noise, batch_size=2, dataset_size=2)
    found = one.epsilon_bounds(1e-200)
    shift = 4.0 / noise
    assert found.lower <= 0.5 * shift * shift + 40.0 * shift
    assert found.lower <= found.upper
    assert found.lower < sys.float_info.max


@pytest.mark.long
@pytest.mark.parametrize("delta", [1e-28, 1e-100, 1e-300])
@pytest.mark.parametrize("relation", [REPLACE, NeighbouringRelation.ADD_OR_REMOVE])
def test_a_delta_below_what_is_left_out_has_a_finite_epsilon(delta, relation):
    """The record is drawn at most as often as there are draws: a Gaussian bounds the whole."""
    sampler = sampling.WithReplacementSampler(
        dataset_size=1000, batch_size=10, steps=200, relation=relation
    )
    found = sampler.mechanism(1e6).epsilon_bounds(delta)
    plain = 20e-6 * math.sqrt(200.0)  # the distance where all draws are of the record
    most = 0.5 * plain * plain + plain * math.sqrt(-2.0 * math.log(delta))
    assert 0.0 <= found.lower <= found.upper < math.inf
    if delta > 1e-200:  # the widths of tails below are not kept
        assert found.upper <= most * (1.0 + 1e-9)


@pytest.mark.long
@pytest.mark.parametrize(
    ("records", "steps", "noise", "delta"),
    [(300, 400, 1.0, 1e-5), (5, 10, 1.0, 1e-3), (2, 1, 0.5, 0.9), (100, 10, 1e-3, 1e-6)],
)
def test_one_draw_is_the_same_with_and_without_replacement(records, steps, noise, delta):
    run = {"dataset_size": records, "batch_size": 1, "steps": steps}
    replaced = NeighbouringRelation.REPLACE_ONE
    found = sampling.WithReplacementSampler(**run, relation=replaced)
    without = sampling.FixedSizeSampler(**run)
    assert found.epsilon_bounds(noise, delta) == without.epsilon_bounds(noise, delta)
