"""The profile of a sum of Laplace losses in closed form, against integrals and the grid."""

import itertools
import math

import pytest
from flint import arb

import accountant as ac
from accountant.analyses.hidden_keys import LARGEST_SUM, LaplaceSum
from accountant.analyses.solvers import Grid
from accountant.mechanisms.laplace import LaplacePair
from support.oracle import sparse_histogram as oracle


@pytest.mark.parametrize("reach", [1e-3, 0.05, 0.7, 3.0, 11.0])
@pytest.mark.parametrize("count", [1, 2])
def test_few_releases_against_rigorous_integrals(reach, count):
    found = LaplaceSum(((LaplacePair(reach), count),))
    for share in (0.0, 0.1, 0.499, 0.5, 0.77, 0.99, 0.999999):
        epsilon = share * count * reach
        truth = oracle._laplace(arb(reach), count, arb(epsilon))
        bounds = found.delta_bounds(epsilon)
        assert oracle.as_fraction(truth.lower()) <= float(bounds.upper)
        assert float(bounds.lower) <= oracle.as_fraction(truth.upper())
        assert float(bounds.upper) - float(bounds.lower) <= 1e-8 * float(bounds.upper) + 2e-16


@pytest.mark.parametrize(("reach", "count"), [(0.05, 10), (0.3, 20), (1.0, 5), (0.02, 64)])
def test_more_releases_against_the_grid(reach, count):
    parts = ((LaplacePair(reach), count),)
    assert LaplaceSum.covers(parts)
    closed, grid = LaplaceSum(parts), Grid(parts)
    for share in (0.0, 0.2, 0.5):
        epsilon = share * math.sqrt(count) * 3.0 * reach
        one, other = closed.delta_bounds(epsilon), grid.delta_bounds(epsilon)
        assert float(one.lower) <= float(other.upper)
        assert float(other.lower) <= float(one.upper)
        assert float(one.upper) == pytest.approx(float(other.upper), rel=1e-5)


@pytest.mark.parametrize(("reach", "count"), [(0.05, 10), (1.0, 2), (2.0, 30)])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-9, 1e-20])
def test_an_epsilon_has_its_delta(reach, count, delta):
    found = LaplaceSum(((LaplacePair(reach), count),))
    bounds = found.epsilon_bounds(delta)
    upper, lower = float(bounds.upper), float(bounds.lower)
    assert float(found.delta_bounds(upper).upper) <= delta
    assert lower == 0.0 or float(found.delta_bounds(lower).lower) >= delta * (1.0 - 1e-9)
    assert upper - lower <= 1e-8 * (1.0 + upper)


def test_laws():
    found = LaplaceSum(((LaplacePair(0.4), 12),))
    values = [float(found.delta_bounds(e).upper) for e in (0.0, 0.5, 1.0, 2.0, 4.0, 4.8, 4.9)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == 0.0
    slopes = [
        (b - a) / (math.exp(y) - math.exp(x))
        for (x, a), (y, b) in itertools.pairwise(zip((0.0, 0.5, 1.0, 2.0), values, strict=False))
    ]
    assert slopes == sorted(slopes)


def test_what_it_covers():
    assert LaplaceSum.covers(((LaplacePair(1.0), 3),))
    assert not LaplaceSum.covers(((LaplacePair(1.0), 100),))
    assert not LaplaceSum.covers(((LaplacePair(LARGEST_SUM), 2),))
    assert not LaplaceSum.covers(((LaplacePair(1.0), 1), (ac.Gaussian(1.0).pairs()[0], 1)))
