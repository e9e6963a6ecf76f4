"""How far grids are refined, and that large ones of several parts stop nearly as narrow."""

import math

import pytest

import accountant as ac
from accountant import sampling
from accountant.analyses import pld
from accountant.analyses.pld import composed
from accountant.analyses.pld.refinement import LONG, finer, is_steady, most_excess
from accountant.derived.joint import JointRelease
from accountant.derived.sampled_replacement import SampledReplacement
from support.every_mechanism import by_density


def test_small_grids_must_be_as_narrow_as_wanted():
    assert most_excess(2**12, 1, 1e-6) == most_excess(2**30, 1, 1e-4) == 1.0
    assert most_excess(2**20, 1, 1e-6) == most_excess(2**19, 2, 1e-6) == 5.0
    assert most_excess(2**21 + 1, 2, 1e-6) == 10.0
    assert most_excess(2**22, 1, 1e-6) == 5.0


@pytest.mark.parametrize("excess", [1.01, 4.0, 100.0, 1e9, math.inf])
@pytest.mark.parametrize("size", [2**10, 2**18, 2**22])
def test_the_next_grid_is_finer(excess, size):
    for parts in (1, 2):
        ratio = finer(excess, size, parts, 1e-6)
        assert (0.125 if parts == 1 or size < 2**17 else 0.04) <= ratio <= 0.7
        assert ratio >= finer(excess, size, parts, 1e-4)


def test_a_width_that_fell_too_little_leads_to_no_huge_grid():
    assert is_steady(1.0 / 64.0, 1.0 / 8.0)
    assert not is_steady(1.0 / 8.0, 1.0 / 8.0)
    assert finer(5e3, 2**17, 2, 1e-6) == 0.04
    assert finer(5e3, 2**17, 2, 1e-6, steady=False) == 0.125
    assert finer(5e3, LONG // 4, 2, 1e-6, steady=False) == finer(5e3, LONG // 4, 2, 1e-6)


@pytest.mark.long
def test_losses_on_two_lattices_need_no_huge_grid():
    """The second width, 5,000 tolerances, told nothing; a third grid had three million points."""
    noise = ac.MixtureOfGaussians(
        1.0, sensitivities=(0.0, 1.0, 2.0), probabilities=(0.96, 0.03, 0.01)
    )
    some = ac.Laplace(2.0, relation=ac.NeighbouringRelation.REPLACE_ONE)
    release = 3 * noise.under(ac.NeighbouringRelation.ZERO_OUT) + 1000 * SampledReplacement(
        some, 0.1, relation=ac.NeighbouringRelation.ZERO_OUT
    )
    sizes = []
    law = composed.law_within

    def seen(*given):
        found = law(*given)
        sizes.append(found[0].size)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composed, "law_within", seen)
        found = release.epsilon_bounds(1e-9)
    pairs = 25.532778571450283  # of the stated pairs, within 1e-6; fewer data reach the lower end
    assert found.lower <= pairs <= found.upper <= pairs * (1.0 + 1e-6)
    assert max(sizes) <= 2**20


@pytest.mark.long
def test_two_parts_that_need_large_grids_end_within_five_times_the_tolerance():
    drawn = ac.sampling.WithReplacementSampled(1.0, batch_size=256, dataset_size=60_000)
    release = 3 * drawn + 1000 * ac.PoissonSampled(ac.DiscreteGaussian(1), 0.01)
    found = release.epsilon_bounds(1e-5)
    finest = (2.8944405626103915, 2.8944423062242137)  # of grids three times as fine
    assert found.lower <= finest[1]
    assert found.upper >= finest[0]
    assert found.upper - found.lower <= 5e-6 * found.upper


@pytest.mark.long
def test_a_long_grid_of_two_parts_is_the_second():
    """There was a third one, of eight million points."""
    drawn = ac.sampling.WithReplacementSampled(1.4031, batch_size=121, dataset_size=20_913)
    noise = ac.Laplace(0.763, sensitivity=1.6643)
    release = 11_508 * drawn + 44_859 * ac.PoissonSampled(noise, 0.05478)
    sizes = []
    law = composed.law_within

    def seen(*given):
        found = law(*given)
        sizes.append(found[0].size)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composed, "law_within", seen)
        found = release.epsilon_bounds(2.7e-8)
    assert found.upper - found.lower <= 1e-5 * found.upper
    assert len([size for size in sizes if size > 2**20]) <= 1


def test_masses_hardly_above_nothing_get_no_finer_grid(monkeypatch):
    """At δ = 1e-300 finer grids took ten times as long and moved the bracket by 1e-4."""
    grids = []
    plan = composed.Composed._plan
    monkeypatch.setattr(
        composed.Composed, "_plan", lambda self, *given: grids.append(1) or plan(self, *given)
    )
    release = 3 * ac.PoissonSampled(ac.DiscreteGaussian(2.0), 0.013)
    found = release.epsilon_bounds(1e-300)
    assert found.upper - found.lower <= 0.01 * found.upper
    assert 0 < len(grids) <= 4


@pytest.fixture
def sizes(monkeypatch):
    """The sizes of the grids that are tried from now on."""
    found = []
    law = composed.law_within

    def seen(*given):
        one = law(*given)
        found.append(one[0].size)
        return one

    monkeypatch.setattr(composed, "law_within", seen)
    return found


def pairs_of(*mechanisms):
    """Return the first direction of each, a million times."""
    return [(each.pairs()[0], 10**6) for each in mechanisms]


def test_where_no_upper_end_is_finite_the_lower_end_is_as_near_as_finite_losses_allow(sizes):
    parts = pairs_of(by_density(infinite=1e-10), ac.Laplace(2.0))
    found = pld.epsilon_bounds(parts, 1e-5)
    assert found.upper == math.inf
    # A grid of half a billion points says 611213.17.
    assert 611213.18 * (1.0 - 1e-5) <= found.lower <= 611213.18
    assert max(sizes) <= 2**23


def test_upper_ends_alone_that_are_infinite_take_one_grid(sizes):
    parts = pairs_of(by_density(infinite=1e-10), ac.Laplace(2.0))
    found = composed.Composed(parts, upper_alone=True).epsilon_bounds(1e-5)
    assert (found.lower, found.upper) == (0.0, math.inf)
    assert len(sizes) == 1


def test_an_answer_beyond_the_window_is_looked_for_next_to_it(sizes):
    """Rough chords move it far; the largest loss, which was looked at, is twice as large."""
    parts = pairs_of(
        ac.AboveThreshold(2.0, query_scale=4.0, positives=3), sampling.Allocated(5.0, steps=4)
    )
    grid = composed.Composed(parts, tolerance=0.01, upper_alone=True)
    found = grid.epsilon_bounds(1e-5)
    assert 1533798.0 <= found.upper <= 1533798.0 * 1.02
    assert max(sizes) <= 2**17


@pytest.mark.long
def test_many_losses_on_no_common_lattice_need_no_huge_grid(sizes):
    parts = pairs_of(ac.DiscreteGaussian(2.5), JointRelease(ac.Gaussian(2.0) + ac.PureDP(0.1)))
    sizes.clear()
    found = pld.epsilon_bounds(parts, 1e-5)
    assert found.upper - found.lower <= 1e-6 * found.upper
    assert max(sizes) <= 2**25
