"""Samplers at parameters near the ends of the doubles."""

import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from mpmath import mp, mpf

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant import sampling
from accountant.errors import PrecisionError
from accountant.sampling.fixed_size import _draws


@pytest.mark.parametrize("scale", [1e-308, 1e-200, 1e-160, 1e160, 1e200, 1e308])
def test_strategy_of_any_scale_costs_what_it_costs_at_scale_one(scale):
    mechanism = sampling.MatrixMechanism([[scale]])
    lower, upper = mechanism.sensitivity_bounds()
    assert lower <= scale <= upper <= scale * (1.0 + 1e-12)
    low, high = mechanism.epsilon_bounds(scale, 1e-5)
    truth = ac.Gaussian(1.0).epsilon_bounds(1e-5)
    assert low <= truth.upper
    assert truth.lower <= high <= truth.upper * (1.0 + 1e-9)


def test_strategy_of_subnormal_entries_still_costs_something():
    lower, upper = sampling.MatrixMechanism([[5e-324]]).sensitivity_bounds()
    assert lower <= 5e-324 <= upper


@pytest.mark.parametrize("noise", [2e8, 1e16, 1e300, math.inf])
def test_allocation_with_next_to_no_loss_is_bounded_by_the_plain_release(noise):
    lower, upper = sampling.RandomAllocation(dataset_size=10, steps_per_epoch=3).epsilon_bounds(
        noise, 1e-13
    )
    assert 0.0 <= lower <= upper <= ac.Gaussian(noise).epsilon(1e-13)


@pytest.mark.parametrize("relation", [Relation.ADD_OR_REMOVE, Relation.REPLACE_ONE])
@pytest.mark.parametrize(("batch", "records"), [(1100, 2), (1830, 3), (7060, 10)])
def test_draws_that_leave_the_doubles_are_refused(batch, records, relation):
    one = sampling.WithReplacementSampled(
        1000.0, batch_size=batch, dataset_size=records, relation=relation
    )
    with pytest.raises(PrecisionError, match="miss a record"):
        one.pairs()


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(("batch", "records"), [(7, 3), (300, 2), (6300, 10)])
def test_chances_of_draws_are_within_their_error(batch, records):
    found = _draws(batch, records)
    for k, weight in enumerate(found.weights):
        truth = Fraction(comb(batch, k) * (records - 1) ** (batch - k), records**batch)
        assert abs(Fraction(weight) - truth) <= Fraction(found.relative_error) * truth


@pytest.mark.parametrize("relation", [Relation.ADD_OR_REMOVE, Relation.REPLACE_ONE])
def test_where_no_draws_are_left_out_the_divergences_are_finite(relation):
    one = sampling.WithReplacementSampled(2.0, batch_size=3, dataset_size=50, relation=relation)
    # A hit moves the sum by one standard deviation of the noise.
    weights = [mpf(comb(3, k) * 49 ** (3 - k)) / 50**3 for k in range(4)]
    moment = sum(
        a * b * mp.exp(j * k) for j, a in enumerate(weights) for k, b in enumerate(weights)
    )
    for pair in one.pairs():
        assert pair.infinite_mass == 0.0
        assert math.isfinite(pair.rdp(2.0))
        assert math.isfinite(pair.mu)
    assert one.pairs()[0].rdp(2.0) >= mp.log(moment)


@pytest.mark.parametrize("noise", [3e9, 1e16, 1e150, 1e308])
def test_fixed_size_with_next_to_no_loss(noise):
    one = sampling.FixedSizeSampled(noise, batch_size=3, dataset_size=7)
    # Never 0: what is released is not free, however small it is among the doubles.
    smallest = np.finfo(float).smallest_normal
    most = (2.0 / noise) * (2.0 / noise) * (1.0 + 1e-9)
    assert 0.0 < one.pairs()[0].rdp(2.0) <= max(most, 2.0 * smallest)
    sampler = sampling.FixedSizeSampler(dataset_size=7, batch_size=3, steps=2)
    assert sampler.epsilon(noise, 1e-30) <= 2.0 * ac.Gaussian(0.5 * noise).epsilon(1e-30)


@pytest.mark.parametrize("noise", [1e-200, 0.001, 0.02, 0.05, 0.1])
def test_shuffled_with_hardly_any_noise(noise):
    lower, upper = sampling.ShuffledBatches(dataset_size=10, batch_size=3, epochs=5).epsilon_bounds(
        noise, 0.01
    )
    assert 0.0 <= lower <= upper


def test_a_mixture_beyond_the_doubles_has_no_nan():
    remove, add = sampling.WithReplacementSampled(0.001, batch_size=430, dataset_size=1000).pairs()
    for order in (1.0001, 1.5, 2.0, 8.0, 100.0):
        assert remove.finite_rdp(order) > 0.0
        assert add.finite_rdp(order) > 0.0
