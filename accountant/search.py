"""The search for the point where a cost crosses a target; it ends on neighbouring grid points.

The grid is the counts themselves, or the bit patterns of positive doubles, whose order is that of
the doubles. Interpolation only chooses *where* to evaluate. The answer is a point that was
evaluated and met the target, beside a point that was evaluated and did not; so a cost that
wiggles in its last digits can cost a few evaluations, never the guarantee. The search is that of
the native core (``search.c``), which calibrates by it.

For conditions that are no comparison of a cost, :func:`bisect` ends on neighbours of a grid too;
:func:`narrow` halves an interval of numbers, for a guess or where a near miss is good enough;
:func:`least` doubles a number before it halves. :func:`golden` looks for a least value.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from accountant._core import answers as core


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


DOUBLES = Grid(_double, _bits)
COUNTS = Grid(float, round)


def boundary(
    cost: Callable[[float], float], target: float, grid: Grid, guess: float, cheap: int, dear: int
) -> int | None:
    """Return a grid point that costs at most ``target`` and whose dearer neighbour costs more.

    The cost grows from ``cheap`` to ``dear``, the two ends of the grid. The answer is None when
    even ``cheap`` costs more than the target, and ``dear`` when it does not.
    """
    return core.boundary(cost, target, grid is COUNTS, guess, cheap, dear)


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
    return core.crossing(cost, target, grid is COUNTS, guess, *ends, falls, precision)


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


def least(
    fits: Callable[[float], bool],
    start: float,
    most: float,
    halvings: int,
    *,
    geometric: bool = False,
) -> float:
    """Return about the least number from ``start`` on that fits; inf where none up to ``most``.

    Numbers are doubled until one fits; where one does, so do all that are larger.
    """
    bad = good = start
    while not fits(good):
        bad, good = good, 2.0 * good
        if good > most:
            return math.inf
    return narrow(fits, good, bad, halvings, geometric=geometric)[0]


GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def golden(
    cost: Callable[[float], float], low: float, high: float, refinements: int
) -> tuple[float, float]:
    """Return ``(cost(x), x)`` where ``cost``, unimodal between the ends, is nearly least.

    It is a guess, which the caller certifies.
    """
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = cost(left), cost(right)
    for _ in range(refinements):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = cost(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = cost(right)
    return min((at_left, left), (at_right, right))
