"""What mutation testing (support/hardening) found nobody watching in the grid's errors."""

import math

import mpmath
import numpy as np
import pytest

from accountant.analyses.pld.loss_grid import LossGrid, discretise, edges_around
from accountant.pairs.base import Masses
from support.grid_pairs import Gaussian

mp = mpmath.mpf


pytestmark = pytest.mark.usefixtures("sixty_digits")


class Watched:
    """A pair that writes down where it was cut, and whose masses are told apart."""

    support = (-math.inf, math.inf)

    def __init__(self, above=0.25, error=2.0**-20):
        self.above, self.error = above, error

    def masses(self, edges):
        self.edges = edges
        inner = np.exp(-np.arange(len(edges) - 1.0))
        p = np.concatenate([[0.125], inner, [self.above]])
        return Masses(p, p * 0.99, self.error)


def test_cells_and_halves_are_cut_where_they_should():
    knots = LossGrid(0.25, 0.5, -3, 4)
    t = [0.25 + 0.5 * i for i in range(-3, 5)]
    assert knots.losses().tolist() == t
    assert knots.reach() == 0.25 + 2.0
    assert LossGrid(-0.25, 0.5, -5, 4).reach() == 0.25 + 2.5
    assert knots.margin() == 2.0**-40 * 2.25
    assert edges_around(np.array(t), 0.125).tolist() == [x + s for x in t for s in (-0.125, 0.125)]
    pair = Watched()
    law = discretise(pair, knots, False)
    assert law.loss_error == 16 * 2.0**-53 * 2.25
    assert pair.edges.tolist() == sorted([*t, *(x + 0.25 for x in t[:-1])])
    law = discretise(pair, knots, True)
    margin = 2.0**-40 * 2.25
    assert law.loss_error == 16 * 2.0**-53 * 2.25 + margin
    expected = [*(x - margin for x in t), *(x + margin for x in t), *(x + 0.25 for x in t[:-1])]
    assert pair.edges.tolist() == sorted(expected)


def test_margins_around_atoms_end_at_a_sixteenth_of_a_cell():
    knots = LossGrid(0.0, 2.0**-38, 0, 2**10)
    law = discretise(Watched(), knots, True)
    assert law.loss_error == 16 * 2.0**-53 * 2.0**-28 + 2.0**-40 * 2.0**-28
    knots = LossGrid(1.0, 2.0**-38, 0, 4)
    law = discretise(Watched(), knots, True)
    assert law.loss_error == 16 * 2.0**-53 * knots.reach() + 2.0**-42


@pytest.mark.parametrize("error", [0.0, 2.0**-20])
def test_mass_at_infinity_is_rounded_outwards(error):
    knots = LossGrid(0.0, 0.5, -2, 3)
    law = discretise(Watched(0.25, error), knots, False)
    assert law.infinite_upper == 0.25 * (1 + error) + 1e-300
    assert law.infinite_lower == 0.0  # some of what lies above may be finite
    ended = Watched(0.25, error)
    ended.support = (-math.inf, 1.5)
    law = discretise(ended, knots, False)
    assert law.infinite_upper == 0.25 * (1 + error)
    assert law.infinite_lower == 0.25 * (1 - 2 * error)
    assert discretise(Watched(0.0), knots, False).infinite_upper == 1e-300
    ended.above = 0.0
    assert discretise(ended, knots, False).infinite_upper == 0.0


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("mu", [0.3, 1.1])
@pytest.mark.parametrize("has_atoms", [True, False])
def test_laws_enclose_closely(mu, has_atoms):
    knots = LossGrid(0.01, 0.05, -120, 160)
    law = discretise(Gaussian(mu), knots, has_atoms)
    for epsilon in np.linspace(-1.0, 2.0, 11).tolist():
        m, e = mp(mu), mp(epsilon)
        truth = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        stick = [max(-mpmath.expm1(epsilon - t), 0) for t in map(mp, knots.losses())]
        upper = sum(map(mpmath.fmul, map(mp, law.upper), stick)) + law.infinite_upper
        lower = sum(map(mpmath.fmul, map(mp, law.lower), stick)) + law.infinite_lower
        room = mp(law.loss_error)  # the profile's slope is at most one
        assert lower - room <= truth <= upper + room
        # A chord adds a sixth, a tangent takes a twelfth of the squared spacing.
        assert upper - lower <= mp(0.05) ** 2 * mpmath.npdf(0) / mu
