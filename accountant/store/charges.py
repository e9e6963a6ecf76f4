"""Charges, reservations, their ends, and plans: one turn decides about all blocks of a release."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from accountant.errors import DomainError, LedgerConflict, UnsupportedError
from accountant.ledger.history import Entry
from accountant.mechanisms.base import Mechanism
from accountant.relations import NeighbouringRelation
from accountant.store import decisions, texts
from accountant.store.decisions import BlockExceeded, Case, Counts, Held
from accountant.store.journal import Transaction
from accountant.store.texts import EVERYONE, range_of, runs, siblings

BLOCKS = (
    "SELECT b.id, b.address, g.text, b.relation, b.planned, b.deltas"
    " FROM accountant_blocks b LEFT JOIN accountant_budgets g ON g.id = b.budget WHERE"
)
HELD = (
    "SELECT a.block, a.kind, a.held, k.text FROM accountant_blocks b"
    " JOIN accountant_accounts a ON a.block = b.id JOIN accountant_kinds k ON k.id = a.kind"
    " WHERE a.held > 0 AND"
)
_KINDS = "SELECT id, text FROM accountant_kinds WHERE"


class Request(NamedTuple):
    """What a client asks for: ``lease`` is None for a charge, else microseconds.

    ``by`` tells this call from others with its key; empty where no other knows the key.
    """

    named: tuple[str, ...]
    entry: Entry
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


class State(NamedTuple):
    """What a turn finds: rows under the key, the blocks, what they hold, and texts of kinds."""

    earlier: list[Any]
    blocks: list[Held]
    held: dict[int, tuple[tuple[int, int], ...]]
    kinds: dict[int, str]

    def case(self, block: Held) -> Case | None:
        """Return what decides about a block; None without a budget."""
        if block.text is None:
            return None
        rows = self.held.get(block.id, ())
        counts: Counts = tuple((texts.mechanism_of(self.kinds[kind]), n) for kind, n in rows)
        return Case(block.text, decisions.menu_of(block.planned, self.kinds), counts)

    def number(self, mechanism: Mechanism) -> int | None:
        """Return the number of a kind; None if the store has not seen it."""
        text = texts.text_of_mechanism(mechanism)
        return next((number for number, known in self.kinds.items() if known == text), None)


def state(turn: Transaction, request: Request) -> State:
    """Take the turn, and read all that a decision needs: to a server, in one round trip.

    A kind that no block of these holds, or a plan, is one more question.
    """
    where, values = turn.database.find((*request.named, EVERYONE))
    earlier, blocks, held = turn.open(
        ("SELECT seq, action, body FROM accountant_journal WHERE key = ?", (request.key,)),
        (f"{BLOCKS} {where} ORDER BY b.id", values),
        (f"{HELD} ({where}) ORDER BY 1, 2", values),
    )
    found: dict[int, tuple[tuple[int, int], ...]] = {}
    kinds: dict[int, str] = {}
    for block, kind, count, text in held:
        found[block] = (*found.get(block, ()), (kind, count))
        kinds[kind] = text
    for planned in {row[4] for row in blocks}:
        for kind, _, _ in decisions.plan_of(planned):
            if kind not in kinds:
                kinds |= dict(turn.ask(f"{_KINDS} id = ?", kind))
    wanted = texts.text_of_mechanism(request.entry.mechanism)
    if wanted not in kinds.values():
        kinds |= dict(turn.ask(f"{_KINDS} digest = ?", texts.digest(wanted)))
    return State(earlier, [Held(*row) for row in blocks], found, kinds)


def decide(turn: Transaction, request: Request) -> Decision:
    """Charge or reserve on all blocks, or refuse on the first that cannot pay; journal either.

    What takes long, the first question about a kind, is asked between two turns.
    """
    item = request.entry
    while True:
        found = state(turn, request)
        if found.earlier:
            return again(turn, request, found)
        relation = common_relation(turn, request, found.blocks)
        cases = _cases(found, item)
        unknown = [case for case in cases if not decisions.is_prepared(case)]
        if not unknown:
            break
        turn.leave()
        for case in unknown:
            decisions.admits(case)
    for case, block in cases.items():
        if not decisions.admits(case):
            row = refuse(turn, request, found, block)
            return Decision(row, refused=decisions.refusal(block.address, found.case(block), item))
    until = 0 if request.lease is None else turn.now + request.lease
    kind = kind_of(turn, item.mechanism, found)
    body = contents(request, found, kind)
    if request.lease is not None:
        body["until"] = until
    row = turn.append(request.action, body, request.key)
    turn.hold(body["blocks"], kind, item.count)
    if not all(block.relation for block in found.blocks):
        turn.relate(body["blocks"], relation)
    if request.lease is not None:
        turn.later(
            "INSERT INTO accountant_reservations (key, seq, until, state, used)"
            " VALUES (?, ?, ?, 'open', ?)",
            (request.key, row, until, item.count),
        )
    turn.close()
    return Decision(row, until)


def refuse(turn: Transaction, request: Request, found: State, block: Held) -> int:
    """Journal a refusal; return its row. What it says is found out when the turn has ended."""
    kind = kind_of(turn, request.entry.mechanism, found)
    body = contents(request, found, kind) | {"refused": block.address, "key": request.key}
    row = turn.append("refuse", body)
    turn.close()
    return row


def kind_of(turn: Transaction, mechanism: Mechanism, found: State) -> int:
    """Return the number of a mechanism, a new one where there is none."""
    number = found.number(mechanism)
    return turn.number_of(texts.text_of_mechanism(mechanism)) if number is None else number


def contents(request: Request, found: State, kind: int) -> dict[str, Any]:
    """Return the body of a row of the journal."""
    item = request.entry
    body: dict[str, Any] = {
        "blocks": runs(block.id for block in found.blocks),
        "entries": [[kind, item.count, item.label, item.time]],
    }
    if any(name.endswith("/*") for name in request.named):
        body["named"] = list(request.named)
    if request.by:
        body["by"] = request.by
    return body


def again(turn: Transaction, request: Request, found: State) -> Decision:
    """Return what was decided under this key, if it was asked for the same."""
    row, action, text = found.earlier[0]
    settled = "SELECT state, used FROM accountant_reservations WHERE key = ? AND state <> 'open'"
    ended = turn.ask(settled, request.key)
    turn.leave()
    old = json.loads(text)
    new = contents(request, found, found.number(request.entry.mechanism) or 0)
    # A pattern may mean more blocks by now.
    where = "named" if "named" in new else "blocks"
    same = old["entries"] == new["entries"] and old.get(where) == new[where]
    if action != request.action or not same or ("named" in old) != ("named" in new):
        raise LedgerConflict(f"key {request.key!r} was used for another {action}, row {row}")
    if ended and ended[0][1] < request.entry.count:
        ending, used = ended[0]
        raise LedgerConflict(
            f"reservation {request.key!r} was {ending}: {used} of {request.entry.count} are"
            " charged, the others given back. Use another key"
        )
    return Decision(row, old.get("until", 0), repeated=old.get("by", "") != request.by)


def common_relation(turn: Transaction, request: Request, blocks: Sequence[Held]) -> str:
    """Return the one relation of all that is named, which is there, and of what it is charged."""
    known = {block.address for block in blocks}
    groups = {siblings(address) for address in known}
    missing = [name for name in request.named if name not in known | groups]
    if missing:
        raise DomainError(f"no block of this store is called {missing[0]}; make it by add_blocks")
    mechanism, relation = request.entry.mechanism, request.entry.mechanism.relation
    for block in blocks:
        if block.relation not in ("", relation.name):
            other = NeighbouringRelation[block.relation]
            raise UnsupportedError(
                f"{mechanism!r} must have the neighbouring relation of block"
                f" {block.address}, {other!r}; got {relation!r}"
            )
    if relation is NeighbouringRelation.REPLACE_ONE:
        counted = "SELECT count(*) FROM accountant_blocks WHERE address >= ? AND address < ?"
        for group in groups:
            if turn.ask(counted, *range_of(group))[0][0] > 1:
                raise UnsupportedError(f"{group} has several blocks, and replace-one needs one")
    return relation.name


def _cases(found: State, item: Entry) -> dict[Case, Held]:
    """Return what the blocks would hold after a charge, each case once, with its first block."""
    first: dict[object, Held] = {}
    for block in found.blocks:
        first.setdefault((block.text, block.planned, found.held.get(block.id, ())), block)
    cases: dict[Case, Held] = {}
    for block in first.values():
        case = found.case(block)
        if case is not None:
            counts = decisions.after(case.counts, item.mechanism, item.count)
            cases.setdefault(case._replace(counts=counts), block)
    return cases


def plan(turn: Transaction, request: Request, most: bool) -> tuple[Decision, int]:
    """Plan a mechanism on all blocks; return how many: for ``most`` what all of them allow."""
    item = request.entry
    found = state(turn, request)
    if found.earlier:
        count = json.loads(found.earlier[0][2])["entries"][0][1] if most else item.count
        made = request._replace(entry=replace(item, count=count))
        return again(turn, made, found), count
    relation = common_relation(turn, request, found.blocks)
    known: dict[Case, int] = {}
    for block in found.blocks:
        case = _fresh(found, block)
        if case not in known:
            known[case] = _plannable(case, item, most)
        if not known[case]:
            row = refuse(turn, request, found, block)
            return Decision(row, refused=decisions.refused_plan(block.address, case, item)), 0
    count = min(known.values())
    made = request._replace(entry=replace(item, count=count))
    kind = kind_of(turn, item.mechanism, found)
    row = turn.append("plan", contents(made, found, kind), request.key)
    update = "UPDATE accountant_blocks SET planned = ?, relation = ? WHERE id = ?"
    for block in found.blocks:
        planned = [*decisions.plan_of(block.planned), (kind, count, item.label)]
        turn.later(update, (texts.compact(planned), relation, block.id))
    turn.close()
    return Decision(row), count


def _fresh(found: State, block: Held) -> Case:
    """Return what decides about a block that was charged nothing yet."""
    case = found.case(block)
    if case is None:
        raise DomainError(f"plan needs a budget; block {block.address} has none")
    if case.counts:
        raise UnsupportedError(f"plan comes before the first release of block {block.address}")
    return case


def _plannable(case: Case, item: Entry, most: bool) -> int:
    """Return how many of the releases a budget allows beside a plan; 0 for fewer than asked."""
    if most:
        return decisions.watch(case).plannable(item.mechanism)
    return item.count if decisions.can_plan(case, ((item.mechanism, item.count),)) else 0


def settle(turn: Transaction, key: str, used: int | None) -> int:
    """Commit ``used`` of a reservation's releases, all for None; 0 is an abort. Return the row.

    Repeated, it changes nothing.
    """
    asked = (
        "SELECT r.seq, r.until, r.state, r.used, j.body FROM accountant_reservations r"
        " JOIN accountant_journal j ON j.seq = r.seq WHERE r.key = ?"
    )
    (found,) = turn.open((asked, (key,)))
    if not found:
        raise DomainError(f"no reservation of this store has the key {key!r}")
    row, until, state, held, text = found[0]
    body = json.loads(text)
    kind, count, _, _ = body["entries"][0]
    wanted = count if used is None else used
    settled = {"reservation": row, "used": wanted}
    if wanted > count:
        raise DomainError(f"count must be at most the {count} reserved; got {wanted}")
    if state != "open":
        if held != wanted:
            raise LedgerConflict(
                f"reservation {key!r} was settled before: {held} of {count} are charged"
                + (", because its lease had ended" if state == "expired" else "")
            )
        (number,) = turn.ask(
            "SELECT seq FROM accountant_journal WHERE seq > ?"
            " AND action IN ('commit', 'abort', 'expire') AND body IN (?, ?)",
            row,
            *map(texts.compact, (settled, {"reservation": row})),
        )
        turn.leave()
        return int(number[0])
    if wanted < count and turn.now >= until:
        raise LedgerConflict(f"the lease of reservation {key!r} has ended: all {count} count")
    number = turn.append("commit" if wanted else "abort", settled)
    if wanted < count:
        turn.hold(body["blocks"], kind, wanted - count)
    update = "UPDATE accountant_reservations SET state = ?, used = ? WHERE key = ?"
    turn.later(update, ("committed" if wanted else "aborted", wanted, key))
    turn.close()
    return number


def expire(turn: Transaction) -> list[str]:
    """Close every reservation whose lease has ended, in full; return their keys."""
    asked = "SELECT key, seq, until FROM accountant_reservations WHERE state = 'open' ORDER BY seq"
    (found,) = turn.open((asked, ()))
    over = [(key, row) for key, row, until in found if turn.now >= until]
    for key, row in over:
        turn.append("expire", {"reservation": row})
        turn.later("UPDATE accountant_reservations SET state = 'expired' WHERE key = ?", (key,))
    if over:
        turn.close()
    else:
        turn.leave()
    return [key for key, _ in over]
