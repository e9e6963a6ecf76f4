"""How far grids are refined, and that large ones of several parts stop nearly as narrow."""

import math

import pytest

import accountant as ac
from accountant import sampling
from accountant.analyses import pld
from accountant.analyses.pld import composed, upper
from accountant.derived.joint import JointRelease, SampledReplacement
from support.every_mechanism import by_density


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
