"""Blocks: made, with or without a ledger that was spent on them, and read from one state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from accountant.environment import to_nearest
from accountant.errors import DomainError, UnsupportedError
from accountant.ledger import Accountant, Budget, Remaining, document
from accountant.ledger.history import Entry, entry
from accountant.ledger.plans import Watch
from accountant.mechanisms.base import Mechanism
from accountant.relations import NeighbouringRelation
from accountant.store import decisions, texts
from accountant.store.charges import BLOCKS, HELD
from accountant.store.database import Database
from accountant.store.decisions import Case, Held
from accountant.store.journal import Head, Transaction
from accountant.store.texts import EVERYONE, blocks_of, range_of, runs, siblings

# Records of a ledger in one row of the journal.
_ROW = 4096
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


def listed(base: Database, named: Sequence[str] | None) -> list[Block]:
    """Return the named blocks, or all, in the order in which they were made."""
    where, values = ("true", ()) if named is None else base.find(named)
    rows = base.execute(f"{BLOCKS} {where} ORDER BY b.id", values).fetchall()
    counts: dict[int, list[tuple[Mechanism, int]]] = {}
    for block, _, held, kind in base.execute(f"{HELD} ({where}) ORDER BY 2", values).fetchall():
        counts.setdefault(block, []).append((texts.mechanism_of(kind), held))
    reserved, found = _reserved(base), [Held(*row) for row in rows]
    kinds = _kinds(base) if any(each.planned != "[]" for each in found) else {}
    return [
        Block(
            each.address,
            each.budget,
            NeighbouringRelation[each.relation] if each.relation else None,
            tuple(counts.get(each.id, ())),
            reserved.get(each.id, 0),
            tuple(json.loads(each.deltas)),
            tuple(entry(kinds[k], cap, label) for k, cap, label in decisions.plan_of(each.planned)),
        )
        for each in found
    ]


def affordable(base: Database, named: Sequence[str], mechanism: Mechanism) -> int:
    """Return how many more releases every one of the blocks would allow now, at most 2**53."""
    most = 1 << 53
    rooms: dict[Any, int] = {}
    everyone = listed(base, (EVERYONE,))
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
    whole = document.encode(entries, block.budget, None, block.deltas, block.planned)
    return Accountant.from_json(whole)


def journal(base: Database, columns: str, after: int = 0) -> Iterator[list[Any]]:
    """Yield the rows of the journal, page by page."""
    sql = f"SELECT {columns} FROM accountant_journal WHERE seq > ? ORDER BY seq LIMIT {_PAGE}"
    while rows := base.execute(sql, (after,)).fetchall():
        yield rows
        after = rows[-1][0]


def _watch(block: Block, budget: Budget) -> Watch:
    menu = [(item.mechanism, item.count) for item in block.planned]
    return decisions.watch(Case(texts.text_of_budget(budget), tuple(menu), block.counts))


def _kinds(base: Database) -> dict[int, Mechanism]:
    rows = base.execute("SELECT id, text FROM accountant_kinds").fetchall()
    return {number: texts.mechanism_of(text) for number, text in rows}


def known(base: Database, named: Sequence[str]) -> list[Block]:
    """Return the named blocks; DomainError for a name of none."""
    found = listed(base, named)
    addresses = {block.address for block in found}
    for name in named:
        start, end = range_of(name) if name.endswith("/*") else (name, name + "\0")
        if not any(start <= address < end for address in addresses):
            raise DomainError(f"no block of this store is called {name}")
    return found


def _entries(base: Database, block: int) -> Iterator[Entry]:
    kinds = _kinds(base)
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


def add(turn: Transaction, addresses: Sequence[str], budget: Budget | None) -> int:
    """Make blocks that are not there yet; return how many. Those that are must have this budget."""
    new = _new(turn, addresses, budget)
    if EVERYONE in new and (
        len(new) > 1 or turn.ask("SELECT 1 FROM accountant_blocks LIMIT 1") or budget is None
    ):
        raise UnsupportedError(f"{EVERYONE} needs a budget, and comes before all other blocks")
    _add(turn, new, budget, ())
    if new:
        turn.close()
    else:
        turn.leave()
    return len(new)


def take_up(turn: Transaction, address: str, ledger: Accountant) -> None:
    """Make a block and record on it all that a ledger holds, within its budget or not."""
    if not _new(turn, (address,), ledger.budget):
        raise DomainError(f"block {address} is there already; a ledger is imported as a new block")
    if address == EVERYONE or turn.ask(
        "SELECT 1 FROM accountant_blocks WHERE address = ?", EVERYONE
    ):
        raise UnsupportedError(f"a store with {EVERYONE} imports no ledger; charge its releases")
    # As its file has them: ``ledger.deltas`` would add the budget's own to those noted.
    noted = json.loads(ledger.to_json())["ledger"].get("deltas") or ()
    (block,) = _add(turn, (address,), ledger.budget, noted)
    each = dict.fromkeys((*dict(ledger.counts), *(item.mechanism for item in ledger.planned)))
    kinds = {m: turn.number_of(texts.text_of_mechanism(m)) for m in each}
    if ledger.relation is NeighbouringRelation.REPLACE_ONE and turn.ask(
        "SELECT 1 FROM accountant_blocks WHERE address >= ? AND address < ?",
        *range_of(siblings(address)),
    ):
        raise UnsupportedError(f"{siblings(address)} has other blocks, but replace-one takes one")
    if ledger.planned:
        _plan(turn, block, ledger.planned, kinds)
    history = ledger.history
    for start in range(0, len(history), _ROW):
        part = history[start : start + _ROW]
        entries = [[kinds[item.mechanism], item.count, item.label, item.time] for item in part]
        turn.append("import", {"blocks": runs([block]), "entries": entries})
    for mechanism, count in ledger.counts:
        turn.hold(runs([block]), kinds[mechanism], count)
    relation = ledger.relation or (ledger.planned[0].mechanism.relation if ledger.planned else None)
    if relation is not None:
        turn.relate(runs([block]), relation.name)
    turn.close()


def _plan(
    turn: Transaction, block: int, planned: Sequence[Entry], kinds: dict[Mechanism, int]
) -> None:
    """Append what a ledger had planned; a plan's time is never set."""
    for item in planned:
        entry = [kinds[item.mechanism], item.count, item.label, item.time]
        turn.append("plan", {"blocks": runs([block]), "entries": [entry]})
    written = texts.compact([[kinds[p.mechanism], p.count, p.label] for p in planned])
    turn.later("UPDATE accountant_blocks SET planned = ? WHERE id = ?", (written, block))


def _new(turn: Transaction, addresses: Sequence[str], budget: Budget | None) -> list[str]:
    """Take the turn; return the addresses that are not there, and refuse another budget."""
    base = turn.database
    where, values = base.find(addresses)
    groups = sorted({siblings(address) for address in addresses})
    rows, others = turn.open(
        (f"{BLOCKS} {where}", values),
        (
            "SELECT address FROM accountant_blocks WHERE relation = ?",
            (NeighbouringRelation.REPLACE_ONE.name,),
        ),
    )
    there = [Held(*row) for row in rows]
    for each in there:
        if each.budget != budget:
            at, has = each.address, each.budget
            raise DomainError(f"block {at} is there already, with {has!r}; got {budget!r}")
    old = {each.address for each in there}
    new = [address for address in addresses if address not in old]
    for (address,) in others:
        if siblings(address) in groups and (set(new) or len(addresses) > 1):
            raise UnsupportedError(f"{address} is under replace-one, and is one block only")
    return new


def _add(
    turn: Transaction, addresses: Sequence[str], budget: Budget | None, deltas: Sequence[float]
) -> list[int]:
    """Append the rows of new blocks; return their numbers."""
    number = None
    if budget is not None:
        number = turn.number_of(texts.text_of_budget(budget), "budgets", "budget", "budget")
    stated = texts.compact(list(deltas))
    found = []
    rows = []
    for address in addresses:
        body = {"address": address, "budget": number, "deltas": list(deltas)}
        found.append(turn.append("block", body))
        rows.append([found[-1], address, number])
    if rows:
        turn.later(
            "INSERT INTO accountant_blocks (id, address, budget, deltas, relation, planned)"
            " SELECT CAST(c0 AS bigint), c1, CAST(c2 AS bigint), CAST(? AS text), '', '[]'"
            f" FROM {turn.database.rows(3)} AS new",
            (stated, texts.compact(rows)),
        )
    return found
