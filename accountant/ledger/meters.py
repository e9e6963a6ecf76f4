"""The base class of meters: exact sums of charges, checked before they grow."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from accountant import checks
from accountant._basics.display import plain
from accountant._basics.rounding import fraction_up
from accountant.analyses.renyi_conversion import capacity_lower
from accountant.errors import DomainError, UnsupportedError
from accountant.mechanisms.base import Mechanism
from accountant.search import bisect

# Budgets that are neither ε nor δ: what is added up, and the letter of its limit.
LEVELS = {"zcdp": "ρ", "gdp": "μ"}

# A sum whose denominator has more bits than this is rounded up, so that sums stay quick.
LONGEST = 4096
# It is rounded to this many binary places: far below any capacity, so nothing else depends on it.
PLACES = 2048

CANDIDATES = tuple(1.0 + math.exp2(k / 16.0) for k in range(-160, 321))


# Far above any order of use, and small enough that order - 1 is exact.
MAX_ORDER = 2.0**40
ORDER = checks.Argument("orders", "in (1, 2**40]", lambda x: (x > 1.0) & (x <= MAX_ORDER), "")

# Mechanisms with counts.
Charges: TypeAlias = Sequence[tuple[Mechanism, int]]


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
            return f"{LEVELS[self.filter]} = {plain(self.level).removesuffix('.0')}"
        return f"ε = {plain(self.epsilon).removesuffix('.0')} at δ = {plain(self.delta)}"

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
        raise DomainError(f"epsilon and delta must leave some to spend; got {(epsilon, delta)}")
    three = tuple(1.0 + share * (order - 1.0) for share in (1.0, 0.8, 0.6))
    part = math.nextafter(delta / 3.0, 0.0)
    return three if max(capacity_lower(a, epsilon, part) for a in three) > 0.0 else three[:1]


# Every double is an integer multiple of this, so that sums of doubles are sums of integers, and are
# compared with a capacity exactly, whatever their order and number.
UNIT = Fraction(1, 1 << 1074)
# In units: above every finite double, and every sum of 2**53 of them.
INFINITE = 1 << 2300


def ceiling(value: float | Fraction) -> int:
    """Return ``value`` in units, rounded up (a double is exact); ∞ is ``INFINITE``."""
    return INFINITE if value == math.inf else math.ceil(Fraction(value) / UNIT)


def floor(value: float | Fraction) -> int:
    """Return ``value`` in units, rounded down (a finite double is exact)."""
    return math.floor(Fraction(value) / UNIT)


def to_float_up(units: int) -> float:
    """Return the least double that is at least these units; ``inf`` beyond all."""
    return fraction_up(units * UNIT)


def to_float_down(units: int) -> float:
    """Return the largest double that is at most these units."""
    return -fraction_up(-units * UNIT)


class Remaining(NamedTuple):
    """What a budget has left.

    Attributes
    ----------
    spent, capacity : float
        In the filter's own unit; ``spent`` is rounded up and never exceeds ``capacity`` while the
        budget holds.
    unit : str
        What is being added up.
    fraction : float
        The unspent part, in [0, 1], rounded down; 0 when overspent.
    """

    spent: float
    capacity: float
    unit: str
    fraction: float


Row: TypeAlias = tuple[float, float, float, str]


class Meter(ABC):
    """A vector of exact sums, all starting at zero."""

    # Whether sums are all there is to do: then a refusal can say what would fit.
    quick = True

    # Costs remembered: schedules repeat, and a ledger must not grow with its steps.
    _CACHE = 1 << 16

    def __init__(self, size: int) -> None:
        self.size = size
        self._spent: list[Any] = [0] * size
        self._costs: dict[Mechanism, tuple[int | Fraction, ...]] = {}

    @abstractmethod
    def cost(self, mechanism: Mechanism) -> tuple[int | Fraction, ...]:
        """Return what one release adds to each sum; UnsupportedError if it cannot be said."""

    @abstractmethod
    def holds(self, sums: Sequence[Any]) -> bool:
        """Tell whether sums as large as these keep the guarantee."""

    @abstractmethod
    def remaining(self) -> Remaining:
        """Describe what is left."""

    def remaining_after(self, charges: Charges) -> Remaining:
        """Describe what would be left after ``charges``, admitted or not."""
        spent = self._spent
        self._spent = self._after(charges)
        try:
            return self.remaining()
        finally:
            self._spent = spent

    def admits(self, charges: Charges) -> bool:
        """Tell whether the guarantee survives all ``charges`` together."""
        return self.holds(self._after(charges))

    def add(self, charges: Charges) -> None:
        """Add charges, without asking."""
        self._spent = self._after(charges)

    def reserve(self, menu: Charges) -> None:
        """Set aside what a plan costs, in a meter without charges (Theorem L12).

        A plan of what the filter cannot charge leaves nothing.
        """
        try:
            self.add(menu)
        except UnsupportedError:
            self._spent = [INFINITE] * len(self._spent)

    def beyond(self, sums: Sequence[Any]) -> Fraction:
        """Return the masses among the sums that δ pays for; 0 for a filter that has none."""
        return Fraction(0)

    def epsilon_of(self, sums: Sequence[Any]) -> float:
        """Return the least ε found by which the filter would allow such sums; inf for none.

        It says how large a total is, in the unit of the budget, and decides nothing.
        """
        return math.inf

    def epsilon_after(self, charges: Charges) -> float:
        """Return :meth:`epsilon_of` the sums after ``charges``."""
        return self.epsilon_of(self._after(charges))

    def affordable(self, mechanism: Mechanism) -> int:
        """Return the largest count that would be admitted, at most 2**53."""
        return largest(lambda n: self.admits([(mechanism, n)]))

    def _after(self, charges: Charges) -> list[Any]:
        sums = self._spent
        for mechanism, count in charges:
            cost = self._costs.get(mechanism)
            if cost is None:
                cost = self.cost(mechanism)
                if len(self._costs) >= self._CACHE:
                    self._costs.clear()
                self._costs[mechanism] = cost
            sums = [short(s + count * c) for s, c in zip(sums, cost, strict=True)]
        return sums


def short(total: int | Fraction) -> int | Fraction:
    """Return a sum, rounded up where its denominator has become long."""
    if isinstance(total, int) or total.denominator.bit_length() <= LONGEST:
        return total
    return Fraction(math.ceil(total * (1 << PLACES)), 1 << PLACES)


def used_part(spent: int | Fraction, capacity: int | Fraction) -> float:
    """Return the spent part of a capacity, rounded up; nothing is left of one below 0."""
    if capacity > 0:
        return fraction_up(Fraction(spent) / Fraction(capacity))
    return 0.0 if capacity >= 0 and spent == 0 else math.inf


def unspent(used: float) -> float:
    """Return the rest of a used part, in [0, 1], rounded down."""
    return max(0.0, math.nextafter(1.0 - used, 0.0)) if used > 0.0 else 1.0


def described(spent: int, capacity: int, unit: str) -> Row:
    """Return the used part of an exact capacity, both in doubles, and the unit."""
    used = used_part(spent, capacity)
    return used, to_float_up(spent), to_float_down(capacity), unit


def left_of(row: Row) -> Remaining:
    """Describe what is left of a row that :func:`described` made."""
    used, spent, capacity, unit = row
    return Remaining(spent, capacity, unit, unspent(used))


def largest(admits: Any) -> int:
    """Return the largest count in [0, 2**53] that is admitted; admission is monotone."""
    low, high = 0, 1
    while high <= checks.MAX_COUNT and admits(high):
        low, high = high, 2 * high
    return bisect(admits, low, min(high, checks.MAX_COUNT + 1))
