"""Whether a journal is whole, and whether every table follows from it."""

from __future__ import annotations

from typing import NamedTuple

from accountant.store import tables
from accountant.store.chain import Chain, Head
from accountant.store.database import Database
from accountant.store.readings import journal
from accountant.store.replay import UNREADABLE, Replay

# Faults that are listed; after these they are only counted.
_LISTED = 20


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


class _Faults:
    def __init__(self) -> None:
        self.listed: list[str] = []
        self.found = 0

    def add(self, text: str) -> None:
        self.found += 1
        if len(self.listed) < _LISTED:
            self.listed.append(text)


def verify(base: Database, chain: Chain, identity: str, head: Head | None) -> Verification:
    """Check the chain row by row, then the tables against what the rows say."""
    faults = _Faults()
    replay = Replay()
    seq, digest = 0, chain.first(identity)
    kept = None
    for page in journal(base, "seq, time, action, key, body, digest"):
        for number, time, action, key, body, written in page:
            if number != seq + 1:
                faults.add(f"row {seq + 1} of the journal is missing")
            follows = chain.next(digest, number, time, action, key, body) == written
            seq, digest = number, written
            if head is not None and number == head.rows:
                kept = written
            if not follows:
                faults.add(f"row {number} does not follow from the row before: one was changed")
                continue  # what it says is of no use
            try:
                replay.take(number, time, action, key, body)
            except UNREADABLE as error:
                faults.add(f"row {number} cannot be: {error!r:.120}")
    stated = base.execute("SELECT seq, digest FROM accountant_head").fetchall()
    if [tuple(row) for row in stated] != [(seq, digest)]:
        faults.add(f"the journal ends at row {seq}, its stated end is {stated!r:.120}")
    if head is not None and head.rows and kept != head.digest:
        what = "has been cut or is an older copy" if kept is None else "is another one"
        faults.add(f"the journal {what}: row {head.rows} is not the one of the head that was given")
    if not tables.is_as_created(base, identity):
        faults.add("the tables are not as they were created: columns, triggers, rules or indexes")
    for text in replay.differences(base):
        faults.add(text)
    return Verification(Head(seq, digest), tuple(faults.listed), faults.found)
