"""Locks, modes and renames; the branch for Windows with its system calls replaced."""

import ctypes
import errno
import fcntl
import multiprocessing
import os
import stat
import sys
import threading
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import accountant as ac
from accountant._basics import files


@pytest.fixture(params=["here", "windows"])
def system(request, monkeypatch):
    """The system at hand; then Windows, whose locks on a byte are made of those at hand."""
    if request.param == "windows":

        def locking(descriptor, mode, count):
            assert count == 1
            assert os.lseek(descriptor, 0, os.SEEK_CUR) == 0
            if mode == 0:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
                return
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise PermissionError(errno.EACCES, "held") from None

        class Kernel:
            def MoveFileExW(self, old, new, flags):  # noqa: N802
                assert flags == 1 | 8  # replace what is there; return when the disk has it
                try:
                    os.replace(old, new)
                except OSError:
                    return 0
                return 1

        fake = SimpleNamespace(LK_NBLCK=2, LK_UNLCK=0, locking=locking)
        monkeypatch.setitem(sys.modules, "msvcrt", fake)
        monkeypatch.setattr(ctypes, "WinDLL", lambda *_, **__: Kernel(), raising=False)
        monkeypatch.setattr(ctypes, "WinError", lambda _: OSError("no"), raising=False)
        monkeypatch.setattr(ctypes, "get_last_error", lambda: 5, raising=False)
        monkeypatch.setattr(sys, "platform", "win32")
        monkeypatch.setattr(os, "fchmod", None)
    return request.param


def test_a_lock_excludes_other_descriptors_until_it_is_given_up(system, tmp_path):
    first, second = (files.opened(tmp_path / "lock") for _ in range(2))
    assert files.lock(first)
    assert not files.lock(second, wait=False)
    files.unlock(first)
    assert files.lock(second, wait=False)
    assert not files.lock(first, wait=False)
    os.close(second)  # gives it up too
    assert files.lock(first, wait=False)
    files.unlock(first)
    files.unlock(first)
    os.close(first)


def test_waiting_ends_when_the_lock_is_free(system, tmp_path):
    first, second = (files.opened(tmp_path / "lock") for _ in range(2))
    files.lock(first)
    threading.Timer(0.05, files.unlock, (first,)).start()
    began = time.monotonic()
    assert files.lock(second)
    assert 0.02 < time.monotonic() - began < 20.0
    os.close(first)
    os.close(second)


def hold(path, held, end):
    assert files.lock(files.opened(path))
    held.set()
    end.wait(60)


def test_a_dead_process_holds_no_lock(tmp_path):
    context = multiprocessing.get_context("fork")
    held, end = context.Event(), context.Event()
    process = context.Process(target=hold, args=(tmp_path / "lock", held, end))
    process.start()
    held.wait(60)
    descriptor = files.opened(tmp_path / "lock")
    assert not files.lock(descriptor, wait=False)
    process.kill()
    process.join()
    assert files.lock(descriptor, wait=False)
    os.close(descriptor)


def test_a_file_is_opened_only_if_it_is_there(tmp_path):
    assert files.existing(tmp_path / "nothing") == -1
    path = tmp_path / "file"
    path.write_text("text")
    descriptor = files.existing(path)
    assert files.lock(descriptor, wait=False)
    os.close(descriptor)
    assert path.read_text() == "text"


def test_an_open_file_is_no_longer_at_a_path_that_lost_it(tmp_path):
    path = tmp_path / "lock"
    descriptor = files.opened(path)
    assert files.is_at(descriptor, path)
    path.rename(tmp_path / "elsewhere")
    assert not files.is_at(descriptor, path)
    os.close(files.opened(path))
    assert not files.is_at(descriptor, path)
    os.close(descriptor)


def test_a_new_file_takes_the_place_of_another(system, tmp_path):
    path, temporary = tmp_path / "file", tmp_path / "new"
    path.write_text("old")
    path.chmod(0o640)
    descriptor = files.new(temporary)
    files.keep_mode(descriptor, path.stat())
    os.write(descriptor, b"one\ntwo")
    os.close(descriptor)
    with pytest.raises(FileExistsError):
        files.new(temporary)
    mode = 0o640 if system == "here" else 0o600
    assert stat.S_IMODE(temporary.stat().st_mode) == mode
    files.replace(temporary, path)
    files.sync_directory(tmp_path)
    assert path.read_bytes() == b"one\ntwo"
    with pytest.raises(OSError):  # noqa: PT011
        files.replace(temporary, path)


def test_a_ledger_is_saved_and_read(system, tmp_path):
    path = tmp_path / "ledger.json"
    ledger = ac.Accountant()
    for _ in range(2):
        ledger.step(noise_multiplier=1.1, sampling_probability=0.01)
        ledger.save(path)
    assert ac.Accountant.load(path).to_json() == ledger.to_json()


def test_a_system_without_locks_says_so(monkeypatch, tmp_path):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(files, "import_module", missing)
    descriptor = files.opened(tmp_path / "lock")
    with pytest.raises(ac.UnsupportedError, match="file locks"):
        files.lock(descriptor)
    os.close(descriptor)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, kind):
    path = tmp_path / kind
    if kind == "device":
        path = Path("/dev/zero")
    else:
        os.mkfifo(path) if kind == "pipe" else path.mkdir()
    with pytest.raises(ac.DomainError, match="must be a regular file"):
        files.content(path)


def test_a_file_is_read_up_to_its_limit(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"a\r\nb")
    assert files.content(path, 4) == b"a\r\nb"
    with pytest.raises(ac.LedgerError, match="more than 3 bytes"):
        files.content(path, 3, ac.LedgerError)


def test_a_file_that_states_no_size_is_read_up_to_its_limit():
    # The system's own files are regular and have the size 0.
    path = Path("/proc/self/maps")
    if not path.exists():
        pytest.skip("no /proc here")
    with pytest.raises(ac.DomainError, match="too large"):
        files.content(path, 10)


def test_a_zip_is_measured_before_it_is_unpacked(tmp_path):
    path = tmp_path / "packed.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in "ab":
            packed.writestr(name, bytes(10**6))
    assert path.stat().st_size < 10_000
    with files.stream(path) as stream:
        files.require_unpacked(stream, path, 2 * 10**6)
        assert stream.tell() == 0
        with pytest.raises(ac.DomainError, match="2000000 bytes unpacked, and at most 1999999"):
            files.require_unpacked(stream, path, 2 * 10**6 - 1)
