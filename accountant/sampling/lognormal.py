"""The law of Y = exp((2x - 1)/2σ²), x ~ N(0, σ²): the likelihood ratio of one Gaussian step.

Y is log-normal with mean one. Its law is kept on a grid in two ways (docs/theorems_sampling.md,
Theorem S5): *spread*, where every value moves to the two grid points around it and keeps its mean,
which is larger in the convex order; and *merged*, where the values of a cell become their mean,
which is smaller.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accountant._core import tools
from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.errors import PrecisionError

_SQRT2 = math.sqrt(2.0)


class Law(NamedTuple):
    """A law on finitely many values >= 0 that bounds another one from one side.

    Attributes
    ----------
    values, masses : float64 arrays of one length
        Increasing values and their masses.
    escaped : float
        The mean that was moved to infinity (spread laws only).
    mass_error, value_error : float
        Relative errors of the masses and of the values: the statement of Theorem S5 holds after
        multiplying each by a factor within these of one, on the unfavourable side.
    """

    values: FloatArray
    masses: FloatArray
    escaped: float
    mass_error: float
    value_error: float


class Cells(NamedTuple):
    """Masses and first moments of the cells ``[0, y₀), [y₀, y₁), …, [y_{n-1}, ∞)`` of Y."""

    edges: FloatArray
    masses: FloatArray
    moments: FloatArray
    mass_error: float
    value_error: float


def normal_tail(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return P{N(0, 1) > z} and the absolute error of each."""
    tail = 0.5 * tools.libm("erfc", z / _SQRT2)
    # 16 units for erfc, and its argument's rounding times the logarithmic derivative.
    return tail, tail * (16.0 + 4.0 * (z * z + 2.0)) * U + 1e-320


def lognormal_cells(scores: FloatArray, noise_multiplier: float) -> Cells:
    """Return the cells of Y between the edges y = exp(z/σ - 1/2σ²), z the increasing ``scores``."""
    inverse = 1.0 / noise_multiplier
    exponents = scores * inverse - 0.5 * inverse * inverse
    edges = np.exp(exponents)
    masses, mass_error = _normal_cells(scores)
    moments, moment_error = _normal_cells(scores - inverse)
    # The shift of the score by 1/σ is rounded: 2u(|z| + 1/σ), times the density over the mass of
    # a cell, which is at most a few over the cell's width.
    width = float(np.diff(scores).min())
    reach = float(np.abs(scores).max()) + inverse
    moment_error += 4.0 * U * reach * (reach + 2.0 / width)
    exponent_error = (float(np.abs(exponents).max()) * 4.0 + 16.0) * U
    return Cells(
        edges, masses, moments, mass_error, 4.0 * (mass_error + moment_error + exponent_error)
    )


def _normal_cells(z: FloatArray) -> tuple[FloatArray, float]:
    """Return the standard normal masses of the cells between ``z``, and their relative error."""
    upper, upper_error = normal_tail(np.maximum(z, 0.0))
    lower, lower_error = normal_tail(np.maximum(-z, 0.0))
    # Differences of the smaller tails: no cancellation against one.
    above = z[:-1] >= 0.0
    masses = np.where(above, upper[:-1] - upper[1:], lower[1:] - lower[:-1])
    errors = np.where(above, upper_error[:-1] + upper_error[1:], lower_error[1:] + lower_error[:-1])
    straddling = (z[:-1] < 0.0) & (z[1:] > 0.0)
    masses = np.where(straddling, 1.0 - lower[:-1] - upper[1:], masses)
    errors = np.where(straddling, lower_error[:-1] + upper_error[1:] + 2.0 * U, errors)
    if not bool((masses > 0.0).all()):
        raise PrecisionError("the grid of the likelihood ratio is finer than its masses resolve")
    relative = float((errors / masses).max()) + 2.0 * U
    first = lower[0] if z[0] < 0.0 else 1.0 - upper[0]
    last = upper[-1] if z[-1] > 0.0 else 1.0 - lower[-1]
    ends = 64.0 * U * (2.0 + float(np.abs(z[[0, -1]]).max()) ** 2)
    return np.concatenate([[first], masses, [last]]), max(relative, ends)


def spread(cells: Cells) -> Law:
    """Move each cell's mass to its ends, keeping its mean: larger in the convex order."""
    left = np.concatenate([[0.0], cells.edges[:-1]])
    means = cells.moments[:-1] / cells.masses[:-1]
    share = np.clip((means - left) / (cells.edges - left), 0.0, 1.0)
    masses = np.zeros(cells.edges.size + 1)
    masses[:-1] += cells.masses[:-1] * (1.0 - share)
    masses[1:] += cells.masses[:-1] * share
    # Above the last edge: the mass stays there and the rest of its mean goes to infinity.
    masses[-1] += cells.masses[-1]
    return Law(
        np.concatenate([[0.0], cells.edges]),
        masses,
        float(cells.moments[-1]),
        cells.mass_error + 8.0 * U,
        cells.value_error + 16.0 * U,
    )


def merged(cells: Cells) -> Law:
    """Replace each cell by its mean: smaller in the convex order."""
    # What is left out only lowers expectations of non-negative functions.
    kept = cells.masses > 1e-290
    return Law(
        cells.moments[kept] / cells.masses[kept],
        cells.masses[kept],
        0.0,
        cells.mass_error,
        cells.value_error + 4.0 * U,
    )
