"""What watches over a ledger: its plan by exact composition, and the budget's filter for the rest.

A plan is a menu of releases and caps, fixed before the first release. Within the caps anything may
be released in any order, or not at all: that is a post-processing of the whole menu (Theorem L12).
"""

from __future__ import annotations

from collections.abc import Sequence

from accountant import checks
from accountant.display import text_down, text_up
from accountant.errors import AccountantError, BudgetExceeded, DomainError, UnsupportedError
from accountant.ledger import filters
from accountant.ledger.budget import Budget
from accountant.ledger.fixed_parameters import FixedMeter
from accountant.ledger.meters import Meter, Remaining
from accountant.mechanisms.base import Mechanism


class Watch:
    """The meter of a ledger: the caps of its plan, and the filter of its budget."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._exact = FixedMeter(budget.epsilon, budget.delta)
        self._caps: dict[Mechanism, int] = {}
        self._left: dict[Mechanism, int] = {}
        self._rest: Meter | None = filters.meter(budget)
        self._unplanned = False
        # Read from a file: priced when the filter is first asked, which most readers never do.
        self._waiting: list[tuple[Mechanism, int]] = []

    # The plan

    def plan(self, menu: Sequence[tuple[Mechanism, int]], *, ask: bool = True) -> None:
        """Add releases to the plan, all or none; without asking where they were planned before."""
        caps = dict(self._caps)
        for mechanism, count in menu:
            caps[mechanism] = caps.get(mechanism, 0) + count
            if not (caps[mechanism] <= checks.MAX_COUNT):
                raise DomainError(
                    f"count must keep the plan of one mechanism within 2**53; got {count}"
                )
        if ask and not self._exact.admits(menu):
            raise BudgetExceeded(self._unaffordable(menu))
        self._exact.add(menu)
        self._caps, self._left = caps, dict(caps)
        self._rest = None  # what it may spend has changed

    def plannable(self, mechanism: Mechanism) -> int:
        """Return how many releases the plan could hold beside what it holds; at most 2**53."""
        most = checks.MAX_COUNT - self._caps.get(mechanism, 0)
        return min(self._exact.affordable(mechanism), most)

    def left(self, mechanism: Mechanism) -> int:
        """Return how many planned releases of a mechanism have not been made."""
        return self._left.get(mechanism, 0)

    # What meters do

    @property
    def quick(self) -> bool:
        """Whether the filter is sums alone."""
        return self._filter.quick

    def admits(self, charges: Sequence[tuple[Mechanism, int]]) -> bool:
        """Tell whether charges are planned, and the filter admits the rest of them."""
        rest, _ = self._split(charges)
        return not rest or self._filter.admits(rest)

    def add(self, charges: Sequence[tuple[Mechanism, int]]) -> None:
        """Add charges, without asking."""
        rest, left = self._split(charges)
        if rest:
            self._filter.add(rest)
            self._unplanned = True
        self._left = left

    def restore(self, charges: Sequence[tuple[Mechanism, int]]) -> None:
        """Add charges that happened; what the filter cannot charge is refused when it is asked."""
        rest, self._left = self._split(charges)
        self._waiting += rest
        self._unplanned |= bool(rest)

    def affordable(self, mechanism: Mechanism) -> int:
        """Return how many more releases are admitted, planned or not."""
        left = self.left(mechanism)
        try:
            more = self._filter.affordable(mechanism)
        except UnsupportedError:
            if not left:
                raise
            more = 0  # the filter cannot charge it, but the plan holds it
        return min(left + more, checks.MAX_COUNT)

    def remaining(self) -> Remaining:
        """Describe what is left: beside a plan, of the exact ε while all releases are planned."""
        return (self._exact if self._caps and not self._unplanned else self._filter).remaining()

    def remaining_after(self, charges: Sequence[tuple[Mechanism, int]]) -> Remaining:
        """Describe what the filter would have left after ``charges``, admitted or not."""
        return self._filter.remaining_after(self._split(charges)[0])

    @property
    def _filter(self) -> Meter:
        """The filter for what is not planned; the plan is charged in full (Theorem L12)."""
        if self._rest is None:
            # Kept once the plan is charged: what is raised meanwhile must not leave it uncharged.
            rest = filters.meter(self._budget)
            rest.reserve(tuple(self._caps.items()))
            self._rest = rest
        if self._waiting:
            self._rest.add(self._waiting)  # what it raises leaves them waiting, so nothing is free
            self._waiting = []
        return self._rest

    def _split(
        self, charges: Sequence[tuple[Mechanism, int]]
    ) -> tuple[list[tuple[Mechanism, int]], dict[Mechanism, int]]:
        """Return what is not planned of the charges, and what they leave of the plan."""
        if not self._left:
            return list(charges), self._left
        left, rest = dict(self._left), []
        for mechanism, count in charges:
            planned = min(count, left.get(mechanism, 0))
            if planned:
                left[mechanism] -= planned
            if count > planned:
                rest.append((mechanism, count - planned))
        return rest, left

    def _unaffordable(self, menu: Sequence[tuple[Mechanism, int]]) -> str:
        more = ""
        if len(menu) == 1:
            more = f"; {self.plannable(menu[0][0])} would fit"
        names = filters.named(menu)
        return f"the plan of {names} would exceed {self._budget!r}{more}. Nothing was planned"


def allowances(
    watch: Watch, budget: Budget, counts: Sequence[tuple[Mechanism, int]], mechanism: Mechanism
) -> dict[str, int]:
    """Return how many releases each filter would allow after ``counts``, where it can say."""
    from accountant.ledger.budget import Budget

    found = {}
    if not counts:
        found["plan"] = watch.left(mechanism) + watch.plannable(mechanism)
    for name in ("gaussian", "kinds", "moments", "renyi", "approximate"):
        try:
            if budget.filter == name:
                found[name] = watch.affordable(mechanism)
                continue
            if name == "kinds":
                continue  # they are the budget's own, or there are none
            other = Budget(budget.epsilon, budget.delta, filter=name)
            meter = filters.meter(other)
            meter.add(counts)
            found[name] = meter.affordable(mechanism)
        except AccountantError:
            continue  # a filter that cannot charge this mechanism, or leaves nothing to spend
    return found


def refusal(
    watch: Watch,
    budget: Budget,
    counts: Sequence[tuple[Mechanism, int]],
    charges: Sequence[tuple[Mechanism, int]],
) -> str:
    """Return the message of a refusal: the charges, the total after them, and what would fit."""
    more = ""
    if watch.quick:
        after = watch.remaining_after(charges)
        spent, limit = text_up(after.spent, 4), text_down(after.capacity, 4)
        more = f": the total would be {spent}, and the limit is {limit} ({after.unit})"
        if len(charges) == 1:
            mechanism = charges[0][0]
            fits = watch.affordable(mechanism)
            more += f"; {fits} would fit"
            others = allowances(watch, budget, counts, mechanism)
            listed = [
                f'{count} by "{name}"'
                for name, count in others.items()
                if name not in ("plan", budget.filter)
            ]
            if others.get("plan", 0) > fits:
                planned = f"{others['plan']} if planned before the first release (ledger.plan)"
                listed.insert(0, planned)
            if listed:
                more += f" by this filter, {', '.join(listed)}"
    return f"{filters.named(charges)} would exceed {budget!r}{more}. Nothing was recorded"
