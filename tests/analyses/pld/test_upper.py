"""Upper ends next to a largest loss that is heavy, and how far grids are refined."""

import math
import random

import pytest
from flint import arb, ctx

import accountant as ac
from accountant import sampling
from accountant.analyses import pld
from accountant.analyses.pld import composed, upper
from accountant.analyses.pld.upper import UpperEnds
from accountant.derived.joint import JointRelease, SampledReplacement
from support.every_mechanism import by_density
from support.oracle import compositions as laws

SCALES = {
    (5, 2): (1.6213792074223445, [5.957388791102849]),
    (5, 3): (1.9321027262295711, [7.700900755127979]),
    (4, 3): (3.3268289126485127, [3.49512598755255]),
    (6, 2): (0.5495878708417127, [21.82532522462223, 21.8]),
    (1000, 1): (2.0, [499.9]),
}


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(200):
        yield


def check(count, distance, scale, epsilon):
    truth = laws.profile(laws.on_lattice(laws.discrete_laplace(scale, distance), count), epsilon)
    noise = ac.DiscreteLaplace(scale, sensitivity=distance)
    upper, bounds = (count * noise).delta(epsilon), (count * noise).delta_bounds(epsilon)
    for end in (upper, bounds.upper):
        assert arb(end) >= truth
    assert arb(bounds.lower) <= truth
    # As near as a millionth of ε means for δ, which falls by a unit of ε in this slope.
    top = count * distance / scale
    near = 1e-6 * max(1.0, epsilon / (top - epsilon))
    assert upper <= float(truth.mid()) * (1.0 + near)


@pytest.mark.parametrize(("count", "distance"), SCALES)
def test_next_to_a_heavy_largest_loss_the_profile_is_near_its_truth(count, distance):
    scale, places = SCALES[count, distance]
    for epsilon in places:
        check(count, distance, scale, epsilon)


@pytest.mark.long(keep=20)
@pytest.mark.parametrize("seed", range(400))
def test_random_places_below_a_heavy_largest_loss(seed):
    rng = random.Random(f"heavy largest losses {seed}")
    count, distance = rng.randint(2, 12), rng.choice((1, 2, 3))
    scale = 10.0 ** rng.uniform(-0.5, 0.8)
    share = 1.0 - 10.0 ** rng.uniform(-6.0, -0.3)
    check(count, distance, scale, share * count * distance / scale)


def test_an_upper_end_does_not_depend_on_questions_about_small_losses_before_it():
    """A law that was planned for ε = 0 answers for a δ whose ε is far above."""
    parts = ((ac.PureDP(0.1).pairs()[0], 3),)
    ends = UpperEnds(parts)
    known = UpperEnds(parts).epsilon_upper(1e-5)
    ends.epsilon_upper(1e-5)
    for epsilon in (0.0, 0.1, 0.2):
        ends.delta_upper(epsilon)
    assert ends.epsilon_upper(1e-5 * (1.0 - 1e-9)) <= known * (1.0 + 1e-6)


@pytest.fixture
def sizes(monkeypatch):
    """The sizes of the grids that are tried from now on."""
    found = []
    law = upper.UpperEnds._law

    def seen(*given):
        one = law(*given)
        found.append(one.size)
        return one

    monkeypatch.setattr(upper.UpperEnds, "_law", seen)
    return found


@pytest.mark.long
def test_losses_on_two_lattices_need_no_huge_grid(sizes):
    """The second width, 5,000 tolerances, told nothing; a third grid had three million points."""
    noise = ac.MixtureOfGaussians(
        1.0, sensitivities=(0.0, 1.0, 2.0), probabilities=(0.96, 0.03, 0.01)
    )
    some = ac.Laplace(2.0, relation=ac.NeighbouringRelation.REPLACE_ONE)
    release = 3 * noise.under(ac.NeighbouringRelation.ZERO_OUT) + 1000 * SampledReplacement(
        some, 0.1, relation=ac.NeighbouringRelation.ZERO_OUT
    )
    found = release.epsilon_bounds(1e-9)
    # Upper ends of grids eight times as fine, and of this one when it was first drawn.
    finest, first = 25.53243220392003, 25.532778571450283
    assert found.lower <= finest
    assert found.upper <= first * (1.0 + 1e-6)
    assert max(sizes) <= 2**20


@pytest.mark.long
def test_two_parts_that_need_large_grids_have_a_near_upper_end():
    drawn = ac.sampling.WithReplacementSampled(1.0, batch_size=256, dataset_size=60_000)
    release = 3 * drawn + 1000 * ac.PoissonSampled(ac.DiscreteGaussian(1), 0.01)
    found = release.epsilon_bounds(1e-5)
    finest = (2.8944405626103915, 2.8944423062242137)  # of grids three times as fine
    assert found.lower <= finest[1]
    assert finest[0] <= found.upper <= finest[1] * (1.0 + 2e-6)
    assert found.upper - found.lower <= 1e-3 * found.upper


@pytest.mark.long
def test_two_parts_that_need_long_grids_get_two_at_most(sizes):
    """There was a third one, of eight million points."""
    drawn = ac.sampling.WithReplacementSampled(1.4031, batch_size=121, dataset_size=20_913)
    noise = ac.Laplace(0.763, sensitivity=1.6643)
    release = 11_508 * drawn + 44_859 * ac.PoissonSampled(noise, 0.05478)
    found = release.epsilon_bounds(2.7e-8)
    assert found.upper - found.lower <= 1e-4 * found.upper
    assert len([size for size in sizes if size > 2**20]) <= 2


def pairs_of(*mechanisms):
    """Return the first direction of each, a million times."""
    return [(each.pairs()[0], 10**6) for each in mechanisms]


def test_upper_ends_that_are_infinite_take_no_grid(sizes):
    parts = pairs_of(by_density(infinite=1e-10), ac.Laplace(2.0))
    found = composed.Composed(parts).epsilon_upper(1e-5)
    assert found == math.inf
    assert not sizes


def test_an_answer_beyond_the_window_is_looked_for_next_to_it(sizes):
    """Rough chords move it far; the largest loss, which was looked at, is twice as large."""
    parts = pairs_of(
        ac.AboveThreshold(2.0, query_scale=4.0, positives=3), sampling.Allocated(5.0, steps=4)
    )
    grid = composed.Composed(parts, tolerance=0.01)
    found = grid.epsilon_upper(1e-5)
    assert 1533798.0 <= found <= 1533798.0 * 1.02
    assert max(sizes) <= 2**17


@pytest.mark.long
def test_many_losses_on_no_common_lattice_need_no_huge_grid(sizes):
    parts = pairs_of(ac.DiscreteGaussian(2.5), JointRelease(ac.Gaussian(2.0) + ac.PureDP(0.1)))
    sizes.clear()
    found = pld.epsilon_bounds(parts, 1e-5, tolerance=1e-4)
    assert found.upper - found.lower <= 1e-4 * found.upper
    assert max(sizes) <= 2**25
