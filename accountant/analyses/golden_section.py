"""Golden-section search. It returns a guess, which the caller certifies."""

from __future__ import annotations

import math
from collections.abc import Callable

RATIO = (math.sqrt(5.0) - 1.0) / 2.0


def golden(
    cost: Callable[[float], float], low: float, high: float, refinements: int
) -> tuple[float, float]:
    """Return ``(cost(x), x)`` where ``cost``, unimodal between the ends, is nearly least."""
    left, right = high - RATIO * (high - low), low + RATIO * (high - low)
    at_left, at_right = cost(left), cost(right)
    for _ in range(refinements):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - RATIO * (high - low)
            at_left = cost(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + RATIO * (high - low)
            at_right = cost(right)
    return min((at_left, left), (at_right, right))
