"""Random compositions: whatever analysis answers, all brackets of one truth overlap."""

import contextlib
import math
import random

import pytest

import accountant as ac
from accountant.analyses import pld, renyi_conversion
from accountant.analyses.dispatch import solver
from accountant.analyses.solvers import Grid
from accountant.composition.problems import counted_alternatives, directions
from accountant.errors import PrecisionError, UnsupportedError

COUNTS = (1, 1, 2, 3, 10, 100, 1000)
DELTAS = (0.1, 1e-3, 1e-6, 1e-10, 1e-15)


def between(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def gaussian(rng):
    return ac.Gaussian(between(rng, 0.5, 50.0))


def sampled(rng):
    return ac.PoissonSampled(ac.Gaussian(between(rng, 0.6, 8.0)), between(rng, 1e-3, 0.6))


def other(rng):
    return rng.choice(
        (
            lambda: ac.Laplace(between(rng, 0.3, 100.0)),
            lambda: ac.DiscreteLaplace(between(rng, 0.5, 50.0)),
            lambda: ac.DiscreteGaussian(between(rng, 0.5, 50.0)),
            lambda: ac.RandomizedResponse(between(rng, 0.01, 3.0)),
            lambda: ac.PureDP(between(rng, 0.01, 2.0)),
            lambda: ac.ApproximateDP(between(rng, 0.01, 1.0), delta=between(rng, 1e-12, 1e-8)),
            lambda: ac.PoissonSampled(ac.Laplace(between(rng, 0.5, 5.0)), between(rng, 1e-3, 0.5)),
        )
    )()


def overlap(one, two):
    return max(one.lower, two.lower) <= min(one.upper, two.upper)


def mixed(seed, kinds):
    rng = random.Random(seed)
    parts = [(rng.choice(kinds)(rng), rng.choice(COUNTS)) for _ in range(rng.randint(1, 4))]
    return ac.Composition(tuple(parts)), rng.choice(DELTAS)


def ordered(bounds):
    assert 0.0 <= bounds.lower <= bounds.upper
    return bounds


def grid_of(parts):
    """Return what answers by the grid alone, as precisely as it can."""
    for tolerance in (1e-6, 1e-4, 1e-2):
        yield pld.Composed(parts, tolerance=tolerance)


def asked(parts, question):
    for composed in grid_of(parts):
        try:
            return ordered(question(composed))
        except PrecisionError:
            continue
    return None


def check_gaussians(seed):
    """Contour, closed form and grid, each direction, ε and δ, and Rényi above them all."""
    mechanism, delta = mixed(seed, (gaussian, sampled))
    for parts in directions(counted_alternatives(mechanism)[0]):
        exact = solver(parts)
        assert not isinstance(exact, Grid)
        epsilon = ordered(exact.epsilon_bounds(delta))
        assert epsilon.lower <= renyi_conversion.epsilon_upper(parts, delta)
        if epsilon.lower > 100.0:
            continue  # a grid answers losses as large, but no better than Rényi
        found = asked(parts, lambda composed: composed.epsilon_bounds(delta))
        if found is not None:
            assert overlap(epsilon, found)
        at = 0.7 * min(epsilon.upper, 50.0)
        found = asked(parts, lambda composed, at=at: composed.delta_bounds(at))
        if found is not None:
            assert overlap(exact.delta_bounds(at), found)


def check_others(seed):
    """The grid at two tolerances, its two questions, and Rényi above."""
    mechanism, delta = mixed(seed, (gaussian, other, other))
    for parts in directions(counted_alternatives(mechanism)[0]):
        found = asked(parts, lambda composed: composed.epsilon_bounds(delta))
        if found is None:
            continue
        with contextlib.suppress(PrecisionError):
            assert overlap(found, pld.Composed(parts, tolerance=3e-2).epsilon_bounds(delta))
        if 0.0 < found.upper < math.inf:
            back = asked(parts, lambda composed, at=found.upper: composed.delta_bounds(at))
            assert back is None or back.lower <= delta
            if found.lower > 0.0:
                back = asked(parts, lambda composed, at=found.lower: composed.delta_bounds(at))
                assert back is None or back.upper >= delta
        with contextlib.suppress(UnsupportedError):
            assert found.lower <= renyi_conversion.epsilon_upper(parts, delta)
        chosen = ordered(solver(parts).epsilon_bounds(delta))
        assert overlap(chosen, found)


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("seed", range(50))
def test_of_gaussians(seed):
    check_gaussians(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_of_anything(seed):
    check_others(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50, 500))
def test_of_many_gaussians(seed):
    check_gaussians(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40, 500))
def test_of_many_others(seed):
    check_others(seed)


@pytest.mark.long(keep=10)
@pytest.mark.parametrize("seed", range(20))
def test_closed_forms(seed):
    """Laplace, randomised response and Gaussian alone: closed-form profiles against the grid."""
    rng = random.Random(seed)
    for mechanism in (
        ac.Laplace(between(rng, 0.1, 100.0)),
        ac.RandomizedResponse(between(rng, 0.01, 5.0)),
        ac.Gaussian(between(rng, 0.3, 30.0)),
    ):
        (pair,) = mechanism.pairs()
        for share in (0.0, 0.3, 0.9):
            epsilon = share * min(pair.support[1], 4.0)
            found = asked([(pair, 1)], lambda composed, at=epsilon: composed.delta_bounds(at))
            try:
                truth = pair.profile(epsilon)
            except UnsupportedError:
                continue
            assert found is not None
            assert overlap(found, truth)
