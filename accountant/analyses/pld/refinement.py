"""How narrow a grid's bracket need be, and how much finer the next grid should be."""

from __future__ import annotations

import math

# Sizes from which a bracket need only be nearly as narrow as usual: of one part, and of several,
# each of which has to be put on the grid; and the size of several that takes half a second.
HUGE, HUGE_MIXED, LONG = 2**20, 2**19, 2**21
NEARLY, ROUGHLY, USUAL_TOLERANCE = 5.0, 10.0, 1e-6
# The width falls like the square of the spacing; the next grid should do, and not be far too fine.
# A grid of many points is seldom so coarse that its width says little about that of the next.
AIM, LEAST, MOST = 0.8, 0.125, 0.7
MANY, LEAST_OF_MANY = 2**17, 0.04
# Where it fell by less than this power of the spacing, it falls all the faster later.
STEADY = 1.5


def most_excess(size: int, parts: int, tolerance: float) -> float:
    """Return how many times the tolerance the bracket of a grid of that size may be wide."""
    if size < _huge(parts, tolerance):
        return 1.0
    return ROUGHLY if _is_long(size, parts, tolerance) else NEARLY


def _is_long(size: float, parts: int, tolerance: float) -> bool:
    """Tell whether a grid of that size of several parts takes half a second or more."""
    return parts > 1 and tolerance == USUAL_TOLERANCE and size > LONG


def is_steady(fell: float, share: float) -> bool:
    """Tell whether a width that fell so, by a spacing times ``share``, tells how fine to be."""
    return bool(fell <= share**STEADY)


def finer(excess: float, size: int, parts: int, tolerance: float, *, steady: bool = True) -> float:
    """Return the next spacing over that of a grid whose bracket was so many tolerances wide."""
    wished = AIM / math.sqrt(excess)
    if parts > 1:  # as coarse as does for a huge grid, but not so coarse that it is none
        for enough, least in ((NEARLY, _huge(parts, tolerance)), (ROUGHLY, _long(tolerance))):
            coarser = AIM * math.sqrt(enough / excess)
            wished = max(wished, min(coarser, size / least))
    # Where the width tells little, a grid that takes less than half a second is tried between.
    far = parts > 1 and size >= MANY and (steady or size > LEAST * LONG)
    return min(max(wished, LEAST_OF_MANY if far else LEAST), MOST)


def _huge(parts: int, tolerance: float) -> float:
    if tolerance != USUAL_TOLERANCE:
        return math.inf
    return HUGE if parts == 1 else HUGE_MIXED


def _long(tolerance: float) -> float:
    return LONG if tolerance == USUAL_TOLERANCE else math.inf
