"""Charges and reservations: one turn decides about all blocks of a release, and all its parts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from accountant.errors import DomainError, LedgerConflict, UnsupportedError
from accountant.ledger.history import Entry
from accountant.relations import NeighbouringRelation
from accountant.store import decisions, texts
from accountant.store.addresses import siblings
from accountant.store.decisions import Held
from accountant.store.refusal import BlockExceeded

if TYPE_CHECKING:
    from accountant.mechanisms.base import Mechanism
    from accountant.store.database import Database
    from accountant.store.transaction import Query, Transaction

__all__ = [
    "Counts",
    "Decision",
    "Request",
    "again",
    "blocks_of",
    "common_relation",
    "contents",
    "decide",
    "find",
    "holdings",
    "kinds_of",
    "menu",
    "range_of",
    "require_all",
    "runs",
]

_BLOCKS = (
    "SELECT b.id, b.address, b.budget, g.text, b.relation, b.sums, b.planned"
    " FROM accountant_blocks b"
    " LEFT JOIN accountant_budgets g ON g.id = b.budget WHERE "
)


# Mechanisms with counts, or caps.
Counts: TypeAlias = "tuple[tuple[Mechanism, int], ...]"


class Request(NamedTuple):
    """What a client asks for: ``lease`` is None for a charge, else microseconds.

    ``by`` tells this call from others with its key; empty where no other knows the key.
    """

    named: tuple[str, ...]
    entries: tuple[Entry, ...]
    key: str
    lease: int | None = None
    planned: bool = False
    by: str = ""

    @property
    def action(self) -> str:
        """What the journal calls it."""
        if self.planned:
            return "plan"
        return "charge" if self.lease is None else "reserve"


class Decision(NamedTuple):
    """The row of the journal, the end of a lease, whether it was decided before; or a refusal."""

    row: int
    until: int = 0
    repeated: bool = False
    refused: BlockExceeded | None = None


class Charge(NamedTuple):
    """A part of a release: its kind in this store, and how many."""

    kind: int
    mechanism: Mechanism
    times: int


def runs(numbers: Iterable[int]) -> list[list[int]]:
    """Write increasing numbers as [first, last] of each run."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def blocks_of(body: dict[str, Any]) -> Iterator[int]:
    """Return the numbers of the blocks that a row of the journal names."""
    for first, last in body["blocks"]:
        yield from range(first, last + 1)


def find(database: Database, named: Sequence[str]) -> Query:
    """Return the query for the blocks of addresses and patterns, by number."""
    exact = [name for name in named if not name.endswith("/*")]
    conditions: list[str] = []
    values: list[object] = []
    if exact:
        condition, found = database.among("b.address", exact)
        conditions.append(condition)
        values += found
    for name in named:
        if name.endswith("/*"):
            conditions.append("b.address >= ? AND b.address < ?")
            values += range_of(name)
    return _BLOCKS + " OR ".join(conditions) + " ORDER BY b.id", tuple(values)


def range_of(pattern: str) -> tuple[str, str]:
    """Return what the addresses of a pattern are not below, and what they are below."""
    return pattern[:-1], pattern[:-2] + "0"  # in ASCII the digit 0 follows the slash


def decide(turn: Transaction, request: Request) -> Decision:
    """Charge or reserve on all blocks, or refuse on the first that cannot pay; journal either."""
    written = {
        texts.text_of_mechanism(entry.mechanism): entry.mechanism for entry in request.entries
    }
    those, digests = turn.database.among("k.digest", [texts.digest(text) for text in written])
    priced = (
        "SELECT k.id, k.text, p.budget, p.cost FROM accountant_kinds k"
        f" LEFT JOIN accountant_prices p ON p.kind = k.id WHERE {those}"
    )
    earlier, rows, kinds = turn.open(
        ("SELECT seq, action, body FROM accountant_journal WHERE key = ?", (request.key,)),
        find(turn.database, request.named),
        (priced, digests),
    )
    numbers = {text: number for number, text, *_ in kinds}
    prices = {(b, k): texts.sums_of(cost) for k, _, b, cost in kinds if b is not None}
    if earlier:
        return again(turn, request, earlier[0], [row[0] for row in rows], numbers)
    blocks = [Held(*row) for row in rows]
    require_all(request.named, blocks)
    relation = common_relation(turn, blocks, request.entries)
    kinds_of(turn, written, numbers)
    charges = [
        Charge(numbers[texts.text_of_mechanism(e.mechanism)], e.mechanism, e.count)
        for e in request.entries
    ]
    body = contents(request, [block.id for block in blocks], [charge.kind for charge in charges])
    found = _judged(turn, blocks, charges, prices)
    if isinstance(found, BlockExceeded):
        row = turn.append("refuse", body | {"refused": found.block, "key": request.key})
        turn.close()
        return Decision(row, refused=found)
    until = 0 if request.lease is None else turn.now + request.lease
    if request.lease is not None:
        body["until"] = until
    row = turn.append(request.action, body, request.key)
    turn.hold(tuple((block.id, c.kind, c.times) for block in blocks for c in _merged(charges)))
    turn.settle([(block.id, relation, sums) for block, sums in zip(blocks, found, strict=True)])
    if request.lease is not None:
        turn.later(
            "INSERT INTO accountant_reservations (key, seq, until, state, used)"
            " VALUES (?, ?, ?, 'open', ?)",
            (request.key, row, until, charges[0].times),
        )
    turn.close()
    return Decision(row, until)


def kinds_of(turn: Transaction, written: Iterable[str], numbers: dict[str, int]) -> None:
    """Enter the kinds that the store has not seen into it, and into ``numbers``."""
    for text in written:
        if text not in numbers:
            numbers[text] = turn.enter("kinds", "kind", text, mechanism=json.loads(text))


def contents(request: Request, blocks: Sequence[int], kinds: Sequence[int]) -> dict[str, Any]:
    """Return the body of a row of the journal."""
    parts = zip(kinds, request.entries, strict=True)
    body: dict[str, Any] = {
        "blocks": runs(blocks),
        "entries": [[kind, item.count, item.label, item.time] for kind, item in parts],
    }
    if any(name.endswith("/*") for name in request.named):
        body["named"] = list(request.named)
    if request.by:
        body["by"] = request.by
    return body


def again(
    turn: Transaction, request: Request, earlier: Any, blocks: list[int], numbers: dict[str, int]
) -> Decision:
    """Return what was decided under this key, if it was asked for the same."""
    row, action, text = earlier
    settled = "SELECT state, used FROM accountant_reservations WHERE key = ? AND state <> 'open'"
    ended = turn.ask(settled, request.key)
    turn.leave()
    old = json.loads(text)
    kinds = [numbers.get(texts.text_of_mechanism(item.mechanism), 0) for item in request.entries]
    new = contents(request, blocks, kinds)
    # A pattern may mean more blocks by now.
    where = "named" if "named" in new else "blocks"
    same = old["entries"] == new["entries"] and old.get(where) == new[where]
    if action != request.action or not same or ("named" in old) != ("named" in new):
        raise LedgerConflict(
            f"key {request.key!r} was used for another {action}, row {row} of the journal; a key is"
            " for repeating one request"
        )
    if ended and ended[0][1] < request.entries[0].count:
        state, used = ended[0]
        raise LedgerConflict(
            f"reservation {request.key!r} was {state}: {used} of {request.entries[0].count} are"
            " charged, and the others were given back. Reserve under another key"
        )
    return Decision(row, old.get("until", 0), repeated=old.get("by", "") != request.by)


def require_all(named: Sequence[str], blocks: Sequence[Held]) -> None:
    """Refuse addresses that are no block's, and patterns that no block fits."""
    known = {block.address for block in blocks}
    groups = {siblings(address) for address in known}
    missing = [name for name in named if name not in (groups if name.endswith("/*") else known)]
    if missing:
        raise DomainError(
            f"no block of this store is called {missing[0]}; blocks are made before they are"
            " charged, by add_blocks or accountant store blocks"
        )


def common_relation(turn: Transaction, blocks: Sequence[Held], entries: Sequence[Entry]) -> str:
    """Return the one relation of the blocks and of what they are charged."""
    relation = entries[0].mechanism.relation
    for item in entries:
        if item.mechanism.relation is not relation:
            raise UnsupportedError("the parts of one charge must have one neighbouring relation")
    for block in blocks:
        if block.relation not in ("", relation.name):
            other = NeighbouringRelation[block.relation]
            raise UnsupportedError(
                f"{entries[0].mechanism!r} has the neighbouring relation {relation!r}, block"
                f" {block.address} {other!r}; guarantees under different relations are never"
                " composed"
            )
    if relation is NeighbouringRelation.REPLACE_ONE:
        for group in {siblings(block.address) for block in blocks}:
            found = turn.ask(
                "SELECT count(*) FROM accountant_blocks WHERE address >= ? AND address < ?",
                *range_of(group),
            )
            if found[0][0] > 1:
                raise UnsupportedError(
                    f"{group} has several blocks, and replacing a record may change two of them:"
                    " charge such a data set under add-or-remove or zero-out"
                )
    return relation.name


def _judged(
    turn: Transaction,
    blocks: Sequence[Held],
    charges: Sequence[Charge],
    prices: dict[tuple[int, int], tuple[int, ...]],
) -> list[str] | BlockExceeded:
    """Return the sums of each block after the charges, or the refusal of the first that is over."""
    known: dict[object, str | None] = {}
    after = []
    for block in blocks:
        # What is decided by sums is the same for blocks with the same; so is the rest by counts.
        counts = () if block.text is None or block.by_sums else holdings(turn, block.id)
        case = block.budget, block.sums, block.planned, counts
        if case not in known:
            known[case] = _sums(turn, block, charges, prices, counts)
        sums = known[case]
        if sums is None:
            return _refusal(turn, block, charges)
        after.append(sums)
    return after


def _sums(
    turn: Transaction,
    block: Held,
    charges: Sequence[Charge],
    prices: dict[tuple[int, int], tuple[int, ...]],
    counts: Counts,
) -> str | None:
    """Return the sums of a block after the charges; None where its budget does not allow them."""
    if block.text is None:
        return block.sums
    if not block.by_sums:
        watch = decisions.metered(block.text, dict(counts), menu(turn, block.planned))
        return block.sums if watch.admits([(c.mechanism, c.times) for c in charges]) else None
    costs = [(_price(turn, block, charge, prices), charge.times) for charge in charges]
    sums = decisions.added(block.sums, costs)
    return sums if decisions.fits(block.text, sums) else None


def _price(
    turn: Transaction,
    block: Held,
    charge: Charge,
    prices: dict[tuple[int, int], tuple[int, ...]],
) -> tuple[int, ...]:
    """Return what a charge costs on a block, entering the price if the store has none yet."""
    assert block.budget is not None
    assert block.text is not None
    at = block.budget, charge.kind
    if at not in prices:
        prices[at] = decisions.price(block.text, charge.mechanism)
        turn.price(*at, texts.text_of_sums(prices[at]))
    return prices[at]


def _refusal(turn: Transaction, block: Held, charges: Sequence[Charge]) -> BlockExceeded:
    assert block.text is not None
    held = dict(holdings(turn, block.id))
    watch = decisions.metered(block.text, held, menu(turn, block.planned))
    asked = [(charge.mechanism, charge.times) for charge in charges]
    message, left = decisions.refusal(block.address, block.text, watch, asked)
    return BlockExceeded(message, block.address, left, tuple((repr(m), n) for m, n in asked))


def holdings(turn: Transaction, block: int) -> Counts:
    """Return the kinds that a block holds, with their counts."""
    rows = turn.ask(
        "SELECT k.text, a.held FROM accountant_accounts a JOIN accountant_kinds k ON k.id = a.kind"
        " WHERE a.block = ? ORDER BY k.id",
        block,
    )
    return tuple((texts.mechanism_of(text), held) for text, held in rows if held)


def menu(turn: Transaction, planned: str) -> Counts:
    """Return the mechanisms and caps of a plan."""
    found = []
    for kind, cap, _ in json.loads(planned):
        text = turn.ask("SELECT text FROM accountant_kinds WHERE id = ?", kind)[0][0]
        found.append((texts.mechanism_of(text), cap))
    return tuple(found)


def _merged(charges: Sequence[Charge]) -> list[Charge]:
    """Add up the counts of equal kinds: a row of an account is written once."""
    found: dict[int, Charge] = {}
    for charge in charges:
        before = found.get(charge.kind)
        total = charge.times + (before.times if before else 0)
        found[charge.kind] = charge._replace(times=total)
    return list(found.values())
