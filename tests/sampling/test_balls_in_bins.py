"""Balls in bins with banded strategies: simulation, quadrature, and the batches."""

import math
import tracemalloc

import numpy as np
import pytest

import accountant as ac
from accountant import matrix
from accountant.sampling import Allocated, BallsInBins
from accountant.sampling.balls_in_bins import Circle, conditional_delta
from support.oracle.samplers import black_scholes

_STRETCHES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def banded(bins, steps, bands):
    strategy = matrix.banded_square_root(steps, bands=bands)
    return BallsInBins(dataset_size=5, bins=bins, strategy=strategy)


def means(column, bins, steps):
    """Return the mean vector of every bin, of shape (bins, steps), in units of a column's norm."""
    found = np.zeros((bins, steps))
    for start in range(steps):
        part = column[: steps - start]
        found[start % bins, start : start + len(part)] += part
    return found / np.linalg.norm(column)


def simulated_delta(sampler, noise, epsilon, samples, seed):
    """Return δ(epsilon) of removing a record, and its standard error."""
    bins, steps = sampler.bins, sampler.steps
    rng = np.random.default_rng(seed)
    shifts = means(sampler.strategy.column, bins, steps) / noise
    squares = (shifts**2).sum(axis=1)
    largest = math.sqrt(squares.max())
    stretches = np.array(_STRETCHES) / max(largest, 1.0)
    if largest < 1.0:
        stretches = np.array(_STRETCHES) / largest
    values = []
    rows = max(1, 2_000_000 // steps)
    for start in range(0, samples, rows):
        count = min(rows, samples - start)
        drawn = rng.integers(bins, size=count)
        stretch = stretches[rng.integers(stretches.size, size=count)]
        x = rng.standard_normal((count, steps)) + (1.0 + stretch)[:, None] * shifts[drawn]
        inner = x @ shifts.T
        log_ratio = _log_mean(inner - 0.5 * squares)
        proposal = np.mean(
            [
                np.exp(_log_mean((1.0 + s) * inner - 0.5 * (1.0 + s) ** 2 * squares) - log_ratio)
                for s in stretches
            ],
            axis=0,
        )
        values.append(np.maximum(-np.expm1(epsilon - log_ratio), 0.0) / proposal)
    found = np.concatenate(values)
    return float(found.mean()), float(found.std(ddof=1) / math.sqrt(found.size))


def _log_mean(values):
    top = values.max(axis=1)
    return top + np.log(np.exp(values - top[:, None]).mean(axis=1))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("bins", "steps", "bands"), [(10, 10, 2), pytest.param(20, 47, 4, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("noise", [1.5, 3.0])
def test_simulated_runs_lie_in_the_bracket(bins, steps, bands, noise):
    sampler = banded(bins, steps, bands)
    for delta in (1e-2, 1e-4):
        bounds = sampler.epsilon_bounds(noise, delta)
        assert 0.0 < bounds.lower < bounds.upper
        for epsilon, sign in ((float(bounds.lower), 1), (float(bounds.upper), -1)):
            found, error = simulated_delta(sampler, noise, epsilon, 20_000, seed=7)
            assert error < 0.1 * (found + delta)
            assert sign * (found - delta) > -4.0 * error


@pytest.mark.parametrize("noise", [0.02, 0.037, 0.0375, 0.045, 0.048, 0.05])
def test_little_noise_has_a_bracket_on_both_sides_of_what_doubles_hold(noise):
    bounds = banded(10, 10, 2).epsilon_bounds(noise, 1e-5)
    # A record whose bin is known loses no less.
    known = ac.Gaussian(noise).epsilon(1e-5)
    assert 0.0 < bounds.lower < bounds.upper < known * (1.0 + 1e-9)


def test_large_losses_are_not_cut_where_they_count():
    """Of ten bins of variance 1200 with large correlations half lose more than 300 nats."""
    assert conditional_delta(Circle.whole(10, (1200.0, 1100.0)), 599.0) >= 0.4
    assert conditional_delta(Circle.whole(10**6, (1500.0, 1400.0)), 300.0) >= 0.9


def test_one_band_is_random_allocation():
    sampler = BallsInBins(dataset_size=5, bins=50, strategy=matrix.input_perturbation(200))
    bounds = sampler.epsilon_bounds(4.0, 1e-6)
    exact = Allocated(2.0, steps=50).epsilon_bounds(1e-6)
    assert bounds.upper == pytest.approx(exact.upper, rel=1e-9)
    assert exact.upper * (1 - 2e-4) < bounds.lower <= exact.upper


def test_a_narrow_bracket():
    """T = 1000 steps in epochs of 1000 bins, σ = 4, two bands."""
    bounds = banded(1000, 1000, 2).epsilon_bounds(4.0, 1e-6)
    assert 0.0353 < bounds.lower < bounds.upper < 0.0387


def test_projections_of_blocks():
    """Of blocks of rows on the sum of their columns, with a matrix of the block."""
    column = (1.0, 0.6, 0.3)
    strategy = matrix.BandedToeplitz(column, steps=20)
    found = BallsInBins(dataset_size=5, bins=20, strategy=strategy)._reached()
    # Three blocks of six rows are the only three.
    several = [each.shift for each in found if each.bins == 3]
    block = sum(np.diag(np.full(6 - i, c), -i) for i, c in enumerate(column))
    direction = block.sum(axis=1) / np.linalg.norm(block.sum(axis=1))
    shifts = sorted(direction @ block, reverse=True)
    assert several == pytest.approx(shifts, rel=1e-10)
    assert all(shift < most for shift, most in zip(several, shifts, strict=True))


@pytest.mark.long
def test_many_bins_take_little_memory():
    """A matrix of the rows of half of the bins took 160 MB for 10,000, and 3.7 GB for 50,000."""
    strategy = matrix.BandedToeplitz((1.0, 0.5), steps=20_000)
    sampler = BallsInBins(dataset_size=5, bins=10_000, strategy=strategy)
    tracemalloc.start()
    bounds = sampler.epsilon_bounds(1.0, 1e-6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.0 < bounds.lower < bounds.upper
    assert peak < 50e6


@pytest.mark.slow
@pytest.mark.parametrize("bands", [2, 4, 8])
@pytest.mark.parametrize(("bins", "noise"), [(100, 4.0), (1000, 1.0), (1000, 4.0)])
def test_published_brackets_contain_what_is_simulated(bins, noise, bands):
    """δ simulated at both ends of the bracket, with a 99.9 % interval."""
    sampler = banded(bins, 1000, bands)
    bounds = sampler.epsilon_bounds(noise, 1e-6)
    for epsilon, sign in ((float(bounds.lower), 1), (float(bounds.upper), -1)):
        found, error = simulated_delta(sampler, noise, epsilon, 20_000, seed=9)
        assert sign * (found - 1e-6) > -3.3 * error


def test_batches_are_the_bins():
    strategy = matrix.banded_square_root(25, bands=2)
    sampler = BallsInBins(dataset_size=5000, bins=10, strategy=strategy)
    batches = [batch.tolist() for batch in sampler.batches(seed=3)]
    assert len(batches) == 25 == sampler.steps
    assert batches[10:20] == batches[:10]
    assert batches[20:] == batches[:5]
    assert sorted(i for batch in batches[:10] for i in batch) == list(range(5000))
    sizes = np.array([len(batch) for batch in batches[:10]])
    assert ((sizes - 500) ** 2 / 500).sum() < 35  # χ² of 9 degrees, beyond .9999


def test_what_is_refused():
    root = matrix.banded_square_root(10, bands=3)
    with pytest.raises(ac.DomainError, match="bins must be"):
        BallsInBins(dataset_size=5, bins=5, strategy=root)
    with pytest.raises(ac.DomainError, match="coefficients >= 0"):
        BallsInBins(dataset_size=5, bins=5, strategy=matrix.BandedToeplitz((1.0, -0.5), steps=9))
    with pytest.raises(ac.ArgumentTypeError, match="strategy must be"):
        BallsInBins(dataset_size=5, bins=5, strategy=matrix.BinaryTree(9))


@pytest.mark.parametrize("noise", [1e-3, 1e9, math.inf])
def test_extreme_noise(noise):
    bounds = banded(10, 20, 2).epsilon_bounds(noise, 1e-6)
    assert 0.0 <= bounds.lower <= bounds.upper


@pytest.mark.long
@pytest.mark.parametrize("steps", [24, 13, 27, 35])
@pytest.mark.parametrize(("bands", "noise"), [(2, 0.5), (3, 0.8)])
def test_the_conditional_bound_by_simulation(bands, noise, steps):
    """δ of removing a record, over a sweep of ε: never below, and near it far out."""
    sampler = banded(12, steps, bands)
    circle = sampler._circle(noise)
    for epsilon in (0.5, 2.0, 4.0, 8.0, 12.0):
        bound = conditional_delta(circle, epsilon)
        found, error = simulated_delta(sampler, noise, epsilon, 30_000, seed=4)
        assert bound >= found - 4.0 * error
        if epsilon == 12.0 and noise == 0.5 and steps == 24:
            assert bound <= 1.1 * (found + 4.0 * error)


@pytest.mark.parametrize(("bins", "often"), [(100, 3), (1000, 1), (20, 19)])
def test_part_of_an_epoch_costs_what_it_holds(bins, often):
    """Between whole epochs and one more, and with few further steps near the former."""
    circles = [
        banded(bins, steps, 2)._circle(0.5) for steps in (2 * bins, 2 * bins + often, 3 * bins)
    ]
    for epsilon in (1.0, 6.0, 15.0):
        less, between, most = (conditional_delta(circle, epsilon) for circle in circles)
        assert less <= between * (1 + 1e-9)
        assert between <= most * (1 + 1e-9)
        if often < 0.05 * bins and epsilon > 5.0:
            assert between <= 1.05 * less + 1.1 * often / bins * most


@pytest.mark.long
def test_published_points_are_narrow():
    sampler = banded(100, 1000, 4)
    assert 14.82 < sampler.epsilon(1.0, 1e-6) < 14.84 < sampler.mechanism(1.0).epsilon(1e-6)


def two_bins(variances, epsilon):
    """The profile of removing a record from one of two bins, one variable integrated exactly."""
    first, second = variances
    root, gamma = math.sqrt(first), math.exp(epsilon)
    x, step = np.linspace(-14.0, 14.0 + root, 40_001, retstep=True)
    weights = np.exp(-0.5 * x * x) * step / math.sqrt(2.0 * math.pi)
    own = np.exp(root * x - 0.5 * first)
    return 0.5 * float(weights @ black_scholes(2.0 * gamma - own, math.sqrt(second))[0])


@pytest.mark.long(keep=17)
@pytest.mark.parametrize("times", [1, 2, 7])
@pytest.mark.parametrize("noise", [0.2, 0.5, 1.0, 5.0, 50.0])
@pytest.mark.parametrize("deviations", [0.0, 0.3, 1.0, 2.0, 4.0])
def test_two_bins_of_one_band_one_of_which_comes_round_once_more(times, noise, deviations):
    more, fewer = (times + 1) / noise**2, times / noise**2
    epsilon = deviations * math.sqrt(more) + (0.5 * more if deviations > 1.0 else 0.0)
    truth = two_bins((more, fewer), epsilon)
    found = conditional_delta(Circle(2, (more,), (fewer,), 1), epsilon)
    # Beyond 300 nats there is no bound.
    assert truth <= found
    # Where one bin decides, both kinds of a record's own bin count for their share.
    if noise <= 0.2 and epsilon <= 300.0:
        assert found <= 1.01 * truth
