"""One release whose profile is known, and so is its inverse: no grid is needed."""

from __future__ import annotations

import math
from functools import cached_property

from accountant.analyses.solvers import Grid, Solver
from accountant.bounds import Bounds
from accountant.pairs.base import DominatingPair, Parts

# A bracket that is wider, relatively, is narrowed by the grid.
WIDE = 1e-4
# Probabilities below count as zero.
LEAST = 1e-280


def covers(parts: Parts) -> bool:
    """Tell whether the parts are one release that inverts its own profile."""
    if len(parts) != 1 or parts[0][1] != 1:
        return False
    return type(parts[0][0]).inverse_profile is not DominatingPair.inverse_profile


class InvertedProfile(Solver):
    """The profile of one release, and its inverse."""

    name = "profile"
    reason = "one release, whose profile and its inverse are computed directly"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._pair = parts[0][0]
        self._grid: Grid | None = None

    @cached_property
    def largest_loss(self) -> float:
        """The pair's own bound: no table of losses is made for it."""
        return self._pair.pure_epsilon

    def _beside(self) -> Grid:
        if self._grid is None:
            self._grid = Grid(self.parts)
        return self._grid

    def epsilon_bounds(self, delta: float) -> Bounds:
        """Bracket ε(delta), 0 <= delta < 1."""
        # The laws on a grid have some mass at infinity, the pair has none.
        if delta > 0.0:
            return self._once("epsilon", delta, self._epsilon)
        return super().epsilon_bounds(delta)

    def delta_bounds(self, epsilon: float) -> Bounds:
        """Bracket δ(epsilon), 0 <= epsilon <= inf."""
        if epsilon < math.inf:
            return self._once("delta", epsilon, self._delta)
        return super().delta_bounds(epsilon)

    def epsilon_upper(self, delta: float) -> float:
        """Bound ε(delta) from above: both ends are known at once."""
        return float(self.epsilon_bounds(delta).upper)

    def delta_upper(self, epsilon: float) -> float:
        """Bound δ(epsilon) from above: both ends are known at once."""
        return float(self.delta_bounds(epsilon).upper)

    def _least(self) -> float:
        """Bound ε(0) by ε at a tiny δ: it does not rise with δ."""
        found = self._pair.inverse_profile(LEAST)
        return 0.0 if found is None else float(found.lower)

    def _epsilon(self, delta: float) -> Bounds:
        found = self._pair.inverse_profile(delta)
        if found is not None and found.upper - found.lower <= WIDE * found.upper:
            return found
        return self._beside().epsilon_bounds(delta).intersection(found)

    def _delta(self, epsilon: float) -> Bounds:
        found = self._pair.profile(epsilon)
        if found.upper <= found.lower * (1.0 + WIDE) + LEAST:
            return found
        return self._beside().delta_bounds(epsilon).intersection(found)
