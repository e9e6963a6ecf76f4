"""The chance that a batch overflows, and what a record reaches that is drawn below the cap."""

import math
from fractions import Fraction

import pytest

import accountant as ac
from accountant.sampling import TruncatedPoissonSampled, TruncatedPoissonSampler
from accountant.sampling.truncated_poisson import overflow_probability

REPLACE = ac.NeighbouringRelation.REPLACE_ONE


def tail(records, q, least):
    """P[Bin(records, q) >= least], exactly."""
    q = Fraction(q)
    return sum(
        math.comb(records, k) * q**k * (1 - q) ** (records - k) for k in range(least, records + 1)
    )


@pytest.mark.parametrize(("records", "q", "cap"), [(99, 0.1, 10), (30, 0.3, 12), (200, 0.01, 9)])
def test_a_batch_overflows_where_the_others_fill_it(records, q, cap):
    truth = tail(records, q, cap)
    step = TruncatedPoissonSampled(0.8, sampling_probability=q, cap=cap, dataset_size=records + 1)
    assert truth <= Fraction(step.overflow) <= truth * (1 + Fraction(1, 10**7))
    assert truth <= Fraction(overflow_probability(records, q, cap))


def test_a_cap_that_is_often_reached_has_its_price():
    sampler = TruncatedPoissonSampler(sampling_probability=0.1, cap=10, dataset_size=100, steps=10)
    assert 13.404 < sampler.epsilon(0.8, 1e-4) < 13.4041


@pytest.mark.parametrize("relation", list(ac.NeighbouringRelation))
def test_lower_ends_are_those_of_draws_below_the_cap(relation):
    """No data are known to reach the blend of both laws, so its own lower end is no bracket."""
    step = TruncatedPoissonSampled(
        1.0, sampling_probability=0.1, cap=12, dataset_size=100, relation=relation
    )
    below = step.from_below()
    noise = ac.Gaussian(1.0, relation=relation)
    chance = 0.1 * (1.0 - float(tail(99, 0.1, 12)))
    assert below.sampling_probability == pytest.approx(chance, rel=1e-7)
    assert below.sampling_probability <= chance
    found = (10 * step).epsilon_bounds(1e-5)
    reached = (10 * ac.PoissonSampled(noise, below.sampling_probability)).epsilon_bounds(1e-5)
    assert found.lower == pytest.approx(reached.lower, rel=1e-9)
    assert found.lower < found.upper
    assert not step.attained


def test_a_cap_that_nothing_reaches_is_poisson_sampling():
    step = TruncatedPoissonSampled(1.0, sampling_probability=0.1, cap=50, dataset_size=50)
    assert step.attained
    assert step.epsilon(1e-5) == ac.PoissonSampled(ac.Gaussian(1.0), 0.1).epsilon(1e-5)
