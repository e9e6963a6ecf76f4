"""Shuffled, cyclic and full batches: what placements and closed forms say."""

import itertools
import math

import numpy as np
import pytest

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant import sampling


@pytest.mark.long
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


AXIS = np.linspace(-9.0, 9.0, 241)
CELL = (AXIS[1] - AXIS[0]) ** 2


def normal(mean, noise):
    return np.exp(-0.5 * ((AXIS - mean) / noise) ** 2) / noise / math.sqrt(2.0 * math.pi)


def two_batches(contributions, noise):
    """The density of an epoch of two batches on a grid; ``contributions`` come first."""
    size = len(contributions) // 2
    placements = list(itertools.permutations(contributions))
    found = np.zeros((AXIS.size, AXIS.size))
    for placed in placements:
        first, second = sum(placed[:size]), sum(placed[size:])
        found += np.multiply.outer(normal(first, noise), normal(second, noise))
    return found / len(placements)


@pytest.mark.parametrize("noise", [1.0, 1.6])
@pytest.mark.parametrize("records", [2, 4])
def test_two_batches_vary_by_no_more_than_the_second_moment(records, noise):
    """All contributions of one dimension from a grid, by quadrature."""
    for relation, other in ((Relation.ZERO_OUT, 0.0), (Relation.REPLACE_ONE, -1.0)):
        bound = sampling.ShuffledBatches(
            dataset_size=records, batch_size=records // 2, epochs=1, relation=relation
        ).variation_bound(noise)
        worst = 0.0
        for others in itertools.combinations_with_replacement((-1.0, 0.0, 1.0), records - 1):
            one, two = (two_batches((own, *others), noise) for own in (1.0, other))
            worst = max(worst, 0.5 * float(np.abs(one - two).sum()) * CELL)
        assert 0.3 * bound < worst <= bound or bound == 1.0


def test_contributions_that_follow_the_outputs_vary_by_no_more():
    """One record a batch; in the second one both contribute against what was released."""
    noise = 1.5
    bound = sampling.ShuffledBatches(dataset_size=2, batch_size=1, epochs=1).variation_bound(noise)
    for first, second, late in itertools.product((-1.0, 0.0, 1.0), repeat=3):
        signs = np.sign(AXIS)
        densities = []
        for own in (1.0, 0.0):
            total = np.zeros((AXIS.size, AXIS.size))
            for mine in (True, False):
                released = normal(own if mine else first, noise)
                later = second * signs if mine else own * late * signs
                row = np.exp(-0.5 * ((AXIS[None, :] - later[:, None]) / noise) ** 2)
                total += 0.5 * released[:, None] * row / noise / math.sqrt(2.0 * math.pi)
            densities.append(total)
        assert 0.5 * float(np.abs(densities[0] - densities[1]).sum()) * CELL <= bound


@pytest.mark.long
def test_no_data_of_two_batches_lose_more_than_all_others_opposite():
    """What the lower end assumes: the others' contributions are opposite to the record's."""
    for noise, epsilon in ((0.7, 1.5), (1.0, 0.5), (1.6, 0.5)):
        found = {}
        for others in itertools.combinations_with_replacement((-1.0, -0.5, 0.0, 0.5, 1.0), 3):
            one, two = (two_batches((own, *others), noise) for own in (1.0, 0.0))
            gain = float(np.maximum(one - math.exp(epsilon) * two, 0.0).sum()) * CELL
            found[others] = gain
        assert max(found, key=found.__getitem__) == (-1.0, -1.0, -1.0)


def test_the_published_point_of_random_reshuffling():
    """σ = 1 and 1.14 million batches: at most 1/100; the bounds of the page are .0051 and .0076."""
    for relation, least, most in (
        (Relation.ZERO_OUT, 0.0050, 0.0051),
        (Relation.REPLACE_ONE, 0.0075, 0.0076),
    ):
        sampler = sampling.ShuffledBatches(
            dataset_size=11_400_000, batch_size=10, epochs=1, relation=relation
        )
        assert least < sampler.variation_bound(1.0) < most
        # What data reach is below.
        for witness in sampler.worst_case_instances(1.0)[:1]:
            assert witness.mechanism.delta_bounds(0.0).lower < sampler.variation_bound(1.0)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("steps", "epochs", "noise"), [(100, 1, 1.0), (1000, 10, 0.8), (50, 3, 3.0)]
)
def test_equal_contributions_vary_like_the_root_of_the_epochs(steps, epochs, noise):
    bound = 0.5 * math.sqrt((1.0 + math.expm1(noise**-2) / steps) ** epochs - 1.0)
    reached = (epochs * sampling.Allocated(noise, steps=steps)).delta_bounds(0.0)
    assert 0.6 * bound < reached.lower <= bound


@pytest.mark.parametrize("noise", [1e-300, 0.05, 0.3, 1e10, 1e300])
def test_variation_at_extremes(noise):
    for relation in (Relation.ZERO_OUT, Relation.REPLACE_ONE):
        sampler = sampling.ShuffledBatches(
            dataset_size=100, batch_size=10, epochs=2, relation=relation
        )
        found = sampler.variation_bound(noise)
        assert 0.0 < found <= 1.0
        assert noise < 1.0 or found < 1e-9


def test_a_smaller_last_batch_has_no_bound_on_its_variation():
    sampler = sampling.ShuffledBatches(dataset_size=10, batch_size=3, epochs=1)
    with pytest.raises(ac.DomainError, match="batch_size must divide"):
        sampler.variation_bound(1.0)


@pytest.mark.parametrize("relation", [Relation.ZERO_OUT, Relation.REPLACE_ONE])
@pytest.mark.parametrize("epochs", [1, 4, 16])
def test_data_sets_differ_by_no_more_than_the_bound_on_variation(epochs, relation):
    sampler = sampling.ShuffledBatches(
        dataset_size=3000, batch_size=1, epochs=epochs, relation=relation
    )
    bound = sampler.variation_bound(1.5)
    assert bound < 1.0
    for instance in sampler.worst_case_instances(1.5):
        assert float(instance.mechanism.delta_bounds(0.0).lower) - instance.excess <= bound
