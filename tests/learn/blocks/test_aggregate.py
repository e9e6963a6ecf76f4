"""Subsample and aggregate: one record moves one block, releases, bad input."""

import math

import numpy as np
import pytest
from scipy import stats

import accountant as ac
from accountant.errors import ArgumentTypeError, DomainError
from accountant.learn.blocks import block_estimates, private_block_mean, private_block_median
from accountant.noise import SecureGenerator

RECORDS = np.random.default_rng(0).normal(0.3, 1.0, size=4000)
BOUNDS = (-1.0, 1.0)


def test_one_record_moves_one_estimate():
    before = block_estimates(RECORDS, np.median, 40, BOUNDS, rng=1)
    moved = RECORDS.copy()
    moved[-1] = 1e9
    assert (block_estimates(moved, np.median, 40, BOUNDS, rng=1) != before).sum() <= 1
    assert (
        block_estimates(RECORDS[:-1], np.mean, 40, BOUNDS, rng=1)
        != block_estimates(RECORDS, np.mean, 40, BOUNDS, rng=1)
    ).sum() == 1


def test_failures_count_as_the_middle():
    def fails(block):
        raise ValueError("I have seen a record")

    assert (block_estimates(RECORDS, fails, 5, (0.0, 3.0)) == 1.5).all()
    assert (block_estimates(RECORDS[:1], np.mean, 50, (0.0, 3.0)) == 1.5).sum() >= 49
    assert (block_estimates(RECORDS, lambda b: math.nan, 5, (0.0, 3.0)) == 1.5).all()
    assert (block_estimates(RECORDS, lambda b: math.inf, 5, (0.0, 3.0)) == 3.0).all()


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_means(noise):
    estimates = block_estimates(RECORDS, np.mean, 50, BOUNDS, rng=1)
    draws = [
        private_block_mean(estimates, BOUNDS, noise=noise, noise_multiplier=2.0, rng=s)
        for s in range(800)
    ]
    errors = (np.array([d.value for d in draws]) - estimates.mean()) * 50 / 2.0
    law = stats.norm(scale=2.0) if noise == "gaussian" else stats.laplace(scale=2.0)
    assert stats.kstest(errors, law.cdf).pvalue > 1e-4
    expected = ac.Gaussian(2.0) if noise == "gaussian" else ac.Laplace(2.0)
    assert draws[0].mechanism == expected
    assert not draws[0].private
    assert private_block_mean(estimates, BOUNDS, noise_multiplier=2.0).private


def test_medians():
    estimates = block_estimates(RECORDS, np.median, 60, BOUNDS, rng=1)
    draws = [private_block_median(estimates, BOUNDS, 2.0, rng=s) for s in range(30)]
    assert abs(np.median([d.value for d in draws]) - np.median(estimates)) < 0.05
    assert draws[0].mechanism == ac.ExponentialMechanism(2.0)


def test_scores_of_the_median_move_by_one():
    # The law on neighbouring estimates, from the scores the code uses.
    from accountant.learn import blocks as aggregate

    seen = []
    kept = aggregate.select_exponential

    def spy(scores, *args, **options):
        seen.append(np.array(scores))
        return kept(scores, *args, **options)

    aggregate.select_exponential = spy
    try:
        rng = np.random.default_rng(3)
        for _ in range(50):
            estimates = rng.uniform(-1.0, 1.0, size=9)
            private_block_median(estimates, BOUNDS, 1.0, candidates=33, rng=1)
            estimates[rng.integers(9)] = rng.choice([-1.0, 1.0, 0.0])
            private_block_median(estimates, BOUNDS, 1.0, candidates=33, rng=1)
            assert np.abs(seen[-1] - seen[-2]).max() <= 1.0
    finally:
        aggregate.select_exponential = kept


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: block_estimates(RECORDS, 3, 5, BOUNDS), ArgumentTypeError),
        (lambda: block_estimates(RECORDS, np.mean, 0, BOUNDS), DomainError),
        (lambda: block_estimates(RECORDS, np.mean, 5, (1.0, 1.0)), DomainError),
        (lambda: block_estimates(RECORDS, np.mean, 5, (0.0, math.nan)), DomainError),
        (lambda: block_estimates(RECORDS, np.mean, 5, 3.0), ArgumentTypeError),
        (lambda: private_block_mean([2.0], BOUNDS, noise_multiplier=1.0), DomainError),
        (lambda: private_block_mean([], BOUNDS, noise_multiplier=1.0), DomainError),
        (lambda: private_block_mean([0.0], BOUNDS, noise_multiplier=0.0), DomainError),
        (lambda: private_block_mean([0.0], BOUNDS, noise="x", noise_multiplier=1.0), DomainError),
        (lambda: private_block_median([0.0], BOUNDS, 0.0), DomainError),
        (lambda: private_block_median([0.0], BOUNDS, 1.0, candidates=1), DomainError),
    ],
)
def test_bad_input_is_refused(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_mean_has_the_noise_that_is_charged(noise):
    generator, blocks, multiplier = SecureGenerator(14), 8, 3.0
    found = [
        private_block_mean(
            np.full(blocks, 0.5),
            (0.0, 1.0),
            noise=noise,
            noise_multiplier=multiplier,
            rng=generator,
        )
        for _ in range(3000)
    ]
    off = np.array([each.value - 0.5 for each in found]) * blocks / multiplier
    size = np.abs(off).mean() if noise == "laplace" else math.sqrt((off**2).mean())
    assert size == pytest.approx(1.0, abs=0.1)
    kind = ac.Laplace if noise == "laplace" else ac.Gaussian
    assert found[0].mechanism == kind(multiplier)


def test_the_median_has_the_law_that_is_charged():
    """Two candidates, two estimates apart in score: the worse one with chance 1/(1 + e^ε)."""
    generator, epsilon, draws = SecureGenerator(15), 1.0, 3000
    found = [
        private_block_median(np.zeros(4), (0.0, 1.0), epsilon, candidates=2, rng=generator)
        for _ in range(draws)
    ]
    chance = 1.0 / (1.0 + math.exp(epsilon))
    worse = sum(each.value == 1.0 for each in found)
    assert abs(worse - draws * chance) < 6.0 * math.sqrt(draws * chance * (1.0 - chance))
    assert found[0].mechanism == ac.ExponentialMechanism(epsilon)
