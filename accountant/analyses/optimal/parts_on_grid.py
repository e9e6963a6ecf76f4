"""Sums of independent losses: by enumeration when few, on a common grid when many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.analyses.optimal.loss_table import LIBRARY, LossTable
from accountant.errors import PrecisionError

# Masses below this are dropped from a grid and counted as missing.
NEGLIGIBLE = 1e-60
# Adding a shifted copy costs about as much as this many terms of a full convolution.
SHIFTING = 4
# Rare large losses may stretch the grid to this many times the points asked for.
STRETCH = 16
MOST_CELLS = 2**24


def enumerated(tables: Sequence[LossTable]) -> LossTable:
    """Return the table of the sum of independent losses, atom by atom."""
    total = tables[0]
    for table in tables[1:]:
        losses = np.add.outer(total.losses, table.losses).reshape(-1)
        masses = np.multiply.outer(total.masses, table.masses).reshape(-1)
        keep = masses >= NEGLIGIBLE
        largest = float(np.abs(losses).max())
        total = LossTable(
            losses=losses[keep],
            masses=masses[keep],
            relative_error=_both(total.relative_error, table.relative_error),
            shift=total.shift + table.shift + 2.0 * U * largest,
            missing=total.missing + table.missing + 2.0 * float(masses[~keep].sum()) + 1e-290,
            infinite=total.infinite,
        )
    order = np.argsort(total.losses, kind="stable")
    return replace(total, losses=total.losses[order], masses=total.masses[order])


def on_grid(tables: Sequence[LossTable], points: int) -> LossTable:
    """Return a dominating table of the sum on a grid of about ``points`` points (Theorem C6)."""
    spacing = _spacing(tables, points)
    masses: FloatArray = np.ones(1)
    first = 0
    error = missing = shift = 0.0
    # The short ones first: the running sum is then small while most are added.
    for table in sorted(tables, key=lambda each: each.losses.size):
        atoms, start = _spread(table, spacing)
        masses = _convolved(masses, atoms)
        first += start
        lengths = 2.0 * min(masses.size, atoms.size) + 4.0
        error = _both(error, _both(table.relative_error, (lengths + _spread_error(table)) * U))
        missing += table.missing + 1e-290
        # A loss just below zero may be a rounding away from its distance to the grid point below.
        shift += table.shift + 2.0 * U * spacing
        masses, first, dropped = _trimmed(masses, first)
        missing += 2.0 * dropped
    indices = np.arange(first, first + masses.size, dtype=np.float64)
    return LossTable(
        losses=indices * spacing,
        masses=masses,
        relative_error=error,
        shift=shift * (1.0 + 1e-12),
        missing=missing * (1.0 + 1e-12),
        infinite=tables[0].infinite,
        rounded=len(tables),
        spacing=spacing,
    )


def _spacing(tables: Sequence[LossTable], points: int) -> float:
    """Return a power of two, so that multiples of it, and distances to them, are exact."""
    variance = reach = 0.0
    for table in tables:
        mean = float(np.dot(table.losses, table.masses))
        variance += float(np.dot((table.losses - mean) ** 2, table.masses))
        reach += float(table.losses[-1] - table.losses[0])
    width = min(reach, max(34.0 * math.sqrt(variance), reach / STRETCH))
    return 2.0 ** math.floor(math.log2(max(width, 1e-290) / points))


def _spread(table: LossTable, spacing: float) -> tuple[FloatArray, int]:
    """Divide every atom between its two grid points, keeping its mass under P and under Q."""
    cells = np.floor(table.losses / spacing)
    above = table.losses - cells * spacing
    first, last = int(cells[0]), int(cells[-1]) + 1
    if last - first > MOST_CELLS:
        raise PrecisionError(
            f"the loss reaches over more than {MOST_CELLS} grid points;"
            " ask for fewer grid_points, or bound the composition by zCDP"
        )
    whole = math.expm1(-spacing)
    right = np.expm1(-above) / whole
    left = np.exp(-above) * (np.expm1(above - spacing) / whole)
    index = cells.astype(np.int64) - first
    cells_in_all = last - first + 1
    atoms = np.zeros(cells_in_all)
    atoms += np.bincount(index, left * table.masses, cells_in_all)
    atoms += np.bincount(index + 1, right * table.masses, cells_in_all)
    return atoms, first


def _spread_error(table: LossTable) -> float:
    # Three library calls, a few operations, and a sum over the atoms of one cell.
    return 3.0 * LIBRARY + 8.0 + table.losses.size


def _convolved(a: FloatArray, b: FloatArray) -> FloatArray:
    """Convolve directly: all terms are positive, so every entry keeps its relative accuracy."""
    swap = np.count_nonzero(b) * a.size < np.count_nonzero(a) * b.size
    sparse, dense = (b, a) if swap else (a, b)
    places = np.flatnonzero(sparse)
    if places.size * SHIFTING > sparse.size:
        return np.convolve(dense, sparse)
    total = np.zeros(a.size + b.size - 1)
    for place in places:
        total[place : place + dense.size] += sparse[place] * dense
    return total


def _trimmed(masses: FloatArray, first: int) -> tuple[FloatArray, int, float]:
    """Cut negligible masses off both ends."""
    kept = np.flatnonzero(masses >= NEGLIGIBLE)
    start, stop = int(kept[0]), int(kept[-1]) + 1
    dropped = float(masses[:start].sum() + masses[stop:].sum())
    return masses[start:stop], first + start, dropped


def _both(a: float, b: float) -> float:
    """Return the relative error of a product, with its own rounding."""
    return (a + b + a * b) * (1.0 + 1e-12) + 2.0 * U
