"""What a record reaches that stands out, and hides once it has won: the game from below."""

import math

import numpy as np
import pytest

import accountant as ac
from accountant.analyses.replacement_game import play, reach
from accountant.sampling import FixedSizeSampler, WithReplacementSampler
from accountant.sampling.lattice_envelope import Lattice, LatticeLaw, law_below


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


def plain_step(value, lattice, law):
    """Return what a law makes of values at multiples of the spacing, by a plain sum."""
    at = lattice.spacing * np.arange(value.size)
    losses = lattice.spacing * lattice.places()

    def continued(epsilon):
        inside = np.interp(np.exp(np.abs(epsilon)), np.exp(at), value)
        return np.where(epsilon >= 0, inside, -np.expm1(epsilon) + np.exp(epsilon) * inside)

    return continued(at[:, None] - losses) @ law.masses + law.infinite


@pytest.mark.parametrize("stride", [4, 16])
def test_a_game_is_hardly_above_plain_sums_and_never_below(stride):
    rng = np.random.default_rng(stride)
    lattice = Lattice(0.2 / stride, stride, 6)
    laws = []
    for _ in range(3):
        masses = rng.random(lattice.places().size) * np.exp(-np.abs(lattice.losses()))
        masses[lattice.places() < -lattice.stride] = 0.0
        masses /= masses.sum() * (1.0 + 1e-3)
        laws.append(LatticeLaw(masses, 1e-3, 0.0, 0.0, 0.0))
    size = 10
    value = np.maximum(-np.expm1(lattice.spacing * np.arange(stride * size + 1.0)), 0.0)
    for count in (1, 2, 3):
        value = np.max([plain_step(value, lattice, law) for law in laws], axis=0)
        found = play(tuple(laws), lattice, count, size).delta
        assert (found >= np.minimum(value, 1.0) * (1.0 - 1e-12))[:-1].all()
        # Chords over a stride, on values that are convex in e^ε.
        assert found[0] <= value[0] * (1.0 + 0.02 * count)


@pytest.mark.parametrize(("q", "shift", "epsilon"), [(0.05, 2.0, 0.7), (0.3, 1.0, 0.2)])
def test_two_steps_are_below_their_exact_sum(q, shift, epsilon):
    law, offset = law_below((1.0 - q, q), shift, 0.0, 0.005, 1200)
    found = reach(law, (0.005, offset), 2, 1.0)
    truth = two_steps(q, shift, epsilon)
    assert 0.98 * truth < found.at(epsilon) <= truth
    # The least ε there is above it, in the sense of the bound.
    assert found.epsilon_of(truth) <= epsilon < found.epsilon_of(0.9 * truth) + 0.1


@pytest.mark.long
def test_a_lattice_that_would_be_too_long_is_left_out():
    sampler = FixedSizeSampler(dataset_size=10**7, batch_size=10, steps=100)
    found = sampler.epsilon_bounds(1.0, 1e-6)
    assert 0.0 <= found.lower <= found.upper < math.inf


def best_of_three_steps(weights, unit):
    """Return ε and δ of three steps by standing out or hiding, by quadrature on a plain grid."""
    epsilon = 60.0 * np.sinh(9.5 * np.linspace(0.0, 1.0, 500)) / math.sinh(9.5)
    x = np.linspace(-9.0, 9.0 + 6.0 * unit, 6001)
    means = 2.0 * unit * np.arange(len(weights))
    densities = np.exp(-0.5 * (x - means[:, None]) ** 2) / math.sqrt(2.0 * math.pi)
    p, plain = weights @ densities * (x[1] - x[0]), densities[0] * (x[1] - x[0])
    losses = np.log(p / np.maximum(plain, 1e-300))
    value = np.zeros(epsilon.size)
    for _ in range(3):
        at = epsilon[:, None] - losses
        inside = np.interp(np.abs(at), epsilon, value)
        value = np.where(at >= 0, inside, -np.expm1(at) + np.exp(np.minimum(at, 0)) * inside) @ p
    return epsilon, value


@pytest.mark.long
def test_three_steps_with_replacement_are_flat_at_their_largest_delta():
    """δ falls by 3e-3 per unit of ε here: a bracket of δ of 5e-4 of itself is one of 30 % of ε."""
    weights = np.array([math.comb(5, k) * 0.01**k * 0.99 ** (5 - k) for k in range(6)])
    epsilon, delta = best_of_three_steps(weights, 1.0 / 0.35)
    reached = float(np.interp(-0.139, -delta, epsilon))
    assert 0.0400 < reached < 0.0415
    steps = WithReplacementSampler(
        dataset_size=100, batch_size=5, steps=3, relation=ac.NeighbouringRelation.REPLACE_ONE
    ).mechanism(0.35)
    found = steps.epsilon_bounds(0.139)
    assert 0.98 * reached < found.lower <= reached * (1.0 + 2e-3)
    assert reached * (1.0 - 2e-3) <= found.upper < 0.0548
    found = steps.delta_bounds(0.04)
    at = float(np.interp(0.04, epsilon, delta))
    assert found.lower <= at * (1.0 + 1e-6)
    assert at * (1.0 - 1e-6) <= found.upper < at * 1.0008


@pytest.mark.long
def test_many_steps_of_a_large_data_set():
    """The brackets were [36.487, 36.757] and [7.837, 7.883]."""
    sampler = FixedSizeSampler(dataset_size=10**6, batch_size=2231, steps=4000)
    found = sampler.epsilon_bounds(0.669, 1e-6)
    standing_out = 4000 * ac.PoissonSampled(ac.Gaussian(0.3345), 0.002231)
    assert standing_out.epsilon(1e-6) < 36.4872 < 36.57 < found.lower
    assert found.lower < found.upper < 36.7575
    repeated = WithReplacementSampler(
        dataset_size=25_000, batch_size=250, steps=500, relation=ac.NeighbouringRelation.REPLACE_ONE
    )
    found = repeated.epsilon_bounds(1.2, 1e-5)
    assert 7.832 < found.lower < found.upper < 7.8829


def test_an_error_of_losses_raises_no_less_than_losses_that_are_larger_by_it():
    lattice, error, count = Lattice(0.1, 1, 8), 1e-3, 3
    losses = lattice.losses()
    masses = np.exp(0.5 * losses - np.abs(losses))  # of a pair that is its own reverse
    masses *= 0.999 / masses.sum()
    found = play((LatticeLaw(masses, 1e-3, 0.0, 0.0, error),), lattice, count, 40)
    # All that is larger by the error, exactly: values by recursion, without knots.
    drawn = [(loss + error, mass) for loss, mass in zip(losses, masses, strict=True)]

    def value(epsilon, steps):
        if steps == 0:
            return max(-math.expm1(epsilon), 0.0)
        return 1e-3 + sum(mass * value(epsilon - loss, steps - 1) for loss, mass in drawn)

    for place in (0, 1, 5, 9):
        assert found.delta[place] >= value(float(found.epsilon[place]), count) * (1.0 - 1e-12)
