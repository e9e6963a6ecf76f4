"""Whether blocks can pay: the ledger's own watch, asked with all that a block holds.

Nothing about privacy is computed here, and nothing but counts is kept: what a release costs is what
this release of the package says it costs, for every release that a block holds.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from accountant._basics.display import json_value
from accountant.errors import BudgetExceeded
from accountant.ledger import Budget, Remaining
from accountant.ledger.filters import named
from accountant.ledger.history import Entry
from accountant.ledger.plans import Watch, totals
from accountant.mechanisms.base import Mechanism
from accountant.store import texts

# Mechanisms with counts, or caps.
Counts: TypeAlias = "tuple[tuple[Mechanism, int], ...]"

# Kinds that were asked about; then only their counts are new, and the answer takes no time.
_PREPARED: set[object] = set()
_MOST = 1 << 12


class Held(NamedTuple):
    """A block as the tables have it; ``text``, of its budget, is None where it has none."""

    id: int
    address: str
    text: str | None
    relation: str
    planned: str
    deltas: str

    @property
    def budget(self) -> Budget | None:
        """The budget; None without one."""
        return None if self.text is None else texts.budget_of(self.text)


class Case(NamedTuple):
    """A budget, what was planned, and what is held: blocks that agree in them are decided alike."""

    text: str
    menu: Counts
    counts: Counts


@functools.lru_cache(maxsize=1024)
def _empty(text: str, menu: Counts) -> Watch:
    """Return a watch to ask; nothing is added to it."""
    return watch(Case(text, menu, ()))


def admits(case: Case) -> bool:
    """Tell whether a budget allows all of this."""
    found = _empty(case.text, case.menu).admits(case.counts)
    if len(_PREPARED) >= _MOST:
        _PREPARED.clear()
    _PREPARED.add(_kinds(case))
    return found


def is_prepared(case: Case) -> bool:
    """Tell whether these kinds were asked about, so that it takes no time to ask again."""
    return _kinds(case) in _PREPARED


def watch(case: Case) -> Watch:
    """Return what watches over a ledger with this plan, after all that a block holds."""
    found = Watch(texts.budget_of(case.text))
    if case.menu:
        found.plan(case.menu, ask=False)
    found.add(case.counts)
    return found


def can_plan(case: Case, menu: Counts) -> bool:
    """Tell whether the budget of a case allows a plan of ``menu`` beside what is planned."""
    try:
        watch(case).plan(menu)
    except BudgetExceeded:
        return False
    return True


def after(counts: Counts, mechanism: Mechanism, count: int) -> Counts:
    """Return what is held after a charge."""
    held = dict(counts)
    held[mechanism] = held.get(mechanism, 0) + count
    return tuple(held.items())


@functools.lru_cache(maxsize=1024)
def plan_of(planned: str) -> tuple[tuple[int, int, str | None], ...]:
    """Return the kinds, caps and labels of a block's plan."""
    return tuple((kind, cap, label) for kind, cap, label in json.loads(planned))


def menu_of(planned: str, kinds: dict[int, str]) -> Counts:
    """Return the mechanisms and caps of a plan, by the texts of its kinds."""
    return tuple((texts.mechanism_of(kinds[kind]), cap) for kind, cap, _ in plan_of(planned))


class BlockExceeded(BudgetExceeded):
    """A block's budget does not allow a charge; no block was charged.

    Attributes
    ----------
    block : str
        The address of the first block, in their order, that cannot pay.
    remaining : Remaining
        What this block has left.
    asked : tuple of (str, int)
        The mechanisms, as they print, and their counts.
    """

    def __init__(
        self, message: str, block: str, remaining: Remaining, asked: tuple[tuple[str, int], ...]
    ) -> None:
        super().__init__(message)
        self.block = block
        self.remaining = remaining
        self.asked = asked

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.block, self.remaining, self.asked)

    def as_dict(self) -> dict[str, Any]:
        """Return the refusal as JSON has it."""
        value: dict[str, Any] = json_value(
            {
                "refused": str(self),
                "block": self.block,
                "remaining": self.remaining._asdict(),
                "asked": [{"mechanism": name, "count": n} for name, n in self.asked],
            }
        )
        return value


def refusal(address: str, case: Case | None, item: Entry) -> BlockExceeded:
    """Return the refusal of a charge by what ``case`` holds, and what the block has left."""
    assert case is not None
    found, charges = watch(case), [(item.mechanism, item.count)]
    left, fit, why = found.remaining(), "", ""
    if found.quick:
        total, why = totals(found, case.counts, charges)
        fit = f": {total}; {found.affordable(item.mechanism)} would fit"
    message = (
        f"block {address} cannot pay {named(charges)} of its budget, {found.budget.words}{fit}."
        f" No block was charged{why}"
    )
    return BlockExceeded(message, address, left, ((repr(item.mechanism), item.count),))


def refused_plan(address: str, case: Case, item: Entry) -> BlockExceeded:
    """Return the refusal of a plan."""
    found = watch(case)
    message = (
        f"block {address} cannot pay a plan of {named([(item.mechanism, item.count)])}:"
        f" {found.budget.words} allows {found.plannable(item.mechanism)}. Nothing was planned"
    )
    return BlockExceeded(message, address, found.remaining(), ((repr(item.mechanism), item.count),))


def _kinds(case: Case) -> tuple[object, ...]:
    mechanisms: Iterable[Mechanism] = (mechanism for mechanism, _ in case.counts)
    return case.text, case.menu, frozenset(mechanisms)
