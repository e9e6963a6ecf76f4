"""The finest grid within a limit on memory, where the one that was planned is not."""

from __future__ import annotations

from collections.abc import Sequence

from accountant.analyses.pld.composed_law import ComposedLaw, TooLarge
from accountant.analyses.pld.grid_parts import GridPart, GridPlan

# Steps from the planned spacing to one that fits, and how much finer than the last grid it must be.
WIDER, FINER = 2.0, 0.7


def law_within(
    parts: Sequence[GridPart], plan: GridPlan, memory_cap: int, last: float
) -> tuple[ComposedLaw, float]:
    """Return the law of the plan, or one that fits and is finer than ``last``, and its spacing.

    Raises
    ------
    TooLarge
        There is none.
    """
    while True:
        try:
            return ComposedLaw(parts, plan, memory_cap), plan.spacing
        except TooLarge:
            plan = plan._replace(spacing=WIDER * plan.spacing)
            if not plan.spacing < FINER * last:
                raise
