"""Batches of a fixed size and draws with replacement: rates, what one record reaches, extremes."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from mpmath import expm1, log1p, mp, mpf

import accountant as ac
from accountant import NeighbouringRelation, sampling
from accountant.mechanisms.mixture import repeated_draws
from accountant.pairs.base import DominatingPair
from accountant.sampling import FixedSizeSampled, FixedSizeSampler


@pytest.mark.parametrize(("batch", "records"), [(1, 3), (7, 10), (5, 49), (1, 10**15 + 1), (2, 6)])
def test_the_rate_is_at_least_the_share_of_a_batch(batch, records):
    step = FixedSizeSampled(1.0, batch_size=batch, dataset_size=records)
    rate, exact = Fraction(step.pairs()[0].sampling_probability), Fraction(batch, records)
    assert exact <= rate <= exact * (1 + Fraction(1, 2**51))
    below = Fraction(step.from_below().pairs()[0].sampling_probability)
    assert exact * (1 - Fraction(1, 2**51)) <= below <= exact


@pytest.mark.parametrize("steps", [1, 4, 10_000])
def test_lower_ends_are_reached_by_a_record_that_stands_out(steps):
    sampler = FixedSizeSampler(dataset_size=1000, batch_size=3, steps=steps)
    found = sampler.epsilon_bounds(1.0, 1e-6)
    assert found == sampler.mechanism(1.0).epsilon_bounds(1e-6)
    alone = (steps * ac.PoissonSampled(ac.Gaussian(0.5), 0.003)).profile()
    remove = max(float(one.epsilon_bounds(1e-6).upper) for one in alone.solvers()[:1])
    assert found.lower >= remove * (1 - 1e-9)
    assert found.upper >= found.lower


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
