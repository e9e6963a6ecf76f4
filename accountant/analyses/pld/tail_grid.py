"""The two laws of one part, from the distribution functions of its loss (Theorem G13).

Masses of narrow cells are differences that lose the functions' digits, in every cell anew. Values
of the profile at the knots lose none: an error of one of them is made once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accountant._core import tools as core
from accountant._rounding import TINY, U
from accountant._typing import FloatArray
from accountant.analyses.pld.loss_grid import GridLaw, LossGrid
from accountant.pairs.base import DominatingPair
from accountant.pairs.tails import Tails


class _Lines(NamedTuple):
    """P(E) - x·Q(E) at x = e^t for an event E of each t, and that of its complement plus x - 1."""

    call: FloatArray
    call_error: FloatArray
    put: FloatArray
    put_error: FloatArray


class _Points(NamedTuple):
    """A function at the knots: ``put`` + 1 - x before knot ``cross``, ``call`` from there on."""

    call: FloatArray
    put: FloatArray
    cross: int
    start: float = 0.0  # put at x = 0
    infinite: float = 0.0  # taken from the function, as mass at infinity


def discretise_tails(pair: DominatingPair, knots: LossGrid) -> GridLaw | None:
    """Return the two laws of ``pair`` on the grid; None where it has no distribution functions."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _laws(pair, knots, knots.losses())


def _laws(pair: DominatingPair, knots: LossGrid, t: FloatArray) -> GridLaw | None:
    above = pair.tails(t)
    # The first cell's tangent is that at its lower end (Theorem G3).
    inside = pair.tails(np.append(t[0], t[1:-1] + 0.5 * knots.spacing))
    if above is None or inside is None or t.size < 4:
        return None
    slip = U * (32.0 + 16.0 * knots.reach())  # of the knots, relative to x
    lines = _lines(above, t, slip)
    cross = int(np.argmax(lines.call_error <= lines.put_error))
    if not 1 <= cross < t.size - 1:
        return None
    last = float(above.of_first(above.above_p, above.above_q)[-1])
    points = _upper(above, lines, cross, pair.loss_error + slip)
    points.call[-1] = min(float(points.call[-1]), last * (1.0 + 2.0 * above.relative_error))
    upper = _masses(points, t, knots.spacing, slip, 1.0, t.size - 1)
    ends = pair.support[1] + pair.loss_error + slip <= t[-1]
    infinite = max(last * (1.0 - 2.0 * above.relative_error), 0.0) if ends else 0.0
    below, end = _lower(inside, t, cross, slip, infinite)
    lower = None if end <= cross else _masses(below, t, knots.spacing, slip, -1.0, end)
    if upper is None or lower is None:
        return None
    unseen = 0.0 if last == 0.0 and pair.support[1] <= t[-1] else TINY
    return GridLaw(knots, upper, lower, float(points.call[-1]) + unseen, infinite, slip, 1.0)


def _lines(tails: Tails, t: FloatArray, slip: float) -> _Lines:
    a, b = tails.coefficients(t)
    x = np.exp(t)
    # of the coefficients: of the knot, and of their sums
    doubt = slip * x + 8.0 * U * (np.abs(np.expm1(t)) + tails.q)
    error = tails.relative_error + 8.0 * U

    def one(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        first, second = a * p, b * q
        return first - second, error * (first + second) + 2.0 * doubt * (p * tails.add + q) + TINY

    call, call_error = one(tails.above_p, tails.above_q)
    put, put_error = one(tails.below_p, tails.below_q)
    return _Lines(call, call_error, -put, put_error)


def _upper(tails: Tails, lines: _Lines, cross: int, slip: float) -> _Points:
    """Return bounds on the profile at the knots, from above (Theorem G9)."""
    grown = 2.0 * slip * (1.0 + 2.0 * tails.relative_error)
    above = np.append(1.0, tails.of_first(tails.above_p, tails.above_q)[:-1])
    below = np.append(tails.of_first(tails.below_p, tails.below_q)[1:], 1.0)
    call = np.maximum(lines.call, 0.0) + lines.call_error + grown * above
    put = np.maximum(lines.put, 0.0) + lines.put_error + grown * below
    # the profile falls, and rises once the line 1 - x is taken from it
    call[cross:] = np.minimum.accumulate(call[cross:])
    put[:cross] = np.minimum.accumulate(put[:cross][::-1])[::-1]
    return _Points(call, put, cross)


def _lower(
    tails: Tails, t: FloatArray, cross: int, slip: float, infinite: float
) -> tuple[_Points, int]:
    """Return points below supporting lines of both cells, and the knot that ends the law."""
    left, right = (_lines(tails, each, slip) for each in (t[:-1], t[1:]))
    put_left, put_right = left.put - left.put_error, right.put - right.put_error
    # The event is everything up to the last cell whose line is below 1 - x at its lower end: a
    # value below 1 - x would take some from the law at every smaller x.
    worse = np.flatnonzero(put_left[: cross - 1] < 0.0)
    everything = int(worse[-1]) + 1 if worse.size else 0
    put_left[:everything] = put_right[:everything] = 0.0
    call, put = np.empty(t.size), np.empty(t.size)
    for out, at_left, at_right in (
        (call, left.call - left.call_error - infinite, right.call - right.call_error - infinite),
        (put, put_left, put_right),
    ):
        out[0], out[-1] = at_left[0], at_right[-1]
        out[1:-1] = np.minimum(at_left[1:], at_right[:-1])
    # Above the last line that is not negative at its upper end the function is zero.
    good = np.flatnonzero(right.call - right.call_error - infinite >= 0.0)
    end = int(good[-1]) + 1 if good.size else 0
    call[end:] = 0.0
    missed = 0.0
    if not everything:
        missed = float(tails.below_p[0] + tails.below_q[0]) * (1.0 + 2.0 * tails.relative_error)
    return _Points(call, put, cross, -missed, infinite), end


def _masses(
    points: _Points, t: FloatArray, spacing: float, slip: float, sign: float, last: int
) -> FloatArray | None:
    """Return the masses of the convex hull of ``points`` up to knot ``last``, rounded outwards."""
    x, c = np.exp(t), points.cross
    growth = math.expm1(spacing)
    # the slopes of call, negative, and of put
    joined = points.put[c - 1] - math.expm1(t[c - 1]) - points.infinite
    joined += sign * (slip * x[c - 1] + 8.0 * U * (1.0 + x[c - 1]))
    fall = np.zeros(t.size)
    values = np.append(joined, points.call[c:])
    fall[c - 1 : t.size - 1] = -np.diff(values) / (x[c - 1 : -1] * growth)
    fall[last:] = 0.0
    rise = np.append(
        (points.put[0] - points.start) / x[0], np.diff(points.put[:c]) / (x[: c - 1] * growth)
    )
    masses = np.zeros(t.size)
    masses[c:] = x[c:] * (fall[c - 1 : -1] - fall[c:])
    masses[: c - 1] = x[: c - 1] * np.diff(rise)
    masses[c - 1] = x[c - 1] * ((1.0 - rise[-1]) - fall[c - 1] + sign * 4.0 * U)
    found = masses[: last + 1].copy()
    if not np.isfinite(found).all() or not points.call[c] > 0.0:
        return None
    if not core.hull(found, spacing, sign > 0.0):
        return None
    # Sums of slopes times widths, from either end to the crossing, are the values to a few units.
    share = (slip + 16.0 * U) * (3.0 + abs(float(points.put[c - 1])) / float(points.call[c]))
    if not share < 1e-6:
        return None
    masses[:] = 0.0
    masses[: last + 1] = found * (1.0 + sign * share)
    return masses
