"""Sums of ratios with rare ones apart: products of exact fractions as the oracle."""

import math
import random
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import accountant as ac
from accountant.sampling import AllocatedMechanism
from accountant.sampling.ratio_jumps import MOST_JUMPS, Jump, JumpSums, is_cramped, parts_of
from accountant.sampling.ratio_sums import RatioSums, ratio_lattice
from sampling.test_allocated_mechanism import mean_ratio


def dyadic(masses):
    """Return masses as doubles whose sum is exactly one: the first takes what is left."""
    return (1 - sum(map(Fraction, masses[1:])), *map(Fraction, masses[1:]))


def pair_of(p, q):
    return ac.DominatingPMFs(tuple(map(float, p)), tuple(map(float, q))).pairs()[0]


def call(law, strike):
    return sum(m * max(x - strike, 0) for x, m in law.items())


# Two common outcomes, and one or two that are rare and far away.
LAWS = [
    ((0, 0.25, 2.0**-13), (0, 0.5, 2.0**-20)),
    ((0, 0.25, 2.0**-12, 2.0**-15), (0, 0.5, 2.0**-17, 2.0**-22)),
    ((0, 0.625, 2.0**-14, 2.0**-16), (0, 0.5, 2.0**-21, 2.0**-25)),
]


def _common(common, runs, log_target):
    return RatioSums(common, runs, False, log_target)


def best_of(p, q, steps, strikes):
    """Return brackets by both tilts, as every question takes them; None where nothing is apart."""
    one = ratio_lattice(pair_of(p, q), steps)
    parts = one and parts_of(one, steps)
    if not parts:
        return None
    sums = partial(_common, parts.common)
    found = [JumpSums(one, parts, steps, sums, t).bounds(strikes) for t in (-1.0, -12.0)]
    return [f[0] for f in found], [f[1] for f in found]


def wrong(p, q, steps, strikes, lows, highs):
    """Yield where a bracket excludes the exact value."""
    law = mean_ratio(steps, p, q)
    for i, strike in enumerate(strikes.tolist()):
        truth = call(law, Fraction(strike))
        if any(Fraction(float(low[i])) > truth for low in lows):
            yield "below", strike
        if any(high[i] < math.inf and Fraction(float(high[i])) < truth for high in highs):
            yield "above", strike


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("steps", [MOST_JUMPS + 1, 9])
@pytest.mark.parametrize("masses", LAWS)
def test_calls_contain_exact_products(masses, steps):
    p, q = map(dyadic, masses)
    strikes = np.array([1.0, 1.05, 1.2, 1.5, 2.0, 30.0, 700.0, 5000.0])
    lows, highs = best_of(p, q, steps, strikes)
    assert not list(wrong(p, q, steps, strikes, lows, highs))
    law = mean_ratio(steps, p, q)
    truth = np.array([call(law, Fraction(x)) for x in strikes[:5].tolist()], float)
    # From above they are narrow; of so few runs a lattice knows less from below.
    assert np.all(np.min(highs, axis=0)[:5] <= 1.01 * truth)
    assert np.all(np.max(lows, axis=0)[:5] >= 0.9 * truth)


@pytest.mark.long
def test_random_laws_contain_exact_products():
    draws = random.Random(5)
    judged = 0
    for _ in range(40):
        rare = draws.randint(1, 3)
        q = [0, draws.randint(1, 60) / 64] + [2.0 ** -draws.randint(12, 30) for _ in range(rare)]
        p = [0, draws.randint(1, 60) / 64]
        p += [x * 2.0 ** draws.randint(4, 8) for x in q[2:]]
        p, q = dyadic(p), dyadic(q)
        strikes = np.array([draws.uniform(1.0, 3.0) for _ in range(4)] + [40.0, 300.0])
        steps = draws.randint(4, 7)
        found = best_of(p, q, steps, strikes) if min(*p, *q) > 0 else None
        if found:
            judged += 1
            assert not list(wrong(p, q, steps, strikes, *found)), (p, q, steps)
    assert judged >= 15


def test_parts_are_the_whole():
    one = ratio_lattice(ac.DiscreteGaussian(1.0).pairs()[0], 1000)
    common, jumps = parts_of(one, 1000)
    assert math.isclose(common.masses.sum() + sum(j.mass for j in jumps), one.masses.sum())
    assert common.bumps.size == common.masses.size - 1
    assert all(math.isclose(sum(m for _, m in j.ends), j.mass) for j in jumps)
    assert 1000 * sum(j.mass for j in jumps) <= 0.01


def test_sums_of_the_most_ratios_that_are_apart_are_spread_with_their_means():
    one = ratio_lattice(ac.DiscreteGaussian(1.0).pairs()[0], 1000)
    parts = parts_of(one, 1000)
    apart = JumpSums(one, parts, 1000, partial(_common, parts.common), -1.0)
    ends = [[(Fraction(x), Fraction(m)) for x, m in jump.ends] for jump in parts.jumps]
    assert any(len(some) > 1 for some in ends)
    mass = sum(m for some in ends for _, m in some)
    mean = sum(m * x for some in ends for x, m in some)
    # of 1000·999·998/3! triples
    triples = Fraction(1000 * 999 * 998, 6)
    moves, weights = apart._sums_apart(MOST_JUMPS, True)
    assert float(sum(map(Fraction, weights))) == pytest.approx(float(triples * mass**3), rel=1e-12)
    whole = sum(Fraction(w) * Fraction(x) for w, x in zip(weights, moves, strict=True))
    assert whole >= 3 * triples * mean * mass**2
    assert float(whole) == pytest.approx(float(3 * triples * mean * mass**2), rel=1e-12)
    # A convex function of the sum becomes no smaller: here of sums of any ends.
    strike = Fraction(sum(moves) / len(moves))
    every = [end for some in ends for end in some]
    exact = sum(
        a[1] * b[1] * c[1] * max(a[0] + b[0] + c[0] - strike, 0)
        for a in every
        for b in every
        for c in every
    )
    found = sum(
        Fraction(w) * max(Fraction(x) - strike, 0) for w, x in zip(weights, moves, strict=True)
    )
    assert (
        triples * exact
        <= found * (1 + Fraction(1, 10**12))
        <= triples * exact * (1 + Fraction(1, 100))
    )


@pytest.mark.parametrize("mechanism", [ac.Laplace(1.0), ac.DiscreteGaussian(8.0)])
def test_laws_without_large_ratios_stay_whole(mechanism):
    one = ratio_lattice(mechanism.pairs()[0], 1000)
    assert parts_of(one, 1000) is None or not is_cramped(one, 1000, -9.0)


class Boundless:
    """Sums of which no window of the transform holds anything."""

    first = -math.inf

    def options(self, strikes, *, upper):
        return np.full(strikes.size, math.inf if upper else 0.0)


@pytest.mark.parametrize("mass", [2.0**-100, 1e-200, 5e-324])
def test_calls_without_a_bound_stay_so_beside_ratios_of_next_to_no_mass(mass):
    one = ratio_lattice(pair_of(*map(dyadic, LAWS[0])), 9)
    parts = parts_of(one, 9)
    faint = parts._replace(jumps=(Jump(((2.0**7, mass),), 2.0**7, mass),))
    found = JumpSums(one, faint, 9, lambda runs, log_target: Boundless(), -1.0)
    low, high = found.bounds(np.array([1.0, 1.5, 30.0]))
    # What the mean alone tells from below is no NaN either: two such masses underflow.
    assert np.all(low >= 0.0)
    assert np.all(high == math.inf)


@pytest.mark.long
def test_discrete_gaussian_noise_is_narrow():
    one = AllocatedMechanism(ac.DiscreteGaussian(1.0), steps=1000)
    epsilon, delta = one.epsilon_bounds(1e-6), one.delta_bounds(0.1)
    # The lattices of the whole law had brackets of [.17187, .17202] and of 9e-5.
    assert epsilon.upper <= epsilon.lower * (1 + 2e-5)
    assert delta.upper <= delta.lower * (1 + 8e-5)
