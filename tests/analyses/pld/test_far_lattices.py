"""Lattices of losses so large that their exponentials leave the doubles, against exact sums."""

from __future__ import annotations

import math

import pytest
from flint import arb
from mpmath import mp, mpf

import accountant as ac
from tests.support.oracle import composed
from tests.support.oracle.composed import ball, precision


def gaussian_atoms(sigma):
    """Losses and masses of discrete Gaussian noise on an integer that a record moves by one."""
    sigma = ball(sigma)
    weights = {x: (-((x - 1) ** 2) / (2 * sigma**2)).exp() for x in range(-6, 9)}
    total = sum(weights.values(), arb(0))
    return [((2 * x - 1) / (2 * sigma**2), w / total) for x, w in weights.items()]


def laplace_atoms(scale, shift):
    """The same of discrete Laplace noise: the ends carry the tails."""
    r = (-1 / ball(scale)).exp()
    peak = (1 - r) / (1 + r)
    inner = [(ball(2 * x - shift) / ball(scale), peak * r ** (shift - x)) for x in range(1, shift)]
    low, high = r**shift / (1 + r), 1 / (1 + r)
    return [(-shift / ball(scale), low), *inner, (shift / ball(scale), high)]


def response_atoms(bound, k):
    down = (-ball(bound)).exp()
    total = 1 + (k - 1) * down
    rows = [(-ball(bound), down / total), (ball(bound), 1 / total)]
    return rows if k == 2 else [*rows, (arb(0), (k - 2) * down / total)]


def sums(atoms, count):
    """All sums of ``count`` losses, merged by their place in the lattice, and their masses."""
    found = {0: (arb(0), arb(1))}
    base = atoms[0][0]
    step = atoms[1][0] - base
    places = [round(float((loss - base) / step)) for loss, _ in atoms]
    for _ in range(count):
        following = {}
        for place, (loss, mass) in found.items():
            for index, (more, weight) in zip(places, atoms, strict=True):
                old = following.get(place + index)
                total = mass * weight + (arb(0) if old is None else old[1])
                following[place + index] = (loss + more, total)
        found = following
    return list(found.values())


def profile(rows, epsilon):
    total, end = arb(0), ball(epsilon)
    for loss, mass in rows:
        if not loss < end:
            total += mass * composed.positive(-(end - loss).expm1())
    return total


CASES = [
    (ac.DiscreteGaussian(0.03), 5, lambda: gaussian_atoms(0.03)),
    (ac.DiscreteGaussian(0.01), 3, lambda: gaussian_atoms(0.01)),
    (ac.DiscreteGaussian(0.05), 20, lambda: gaussian_atoms(0.05)),
    (ac.DiscreteLaplace(0.001), 5, lambda: laplace_atoms(0.001, 1)),
    (ac.DiscreteLaplace(0.01, sensitivity=4), 6, lambda: laplace_atoms(0.01, 4)),
    (ac.RandomizedResponse(400.0), 3, lambda: response_atoms(400.0, 2)),
    (ac.RandomizedResponse(350.0, k=7), 30, lambda: response_atoms(350.0, 7)),
]


@pytest.mark.parametrize(("noise", "count", "atoms"), CASES)
def test_brackets(noise, count, atoms):
    with precision(400):
        rows = sums(atoms(), count)
        for delta in (0.3, 1e-5, 1e-10, 1e-60, 1e-200):
            found = (count * noise).epsilon_bounds(delta)
            assert not profile(rows, found.upper) > ball(delta)
            # Below the lower end the profile is above δ.
            below = math.nextafter(found.lower, 0.0)
            assert below <= 0.0 or not profile(rows, below) < ball(delta)


@pytest.mark.parametrize(("noise", "count", "atoms"), CASES)
def test_profiles(noise, count, atoms):
    with precision(400):
        rows = sums(atoms(), count)
        ends = sorted(float(loss) for loss, _ in rows if loss > 0)
        for end in ends[:: max(len(ends) // 6, 1)]:
            for epsilon in (0.4 * end, 0.999 * end, end - 3.0, end - 1e-3, end + 1.0):
                truth = profile(rows, max(epsilon, 0.0))
                found = (count * noise).delta_bounds(max(epsilon, 0.0))
                assert not arb(found.lower) > truth
                assert not arb(found.upper) < truth


@pytest.mark.parametrize("bound", [400.0, 650.0, 2000.0])
def test_sampled_far_losses(bound):
    """A sample of response: log(1 - q + q e^ε), twice, by the four outcomes."""
    q = 0.25
    found = 2 * ac.PoissonSampled(ac.RandomizedResponse(bound), q)
    with precision(400):
        down, share = (-ball(bound)).exp(), ball(q)
        one = [
            (mass_p, mass_q)
            for first, second in [(arb(1), down), (down, arb(1))]
            for mass_q in [second / (1 + down)]
            for mass_p in [(1 - share) * mass_q + share * first / (1 + down)]
        ]
        for epsilon in (0.0, 1.0, 0.5 * bound, bound - 1.0, bound + 2.0, 2 * bound - 5.0):
            grown = ball(epsilon).exp()
            truth = sum(
                (composed.positive(a * c - grown * b * d) for a, b in one for c, d in one), arb(0)
            )
            bracket = found.delta_bounds(epsilon)
            assert not arb(bracket.upper) < truth
            # Addition never has losses above -log(1 - q), so removal is the worse direction.
            assert epsilon < 1.0 or not arb(bracket.lower) > truth


def test_the_oracle_agrees_with_another():
    with precision(400):
        rows = sums(response_atoms(1.5, 2), 7)
        for epsilon in (0.1, 1.6, 5.0):
            other = composed.randomized_response(1.5, 7, epsilon)
            assert profile(rows, epsilon).overlaps(other)


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
