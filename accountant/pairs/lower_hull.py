"""The lower convex hull of points of a profile, in rational arithmetic (Theorem P7)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

# Abscissa, ordinate, and the loss whose exponential the abscissa is.
Point: TypeAlias = tuple[Fraction, Fraction, float]


def lower_hull(points: list[Point]) -> list[Point]:
    """Return the vertices of the lower convex hull, for points with increasing abscissae."""
    # In units of which all are multiples: integers need no common divisors.
    across, up = _whole([point[0] for point in points]), _whole([point[1] for point in points])
    kept: list[int] = []
    for last in range(len(points)):
        while len(kept) >= 2:
            first, middle = kept[-2:]
            left = (up[middle] - up[first]) * (across[last] - across[first])
            if left < (up[last] - up[first]) * (across[middle] - across[first]):
                break
            kept.pop()
        kept.append(last)
    return [points[index] for index in kept]


def _whole(values: list[Fraction]) -> list[int]:
    """Return the values times one number that makes all of them integers."""
    unit = math.lcm(*(value.denominator for value in values))
    return [value.numerator * (unit // value.denominator) for value in values]
