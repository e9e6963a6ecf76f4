"""Two laws on a lattice of losses around that of a mean of likelihood ratios.

The chords between upper bounds on its puts and calls are those of a law that is larger in the
convex order; lines below its tangents give one that is smaller (Theorem S17).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.sampling.lognormal import Law

if TYPE_CHECKING:
    from accountant.sampling.allocation_table import Table


class _Knots(NamedTuple):
    """Strikes K = 1 + κ = e^loss, and the options out of the money there; ``centre`` has κ = 0."""

    losses: FloatArray
    values: FloatArray

    @property
    def kappa(self) -> FloatArray:
        return np.expm1(self.losses)

    @property
    def centre(self) -> int:
        return int(np.argmin(np.abs(self.losses)))

    @property
    def least(self) -> float:
        """The first strike, with its digits."""
        return float(np.exp(self.losses[0]))

    @property
    def widths(self) -> FloatArray:
        """The distances of the strikes, with their digits even where κ is next to -1."""
        return np.exp(self.losses[:-1]) * np.expm1(np.diff(self.losses))


def chord_law(table: Table) -> Law:
    """Return the law whose puts and calls are the chords between upper bounds."""
    knots = _Knots(_losses(table), table.upper[::2])
    zero = float(knots.values[0] / knots.least)
    escaped = float(knots.values[-1])
    masses, vertices = _masses(knots, zero)
    put, call = _options(knots, masses, zero, escaped)
    want_put, want_call = _both(knots)
    at = vertices
    short = max(
        float((want_put[at] / put[at]).max()),
        float((want_call[at] / call[at]).max()),
        1.0 / (zero + float(masses.sum())),
        1.0 / (escaped + float(masses @ np.exp(knots.losses))),
    )
    return _law(table, masses, zero, escaped, short - 1.0)


def tangent_law(table: Table) -> Law:
    """Return a law whose puts and calls lie below the tangents in the middles of the cells."""
    kappa = np.expm1(0.5 * table.spacing * table.places)
    a, m, b = kappa[:-2:2], kappa[1:-1:2], kappa[2::2]
    high, low = table.upper[::2], table.lower[1:-1:2]
    steepest = (high[1:] - low) / (b - m)
    flattest = (low - high[:-1]) / (m - a)
    values = np.zeros(high.size)
    left, right = low - steepest * (m - a), low + flattest * (b - m)
    # A line that is negative at one end does not allow for a value of zero there.
    usable = (left >= 0.0) & (right >= 0.0)
    left, right = np.where(usable, left, 0.0), np.where(usable, right, 0.0)
    values[1:-1] = np.maximum(np.minimum(left[1:], right[:-1]), 0.0)
    knots = _Knots(_losses(table), values)
    masses, vertices = _masses(knots, 0.0)
    put, call = _options(knots, masses, 0.0, 0.0)
    want_put, want_call = _both(knots)
    at = vertices
    over = max(
        _ratio(put[at], want_put[at]),
        _ratio(call[at], want_call[at]),
        float(masses.sum()),
        float(masses @ np.exp(knots.losses)),
    )
    return _law(table, masses, 0.0, 0.0, over - 1.0)


def _losses(table: Table) -> FloatArray:
    return np.asarray(0.5 * table.spacing * table.places[::2], dtype=np.float64)


def _ratio(found: FloatArray, wanted: FloatArray) -> float:
    """Return the largest ratio; infinite where something should be nothing."""
    if bool(((wanted <= 0.0) & (found > 0.0)).any()):
        return math.inf
    some = wanted > 0.0
    return float((found[some] / wanted[some]).max(initial=0.0))


def _law(table: Table, masses: FloatArray, zero: float, escaped: float, error: float) -> Law:
    losses = _losses(table)
    kept = masses > 0.0
    values, masses = np.exp(losses[kept]), masses[kept]
    if zero > 0.0:
        values, masses = np.concatenate([[0.0], values]), np.concatenate([[zero], masses])
    # Strikes are those of losses within a few units of themselves.
    value_error = 16.0 * U * (1.0 + float(np.abs(losses).max()))
    mass_error = max(error, 0.0) * (1.0 + 1e-9) + 16.0 * losses.size * U
    return Law(values, masses, escaped, mass_error, value_error)


def _both(knots: _Knots) -> tuple[FloatArray, FloatArray]:
    """Return puts and calls at all strikes, by parity."""
    kappa = knots.kappa
    below = np.arange(kappa.size) < knots.centre
    put = np.where(below, knots.values, knots.values + kappa)
    return put, np.where(below, knots.values - kappa, knots.values)


def _masses(knots: _Knots, zero: float) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return the masses of the convex hull of the values, and where its vertices are."""
    widths, centre = knots.widths, knots.centre
    slopes = np.diff(knots.values) / widths
    puts = _increasing(slopes[:centre], widths[:centre])
    calls = _increasing(slopes[centre:], widths[centre:])
    masses = np.empty(knots.losses.size)
    masses[1:centre] = np.diff(puts)
    masses[centre + 1 : -1] = np.diff(calls)
    masses[0], masses[-1] = puts[0] - zero, -calls[-1]
    masses[centre] = (1.0 + calls[0]) - puts[-1]
    vertices = np.flatnonzero(masses > 0.0)
    return np.maximum(masses, 0.0), vertices


def _increasing(slopes: FloatArray, widths: FloatArray) -> FloatArray:
    """Pool neighbours until slopes increase: those of the largest convex function below."""
    if bool((np.diff(slopes) >= 0.0).all()):
        return slopes
    pools: list[tuple[float, float, int]] = []
    for slope, width in zip(slopes.tolist(), widths.tolist(), strict=True):
        count = 1
        while pools and pools[-1][0] > slope:
            before, weight, many = pools.pop()
            slope = (before * weight + slope * width) / (weight + width)
            width, count = weight + width, many + count
        pools.append((slope, width, count))
    return np.repeat([pool[0] for pool in pools], [pool[2] for pool in pools])


def _options(
    knots: _Knots, masses: FloatArray, zero: float, escaped: float
) -> tuple[FloatArray, FloatArray]:
    """Return puts and calls of a law at its values: sums of non-negative terms."""
    widths = knots.widths
    below = zero + np.cumsum(masses)
    above = np.cumsum(masses[::-1])[::-1]
    put = zero * knots.least + np.concatenate([[0.0], np.cumsum(below[:-1] * widths)])
    rest = np.cumsum((above[1:] * widths)[::-1])[::-1]
    return put, escaped + np.concatenate([rest, [0.0]])
