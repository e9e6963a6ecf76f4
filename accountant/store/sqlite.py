"""SQLite: one file on one machine, written ahead (WAL) and synchronised at every commit."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from accountant import files
from accountant.errors import DomainError, LedgerError, UnsupportedError
from accountant.ledger import storage
from accountant.store.database import Database

__all__ = ["SQLite"]

# UPDATE … FROM came with it.
_LEAST = (3, 33, 0)


class _ReplacedError(Exception):
    """Another file, or none, is where the connection's file was."""


class SQLite(Database):
    """A connection to a file; a new one is for its owner only."""

    members = "(SELECT value FROM json_each(?))"
    now = "CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER)"
    integer = "INTEGER"
    bytewise = ""

    def __init__(self, path: str, create: bool, timeout: float) -> None:
        if sqlite3.sqlite_version_info < _LEAST:
            raise UnsupportedError(f"a store needs SQLite 3.33; this is {sqlite3.sqlite_version}")
        self._path = storage.resolve(path)
        self._timeout = timeout
        self._queue = -1
        self._connection: sqlite3.Connection | None = None
        self._file: os.stat_result | None = None
        self._commits = False
        if create:
            _create(self._path)
        if not self._path.is_file():
            raise DomainError(
                f"no store at {self._path}; make one by accountant store init, or by create=True"
            )

    def rows(self, columns: int) -> str:
        """Return a subquery over the rows of a JSON list."""
        listed = ", ".join(f"json_extract(value, '$[{k}]') AS c{k}" for k in range(columns))
        return f"(SELECT {listed} FROM json_each(?))"

    def begin(self) -> None:
        """Wait in line, then take the write lock.

        SQLite's own waiting sleeps for ever longer times, and the last to come may be served first:
        with eight writers some would wait for tenths of a second. The kernel wakes the waiters of a
        file lock at once, and gives the lock up when its holder dies.
        """
        self._connected()
        if self._queue < 0:
            name = f".{self._path.name}.queue"
            self._queue = storage.open_lock(self._path.with_name(name))
        files.lock(self._queue)
        self.execute("BEGIN IMMEDIATE")
        self._require_same_file()

    def look(self) -> None:
        """Begin to read one state."""
        self.execute("BEGIN")
        self._require_same_file()

    def execute(self, sql: str, values: tuple[object, ...] = ()) -> Any:
        """Run one statement."""
        return self._connected().execute(sql, values)

    def batch(self) -> AbstractContextManager[Any]:
        """Do nothing: there is no server to wait for."""
        return contextlib.nullcontext()

    def commit(self) -> None:
        """Commit, and let the next in line begin."""
        self._commits = True
        self.execute("COMMIT")
        self._commits = False
        self._leave()

    def settled(self) -> None:
        """Undo; nobody sees what is not on the disk."""
        self.rollback()

    def may_have_written(self) -> bool:
        """Tell whether the last error came while the file was synchronised.

        SQLite then undoes what it wrote, but a power cut now may bring it back.
        """
        return self._commits

    def rollback(self) -> None:
        """Undo, and let the next in line begin."""
        self._commits = False
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.rollback()
        self._leave()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None
        if self._queue >= 0:
            os.close(self._queue)
        self._queue = -1

    def is_lost(self, error: BaseException) -> bool:
        """Tell whether another program kept the file locked for the whole time, or replaced it."""
        return isinstance(error, _ReplacedError) or (
            isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
        )

    def is_missing(self, error: BaseException) -> bool:
        """Tell whether a table is not there."""
        return isinstance(error, sqlite3.DatabaseError) and (
            "no such table" in str(error) or "not a database" in str(error)
        )

    def is_own(self, error: BaseException) -> bool:
        """Tell whether SQLite raised it."""
        return isinstance(error, sqlite3.Error)

    def is_too_many(self, error: BaseException) -> bool:
        """Tell whether a count was beyond its limit."""
        return isinstance(error, sqlite3.IntegrityError) and "CHECK" in str(error)

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            file = self._there()
            if file is None:  # SQLite would make an empty one
                raise LedgerError(f"no store at {self._path}: the file was removed")
            made = sqlite3.connect(
                self._path,
                timeout=self._timeout,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
            for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
                made.execute(f"PRAGMA {setting}")
            self._connection, self._file = made, file
        return self._connection

    def _there(self) -> os.stat_result | None:
        with contextlib.suppress(FileNotFoundError):
            return self._path.stat()
        return None

    def _require_same_file(self) -> None:
        """Refuse a file that was removed or renamed: what is charged there, nobody else sees."""
        there = self._there()
        if there is None or self._file is None or not os.path.samestat(there, self._file):
            raise _ReplacedError(f"{self._path} was removed, or another file is there")

    def _leave(self) -> None:
        if self._queue >= 0:
            files.unlock(self._queue)


def _create(path: Path) -> None:
    """Make an empty file for its owner only; WAL and shared-memory files take its mode.

    A file that is there is not even opened: closing it would give up the locks that another
    connection of this process has on it.
    """
    if path.exists():
        return
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(descriptor)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        Path(temporary).unlink()


def path_of(url: str) -> str:
    """Return the file that ``sqlite:///relative`` or ``sqlite:////absolute`` names."""
    path = url.removeprefix("sqlite:///")
    if path == url or not Path(path).name:
        raise DomainError(f"a file is named by sqlite:///PATH; got {url!r:.200}")
    return path
