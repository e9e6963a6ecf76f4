"""How often a record takes part that pauses, and what the sum over its steps tells."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from accountant.sampling import PoissonSampler, SeparatedPoisson
from accountant.sampling.participation_counts import SumOfParticipations, participation_chances


def exact_law(steps, p, separation, every):
    """The law over all coins, in fractions."""
    law = {}
    for coins in product((0, 1), repeat=steps):
        chance, free, count = Fraction(1), 0, 0
        for t, coin in enumerate(coins):
            if t < free:
                continue
            chance *= p if coin else 1 - p
            if coin:
                free = t + separation
                count += t % every == 0
        # Coins that are not tossed have both outcomes in the product.
        idle = sum(
            1 for t in range(steps) if any(0 < t - u < separation for u in taken(coins, separation))
        )
        law[count] = law.get(count, 0) + chance / 2**idle
    return law


def taken(coins, separation):
    found, free = [], 0
    for t, coin in enumerate(coins):
        if coin and t >= free:
            found.append(t)
            free = t + separation
    return found


@pytest.mark.parametrize(
    ("steps", "separation", "every"), [(1, 1, 1), (8, 1, 1), (9, 3, 1), (10, 4, 2), (6, 9, 3)]
)
@pytest.mark.parametrize("p", [Fraction(1, 64), Fraction(1, 4), Fraction(7, 8)])
def test_counts_by_enumeration(steps, separation, every, p):
    law = exact_law(steps, p, separation, every)
    assert sum(law.values()) == 1
    chances = participation_chances(steps, float(p), separation, every)
    assert [int(n) for n in chances.numbers] == sorted(law)
    for n, mass in zip(chances.numbers, chances.masses, strict=True):
        assert abs(Fraction(mass) - law[int(n)]) <= law[int(n)] * Fraction(chances.error)


@pytest.mark.parametrize(("steps", "p", "separation"), [(1000, 0.01, 100), (10_000, 1e-4, 7)])
def test_both_ways_to_count_agree(steps, p, separation):
    found = participation_chances(steps, p, separation, 1)
    # Every second step of twice as many, with pauses that are not: another law with the same mean.
    assert math.fsum(found.masses) == pytest.approx(1.0, abs=1e-9)
    rate = p / (1.0 + (separation - 1.0) * p)
    assert found.mean == pytest.approx(steps * rate, rel=0.1)


def likelihood_ratio(z, p, separation, noise):
    """The likelihood ratio of simulated runs, mass by mass of how long a record still waits."""
    free, waiting = np.ones(len(z)), np.zeros((separation, len(z)))
    for t in range(z.shape[1]):
        free = free + waiting[t % separation]
        waiting[t % separation] = p * free * np.exp(z[:, t] / noise - 0.5 / noise**2)
        free = (1.0 - p) * free
    return free + waiting.sum(axis=0)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(("p", "separation", "epsilon"), [(0.1, 5, 1.0), (0.05, 20, 0.7)])
@pytest.mark.parametrize("add", [False, True])
def test_simulation_is_above_the_sum(p, separation, epsilon, add):
    steps, noise = 60, 1.0
    chances = participation_chances(steps, p, separation, 1)
    pair = SumOfParticipations(noise, steps=steps, chances=chances).pairs()[add]
    ratio = likelihood_ratio(
        np.random.default_rng(5).standard_normal((100_000, steps)), p, separation, noise
    )
    gains = 1.0 - math.exp(epsilon) * ratio if add else ratio - math.exp(epsilon)
    gains = np.maximum(gains, 0.0)
    half = 3.3 * gains.std() / math.sqrt(gains.size)
    lower = float(pair.profile(epsilon).lower)
    assert lower <= gains.mean() + half
    # The sum tells most of it.
    assert lower >= 0.7 * (gains.mean() - half)


def test_without_a_pause_the_sum_tells_all():
    """The number of heads of independent coins: the sum of losses is the loss."""
    chances = participation_chances(200, 0.02, 1, 1)
    pair = SumOfParticipations(1.0, steps=200, chances=chances).pairs()[0]
    exact = PoissonSampler(dataset_size=9, sampling_probability=0.02, steps=200).mechanism(1.0)
    for epsilon in (0.2, 1.0):
        truth = exact.delta_bounds(epsilon)
        assert 0.99 * truth.lower <= float(pair.profile(epsilon).lower) <= truth.upper


@pytest.mark.parametrize(
    ("separation", "bands", "lower"), [(100, 1, 0.99), (10, 1, 1.91), (100, 4, 0.63)]
)
def test_brackets_of_a_run(separation, bands, lower):
    # Their lower ends were .364, what the first step alone reaches.
    sampler = SeparatedPoisson(
        dataset_size=9,
        sampling_probability=0.01,
        min_separation=separation,
        steps=1000,
        bands=bands,
    )
    found = sampler.epsilon_bounds(1.0, 1e-6)
    assert lower <= found.lower <= found.upper


@pytest.mark.parametrize(
    ("steps", "p", "separation", "every"),
    [
        (10**6, 0.5, 2, 1),
        (10**6, 0.5, 10**6, 2),
        (10, 0.0, 2, 1),
        (10, 1.0, 2, 1),
        (10**6, 1e-300, 3, 1),
        (3, 1e-300, 2, 2),
    ],
)
def test_what_costs_too_much_or_is_certain_has_no_sum(steps, p, separation, every):
    assert participation_chances(steps, p, separation, every) is None


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    ("steps", "p", "separation", "every"),
    [
        (10**9, 1e-9, 2, 1),
        (10**6, 1e-14, 3, 1),
        (4, 1e-8, 2, 2),
        (2, 0.9, 1, 1),
        (50, 0.999, 3, 1),
    ],
)
@pytest.mark.parametrize("noise", [0.2, 1e3])
def test_extremes(steps, p, separation, every, noise):
    chances = participation_chances(steps, p, separation, every)
    assert chances is not None
    mechanism = SumOfParticipations(noise, steps=steps // every, chances=chances)
    for pair in mechanism.pairs():
        found = pair.profile(0.5)
        assert 0.0 <= found.lower <= found.upper <= 1.0
