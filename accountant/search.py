"""The search for the point where a cost crosses a target; it ends on neighbouring grid points.

The grid is the counts themselves, or the bit patterns of positive doubles, whose order is that of
the doubles. Interpolation only chooses *where* to evaluate. The answer is a point that was
evaluated and met the target, beside a point that was evaluated and did not; so a cost that
wiggles in its last digits can cost a few evaluations, never the guarantee.

For conditions that are no comparison of a cost, :func:`bisect` ends on neighbours of a grid too;
:func:`narrow` halves an interval of numbers, for a guess or where a near miss is good enough.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["COUNTS", "DOUBLES", "Grid", "bisect", "boundary", "crossing", "narrow"]


class Grid:
    """An increasing map from integers to positive numbers, and its rounded inverse."""

    __slots__ = ("rank", "value")  # not a named tuple, which takes long to define

    def __init__(self, value: Callable[[int], float], rank: Callable[[float], int]) -> None:
        self.value = value
        self.rank = rank


def _double(rank: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", rank))[0])


def _bits(value: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


# Misses in a row after which interpolation gives way to bisection.
PATIENCE = 6
# A change of the logarithm of a cost that is no jitter: it says whether the cost rises or falls.
TREND = 1e-4

DOUBLES = Grid(_double, _bits)
COUNTS = Grid(float, round)


class _Point(NamedTuple):
    rank: int
    value: float
    y: float  # log(cost / target): <= 0 exactly where the target is met; may be infinite


def boundary(
    cost: Callable[[float], float],
    target: float,
    grid: Grid,
    guess: float,
    cheap: int,
    dear: int,
) -> int | None:
    """Return a grid point that costs at most ``target`` and whose dearer neighbour costs more.

    The cost grows from ``cheap`` to ``dear``, the two ends of the grid. The answer is None when
    even ``cheap`` costs more than the target, and ``dear`` when it does not.
    """
    low, high = min(cheap, dear), max(cheap, dear)
    at = _evaluator(cost, target, grid)
    start = at(min(max(grid.rank(guess), low), high))
    points = _cross(at, grid, [start], dear if start.y <= 0.0 else cheap)
    if points is None:
        return dear if start.y <= 0.0 else None
    return _close(at, grid, points)


def crossing(
    cost: Callable[[float], float],
    target: float,
    grid: Grid,
    guess: float,
    ends: tuple[int, int],
    falls: bool,
    precision: float = 0.0,
) -> int | None:
    """Return a grid point that costs at most ``target`` and has a neighbour that costs more.

    As :func:`boundary` where it is not known whether the cost rises or falls between ``ends``;
    ``falls`` says what to expect. None where all points tried were on the same side of the target.
    With ``precision`` > 0 the point that costs more may be that far away, relatively.
    """
    low, high = ends
    at = _evaluator(cost, target, grid)
    start = at(min(max(grid.rank(guess), low), high))
    points = _outwards(at, grid, start, ends, 1 if falls == (start.y > 0.0) else -1)
    return None if points is None else _close(at, grid, points, precision)


def bisect(holds: Callable[[int], bool], good: int, bad: int) -> int:
    """Return an integer where a condition holds, next to one where it does not.

    ``good`` and ``bad`` are taken to be such integers, in either order; neither is evaluated.
    """
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def narrow(
    holds: Callable[[float], bool],
    good: float,
    bad: float,
    halvings: int,
    *,
    width: float = 0.0,
    geometric: bool = False,
) -> tuple[float, float]:
    """Halve the interval between a number where a condition holds and one where it does not.

    Returns both ends, in this order, after so many ``halvings`` or when they are at most ``width``
    apart. With ``geometric`` the logarithms are halved.
    """
    for _ in range(halvings):
        if not abs(good - bad) > width:
            break
        middle: float = (good * bad) ** 0.5 if geometric else 0.5 * (good + bad)
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good, bad


def _evaluator(
    cost: Callable[[float], float], target: float, grid: Grid
) -> Callable[[int], _Point]:
    def at(rank: int) -> _Point:
        value = grid.value(rank)
        spent = cost(value)
        # The difference is exact near the target, so the sign of y always is. A NaN is too dear.
        excess = (spent - target) / target
        y = math.log1p(excess) if excess > -1.0 else -math.inf
        return _Point(rank, value, y if spent <= target else max(y, 5e-324))

    return at


def _outwards(
    at: Callable[[int], _Point], grid: Grid, start: _Point, ends: tuple[int, int], sign: int
) -> list[_Point] | None:
    """Step to both sides of ``start`` in turn until the cost crosses the target, or has a slope.

    ``sign`` is the side to begin with. Returns what :func:`_cross` does.
    """
    fronts = {sign: start, -sign: start}
    last = {-1: ends[0], 1: ends[1]}
    step = 0.7
    while any(fronts[side].rank != last[side] for side in fronts):
        for side in fronts:
            before = fronts[side]
            if before.rank == last[side]:
                continue
            point = at(_stepped(grid, before, side, step, last[side]))
            fronts[side] = point
            if (point.y <= 0.0) != (start.y <= 0.0):
                return [before, point]
            nearer = abs(before.y) - abs(point.y)
            if math.isfinite(nearer) and abs(nearer) > TREND:
                way = side if nearer > 0.0 else -side
                points = [before, point] if way == side else [point, fronts[way]]
                return _cross(at, grid, points, last[way])
        step *= 2.0
    return None


def _cross(
    at: Callable[[int], _Point], grid: Grid, points: list[_Point], end: int
) -> list[_Point] | None:
    """Walk from the last of ``points`` towards ``end`` until the cost has crossed the target.

    Returns the points visited, or None where it does not cross.
    """
    side = points[-1].y <= 0.0
    sign = 1 if end > points[-1].rank else -1
    slope, least, most = 1.0, 1e-6, 1.0
    if len(points) > 1:
        slope, most = _slope(points), 8.0
    while (here := points[-1]).rank != end:
        # Assume a power law and overstep a little: it is crossing that counts. The limits grow, so
        # that a cost which is flat, or a slope which was misjudged, is left behind soon.
        step = 1.1 * abs(here.y) / slope + least if math.isfinite(here.y) else most
        points.append(at(_stepped(grid, here, sign, min(step, most), end)))
        if (points[-1].y <= 0.0) != side:
            return points
        slope = _slope(points)
        least, most = 8.0 * least, 2.0 * most
    return None


def _slope(points: list[_Point]) -> float:
    """Return the power with which the cost changes between the last two points, within reason."""
    before, here = points[-2:]
    rise = abs(here.y - before.y) / abs(_log_ratio(here.value, before.value))
    return min(max(rise, 0.1), 10.0) if math.isfinite(rise) else 1.0


def _stepped(grid: Grid, point: _Point, sign: int, step: float, end: int) -> int:
    """Return the rank a step in the logarithm away: at least the neighbour, at most ``end``."""
    rank = _moved(grid, point, sign * step, end)
    return point.rank + sign * min(max(sign * (rank - point.rank), 1), abs(end - point.rank))


def _close(
    at: Callable[[int], _Point], grid: Grid, points: list[_Point], precision: float = 0.0
) -> int:
    """Shrink the bracket formed by the last two points to neighbours; return the good one."""
    good, bad = sorted(points[-2:], key=lambda point: point.y)
    misses, patience = 0, PATIENCE
    while (width := abs(good.rank - bad.rank)) > 1:
        if precision > 0.0 and abs(_log_ratio(good.value, bad.value)) <= precision:
            break
        low, high = min(good.rank, bad.rank), max(good.rank, bad.rank)
        middle = low + width // 2
        if misses < patience:
            rank = _beyond(grid, points, middle, misses)
        else:
            # A step, or noise: trust interpolation less from now on.
            rank, patience = middle, max(patience - 1, 0)
        points.append(at(min(max(rank, low + 1), high - 1)))
        if points[-1].y <= 0.0:
            good = points[-1]
        else:
            bad = points[-1]
        misses = misses + 1 if 2 * abs(good.rank - bad.rank) > width else 0
    return good.rank


def _beyond(grid: Grid, points: list[_Point], middle: int, misses: int) -> int:
    """Return a rank a little beyond the crossing, as seen from the point nearest to the target.

    Landing on the far side is what closes a bracket from both ends; every miss (a bracket that was
    not halved) makes the next attempt bolder, up to the middle of the bracket.
    """
    # One point for each cost, the last: a cost that is flat over a few doubles has no slope there.
    distinct = {point.y: point for point in points if math.isfinite(point.y)}
    near = sorted(distinct.values(), key=lambda point: abs(point.y))[:3]
    if len(near) < 2:
        return middle
    (start, origin, y0), (_, v1, y1) = near[:2]
    x1 = _log_ratio(v1, origin)
    shift = -y0 * x1 / (y1 - y0)
    doubt = 0.1 * abs(shift)
    if len(near) == 3:
        _, v2, y2 = near[2]
        # Newton's form of the inverse parabola through the three points, at y = 0.
        curvature = (_log_ratio(v2, origin) / (y2 - y0) - x1 / (y1 - y0)) / (y2 - y1)
        bend = curvature * y0 * y1
        if abs(bend) < abs(shift):
            shift, doubt = shift + bend, 0.1 * abs(bend)
    # Towards the far end of the bracket; an estimate that points elsewhere is noise.
    sign = 1 if middle > start else -1
    boldness = 8**misses
    distance = max(sign * shift, 0.0) + boldness * doubt
    rank = _moved(grid, near[0], sign * distance, middle) + sign * boldness
    return rank if abs(rank - start) < abs(middle - start) else middle


def _moved(grid: Grid, point: _Point, shift: float, otherwise: int) -> int:
    """Return the rank of ``point.value * exp(shift)``."""
    if abs(shift) < 700.0:
        value = point.value + point.value * math.expm1(shift)
        if 0.0 < value < math.inf:
            return grid.rank(value)
    return otherwise


def _log_ratio(value: float, origin: float) -> float:
    """Return log(value / origin), accurate also for neighbours; a count of 0 is taken for 1/e."""
    if not (value > 0.0 and origin > 0.0):
        value, origin = (max(x, math.exp(-1.0)) for x in (value, origin))
    ratio = (value - origin) / origin
    return math.log1p(ratio) if abs(ratio) < 0.5 else math.log(value) - math.log(origin)
