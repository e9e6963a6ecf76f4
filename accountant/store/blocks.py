"""Making blocks, with or without a ledger that was spent on them before."""

from __future__ import annotations

import json
from collections.abc import Sequence

from accountant.errors import DomainError, UnsupportedError
from accountant.ledger import Accountant, Budget
from accountant.ledger.history import Entry
from accountant.mechanisms.base import Mechanism
from accountant.relations import NeighbouringRelation
from accountant.store import texts
from accountant.store.journal import Transaction
from accountant.store.texts import EVERYONE, range_of, runs, siblings

# Records of a ledger in one row of the journal.
_ROW = 4096


def add(turn: Transaction, addresses: Sequence[str], budget: Budget | None) -> int:
    """Make blocks that are not there yet; return how many. Those that are must have this budget."""
    new = _new(turn, addresses, budget)
    if EVERYONE in new and (
        len(new) > 1 or turn.ask("SELECT 1 FROM accountant_blocks LIMIT 1") or budget is None
    ):
        raise UnsupportedError(
            f"{EVERYONE} needs a budget, and comes before all other blocks: what was charged to"
            " them would be missing from it. Make it when the store is made"
        )
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
        raise UnsupportedError(
            f"a store with a budget for all people, {EVERYONE}, imports no ledger, which it would"
            " take whatever it costs. Charge its releases"
        )
    # As its file has them: ``ledger.deltas`` would add the budget's own to those noted.
    noted = json.loads(ledger.to_json())["ledger"].get("deltas") or ()
    (block,) = _add(turn, (address,), ledger.budget, noted)
    kinds: dict[Mechanism, int] = {}
    for mechanism in (*dict(ledger.counts), *(item.mechanism for item in ledger.planned)):
        if mechanism not in kinds:
            kinds[mechanism] = turn.number_of(texts.text_of_mechanism(mechanism))
    if ledger.relation is NeighbouringRelation.REPLACE_ONE and turn.ask(
        "SELECT 1 FROM accountant_blocks WHERE address >= ? AND address < ?",
        *range_of(siblings(address)),
    ):
        raise UnsupportedError(
            f"{siblings(address)} has other blocks, and replacing a record may change two of them"
        )
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
    known = (
        "SELECT b.address, g.text FROM accountant_blocks b"
        f" LEFT JOIN accountant_budgets g ON g.id = b.budget WHERE {where}"
    )
    there, others = turn.open(
        (known, values),
        (
            "SELECT address FROM accountant_blocks WHERE relation = ?",
            (NeighbouringRelation.REPLACE_ONE.name,),
        ),
    )
    for address, written in there:
        has = None if written is None else texts.budget_of(written)
        if has != budget:
            raise DomainError(f"block {address} is there already, with {has!r}; got {budget!r}")
    old = {address for address, _ in there}
    new = [address for address in addresses if address not in old]
    for (address,) in others:
        if siblings(address) in groups and (set(new) or len(addresses) > 1):
            raise UnsupportedError(
                f"{address} was charged under replace-one, and replacing a record may change two"
                " blocks: such a data set has one block only"
            )
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
