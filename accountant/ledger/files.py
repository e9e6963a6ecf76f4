"""Ledgers as files: written whole or not at all, and shared by processes one after another."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from accountant.errors import AccountantError, DomainError, LedgerError
from accountant.ledger import document, storage
from accountant.ledger.budget import Budget
from accountant.ledger.history import Entry, History


class Kept(ABC):
    """What a ledger does with files; :class:`~accountant.ledger.Accountant` has the state."""

    _lock: threading.RLock
    _process: int
    _ended: bool
    _budget: Budget | None
    _history: History
    _planned: tuple[Entry, ...]
    _deltas: set[float]
    _versions: dict[Path, storage.Versions]

    @abstractmethod
    def __init__(self, budget: Budget | None = None) -> None: ...

    @abstractmethod
    def _restore(self, entries: Sequence[Entry], planned: Sequence[Entry] = ()) -> None:
        """Take up records that happened, within the budget or not, and what was planned."""

    def to_json(self) -> str:
        """Return the whole ledger as JSON text (docs/ledger.md describes the schema)."""
        with self._lock:
            return self._encoded(None)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Build a ledger from :meth:`to_json`'s text.

        Raises
        ------
        LedgerError
            The text is damaged, truncated, of another version, or holds anything unknown.
        """
        found = document.decode(text)
        ledger = cls(found.budget)
        ledger._deltas.update(found.deltas)
        try:
            ledger._restore(found.entries, found.planned)
        except AccountantError as error:
            raise LedgerError(f"the records of this ledger do not go together: {error}") from error
        return ledger

    def save(self, path: str | os.PathLike[str], *, timeout: float = 60.0) -> None:
        """Write the ledger to ``path``: after a crash at any instant the old or the new is there.

        Parameters
        ----------
        path : path-like
            Written only if it does not exist or holds what this ledger loaded or saved last. A new
            file is readable by its owner only.
        timeout : float
            Seconds to wait for another writer.

        Raises
        ------
        LedgerConflict
            Someone else saved a ledger there, or holds its lock.
        DomainError
            What is there, or its lock, is no regular file.
        UnsupportedError
            A record cannot be written; see :func:`register`.
        OSError
            The disk is full, the directory read-only, …; the old file is intact.
        """
        where = storage.resolve(path)
        with self._lock, storage.locked(where, timeout):
            self._write(where)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read the ledger at ``path``; LedgerError if it is not whole and known."""
        where = storage.resolve(path)
        text, digest = storage.read(where)
        try:
            ledger = cls.from_json(text)
        except LedgerError as error:
            raise LedgerError(f"{where}: {error}") from error
        ledger._versions[where] = {digest}
        return ledger

    @classmethod
    @contextlib.contextmanager
    def transaction(
        cls, path: str | os.PathLike[str], budget: Budget | None = None, *, timeout: float = 60.0
    ) -> Iterator[Self]:
        """Load, let the caller charge, and save, with nobody in between.

        Processes that share a ledger file spend one budget through this: each sees the records of
        all others. Make the releases *after* the block, when their records are on the disk.

        Parameters
        ----------
        path : path-like
            Created when it does not exist.
        budget : Budget, optional
            The budget of a new ledger. That of an old one must be equal.
        timeout : float
            Seconds to wait for the others.

        Notes
        -----
        What was composed is saved even if the block raises: a record too many is on the safe side.
        After the block the ledger can be asked, and records no more.
        """
        where = storage.resolve(path)
        with storage.locked(where, timeout):
            ledger = cls.load(where) if where.exists() else cls(budget)
            if budget is not None and ledger._budget != budget:
                raise DomainError(f"{where} has the budget {ledger._budget!r}, not {budget!r}")
            before = ledger._content
            try:
                yield ledger
            finally:
                with ledger._lock:
                    ledger._ended = True
                    changed = ledger._content != before or not where.exists()
                    if changed and ledger._process == os.getpid():  # a fork leaves the block, too
                        ledger._write(where)

    @property
    def _content(self) -> tuple[object, ...]:
        """What shows whether anything was recorded, planned or noted."""
        releases = sum(count for _, count in self._history.counts)
        return releases, self._planned, frozenset(self._deltas)

    def _write(self, where: Path) -> None:
        text = self._encoded(secrets.token_hex(16))
        storage.write(where, text, self._versions.setdefault(where, set()))

    def _encoded(self, revision: str | None) -> str:
        deltas = tuple(sorted(self._deltas))
        entries, planned = self._history.entries, self._planned
        return document.encode(entries, self._budget, revision, deltas, planned)
