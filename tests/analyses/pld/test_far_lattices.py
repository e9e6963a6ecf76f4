"""Lattices of losses so large that their exponentials leave the doubles, against exact sums."""

import math

import pytest
from flint import arb
from mpmath import mp, mpf

import accountant as ac
from support.oracle import composed
from support.oracle import compositions as laws
from support.oracle.composed import ball, precision

CASES = [
    (ac.DiscreteGaussian(0.03), 5, lambda: laws.discrete_gaussian(0.03, 1, 7)),
    (ac.DiscreteGaussian(0.01), 3, lambda: laws.discrete_gaussian(0.01, 1, 7)),
    (ac.DiscreteGaussian(0.05), 20, lambda: laws.discrete_gaussian(0.05, 1, 7)),
    (ac.DiscreteLaplace(0.001), 5, lambda: laws.discrete_laplace(0.001, 1)),
    (ac.DiscreteLaplace(0.01, sensitivity=4), 6, lambda: laws.discrete_laplace(0.01, 4)),
    (ac.RandomizedResponse(400.0), 3, lambda: laws.response(400.0)),
    (ac.RandomizedResponse(350.0, k=7), 30, lambda: laws.response(350.0, 7)),
]


@pytest.mark.parametrize(("noise", "count", "atoms"), CASES)
def test_brackets(noise, count, atoms):
    with precision(400):
        rows = laws.on_lattice(atoms(), count)
        for delta in (0.3, 1e-5, 1e-10, 1e-60, 1e-200):
            found = (count * noise).epsilon_bounds(delta)
            assert not laws.profile(rows, found.upper) > ball(delta)
            # Below the lower end the profile is above δ.
            below = math.nextafter(found.lower, 0.0)
            assert below <= 0.0 or not laws.profile(rows, below) < ball(delta)


@pytest.mark.parametrize(("noise", "count", "atoms"), CASES)
def test_profiles(noise, count, atoms):
    with precision(400):
        rows = laws.on_lattice(atoms(), count)
        ends = sorted(float((p / q).log()) for p, q in rows if p > q)
        for end in ends[:: max(len(ends) // 6, 1)]:
            for epsilon in (0.4 * end, 0.999 * end, end - 3.0, end - 1e-3, end + 1.0):
                truth = laws.profile(rows, max(epsilon, 0.0))
                found = (count * noise).delta_bounds(max(epsilon, 0.0))
                assert not arb(found.lower) > truth
                assert not arb(found.upper) < truth


@pytest.mark.parametrize("bound", [400.0, 650.0, 2000.0])
def test_sampled_far_losses(bound):
    """A sample of response: log(1 - q + q e^ε), twice, by the four outcomes."""
    q = 0.25
    found = 2 * ac.PoissonSampled(ac.RandomizedResponse(bound), q)
    with precision(400):
        law = laws.power(laws.sampled(laws.response(bound), q, False), 2)
        for epsilon in (0.0, 1.0, 0.5 * bound, bound - 1.0, bound + 2.0, 2 * bound - 5.0):
            truth = laws.profile(law, epsilon)
            bracket = found.delta_bounds(epsilon)
            assert not arb(bracket.upper) < truth
            # Addition never has losses above -log(1 - q), so removal is the worse direction.
            assert epsilon < 1.0 or not arb(bracket.lower) > truth


def test_the_oracle_agrees_with_another():
    with precision(400):
        rows = laws.on_lattice(laws.response(1.5), 7)
        for epsilon in (0.1, 1.6, 5.0):
            other = composed.randomized_response(1.5, 7, epsilon)
            assert laws.profile(rows, epsilon).overlaps(other)


@pytest.mark.parametrize("size", [1e150, 1e151, 1e154, 1e300, 1e308])
def test_losses_beyond_every_tilt_are_bounded_by_their_sum(size):
    """Their squares leave the doubles: it was an OverflowError."""
    for one in (
        ac.PureDP(size),
        ac.ExponentialMechanism(size),
        ac.PureDP(size) + ac.Laplace(1.0),
        ac.DiscreteLaplace(1.0 / size) + ac.Gaussian(1.0),
        ac.ApproximateDP(size, delta=1e-6) + ac.Gaussian(1.0),
    ):
        found = (3 * one).epsilon_bounds(1e-3)
        assert found.lower <= 3.0 * size * (1.0 - 1e-9) <= found.upper
        assert found.upper <= 3.0 * size * (1.0 + 1e-9)
        assert (3 * one).delta(1.0) >= 0.99


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(("rate", "delta"), [(3.2e-154, 1e-200), (0.2, 5e-324), (1e-219, 2e-308)])
def test_a_faint_infinite_mass_is_in_no_lower_end(rate, delta, count):
    """δ at any ε is at most the chance of a used record times all that tells it."""
    sampled = count * ac.PoissonSampled(ac.ApproximateDP(1e-308, delta=delta), rate)
    with mp.workdps(700):
        most = count * mpf(rate) * (mpf(delta) + mpf(1e-308))
        for epsilon in (0.0, 1e-320, 1e-137):
            found = sampled.delta_bounds(epsilon)
            assert mpf(found.lower) <= most
            assert found.upper > 0.0
