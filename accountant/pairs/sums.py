"""Sums over the counted parts of a composition, rounded up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from accountant._rounding import sum_up, times_up, up
from accountant.pairs.base import DominatingPair


def total(terms: Iterable[tuple[float, int]]) -> float:
    """Return Σ n·x over terms (x, n) with x >= 0, rounded up; n = 0 contributes nothing."""
    return sum_up([times_up(x, n) for x, n in terms if n])


def root_of_squares(terms: Iterable[tuple[float, int]]) -> float:
    """Return √(Σ n·x²) over terms (x, n) with x >= 0, rounded up."""
    found = [(x, n) for x, n in terms if n and x > 0.0]
    # In units of the largest, so that no square leaves the range of the doubles.
    most = max((x for x, _ in found), default=0.0)
    if most == 0.0 or most == math.inf or len(found) == found[0][1] == 1:
        return most
    squares = sum_up([times_up(up((x / most) ** 2, 4.0), n) for x, n in found])
    return up(most * math.sqrt(squares), 4.0)


def infinite_mass(parts: Sequence[tuple[DominatingPair, int]]) -> float:
    """Return the probability that any of the losses is infinite, rounded up."""
    if len(parts) == 1 and parts[0][1] == 1:
        return min(parts[0][0].infinite_mass, 1.0)
    return _at_least_one((pair.infinite_mass, count) for pair, count in parts if count)


def variation(parts: Sequence[tuple[DominatingPair, int]]) -> float:
    """Bound the total variation distance of the product, rounded up: no δ is above it."""
    if len(parts) == 1 and parts[0][1] == 1:
        return min(parts[0][0].variation, 1.0)
    return _at_least_one((pair.variation, count) for pair, count in parts if count)


def _at_least_one(terms: Iterable[tuple[float, int]]) -> float:
    """Return 1 - Π (1 - x)^n over terms (x, n), rounded up."""
    log_none = 0.0
    for mass, count in terms:
        if mass >= 1.0:
            return 1.0
        log_none += count * math.log1p(-mass)
    if log_none == 0.0:
        return 0.0
    return min(up(-math.expm1(log_none * (1.0 + 2.0**-48)), 16.0), 1.0)
