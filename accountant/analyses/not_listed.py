"""Lower ends without the mass that a pair did not list and counts as infinite loss."""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant.bounds import Bounds


def epsilon_listed(counted: Callable[[float], Bounds], delta: float, left_out: float) -> Bounds:
    """Return ``counted(delta)``, its lower end that of a profile smaller by ``left_out``."""
    found = counted(delta)
    if not left_out > 0.0 or not found.lower > 0.0:
        return found
    more = math.nextafter(delta + left_out, 2.0)
    lower = float(counted(more).lower) if more < 1.0 else 0.0
    return Bounds(min(lower, float(found.upper)), found.upper)


def delta_listed(found: Bounds, left_out: float) -> Bounds:
    """Return a bracket of δ, its lower end smaller by ``left_out``."""
    if not left_out > 0.0 or not found.lower > 0.0:
        return found
    return Bounds(max(math.nextafter(float(found.lower) - left_out, 0.0), 0.0), found.upper)
