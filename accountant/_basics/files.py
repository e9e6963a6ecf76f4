"""What files need of the operating system: locks between processes, modes, and renames that last.

POSIX and Windows differ in all three; what differs stands here. On Windows a new file has the
permissions of its folder, locks are on the first byte, and a rename waits for the disk.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from accountant.errors import AccountantError, DomainError, UnsupportedError

# Between two attempts to lock, in seconds, where the system cannot wait itself.
PAUSE = 0.002
# Open for the life of the process, by device and inode: closing any descriptor of a file gives up
# the POSIX locks that other parts of this process have on it.
_KEPT: dict[tuple[int, int], int] = {}
# struct flock of 64-bit Linux: type, whence, start, length, process.
_FLOCK = "hhqqi4x"
# MoveFileExW: take the place of what is there; return when the disk has it.
REPLACE, WAIT = 1, 8
# Of a file that is read whole, packed or not: a GiB of text or of numbers.
MOST_BYTES = 1 << 30


def lock(descriptor: int, *, wait: bool = True) -> bool:
    """Take the exclusive lock of an open file; return False, without ``wait``, where it is held.

    It excludes other processes, and other descriptors of this one. The system gives it up when the
    descriptor is closed or its process ends. Raises UnsupportedError without file locks.
    """
    if sys.platform == "win32":
        return _lock_byte(descriptor, wait)
    fcntl = _locking("fcntl")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def unlock(descriptor: int) -> None:
    """Give up the lock of an open file, if it is held."""
    if sys.platform == "win32":
        msvcrt = _locking("msvcrt")
        os.lseek(descriptor, 0, os.SEEK_SET)
        with contextlib.suppress(PermissionError):  # nobody held it
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
        return
    fcntl = _locking("fcntl")
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def opened(path: Path) -> int:
    """Open a file to lock it, a new one for its owner only; a link raises OSError (ELOOP)."""
    return os.open(path, os.O_RDWR | os.O_CREAT | _flags("NOFOLLOW", "NONBLOCK"), 0o600)


def existing(path: Path) -> int:
    """Open a file that is there to lock it, and not to write to it; -1 without one.

    Nor is one that may not be written opened, which some network file systems refuse to lock; nor
    any on Windows, whose locks keep others from reading.
    """
    if sys.platform == "win32":
        return -1
    try:
        return os.open(path, os.O_RDWR | _flags("NOFOLLOW", "NONBLOCK"))
    except (FileNotFoundError, PermissionError):
        return -1


def is_at(descriptor: int, path: Path) -> bool:
    """Tell whether an open file is still the one at ``path``; Windows removes no open file."""
    if sys.platform == "win32":
        return True
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))


def new(path: Path) -> int:
    """Open a file that is not there yet to write to it, for its owner only."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _flags(), 0o600)


def created(path: Path) -> None:
    """Make an empty file for its owner only, where there is none; locks on it are kept."""
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _flags(), 0o600)
        if sys.platform == "win32":
            os.close(descriptor)
        else:
            _KEPT[_identity(os.fstat(descriptor))] = descriptor


def is_locked(path: Path, start: int, length: int) -> bool:
    """Tell whether anybody, this process too, has a POSIX lock on bytes of a file.

    False where the system cannot be asked, which only Linux can.
    """
    if sys.platform != "linux" or struct.calcsize("l") != 8:
        return False
    fcntl = _locking("fcntl")
    found = path.stat()
    if _identity(found) not in _KEPT:
        _KEPT[_identity(found)] = os.open(path, os.O_RDONLY | _flags())
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
    answer = fcntl.fcntl(_KEPT[_identity(found)], fcntl.F_OFD_GETLK, asked)
    return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)


def is_mount_point(path: Path) -> bool:
    """Tell whether a file is mounted by itself, so that it has another name elsewhere.

    The numbers of mounts come from /proc; False on systems without it, which mount directories
    only. Nothing is opened in a way that would give up a lock when it is closed.
    """
    if sys.platform != "linux":
        return False
    try:
        return _mount(path) != _mount(path.parent)
    except OSError:
        return False


def keep_mode(target: int | str, like: os.stat_result) -> None:
    """Give a file of one's own, or a descriptor, the group and mode of another.

    PermissionError where the mode is for a group that one is not in. Windows has neither.
    """
    if sys.platform == "win32":
        return
    now = os.stat(target)
    if (now.st_uid, now.st_gid) != (like.st_uid, like.st_gid):
        try:
            os.chown(target, like.st_uid if os.geteuid() == 0 else -1, like.st_gid)
        except PermissionError:
            if like.st_mode & 0o070:
                raise
    if (now.st_mode ^ like.st_mode) & 0o777:
        os.chmod(target, like.st_mode & 0o777)


def replace(temporary: Path, path: Path) -> None:
    """Rename a file to the place of another, in one step for whoever looks."""
    if sys.platform == "win32":
        ctypes = _locking("ctypes")
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        if not kernel.MoveFileExW(str(temporary), str(path), REPLACE | WAIT):
            raise ctypes.WinError(ctypes.get_last_error())
        return
    temporary.replace(path)


def sync_directory(directory: Path) -> None:
    """Make a rename in ``directory`` last: until then a loss of power may undo it.

    On Windows the rename itself has waited.
    """
    if sys.platform == "win32":
        return
    descriptor = os.open(directory, os.O_RDONLY | _flags("DIRECTORY"))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flags(*names: str) -> int:
    """Return the flags of that name that this system has; bytes as they are, no heirs."""
    flags = 0
    for name in (*names, "CLOEXEC", "NOINHERIT", "BINARY"):
        flags |= getattr(os, f"O_{name}", 0)
    return flags


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _mount(path: Path) -> str:
    """Return the number of the mount that a path leads to."""
    descriptor = os.open(path, _flags("PATH", "NOFOLLOW"))
    try:
        lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
        return next(line for line in lines if line.startswith("mnt_id:"))
    finally:
        os.close(descriptor)


def _lock_byte(descriptor: int, wait: bool) -> bool:
    msvcrt = _locking("msvcrt")
    while True:
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:  # somebody holds it
            if not wait:
                return False
            time.sleep(PAUSE)
        else:
            return True


def _locking(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise UnsupportedError("file locks are missing here; use a store in PostgreSQL") from None


def stream(path: Path) -> BinaryIO:
    """Open a file to read its bytes; DomainError, without waiting, where it is no regular file.

    A pipe may never have a writer, and a device has no end.
    """
    descriptor = os.open(path, os.O_RDONLY | _flags("NONBLOCK", "NOCTTY"))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DomainError(f"{path} must be a regular file; it is a pipe, a device or a folder")
    return os.fdopen(descriptor, "rb")


def content(
    path: Path, limit: int = MOST_BYTES, error: type[AccountantError] = DomainError
) -> bytes:
    """Return the bytes of a regular file; raise ``error`` where it has more than ``limit``."""
    with stream(path) as file:
        small = os.fstat(file.fileno()).st_size <= limit
        # One more, because the file may grow, and the system's own files have no size.
        found = file.read(limit + 1) if small else b""
    if not small or len(found) > limit:
        raise error(f"{path} is too large: it has more than {limit} bytes")
    return found


def require_unpacked(
    archive: BinaryIO, path: Path, limit: int, error: type[AccountantError] = DomainError
) -> None:
    """Raise ``error`` where a zip would have more than ``limit`` bytes unpacked; unpack nothing.

    The sizes are those of its directory, and zipfile unpacks no more of a file than it says there.
    """
    import zipfile

    with zipfile.ZipFile(archive) as packed:
        size = sum(member.file_size for member in packed.infolist())
    archive.seek(0)
    if size > limit:
        raise error(
            f"{path} is too large: its arrays have {size} bytes unpacked, and at most {limit} are"
            " read. Keep fewer records or columns"
        )


class ModuleLock:
    """For what a module keeps as long as the process lives; used by ``with``."""

    def __init__(self) -> None:
        self._fresh()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._fresh)

    def _fresh(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
