"""Truncated Poisson sampling: overflowing batches, and every subset of a small data set (S21)."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import accountant as ac
from accountant.sampling import PoissonSampler, TruncatedPoissonSampled, TruncatedPoissonSampler
from accountant.sampling.truncated_poisson import (
    DoubtfulGaussian,
    OverflowPair,
    overflow_probability,
)

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


GRID = np.linspace(-14.0, 14.0, 2401)


def law_of_sums(contributions, q, cap):
    """Return the distribution of the sum over a sample that is cut down to ``cap`` records."""
    law = {}
    size = len(contributions)
    for coins in itertools.product((0, 1), repeat=size):
        heads = [i for i in range(size) if coins[i]]
        chance = q ** len(heads) * (1 - q) ** (size - len(heads))
        kept = list(itertools.combinations(heads, min(cap, len(heads))))
        for batch in kept:
            total = round(sum(contributions[i] for i in batch), 9)
            law[total] = law.get(total, 0.0) + chance / len(kept)
    return law


def density(law, sigma):
    return sum(
        mass * np.exp(-(((GRID - at) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
        for at, mass in law.items()
    )


@pytest.mark.parametrize(("q", "cap"), [(0.1, 1), (0.1, 2), (0.2, 3), (0.3, 4), (0.5, 2)])
@pytest.mark.parametrize("sigma", [0.6, 1.0, 2.5])
def test_no_data_set_exceeds_the_bound(q, cap, sigma):
    step = GRID[1] - GRID[0]
    mechanism = TruncatedPoissonSampled(sigma, sampling_probability=q, cap=cap, dataset_size=6)
    ways = mechanism.profile().solvers()
    for others in ((-1,) * 5, (1, 0, -1, -0.4, 0.7), (0,) * 5, (-1, -1, 0, 0, 1)):
        p = density(law_of_sums((*others, 1.0), q, cap), sigma)
        without = density(law_of_sums(others, q, cap), sigma)
        for epsilon in (0.01, 0.1, 0.5, 1.0, 2.0):
            scale = math.exp(epsilon)
            for way, one, other in zip(ways, (p, without), (without, p), strict=True):
                reached = np.maximum(one - scale * other, 0.0).sum() * step
                assert way.delta_bounds(epsilon).upper >= reached * (1 - 1e-6) - 1e-12


@pytest.mark.parametrize(("cap", "wide"), [(351, 1e-5), (394, 1e-6)])
def test_a_cap_costs_next_to_nothing(cap, wide):
    settings = {"dataset_size": 60_000, "sampling_probability": 256 / 60_000, "steps": 2350}
    found = TruncatedPoissonSampler(cap=cap, **settings).epsilon_bounds(1.0, 1e-10)
    free = PoissonSampler(**settings).epsilon_bounds(1.0, 1e-10)
    assert free.lower <= found.upper <= free.upper * (1 + wide)
    assert found.lower <= free.upper


def test_the_renyi_curve_is_above_the_loss_distribution():
    mechanism = TruncatedPoissonSampled(1.0, sampling_probability=0.2, cap=3, dataset_size=8)
    for pair in mechanism.pairs():
        edges = np.linspace(-12.0, 12.0, 6001)
        found = pair.masses(edges)
        middle = 0.5 * (edges[1:] + edges[:-1])
        for order in (1.5, 2.0, 5.0):
            moment = float((found.p[1:-1] * np.exp((order - 1) * middle)).sum())
            assert pair.rdp(order) * (1 + 1e-9) >= math.log(moment) / (order - 1) - 2e-3


@pytest.mark.parametrize("log_q", [-690.0, -640.0, -622.0, -620.7, -610.0, -30.0])
def test_the_renyi_curve_is_above_its_largest_term_where_records_are_hardly_drawn(log_q):
    # The power of the noise's moments is 619.8.
    sigma, doubt, order, q = 0.11, 1e-3, 16, math.exp(log_q)
    with mpmath.workdps(60):
        drawn = mpmath.mpf(q) ** order * (1 - mpmath.mpf(doubt)) ** (1 - order)
        drawn *= mpmath.exp(order * (order - 1) / (2 * mpmath.mpf(sigma) ** 2))
        least = mpmath.log((1 - mpmath.mpf(q)) ** order + drawn) / (order - 1)
    assert OverflowPair(DoubtfulGaussian(sigma, doubt), q, add=False).rdp(float(order)) >= least
