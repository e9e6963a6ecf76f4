"""The base class of meters: exact sums of charges, checked before they grow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from accountant import checks
from accountant.errors import UnsupportedError
from accountant.ledger import exact_sums
from accountant.mechanisms.base import Mechanism
from accountant.search import bisect


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


class Meter(ABC):
    """A vector of exact sums, all starting at zero."""

    # Whether sums are all there is to do: then a refusal can say what would fit.
    quick = True

    # Costs remembered: schedules repeat, and a ledger must not grow with its steps.
    _CACHE = 1 << 16

    def __init__(self, size: int) -> None:
        self._spent = [0] * size
        self._costs: dict[Mechanism, tuple[int, ...]] = {}

    @abstractmethod
    def cost(self, mechanism: Mechanism) -> tuple[int, ...]:
        """Return what one release adds to each sum; UnsupportedError if it cannot be said."""

    @abstractmethod
    def holds(self, sums: Sequence[int]) -> bool:
        """Tell whether sums as large as these keep the guarantee."""

    @abstractmethod
    def remaining(self) -> Remaining:
        """Describe what is left."""

    def remaining_after(self, charges: Sequence[tuple[Mechanism, int]]) -> Remaining:
        """Describe what would be left after ``charges``, admitted or not."""
        spent = self._spent
        self._spent = self._after(charges)
        try:
            return self.remaining()
        finally:
            self._spent = spent

    def admits(self, charges: Sequence[tuple[Mechanism, int]]) -> bool:
        """Tell whether the guarantee survives all ``charges`` together."""
        return self.holds(self._after(charges))

    def add(self, charges: Sequence[tuple[Mechanism, int]]) -> None:
        """Add charges, without asking."""
        self._spent = self._after(charges)

    def reserve(self, menu: Sequence[tuple[Mechanism, int]]) -> None:
        """Set aside what a plan costs, in a meter without charges (Theorem L12).

        A plan of what the filter cannot charge leaves nothing.
        """
        try:
            self.add(menu)
        except UnsupportedError:
            self._spent = [exact_sums.INFINITE] * len(self._spent)

    def affordable(self, mechanism: Mechanism) -> int:
        """Return the largest count that would be admitted, at most 2**53."""
        return largest(lambda n: self.admits([(mechanism, n)]))

    def _after(self, charges: Sequence[tuple[Mechanism, int]]) -> list[int]:
        sums = self._spent
        for mechanism, count in charges:
            cost = self._costs.get(mechanism)
            if cost is None:
                cost = self.cost(mechanism)
                if len(self._costs) >= self._CACHE:
                    self._costs.clear()
                self._costs[mechanism] = cost
            sums = [s + count * c for s, c in zip(sums, cost, strict=True)]
        return sums


def largest(admits: Any) -> int:
    """Return the largest count in [0, 2**53] that is admitted; admission is monotone."""
    low, high = 0, 1
    while high <= checks.MAX_COUNT and admits(high):
        low, high = high, 2 * high
    return bisect(admits, low, min(high, checks.MAX_COUNT + 1))
