"""What the two databases have in common; one call at a time, until one answers or time is over.

A connection is used by one process and one thread, between threads, signals and forks.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from accountant.errors import DomainError, LedgerConflict, LedgerError
from accountant.store.texts import compact, range_of

# A statement and its values.
Query: TypeAlias = "tuple[str, tuple[object, ...]]"

# What an error of the database means: another has the turn; the connection was lost; a table is not
# there; a constraint on counts was violated; anything else that the database or its driver says.
Trouble: TypeAlias = 'Literal["busy", "lost", "missing", "count", "other"]'


class Answer:
    """The rows that a statement found, once its batch was sent."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def fetchall(self) -> list[Any]:
        """Return all rows."""
        return self.rows

    def fetchone(self) -> Any:
        """Return the first row; None without one."""
        return self.rows[0] if self.rows else None


class Database(Protocol):
    """One connection. SQL is written with ``?``, and both databases run the same text.

    Attributes
    ----------
    members : str
        A subquery: the strings of one JSON list. It takes a placeholder.
    now : str
        An expression: microseconds since 1970 by the database's clock.
    integer : str
        The type of integers of 64 bits.
    bytewise : str
        What makes a column of text sort by its bytes.
    schema : str
        A query: all that the database knows of the store's tables.
    """

    members: str
    now: str
    integer: str
    bytewise: str
    schema: str

    def rows(self, columns: int) -> str:
        """Return a subquery, the rows of a JSON list of lists: columns c0, c1, …, as text."""

    def find(self, named: Sequence[str]) -> Query:
        """Return the condition on blocks ``b`` of addresses and patterns, and its values."""
        exact = [name for name in named if not name.endswith("/*")]
        conditions = ["b.address >= ? AND b.address < ?"] * (len(named) - len(exact))
        values: list[object] = [e for n in named if n.endswith("/*") for e in range_of(n)]
        if len(exact) > 2:  # more than of a charge to one block and to everyone's
            conditions.append(f"b.address IN {self.members}")
            values.append(compact(exact))
        elif exact:
            conditions.append(f"b.address IN ({', '.join('?' * len(exact))})")
            values += exact
        return " OR ".join(conditions), tuple(values)

    def connect(self, deadline: float) -> None:
        """Open the connection, unless it is open; what follows waits until then at most.

        ``deadline`` is one of ``time.monotonic``.
        """

    def begin(self) -> None:
        """Begin to write; an error of trouble "busy" where others do until the deadline."""

    def look(self) -> None:
        """Begin to read one state of the database, whatever others write meanwhile."""

    def execute(self, sql: str, values: tuple[object, ...] = ()) -> Any:
        """Run one statement; fetch from what is returned after the batch, if there is one."""

    def batch(self) -> AbstractContextManager[Any]:
        """Send the statements of a ``with`` block at once, where that saves time."""

    def commit(self) -> None:
        """Make what was written last, on the disk."""

    def settled(self) -> None:
        """Undo, and wait until what was read is on the disk, where it may be seen before."""

    def may_have_written(self) -> bool:
        """Tell whether the last error leaves open what became of a commit."""

    def rollback(self) -> None:
        """Undo what was written since ``begin``; never fails."""

    def close(self) -> None:
        """Close the connection; ``connect`` makes another. Never fails."""

    def abandon(self) -> None:
        """Let go of a connection that is another process's, without a word to the database."""

    def trouble(self, error: BaseException) -> Trouble | None:
        """Return what an error means; None for one that is not the database's."""


T = TypeVar("T")

# Seconds before the second attempt; each later pause is twice as long, up to the longest.
_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.5
# Interruptions that are borne around a fork.
_TIMES = 9


class Access:
    """A database for one process, and for one call at a time; the base of ``Store``."""

    def __init__(self, connect: Callable[[], Database], timeout: float) -> None:
        self._timeout = timeout
        self._lock = threading.RLock()
        self._holder = 0  # the thread that is in a call
        self._paused = 0  # the thread that forks
        self._process = os.getpid()
        self._database = connect()
        _OPEN.add(self)

    def _retried(self, work: Callable[[], T], unknown: str = "") -> T:
        return self._alone(lambda deadline: self._attempts(work, unknown, deadline))

    def _alone(self, work: Callable[[float], T]) -> T:
        """Do ``work`` when no other thread is in a call; give it the end of its time.

        A signal may come between any two calls. None is made between those that must not be parted.
        """
        if self._process != os.getpid():
            self._begin_anew()
        thread, process = threading.get_ident(), self._process
        if thread in (self._holder, self._paused):
            raise LedgerError("in a call of the store already; use it after the handler")
        deadline = time.monotonic() + self._timeout
        patience = min(self._timeout, threading.TIMEOUT_MAX)
        try:
            if not self._lock.acquire(timeout=patience):
                raise LedgerConflict(f"another thread used this store for {self._timeout:g} s")
            self._holder = thread
            found = work(deadline)
        finally:
            if self._holder == thread:
                self._holder = 0
            try:  # noqa: SIM105 (suppress would be a call, before which a signal could come)
                self._lock.release()
            except RuntimeError:  # it was not taken
                pass
        if os.getpid() != process:
            raise LedgerError(
                "this process was forked in the middle of a call; what was charged is its parent's"
            )
        return found

    def _attempts(self, work: Callable[[], T], unknown: str, deadline: float) -> T:
        base, process = self._database, self._process
        pause, doubt = _FIRST_PAUSE, ""
        while True:
            try:
                base.connect(deadline)
                return work()
            except BaseException as error:
                try:
                    base.rollback()
                finally:  # again, where a second interruption came in the first
                    base.rollback()
                if os.getpid() != process:
                    raise LedgerError("this process was forked in the middle of a call") from error
                doubt = unknown if base.may_have_written() else doubt
                trouble = base.trouble(error)
                _raise_final(error, trouble, doubt)
                if trouble == "lost":
                    base.close()
                now = time.monotonic()
                if not now < deadline:
                    raise LedgerConflict(
                        f"the database of this store could not be used for {self._timeout:g} s"
                        f" ({error}){doubt or '. Nothing was written' * bool(unknown)}"
                    ) from error
            time.sleep(min(pause, max(deadline - now, 0.0)))
            pause = min(2.0 * pause, _LONGEST_PAUSE)

    # Forks

    def _pause(self) -> None:
        """Close the connection, and let no thread begin a call, until the process has forked.

        A call of the thread that forks, in a signal handler, loses its connection and begins again.
        """
        thread = threading.get_ident()
        if self._holder != thread and self._paused != thread:
            self._paused = thread
            self._lock.acquire(timeout=min(self._timeout, threading.TIMEOUT_MAX))
        if self._holder in (0, thread):
            self._database.close()

    def _resume(self) -> None:
        """Let threads begin calls."""
        if self._paused == threading.get_ident():
            self._paused = 0
            try:  # noqa: SIM105 (suppress would be a call, before which a signal could come)
                self._lock.release()
            except RuntimeError:  # it was not taken
                pass

    def _begin_anew(self) -> None:
        """Be the child: what another process has open is not used, and not closed."""
        self._database.abandon()
        self._lock = threading.RLock()
        self._holder, self._paused, self._process = 0, 0, os.getpid()


def _raise_final(error: BaseException, trouble: Trouble | None, doubt: str) -> None:
    """Raise what a further attempt would not change."""
    if trouble == "count":
        raise DomainError("count must keep the total of a mechanism within 2**53") from error
    if trouble in ("missing", "other"):
        raise LedgerError(f"the database of this store says: {error}{doubt}") from error
    if trouble is None:
        raise error


_OPEN: weakref.WeakSet[Access] = weakref.WeakSet()


class _Forks:
    """What is done around every fork of this process, one at a time."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._stores: list[Access] = []
        # Twice: Python drops what a signal's handler raises in one of them, with all it had to do.
        for _ in range(2 if hasattr(os, "register_at_fork") else 0):
            os.register_at_fork(
                before=self._before, after_in_parent=self._parent, after_in_child=self._child
            )

    def _before(self) -> None:
        self._lock.acquire()
        self._stores = list(_OPEN)
        for each in self._stores:
            _surely(each._pause)

    def _parent(self) -> None:
        for each in self._stores:
            _surely(each._resume)
        self._lock.release()

    def _child(self) -> None:
        self._lock = threading.RLock()
        for each in self._stores:
            if each._process != os.getpid():
                _surely(each._begin_anew)


def _surely(work: Callable[[], None]) -> None:
    """Do what must be done around a fork, where Python drops what a signal's handler raises."""
    for _ in range(_TIMES):
        with contextlib.suppress(BaseException):
            work()
            return


_FORKS = _Forks()
