"""The accountant: an append-only record of releases, and their ε and δ."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from typing import TYPE_CHECKING

from accountant import checks
from accountant.environment import to_nearest
from accountant.errors import (
    AccountantError,
    BudgetExceeded,
    DomainError,
    LedgerError,
    UnsupportedError,
)
from accountant.ledger import document, evaluation, filters, storage
from accountant.ledger.budget import Budget
from accountant.ledger.history import Entry, History, entry
from accountant.ledger.meters import Meter, Remaining
from accountant.ledger.queries import Questions
from accountant.ledger.uncopied import Uncopied

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from accountant.mechanisms.base import Mechanism
    from accountant.relations import NeighbouringRelation

__all__ = ["Accountant"]

_ENDED = "this ledger records no more: its transaction has ended, or it is that of a copied result"
_BUSY = "this ledger is recording: a record within a record is refused"


class Accountant(Uncopied, Questions):
    """A ledger of releases: it only grows, refuses what its budget forbids, and can be saved.

    Parameters
    ----------
    budget : Budget, optional
        Watches every record from the first on. A release that would overspend it raises
        BudgetExceeded *before* it is recorded; make the release only after ``compose`` returned.

    Notes
    -----
    Safe to use from several threads. Copies are refused: two copies would spend one budget twice.
    Equal consecutive records are one entry with a count: a million take the memory of one.

    Examples
    --------
    >>> from accountant.ledger import Accountant
    >>> ledger = Accountant()
    >>> len(ledger), ledger.epsilon(1e-5)
    (0, 0.0)
    """

    _COPIED = "an Accountant has no copies; merge it into another, or save it"
    _PICKLED = "an Accountant is not pickled; use to_json or save"

    @to_nearest
    def __init__(self, budget: Budget | None = None) -> None:
        checks.instance("budget", budget, (Budget, type(None)), "a Budget or None")
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._ended = self._busy = False
        self._budget = budget
        self._meter: Meter | None = None if budget is None else filters.meter(budget)
        self._history = History()
        self._deltas: set[float] = set()
        # For each file: the digests of the contents this ledger knows, hence may replace.
        self._versions: dict[Path, storage.Versions] = {}

    # Recording

    def compose(
        self,
        mechanism: Mechanism,
        count: int = 1,
        label: str | None = None,
        *,
        time: float | None = None,
    ) -> None:
        """Record ``count`` releases of ``mechanism``.

        Parameters
        ----------
        mechanism : Mechanism
            A frozen value.
        count : int
            In [1, 2**53]. Floats and bools are refused.
        label : str, optional
            Words for the history.
        time : float, optional
            Seconds by the caller's clock, for the history; nothing is derived from it.

        Raises
        ------
        BudgetExceeded
            The budget does not allow it.
        UnsupportedError
            The mechanism's neighbouring relation is not that of the ledger, or the budget's filter
            cannot charge it.
        DomainError, ArgumentTypeError
            An argument is outside its domain or of the wrong type.

        Notes
        -----
        Whatever is raised, nothing was recorded.
        """
        self._append((entry(mechanism, count, label, time),))

    def require(self, mechanism: Mechanism, count: int = 1) -> None:
        """Raise what :meth:`compose` would raise now, and record nothing."""
        self._append((entry(mechanism, count),), record=False)

    def step(
        self,
        *,
        noise_multiplier: float,
        sampling_probability: float = 1.0,
        count: int = 1,
        label: str | None = None,
    ) -> None:
        """Record steps of DP-SGD: Gaussian noise on a Poisson sample, add-or-remove.

        Parameters
        ----------
        noise_multiplier : float
            Noise standard deviation over clipping norm, > 0.
        sampling_probability : float
            In [0, 1].
        count, label
            As in :meth:`compose`.
        """
        self.compose(evaluation.dp_sgd_step(noise_multiplier, sampling_probability), count, label)

    def merge(self, other: Accountant) -> None:
        """Append all records of ``other``, which stays as it is.

        Either all are recorded or none. The releases have happened already: a ledger that has to
        record them whatever they cost must have no budget.

        Raises
        ------
        BudgetExceeded, UnsupportedError, DomainError
            As in :meth:`compose`; also when ``other`` is this ledger itself.
        """
        checks.instance("other", other, Accountant, "an Accountant")
        if other is self:
            raise DomainError("merge needs another ledger; merged with itself it would count twice")
        # Taken before this ledger's lock, so that two merges cannot wait for each other.
        new, deltas = other.history, set(other._deltas)
        self._refuse_forks()
        with self._lock:
            self._append(new)
            self._deltas |= deltas

    def note_delta(self, delta: float) -> None:
        """Note a δ in (0, 1) at which this ledger is to be stated, and keep it with the ledger."""
        checked = checks.number(checks.TARGET_DELTA, delta)
        with self._lock:
            self._deltas.add(checked)

    # Reading

    @property
    def budget(self) -> Budget | None:
        """The budget that watches over this ledger."""
        return self._budget

    @property
    def deltas(self) -> tuple[float, ...]:
        """The δ at which to state what was spent: the budget's, then those noted, least first.

        ``accountant show`` and ``report`` answer at them; nothing else is derived from them.
        """
        with self._lock:
            own = () if self._budget is None else (self._budget.delta,)
            return (*own, *sorted(self._deltas.difference(own)))

    @property
    def history(self) -> tuple[Entry, ...]:
        """Every record in order, equal neighbours joined."""
        with self._lock:
            return self._history.entries

    @property
    def counts(self) -> tuple[tuple[Mechanism, int], ...]:
        """Distinct mechanisms with their total counts, in order of first appearance."""
        with self._lock:
            return self._history.counts

    @property
    def relation(self) -> NeighbouringRelation | None:
        """The neighbouring relation of all records; None before the first."""
        with self._lock:
            first = self._history.first
            return None if first is None else first.relation

    def __len__(self) -> int:
        """Return the number of releases."""
        return sum(count for _, count in self.counts)

    def __repr__(self) -> str:
        watched = "" if self._budget is None else f", budget={self._budget!r}"
        return f"<Accountant of {len(self)} releases of {len(self.counts)} mechanisms{watched}>"

    @to_nearest
    def remaining(self, budget: Budget | None = None) -> Remaining:
        """Return what ``budget``, by default the ledger's own, has left after these records.

        Raises
        ------
        UnsupportedError
            The budget's filter cannot charge a record.
        """
        with self._lock:
            return self._metered(budget, "remaining").remaining()

    @to_nearest
    def affordable(self, mechanism: Mechanism, budget: Budget | None = None) -> int:
        """Return how many more releases of ``mechanism`` the budget allows, at most 2**53 in all.

        So many are admitted now, at once or one by one, and one more is not; but for
        ``filter="non-adaptive"`` it is a lower bound, as brackets of a composition have a width.
        """
        with self._lock:
            self._history.check_relation((entry(mechanism, 1),))
            allowed = self._metered(budget, "affordable").affordable(mechanism)
            return min(allowed, self._history.remaining_count(mechanism))

    # Keeping

    def to_json(self) -> str:
        """Return the whole ledger as JSON text (docs/ledger.md describes the schema)."""
        with self._lock:
            return self._encoded(None)

    @classmethod
    def from_json(cls, text: str) -> Accountant:
        """Build a ledger from :meth:`to_json`'s text.

        Raises
        ------
        LedgerError
            The text is damaged, truncated, from a newer version, or holds anything unknown.
        """
        entries, budget, deltas = document.decode(text)
        ledger = cls(budget)
        ledger._deltas.update(deltas)
        try:
            ledger._restore(entries)
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
    def load(cls, path: str | os.PathLike[str]) -> Accountant:
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
    ) -> Iterator[Accountant]:
        """Load, let the caller charge, and save, with nobody in between.

        Processes that share a ledger file spend one budget through this: each sees the records of
        all others. Make the releases *after* the block, when their records are on the disk.

        Parameters
        ----------
        path : path-like
            Created when it does not exist.
        budget : Budget, optional
            The budget of a new ledger; that of an old one must be equal, or None.
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
            if budget is not None and ledger.budget != budget:
                raise DomainError(f"{where} has the budget {ledger.budget!r}, not {budget!r}")
            before = len(ledger), ledger.deltas
            try:
                yield ledger
            finally:
                with ledger._lock:
                    ledger._ended = True
                    changed = (len(ledger), ledger.deltas) != before or not where.exists()
                    if changed and ledger._process == os.getpid():  # a fork leaves the block, too
                        ledger._write(where)

    def _refuse_forks(self) -> None:
        """Refuse in a forked process: it has a copy of the budget, and both would spend it."""
        if self._budget is not None and os.getpid() != self._process:
            raise UnsupportedError(
                "this Accountant was copied by a fork, and its budget with it. Let one process"
                " charge, or share a file through Accountant.transaction"
            )

    @to_nearest
    def _append(self, new: Sequence[Entry], *, record: bool = True) -> None:
        """Record all or nothing, or only ask whether all would be."""
        self._refuse_forks()  # before the lock, which a fork may have copied while it was held
        with self._lock:
            if self._ended or self._busy:
                raise UnsupportedError(_ENDED if self._ended else _BUSY)
            self._busy = True
            try:
                self._history.check_relation(new)
                tally = self._history.tally(new)
                charges = [(item.mechanism, item.count) for item in new]
                watch = self._meter
                if watch is not None and self._budget is not None and not watch.admits(charges):
                    raise BudgetExceeded(filters.refusal(charges, watch, self._budget))
                if not record:
                    return
                # Nothing below can fail for a reason of the caller's.
                if watch is not None:
                    watch.add(charges)
                self._history.extend(new, tally)
            finally:
                self._busy = False

    def _restore(self, entries: Sequence[Entry]) -> None:
        """Take up records that happened, within the budget or not."""
        self._history.check_relation(entries)
        tally = self._history.tally(entries)
        if self._meter is not None:
            self._meter.add(list(tally.items()))
        self._history.extend(entries, tally)

    def _metered(self, budget: Budget | None, question: str) -> Meter:
        """Return this ledger's meter, or that of another budget with all records added."""
        if budget is None:
            if self._meter is None:
                raise DomainError(f"{question} needs a budget; this ledger has none of its own")
            return self._meter
        checks.instance("budget", budget, Budget, "a Budget")
        fresh = filters.meter(budget)
        fresh.add(self._history.counts)
        return fresh

    def _write(self, where: Path) -> None:
        text = self._encoded(secrets.token_hex(16))
        storage.write(where, text, self._versions.setdefault(where, set()))

    def _encoded(self, revision: str | None) -> str:
        deltas = tuple(sorted(self._deltas))
        return document.encode(self._history.entries, self._budget, revision, deltas)
