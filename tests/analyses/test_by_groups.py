"""Parts that no one analysis serves: no looser than their groups, and never below the truth."""

import math

import pytest

import accountant as ac
from accountant.analyses.by_groups import ByGroups, groups_of
from accountant.composition.problems import problems_of

CURVES = [
    ac.ZCDP(0.1),
    ac.RenyiCurve.from_table((2.0, 4.0, 8.0), (0.1, 0.25, 0.7)),
    ac.DiscreteGaussianVector(2.5, sensitivity=0.7),
]
OTHERS = [
    ac.MixtureOfGaussians(1.0, sensitivities=(0.0, 2.0), probabilities=(0.99, 0.01)),
    ac.Laplace(1.5),
    ac.Gaussian(1e-3),
    20 * ac.PoissonSampled(ac.Gaussian(1.0), 0.01),
    ac.ApproximateDP(1.0, delta=1e-9),
]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("other", OTHERS, ids=repr)
@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_a_curve_beside_others_is_at_most_basic_composition(curve, other):
    whole = curve + other
    found = whole.epsilon_bounds(1e-6)
    assert found.lower >= other.epsilon_bounds(1e-6).lower
    assert found.upper <= (curve.epsilon(5e-7) + other.epsilon(5e-7)) * (1.0 + 1e-12)
    delta = whole.delta_bounds(2.0)
    assert delta.lower >= other.delta_bounds(2.0).lower
    assert delta.upper <= (curve.delta(1.0) + other.delta(1.0)) * (1.0 + 1e-12)


@pytest.mark.long
def test_a_curve_costs_no_less_than_the_noise_that_has_it():
    """zCDP with ρ = 1/2σ² covers Gaussian noise, which composes exactly with the others."""
    for other in (ac.Laplace(1.5), ac.Gaussian(1.0), ac.ApproximateDP(1.0, delta=1e-9)):
        stated, known = ac.ZCDP(0.125) + other, ac.Gaussian(2.0) + other
        for delta in (1e-10, 1e-6, 0.01):
            assert stated.epsilon(delta) >= known.epsilon_bounds(delta).lower
        for epsilon in (0.0, 0.5, 3.0):
            assert stated.delta(epsilon) >= known.delta_bounds(epsilon).lower


def test_groups_share_an_analysis():
    whole = ac.Gaussian(1e-3) + ac.Gaussian(2.0) + ac.Laplace(1.0) + ac.ZCDP(0.1)
    (parts,) = problems_of(whole)
    assert sorted(len(group) for group in groups_of(parts)) == [1, 1, 2]
    (solver,) = whole.profile().solvers()
    assert isinstance(solver, ByGroups)
    assert solver.name == "combined"
    # A line takes these together; they are compared one by one where its bracket is wide.
    (parts,) = problems_of(ac.Gaussian(2.0) + ac.Laplace(1.0))
    assert [len(group) for group in groups_of(parts)] == [1, 1]
    (solver,) = (ac.Gaussian(2.0) + ac.Laplace(1.0)).profile().solvers()
    assert solver.name == "smoothed line"
    assert math.isfinite(whole.epsilon(1e-6))


@pytest.mark.long
@pytest.mark.parametrize(
    "curve", [ac.ZCDP(0.1), ac.DiscreteGaussianVector(2.5, sensitivity=0.7)], ids=repr
)
def test_a_curve_beside_a_sample_of_several_releases_is_at_most_basic_composition(curve):
    """Neither has a loss distribution of its own, but one has a pair above its profile."""
    sample = 10**6 * ac.PoissonSampled(ac.Gaussian(2.0) + ac.Laplace(3.0), 0.1)
    found = (10**6 * curve + sample).epsilon_bounds(1e-6)
    most = (10**6 * curve).epsilon(5e-7) + sample.epsilon(5e-7)
    assert found.upper <= most * (1.0 + 1e-12)


def test_a_sharper_curve_beside_wide_losses_is_at_most_basic_composition():
    """The grid is narrow around a pair whose mechanism has a lower curve by another theorem."""
    parts = (
        3 * ac.DiscreteGaussian(0.7, sensitivity=3),
        1000 * ac.BestOfPoissonRuns(ac.Laplace(4.0), 3.0),
    )
    found = (parts[0] + parts[1]).epsilon_bounds(1e-6)
    most = sum(part.epsilon(0.5e-6) for part in parts)
    assert found.upper <= most * (1 + 1e-4)
    # What the pair costs is no lower end; what the noise costs is one.
    assert found.lower <= most
    assert found.lower >= 0.9999 * parts[0].epsilon_bounds(1e-6).lower
