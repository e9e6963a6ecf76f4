"""An odometer: a bound on the privacy loss that holds after every step at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.rounding import fraction_up
from accountant.analyses import renyi_conversion
from accountant.analyses.over_steps.by_renyi import least_over_orders
from accountant.analyses.over_steps.history import total
from accountant.environment import to_nearest
from accountant.errors import DomainError
from accountant.ledger.accountant import Accountant
from accountant.ledger.basic import basic_epsilon, largest_loss
from accountant.ledger.budget import ORDER
from accountant.mechanisms.base import Mechanism

# Far apart: every order costs log(orders)/(α - 1), and between them little is lost.
_ORDERS = tuple(1.0 + 2.0**k for k in range(-1, 11))


@dataclass(frozen=True)
class Odometer:
    """Reads off ε after every release of a ledger, all readings valid together.

    Parameters
    ----------
    delta : float
        In [0, 1): the probability that the privacy loss ever exceeds a reading. At 0 a reading is
        the sum of the largest losses, which it never exceeds at any other δ either (L18).
    orders : sequence of float, optional
        Rényi orders, fixed in advance, which share ``delta`` equally.

    Notes
    -----
    *Guarantee.* With mechanisms, parameters and stopping chosen adaptively, and for every pair of
    neighbouring data sets, the probability that the privacy loss after *some* release exceeds the
    reading after it is at most ``delta``. So the interaction stopped at any time at which the
    reading is at most ε, for a fixed ε, is (ε, δ)-differentially private (docs/theorems_ledger.md,
    L6).

    *Source.* Rogers, Roth, Ullman, Vadhan 2016 (odometers); Whitehouse, Ramdas, Rogers, Wu 2023
    (time-uniform martingale bounds); here several linear boundaries share ``delta``.
    """

    delta: float
    orders: Sequence[float] | None = None

    def __post_init__(self) -> None:
        delta = checks.number(checks.DELTA, self.delta)
        orders: Any = checks.real(ORDER, _ORDERS if self.orders is None else self.orders)
        listed = tuple(map(float, np.ravel(orders)))
        if not listed or len(set(listed)) != len(listed):
            raise DomainError(f"orders must be distinct, at least one; got {self.orders!r}")
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "orders", listed)

    @to_nearest
    def over_steps(self, ledger: Accountant) -> NDArray[np.float64]:
        """Return the reading after each release, in nats: shape (len(ledger),), non-decreasing."""
        orders: Any = self.orders
        added = self._added(ledger)
        if not self.delta:
            return added
        return np.minimum(least_over_orders(ledger.history, orders, self._convert), added)

    @to_nearest
    def epsilon(self, ledger: Accountant) -> float:
        """Return the reading now; 0 before the first release."""
        orders: Any = self.orders
        counts = ledger.counts
        if not counts:
            return 0.0
        added = basic_epsilon(counts)
        if not self.delta:
            return added
        spent = total(counts, orders)
        rows = [self._convert(a, row) for a, row in zip(orders, spent, strict=True)]
        return min(float(np.min(rows, axis=0).max()), added)

    def _added(self, ledger: Accountant) -> NDArray[np.float64]:
        """Return the sum of the largest losses after each release, each rounded up once."""
        found: list[float] = []
        total = Fraction(0)
        prices: dict[Mechanism, Fraction | float] = {}
        for item in ledger.history:
            if item.mechanism not in prices:
                prices[item.mechanism] = largest_loss(item.mechanism)
            price = prices[item.mechanism]
            if price == math.inf:
                found += [math.inf] * (len(ledger) - len(found))
                break
            start, each = total, Fraction(price)
            found += [fraction_up(start + k * each) for k in range(1, item.count + 1)]
            total += item.count * each
        return np.array(found, dtype=np.float64)

    def _convert(self, order: float, spent: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add what the loss may exceed the divergence by, with this order's part of delta."""
        orders: Any = self.orders
        part = self.delta
        if len(orders) > 1:
            part = math.nextafter(self.delta / len(orders), 0.0)
        offset = renyi_conversion.mironov_upper(order, 0.0, part)
        return np.nextafter(spent + offset, np.inf)
