"""One call at a time: between threads, signals and forks, until a database answers or time is over.

A connection is used by one process and one thread. Nothing here knows what the calls do.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import TypeVar

from accountant.errors import DomainError, LedgerConflict, LedgerError
from accountant.store.database import Database, Trouble

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
            raise LedgerError(
                "this thread is in a call of the store already, which a signal interrupted; let the"
                " handler set a flag, and use the store after the call"
            )
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
        raise DomainError(
            "count must keep the total of one mechanism in a block within 2**53"
        ) from error
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
