"""Whether a journal is whole, every row may stand where it does, and the tables follow from it.

Charges are added up by their text, and each budget is asked only about the most that its block ever
held at once: what was given back is the only thing that makes a block hold less.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from accountant import checks
from accountant.errors import AccountantError
from accountant.relations import NeighbouringRelation
from accountant.store import decisions, texts
from accountant.store.blocks import journal
from accountant.store.database import Database
from accountant.store.decisions import Case
from accountant.store.journal import Chain, Head, is_as_created
from accountant.store.texts import blocks_of

# Faults that are listed; after these they are only counted.
_LISTED = 20

# What reading a row may raise, whatever it holds.
_UNREADABLE = (
    AccountantError, ValueError, TypeError, LookupError, AttributeError, RecursionError
)  # fmt: skip

# Different charges that are added up by their text before they are read.
_TEXTS = 1 << 16

# What one account can hold.
_MOST = checks.MAX_COUNT

_STATES = {"commit": "committed", "abort": "aborted", "expire": "expired"}


class Verification(NamedTuple):
    """What ``verify`` found.

    Attributes
    ----------
    head : Head
        The end of the journal as it is now; worth keeping elsewhere if there are no faults.
    faults : tuple of str
        What does not agree, at most the first twenty; empty where all is well.
    found : int
        How many faults there are.
    """

    head: Head
    faults: tuple[str, ...]
    found: int

    @property
    def passed(self) -> bool:
        """Whether there is no fault."""
        return self.found == 0


def verify(base: Database, chain: Chain, identity: str, head: Head | None) -> Verification:
    """Check the chain row by row, then the tables against what the rows say."""
    replay, found = _Replay(), 0
    listed: list[str] = []
    seq, digest = 0, chain.first(identity)

    def faults() -> Iterator[str]:
        nonlocal seq, digest
        kept = None
        for page in journal(base, "seq, time, action, key, body, digest"):
            for number, time, action, key, body, written in page:
                if number != seq + 1:
                    yield f"row {seq + 1} of the journal is missing"
                follows = chain.next(digest, number, time, action, key, body) == written
                seq, digest = number, written
                if head is not None and number == head.rows:
                    kept = written
                if not follows:
                    yield f"row {number} does not follow from the row before: one was changed"
                    continue  # what it says is of no use
                try:
                    replay.take(number, time, action, key, body)
                except _UNREADABLE as error:
                    yield f"row {number} cannot be: {error!r:.120}"
        stated = base.execute("SELECT seq, digest FROM accountant_head").fetchall()
        if [tuple(row) for row in stated] != [(seq, digest)]:
            yield f"the journal ends at row {seq}, its stated end is {stated!r:.120}"
        if head is not None and head.rows and kept != head.digest:
            what = "has been cut or is an older copy" if kept is None else "is another one"
            yield f"the journal {what}: row {head.rows} is not the one of the head that was given"
        if not is_as_created(base, identity):
            yield "the tables are not as they were created: columns, triggers, rules or indexes"
        yield from replay.differences(base)

    for text in faults():
        found += 1
        if len(listed) < _LISTED:
            listed.append(text)
    return Verification(Head(seq, digest), tuple(listed), found)


class _Block(NamedTuple):
    """A block: what its row says, what it holds by kind, and what it held before it held less."""

    address: str
    budget: int | None
    deltas: str
    planned: list[list[Any]]
    held: dict[int, int]
    peaks: list[dict[int, int]]
    taken: dict[int, int]  # of it, what a ledger brought in

    def peak(self) -> None:
        """Remember what is held, in place of the last time where that was no more."""
        if self.peaks and all(n <= self.held.get(k, 0) for k, n in self.peaks[-1].items()):
            self.peaks.pop()
        self.peaks.append(dict(self.held))


class _Replay:
    """Takes the rows in order; ValueError, or another error, where one cannot be."""

    def __init__(self) -> None:
        self._budgets: dict[int, str] = {}
        self._kinds: dict[int, str] = {}
        self._blocks: dict[int, _Block] = {}
        self._names: set[str] = set()
        self._reserved: dict[int, tuple[str, Any]] = {}
        self._reservations: dict[str, tuple[int, int, str, int]] = {}
        self._waiting: dict[str, int] = {}

    def take(self, row: int, time: int, action: str, key: str | None, text: str) -> None:
        """Take one row."""
        keyed = action in ("charge", "reserve")
        _require(key is not None if keyed else key is None or action == "plan", "its key")
        if action == "charge":
            # What is the same but for its label and its call is added up once.
            self._waiting[text] = self._waiting.get(text, 0) + 1
            if len(self._waiting) >= _TEXTS:
                self._count()
            return
        body = json.loads(text)
        if action == "refuse":
            return
        takes: dict[str, Callable[..., None]] = {
            "budget": self._budget,
            "kind": self._kind,
            "block": self._block,
            "plan": self._plan,
            "import": self._import,
            "reserve": self._reserve,
            **dict.fromkeys(_STATES, self._settle),
        }
        takes[action](body, row=row, time=time, action=action, key=key)

    def differences(self, base: Database) -> Iterator[str]:
        """Compare with the tables, and the blocks with their budgets; yield what is wrong."""
        try:
            self._count()
            relations = {number: self._relation(each) for number, each in self._blocks.items()}
            yield from self._overspent()
        except _UNREADABLE as error:
            yield f"the journal cannot be added up: {error!r:.120}"
            return
        yield from self._mixed(relations)
        tables: dict[str, tuple[str, list[Any]]] = {
            "budgets": ("id, digest, text", _named(self._budgets)),
            "kinds": ("id, digest, text", _named(self._kinds)),
            "blocks": (
                "id, address, budget, deltas, relation, planned",
                [
                    (n, *each[:3], relations[n], texts.compact(each.planned))
                    for n, each in self._blocks.items()
                ],
            ),
            "accounts": (
                "block, kind, held",
                [(n, k, held) for n, each in self._blocks.items() for k, held in each.held.items()],
            ),
            "reservations": (
                "seq, key, until, state, used",
                [(v[0], key, *v[1:]) for key, v in self._reservations.items()],
            ),
        }
        for table, (columns, expected) in tables.items():
            found = base.execute(f"SELECT {columns} FROM accountant_{table}").fetchall()
            different = set(map(tuple, found)) ^ set(expected)
            if different or len(found) != len(expected):
                one = min(map(repr, different), default="a row twice")
                yield f"the table of {table} is not what the journal says: {one:.160}"

    # Rows

    def _budget(self, body: Any, *, row: int, **_: Any) -> None:
        text = texts.compact(body["budget"])
        _require(texts.text_of_budget(texts.budget_of(text)) == text, "a budget as it is written")
        self._budgets[row] = text

    def _kind(self, body: Any, *, row: int, **_: Any) -> None:
        text = texts.compact(body["mechanism"])
        texts.mechanism_of(text)
        self._kinds[row] = text

    def _block(self, body: Any, *, row: int, **_: Any) -> None:
        address, budget = texts.address_of(body["address"]), body["budget"]
        _require(address not in self._names, "another address")
        _require(budget is None or budget in self._budgets, "a budget that is there")
        self._names.add(address)
        self._blocks[row] = _Block(address, budget, texts.compact(body["deltas"]), [], {}, [], {})

    def _plan(self, body: Any, **_: Any) -> None:
        self._count()
        self._require_everyone(body)
        for block in self._those(body):
            _require(block.budget is not None and not block.held, "to come before all releases")
            block.planned.extend(entry[:3] for entry in self._entries(body))

    def _import(self, body: Any, **_: Any) -> None:
        self._count()
        for block in self._those(body):
            _require(block.held == block.taken, "to come before all charges")
            for held in (block.held, block.taken):
                for kind, count, *_rest in self._entries(body):
                    held[kind] = held.get(kind, 0) + count

    def _reserve(self, body: Any, *, row: int, key: str, **_: Any) -> None:
        ((_kind, count, *_rest),) = self._entries(body)
        _require(key not in self._reservations and type(body["until"]) is int, "a lease of its own")
        self._reserved[row] = key, body
        self._reservations[key] = row, body["until"], "open", count
        self._hold(body, 1)

    def _settle(self, body: Any, *, time: int, action: str, **_: Any) -> None:
        key, reserved = self._reserved[body["reservation"]]
        row, until, state, count = self._reservations[key]
        used = count if action == "expire" else body["used"]
        _require(state == "open", "a reservation that nobody has settled")
        _require(type(used) is int and (action == "abort") <= (used == 0), "an abort of all")
        _require((action != "commit") <= (1 <= used <= count or action == "abort"), "a count")
        _require(0 <= used <= count, "no more than was reserved")
        _require(time >= until if action == "expire" else used == count or time < until, "its time")
        self._reservations[key] = row, until, _STATES[action], used
        if used < count:
            self._count()
            kind = reserved["entries"][0][0]
            for block in self._those(reserved):
                block.peak()
                block.held[kind] -= count - used

    # Sums

    def _count(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for text, times in waiting.items():
            self._hold(json.loads(text), times)

    def _require_everyone(self, body: Any) -> None:
        """Refuse a row that leaves out the block of all people, which is the first if it is one."""
        first = next(iter(self._blocks), None)
        if first is not None and self._blocks[first].address == texts.EVERYONE:
            _require(any(number == first for number in blocks_of(body)), "the block of everyone")

    def _hold(self, body: Any, times: int) -> None:
        self._require_everyone(body)
        for kind, count, *_rest in self._entries(body):
            for block in self._those(body):
                held = block.held[kind] = block.held.get(kind, 0) + times * count
                _require(held <= _MOST, "at most 2**53 of a kind")

    def _entries(self, body: Any) -> list[Any]:
        found: list[Any] = body["entries"]
        for kind, count, *_rest in found:
            _require(kind in self._kinds, "a kind that is there")
            _require(type(count) is int and 1 <= count <= _MOST, "a count from 1 to 2**53")
        return found

    def _those(self, body: Any) -> Iterator[_Block]:
        return (self._blocks[number] for number in blocks_of(body))

    # Budgets

    def _overspent(self) -> Iterator[str]:
        """Name the blocks that ever held more than their budgets allow."""
        known: dict[Case, bool] = {}
        for block in self._blocks.values():
            if block.budget is None:
                continue
            budget = self._budgets[block.budget]
            menu = decisions.menu_of(texts.compact(block.planned), self._kinds)
            if menu and not decisions.can_plan(Case(budget, (), ()), menu):
                yield f"block {block.address} has a plan beyond its budget"
            if block.held == block.taken and not block.peaks:
                continue  # what a ledger brought in is taken whatever it costs
            block.peak()

            def fits(held: dict[int, int], budget: str = budget, menu: Any = menu) -> bool:
                counts = sorted((kind, count) for kind, count in held.items() if count)
                after = tuple((texts.mechanism_of(self._kinds[k]), n) for k, n in counts)
                case = Case(budget, menu, after)
                if case not in known:
                    known[case] = decisions.admits(case)
                return known[case]

            if not _all_fit(block.peaks, fits):
                yield f"block {block.address} held more than its budget allows"

    def _relation(self, block: _Block) -> str:
        kinds = [*block.held, *(entry[0] for entry in block.planned)]
        names = {texts.mechanism_of(self._kinds[kind]).relation.name for kind in kinds}
        _require(len(names) <= 1, f"one relation on block {block.address}")
        return names.pop() if names else ""

    def _mixed(self, relations: dict[int, str]) -> Iterator[str]:
        """Name the data sets that have several blocks, one of them under replace-one."""
        several: dict[str, int] = {}
        for block in self._blocks.values():
            group = texts.siblings(block.address)
            several[group] = several.get(group, 0) + 1
        for number, block in self._blocks.items():
            group = texts.siblings(block.address)
            if relations[number] == NeighbouringRelation.REPLACE_ONE.name and several[group] > 1:
                yield f"{group} has several blocks, and {block.address} is under replace-one"


def _all_fit(peaks: list[dict[int, int]], fits: Callable[[dict[int, int]], bool]) -> bool:
    """Tell whether all fit: the most of each kind together, or else both halves."""
    most: dict[int, int] = {}
    for each in peaks:
        for kind, count in each.items():
            most[kind] = max(count, most.get(kind, 0))
    if fits(most):
        return True
    middle = len(peaks) // 2
    return bool(middle) and _all_fit(peaks[:middle], fits) and _all_fit(peaks[middle:], fits)


def _require(true: bool, what: str) -> None:
    if not true:
        raise ValueError(f"it needs {what}")


def _named(held: dict[int, str]) -> list[tuple[int, str, str]]:
    return [(number, texts.digest(text), text) for number, text in held.items()]
