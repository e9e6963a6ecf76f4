"""What the tables must hold, derived from the journal alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from accountant.errors import AccountantError
from accountant.store import decisions, texts
from accountant.store.charges import blocks_of

if TYPE_CHECKING:
    from accountant.store.database import Database

__all__ = ["Replay"]

# Different charges that are added up by their text before they are read.
_TEXTS = 1 << 16


class Replay:
    """Takes the rows in order. Charges are only counted: their order does not matter to sums."""

    def __init__(self) -> None:
        self._budgets: dict[int, str] = {}
        self._kinds: dict[int, str] = {}
        self._prices: dict[tuple[int, int], str] = {}
        self._blocks: dict[int, tuple[str, int | None, str]] = {}
        self._planned: dict[int, list[list[Any]]] = {}
        self._reserved: dict[int, tuple[str, Any]] = {}
        self._reservations: dict[str, tuple[int, int, str, int]] = {}
        self._accounts: dict[tuple[int, int], int] = {}
        self._waiting: dict[str, int] = {}
        # Of each block, its kinds and their counts, once all rows are in.
        self._by_block: dict[int, list[tuple[int, int]]] = {}

    def take(self, row: int, action: str, key: str | None, text: str) -> None:
        """Take one row; an error where it cannot be read."""
        if action in ("charge", "import"):
            self._waiting[text] = self._waiting.get(text, 0) + 1
            if len(self._waiting) >= _TEXTS:
                self._count()
            return
        body = json.loads(text)
        if action == "refuse":
            return
        if action == "reserve":
            assert key is not None
            self._reserved[row] = key, body
            self._reservations[key] = row, body["until"], "open", body["entries"][0][1]
            self._hold(body, 1)
        elif action == "plan":
            for block in blocks_of(body):
                entries = [entry[:3] for entry in body["entries"]]
                self._planned.setdefault(block, []).extend(entries)
        elif action in ("commit", "abort", "expire"):
            self._settle(action, body)
        else:
            self._enter(row, action, body)

    def differences(self, base: Database) -> Iterator[str]:
        """Compare with the tables; yield a sentence for each that differs."""
        try:
            self._count()
            for (block, kind), held in self._accounts.items():
                self._by_block.setdefault(block, []).append((kind, held))
            sums = {number: self._sums(number) for number in self._blocks}
        except (AccountantError, ValueError, TypeError, LookupError, RecursionError) as error:
            yield f"the journal names what it never introduced: {error!r:.120}"
            return
        relations = self._relations()
        blocks = [
            (
                number,
                *self._blocks[number],
                relations.get(number, ""),
                sums[number],
                texts.compact(self._planned.get(number, [])),
            )
            for number in sorted(self._blocks)
        ]
        tables: dict[str, tuple[str, list[Any]]] = {
            "budgets": ("id, digest, text", _named(self._budgets)),
            "kinds": ("id, digest, text", _named(self._kinds)),
            "prices": (
                "budget, kind, cost",
                [(*at, cost) for at, cost in sorted(self._prices.items())],
            ),
            "blocks": ("id, address, budget, deltas, relation, sums, planned", blocks),
            "accounts": (
                "block, kind, held",
                [(*at, held) for at, held in sorted(self._accounts.items())],
            ),
            "reservations": (
                "seq, key, until, state, used",
                sorted((v[0], key, *v[1:]) for key, v in self._reservations.items()),
            ),
        }
        for table, (columns, expected) in tables.items():
            found = base.execute(f"SELECT {columns} FROM accountant_{table}").fetchall()
            different = set(map(tuple, found)) ^ set(expected)
            if different or len(found) != len(expected):
                yield (
                    f"the table of {table} is not what the journal says:"
                    f" {min(map(repr, different), default='a row twice'):.160}"
                )

    def _enter(self, row: int, action: str, body: dict[str, Any]) -> None:
        if action == "budget":
            self._budgets[row] = texts.compact(body["budget"])
        elif action == "kind":
            self._kinds[row] = texts.compact(body["mechanism"])
        elif action == "price":
            self._prices[body["budget"], body["kind"]] = body["cost"]
        elif action == "block":
            deltas = texts.compact(body["deltas"])
            self._blocks[row] = body["address"], body["budget"], deltas
        else:
            raise ValueError(f"unknown action {action!r:.40}")

    def _settle(self, action: str, body: dict[str, Any]) -> None:
        row = body["reservation"]
        key, reserved = self._reserved[row]
        kind, count, _, _ = reserved["entries"][0]
        used = count if action == "expire" else body["used"]
        state = {"commit": "committed", "abort": "aborted", "expire": "expired"}[action]
        self._reservations[key] = row, reserved["until"], state, used
        for block in blocks_of(reserved):
            self._accounts[block, kind] -= count - used

    def _count(self) -> None:
        for text, times in self._waiting.items():
            self._hold(json.loads(text), times)
        self._waiting.clear()

    def _hold(self, body: dict[str, Any], times: int) -> None:
        accounts = self._accounts
        for block in blocks_of(body):
            for entry in body["entries"]:
                at = block, entry[0]
                accounts[at] = accounts.get(at, 0) + times * entry[1]

    def _sums(self, block: int) -> str:
        """Return the sums of a block, from its account and the prices."""
        budget = self._blocks[block][1]
        if (
            budget is None
            or block in self._planned
            or not decisions.has_sums(self._budgets[budget])
        ):
            return ""
        charges = (
            (texts.sums_of(self._prices[budget, kind]), held)
            for kind, held in self._by_block.get(block, [])
        )
        return decisions.added("", charges)

    def _relations(self) -> dict[int, str]:
        known = {kind: texts.mechanism_of(text).relation.name for kind, text in self._kinds.items()}
        charged = {block: known[kind] for block, kind in self._accounts if kind in known}
        planned = {block: known.get(menu[0][0], "") for block, menu in self._planned.items()}
        return charged | planned


def _named(held: dict[int, str]) -> list[tuple[int, str, str]]:
    return [(number, texts.digest(text), text) for number, text in sorted(held.items())]
