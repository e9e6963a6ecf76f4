"""Brackets of a grid that met no tolerance."""

from fractions import Fraction

import pytest
from scipy.special import ndtr

import accountant as ac
from accountant.analyses.solvers import BesideGrid, Grid
from accountant.bounds import Bounds
from accountant.errors import PrecisionError
from accountant.mechanisms import LossDistribution


@pytest.fixture(name="grid")
def grid_without_a_curve():
    normal = LossDistribution(
        lambda t: ndtr(t - 0.5),
        lambda t: ndtr(0.5 - t),
        lambda t: ndtr(t + 0.5),
        lambda t: ndtr(-0.5 - t),
        relative_error=1e-13,
    )
    return Grid(((normal.pairs()[0], 30),))


@pytest.mark.parametrize("wide", [Bounds(0.0, 0.95), Bounds(0.0, 0.5), Bounds(0.1, 1.0)])
def test_a_wide_bracket_of_a_delta_is_an_answer(grid, monkeypatch, wide):
    monkeypatch.setattr(grid, "_ask", lambda question, first=0: (wide, False))
    assert grid.delta_bounds(1.0) == wide


def test_where_nothing_is_known_it_says_so(grid, monkeypatch):
    monkeypatch.setattr(grid, "_ask", lambda question, first=0: (None, False))
    with pytest.raises(PrecisionError, match="no grid"):
        grid.delta_bounds(1.0)


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 0.5, 4.0, 1e6])
def test_one_release_of_laplace_noise_is_exactly_pure(scale):
    """ε(0) is 1 / scale, from both sides."""
    truth = 1 / Fraction(scale)
    found = ac.Laplace(scale).epsilon_bounds(0.0)
    assert Fraction(found.lower) <= truth <= Fraction(found.upper)
    assert found.upper - found.lower <= 1e-11 * found.upper


def test_a_delta_that_cannot_exceed_next_to_nothing_takes_no_grid(monkeypatch):
    """No δ exceeds the probability that the record is used, 2e-294."""

    def refused(self):
        raise AssertionError("there is nothing to narrow")

    monkeypatch.setattr(BesideGrid, "_beside", refused)
    found = (2 * 10**6 * ac.PoissonSampled(ac.Gaussian(2.0), 1e-300)).delta_bounds(1.0)
    assert 0.0 <= found.lower <= found.upper <= 2e-294
