"""Operations on brackets that several analyses share."""

from __future__ import annotations

import math

from accountant.bounds import Bounds


def capped(bounds: Bounds | None, most: float) -> Bounds:
    """Lower the upper end to ``most``.

    A Rényi curve may bound the mechanism itself, while the losses are those of a dominating pair.
    If the ends cross, the lower end belongs to the pair and is no bound on the mechanism.
    """
    if bounds is None:
        return Bounds(0.0, most)
    if bounds.upper <= most:
        return bounds
    upper = min(float(bounds.upper), most)
    return Bounds(float(bounds.lower) if bounds.lower <= upper else 0.0, upper)


def is_within(bounds: Bounds, tolerance: float) -> bool:
    """Tell whether a bracket is as narrow as ``tolerance`` asks, relatively."""
    lower, upper = float(bounds.lower), float(bounds.upper)
    return upper < math.inf and upper - lower <= tolerance * upper
