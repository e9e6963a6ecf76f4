"""Finitely many losses on a grid: their chords, and what the chords add (Theorem G10)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accountant._rounding import TINY, U
from accountant._typing import FloatArray
from accountant.analyses.pld.loss_grid import GridLaw, LossGrid
from accountant.pairs.atoms import Atoms

# Losses so little above the last knot, in cells, are moved down to it in either law.
AT_END = 4e-9


class AtomsOnGrid(NamedTuple):
    """The finite losses between the ends of a grid: ``past`` beyond knot ``below``.

    The masses are rounded down: they are those of a law that the pair dominates, once its losses
    are lowered by ``loss_error`` and those above the grid moved down to its last knot.
    """

    below: FloatArray  # of the knot below each loss
    past: FloatArray  # in [0, spacing]
    mass: FloatArray


def discretise_atoms(table: Atoms, knots: LossGrid, *, bounded: bool, snap: bool) -> GridLaw:
    """Return the laws of finitely many losses on the grid.

    The upper law has their chords, and so has the lower one: it exceeds the true profile inside of
    cells, by what :mod:`accountant.analyses.pld.chord_excess` bounds after the composition.
    ``bounded`` tells that no loss lies above those of the table; ``snap``, that losses next to a
    knot are meant to lie on it.
    """
    cells, spacing = knots.last - knots.first, knots.spacing
    loss_error = 16.0 * U * knots.reach()
    distance = table.loss - knots.offset
    index = np.floor(distance / spacing)
    past = np.clip(distance - index * spacing, 0.0, spacing)
    if snap:
        margin = knots.margin()
        loss_error += margin
        past[past <= margin] = 0.0
        past[past >= spacing - margin] = spacing
    place = index - knots.first
    # The last knot may lie below the largest loss by the rounding of its index.
    last = (place == cells) & (past <= AT_END * spacing)
    if np.any(past[last] > 0.0):
        loss_error += AT_END * spacing
    low, high = place < 0.0, (place >= cells) & ~last
    past[place >= cells] = spacing
    place = np.clip(place, 0.0, cells - 1.0).astype(np.int64)
    share = np.minimum(np.expm1(-past) / np.expm1(-spacing), 1.0)
    error = table.relative_error + 8.0 * U
    absolute, faint = table.absolute_error, table.p < table.doubtful
    most = table.p * (1.0 + error) + np.where(faint, absolute, 0.0)
    least = table.p * (1.0 - error)
    least = np.where(faint, np.maximum(least - absolute, 0.0) if absolute < TINY else 0.0, least)
    above = float(most[high].sum()) * (1.0 + table.p.size * U)
    split = np.minimum(most * share * (1.0 + 16.0 * U), most)
    split[low] = 0.0
    upper = _sums(place, np.where(high, 0.0, most), np.where(high, 0.0, split), cells, 1.0)
    inside = np.where(low, 0.0, least)
    lower = _sums(place, inside, inside * share * (1.0 - 16.0 * U), cells, -1.0)
    kept = inside > 0.0
    between = kept & (past > 0.0) & (past < spacing)
    atoms = AtomsOnGrid((place + knots.first)[kept].astype(np.float64), past[kept], inside[kept])
    infinite = table.infinite_p
    lost = 0.0 < infinite < table.doubtful  # it may have underflowed
    unseen = 0.0 if bounded and above == 0.0 and not lost else absolute
    return GridLaw(
        knots,
        upper,
        lower,
        (infinite + above) * (1.0 + error) + unseen,
        0.0 if lost else infinite * (1.0 - 2.0 * error),
        loss_error,
        float(table.p[between].sum()),
        atoms if between.any() else None,  # chords between knots that carry losses add nothing
    )


def _sums(
    place: NDArray[np.int64], mass: FloatArray, split: FloatArray, cells: int, sign: float
) -> FloatArray:
    """Return what the knots carry, rounded up or down, with ``split`` of each mass at its end."""
    size = cells + 1
    found = np.bincount(place, weights=mass - split, minlength=size).astype(np.float64)
    found = found + np.bincount(place + 1, weights=split, minlength=size)
    terms = 2.0 * int(np.bincount(place, minlength=1).max())
    return np.asarray(found * (1.0 + sign * U * (terms + 16.0)))
