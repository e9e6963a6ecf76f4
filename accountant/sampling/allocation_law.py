"""The law of a sum of independent likelihood ratios, bounded from both sides.

The privacy loss of random allocation is the logarithm of the mean of T independent log-normal
variables, so it has the one-dimensional distribution of a sum. The sum is built by doubling.
After each addition its distribution is reduced to a few hundred grid points, by spreading (upper)
or merging (lower). docs/theorems_sampling.md, Theorems S4 and S5.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant._core import tools
from accountant.sampling.allocation_table import Table, chord_law, make_table, tangent_law
from accountant.sampling.lognormal import Law, lognormal_cells, merged, spread

# Any grid is valid: the numbers move widths and times, and were chosen by trial.
# A law from the transform is used where its masses have a smaller relative error.
MOST_ERROR = 1e-6
# The fine part of one ratio's grid ends at this standard score: 1e-31 is beyond, under either law.
_REACH = 11.6
# Scores of a few cells beyond it.
_FAR = np.array([12.5, 14.0, 16.0, 19.0, 23.0, 29.0, 36.0])
# The mass that a grid may leave out at either end of a sum.
_FLOOR = 1e-30
# Groups of a law from which the shape of a sum is guessed.
_COARSE = 128
# Points at the lower end of a law that are groups of their own.
_END = 40
# Growth of the spacing with the distance from the median, in spacings: tails are smooth in the
# logarithm.
_GROWTH = 0.25
# Spacings between the left end and the median, in widths of the bulk: twelve for a normal law.
_MOST_LEFT = 200.0


class LatticeLaw(NamedTuple):
    """A law of the mean, and the spacing of the logarithms of its values; 0 for no lattice."""

    law: Law
    spacing: float


@functools.lru_cache(maxsize=16)
def _table(noise_multiplier: float, terms: int, points: int) -> Table | None:
    return make_table(noise_multiplier, terms, points)


@functools.lru_cache(maxsize=64)
def mean_law(noise_multiplier: float, terms: int, points: int, upper: bool) -> LatticeLaw:
    """Return the law of the mean of ``terms`` >= 2 likelihood ratios.

    By its transform (Theorem S17), and where that is hard by doubling (Theorem S5), with a few
    ``points`` more or less. The values of an upper law are ``exp(k * spacing)``, k an integer, so
    that epochs compose without further loss.
    """
    table = _table(noise_multiplier, terms, points)
    if table is not None:
        law = chord_law(table) if upper else tangent_law(table)
        if law.mass_error < MOST_ERROR:
            return LatticeLaw(law, table.spacing)
    law, spacing = sum_law(noise_multiplier, terms, points, upper)
    law = law._replace(values=law.values / terms, escaped=law.escaped / terms)
    return LatticeLaw(law, spacing if upper else 0.0)


def sum_law(noise_multiplier: float, terms: int, points: int, upper: bool) -> LatticeLaw:
    """Return the law of the sum of ``terms`` >= 2 likelihood ratios.

    Intermediate sums are kept on about ``points`` points. The values of an upper law are
    ``terms * exp(k * spacing)``, k an integer, so that epochs compose without further loss.
    """
    inverse = 1.0 / noise_multiplier
    inner = np.linspace(-_REACH, _REACH + inverse, points)
    # A few cells further out, so that next to nothing is spread to zero or to infinity, which are
    # far away when the noise is large.
    scores = np.concatenate([-_FAR[::-1], inner, _FAR + inverse])
    cells = lognormal_cells(scores, noise_multiplier)
    one = spread(cells) if upper else merged(cells)
    add = _add_spread if upper else _add_merged
    additions = [
        both for bit in bin(terms)[3:] for both in ((True, False) if bit == "1" else (True,))
    ]
    law = one
    for both in additions[:-1]:
        other = law if both else one
        law = add(law, other, _grid(law, other, points))
    other = law if additions[-1] else one
    spacing, grid = _lattice(law, other, points, terms)
    return LatticeLaw(add(law, other, grid), spacing)


def _add_spread(a: Law, b: Law, grid: FloatArray) -> Law:
    grid = np.concatenate([[0.0], grid])
    masses, escaped, terms = tools.spread(a.values, a.masses, b.values, b.masses, grid)
    # The mean that had escaped from one escapes whatever the other is; total masses are one up to
    # the errors, hence the slack.
    escaped = (escaped + a.escaped + b.escaped) * (1.0 + a.mass_error + b.mass_error + 1e-9)
    escaped += 1e-290 * float(grid[-1])
    return _trimmed(Law(grid, masses, escaped, *_errors(a, b, terms)))


def _add_merged(a: Law, b: Law, grid: FloatArray) -> Law:
    masses, moments, terms = tools.merge(a.values, a.masses, b.values, b.masses, grid)
    kept = masses > 1e-290
    masses, moments = masses[kept], moments[kept]
    mass_error, value_error = _errors(a, b, terms)
    return Law(moments / masses, masses, 0.0, mass_error, value_error + 2.0 * terms * U)


def _errors(a: Law, b: Law, terms: int) -> tuple[float, float]:
    mass = (1.0 + a.mass_error) * (1.0 + b.mass_error) - 1.0 + (terms + 16) * U * (1.0 + 1e-6)
    # The last grid is exp(k·spacing), which the loss takes back: up to 16 units of |loss| + 1.
    return mass, max(a.value_error, b.value_error) + 1e-13


def _trimmed(law: Law) -> Law:
    """Drop leading points above zero without mass (they cost time, not truth)."""
    kept = law.masses > 0.0
    kept[0] = True
    return law._replace(values=law.values[kept], masses=law.masses[kept])


def _lattice(a: Law, b: Law, points: int, terms: int) -> tuple[float, FloatArray]:
    """Choose the last grid: equally spaced in the loss."""
    lo, hi, low, _, high = _shape(a, b)
    width = 0.5 * math.log(high / low)
    spacing = max(width / (0.064 * points), math.log(hi / lo) / (30.0 * points))
    # A short binary fraction: its multiples are exact.
    spacing = math.ldexp(
        round(math.ldexp(spacing, 12 - math.frexp(spacing)[1])), math.frexp(spacing)[1] - 12
    )
    first, last = (
        math.floor(math.log(lo / terms) / spacing),
        math.ceil(math.log(hi / terms) / spacing),
    )
    return spacing, terms * np.exp(spacing * np.arange(first, last + 1))


def _grid(a: Law, b: Law, points: int) -> FloatArray:
    """Choose where the sum's law is kept; any choice is valid, only the width depends on it."""
    lo, hi, low, median, high = _shape(a, b)
    depth = math.log(median / lo) if lo < median else 0.0
    # A skewed law may have its bulk in one coarse value; its left tail still needs some points.
    width = max(min(high - median, median - low), median * depth / _MOST_LEFT, 1e-12 * median)
    # Left of the median the spacing is proportional to the value, right of it it grows slowly.
    left = (median / width) * depth
    right = math.log1p(_GROWTH * max(hi - median, 0.0) / width) / _GROWTH
    step = (left + right) / points
    n_left, n_right = math.ceil(left / step), math.ceil(right / step)
    lower_half = median * np.exp(-(width / median) * step * np.arange(n_left, 0, -1))
    upper_half = median + (width / _GROWTH) * np.expm1(_GROWTH * step * np.arange(n_right + 1))
    grid = np.unique(np.concatenate([lower_half, upper_half]))
    return np.ascontiguousarray(grid)


def _shape(a: Law, b: Law) -> tuple[float, float, float, float, float]:
    """Return where the sum's law begins, ends, and its 16, 50 and 84 percent points, roughly."""
    values, masses = _coarse_sum(_coarse(a), _coarse(b))
    below = np.cumsum(masses)
    shares = masses * values
    above = np.cumsum(shares[::-1])[::-1] / float(shares.sum())
    # A group may hold most of the mass: where the law begins, its least value counts.
    least, weights = _coarse_sum(_coarse(a, least=True), _coarse(b, least=True))
    lo = float(least[(least > 0.0) & (np.cumsum(weights) > _FLOOR)][0])
    hi = float(values[above > _FLOOR][-1])
    last = values.size - 1
    places = np.minimum(np.searchsorted(below, [0.16, 0.5, 0.84]), last)
    low, median, high = values[places].tolist()
    return lo, hi, low, median, high


def _coarse(law: Law, *, least: bool = False) -> tuple[FloatArray, FloatArray]:
    """Return group means (or least values) and masses of about ``_COARSE`` groups."""
    size = law.values.size
    inner = np.arange(0, size, max(1, size // _COARSE))
    # The ends point by point: there a group's least value is far from its mean.
    starts = np.unique(np.concatenate([np.arange(min(_END, size)), inner]))
    masses = np.add.reduceat(law.masses, starts)
    moments = np.add.reduceat(law.masses * law.values, starts)
    kept = masses > 0.0
    if least:
        return law.values[starts][kept], masses[kept]
    return moments[kept] / masses[kept], masses[kept]


def _coarse_sum(
    a: tuple[FloatArray, FloatArray], b: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    values = np.add.outer(a[0], b[0]).ravel()
    masses = np.multiply.outer(a[1], b[1]).ravel()
    order = np.argsort(values)
    return values[order], masses[order]
