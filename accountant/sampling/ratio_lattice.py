"""The likelihood ratio of one release on an even lattice of its values, from above.

Ratios of a cell go to the two ends of the cell, with their mean kept: a law that is larger in the
convex order (docs/theorems_sampling.md, Theorems S5 and S23).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.pairs.atoms import AtomicPair
from accountant.pairs.base import DominatingPair, has_pld

# Losses that are looked at first, and the probability of larger ones that are cut off.
_LOSSES = np.linspace(-40.0, 40.0, 16001)
_RARE = 1e-12
# Widths of a sum of ratios in the window of its transform, points of that window, and the finest
# and the most knots of one ratio.
WIDTHS, _POINTS, _FINEST, _MOST = 30.0, 2.0**19, 4000.0, 2**19
# Knots in a deviation of one ratio, below which the brackets would be wide.
_COARSEST = 0.05
# Heavy ratios that should lie on the lattice, and spacings that are tried.
_HEAVY, _TRIED = 12, 20000


class RatioLattice(NamedTuple):
    """Masses without the record of the ratios 0, h, 2h, …

    Attributes
    ----------
    masses : float64 array of shape (m,)
        Each within ``mass_error`` of itself.
    spacing : float
        h.
    bumps : float64 array of shape (m - 1,)
        For every cell, mass · share · (1 - share): what spreading adds to a call, over h.
    escaped : float
        The mean of what exceeds the last knot: infinite loss of as much mass under P.
    mass_error, value_error : float
        Relative errors of masses and of ratios.
    variance : float
        About that of the ratio.
    """

    masses: FloatArray
    spacing: float
    bumps: FloatArray
    escaped: float
    mass_error: float
    value_error: float
    variance: float


def ratio_lattice(pair: DominatingPair, steps: int) -> RatioLattice | None:
    """Return the lattice that suits sums of ``steps`` ratios; None where none is fine enough."""
    if not has_pld(pair):
        return None
    p, _q, _ = pair.masses(_LOSSES)
    # With the record the last masses are those of the largest losses.
    above = np.cumsum(p[::-1])[::-1]
    top = int(np.argmax(above <= max(_RARE, 2.0 * float(p[-1])))) - 1
    if top < 1:
        return None
    largest = math.exp(float(_LOSSES[min(top + 1, _LOSSES.size - 1)]))
    middle = np.exp(_LOSSES[: top + 1])
    variance = float(p[1 : top + 2] @ middle) - 1.0
    if not variance > 1e-12:
        return None
    deviation = math.sqrt(variance)
    spacing = deviation * max(WIDTHS * math.sqrt(steps) / _POINTS, 1.0 / _FINEST)
    spacing = _suited(pair, max(spacing, largest / _MOST))
    count = math.ceil(largest / spacing)
    if count < 2 or spacing > _COARSEST * deviation:
        return None
    return _spread(pair, spacing, count, variance)


def _suited(pair: DominatingPair, least: float) -> float:
    """Return a spacing, a little larger, of which heavy ratios are nearly multiples."""
    if isinstance(pair, AtomicPair):
        atoms = pair.loss_atoms
        loss, weights = atoms.loss, atoms.q
    else:
        loss = np.array(pair.support)
        weights = np.ones(2)
    heavy = np.argsort(weights)[-_HEAVY:]
    loss, weights = loss[heavy], weights[heavy]
    if not np.isfinite(loss).all() or float(np.abs(loss).max()) > _LOSSES[-1]:
        return least
    spacings = least * np.linspace(1.0, 1.2, _TRIED)
    total = np.zeros(_TRIED)
    for ratio, weight in zip(np.exp(loss).tolist(), weights.tolist(), strict=True):
        part = np.mod(ratio / spacings, 1.0)
        total += weight * part * (1.0 - part)
    return float(spacings[int(np.argmin(total))])


def _spread(pair: DominatingPair, spacing: float, count: int, variance: float) -> RatioLattice:
    knots = spacing * np.arange(count + 1)
    assert has_pld(pair)
    p, q, relative = pair.masses(np.log(knots[1:]))
    masses = np.zeros(count + 1)
    # The share that keeps the mean, p/q; rounding moves the mean by a few units of itself.
    high = np.clip((p[:-1] - knots[:-1] * q[:-1]) / spacing, 0.0, q[:-1])
    masses[1:] += high
    masses[:-1] += q[:-1] - high
    masses[-1] += q[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        bumps = np.where(q[:-1] > 0.0, high * (1.0 - high / q[:-1]), 0.0)
    # Shares have the rounding of the ratio, many spacings large.
    bumps += 8.0 * (relative + U) * q[:-1] * np.arange(1, count + 1)
    escaped = max(float(p[-1]) - float(knots[-1]) * float(q[-1]), 0.0)
    escaped += 4.0 * (relative + U) * float(p[-1])
    values = float(pair.loss_error) + 4.0 * relative + 64.0 * U
    return RatioLattice(masses, spacing, bumps, escaped, relative + 16.0 * U, values, variance)
