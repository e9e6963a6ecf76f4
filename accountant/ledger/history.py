"""The history: an append-only sequence of records, with repetitions run-length encoded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from accountant import checks
from accountant._basics.display import shown
from accountant.errors import ArgumentTypeError, DomainError, UnsupportedError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.fields import mechanism_of


@dataclass(frozen=True, slots=True)
class Entry:
    """One record: a mechanism, how often in a row, and what was said about it.

    Attributes
    ----------
    mechanism : Mechanism
        What was released.
    count : int
        How many times in a row, >= 1.
    label : str or None
        The caller's words.
    time : float or None
        The caller's clock, in seconds; order is the sequence's own and never read from here.
    """

    mechanism: Mechanism
    count: int
    label: str | None = None
    time: float | None = None


def entry(mechanism: object, count: object, label: object = None, time: object = None) -> Entry:
    """Check the parts of a record and put them together."""
    checked = mechanism_of(mechanism)
    try:
        hash(checked)
    except TypeError:
        kind = type(mechanism).__name__
        raise ArgumentTypeError(f"mechanism must be hashable; got a {kind}") from None
    return record(checked, count, label, time)


def record(mechanism: Mechanism, count: object, label: object, time: object) -> Entry:
    """Put a record together from a mechanism that was checked and parts that were not."""
    if type(count) is not int or not 1 <= count <= checks.MAX_COUNT:
        count = checks.whole(_COUNT, count)
    if label is not None and type(label) is not str:
        raise ArgumentTypeError(f"label must be a str or None; got the {type(label).__name__}")
    return Entry(mechanism, count, label, None if time is None else checks.number(_TIME, time))


_COUNT = checks.integers("count", 1, checks.MAX_COUNT, "It counts releases")
_TIME = checks.Argument("time", "finite, or None", lambda x: abs(x) < math.inf, "It is in seconds")


class History:
    """Entries in order, and the merged counts of equal mechanisms."""

    __slots__ = ("_counts", "_entries")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._counts: dict[Mechanism, int] = {}

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All records, oldest first."""
        return tuple(self._entries)

    @property
    def counts(self) -> tuple[tuple[Mechanism, int], ...]:
        """Distinct mechanisms with their total counts, in order of first appearance."""
        return tuple(self._counts.items())

    @property
    def first(self) -> Mechanism | None:
        """The first mechanism recorded, which settles the relation; None when there is none."""
        return self._entries[0].mechanism if self._entries else None

    def check_relation(self, new: Sequence[Entry]) -> None:
        """Refuse records of another neighbouring relation than the first's."""
        first = self.first or (new[0].mechanism if new else None)
        for item in new:
            if item.mechanism is first:
                continue  # as step after step of one run
            if first is not None and item.mechanism.relation is not first.relation:
                raise UnsupportedError(
                    f"{item.mechanism!r} must have this ledger's neighbouring relation,"
                    f" {first.relation!r}; got {item.mechanism.relation!r}"
                )

    def remaining_count(self, mechanism: Mechanism) -> int:
        """Return how many more of a mechanism can be recorded so that counts stay exact doubles."""
        return checks.MAX_COUNT - self._counts.get(mechanism, 0)

    def tally(self, new: Iterable[Entry]) -> dict[Mechanism, int]:
        """Return the merged counts of new records; refuse what could no longer be exact doubles."""
        # By identity first: hashing a million mechanisms takes longer than all the rest.
        known: dict[int, Mechanism] = {}
        counts: dict[int, int] = {}
        for item in new:
            key = id(item.mechanism)
            known[key] = item.mechanism
            counts[key] = counts.get(key, 0) + item.count
        added: dict[Mechanism, int] = {}
        for key, count in counts.items():
            added[known[key]] = added.get(known[key], 0) + count
        for mechanism, total in added.items():
            if not (self._counts.get(mechanism, 0) + total <= checks.MAX_COUNT):
                raise DomainError(
                    f"count must keep the total of one mechanism within 2**53; {mechanism!r} stands"
                    f" at {self._counts.get(mechanism, 0)} and {total} more were asked for"
                )
        return added

    def extend(self, new: Iterable[Entry], tally: dict[Mechanism, int]) -> None:
        """Append records with their merged counts, from :meth:`tally`."""
        for item in new:
            self._join(item)
        for mechanism, count in tally.items():
            self._counts[mechanism] = self._counts.get(mechanism, 0) + count

    def _join(self, new: Entry) -> None:
        """Append a record, joining it to the last one if it only repeats it."""
        last = self._entries[-1] if self._entries else None
        if (
            last is not None
            and last.label == new.label
            and last.time == new.time
            and (last.mechanism is new.mechanism or last.mechanism == new.mechanism)
        ):
            self._entries[-1] = Entry(last.mechanism, last.count + new.count, last.label, last.time)
        else:
            self._entries.append(new)


def labels_of(entries: Iterable[Entry], longest: int) -> dict[Mechanism, tuple[str, ...]]:
    """Return the labels of each mechanism, fit to be shown, in order of first appearance."""
    found: dict[Mechanism, dict[str, None]] = {}
    known: dict[int, dict[str, None]] = {}  # by identity first: hashing takes long
    for item in entries:
        words = known.get(id(item.mechanism))
        if words is None:
            words = known[id(item.mechanism)] = found.setdefault(item.mechanism, {})
        if item.label:
            words[shown(item.label, longest)] = None
    return {mechanism: tuple(words) for mechanism, words in found.items()}


class Uncopied:
    """What can be neither copied nor pickled, because it holds what may be spent only once."""

    # What to do instead: of a copy, and of a pickle.
    _COPIED: ClassVar[str]
    _PICKLED: ClassVar[str]

    def __copy__(self) -> NoReturn:
        raise UnsupportedError(self._COPIED)

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise UnsupportedError(self._COPIED)

    def __reduce__(self) -> Any:
        raise UnsupportedError(self._PICKLED)


class HoldsLedger:
    """A value with a ``ledger``, of which copies and pickles hold a closed ledger.

    A copy of a ledger that could be charged would spend one budget twice. So what a copied result
    holds has all the records, answers every question, and refuses to record.
    """

    ledger: Any

    def __getstate__(self) -> dict[str, Any]:
        book = self.ledger
        held = type(book), book.history, book.budget, book.deltas, book.planned
        return self.__dict__ | {"ledger": held}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kind, entries, budget, deltas, planned = state["ledger"]
        ledger = kind(budget)
        ledger._restore(entries, planned)
        ledger._deltas.update(deltas)
        ledger._ended = True
        self.__dict__.update(state | {"ledger": ledger})
