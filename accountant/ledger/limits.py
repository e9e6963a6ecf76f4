"""What meters look at of a budget: its numbers, what follows from them, and Rényi orders for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accountant.analyses.renyi_conversion import capacity_lower
from accountant.errors import DomainError
from accountant.mechanisms.base import Mechanism

# Budgets that are neither ε nor δ: what is added up, and the letter of its limit.
LEVELS = {"zcdp": "ρ", "gdp": "μ"}

CANDIDATES = tuple(1.0 + math.exp2(k / 16.0) for k in range(-160, 321))


@dataclass(frozen=True)
class Limits:
    """The numbers of a :class:`~accountant.ledger.Budget`, which checks them."""

    epsilon: float
    delta: float = 0.0
    filter: str = ""
    orders: float | Sequence[float] | None = None
    share: float | None = None
    kinds: Sequence[Mechanism] | None = None
    packets: Sequence[tuple[int, int]] | None = None
    level: float | None = None

    @property
    def words(self) -> str:
        """The limit in its own unit: ε and δ, pure ε, ρ or μ."""
        if self.level is not None:
            return f"{LEVELS[self.filter]} = {_plain(self.level)}"
        return f"ε = {_plain(self.epsilon)} at δ = {_plain(self.delta)}"

    @property
    def limit(self) -> tuple[str, float]:
        """The letter of what is limited, and the limit."""
        return ("ε", self.epsilon) if self.level is None else (LEVELS[self.filter], self.level)

    @property
    def releases_delta(self) -> float:
        """The part of ``delta`` for the releases' own deltas."""
        share: Any = self.share
        return self.delta * share if share else 0.0

    @property
    def losses_delta(self) -> float:
        """The rest of ``delta``, rounded down, for finite losses beyond ``epsilon``."""
        rest = self.delta - self.releases_delta
        # One rounding; without a share there is none.
        return math.nextafter(rest, 0.0) if self.releases_delta else self.delta

    def renyi_capacities(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the orders, and what may be spent at each, in nats, rounded down.

        Each order has its own part of ``delta``; it is enough that one capacity is obeyed (L4). A
        negative capacity is never obeyed. Only for filters that have orders.
        """
        orders: Any = self.orders
        # A quotient by more than one is rounded once, perhaps up.
        whole = self.losses_delta
        part = whole if len(orders) == 1 else math.nextafter(whole / len(orders), 0.0)
        return orders, tuple(capacity_lower(a, self.epsilon, part) for a in orders)


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


def _plain(value: float) -> str:
    return repr(value).replace("e-0", "e-").removesuffix(".0")
