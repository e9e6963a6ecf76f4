"""What a store says about its blocks, read from one state of the database."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from accountant.environment import to_nearest
from accountant.errors import DomainError
from accountant.ledger import Accountant, Budget, Remaining, document
from accountant.ledger.history import Entry, entry
from accountant.ledger.plans import Watch
from accountant.mechanisms.base import Mechanism
from accountant.relations import NeighbouringRelation
from accountant.store import decisions, texts
from accountant.store.charges import HELD
from accountant.store.database import Database
from accountant.store.decisions import Case
from accountant.store.journal import Head
from accountant.store.texts import EVERYONE, blocks_of, range_of

# Rows of the journal that are fetched at a time.
_PAGE = 20_000


class Block(NamedTuple):
    """A block and what it holds.

    Attributes
    ----------
    address : str
        tenant/dataset/block.
    budget : Budget or None
        What must not be exceeded.
    relation : NeighbouringRelation or None
        That of everything it was charged; None before the first charge.
    counts : tuple of (Mechanism, int)
        All that counts as released: what was charged, and open reservations in full.
    reserved : int
        How many of these releases are open reservations.
    deltas : tuple of float
        The δ at which its ledger is stated, beside that of the budget.
    planned : tuple of Entry
        What was planned before the first release; ``counts`` says what of it was made.
    """

    address: str
    budget: Budget | None
    relation: NeighbouringRelation | None
    counts: tuple[tuple[Mechanism, int], ...]
    reserved: int
    deltas: tuple[float, ...]
    planned: tuple[Entry, ...]

    @property
    def releases(self) -> int:
        """How many releases count."""
        return sum(count for _, count in self.counts)

    @to_nearest
    def remaining(self) -> Remaining:
        """Return what is left, in the unit of the budget's filter; DomainError without a budget."""
        if self.budget is None:
            raise DomainError(f"remaining needs a budget; block {self.address} has none")
        return _watch(self, self.budget).remaining()


def head(base: Database) -> Head:
    """Return the end of the journal."""
    return Head(*base.execute("SELECT seq, digest FROM accountant_head").fetchone())


def blocks(base: Database, named: Sequence[str] | None) -> list[Block]:
    """Return the named blocks, or all, in the order in which they were made."""
    where, values = ("true", ()) if named is None else base.find(named)
    rows = base.execute(
        "SELECT b.id, b.address, g.text, b.relation, b.deltas, b.planned FROM accountant_blocks b"
        f" LEFT JOIN accountant_budgets g ON g.id = b.budget WHERE {where} ORDER BY b.id",
        values,
    ).fetchall()
    counts: dict[int, list[tuple[Mechanism, int]]] = {}
    for block, _, held, kind in base.execute(f"{HELD} ({where}) ORDER BY 2", values).fetchall():
        counts.setdefault(block, []).append((texts.mechanism_of(kind), held))
    reserved = _reserved(base)
    return [
        Block(
            address,
            None if text is None else texts.budget_of(text),
            NeighbouringRelation[relation] if relation else None,
            tuple(counts.get(number, ())),
            reserved.get(number, 0),
            tuple(json.loads(deltas)),
            _planned(base, planned),
        )
        for number, address, text, relation, deltas, planned in rows
    ]


def affordable(base: Database, named: Sequence[str], mechanism: Mechanism) -> int:
    """Return how many more releases every one of the blocks would allow now, at most 2**53."""
    most = 1 << 53
    rooms: dict[Any, int] = {}
    everyone = blocks(base, (EVERYONE,))
    for block in (*known(base, named), *everyone):
        if block.relation not in (None, mechanism.relation):
            return 0
        case = block.budget, block.counts, block.planned
        if case not in rooms:
            room = (1 << 53) - dict(block.counts).get(mechanism, 0)
            if block.budget is not None:
                room = min(room, _watch(block, block.budget).affordable(mechanism))
            rooms[case] = room
        most = min(most, rooms[case])
    return most


def ledger(base: Database, address: str) -> Accountant:
    """Return the ledger of a block: its records in order, open reservations in full."""
    (block,) = known(base, (address,))
    number = base.execute("SELECT id FROM accountant_blocks WHERE address = ?", (address,))
    entries = list(_entries(base, number.fetchone()[0]))
    return Accountant.from_json(
        document.encode(entries, block.budget, None, block.deltas, block.planned)
    )


def journal(base: Database, columns: str, after: int = 0) -> Iterator[list[Any]]:
    """Yield the rows of the journal, page by page."""
    sql = f"SELECT {columns} FROM accountant_journal WHERE seq > ? ORDER BY seq LIMIT {_PAGE}"
    while rows := base.execute(sql, (after,)).fetchall():
        yield rows
        after = rows[-1][0]


def _watch(block: Block, budget: Budget) -> Watch:
    menu = [(item.mechanism, item.count) for item in block.planned]
    return decisions.watch(Case(texts.text_of_budget(budget), tuple(menu), block.counts))


def _planned(base: Database, text: str) -> tuple[Entry, ...]:
    found = []
    for kind, cap, label in decisions.plan_of(text):
        row = base.execute("SELECT text FROM accountant_kinds WHERE id = ?", (kind,)).fetchone()
        found.append(entry(texts.mechanism_of(row[0]), cap, label))
    return tuple(found)


def known(base: Database, named: Sequence[str]) -> list[Block]:
    """Return the named blocks; DomainError for a name of none."""
    found = blocks(base, named)
    addresses = {block.address for block in found}
    for name in named:
        start, end = range_of(name) if name.endswith("/*") else (name, name + "\0")
        if not any(start <= address < end for address in addresses):
            raise DomainError(f"no block of this store is called {name}")
    return found


def _entries(base: Database, block: int) -> Iterator[Entry]:
    kinds = {
        number: texts.mechanism_of(text)
        for number, text in base.execute("SELECT id, text FROM accountant_kinds").fetchall()
    }
    used = dict(base.execute("SELECT seq, used FROM accountant_reservations").fetchall())
    for page in journal(base, "seq, action, body"):
        for row, action, text in page:
            if action not in ("charge", "import", "reserve"):
                continue
            body = json.loads(text)
            if block in blocks_of(body):
                for kind, count, label, time in body["entries"]:
                    counted = used[row] if action == "reserve" else count
                    if counted:
                        yield entry(kinds[kind], counted, label, time)


def _reserved(base: Database) -> dict[int, int]:
    rows = base.execute(
        "SELECT j.body, r.used FROM accountant_reservations r JOIN accountant_journal j"
        " ON j.seq = r.seq WHERE r.state = 'open'"
    ).fetchall()
    found: dict[int, int] = {}
    for text, used in rows:
        for block in blocks_of(json.loads(text)):
            found[block] = found.get(block, 0) + used
    return found
