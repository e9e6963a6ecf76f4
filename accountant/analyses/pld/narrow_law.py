"""Laws that are narrower than a cell: a few groups of losses, each one loss (Theorem G14)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.analyses.pld.atom_grid import discretise_atoms
from accountant.analyses.pld.loss_grid import GridLaw, LossGrid
from accountant.pairs.atoms import Atoms
from accountant.pairs.base import DominatingPair, Masses

# Groups begin at these deviations from the mean, besides at the knots.
STARTS = np.linspace(-12.0, 12.0, 49)
# Smaller masses have lost digits to the absolute error of all masses.
DOUBTFUL = 1e-200


def discretise_narrow(
    pair: DominatingPair, knots: LossGrid, mean: float, deviation: float
) -> GridLaw:
    """Return the two laws of ``pair`` on the grid, from the masses of groups of its losses."""
    t = knots.losses()
    inner = mean + deviation * STARTS
    edges = np.union1d(t, inner[(inner > t[0]) & (inner < t[-1])])
    # An atom at the end of the losses lies on the last knot, or a rounding above it.
    margin = knots.margin()
    masses = pair.masses(np.append(edges[:-1], edges[-1] + margin))
    bounded = pair.support[1] + pair.loss_error <= t[-1] + margin
    loss, sure = _losses(masses, edges)
    p = np.asarray(masses.p, dtype=np.float64)[:-1]
    beyond = float(masses.p[-1])
    if not bounded:  # losses above the grid, and the mass at infinity with them
        loss, p = np.append(loss, t[-1] + knots.spacing), np.append(p, beyond)
        sure = np.append(sure, beyond > DOUBTFUL)
        beyond = 0.0
    loss[0] = t[0] - knots.spacing

    def law(p: FloatArray) -> GridLaw:
        table = Atoms(loss, p, p, beyond, 0.0, masses.relative_error, 0.0)
        return discretise_atoms(table, knots, bounded=bounded, snap=False)

    upper, lower = law(p), law(np.where(sure, p, 0.0))
    doubt = 2.01 * masses.relative_error + 64.0 * U * (1.0 + knots.reach())
    return lower._replace(
        upper=upper.upper,
        infinite_upper=upper.infinite_upper,
        loss_error=lower.loss_error + doubt + margin,
    )


def _losses(masses: Masses, edges: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return log p/q of all groups but the last, and which of them are known to all digits.

    The others are at the upper ends of their groups.
    """
    p, q = (np.asarray(m, dtype=np.float64)[:-1] for m in (masses.p, masses.q))
    sure = (p > DOUBTFUL) & (q > DOUBTFUL)
    p, q = np.where(sure, p, 1.0), np.where(sure, q, 1.0)
    close = np.abs(p - q) < 0.5 * q
    loss = np.where(close, np.log1p(np.where(close, (p - q) / q, 0.0)), np.log(p / q))
    low = np.append(-np.inf, edges[:-1])
    return np.where(sure, np.clip(loss, low, edges), edges), sure
