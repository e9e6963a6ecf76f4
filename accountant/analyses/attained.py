"""Lower ends by mechanisms that certainly have the guarantee, where a curve is below the pair's.

Theorem M8(f) of docs/theorems_mechanisms.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from accountant.analyses.solvers import Grid, Solver
from accountant.bounds import Bounds
from accountant.errors import AccountantError
from accountant.pairs.base import Parts

__all__ = ["AttainedGrid", "attained_parts"]


def attained_parts(parts: Parts) -> Parts | None:
    """Return the parts with those in their place that mechanisms attain; None if none has one.

    A part of which none is known is left out: no part lowers the loss of another (Theorem M20).
    """
    if not any(pair.attained is not None for pair, _ in parts):
        return None
    found = [
        (pair if pair.attained is None else pair.attained, n)
        for pair, n in parts
        if pair.attained is not None or not pair.sharper_rdp
    ]
    return tuple(found)


class AttainedGrid(Grid):
    """A grid's bracket; where a Rényi curve took its lower end, that of what is attained."""

    @cached_property
    def _attained(self) -> Grid | None:
        found = attained_parts(self.parts)
        return None if found is None else Grid(found)

    def _epsilon(self, delta: float) -> Bounds:
        return self._raised(super()._epsilon(delta), lambda one: one.epsilon_bounds(delta))

    def _delta(self, epsilon: float) -> Bounds:
        return self._raised(super()._delta(epsilon), lambda one: one.delta_bounds(epsilon))

    def _raised(self, known: Bounds, ask: Callable[[Solver], Bounds]) -> Bounds:
        if known.lower > 0.0 or not known.upper > 0.0 or self._attained is None:
            return known
        try:
            lower = float(ask(self._attained).lower)
        except AccountantError:
            return known
        return Bounds(min(lower, float(known.upper)), float(known.upper))
