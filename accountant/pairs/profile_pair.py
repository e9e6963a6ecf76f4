"""A pair made from bounds on its profile: the chords between its values lie above it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

import numpy as np

from accountant._rounding import U
from accountant.errors import UnsupportedError
from accountant.pairs.atoms import AtomicPair, Atoms
from accountant.pairs.lower_hull import lower_hull

POINTS = 500  # of the profile, joined by chords
LEAST = 1e-25  # of the profile; what is left is mass at infinity
FARTHEST = 170.0  # and four times it does not overflow an exponential
LARGEST = 690.0  # of the losses in the table: their exponentials are doubles


class ProfileBounds(Protocol):
    """Upper bounds on the profile, the Rényi divergences and the loss of a release."""

    def delta(self, epsilon: float) -> float:
        """Bound the profile in both directions."""

    def rdp(self, order: float) -> float:
        """Bound the Rényi divergence in both directions."""

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

    def atoms(self) -> Atoms:
        """Return the atoms of the convex hull of the values found."""
        grid, values = self._values()
        points = [(Fraction(0), Fraction(1), 0.0)]
        points += [
            (Fraction(math.exp(x)), Fraction(min(h, 1.0)), x)
            for x, h in zip(grid, values, strict=True)
        ]
        kept = lower_hull(points)
        slopes = [(a[1] - b[1]) / (b[0] - a[0]) for a, b in pairwise(kept)]
        q = [before - after for before, after in pairwise([*slopes, Fraction(0)])]
        rows = [(x[2], w * x[0], w) for x, w in zip(kept[1:], q, strict=True) if w > 0]
        # Nothing is known at any ε: all mass is at infinity, but the table must not be empty.
        rows = rows or [(0.0, Fraction(2.0**-60), Fraction(2.0**-60))]
        loss, p, q_mass = (np.array([float(row[i]) for row in rows]) for i in range(3))
        infinite, lost = float(kept[-1][1]), float(1 - slopes[0])
        error = 8.0 * U * (1.0 + grid[-1])
        return Atoms(loss, p, q_mass, infinite, max(lost, 0.0), 8.0 * U, error)

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
        return float(
            min(rdp_bound(self.bounds, order), self.bounds.pure_epsilon, super().rdp(order))
        )

    def finite_rdp(self, order: float) -> float:
        """Return the least of the bound on the mechanism and that of the atoms without +∞."""
        mine = min(rdp_bound(self.bounds, order), self.bounds.pure_epsilon)
        return float(min(mine, super().finite_rdp(order)))


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
    """Bound the Rényi divergence; infinite where nothing is known."""
    try:
        return bounds.rdp(order)
    except UnsupportedError:
        return math.inf
