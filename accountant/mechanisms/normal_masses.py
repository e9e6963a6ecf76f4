"""Masses of cells under a normal law, to a relative error in both tails (Theorem M4).

Differences of distribution functions are taken on the side where they are small, and only for
cells that are wide enough not to cancel; a narrow cell is its density times a short series.
"""

from __future__ import annotations

import math

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import TINY, U
from accountant._core import tools

REACH = 40.0  # beyond it, in standard deviations, a normal law has less mass than 1e-300
NARROW = 1.0 / 64.0  # largest h²(1 + m²) of a cell m ± h for which the series is used
BLOCK = 2**14  # cells at a time
ROOT_HALF = math.sqrt(0.5)
ROOT_2PI = math.sqrt(2.0 * math.pi)


def cells(edges: FloatArray, mean: float) -> tuple[FloatArray, float]:
    """Return the masses under N(mean, 1) of the cells between ``edges``, and a relative error.

    ``edges`` are increasing doubles (equal neighbours and infinite ends allowed), taken as exact.
    The first and the last mass are those of the tails.
    """
    if edges.size == 0:
        return np.ones(1), 0.0
    z = edges - mean
    mass = np.empty(edges.size + 1)
    mass[[0, -1]] = distribution(np.array([z[0], -z[-1]]))
    error = np.full(edges.size + 1, 0.0)
    error[0], error[-1] = tail_error(z[0]), tail_error(z[-1])
    if edges.size > 1:
        with np.errstate(invalid="ignore"):
            widths = np.diff(edges)
        # Block by block: what is needed on the way is twenty times what is returned.
        for start in range(0, widths.size, BLOCK):
            stop = min(start + BLOCK, widths.size)
            block = slice(start + 1, stop + 1)
            mass[block], error[block] = _between(z[start : stop + 1], widths[start:stop])
    worst = float(error[mass > TINY].max(initial=0.0))
    return mass, worst


def coarse_cells(edges: FloatArray, mean: float) -> tuple[FloatArray, float]:
    """Return what ``cells`` does, several times as fast, with an error that grows as cells shrink.

    Every mass is a difference of distribution functions on the side where they are small.
    """
    z = edges - mean
    below, above = distribution(z), distribution(-z)
    right = z[:-1] > 0.0
    mass = np.empty(z.size + 1)
    mass[0], mass[-1] = below[0], above[-1]
    mass[1:-1] = np.where(right, above[:-1] - above[1:], below[1:] - below[:-1])
    # Of the larger term; the other one is smaller and no less exact.
    larger = np.concatenate([below[:1], np.where(right, above[:-1], below[1:]), above[-1:]])
    nearest = np.concatenate([z[:1], np.where(right, z[:-1], np.minimum(z[1:], 0.0)), z[-1:]])
    mass = np.maximum(mass, 0.0)
    some = larger > TINY
    with np.errstate(divide="ignore"):
        error = 2.0 * tail_error(nearest[some]) * (larger[some] / mass[some])
    return mass, float(error.max(initial=0.0))


def distribution(z: FloatArray) -> FloatArray:
    """Return the standard normal distribution function of an array (docs/theorems.md)."""
    return 0.5 * tools.libm("erfc", z * -ROOT_HALF)


def _between(z: FloatArray, widths: FloatArray) -> tuple[FloatArray, FloatArray]:
    left, right = z[:-1], z[1:]
    with np.errstate(invalid="ignore", over="ignore"):
        half = 0.5 * widths
        middle = left + half
        narrow = half * half * (1.0 + middle * middle) <= NARROW
    if narrow.all():
        return _narrow(middle, half)
    mass = np.empty_like(widths)
    error = np.empty_like(widths)
    mass[narrow], error[narrow] = _narrow(middle[narrow], half[narrow])
    wide = ~narrow
    a, b = left[wide], right[wide]
    # Reflect cells on the right to the left, where distribution functions are small.
    flip = a > 0.0
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    across = high > 0.0
    difference = np.empty_like(low)
    difference[~across] = distribution(high[~across]) - distribution(low[~across])
    # No double is above both: the two add up.
    inner, outer = high[across] * ROOT_HALF, low[across] * ROOT_HALF
    difference[across] = 0.5 * (tools.libm("erf", inner) - tools.libm("erf", outer))
    mass[wide] = np.maximum(difference, 0.0)
    # The larger of the two exceeds the difference by at most a factor 10 on a wide cell.
    inner = np.minimum(np.abs(high), REACH)
    error[wide] = 30.0 * tail_error(inner)
    return mass, error


def _narrow(m: FloatArray, h: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return masses of narrow cells m ± h, and their relative errors.

    The density: |m| is off by two roundings, which move -m²/2 by 2m²U, and so does its square.
    Farther out there is nothing that an error could be of.
    """
    near = np.minimum(np.abs(m), 2.0 * REACH)
    return _series(m, h), (64.0 + 8.0 * near * near) * U


def tail_error(z: FloatArray | float) -> FloatArray:
    """Return the relative error of ``distribution`` at z, its argument off by one rounding.

    `erfc` is trusted to 16u. Its argument is off by 3u (z, √½ and their product), and as
    t·erfc'(t)/erfc(t) is at most 2t² + 1 = z² + 1, that moves it by 3(z² + 1)u.
    """
    squared = np.minimum(np.abs(z), REACH) ** 2
    return np.asarray((32.0 + 6.0 * squared) * U)


def _series(m: FloatArray, h: FloatArray) -> FloatArray:
    """Return the mass of m ± h where h²(1 + m²) <= 1/64, to 2e-17 relative.

    φ(m)·∫ cosh(ms)·e^{-s²/2} ds over |s| <= h; the terms a^j (-b/2)^k / ((2j)! k! (2j + 2k + 1))
    with a = (mh)², b = h² and j + k <= 5.
    """
    total = tools.series((m * h) ** 2, -0.5 * h * h)
    return np.asarray(2.0 * h * np.exp(-0.5 * m * m) / ROOT_2PI * total)
