"""Batches of a fixed size under replace-one: the game from above, real data sets from below."""

import math

import pytest

import accountant as ac
from accountant.analyses.replacement_steps import ReplacementGame, plays
from accountant.sampling import FixedSizeSampled, FixedSizeSampler, WithReplacementSampler
from support.oracle.replacement_steps import two_steps


def game(q, sigma, count):
    step = FixedSizeSampled(sigma, batch_size=round(q * 1000), dataset_size=1000)
    ((parts),) = (((step.pairs()[0], count),),)
    assert plays(parts)
    return ReplacementGame(parts)


@pytest.mark.long
@pytest.mark.parametrize(("q", "sigma", "epsilon"), [(0.05, 1.0, 0.7), (0.2, 2.0, 0.4)])
def test_two_steps_are_above_what_data_reach(q, sigma, epsilon):
    found = game(q, sigma, 2).delta_bounds(epsilon)
    turned = math.sqrt(2.0)
    reached = [
        two_steps(q, 1.0 / sigma, epsilon, triple)
        for triple in ((2.0, 0.0, 0.0), (1.0, -1.0, 0.0), (turned, 0.0, turned), (1.8, 0.5, 1.1))
    ]
    assert found.upper >= max(reached) * (1.0 - 1e-9)
    assert found.upper <= 1.08 * max(reached)
    assert found.lower <= max(reached) * (1.0 + 1e-6)


def test_the_game_is_below_the_symmetric_pair_and_above_every_fixed_choice():
    sampler = FixedSizeSampler(dataset_size=10_000, batch_size=100, steps=1000)
    found = sampler.epsilon_bounds(1.0, 1e-5)
    # More than by standing out in every step, 13.36; the pair of Theorem S6.
    assert 13.40 < found.lower < 13.45
    standing_out = 1000 * ac.PoissonSampled(ac.Gaussian(0.5), 0.01)
    assert standing_out.epsilon(1e-5) * 1.003 < found.lower
    assert found.upper < found.lower * 1.0045
    assert found.upper < 14.82
    steps = sampler.mechanism(1.0)
    assert steps.explain(1e-5).analysis == "replacement game"
    assert steps.delta(found.upper) == pytest.approx(1e-5, rel=0.02)
    assert steps.epsilon_bounds(0.0).upper == math.inf


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 0.5])
def test_what_the_game_cannot_tell_the_pair_does(delta):
    step = FixedSizeSampled(3.0, batch_size=7, dataset_size=70)
    found = (3 * step).epsilon_bounds(delta)
    assert 0.0 <= found.lower <= found.upper < math.inf
    assert found.upper <= (3 * ac.Gaussian(1.5)).epsilon(delta) * (1 + 1e-9)


@pytest.mark.long
@pytest.mark.parametrize("sigma", [1.0, 2.0])
def test_with_replacement_is_near_what_data_reach(sigma):
    sampler = WithReplacementSampler(
        dataset_size=10_000, batch_size=100, steps=300, relation=ac.NeighbouringRelation.REPLACE_ONE
    )
    found = sampler.epsilon_bounds(sigma, 1e-5)
    assert found.lower < found.upper < found.lower * 1.09
    steps = sampler.mechanism(sigma)
    assert steps.explain(1e-5).analysis == "replacement game"
    # What is added or removed is at most as far as what is replaced.
    removed = WithReplacementSampler(dataset_size=10_000, batch_size=100, steps=300)
    assert removed.epsilon_bounds(sigma, 1e-5).lower <= found.upper
    assert sigma > 1.0 or removed.epsilon_bounds(sigma, 1e-5).upper < found.lower


@pytest.mark.long
@pytest.mark.parametrize(("sigma", "count"), [(2.0, 6000), (8.0, 10**6), (25.0, 40), (0.3, 2000)])
def test_beyond_the_game_lower_ends_are_what_data_reach(sigma, count):
    """They were those of the pair of Theorem S6, above what the game allows."""
    steps = count * FixedSizeSampled(sigma, batch_size=5, dataset_size=1000)
    reached = count * ac.PoissonSampled(ac.Gaussian(0.5 * sigma), 0.005)
    found, most = steps.epsilon_bounds(1e-6), reached.epsilon_bounds(1e-6)
    assert most.lower * (1.0 - 1e-6) <= found.lower <= most.upper
    assert most.lower <= found.upper
    assert steps.delta_bounds(found.upper).upper <= 1e-6 * (1.0 + 1e-6)
    assert steps.delta_bounds(most.upper).lower <= 1e-6
    assert steps.delta_bounds(found.lower * 0.999).upper >= 1e-6
    explained = steps.explain(1e-6)
    assert explained.analysis == "grid"
    assert "stands out" in explained.contributions[0].account
    beside = steps + ac.PureDP(0.5, relation=ac.NeighbouringRelation.REPLACE_ONE)
    assert beside.epsilon_bounds(1e-6).lower <= most.upper + 0.5


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("sigma", "size", "count"), [(20.0, 500, 100), (1.0, 10, 6000)])
def test_beyond_the_game_a_large_delta_has_the_upper_end_of_the_pair(sigma, size, count):
    """It was 1: a wide bracket was seen by a ratio, which 1 and a large lower end do not have."""
    steps = count * FixedSizeSampled(sigma, batch_size=size, dataset_size=1000)
    found = steps.delta_bounds(0.0)
    assert found.lower < found.upper < 1.0 - 0.15 * (1.0 - found.lower)
    laplace = ac.Laplace(2.0, relation=ac.NeighbouringRelation.REPLACE_ONE)
    found = (steps + 3 * laplace).delta_bounds(0.0)
    assert found.lower < found.upper < 1.0 - 0.15 * (1.0 - found.lower)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("sigma", [1e-150, 1e-200, 1e-308])
def test_next_to_no_noise_is_no_error_beyond_the_game(sigma):
    """A record that stands out is told as surely with the least noise of the core."""
    steps = 5 * FixedSizeSampled(sigma, batch_size=2, dataset_size=1000)
    found = steps.epsilon_bounds(1e-6)
    assert 1e198 < found.lower <= found.upper
    assert steps.delta_bounds(1.0).upper < 0.01
    twice = WithReplacementSampler(
        dataset_size=1000, batch_size=2, steps=5, relation=ac.NeighbouringRelation.REPLACE_ONE
    ).mechanism(sigma)
    assert twice.epsilon_bounds(1e-6).lower < math.inf
    assert twice.delta_bounds(1.0).upper < 0.01
