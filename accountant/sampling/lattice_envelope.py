"""Laws on a lattice of losses that are above one or several pairs in the order of profiles.

The losses of a cell of outcomes go to the two ends of an interval around them, and these to the
lattice, with the masses under both laws kept. The chords between the largest values of several
profiles are those of one law (docs/theorems_sampling.md, Theorems S17 and S18).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.sampling.allocation_chords import chord_law
from accountant.sampling.allocation_table import Table

# Relative error of the weight of a knot.
_SLACK = 1e-12
_TINY = 1e-290
# Relative lengths of intervals below which all mass goes to the upper end.
_LEAST_GAP = 1e-10


class Cells(NamedTuple):
    """Masses of cells of outcomes under P and Q, and bounds on the losses inside each cell."""

    p: FloatArray
    q: FloatArray
    low: FloatArray
    high: FloatArray
    error: float


class LatticeLaw(NamedTuple):
    """Masses under P of the losses ``spacing``·k, k = -m … m, and what else there is.

    ``infinite`` is the mass of infinite loss and ``lost`` the one under Q of its negative,
    ``mass_error`` a relative error of all masses and ``loss_error`` an absolute one of the losses.
    """

    masses: FloatArray
    infinite: float
    lost: float
    mass_error: float
    loss_error: float


class Options(NamedTuple):
    """Calls and puts on dP/dQ at the knots, and a relative error of the masses behind them."""

    calls: FloatArray
    puts: FloatArray
    error: float


def smaller(one: Options, other: Options) -> Options:
    """Return the smaller options, which bound a profile that is below both."""
    return Options(
        np.minimum(one.calls, other.calls),
        np.minimum(one.puts, other.puts),
        max(one.error, other.error),
    )


def law_above(options: list[Options], spacing: float, size: int) -> LatticeLaw:
    """Return the law whose options are the chords between the largest of those given."""
    places = np.arange(-2 * size, 2 * size + 1)
    values = np.zeros(places.size)
    calls = np.max([each.calls for each in options], axis=0)
    puts = np.max([each.puts for each in options], axis=0)
    values[::2] = np.where(places[::2] < 0, puts, calls)
    law = chord_law(Table(spacing, places, values, values))
    some = law.values > 0.0
    index = size + np.rint(np.log(law.values[some]) / spacing).astype(np.int64)
    masses = np.zeros(2 * size + 1)
    masses[index] = (law.masses * law.values)[some]
    error = max(each.error for each in options)
    lost = float(law.masses[~some].sum())
    # P <= (1+e)P' and Q >= (1-e)Q' move the loss by 2e, too.
    errors = law.mass_error + error, law.value_error + 2.0 * error
    return LatticeLaw(masses, law.escaped, lost, *errors)


def mirrored(law: LatticeLaw, spacing: float) -> LatticeLaw:
    """Return the law of the reversed pair."""
    size = (law.masses.size - 1) // 2
    masses = law.masses * np.exp(-spacing * np.arange(-size, size + 1))
    # An exponential errs by a few units of its argument.
    error = law.mass_error + 8.0 * U * (1.0 + size * spacing)
    return LatticeLaw(masses[::-1].copy(), law.lost, law.infinite, error, law.loss_error)


def options_of(cells: Cells, spacing: float, size: int) -> Options:
    """Return the options of a lattice law above that of the cells."""
    loss, mass = _ends(cells)
    # On the safe side of the rounding of the loss.
    at = loss + 4.0 * U * (1.0 + np.abs(loss))
    below = np.minimum(np.maximum(np.floor(at / spacing), -size), size - 1)
    share = np.expm1(below * spacing - at) / math.expm1(-spacing)
    share = np.minimum(np.maximum(share + _SLACK, 0.0), 1.0)
    place = below.astype(np.int64) + size
    mass[at > size * spacing] = 0.0
    p = np.bincount(place, mass * (1.0 - share), 2 * size + 1)
    p[1:] += np.bincount(place, mass * share, 2 * size)
    knots = _knots(spacing, size)
    q = p / knots
    infinite = max(1.0 - float(p.sum()), 0.0) + _TINY
    zero = max(1.0 - float(q.sum()), 0.0) + _TINY
    widths = knots[:-1] * math.expm1(spacing)
    tail = np.cumsum(q[::-1])[::-1]
    call = infinite + np.append(np.cumsum((tail[1:] * widths)[::-1])[::-1], 0.0)
    put = zero * knots[0] + np.append(0.0, np.cumsum((zero + np.cumsum(q)[:-1]) * widths))
    return Options(call, put, cells.error + 8.0 * cells.p.size * U)


@lru_cache(maxsize=8)
def _knots(spacing: float, size: int) -> FloatArray:
    """Return the likelihood ratios at the knots."""
    return np.asarray(np.exp(spacing * np.arange(-size, size + 1)), dtype=np.float64)


def _ends(cells: Cells) -> tuple[FloatArray, FloatArray]:
    """Return losses and masses under P of the lower and then of the upper ends of the cells."""
    # A cell without a finite upper end has infinite loss; a mass that vanished is left out, too.
    kept = np.isfinite(cells.high) & (cells.p > _TINY)
    p, q, high = cells.p[kept], cells.q[kept], cells.high[kept]
    low = np.where(np.isfinite(cells.low[kept]), cells.low[kept], high)
    gap = -np.expm1(low - high)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The masses are taken as they are: their errors are those of the law (Theorem M2).
        share = (1.0 - q / p * np.exp(low)) / gap + 64.0 * U * (1.0 + np.abs(low)) / gap
    share = np.clip(np.where(gap > _LEAST_GAP, share, 1.0), 0.0, 1.0)
    return np.concatenate([low, high]), np.concatenate([p * (1.0 - share), p * share])
