"""Plans: releases set aside by exact composition, before the first release of their blocks."""

from __future__ import annotations

import json

from accountant.errors import BudgetExceeded, DomainError, UnsupportedError
from accountant.ledger.filters import named
from accountant.ledger.history import Entry
from accountant.store import charges, decisions, texts
from accountant.store.charges import Decision, Request, State
from accountant.store.decisions import Case, Held
from accountant.store.refusal import BlockExceeded
from accountant.store.transaction import Transaction


def plan(turn: Transaction, request: Request, most: bool) -> tuple[Decision, int]:
    """Plan a mechanism on all blocks; return how many: for ``most`` what all of them allow."""
    item = request.entry
    found = charges.state(turn, request)
    if found.earlier:
        count = json.loads(found.earlier[0][2])["entries"][0][1] if most else item.count
        made = request._replace(entry=_counted(item, count))
        return charges.again(turn, made, found), count
    charges.require_all(request.named, found.blocks)
    relation = charges.common_relation(turn, found.blocks, item.mechanism)
    known: dict[Case, int] = {}
    for block in found.blocks:
        case = _fresh(found, block)
        if case not in known:
            known[case] = _plannable(case, item, most)
        if not known[case]:
            return charges.refuse(turn, request, found, _refusal(block, case, item)), 0
    count = min(known.values())
    made = request._replace(entry=_counted(item, count))
    kind = charges.kind_of(turn, item.mechanism, found)
    row = turn.append("plan", charges.contents(made, found, kind), request.key)
    for block in found.blocks:
        planned = [*json.loads(block.planned), [kind, count, item.label]]
        turn.later(
            "UPDATE accountant_blocks SET planned = ?, relation = ? WHERE id = ?",
            (texts.compact(planned), relation, block.id),
        )
    turn.close()
    return Decision(row), count


def _counted(item: Entry, count: int) -> Entry:
    return type(item)(item.mechanism, count, item.label, item.time)


def _fresh(found: State, block: Held) -> Case:
    """Return what decides about a block that was charged nothing yet."""
    case = found.case(block)
    if case is None:
        raise DomainError(f"plan needs a budget; block {block.address} has none")
    if case.counts:
        raise UnsupportedError(
            f"plan comes before the first release of block {block.address}: what is planned after"
            " it may depend on it. Charge releases as they come"
        )
    return case


def _plannable(case: Case, item: Entry, most: bool) -> int:
    """Return how many of the releases a budget allows beside a plan; 0 for fewer than asked."""
    watch = decisions.watch(case)
    if most:
        return watch.plannable(item.mechanism)
    try:
        watch.plan([(item.mechanism, item.count)])
    except BudgetExceeded:
        return 0
    return item.count


def _refusal(block: Held, case: Case, item: Entry) -> BlockExceeded:
    watch = decisions.watch(case)
    fits = watch.plannable(item.mechanism)
    message = (
        f"block {block.address} cannot pay a plan of {named([(item.mechanism, item.count)])}:"
        f" {texts.budget_of(case.text).words} allows {fits} beside what is planned. Nothing was"
        " planned"
    )
    asked = ((repr(item.mechanism), item.count),)
    return BlockExceeded(message, block.address, watch.remaining(), asked)
