"""How narrow a grid's bracket need be, and how much finer the next grid should be."""

from __future__ import annotations

import math

__all__ = ["finer", "most_excess"]

# Sizes from which a bracket need only be nearly as narrow as usual: of one part, and of several,
# each of which has to be put on the grid.
HUGE, HUGE_MIXED = 2**20, 2**19
NEARLY, USUAL_TOLERANCE = 5.0, 1e-6
# The width falls like the square of the spacing; the next grid should do, and not be far too fine.
AIM, LEAST, MOST = 0.8, 0.125, 0.7


def most_excess(size: int, parts: int, tolerance: float) -> float:
    """Return how many times the tolerance the bracket of a grid of that size may be wide."""
    return NEARLY if size >= _huge(parts, tolerance) else 1.0


def finer(excess: float, size: int, parts: int, tolerance: float) -> float:
    """Return the next spacing over that of a grid whose bracket was so many tolerances wide."""
    wished = AIM / math.sqrt(excess)
    if parts > 1:  # as coarse as does for a huge grid, but not so coarse that it is none
        wished = max(wished, min(wished * math.sqrt(NEARLY), size / _huge(parts, tolerance)))
    return min(max(wished, LEAST), MOST)


def _huge(parts: int, tolerance: float) -> float:
    if tolerance != USUAL_TOLERANCE:
        return math.inf
    return HUGE if parts == 1 else HUGE_MIXED
