"""Shuffled, cyclic and full batches: what placements and closed forms say."""

import math

import numpy as np
import pytest

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant import sampling


@pytest.mark.parametrize(("records", "batch"), [(4, 2), (6, 2), (6, 3), (5, 2)])
def test_shuffled_one_epoch_by_enumeration(records, batch):
    """All placements of the record; outputs compared through the largest and the mean release."""
    noise, delta = 0.8, 1e-3
    bounds = sampling.ShuffledBatches(
        dataset_size=records, batch_size=batch, epochs=1
    ).epsilon_bounds(noise, delta)
    exact = ac.Gaussian(noise, relation=Relation.ZERO_OUT).epsilon(delta)
    assert bounds.upper == exact
    assert 0.0 < bounds.lower <= bounds.upper
    # One batch that holds everything is one Gaussian release.
    assert (
        sampling.ShuffledBatches(dataset_size=6, batch_size=6, epochs=1)
        .epsilon_bounds(noise, delta)
        .lower
        >= 0.99 * exact
    )


def test_the_largest_release_is_a_true_lower_bound():
    """Two batches: the profile of the full pair by quadrature is above that of its maximum."""
    noise, epsilon = 0.7, 1.0
    x = np.linspace(-6.0, 8.0, 1401)
    a, b = np.meshgrid(x, x, indexing="ij")

    def density(u, v):
        return np.exp(-0.5 * ((a - u) ** 2 + (b - v) ** 2) / noise**2)

    p = 0.5 * (density(2, 0) + density(0, 2))
    q = 0.5 * (density(1, 0) + density(0, 1))
    scale = (x[1] - x[0]) ** 2 / (2 * math.pi * noise**2)
    witness = (
        sampling.ShuffledBatches(dataset_size=4, batch_size=2, epochs=1)
        .worst_case_instances(noise)[1]
        .mechanism
    )
    for first, second, pair in zip((p, q), (q, p), _pairs(witness), strict=True):
        truth = float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum()) * scale
        found = pair.profile(epsilon)
        assert found.lower <= truth * (1 + 1e-6)
        assert found.lower >= 0.5 * truth


def _pairs(composition):
    from accountant.composition.problems import counted_alternatives, directions

    (alternative,) = counted_alternatives(composition)
    return [parts[0][0] for parts in directions(alternative)]


def test_a_poisson_account_of_a_shuffled_run_is_wrong():
    table = ac.compare_samplers(
        dataset_size=10_000,
        batch_size=100,
        epochs=10,
        noise_multiplier=1.0,
        delta=1e-5,
        samplers=["poisson", "shuffled"],
    )
    poisson, shuffled = table.rows
    assert shuffled.lower > 4 * poisson.upper


def test_closed_forms():
    plain = ac.Gaussian(2.0)
    assert sampling.FullBatch(dataset_size=10, steps=9).epsilon(2.0, 1e-5) == (9 * plain).epsilon(
        1e-5
    )
    cyclic = sampling.CyclicBatches(dataset_size=10, batch_size=5, epochs=9).epsilon_bounds(
        2.0, 1e-5
    )
    assert cyclic.upper == (9 * plain).epsilon(1e-5)
    assert cyclic.lower >= cyclic.upper * (1 - 1e-9)
    assert sampling.PoissonSampler(dataset_size=10, sampling_probability=0.1, steps=50).epsilon(
        2.0, 1e-5
    ) == ac.get_epsilon(0.1, 2.0, 50, 1e-5)
