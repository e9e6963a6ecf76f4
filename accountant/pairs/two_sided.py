"""One pair for both directions, from bounds on the larger of their profiles (Theorem E1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from accountant._rounding import U
from accountant.pairs.atoms import Atoms
from accountant.pairs.base import DominatingPair
from accountant.pairs.constant_profile import constant_profile_pair
from accountant.pairs.lower_hull import Point, lower_hull
from accountant.pairs.profile_pair import ProfileBounds, ProfilePair


def two_sided(bounds: ProfileBounds) -> DominatingPair:
    """Return the pair that bounds on profile, Rényi divergence and loss imply (E1)."""
    return constant_profile_pair(bounds) or TwoSidedPair(bounds)


@dataclass(frozen=True)
class TwoSidedPair(ProfilePair):
    """Values of a profile that bounds both directions, joined by chords and mirrored (E1)."""

    def atoms(self) -> Atoms:
        """Return atoms at ±ε for the changes of slope, and the rest at 0."""
        grid, values = self._values()
        points = [
            (Fraction(math.exp(x)), Fraction(min(h, 1.0)), x)
            for x, h in zip(grid, values, strict=True)
        ]
        kept = lower_hull([_lowered(points), *points[1:]])
        slopes = [(a[1] - b[1]) / (b[0] - a[0]) for a, b in pairwise(kept)]
        slopes.append(Fraction(0))
        q = [before - after for before, after in pairwise(slopes)]
        rows = [(x[2], w * x[0], w) for x, w in zip(kept[1:], q, strict=True) if w > 0]
        upper = [tuple(float(entry) for entry in row) for row in rows]
        zero = float(_rest(kept))
        table = np.array(
            [(-loss, below, above) for loss, above, below in reversed(upper)]
            + [(0.0, zero, zero)]
            + upper
        )
        infinite = float(kept[-1][1])
        error = 8.0 * U * (1.0 + grid[-1])
        loss, p, q_mass = (table[:, column].copy() for column in range(3))
        return Atoms(loss, p, q_mass, infinite, infinite, 8.0 * U, error)


def _lowered(points: list[Point]) -> Point:
    """Return the point at 0, below the chords from every other to its mirror image."""
    (x, most, loss), others = points[0], points[1:]
    return x, min([most, *((t - 1 + 2 * h) / (t + 1) for t, h, _ in others)]), loss


def _rest(kept: list[Point]) -> Fraction:
    """Return the mass at loss 0, one minus the masses of the mirrored halves."""
    start = kept[0][1]
    if len(kept) == 1:
        return 1 - start
    slope = (start - kept[1][1]) / (kept[1][0] - kept[0][0])
    return 1 - start - 2 * slope
