"""Whether blocks can pay: the ledger's own watch, asked with all that a block holds.

Nothing about privacy is computed here, and nothing but counts is kept: what a release costs is what
this release of the package says it costs, for every release that a block holds.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from accountant.ledger import Remaining
from accountant.ledger.filters import named
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


def after(counts: Counts, mechanism: Mechanism, count: int) -> Counts:
    """Return what is held after a charge."""
    held = dict(counts)
    held[mechanism] = held.get(mechanism, 0) + count
    return tuple(held.items())


def menu_of(planned: str, kinds: dict[int, str]) -> Counts:
    """Return the mechanisms and caps of a plan, by the texts of its kinds."""
    return tuple((texts.mechanism_of(kinds[kind]), cap) for kind, cap, _ in json.loads(planned))


def refusal(
    address: str, case: Case, charges: Sequence[tuple[Mechanism, int]]
) -> tuple[str, Remaining]:
    """Return the message of a refusal by what ``case`` holds, and what the block has left."""
    found, budget = watch(case), texts.budget_of(case.text)
    left, fit = found.remaining(), ""
    if found.quick:
        total, why = totals(found, budget, case.counts, charges)
        fit = f": {total}; {found.affordable(charges[0][0])} would fit"
    else:
        why = ""
    message = (
        f"block {address} cannot pay {named(charges)} of its budget, {budget.words}{fit}. No block"
        f" was charged{why}"
    )
    return message, left


def _kinds(case: Case) -> tuple[object, ...]:
    mechanisms: Iterable[Mechanism] = (mechanism for mechanism, _ in case.counts)
    return case.text, case.menu, frozenset(mechanisms)
