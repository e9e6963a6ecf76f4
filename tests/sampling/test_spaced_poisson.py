"""Cyclic Poisson sampling, and sampling with a pause: laws by brute force, profiles, batches."""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

import accountant as ac
from accountant import matrix, sampling
from accountant.sampling import CyclicPoisson, SeparatedParticipations, SeparatedPoisson
from accountant.sampling.spaced_poisson import class_rate
from support.oracle import moments


def test_the_published_point():
    sampler = CyclicPoisson(dataset_size=10**6, sampling_probability=0.01, bands=4, steps=1000)
    bounds = sampler.epsilon_bounds(1.0, 1e-6)
    assert bounds.upper == pytest.approx(4.8261, abs=5e-5)
    assert bounds.width < 1e-9 * bounds.upper
    assert sampler.mechanism(1.0) == 250 * sampling.PoissonSampled(ac.Gaussian(1.0), 0.04)


def test_one_band_is_poisson():
    cyclic = CyclicPoisson(dataset_size=100, sampling_probability=0.1, bands=1, steps=20)
    poisson = sampling.PoissonSampler(dataset_size=100, sampling_probability=0.1, steps=20)
    assert cyclic.mechanism(1.5) == poisson.mechanism(1.5)


@pytest.mark.long(keep=6)
@pytest.mark.parametrize(
    ("q", "noise", "order"),
    [
        *((q, noise, a) for q, noise in ((0.01, 1.0), (0.001, 5.0)) for a in (1.0003, 1.3, 1000.3)),
        (0.001, 5.0, 1e6),
        pytest.param(0.01, 1.0, 1e6, marks=pytest.mark.slow),
    ],
)
def test_the_curve_holds_that_of_ball_arithmetic(q, noise, order):
    sampler = CyclicPoisson(dataset_size=10**6, sampling_probability=q, bands=4, steps=998)
    found = sampler.mechanism(noise).rdp(order)
    # 250 blocks, the last unfinished. Four times a double is one.
    truth = 250 * moments.renyi(4.0 * q, noise, order, "remove")
    assert truth <= found
    assert found <= truth * (1 + 1e-10)


def mean_ratio(strategy, noise, chances, z):
    """The likelihood ratio of outputs z, over sets of participations with their chances."""
    rows, unit = np.zeros((z.shape[1],) * 2), strategy.sensitivity_bounds().upper
    for i in range(len(rows)):
        rows[i:, i] = strategy.coefficients()[: len(rows) - i]
    ratio = np.zeros(len(z))
    for taken, chance in chances.items():
        shift = rows[:, list(taken)].sum(axis=1) / (noise * unit)
        ratio += chance * np.exp(z @ shift - 0.5 * shift @ shift)
    return ratio


@pytest.mark.parametrize("steps", [4, 5])
def test_the_encoding_by_brute_force(steps):
    """Simulate w = C x + z with all patterns of coins: its δ lies in the bracket of the account."""
    strategy = matrix.banded_square_root(steps, bands=2)
    sampler = CyclicPoisson(dataset_size=9, sampling_probability=0.2, bands=2, steps=steps)
    noise, epsilon, rate = 0.9, 0.7, 0.4
    mine, chances = np.arange(0, steps, 2), {}  # the first class
    for coins in product((0, 1), repeat=mine.size):
        taken = tuple(mine[np.array(coins) == 1].tolist())
        chances[taken] = math.prod(rate if c else 1 - rate for c in coins)
    z = np.random.default_rng(5).standard_normal((400_000, steps))
    ratio = mean_ratio(strategy, noise, chances, z)
    values = np.maximum([1.0 - math.exp(epsilon) * ratio, ratio - math.exp(epsilon)], 0.0)
    worse = values[np.argmax(values.mean(axis=1))]
    delta, add = worse.mean(), 5 * worse.std() / math.sqrt(len(z))
    bounds = sampler.mechanism(noise).delta_bounds(epsilon)
    assert delta - add <= bounds.upper
    if steps % 2 == 0:
        assert delta + add >= bounds.lower
    assert sampler.epsilon_bounds(noise, 1e-5).lower <= sampler.epsilon(noise, 1e-5)


def test_batches_follow_the_accounted_law():
    """Each record keeps one class, and takes part in its steps with rate bands · q."""
    records, bands, steps, q = 400, 3, 3000, 0.05
    sampler = CyclicPoisson(dataset_size=records, sampling_probability=q, bands=bands, steps=steps)
    seen = np.zeros((records, bands))
    pairs = 0
    sizes = []
    for step, batch in enumerate(sampler.batches(seed=1)):
        assert (np.diff(batch) > 0).all()
        seen[batch, step % bands] += 1
        pairs += int(np.isin((7, 8), batch).all())
        sizes.append(batch.size)
    assert ((seen > 0).sum(axis=1) == 1).all()
    counts = seen.max(axis=1)
    trials, rate = steps // bands, bands * q
    deviation = math.sqrt(trials * rate * (1 - rate))
    assert abs(counts.mean() - trials * rate) < 5 * deviation / math.sqrt(records)
    assert 0.8 < counts.std() / deviation < 1.2
    assert len(sizes) == steps
    same = seen[7].argmax() == seen[8].argmax()
    mean = trials * rate**2 * same
    assert abs(pairs - mean) <= 5 * math.sqrt(mean)


def test_what_is_refused():
    with pytest.raises(ac.DomainError, match="at most 1 / bands"):
        CyclicPoisson(dataset_size=9, sampling_probability=0.3, bands=4, steps=8)
    with pytest.raises(ac.DomainError, match="bands must be"):
        CyclicPoisson(dataset_size=9, sampling_probability=0.3, bands=0, steps=8)
    with pytest.raises(ac.UnsupportedError, match="cyclic Poisson"):
        CyclicPoisson(
            dataset_size=9,
            sampling_probability=0.1,
            bands=2,
            steps=8,
            relation=ac.NeighbouringRelation.REPLACE_ONE,
        )


@pytest.mark.parametrize("q", [0.0, 1e-300, 0.5])
def test_extreme_rates(q):
    sampler = CyclicPoisson(dataset_size=9, sampling_probability=q, bands=2, steps=1)
    bounds = sampler.epsilon_bounds(1.0, 1e-5)
    assert 0.0 <= bounds.lower <= bounds.upper
    if q == 0.5:
        assert bounds.upper == ac.Gaussian(1.0).epsilon(1e-5)
        assert all(len(set(batch)) == batch.size for batch in sampler.batches(seed=0))


@pytest.mark.parametrize("bands", [2, 3, 7, 10, 49])
@pytest.mark.parametrize("q", [1e-300, 1e-9, 0.01, 0.0123, 0.02])
def test_the_rate_of_a_class_is_rounded_up(q, bands):
    rate = class_rate(q, bands)
    exact = bands * Fraction(q)
    assert exact <= Fraction(rate)
    assert Fraction(math.nextafter(rate, 0.0)) < exact


def test_a_last_block_that_is_cut_short_is_no_lower_end():
    whole = CyclicPoisson(dataset_size=100, sampling_probability=0.1, bands=2, steps=20)
    assert whole.mechanism(1.0).attained
    cut = CyclicPoisson(dataset_size=100, sampling_probability=0.1, bands=2, steps=21)
    assert cut.mechanism(1.0).epsilon_bounds(1e-5).lower == 0.0
    assert cut.epsilon_bounds(1.0, 1e-5).lower == whole.epsilon_bounds(1.0, 1e-5).lower


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
    z = np.random.default_rng(2).standard_normal((40_000, steps))
    ratio = mean_ratio(strategy, noise, patterns(steps, separation, p), z)
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


def test_what_a_pause_refuses():
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
