"""The laws made of distribution functions, against closed forms in many digits (Theorem G13)."""

import math
import random
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy.special import erfc

from accountant import PoissonSampled
from accountant.analyses.pld.loss_grid import LossGrid, discretise
from accountant.analyses.pld.tail_grid import discretise_tails
from accountant.mechanisms import LossDistribution

ROOT = math.sqrt(0.5)


def below(mean, off):
    return lambda t: 0.5 * erfc((mean - np.asarray(t)) * ROOT) * (1.0 + off(t))


def above(mean, off):
    return lambda t: 0.5 * erfc((np.asarray(t) - mean) * ROOT) * (1.0 + off(t))


def normal(error=1e-12, seed=None, infinite=0.0):
    """Return the loss N(1/2, 1), each function off by up to its stated error."""

    def off(t):
        if seed is None:
            return 0.0
        signs = np.random.default_rng(seed).uniform(-0.9, 0.9, np.shape(t))
        return error * signs

    # what is lost to P lowers its other losses by the logarithm of the rest
    rest, moved = 1.0 - infinite, math.log1p(-infinite)
    p_below, p_above = below(0.5 + moved, off), above(0.5 + moved, off)
    return LossDistribution(
        lambda t: rest * p_below(t),
        lambda t: rest * p_above(t) + infinite,
        below(-0.5 + moved, off),
        above(-0.5 + moved, off),
        relative_error=error,
        infinite_mass=infinite,
    )


def laplace_by_functions():
    """Return the loss of Laplace noise of scale 1, which has an atom at either end."""
    return LossDistribution(
        lambda t: np.where(t < -1.0, 0.0, np.where(t < 1.0, 0.5 * np.exp((t - 1.0) / 2.0), 1.0)),
        lambda t: np.where(t < -1.0, 1.0, np.where(t < 1.0, 1 - 0.5 * np.exp((t - 1) / 2), 0.0)),
        lambda t: np.where(t < -1.0, 0.0, np.where(t < 1.0, 1 - 0.5 * np.exp(-(t + 1) / 2), 1.0)),
        lambda t: np.where(t < -1.0, 1.0, np.where(t < 1.0, 0.5 * np.exp(-(t + 1) / 2), 0.0)),
        losses=(-1.0, 1.0),
        relative_error=1e-14,
    )


def normal_put(x):
    """Return the put of N(1/2, 1), Q(E) x - P(E) on the losses below log x."""
    e = mpmath.log(x)
    half = mpmath.mpf(1) / 2
    return x * mpmath.ncdf(e + half) - mpmath.ncdf(e - half)


def laplace_put(x):
    e = mpmath.log(x)
    if e < -1:
        return mpmath.mpf(0)
    if e >= 1:
        return x - 1
    return x - mpmath.exp((e - 1) / 2)


def true_put(put, q, add, infinite, x):
    """Return x - 1 + H(log x) of the pair, of its sample or of the addition to one."""
    q = mpmath.mpf(q)

    def inner(y):
        return (1 - mpmath.mpf(infinite)) * put_scaled(y)

    def put_scaled(y):
        # P is scaled by 1 - m, so that losses fall by its logarithm.
        scale = 1 - mpmath.mpf(infinite)
        return put(y / scale)

    if add:
        # P against (1-q)P + qQ, x below 1/(1-q)
        rest = 1 - x * (1 - q)
        return rest * inner(x * q / rest) if rest > 0 else x - 1
    y = (x - 1 + q) / q
    return q * inner(y) if y > 0 else mpmath.mpf(0)


def profile_of(law, masses, infinite, epsilon):
    knots = law.knots
    offset, spacing = mpmath.mpf(knots.offset), mpmath.mpf(knots.spacing)
    total = mpmath.mpf(float(infinite))
    for i in np.flatnonzero(masses):
        loss = offset + (knots.first + int(i)) * spacing
        if loss > epsilon:
            total -= mpmath.mpf(float(masses[i])) * mpmath.expm1(epsilon - loss)
    return total


def check(pair, knots, truth, seed):
    """Hold both laws against ``truth``, x - 1 + H(log x), at and between the knots."""
    law = discretise_tails(pair, knots)
    assert law is not None
    assert law.upper.min() >= 0.0
    assert law.lower.min() >= 0.0
    generator = random.Random(seed)
    ends = knots.offset + knots.first * knots.spacing, knots.offset + knots.last * knots.spacing
    places = [knots.offset + generator.randint(knots.first, knots.last) * knots.spacing]
    places += [generator.uniform(ends[0] - 0.2, ends[1] + 0.2) for _ in range(6)]
    places += [*ends, 0.0, knots.spacing / 3.0]
    shift = mpmath.mpf(law.loss_error) + pair.loss_error
    with mpmath.workdps(50):
        for place in places:
            at = mpmath.mpf(place)
            true = max(1 - mpmath.exp(at) + truth(mpmath.exp(at)), mpmath.mpf(0))
            assert profile_of(law, law.upper, law.infinite_upper, at - shift) >= true
            assert profile_of(law, law.lower, law.infinite_lower, at + shift) <= true
    return law


@pytest.mark.long(keep=15)
@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("spacing", [0.3, 0.05, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("q", [1.0, 0.999, 1e-3, 1e-7])
def test_both_laws_enclose_the_profile(q, spacing, seed):
    one = normal(1e-12 if seed != 2 else 1e-7, seed)
    pairs = (one if q == 1.0 else PoissonSampled(one, q)).pairs()
    for i, pair in enumerate(pairs):
        if q == 1.0:
            low, high = -5.0, 5.0
        else:
            low, high = math.log1p(-q) - 0.01 * q, math.log1p(q * math.expm1(5.0))
            low, high = (-high, -low) if i else (low, high)
        # some hundred knots around an end, the middle and 0
        most = 60
        middle = {0: low, 1: 0.0, 2: 0.5 * (low + high)}[(seed or 0) % 3]
        first = max(math.floor(low / spacing), math.floor(middle / spacing) - most)
        last = min(math.ceil(high / spacing), first + 2 * most)
        knots = LossGrid(0.0, spacing, first, max(last, first + 5))
        if discretise_tails(pair, knots) is None:  # all on one side of the median
            continue
        check(pair, knots, lambda x, i=i: true_put(normal_put, q, bool(i) and q < 1, 0, x), seed)


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("spacing", [0.05, 0.02])
@pytest.mark.parametrize("q", [1.0, 0.1])
def test_atoms_and_infinite_losses_are_enclosed(q, spacing):
    atoms = laplace_by_functions()
    pairs = (atoms if q == 1.0 else PoissonSampled(atoms, q)).pairs()
    for i, pair in enumerate(pairs):
        low, high = pair.support
        knots = LossGrid(0.0, spacing, math.floor(low / spacing), math.ceil(high / spacing))
        truth = lambda x, i=i: true_put(laplace_put, q, bool(i) and q < 1, 0, x)  # noqa: E731
        check(pair, knots, truth, 3)
    lost = normal(infinite=1e-3)
    pair = (lost if q == 1.0 else PoissonSampled(lost, q)).pairs()[0]
    knots = LossGrid(0.0, spacing, -math.ceil(3.0 / spacing), math.ceil(3.0 / spacing))
    law = check(pair, knots, lambda x: true_put(normal_put, q, False, 1e-3, x), 4)
    assert law.infinite_upper >= q * 1e-3
    bounded = replace(lost, losses=(-40.0, 2.9))  # a claim that is nearly true
    pair = (bounded if q == 1.0 else PoissonSampled(bounded, q)).pairs()[0]
    assert discretise_tails(pair, knots).infinite_lower >= 0.999 * q * 1e-3


def test_an_error_of_the_functions_is_made_once_and_not_in_every_cell():
    """At a spacing where masses of cells have lost half of their digits."""
    pair = PoissonSampled(normal(), 1e-3).pairs()[0]
    knots = LossGrid(0.0, 1e-6, -2000, 30000)
    ours, masses = discretise_tails(pair, knots), discretise(pair, knots, False)
    losses = knots.losses()

    def width(law):
        stick = np.maximum(-np.expm1(1e-3 - losses), 0.0)
        return float((law.upper - law.lower) @ stick) + law.infinite_upper - law.infinite_lower

    assert 0.0 < width(ours) < 1e-3 * width(masses)


@pytest.mark.long
@pytest.mark.parametrize("spacing", [3.8e-5, 1.9e-5])
def test_the_lower_law_keeps_the_mass_of_both_laws_where_losses_begin(spacing):
    """Losses that begin like a lognormal law: what one cell lacks, every ε below it would lack."""
    pair = PoissonSampled(normal(), 1e-3).pairs()[0]
    first = math.floor(math.log1p(-1e-3) / spacing)
    knots = LossGrid(0.0, spacing, first, first + 2000)
    law = check(pair, knots, lambda x: true_put(normal_put, 1e-3, False, 0, x), 5)
    start = mpmath.mpf(first) * mpmath.mpf(spacing)
    missing = -mpmath.expm1(start) - profile_of(law, law.lower, law.infinite_lower, start)
    # of the tangents' gap at a knot amid the losses, mass · spacing / 8
    assert missing < 1e-3 * float(law.lower.max()) * spacing


def test_what_has_no_distribution_functions_has_no_such_laws():
    from accountant.mechanisms import Gaussian

    pair = Gaussian(1.0).pairs()[0]
    assert discretise_tails(pair, LossGrid(0.0, 0.1, -50, 50)) is None
    twice = PoissonSampled(PoissonSampled(normal(), 0.5), 0.5).pairs()[0]
    assert discretise_tails(twice, LossGrid(0.0, 0.01, -50, 50)) is None
