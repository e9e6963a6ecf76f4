"""The lower convex hull of points of a profile, in rational arithmetic (Theorem P7)."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

__all__ = ["lower_hull"]

# Abscissa, ordinate, and the loss whose exponential the abscissa is.
Point: TypeAlias = tuple[Fraction, Fraction, float]


def lower_hull(points: list[Point]) -> list[Point]:
    """Return the vertices of the lower convex hull, for points with increasing abscissae."""
    kept: list[Point] = []
    for point in points:
        while len(kept) >= 2 and _above(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return kept


def _above(first: Point, middle: Point, last: Point) -> bool:
    left = (middle[1] - first[1]) * (last[0] - first[0])
    return left >= (last[1] - first[1]) * (middle[0] - first[0])
