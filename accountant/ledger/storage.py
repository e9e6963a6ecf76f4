"""One file, whole at every instant: lock, compare, write aside, sync, rename, sync.

A crash at any point leaves the old file or the new one, because ``rename`` is atomic and happens
only after the new file's contents have reached the disk. A writer that would overwrite a file it
has not read is refused, so that no record is lost.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from accountant.errors import DomainError, LedgerConflict, LedgerError, UnsupportedError

__all__ = ["Versions", "digest", "locked", "read", "resolve", "sync_directory", "write"]

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
    with path.open("rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise LedgerError(f"{path} is too large to be a ledger")
    try:
        return content.decode("utf-8"), digest(content)
    except UnicodeDecodeError:
        raise LedgerError(f"{path} is damaged: it is no UTF-8 text") from None


@contextlib.contextmanager
def locked(path: Path, timeout: float) -> Iterator[None]:
    """Hold the exclusive lock of ``path``, shared by all processes and threads.

    The lock is on a file beside it that is never removed (removing it would let two processes hold
    two locks). The kernel gives it up when its holder dies.
    """
    try:
        import fcntl
    except ImportError:
        raise UnsupportedError(
            "ledger files need POSIX file locks, which this system lacks; keep to_json's text"
        ) from None
    descriptor = os.open(_beside(path, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not time.monotonic() < deadline:
                    raise LedgerConflict(
                        f"{path} was in use by someone else for {timeout:g} s; nothing was written"
                    ) from None
                time.sleep(0.002)
        yield
    finally:
        os.close(descriptor)


def write(path: Path, text: str, versions: Versions) -> None:
    """Replace ``path`` by ``text``, under its lock, if what it holds is one of ``versions``.

    The new digest joins ``versions`` before the rename: should syncing the directory fail after
    it, either content may be found, and both are this ledger's own.
    """
    content = text.encode("utf-8")
    if len(content) > MAX_BYTES:
        raise LedgerError(
            f"{path} would have {len(content)} bytes, and no ledger of more than {MAX_BYTES} is"
            " read again; nothing was written. Shorten labels, or begin another file"
        )
    try:
        current = digest(path.read_bytes())
    except FileNotFoundError:
        current = None
    if current is not None and current not in versions:
        raise LedgerConflict(
            f"{path} holds records this ledger has not read; saving would lose them, so nothing was"
            " written. Load it and compose again, or merge this ledger into it"
        )
    temporary = _beside(path, "tmp")
    try:
        _write_synced(temporary, content, path)
        versions.add(digest(content))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
    versions.intersection_update({digest(content)})


def _write_synced(temporary: Path, content: bytes, original: Path) -> None:
    # Under the lock nobody else writes here: what is found was left by a crash.
    temporary.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o666)
    with open(descriptor, "wb") as stream:
        with contextlib.suppress(FileNotFoundError):
            os.fchmod(descriptor, original.stat().st_mode & 0o777)
        stream.write(content)
        stream.flush()
        os.fsync(descriptor)


def sync_directory(directory: Path) -> None:
    """Make a rename in ``directory`` last: until then a loss of power may undo it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f".{path.name}.{ending}")
