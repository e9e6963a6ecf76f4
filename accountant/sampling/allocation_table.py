"""Two laws on a lattice of losses around that of a mean S of likelihood ratios.

They are made of puts E(K - S)₊ and calls E(S - K)₊ at strikes K = e^loss, the knots of the lattice
and the places between. A few lines of the transform serve all of them (Theorem S15); what no line
resolves is bounded by its neighbours, because calls fall and puts rise with the strike. The chords
between upper bounds are those of a law that is larger in the convex order; lines below the tangents
give one that is smaller (docs/theorems_sampling.md, Theorem S17).
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.sampling.allocation_line import contour
from accountant.sampling.allocation_profile import profile_of
from accountant.sampling.lognormal import Law

IntArray: TypeAlias = "NDArray[np.int64]"

# Any table is valid: the numbers move widths and times, and were chosen by trial.
# Widths of the law within which every knot is used.
DENSE = 7.0
# The most widths on either side.
MOST_WIDTHS = 120.0
# Smaller values are not looked for: they go to infinity, or to zero.
FLOOR = 1e-15
# A table that ends at a larger value is of no use.
ENOUGH = 1e-11
# The relative width up to which a line's bracket is taken.
FINE = 1e-7
# The same for the last line of a side.
ROUGH = 1e-4
# A value below it may have a wider bracket.
SMALL = 1e-12
# The relative width of such a bracket.
RARE = 0.05
# The most lines of a side.
MOST_LINES = 12
# A side is given up after this many lines that resolve next to nothing, which halves the slowest.
PATIENCE = 2
# The most terms of a line.
MOST_TERMS = 2**12
# Places that a line is asked for at once.
BLOCK = 1500


class Table(NamedTuple):
    """Brackets of options out of the money, at strikes K = exp(index·spacing/2).

    Attributes
    ----------
    spacing : float
        Distance of neighbouring losses of the lattice.
    places : int64 array
        Twice the place on the lattice: even at knots, odd or even between them.
    lower, upper : float64 arrays
        The put where K < 1, the call where K >= 1.
    """

    spacing: float
    places: IntArray
    lower: FloatArray
    upper: FloatArray


def make_table(noise_multiplier: float, steps: int, points: int) -> Table | None:
    """Return the table with ``points`` / 6 knots in a width of the law; None where lines fail."""
    found = profile_of(noise_multiplier, steps).delta_bounds(0.0, False)
    # E(1 - S)₊ is 0.4 standard deviations of a normal law, and at most one of any.
    width = max(2.5 * float(found.upper), 1e-13)
    spacing = shared_spacing(6.0 * width / points)
    sides = []
    for sign in (-1, 1):
        index = sign * places(round(DENSE * width / spacing), MOST_WIDTHS * width / spacing)
        index = index if sign > 0 else index[1:]
        lower, upper = _side(noise_multiplier, steps, spacing, index)
        # Up to the last knot that a line resolves, and has a middle before it.
        first = 1 if sign < 0 else 0
        last = (int(np.count_nonzero(lower)) - 1 - first) // 2 * 2 + first
        if last < 8:
            return None
        sides.append((index[: last + 1], lower[: last + 1], upper[: last + 1]))
    (left, low_put, high_put), (right, low_call, high_call) = sides
    if not max(low_put[-1], low_call[-1]) < ENOUGH:
        return None
    return Table(
        spacing,
        np.concatenate([left[::-1], right]),
        np.concatenate([low_put[::-1], low_call]),
        np.concatenate([high_put[::-1], high_call]),
    )


def shared_spacing(most: float) -> float:
    """Return the largest spacing up to ``most`` of three binary digits.

    Any two of such spacings are whole multiples of a third that is hardly finer. So one grid has
    the losses of all tables, and none is moved to the next knot.
    """
    fraction, exponent = math.frexp(most)
    return math.ldexp(math.floor(math.ldexp(fraction, 3)), exponent - 3)


def places(dense: int, most: float) -> IntArray:
    """Return places 0, 1, …, ever sparser: a stride of 2, 4, … knots, with a place between."""
    parts, first, stride = [np.arange(0, 2 * dense)], dense, 2
    while first < most:
        last = first + stride * -(-first // stride)
        parts.append(np.arange(2 * first, 2 * last, stride))
        first, stride = last, 2 * stride
    return np.concatenate([*parts, [2 * first]]).astype(np.int64)


def _side(
    noise: float, steps: int, spacing: float, index: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Bracket the options of one side, from the centre outwards."""
    put = bool(index[-1] < 0)
    kappa = np.expm1(0.5 * spacing * index)
    lower, upper = np.zeros(index.size), np.full(index.size, math.inf)
    start, reach = 0, 8
    for tried in range(MOST_LINES):
        at = min(start + reach, index.size - 1)
        upto = float(kappa[start if put else min(start + 2 * reach, index.size - 1)])
        made = contour(1.0 / noise, steps, float(kappa[at]), put, upto, MOST_TERMS)
        stop = start
        if made is not None:
            low, high = made.bounds(kappa[start : start + BLOCK])
            width = np.where(low > SMALL, FINE if reach > 1 else ROUGH, RARE)
            narrow = high <= low * (1.0 + width)
            count = int(np.argmin(narrow)) if not narrow.all() else narrow.size
            stop = start + count
            lower[start:stop], upper[start:stop] = low[:count], high[:count]
        if stop == start:
            if reach > 1:
                reach = max(reach // 8, 1)
                continue
            break
        if stop >= index.size or lower[stop - 1] < FLOOR:
            break
        reach, start = max((stop - start) // 2, 2), stop
        if tried == PATIENCE and stop < index.size // MOST_LINES:
            break  # as slow as this, the side is not finished
    # Options fall away from the money.
    return lower, np.minimum.accumulate(np.minimum(upper, 1.0))


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
