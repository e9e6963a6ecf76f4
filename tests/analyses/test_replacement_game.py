"""What a record reaches that stands out, and hides once it has won: the game from below."""

import math

import numpy as np
import pytest

import accountant as ac
from accountant.analyses.replacement_game import Plan, reach
from accountant.sampling import FixedSizeSampler, WithReplacementSampler
from accountant.sampling.lattice_envelope import lattice_spacing, law_below


def normal(x):
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def one_step(q, shift, epsilon):
    """Return the profile of (1-q)N(0) + qN(s) against N(0), and of the reverse."""
    strike = math.exp(epsilon)

    def standing_out(k):
        if k <= 1.0 - q:
            return 1.0 - k
        x = math.log((k - 1.0 + q) / q) / shift + shift / 2.0
        return (1.0 - q - k) * normal(-x) + q * normal(shift - x)

    return standing_out(strike), 1.0 - strike + strike * standing_out(1.0 / strike)


def two_steps(q, shift, epsilon):
    """Return δ of the better choice, followed by the better one: a plain sum of outcomes."""
    x = np.linspace(-9.0, 9.0 + shift, 4000)
    plain = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) * (x[1] - x[0])
    ratio = 1.0 - q + q * np.exp(shift * (x - 0.5 * shift))
    first = [max(one_step(q, shift, epsilon - math.log(r))) for r in ratio]
    second = [max(one_step(q, shift, epsilon + math.log(r))) for r in ratio]
    return max(float((plain * ratio) @ first), float(plain @ second))


@pytest.mark.parametrize(("q", "shift", "epsilon"), [(0.05, 2.0, 0.7), (0.3, 1.0, 0.2)])
def test_two_steps_are_below_their_exact_sum(q, shift, epsilon):
    spacing = lattice_spacing((1.0 - q, q), shift, 0.005)
    law = law_below((1.0 - q, q), shift, 0.0, spacing, 1200)
    found = reach(law, 2, Plan(-100 * spacing, spacing, 1201, 1.0))
    truth = two_steps(q, shift, epsilon)
    assert 0.98 * truth < found.at(epsilon) <= truth
    # The least ε there is above it, in the sense of the bound.
    assert found.epsilon_of(truth) <= epsilon < found.epsilon_of(0.9 * truth) + 0.1


@pytest.mark.long
def test_many_steps_reach_more_than_standing_out_always_and_less_than_the_game():
    sampler = FixedSizeSampler(dataset_size=10_000, batch_size=100, steps=1000)
    found = sampler.epsilon_bounds(1.0, 1e-5)
    standing_out = 1000 * ac.PoissonSampled(ac.Gaussian(0.5), 0.01)
    assert standing_out.epsilon(1e-5) * 1.003 < found.lower
    assert found.lower < found.upper < found.lower * 1.01
    # Choosing at 96 times or twice as often is all the same to the third digit.
    assert 13.40 < found.lower < 13.45


def test_draws_with_replacement_reach_more_too():
    sampler = WithReplacementSampler(
        dataset_size=10_000, batch_size=100, steps=300, relation=ac.NeighbouringRelation.REPLACE_ONE
    )
    always = WithReplacementSampler(dataset_size=10_000, batch_size=100, steps=300)
    assert sampler.epsilon_bounds(1.0, 1e-5).lower > always.epsilon_bounds(1.0, 1e-5).upper


@pytest.mark.long
def test_a_lattice_that_would_be_too_long_is_left_out():
    sampler = FixedSizeSampler(dataset_size=10**7, batch_size=10, steps=100)
    found = sampler.epsilon_bounds(1.0, 1e-6)
    assert 0.0 <= found.lower <= found.upper < math.inf
