"""Whether blocks can pay: the ledger's own filters, on the sums that a store keeps for each block.

Nothing about privacy is computed here. ``Meter.cost`` says what one release of a kind adds to the
sums of a budget; a store computes it once, keeps it as the *price*, and adds up integers.
``Meter.holds`` decides. Prices are kept so that an abort takes back exactly what its reservation
added, whichever release of this package computes it. A budget whose meter has no sums
(``filter="non-adaptive"``) is asked with all that the block holds, and so is a block with a plan.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from accountant.display import text_down, text_up
from accountant.ledger import filters
from accountant.ledger.plans import Watch
from accountant.store import texts

if TYPE_CHECKING:
    from accountant.ledger import Remaining
    from accountant.ledger.meters import Meter
    from accountant.mechanisms.base import Mechanism

__all__ = ["Held", "added", "fits", "has_sums", "metered", "price", "refusal"]


class Held(NamedTuple):
    """A block as the tables have it; ``budget`` and ``text`` are None where it has no budget."""

    id: int
    address: str
    budget: int | None
    text: str | None
    relation: str
    sums: str
    planned: str

    @property
    def by_sums(self) -> bool:
        """Whether its sums decide; else all that it holds does."""
        return self.text is not None and self.planned == "[]" and has_sums(self.text)


@functools.lru_cache(maxsize=1024)
def _judge(text: str) -> Meter:
    """Return a meter to ask; nothing is added to it."""
    return filters.meter(texts.budget_of(text))


def has_sums(text: str) -> bool:
    """Tell whether sums are all that this budget's filter looks at."""
    return _judge(text).quick


def price(text: str, mechanism: Mechanism) -> tuple[int, ...]:
    """Return what one release adds to the sums of a budget."""
    return _judge(text).cost(mechanism)


def added(sums: str, charges: Iterable[tuple[Sequence[int], int]]) -> str:
    """Return sums after charges: what one costs, and how many, perhaps a negative number."""
    total = texts.sums_of(sums)
    for cost, count in charges:
        before = total or (0,) * len(cost)
        total = tuple(s + count * c for s, c in zip(before, cost, strict=True))
    return texts.text_of_sums(total)


def fits(text: str, sums: str) -> bool:
    """Tell whether a budget allows these sums."""
    return _judge(text).holds(texts.sums_of(sums))


def metered(
    text: str, counts: Mapping[Mechanism, int], planned: Sequence[tuple[Mechanism, int]] = ()
) -> Watch:
    """Return what watches over a ledger with this plan, after all that a block holds."""
    watch = Watch(texts.budget_of(text))
    if planned:
        watch.plan(planned, ask=False)
    watch.add([(mechanism, count) for mechanism, count in counts.items() if count])
    return watch


def refusal(
    address: str, text: str, watch: Watch, charges: Sequence[tuple[Mechanism, int]]
) -> tuple[str, Remaining]:
    """Return the message of a refusal, and what the block has left."""
    left = watch.remaining()
    spent, limit = text_up(left.spent, 4), text_down(left.capacity, 4)
    names = ", ".join(f"{count} x {mechanism!r:.80}" for mechanism, count in charges[:3])
    fit = ""
    if watch.quick and len(charges) == 1:
        fit = f"; {watch.affordable(charges[0][0])} would fit"
    message = (
        f"block {address} cannot pay {names}: of {texts.budget_of(text)!r} it has spent {spent} of"
        f" {limit} ({left.unit}){fit}. No block was charged"
    )
    return message, left
