"""Two distributions on a grid whose profiles enclose that of one part (Theorems G1-G3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accountant._core import tools as core
from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.pairs.base import DominatingPair

# Atoms are looked for within this relative distance of their lattice point, far above round-off.
NEAR = 2.0**-40


class LossGrid(NamedTuple):
    """The knots ``offset + index * spacing`` for ``first <= index <= last``."""

    offset: float
    spacing: float
    first: int
    last: int

    def losses(self) -> FloatArray:
        """Return the knots, in nats, each within ``loss_error`` of its exact value."""
        index = np.arange(self.first, self.last + 1, dtype=np.float64)
        return self.offset + index * self.spacing

    def reach(self) -> float:
        """Return the largest absolute value of a knot or the offset."""
        ends = (self.offset, self.first * self.spacing, self.last * self.spacing)
        return abs(self.offset) + max(map(abs, ends))

    def margin(self) -> float:
        """Return the distance from a knot within which an atom is searched."""
        return min(NEAR * self.reach(), self.spacing / 16.0)


class GridLaw(NamedTuple):
    """Masses under P at the knots.

    With e = ``loss_error``, the profile of ``upper``, with ``infinite_upper`` at +∞, is at least
    H(ε + e) at every ε, and that of ``lower``, with ``infinite_lower``, at most H(ε - e).
    """

    knots: LossGrid
    upper: FloatArray
    lower: FloatArray
    infinite_upper: float
    infinite_lower: float
    loss_error: float


def edges_around(knots: FloatArray, margin: float) -> FloatArray:
    """Return, for each knot, the edges ``margin`` below and above it."""
    return np.stack([knots - margin, knots + margin], axis=1).ravel()


def discretise(pair: DominatingPair, knots: LossGrid, has_atoms: bool) -> GridLaw:
    """Return the two laws of ``pair`` on the grid.

    ``has_atoms`` means that atoms may lie on knots. They are then separated from the cells, because
    only the masses of a cell are known, not their positions.
    """
    t = knots.losses()
    cells = t.size - 1
    middle = t[:-1] + 0.5 * knots.spacing
    loss_error = 16.0 * U * knots.reach()
    if has_atoms:
        margin = knots.margin()
        loss_error += margin
        around = edges_around(t, margin)
        edges = np.empty(3 * cells + 2)
        edges[0::3], edges[1::3], edges[2::3] = around[0::2], around[1::2], middle
        masses = pair.masses(edges)
        p, q = (np.asarray(m, dtype=np.float64)[1:-1] for m in (masses.p, masses.q))
        atoms = p[0::3].copy()
        halves = (p[1::3], q[1::3], p[2::3], q[2::3])
    else:
        edges = np.empty(2 * cells + 1)
        edges[0::2], edges[1::2] = t, middle
        masses = pair.masses(edges)
        p, q = (np.asarray(m, dtype=np.float64)[1:-1] for m in (masses.p, masses.q))
        atoms = np.zeros(cells + 1)
        halves = (p[0::2], q[0::2], p[1::2], q[1::2])
    below, above, error = float(masses.p[0]), float(masses.p[-1]), float(masses.relative_error)
    # Beyond the end of the support there is only the mass at +∞.
    ends = pair.support[1] <= edges[-1]
    p_low, q_low, p_high, q_high = map(np.ascontiguousarray, halves)
    upper, lower = np.empty(cells + 1), np.empty(cells + 1)
    core.grid_laws(
        knots.spacing,
        error,
        below,
        0.0 if ends else above,
        t,
        atoms,
        p_low,
        q_low,
        p_high,
        q_high,
        upper,
        lower,
    )
    return GridLaw(
        knots,
        upper,
        lower,
        above * (1.0 + error) + (1e-300 if above > 0.0 or not ends else 0.0),
        above * (1.0 - 2.0 * error) if ends else 0.0,
        loss_error,
    )
