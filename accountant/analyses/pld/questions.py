"""One question about a composition on a grid."""

from __future__ import annotations

from collections.abc import Sequence

from accountant.analyses.pld.composed import Composed
from accountant.analyses.pld.upper import MEMORY_CAP
from accountant.bounds import Bounds
from accountant.environment import to_nearest
from accountant.pairs.base import DominatingPair


@to_nearest
def delta_bounds(
    parts: Sequence[tuple[DominatingPair, int]],
    epsilon: float,
    *,
    tolerance: float = 1e-6,
    memory_cap: int = MEMORY_CAP,
) -> Bounds:
    """Bracket δ(epsilon) of the composition of ``parts``; see :class:`Composed`."""
    return Composed(parts, tolerance=tolerance, memory_cap=memory_cap).delta_bounds(epsilon)


@to_nearest
def epsilon_bounds(
    parts: Sequence[tuple[DominatingPair, int]],
    delta: float,
    *,
    tolerance: float = 1e-6,
    memory_cap: int = MEMORY_CAP,
) -> Bounds:
    """Bracket ε(delta) of the composition of ``parts``; see :class:`Composed`."""
    return Composed(parts, tolerance=tolerance, memory_cap=memory_cap).epsilon_bounds(delta)
