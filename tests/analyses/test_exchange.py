"""The contour of replace-one on Poisson samples and the grid, which shares nothing with it."""

import pytest

import accountant as ac
from accountant.analyses.exchange import ExchangeContour
from accountant.analyses.solvers import Grid
from accountant.relations import NeighbouringRelation
from accountant.sampling.exchange_pair import ExchangePair


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("q", "distance"), [(0.5, 0.2), (0.01, 1.0), (0.05, 2.5)])
@pytest.mark.parametrize("steps", [300, 20_000])
def test_contour_and_grid_agree(q, distance, steps):
    parts = ((ExchangePair(distance, q), steps),)
    contour, grid = ExchangeContour(parts), Grid(parts)
    for delta in (1e-3, 1e-9):
        one, other = contour.epsilon_bounds(delta), grid.epsilon_bounds(delta)
        assert one.lower <= other.upper
        assert other.lower <= one.upper
        assert one.upper - one.lower <= 1e-8 * one.upper
        back = contour.delta_bounds(float(one.upper))
        assert back.lower <= delta <= back.upper * (1.0 + 1e-6)


def test_replace_one_takes_the_contour():
    noise = ac.Gaussian(1.0, relation=NeighbouringRelation.REPLACE_ONE)
    steps = ac.PoissonSampled(noise, 0.01) * 1000
    assert steps.explain(1e-5).analysis == "exchange contour"
    # The grid's own bracket.
    found = steps.epsilon_bounds(1e-5)
    assert 2.843439617 < found.lower <= found.upper < 2.843441544
    assert steps.epsilon_bounds(0.0).upper == float("inf")


def test_few_rare_steps():
    noise = ac.Gaussian(0.3, relation=NeighbouringRelation.REPLACE_ONE)
    steps = ac.PoissonSampled(noise, 1e-4) * 30
    found = steps.epsilon_bounds(1e-5)
    assert found.upper - found.lower <= 1e-9 * found.upper
    ((parts, *_),) = (steps.profile().problems,)
    grid = Grid(parts).epsilon_bounds(1e-5)
    assert found.lower <= grid.upper
    assert grid.lower <= found.upper
