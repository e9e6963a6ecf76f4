"""Plans: releases set aside by exact composition, before the first release of their blocks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from accountant.errors import BudgetExceeded, DomainError, UnsupportedError
from accountant.ledger.plans import Watch
from accountant.store import decisions, texts
from accountant.store.charges import (
    Decision,
    Request,
    again,
    common_relation,
    contents,
    find,
    holdings,
    kinds_of,
    menu,
    require_all,
)
from accountant.store.decisions import Held
from accountant.store.refusal import BlockExceeded

if TYPE_CHECKING:
    from accountant.ledger.history import Entry
    from accountant.store.charges import Counts
    from accountant.store.transaction import Transaction

__all__ = ["plan"]


def plan(turn: Transaction, request: Request, most: bool) -> tuple[Decision, int]:
    """Plan a mechanism on all blocks; return how many: for ``most`` what all of them allow."""
    (item,) = request.entries
    text = texts.text_of_mechanism(item.mechanism)
    earlier, rows, kinds = turn.open(
        ("SELECT seq, action, body FROM accountant_journal WHERE key = ?", (request.key,)),
        find(turn.database, request.named),
        ("SELECT id, text FROM accountant_kinds WHERE digest = ?", (texts.digest(text),)),
    )
    numbers = {written: number for number, written in kinds}
    if earlier:
        count = _planned_before(earlier[0][2]) if most else item.count
        same = request._replace(entries=(_counted(item, count),))
        return again(turn, same, earlier[0], [row[0] for row in rows], numbers), count
    blocks = [Held(*row) for row in rows]
    require_all(request.named, blocks)
    relation = common_relation(turn, blocks, request.entries)
    known: dict[tuple[str, Counts], int] = {}
    for block in blocks:
        _require_fresh(turn, block)
        assert block.text is not None
        case = block.text, menu(turn, block.planned)
        if case not in known:
            known[case] = _plannable(*case, item, most)
        if not known[case]:
            refused = _refusal(block, case[1], item)
            body = contents(request, [b.id for b in blocks], [numbers.get(text, 0)])
            row = turn.append("refuse", body | {"refused": block.address, "key": request.key})
            turn.close()
            return Decision(row, refused=refused), 0
    count = min(known.values())
    kinds_of(turn, [text], numbers)
    made = request._replace(entries=(_counted(item, count),))
    row = turn.append("plan", contents(made, [b.id for b in blocks], [numbers[text]]), request.key)
    for block in blocks:
        planned = [*json.loads(block.planned), [numbers[text], count, item.label]]
        turn.later(
            "UPDATE accountant_blocks SET planned = ?, relation = ?, sums = '' WHERE id = ?",
            (texts.compact(planned), relation, block.id),
        )
    turn.close()
    return Decision(row), count


def _counted(item: Entry, count: int) -> Entry:
    return type(item)(item.mechanism, count, item.label, item.time)


def _planned_before(body: str) -> int:
    return int(json.loads(body)["entries"][0][1])


def _require_fresh(turn: Transaction, block: Held) -> None:
    if block.text is None:
        raise DomainError(f"plan needs a budget; block {block.address} has none")
    if holdings(turn, block.id):
        raise UnsupportedError(
            f"plan comes before the first release of block {block.address}: what is planned after"
            " it may depend on it. Charge releases as they come"
        )


def _watch(text: str, planned: Counts) -> Watch:
    return decisions.metered(text, {}, planned)


def _plannable(text: str, planned: Counts, item: Entry, most: bool) -> int:
    """Return how many of the releases a budget allows beside a plan; 0 for fewer than asked."""
    watch = _watch(text, planned)
    if most:
        return watch.plannable(item.mechanism)
    try:
        watch.plan([(item.mechanism, item.count)])
    except BudgetExceeded:
        return 0
    return item.count


def _refusal(block: Held, planned: Counts, item: Entry) -> BlockExceeded:
    assert block.text is not None
    watch = _watch(block.text, planned)
    fits = watch.plannable(item.mechanism)
    message = (
        f"block {block.address} cannot pay a plan of {item.count} x {item.mechanism!r:.80}:"
        f" {texts.budget_of(block.text)!r} allows {fits} beside what is planned. Nothing was"
        " planned"
    )
    asked = ((repr(item.mechanism), item.count),)
    return BlockExceeded(message, block.address, watch.remaining(), asked)
