"""From a bracket on δ(ε) to a bracket on ε(δ): search loosely, certify strictly."""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant.search import narrow

ProfileBounds = Callable[[float], tuple[float, float]]

# The first step away from the guess, relative; each failure takes one eight times as long.
FIRST_STEP = 2.0**-51
REFINEMENTS = 4


def certified_epsilon(
    delta_bounds: ProfileBounds,
    delta: float,
    guess: float,
    most: float = 1e300,
    step: float = 0.0,
) -> tuple[float, float]:
    """Bracket ``min{ε ≥ 0 : δ(ε) ≤ delta}`` for a non-increasing profile.

    The upper end is a point whose certified upper bound on δ was evaluated and is at most
    ``delta``; the lower end one whose certified lower bound was evaluated and is above it (or 0).
    Where no point up to ``most`` is certified the upper end is infinite. ``step`` is how far the
    ends are expected from the guess, where that is known.
    """
    at_zero = delta_bounds(0.0)
    if at_zero[1] <= delta:
        return 0.0, 0.0
    guess = guess if 0.0 <= guess < math.inf else 1.0
    step = max(step, FIRST_STEP * max(guess, 1e-30))

    def is_upper(epsilon: float) -> bool:
        return delta_bounds(epsilon)[1] <= delta

    def is_lower(epsilon: float) -> bool:
        return delta_bounds(epsilon)[0] > delta

    lower = _nearest(is_lower, guess, -step, 0.0, 0.0) if at_zero[0] > delta else 0.0
    return lower, _nearest(is_upper, guess, step, most, math.inf)


def _nearest(
    holds: Callable[[float], bool], guess: float, step: float, end: float, beyond: float
) -> float:
    """Return a point near ``guess``, in the direction of ``step``, that was seen to hold."""
    if holds(guess):
        return guess
    sign = math.copysign(1.0, step)
    near, distance = 0.0, abs(step)
    while not holds(guess + sign * distance):
        near, distance = distance, 8.0 * distance
        if not sign * (guess + sign * distance) < sign * end:
            return beyond
    distance, _ = narrow(lambda x: holds(guess + sign * x), distance, near, REFINEMENTS)
    return guess + sign * distance
