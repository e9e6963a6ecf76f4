"""The Rényi orders of a budget: candidates, and a default that fits any mechanism."""

from __future__ import annotations

import math

from accountant.analyses.renyi_conversion import capacity_lower
from accountant.errors import DomainError

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
