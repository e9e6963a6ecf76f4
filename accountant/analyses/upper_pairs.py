"""The analysis of parts without a loss distribution, by pairs that dominate them."""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant.analyses.solvers import Grid, Solver
from accountant.bounds import Bounds
from accountant.errors import AccountantError, UnsupportedError
from accountant.pairs.base import Parts

__all__ = ["UpperPairs"]


class UpperPairs(Solver):
    """The smaller of two bounds: dominating pairs on a grid, and Rényi curves.

    A dominating pair bounds the profile from above only, so the lower end is 0. The curves are
    None if a part has none.
    """

    name = "grid"
    reason = (
        "what shares a sample, or has no order, has a pair that dominates its profile, on one grid"
    )

    def __init__(self, parts: Parts, uppers: Parts, curves: Solver | None) -> None:
        super().__init__(parts)
        self._grid, self._curves = Grid(uppers), curves

    def epsilon_bounds(self, delta: float) -> Bounds:
        """Bound ε(delta) from above by the dominating pairs, and by the curves."""
        return self._narrower(lambda one: one.epsilon_bounds(delta))

    def delta_bounds(self, epsilon: float) -> Bounds:
        """Bound δ(epsilon) from above by the dominating pairs, and by the curves."""
        return self._narrower(lambda one: one.delta_bounds(epsilon))

    def quick_epsilon_upper(self, delta: float) -> float:
        """Evaluate the coarsest grid of the dominating pairs."""
        return self._grid.quick_epsilon_upper(delta)

    def quick_delta_upper(self, epsilon: float) -> float:
        """Evaluate the coarsest grid of the dominating pairs."""
        return self._grid.quick_delta_upper(epsilon)

    def _narrower(self, ask: Callable[[Solver], Bounds]) -> Bounds:
        try:
            known = math.inf if self._curves is None else float(ask(self._curves).upper)
        except UnsupportedError:  # some part has a dominating pair and no curve
            known = math.inf
        try:
            return Bounds(0.0, min(float(ask(self._grid).upper), known))
        except AccountantError:
            if known == math.inf:
                raise
            return Bounds(0.0, known)

    _epsilon, _delta = epsilon_bounds, delta_bounds
