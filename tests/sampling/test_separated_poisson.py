"""Poisson sampling with a pause: counts by enumeration, profiles by simulation, batches."""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

import accountant as ac
from accountant import matrix
from accountant.sampling import SeparatedParticipations, SeparatedPoisson


def patterns(steps, separation, p):
    """Every set of participations with its probability."""
    found = defaultdict(type(p))
    for coins in product((0, 1), repeat=steps):
        chance, free, taken = type(p)(1), 0, ()
        for t, coin in enumerate(coins):
            chance *= p if coin else 1 - p
            if coin and t >= free:
                taken, free = (*taken, t), t + separation
        found[taken] += chance
    return found


def exact_counts(steps, separation, p):
    """The law of the number of participations, over all coins."""
    law = defaultdict(Fraction)
    for taken, chance in patterns(steps, separation, p).items():
        law[len(taken)] += chance
    return law


@pytest.mark.parametrize(("steps", "separation"), [(1, 1), (6, 1), (7, 2), (8, 3), (5, 9)])
@pytest.mark.parametrize("p", [Fraction(1, 8), Fraction(3, 4)])
def test_counts_by_enumeration(steps, separation, p):
    law = exact_counts(steps, separation, p)
    mechanism = SeparatedParticipations(
        1.0, sampling_probability=float(p), min_separation=separation, steps=steps
    )
    for count in range(1, steps + 1):
        truth = sum(chance for n, chance in law.items() if n >= count)
        assert Fraction(mechanism.at_least(count)) >= truth
    # The profile of the mixture over the true law is nowhere above.
    for epsilon in (0.1, 1.0, 2.5):
        truth = sum(
            float(chance) * ac.Gaussian(1.0 / math.sqrt(n)).delta_bounds(epsilon).lower
            for n, chance in law.items()
            if n
        )
        assert mechanism.delta(epsilon) >= truth


def exact_tail(steps, separation, p, count):
    """P{count or more participations}, from below: coins that are not left out show heads."""
    coins = steps - (count - 1) * (separation - 1)
    # A lower bound: what is left out is rarer by far than the first of them.
    heads = range(count, min(coins, count + 12) + 1)
    return sum((math.comb(coins, k) * p**k * (1 - p) ** (coins - k) for k in heads), Fraction(0))


@pytest.mark.parametrize(
    ("noise", "p", "separation", "steps", "epsilon"),
    [
        (0.02, 1e-5, 2, 10, 4500.0),  # only the rarest counts have so much loss
        (0.02, 1e-5, 2, 10, 3200.0),
        (1.0, 1e-5, 2, 10, 8.0),
        (0.5, 1e-8, 2, 20, 14.0),
        (0.05, 1e-4, 2, 120, 2000.0),  # more counts than are told apart
    ],
)
def test_rare_counts_keep_their_digits(noise, p, separation, steps, epsilon):
    mechanism = SeparatedParticipations(
        noise, sampling_probability=p, min_separation=separation, steps=steps
    )
    truth = mpmath.mpf(0)
    with mpmath.workdps(60):
        for n in range(1, min(-(-steps // separation), 12) + 1):
            chance = exact_tail(steps, separation, Fraction(p), n)
            chance -= exact_tail(steps, separation, Fraction(p), n + 1)
            mu = mpmath.sqrt(n) / mpmath.mpf(noise)
            profile = mpmath.ncdf(mu / 2 - epsilon / mu)
            profile -= mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
            truth += mpmath.mpf(chance.numerator) / chance.denominator * profile
    assert mechanism.pairs()[0].profile(epsilon).upper >= truth > 1e-60


@pytest.mark.parametrize("bands", [1, 2, 3])
@pytest.mark.parametrize("noise", [0.7, 2.0])
def test_simulated_runs_are_bounded(bands, noise):
    steps, separation, p = 9, 3, 0.25
    strategy = matrix.banded_square_root(steps, bands=bands)
    unit = strategy.sensitivity_bounds().upper
    rows = np.zeros((steps, steps))
    for i in range(steps):
        rows[i:, i] = strategy.coefficients()[: steps - i]
    z = np.random.default_rng(2).standard_normal((40_000, steps))
    ratio = np.zeros(len(z))
    for taken, chance in patterns(steps, separation, p).items():
        shift = rows[:, list(taken)].sum(axis=1) / (noise * unit)
        ratio += chance * np.exp(z @ shift - 0.5 * shift @ shift)
    sampler = SeparatedPoisson(
        dataset_size=9, sampling_probability=p, min_separation=separation, steps=steps, bands=bands
    )
    for epsilon in (0.2, 1.0):
        bound = sampler.mechanism(noise).delta(epsilon)
        for values in (
            np.maximum(ratio - math.exp(epsilon), 0.0),
            np.maximum(1.0 - math.exp(epsilon) * ratio, 0.0),
        ):
            assert values.mean() - 4 * values.std() / math.sqrt(len(z)) <= bound
    low, high = sampler.epsilon_bounds(noise, 1e-4)
    assert 0.0 < low < high


def test_batches_follow_the_law():
    records, separation, p, steps = 500, 4, 0.3, 400
    sampler = SeparatedPoisson(
        dataset_size=records, sampling_probability=p, min_separation=separation, steps=steps
    )
    last = np.full(records, -separation)
    trials = heads = 0
    for step, batch in enumerate(sampler.batches(seed=1)):
        ready = step - last >= separation
        assert ready[batch].all()
        trials += int(ready.sum())
        heads += batch.size
        last[batch] = step
    assert abs(heads - p * trials) < 5 * math.sqrt(trials * p * (1 - p))
    assert abs(heads / steps / records - p / (1 + 3 * p)) < 0.01


def test_no_pause_and_no_bands_is_poisson():
    sampler = SeparatedPoisson(dataset_size=9, sampling_probability=0.1, min_separation=1, steps=7)
    poisson = ac.sampling.PoissonSampler(dataset_size=9, sampling_probability=0.1, steps=7)
    assert sampler.mechanism(1.0) == poisson.mechanism(1.0)


def test_what_is_refused():
    with pytest.raises(ac.DomainError, match="at most min_separation"):
        SeparatedPoisson(
            dataset_size=9, sampling_probability=0.1, min_separation=2, steps=7, bands=3
        )


@pytest.mark.parametrize("p", [0.0, 1e-300, 0.5, 1.0])
@pytest.mark.parametrize("steps", [1, 100_000])
@pytest.mark.parametrize("noise", [0.01, 1e6, math.inf])
def test_extremes(p, steps, noise):
    mechanism = SeparatedParticipations(
        noise, sampling_probability=p, min_separation=10, steps=steps
    )
    epsilon = mechanism.epsilon(1e-6)
    # The grid is coarse at losses in the thousands.
    plain = ac.Gaussian(noise / math.sqrt(-(-steps // 10))).epsilon(1e-6)
    assert 0.0 <= epsilon <= plain * 1.05
