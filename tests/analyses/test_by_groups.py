"""Parts that no one analysis serves: no looser than their groups, never below laws in balls."""

import math
from functools import partial

import pytest
from flint import arb

import accountant as ac
from accountant.analyses.by_groups import Apart, ByGroups, groups_of
from accountant.composition.problems import problems_of
from support.oracle import composed
from support.oracle import compositions as laws

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


def truth(mu, fails, epsilon, bits=1400):
    """Return m + (1 - m)·H of Gaussian noise, for m the probability that any release fails."""
    with composed.precision(bits):
        none = math.prod(((1 - arb(x)) ** n for x, n in fails), start=arb(1))
        return (1 - none) + none * composed.gaussian(mu, epsilon, bits=bits)


@pytest.mark.parametrize("count", [1, 7, 100_000])
@pytest.mark.parametrize("failure", [1e-300, 1e-12, 2.0**-20, 0.3])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 3.0])
def test_failures_are_exact_beside_gaussian_noise(count, failure, epsilon):
    whole = ac.Gaussian(2.0) + count * ac.ApproximateDP(0.0, delta=failure)
    exact = truth(0.5, [(failure, count)], epsilon)
    found = whole.delta_bounds(epsilon)
    with composed.precision(1400):
        assert not arb(found.lower) > exact
        assert not arb(found.upper) < exact
        assert arb(found.upper) <= exact * (1 + arb(1e-12))


@pytest.mark.parametrize(("count", "failure"), [(1, 2.0**-20), (1000, 1e-10), (3, 1e-7)])
def test_epsilon_uses_what_the_failures_leave(count, failure):
    whole = ac.Gaussian(2.0) + count * ac.ApproximateDP(0.0, delta=failure)
    found = whole.epsilon_bounds(1e-6)
    with composed.precision(1400):
        assert not truth(0.5, [(failure, count)], found.upper) > arb(1e-6)
        assert not truth(0.5, [(failure, count)], found.lower) < arb(1e-6)
    assert found.upper - found.lower <= 1e-9 * found.upper


def test_more_failures_than_delta_leave_no_epsilon():
    for other in (ac.Gaussian(2.0), ac.ZCDP(0.1), ac.Laplace(1.0), ac.Gaussian(math.inf)):
        whole = other + 1000 * ac.ApproximateDP(0.0, delta=1e-8)
        assert whole.epsilon_bounds(1e-6) == ac.Bounds(math.inf, math.inf)
        assert (other + ac.ApproximateDP(0.0, delta=1e-8)).epsilon(1e-6) < math.inf
        assert whole.epsilon(0.0) == math.inf


@pytest.mark.parametrize("rate", [1e-310, 1e-300, 1e-200, 1e-30])
@pytest.mark.parametrize(
    "other",
    [ac.Laplace(2.0), ac.ZCDP(0.1), ac.Gaussian(1.0), ac.ApproximateDP(0.1, delta=1e-9)],
    ids=repr,
)
def test_what_is_seldom_seen_costs_nothing_to_speak_of(rate, other):
    alone = other.epsilon_bounds(1e-6), other.delta_bounds(0.3)
    for seldom in (ac.PoissonSampled(ac.Gaussian(2.0), rate), ac.PoissonSampled(other, rate)):
        whole = other + 1000 * seldom
        for found, known in zip(
            (whole.epsilon_bounds(1e-6), whole.delta_bounds(0.3)), alone, strict=True
        ):
            assert known.lower * (1.0 - 1e-5) <= found.upper <= known.upper * (1.0 + 1e-5)
            assert found.lower <= known.upper


def test_a_small_delta_does_not_leave_them_out():
    """Where δ is not large beside what they add, they are analysed."""
    seldom = ac.PoissonSampled(ac.Gaussian(0.5), 1e-20)
    whole = ac.Gaussian(2.0) + 1000 * seldom
    assert whole.epsilon(1e-19) >= (1000 * seldom).epsilon_bounds(1e-19).lower > 0.0


def test_it_is_chosen_for_such_parts_alone():
    def chosen(mechanism):
        return [isinstance(one, Apart) for one in mechanism.profile().solvers()]

    assert all(chosen(ac.Gaussian(2.0) + ac.ApproximateDP(0.0, delta=1e-8)))
    assert not any(chosen(ac.Gaussian(2.0) + ac.ApproximateDP(0.1, delta=1e-8)))


@pytest.mark.parametrize("count", [1, 2, 3, 1000, 2**53])
@pytest.mark.parametrize("delta", [5e-324, 2.34447256e-315, 2.3e-308, 1e-300, 1e-17, 0.5])
def test_what_fails_is_bracketed_at_any_scale(count, delta):
    """1 - (1 - δ)^n, exactly: factors next to 1 lower no subnormal number."""
    found = (count * ac.ApproximateDP(0.0, delta=delta)).delta_bounds(0.3)
    with composed.precision(4096):
        truth = -(count * (-arb(delta)).log1p()).expm1()
        assert not arb(found.lower) > truth
        assert not arb(found.upper) < truth


LARGE = 60.0  # a response so sure that even a seldom sampled one tells the record


def beside_two_responses(rate, epsilon):
    """Return the δ of both directions of noise of scale 2 and two sampled responses."""
    law, noise = laws.response(LARGE), partial(composed.gaussian, 0.5, bits=1400)
    ways = (laws.sampled(law, rate, add) for add in (False, True))
    return [laws.profile(laws.power(way, 2), epsilon, noise) for way in ways]


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("rate", [1e-17, 3e-16, 1e-13, 3e-11])
def test_rare_responses_are_bracketed_beside_gaussian_noise(rate):
    """Also where they are left out, and noise alone is known to more digits than they change."""
    whole = ac.Gaussian(2.0) + 2 * ac.PoissonSampled(ac.RandomizedResponse(LARGE), rate)
    found = whole.epsilon_bounds(1e-7)
    again = whole.delta_bounds(found.upper)
    with composed.precision(1400):
        high, low = (beside_two_responses(rate, end) for end in (found.upper, found.lower))
        assert all(not end > arb(1e-7) for end in high)
        assert any(not end < arb(1e-7) for end in low)
        assert all(not arb(again.upper) < end for end in high)
        assert any(not arb(again.lower) > end for end in high)
    assert found.upper - found.lower <= 3e-6 * found.upper
    assert again.upper - again.lower <= 3e-5 * again.upper
