"""SQLite: one file on one machine, written ahead (WAL) and synchronised at every commit."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from accountant._basics import files
from accountant.errors import DomainError, LedgerError, UnsupportedError
from accountant.ledger import storage
from accountant.store.database import Answer, Database, Trouble

# UPDATE … FROM came with this version of SQLite.
_LEAST = (3, 33, 0)

# What SQLite keeps beside the file while it is open; charges are there before they are in the file.
_LOGS = ("-wal", "-shm")

# The bytes of the file that every open connection has locked, by SQLite's file format.
_SHARED = 0x40000002, 510

# SQLite's primary result codes (https://sqlite.org/rescode.html).
_BUSY = 5  # Another connection holds a lock.
_READ_ONLY = 8  # The file may not be written.
_FULL = 13  # The disk is full.
_CANNOT_OPEN = 14  # The file, or a log beside it, cannot be opened.
_NO_DATABASE = 26  # The file is no database.

# Seconds between two attempts to begin, where others write. A turn takes less than a millisecond:
# whoever has waited for HURRY asks most often, so that nobody is passed for long, and whoever has
# waited for LONG asks less often, as others do not make short turns. Only speed depends on them.
_SOON = 0.001
_OFTEN = 0.0001
_HURRY = 0.006
_LONG = 1.0
_SELDOM = 0.002

_GIVEN_UP = "the connection was closed for a fork in the middle of the call"


class _BusyError(Exception):
    """Others have to do something first."""


class _ReplacedError(Exception):
    """What the connection was opened with is not in its place."""


class SQLite(Database):
    """A connection to a file; a new one is for its owner only."""

    members = "(SELECT value FROM json_each(?))"
    now = "CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER)"
    integer = "INTEGER"
    bytewise = ""
    schema = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE tbl_name LIKE 'accountant%'"

    def __init__(self, path: str, create: bool) -> None:
        if sqlite3.sqlite_version_info < _LEAST:
            raise UnsupportedError(f"a store needs SQLite 3.33; this is {sqlite3.sqlite_version}")
        self._path = storage.resolve(path)
        self._names = [f"{self._path}{ending}" for ending in ("", *_LOGS)]
        self._connection: sqlite3.Connection | None = None
        self._files: list[object] = []
        self._doubt = False
        self._deadline = 0.0
        if create:
            files.created(self._path)
        if not self._path.is_file():
            raise DomainError(f"no store at {self._path}; make one by create=True")

    def rows(self, columns: int) -> str:
        """Return a subquery over the rows of a JSON list."""
        listed = ", ".join(f"json_extract(value, '$[{k}]') AS c{k}" for k in range(columns))
        return f"(SELECT {listed} FROM json_each(?))"

    def connect(self, deadline: float) -> None:
        """Open the file, unless it is open; no statement waits, but for a turn."""
        self._doubt, self._deadline = False, deadline
        if self._connection is None:
            self._require_place()
            made = self._opened()
            self._require_logs(self._path.stat())
            self._connection, self._files = made, self._there()

    def begin(self) -> None:
        """Wait for the write lock and take it.

        SQLite's own wait keeps signals waiting, too, and lets those who came last go first.
        """
        began = time.monotonic()
        while True:
            try:
                self.execute("BEGIN IMMEDIATE")
                break
            except sqlite3.Error as error:
                now = time.monotonic()
                if _code(error) != _BUSY or not now < self._deadline:
                    raise
            waited = now - began
            pause = max(_OFTEN, _SOON * (1.0 - waited / _HURRY)) if waited < _LONG else _SELDOM
            time.sleep(min(pause, self._deadline - now))
        self._require_same()

    def look(self) -> None:
        """Begin to read one state."""
        self.execute("BEGIN")
        self._require_same()

    def execute(self, sql: str, values: tuple[object, ...] = ()) -> Any:
        """Run one statement."""
        connection, answer = self._connection, Answer()
        if connection is None:
            raise _ReplacedError(_GIVEN_UP)
        try:
            # All at once: while a statement has rows left, nothing can close the connection.
            answer.rows = connection.execute(sql, values).fetchall()
        except sqlite3.ProgrammingError:
            if self._connection is connection:
                raise
            raise _ReplacedError(_GIVEN_UP) from None
        return answer

    def batch(self) -> AbstractContextManager[Any]:
        """Do nothing: there is no server to wait for."""
        return contextlib.nullcontext()

    def commit(self) -> None:
        """Commit, in the files that everybody else sees."""
        self._doubt = True
        try:
            self.execute("COMMIT")
        except sqlite3.Error as error:
            # The last part, without which the others are nothing, did not fit.
            self._doubt = _code(error) != _FULL
            raise
        self._require_same()
        self._doubt = False

    def settled(self) -> None:
        """Undo; nobody sees what is not on the disk."""
        self.rollback()

    def may_have_written(self) -> bool:
        """Tell whether the last error came while the file was synchronised.

        SQLite then undoes what it wrote, but a power cut now may bring it back.
        """
        return self._doubt

    def rollback(self) -> None:
        """Undo, and let the next begin."""
        connection = self._connection  # a fork in a signal's handler closes it between two looks
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.rollback()

    def close(self) -> None:
        """Close the connection.

        The last to close writes the log into the file, also a log that somebody removed, and
        removes what is there under the log's name. Where that is another's, nothing is closed.
        """
        if self._connection is None:
            return
        now = zip(self._there(), self._files, strict=True)
        if all(there == opened or (there is None and k) for k, (there, opened) in enumerate(now)):
            # Forgotten first: a signal's handler may raise when it is closed.
            connection, self._connection = self._connection, None
            with contextlib.suppress(sqlite3.Error):
                connection.rollback()  # closing alone waits for the end of statements
            with contextlib.suppress(sqlite3.Error):
                connection.close()
        self.abandon()

    def abandon(self) -> None:
        """Let go of the connection, and never close it: not by the interpreter's end either."""
        connection, self._connection = self._connection, None
        if connection is not None:
            import ctypes

            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))

    def trouble(self, error: BaseException) -> Trouble | None:
        """Return what an error means; "lost" where the file or its logs are not in their place."""
        if isinstance(error, _ReplacedError):
            return "lost"
        if isinstance(error, _BusyError) or _code(error) == _BUSY:
            return "busy"
        if not isinstance(error, sqlite3.Error):
            return None
        if isinstance(error, sqlite3.IntegrityError) and "CHECK" in str(error):
            return "count"
        return "missing" if "no such table" in str(error) else "other"

    def _opened(self) -> sqlite3.Connection:
        """Open the file to write; to read, where this is all that one may."""
        quoted = self._path.as_uri()
        found = [_identity(name) for name in self._names[1:]]
        if None in found and files.is_locked(self._path, *_SHARED):
            raise _BusyError("another client has it open, whose -wal and -shm were removed; end it")
        try:
            if os.access(self._path, os.W_OK):
                return _connection(f"{quoted}?mode=rw", write=True)
            return _connection(f"{quoted}?mode=ro")
        except sqlite3.Error as error:
            if _code(error) == _NO_DATABASE:
                raise LedgerError(f"{self._path} holds no store: it is no database") from error
            # Where no log can be made, nobody writes; a log that is there would be left out.
            if _code(error) not in (_READ_ONLY, _CANNOT_OPEN) or _size(self._names[1]):
                raise
            return _connection(f"{quoted}?mode=ro&immutable=1")

    def _require_place(self) -> None:
        """Refuse a file that others may know by another name, and logs that are another's."""
        if not self._path.exists():  # SQLite would make an empty one
            raise LedgerError(f"no store at {self._path}: the file was removed")
        storage.require_one_name(self._path)
        self._require_logs(self._path.stat())

    def _require_logs(self, of: os.stat_result) -> None:
        """Refuse logs that more may read than the file; give one's own the file's group and mode.

        Where everybody may make files, only logs of the file's owner, of root and of oneself are
        used: another would read in his own what he may not read in the file.
        """
        owners = {of.st_uid, os.geteuid(), 0} if hasattr(os, "geteuid") else set()
        anybody = self._path.parent.stat().st_mode & stat.S_IWOTH
        for name in self._names[1:]:
            try:
                log = os.lstat(name)
            except FileNotFoundError:
                continue
            if not stat.S_ISREG(log.st_mode) or (anybody and owners and log.st_uid not in owners):
                raise LedgerError(f"{name} was made by another user; remove it")
            if not owners or log.st_uid == os.geteuid():
                # It may be gone: the last to close removes the logs.
                with contextlib.suppress(PermissionError, FileNotFoundError):
                    files.keep_mode(name, of)

    def _there(self) -> list[object]:
        return [_identity(name) for name in self._names]

    def _require_same(self) -> None:
        """Refuse other files: what is charged in those that are open, nobody else sees."""
        for name, there, opened in zip(self._names, self._there(), self._files, strict=True):
            if there != opened:
                raise _ReplacedError(f"{name} was removed, replaced, or has another name")


def _connection(uri: str, *, write: bool = False) -> sqlite3.Connection:
    made = sqlite3.connect(
        uri, timeout=0.0, isolation_level=None, check_same_thread=False, uri=True
    )
    try:
        if write:
            made.execute("PRAGMA journal_mode=WAL")
            made.execute("PRAGMA synchronous=FULL")
            made.execute("PRAGMA foreign_keys=ON")
        made.execute("SELECT count(*) FROM sqlite_master").fetchone()  # makes the logs
    except BaseException:
        made.close()
        raise
    return made


def _code(error: BaseException) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _identity(name: str) -> object:
    try:
        found = os.lstat(name)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_nlink


def _size(name: str) -> int:
    with contextlib.suppress(FileNotFoundError):
        return os.stat(name).st_size
    return 0


def path_of(url: str) -> str:
    """Return the file that ``sqlite:///relative`` or ``sqlite:////absolute`` names."""
    path = url.removeprefix("sqlite:///")
    if path == url or not Path(path).name:
        raise DomainError(f"a file is named by sqlite:///PATH; got {url!r:.200}")
    return path
