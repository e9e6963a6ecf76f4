"""The batches are distributed as the theorems assume, at a fixed significance; amplification."""

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

from accountant import sampling
from accountant.errors import ArgumentTypeError, DomainError
from accountant.sampling import sampler as drawing

# One test in ten thousand would fail by chance; seeds are fixed, so none does from run to run.
SIGNIFICANCE = 1e-4


def uniform_p_value(counts):
    return stats.chisquare(counts).pvalue


def subset_counts(draw, population, size, repeats):
    """Count how often every subset comes up."""
    index = {subset: i for i, subset in enumerate(combinations(range(population), size))}
    counts = np.zeros(len(index))
    for _ in range(repeats):
        counts[index[tuple(draw(population, size).tolist())]] += 1
    return counts


def smallest_distinct(rng, population, size):
    """A mutant of ``distinct``: it keeps the smallest distinct values, not the first ones."""
    drawn = np.unique(rng.integers(population, size=size + size // 2 + 8))
    return drawn[:size]


@pytest.mark.long(keep=3)
@pytest.mark.parametrize(("population", "size"), [(6, 1), (6, 2), (7, 3), (6, 5), (5, 5), (9, 2)])
def test_subsets_are_uniform(population, size):
    rng = drawing.generator(11)
    counts = subset_counts(lambda n, k: drawing.distinct(rng, n, k), population, size, 6000)
    assert counts.size == comb(population, size)
    if counts.size > 1:
        assert uniform_p_value(counts) > SIGNIFICANCE


def test_the_mutant_is_not_uniform():
    rng = drawing.generator(11)
    counts = subset_counts(lambda n, k: smallest_distinct(rng, n, k), 9, 2, 6000)
    assert uniform_p_value(counts) < SIGNIFICANCE


@pytest.mark.parametrize("size", [0, 1, 499, 500, 501, 999, 1000])
def test_subsets_are_sorted_and_distinct(size):
    found = drawing.distinct(drawing.generator(3), 1000, size)
    assert found.dtype == np.int64
    assert found.size == size
    assert (np.diff(found) > 0).all()
    assert size == 0 or (found.min() >= 0 and found.max() < 1000)


def test_a_small_batch_of_many_records_is_cheap():
    found = drawing.distinct(drawing.generator(1), 10**15, 5)
    assert found.size == 5


def inclusion(sampler, seed=5):
    """Return batches as rows of a 0/1 matrix, (steps, records)."""
    rows = []
    for batch in sampler.batches(seed):
        row = np.zeros(sampler.dataset_size)
        np.add.at(row, batch, 1.0)
        rows.append(row)
    return np.array(rows)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("picks", [1, 2])
def test_random_allocation(picks):
    sampler = sampling.RandomAllocation(
        dataset_size=2, steps_per_epoch=4, epochs=8000, participations=picks
    )
    table = inclusion(sampler).reshape(8000, 4, 2)
    assert (table.sum(axis=1) == picks).all()
    index = {subset: i for i, subset in enumerate(combinations(range(4), picks))}
    joint = np.zeros((len(index), len(index)))
    for epoch in table:
        first, second = (index[tuple(np.flatnonzero(epoch[:, r]))] for r in (0, 1))
        joint[first, second] += 1
    # All pairs of picks equally likely: uniform, and independent of the other record.
    assert uniform_p_value(joint.ravel()) > SIGNIFICANCE


def test_shuffled_batches_partition_every_epoch():
    sampler = sampling.ShuffledBatches(dataset_size=7, batch_size=3, epochs=6000)
    batches = list(sampler.batches(2))
    assert len(batches) == sampler.steps == 18000
    assert [b.size for b in batches[:3]] == [3, 3, 1]
    place = np.zeros(3)
    for epoch in range(6000):
        three = batches[3 * epoch : 3 * epoch + 3]
        assert sorted(np.concatenate(three).tolist()) == list(range(7))
        place[[0 in b for b in three].index(True)] += 1
    assert stats.chisquare(place, 6000 * np.array([3, 3, 1]) / 7).pvalue > SIGNIFICANCE


def test_seeds():
    sampler = sampling.PoissonSampler(dataset_size=1000, sampling_probability=0.1, steps=3)
    same = [np.concatenate(list(sampler.batches(7))) for _ in range(2)]
    assert np.array_equal(*same)
    fresh = [np.concatenate(list(sampler.batches())) for _ in range(2)]
    assert not np.array_equal(*fresh)
    for bad in (-1, True, 1.5, "x"):
        with pytest.raises(ArgumentTypeError, match="seed must be"):
            list(sampler.batches(bad))


@pytest.mark.parametrize(
    "make",
    [
        lambda: sampling.FixedSizeSampler(dataset_size=10, batch_size=11, steps=1),
        lambda: sampling.WithReplacementSampler(dataset_size=10, batch_size=11, steps=1),
        lambda: sampling.ShuffledBatches(dataset_size=10, batch_size=11, epochs=1),
        lambda: sampling.CyclicBatches(dataset_size=10, batch_size=11, epochs=1),
        lambda: sampling.RandomAllocation(
            dataset_size=10, steps_per_epoch=3, epochs=1, participations=4
        ),
        lambda: sampling.PoissonSampler(dataset_size=10, sampling_probability=1.5, steps=1),
        lambda: sampling.PoissonSampler(dataset_size=0, sampling_probability=0.5, steps=1),
        lambda: sampling.FullBatch(dataset_size=10, steps=0),
    ],
)
def test_impossible_samplers_are_refused(make):
    with pytest.raises(DomainError, match="must be"):
        make()


@pytest.mark.parametrize("bad", [10.0, True, "10", None, np.array([1, 2])])
def test_counts_are_integers(bad):
    with pytest.raises(ArgumentTypeError, match="dataset_size must be"):
        sampling.FullBatch(dataset_size=bad, steps=1)


def test_a_loader_gets_the_batches_of_the_whole_run():
    from accountant.adapters.torch_batches import BatchSampler

    sampler = sampling.ShuffledBatches(dataset_size=7, batch_size=3, epochs=2)
    batches = BatchSampler(sampler, seed=4)
    assert len(batches) == 6
    assert list(batches) == [batch.tolist() for batch in sampler.batches(4)]
    with pytest.raises(ArgumentTypeError, match="sampler must be"):
        BatchSampler([[0, 1]])


@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 1.0, 20.0, 800.0])
@pytest.mark.parametrize("q", [1e-9, 0.01, 0.9])
@pytest.mark.parametrize("sampler", ["poisson", "fixed size"])
def test_amplify(epsilon, q, sampler):
    from mpmath import expm1, log1p

    found = sampling.amplify(epsilon, delta=1e-5, sampling_probability=q, sampler=sampler)
    with mp.workdps(40):
        exact = log1p(mpf(q) * expm1(mpf(epsilon)))
        assert mpf(found.epsilon) >= exact
        assert mpf(found.epsilon) <= exact * (1 + mpf(10) ** -9)
    assert Fraction(found.delta) >= Fraction(q) * Fraction(1e-5)


def test_amplify_at_the_ends():
    assert sampling.amplify(1.0, delta=1e-5, sampling_probability=1.0)[:2] == (1.0, 1e-5)
    assert sampling.amplify(1.0, delta=1e-5, sampling_probability=0.0)[:2] == (0.0, 0.0)
    assert sampling.amplify(0.0, delta=0.5, sampling_probability=0.5)[:2] == (0.0, 0.25)
