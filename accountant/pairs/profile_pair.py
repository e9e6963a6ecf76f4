"""Pairs made from bounds on a profile: the chords between its values lie above it.

:class:`ProfilePair` is for one direction (Theorem P7), and :func:`two_sided` for both, from bounds
on the larger of their profiles (Theorem E1). Hulls are computed in rational arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Protocol, TypeAlias

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.errors import UnsupportedError
from accountant.pairs.atoms import AtomicPair, Atoms, ResponsePair
from accountant.pairs.base import DominatingPair

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


POINTS = 500  # of the profile, joined by chords
LEAST = 1e-25  # of the profile; what is left is mass at infinity
FARTHEST = 170.0  # and four times it does not overflow an exponential
LARGEST = 690.0  # of the losses in the table: their exponentials are doubles


class ProfileBounds(Protocol):
    """Upper bounds on the profile, the Rényi divergences and the loss of a release."""

    def delta(self, epsilon: float) -> float:
        """Bound the profile in both directions."""

    def rdp(self, order: float) -> float:
        """Bound the Rényi divergence in both directions; infinite where nothing is known."""

    @property
    def pure_epsilon(self) -> float:
        """Bound the loss; infinite when unbounded."""

    def __hash__(self) -> int:
        """Return a hash by value: bounds are cached."""


@dataclass(frozen=True)
class ProfilePair(AtomicPair):
    """Values of the profile joined by chords, which lie above it (Theorem P7)."""

    bounds: ProfileBounds
    # The Rényi bound has a theorem of its own and composes better than the pair of the profile.
    sharper_rdp = True
    line = None  # its atoms are on one lattice, and each costs a bound

    def atoms(self) -> Atoms:
        """Return the atoms of the convex hull of the values found."""
        points = self._points()
        kept, slope, rows = _changes([(Fraction(0), Fraction(1), 0.0), *points])
        # Nothing is known at any ε: all mass is at infinity, but the table must not be empty.
        table = np.array(rows or [(0.0, 2.0**-60, 2.0**-60)])
        lost = max(float(1 - slope), 0.0)
        return _atoms(table, float(kept[-1][1]), lost, points[-1][2])

    def _points(self) -> list[Point]:
        """Return e^ε, the bound on the profile, and ε, from ε = 0 on."""
        grid, values = self._values()
        return [
            (Fraction(math.exp(x)), Fraction(min(h, 1.0)), x)
            for x, h in zip(grid, values, strict=True)
        ]

    def _values(self) -> tuple[list[float], list[float]]:
        """Return points from 0 on, and bounds on the profile there."""
        spacing = self.lattice[1]
        grid = [k * spacing for k in range(math.ceil(self._reach / spacing) + 1)]
        if grid[-1] < self.bounds.pure_epsilon < LARGEST:
            grid.append(math.ceil(self.bounds.pure_epsilon / spacing) * spacing)
        # Exponentials have an error of an ulp: evaluate slightly to the left, where H is larger.
        return grid, [self.bounds.delta(max(x * (1.0 - 1e-14) - 1e-300, 0.0)) for x in grid]

    @property
    def lattice(self) -> tuple[float, float]:
        """Multiples of the spacing of the values."""
        wanted, pure = self._reach / POINTS, self.bounds.pure_epsilon
        # A bound on the loss is on the lattice, so that no mass is beyond it.
        return 0.0, pure / math.ceil(pure / wanted) if wanted < pure < math.inf else wanted

    @property
    def _reach(self) -> float:
        return float(_reach_of(self.bounds))

    @property
    def pure_epsilon(self) -> float:
        """The bound on the loss, when one run's is bounded."""
        return float(self.bounds.pure_epsilon)

    def rdp(self, order: float) -> float:
        """Return the least of the Rényi bound, the pure bound and the bound of the atoms."""
        if self._table.infinite_p > 0.0:
            return float(min(rdp_bound(self.bounds, order), self.bounds.pure_epsilon))
        return self.finite_rdp(order)

    def finite_rdp(self, order: float) -> float:
        """Return the least of the bound on the mechanism and that of the atoms without +∞."""
        own = super().finite_rdp(order)
        return float(min(rdp_bound(self.bounds, order), self.bounds.pure_epsilon, own))


@lru_cache(maxsize=64)
def _reach_of(bounds: ProfileBounds) -> float:
    """Return where the profile is negligible, or a bound on the loss."""
    # A mass at infinity stays in the profile at every ε.
    least = max(LEAST, 1.001 * bounds.delta(4.0 * FARTHEST))
    reach = least_point(lambda x: bounds.delta(x) <= least, digits=2.0**-8)
    # A profile that is 1 at every ε is nowhere negligible, so its reach has no effect.
    return float(min(max(reach, 2.0**-30), LARGEST, max(bounds.pure_epsilon, 1e-12)))


def least_point(holds: Callable[[float], bool], digits: float = 2.0**-40) -> float:
    """Return a point where a condition that stays true holds, nearly the least."""
    high = 2.0**-10
    while not holds(high):
        if high >= FARTHEST:
            return math.inf if not holds(4.0 * FARTHEST) else 4.0 * FARTHEST
        high *= 2.0
    low = 0.0
    while high - low > digits * high and high > 1e-30:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def rdp_bound(bounds: ProfileBounds, order: float) -> float:
    """Bound the Rényi divergence; infinite where a mechanism inside has no curve."""
    try:
        return bounds.rdp(order)
    except UnsupportedError:
        return math.inf


def two_sided(bounds: ProfileBounds) -> DominatingPair:
    """Return the pair that bounds on profile, Rényi divergence and loss imply (E1)."""
    return constant_profile_pair(bounds) or TwoSidedPair(bounds)


@dataclass(frozen=True)
class TwoSidedPair(ProfilePair):
    """Values of a profile that bounds both directions, joined by chords and mirrored (E1)."""

    def atoms(self) -> Atoms:
        """Return atoms at ±ε for the changes of slope, and the rest at 0."""
        points = self._points()
        kept, _, upper = _changes([_lowered(points), *points[1:]])
        zero = float(_rest(kept))
        lower = [(-loss, below, above) for loss, above, below in reversed(upper)]
        infinite = float(kept[-1][1])
        return _atoms(
            np.array([*lower, (0.0, zero, zero), *upper]), infinite, infinite, points[-1][2]
        )


def _changes(points: list[Point]) -> tuple[list[Point], Fraction, list[tuple[float, float, float]]]:
    """Return the hull of points, minus its first slope, and losses and masses of its changes."""
    kept = lower_hull(points)
    slopes = [(a[1] - b[1]) / (b[0] - a[0]) for a, b in pairwise(kept)] + [Fraction(0)]
    q = [before - after for before, after in pairwise(slopes)]
    rows = [(x[2], float(w * x[0]), float(w)) for x, w in zip(kept[1:], q, strict=True) if w > 0]
    return kept, slopes[0], rows


def _atoms(table: FloatArray, infinite: float, lost: float, farthest: float) -> Atoms:
    loss, p, q = (table[:, column].copy() for column in range(3))
    return Atoms(loss, p, q, infinite, lost, 8.0 * U, 8.0 * U * (1.0 + farthest))


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


FAR = 800.0


def constant_profile_pair(bounds: ProfileBounds) -> ResponsePair | None:
    """Return the (0, δ) pair if the profile is almost constant, None otherwise.

    Then the mechanism adds essentially no noise, and chords of the profile give no pair.
    """
    everywhere = bounds.delta(0.0)
    if bounds.delta(FAR) * 1.001 >= everywhere:
        return ResponsePair(0.0, infinite=min(everywhere, 1.0))
    return None
