"""Private rows: one layout, clipping, and sums whose rounding has a public bound."""

from __future__ import annotations

import math

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.errors import DomainError
from accountant.learn.convex.losses import SLOPE_ROUNDINGS, Loss
from accountant.learn.validation import numbers

# Clipped rows end this share inside the ball, so that no rounding puts them outside (V12).
INSIDE = 1.0 - 2.0**-40
# Columns of one inner product: NumPy cuts longer sums at places of its own, and a single row
# elsewhere than one of several. Theorem V12 depends on it.
TOGETHER = 4096
# Rows that one matrix product adds before the blocks are added pairwise: the bound of
# gradient_rounding contains it.
BLOCK = 256


def table(x: object) -> FloatArray:
    """Return ``x`` as a float64 matrix, row by row in memory; what cannot be read is NaN.

    Sums over a row round by the row's layout (Theorem V12), and what clips one long row copies all
    of them: only one layout may ever be met.
    """
    rows = np.require(numbers("x", x), requirements=["C", "A", "E"])
    if rows.ndim != 2:
        raise DomainError(f"x must have two dimensions, (records, columns); got {rows.ndim}")
    if not rows.shape[1]:
        raise DomainError("x must have at least one column; got none")
    return rows


def clip_rows(rows: FloatArray, norm: float) -> FloatArray:
    """Scale every row longer than ``norm`` down to it; rows within are unchanged.

    A row that is not finite, or whose squares overflow, becomes zero, and so adds nothing.
    """
    with np.errstate(all="ignore"):  # a warning would say something about a record
        lengths = np.sqrt(row_products(rows, rows))
    # A computed norm of d squares is off by d/2 roundings at most, and some.
    limit = norm * (INSIDE - (rows.shape[1] + 8) * U)
    within = lengths <= limit  # not so for NaN
    if within.all():
        return rows
    scale = np.ones_like(lengths)
    scale[~within] = limit / lengths[~within]
    lost = ~np.isfinite(lengths)
    with np.errstate(all="ignore"):
        clipped = rows * scale[:, None]
    clipped[lost] = 0.0
    return clipped


def row_products(rows: FloatArray, other: FloatArray) -> FloatArray:
    """Return every row's inner product with its row of ``other``, or with the one vector it is.

    No digit depends on the other rows or on their number (docs/theorems_convex.md, Theorem V12).
    """
    equation = "ij,j->i" if other.ndim == 1 else "ij,ij->i"
    total = np.zeros(len(rows))
    for start in range(0, rows.shape[1], TOGETHER):
        part = slice(start, start + TOGETHER)
        total += np.einsum(equation, rows[:, part], other[..., part])
    return total


def paired(labels: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return labels and rows, if there is a label for every row.

    A record whose label could not be read, and is NaN, becomes one of zeros: it adds nothing.
    """
    if len(labels) != len(rows):
        # Neither number: how many records there are is private.
        raise DomainError("y must have one label a row of x; got another number of labels")
    lost = np.isnan(labels) if labels.ndim == 1 else np.isnan(labels).any(axis=1)
    if not lost.any():
        return labels, rows
    labels, rows = labels.copy(), rows.copy()
    labels[lost], rows[lost] = 0.0, 0.0
    return labels, rows


def project(theta: FloatArray, radius: float) -> FloatArray:
    """Return the nearest point of the centred ball; points inside stay where they are."""
    length = float(np.sqrt(np.vdot(theta, theta)))
    return theta if length <= radius else theta * (radius / length)


def sum_by_blocks(x: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return ``x.T @ slopes``, adding blocks of rows pairwise so that round-off stays small."""
    n, d = x.shape
    columns = slopes.reshape(n, math.prod(slopes.shape[1:]))
    k = columns.shape[1]
    whole = n // BLOCK
    blocks = x[: whole * BLOCK].reshape(whole, BLOCK, d).transpose(0, 2, 1)
    parts = blocks @ columns[: whole * BLOCK].reshape(whole, BLOCK, k)
    last = x[whole * BLOCK :].T @ columns[whole * BLOCK :]
    while len(parts) > 1:
        if len(parts) % 2:
            parts = np.concatenate((parts, np.zeros_like(parts[:1])))
        parts = parts[0::2] + parts[1::2]
    total = parts[0] + last if len(parts) else last
    return np.asarray(total.reshape((d, *slopes.shape[1:])))


def row_scores(x: FloatArray, theta: FloatArray) -> FloatArray:
    """Return ``x @ theta``, every row by itself: no digit depends on the other rows.

    A matrix product of BLAS rounds a row by where it stands; a product and sum over one row does
    not (Theorem V12; a test compares all positions).
    """
    if theta.ndim == 1:
        return row_products(x, theta)
    columns = [row_products(x, column) for column in np.ascontiguousarray(theta.T)]
    return np.stack(columns, axis=1)


def gradient_rounding(
    loss: Loss, *, records: int, columns: int, norm: float, reach: float, blocked: bool = True
) -> float:
    """Return how far a computed sum of gradients is from the exact one, for |θ| <= ``reach``.

    Public bounds alone: rows of norm at most ``norm``, and the rounding of V10 at its largest
    (docs/theorems_convex.md). ``blocked`` sums are those of :func:`sum_by_blocks`, others one
    matrix product.
    """
    score = (columns + 2) * U * norm * reach
    per_slope = loss.curvature_bound * score
    per_slope += (SLOPE_ROUNDINGS + (loss.outputs or 1)) * U * loss.slope_bound
    added = BLOCK + 2 * math.log2(records + 2) if blocked else records
    return records * norm * (per_slope + (added + 8) * U * loss.slope_bound) * (1.0 + 1e-6)
