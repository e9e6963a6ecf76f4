"""Ledgers as durable files that processes share.

Lock, compare, write aside, synchronise, rename, synchronise: a crash at any point leaves the old
file or the new one, because ``rename`` is atomic and happens only after the new file's contents
have reached the disk. A writer that would overwrite a file it has not read is refused, so that no
record is lost. Labels and spending are not for everybody: new files are readable by their owner
only, and a file that is there keeps its mode.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self, TypeAlias

from accountant import checks
from accountant._basics import files
from accountant.environment import to_nearest
from accountant.errors import AccountantError, DomainError, LedgerConflict, LedgerError
from accountant.ledger import document
from accountant.ledger.budget import Budget
from accountant.ledger.history import Entry, History
from accountant.ledger.plans import Watch

# The digests of the contents this ledger may replace.
Versions: TypeAlias = set[str]

# A ledger of a million different records has some hundred megabytes; a device has no end.
MAX_BYTES = 1 << 30


def resolve(path: str | os.PathLike[str]) -> Path:
    """Return the file meant, links followed: replacing a link would leave its target behind."""
    if not isinstance(path, (str, os.PathLike)):
        raise DomainError(f"path must be a str or a path; got the {type(path).__name__}")
    return Path(os.path.realpath(path))


def digest(content: bytes) -> str:
    """Return a digest of a file's bytes."""
    return hashlib.sha256(content).hexdigest()


def read(path: Path) -> tuple[str, str]:
    """Return a file's text and digest."""
    content = files.content(path, MAX_BYTES, LedgerError)
    try:
        return content.decode("utf-8"), digest(content)
    except UnicodeDecodeError:
        raise LedgerError(f"{path} is damaged: it is no UTF-8 text") from None


@contextlib.contextmanager
def locked(path: Path, timeout: float) -> Iterator[None]:
    """Hold the exclusive lock of ``path``, shared by all processes and threads.

    The lock is on a file beside it that is never removed (removing it would let two processes hold
    two locks; where somebody else did, who waits begins again with the new one), and then on the
    ledger itself, if it is there and can still be read then: who holds that one writes alone,
    whatever became of the other. The kernel gives both up when their holder dies.
    """
    like = _require_regular(path)

    def lock_of(place: Path) -> int:
        descriptor = open_lock(place)
        if like is not None and hasattr(os, "geteuid"):  # who shares the ledger shares its lock
            with contextlib.suppress(PermissionError):
                files.keep_mode(descriptor, like)
        return descriptor

    deadline = time.monotonic() + timeout
    busy = LedgerConflict(f"{path} was in use for {timeout:g} s; nothing was written")
    with _held(_beside(path, "lock"), lock_of, deadline, busy), contextlib.ExitStack() as second:
        second.enter_context(_held(path, files.existing, deadline, busy))
        if not _is_readable(path):  # over SMB a lock keeps all other descriptors from reading
            second.close()
        yield


def _is_readable(path: Path) -> bool:
    """Tell whether a file, if it is there, can be read by who opens it now."""
    try:
        with path.open("rb", buffering=0) as stream:
            stream.read(1)
    except FileNotFoundError:
        return True
    except PermissionError:
        return False
    return True


@contextlib.contextmanager
def _held(
    place: Path, opened: Callable[[Path], int], deadline: float, busy: LedgerConflict
) -> Iterator[None]:
    """Hold the lock of the file at ``place``, if there is one."""
    descriptor, holder = _taken(place, opened, deadline, busy), os.getpid()
    try:
        yield
    finally:
        if descriptor >= 0:
            # Else it is the parent's; a child's copy would keep it locked.
            if os.getpid() == holder:
                files.unlock(descriptor)
            os.close(descriptor)


def _taken(
    place: Path, opened: Callable[[Path], int], deadline: float, busy: LedgerConflict
) -> int:
    """Wait for the lock of the file at ``place``; return the open file, -1 without one."""
    while (descriptor := opened(place)) >= 0:
        try:
            while not files.lock(descriptor, wait=False):
                if not time.monotonic() < deadline:
                    raise busy
                time.sleep(files.PAUSE)
            if files.is_at(descriptor, place):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    return -1


def open_lock(lock: Path) -> int:
    """Open the lock file, a new one for its owner only; never what a link there points to."""
    try:
        descriptor = files.opened(lock)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise _not_regular(lock, "a lock", "a link") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_regular(lock, "a lock", "something else")
    return descriptor


def _require_regular(path: Path) -> os.stat_result | None:
    """Refuse to replace a device, which may have no end, a pipe, a directory, or one of two names.

    Return what is there, if anything.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise _not_regular(path, "path", "something else")
    require_one_name(path)
    return found


def require_one_name(path: Path) -> None:
    """Refuse a file with two names: each would get a lock and a log of its own, and be spent.

    Raises
    ------
    DomainError
        It has a hard link, or is mounted by itself.
    """
    what = ""
    if path.stat().st_nlink > 1:
        what = "has a second name, a hard link"
    elif files.is_mount_point(path):
        what = "is a mount point, and so has another name elsewhere"
    if what:
        raise DomainError(f"{path} {what}. Mount the directory that it lies in, or use links")


def _not_regular(path: Path, what: str, found: str) -> DomainError:
    return DomainError(f"{what} must be a regular file or not there yet; {path} is {found}")


def write(path: Path, text: str, versions: Versions) -> None:
    """Replace ``path`` by ``text``, under its lock, if what it holds is one of ``versions``.

    The new digest joins ``versions`` before the rename: should syncing the directory fail after
    it, either content may be found, and both are this ledger's own.
    """
    content = text.encode("utf-8")
    if len(content) > MAX_BYTES:
        raise LedgerError(f"{path} must have at most {MAX_BYTES} bytes; got {len(content)}")
    if not _replaceable(path, versions):
        raise LedgerConflict(f"{path} holds unread records. Load it, or merge this into it")
    temporary = _beside(path, "tmp")
    try:
        _write_synced(temporary, content, path)
        versions.add(digest(content))
        files.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    files.sync_directory(path.parent)
    versions.intersection_update({digest(content)})


def _replaceable(path: Path, versions: Versions) -> bool:
    """Tell whether nothing is there, or what is one of ``versions``; no larger file is."""
    try:
        return digest(files.content(path, MAX_BYTES, LedgerError)) in versions
    except FileNotFoundError:
        return True
    except LedgerError:
        return False


def _write_synced(temporary: Path, content: bytes, original: Path) -> None:
    # Under the lock nobody else writes here: what is found was left by a crash.
    temporary.unlink(missing_ok=True)
    descriptor = files.new(temporary)
    with open(descriptor, "wb") as stream:
        with contextlib.suppress(FileNotFoundError):
            files.keep_mode(descriptor, original.stat())
        stream.write(content)
        stream.flush()
        os.fsync(descriptor)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f".{path.name}.{ending}")


class Kept:
    """The state of a ledger, and what :class:`~accountant.ledger.Accountant` does with files."""

    @to_nearest
    def __init__(self, budget: Budget | None = None) -> None:
        checks.instance("budget", budget, (Budget, type(None)), "a Budget or None")
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._ended = self._busy = False
        self._budget = budget
        self._watch: Watch | None = None if budget is None else Watch(budget)
        self._planned: tuple[Entry, ...] = ()
        self._history = History()
        self._deltas: set[float] = set()
        # For each file: the digests of the contents this ledger knows, hence may replace.
        self._versions: dict[Path, Versions] = {}

    def _restore(self, entries: Sequence[Entry], planned: Sequence[Entry] = ()) -> None:
        """Take up what was planned and records that happened, within the budget or not."""
        self._history.check_relation((*planned, *entries))
        tally = self._history.tally(entries)
        if self._watch is not None:
            self._watch.plan([(item.mechanism, item.count) for item in planned], ask=False)
            self._watch.restore(list(tally.items()))
        self._planned = tuple(planned)
        self._history.extend(entries, tally)

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
        where = resolve(path)
        with self._lock, locked(where, timeout):
            self._write(where)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read the ledger at ``path``; LedgerError if it is not whole and known."""
        where = resolve(path)
        text, digest = read(where)
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
        where = resolve(path)
        with locked(where, timeout):
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
        write(where, text, self._versions.setdefault(where, set()))

    def _encoded(self, revision: str | None) -> str:
        deltas = tuple(sorted(self._deltas))
        entries, planned = self._history.entries, self._planned
        return document.encode(entries, self._budget, revision, deltas, planned)
