"""The contour of replace-one on Poisson samples and the grid, which shares nothing with it.

Rare events have no line: there the grid answers beside the contour, and is compared with brute
force in ball arithmetic.
"""

import pytest

import accountant as ac
from accountant.analyses.gaussian_mixtures import ExchangeContour
from accountant.analyses.solvers import Grid
from accountant.relations import NeighbouringRelation
from accountant.sampling.exchange_pair import ExchangePair
from support.oracle.exchange import lattice, two_steps


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
    assert found.upper - found.lower <= 1e-6 * found.upper
    ((parts, *_),) = (steps.profile().problems,)
    grid = Grid(parts).epsilon_bounds(1e-5)
    assert found.lower <= grid.upper
    assert grid.lower <= found.upper


def solver(distance, q, steps):
    return ExchangeContour(((ExchangePair(distance, q), steps),))


def ends(found):
    return float(found.lower), float(found.upper)


@pytest.mark.long
@pytest.mark.parametrize(
    ("distance", "q", "epsilon"),
    [
        (1.0, 1e-4, 0.01),
        (0.3, 1e-3, 1e-3),
        (3.0, 1e-2, 7.0),
        (6.0, 1e-3, 20.0),
        (4.0, 1e-6, 2.0),
        pytest.param(4.0, 3e-5, 0.29, marks=pytest.mark.slow),
        pytest.param(2.0, 1e-5, 0.04, marks=pytest.mark.slow),
        pytest.param(0.9, 0.02, 1.0, marks=pytest.mark.slow),
    ],
)
def test_two_steps_are_enclosed(distance, q, epsilon):
    low, high = ends(solver(distance, q, 2).delta_bounds(epsilon))
    least, most = two_steps(distance, q, epsilon)
    assert low <= most
    assert high >= least
    assert high - low <= (2e-5 if high > 1e-8 else 3e-4) * high
    truth = float(least)
    above, _ = ends(solver(distance, q, 2).epsilon_bounds(truth * (1.0 + 1e-9)))
    _, below = ends(solver(distance, q, 2).epsilon_bounds(truth * (1.0 - 1e-9)))
    assert above <= epsilon <= below


@pytest.mark.long
@pytest.mark.parametrize(
    ("distance", "q", "steps", "delta"),
    [(1.0, 1e-3, 10, 1e-4), (4.0, 1e-3, 8, 3e-4), (2.0, 0.01, 20, 1e-5), (0.3, 0.02, 16, 1e-3)],
)
def test_few_steps_are_enclosed(distance, q, steps, delta):
    asked = solver(distance, q, steps)
    low, high = ends(asked.epsilon_bounds(delta))
    assert high - low <= 1e-6 * high
    for epsilon in (0.7 * high, high, 1.3 * high):
        found = ends(asked.delta_bounds(epsilon))
        least, most = lattice(distance, q, steps, epsilon)
        assert found[0] <= most
        assert found[1] >= least
        assert found[1] - found[0] <= 1e-5 * found[1]
        assert most - least <= 0.5 * most + 1e-9
