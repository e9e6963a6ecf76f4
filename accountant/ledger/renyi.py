"""From a Rényi budget at one order to (ε, δ) and back, each rounded to its safe side.

Theorem L3: with E_P[e^{(α-1)L}] ≤ e^{(α-1)ρ}, the profile at ε is at most δ if
ρ ≤ ε - log(1 - 1/α) + log(δ·α)/(α - 1). The last few digits are given away to round-off: at most
five library calls and as many operations, each trusted to 8 units in the last place.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from accountant.errors import DomainError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "CANDIDATES",
    "capacities_lower",
    "capacity_lower",
    "default_orders",
    "simultaneous_upper",
]

# 16 roundings of 2**-53 of the sum of the absolute values of everything added.
_SLACK = 16.0 * 2.0**-53


def capacity_lower(order: float, epsilon: float, delta: float) -> float:
    """Return the largest ρ that Theorem L3 allows at (ε, δ), rounded down; negative if none."""
    b = order - 1.0  # exact for every double above 1 and below 2**53
    terms = (
        epsilon,
        -math.log(b),
        math.log(order),
        (math.log(delta) + math.log(order)) / b,
    )
    size = epsilon + abs(terms[1]) + terms[2] + (1.0 - math.log(delta) + math.log(order)) / b
    return math.fsum(terms) - _SLACK * (1.0 + size)


def capacities_lower(order: float, deltas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return :func:`capacity_lower` at ε = 0 for many δ; minus infinity where δ is not positive."""
    b = order - 1.0
    known = deltas > 0.0
    logs = np.log(np.where(known, deltas, 1.0))
    fixed = math.log(order) - math.log(b)
    size = abs(math.log(b)) + math.log(order) + (1.0 - logs + math.log(order)) / b
    found = fixed + (logs + math.log(order)) / b - 2.0 * _SLACK * (1.0 + size)
    return np.where(known, found, -math.inf)


def simultaneous_upper(order: float, rho: float, delta: float) -> float:
    """Return ρ + log(1/δ)/(α - 1), rounded up: Theorem L6's bound at one order."""
    b = order - 1.0
    tail = -math.log(delta) / b
    return rho + tail + _SLACK * (rho + tail + 1.0 / b)


CANDIDATES = tuple(1.0 + math.exp2(k / 16.0) for k in range(-160, 321))


def default_orders(epsilon: float, delta: float) -> tuple[float, ...]:
    """Return three orders that serve without knowing the mechanisms, or one.

    Gaussian noise has divergence proportional to the order, so the order that maximises capacity
    over order is the best for it. Subsampled Gaussian noise has a divergence that explodes at some
    order, often a little below that one. Any orders are valid. Each takes a part of ``delta``;
    where that leaves nothing to spend at any of the three, the first alone takes it all.
    """
    value, order = max((capacity_lower(a, epsilon, delta) / a, a) for a in CANDIDATES)
    if not value > 0.0:
        raise DomainError(
            f"Budget must leave something to spend: (epsilon, delta) = ({epsilon!r}, {delta!r}) has"
            " no Rényi order with a positive capacity. Use a larger epsilon, or"
            ' filter="approximate" for pure mechanisms'
        )
    three = tuple(1.0 + share * (order - 1.0) for share in (1.0, 0.8, 0.6))
    part = math.nextafter(delta / 3.0, 0.0)
    return three if max(capacity_lower(a, epsilon, part) for a in three) > 0.0 else three[:1]
