"""Sums over records with small, bounded rounding errors."""

from __future__ import annotations

import math

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.learn.convex.losses import SLOPE_ROUNDINGS, Loss
from accountant.learn.convex.result import row_products

BLOCK = 256  # rows added by one matrix product before the blocks are added pairwise


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
