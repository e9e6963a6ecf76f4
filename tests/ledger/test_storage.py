"""Ledger files on one disk: whole after every failure, never overwritten unread."""

import contextlib
import errno
import os
import stat
import tempfile
import threading
from pathlib import Path

import pytest

from accountant._basics import files
from accountant.errors import BudgetExceeded, DomainError, LedgerConflict, LedgerError
from accountant.ledger import Accountant, Budget, register, storage
from support.elsewhere import forked, mounted
from support.toy_mechanisms import Noise, ledger_of

register(Noise)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.json"


def test_a_saved_file_is_not_overwritten_unread(path):
    ledger_of(1).save(path)
    before = path.read_bytes()
    with pytest.raises(LedgerConflict, match="merge"):
        ledger_of(2).save(path)
    assert path.read_bytes() == before


def test_two_who_loaded_the_same_cannot_both_save(path):
    ledger_of(1).save(path)
    first, second = Accountant.load(path), Accountant.load(path)
    for ledger in (first, second):
        # The same record on purpose: their contents are equal, and still they are two releases.
        ledger.compose(Noise(1.0), label="part 0")
    first.save(path)
    first.compose(Noise(9.0))
    first.save(path)
    with pytest.raises(LedgerConflict):
        second.save(path)
    assert len(Accountant.load(path)) == 3


def test_equal_contents_of_two_writers_are_told_apart(path):
    # Writer two fails between writing aside and renaming, while writer one records the same.
    ledger_of(1).save(path)
    first, second = Accountant.load(path), Accountant.load(path)
    first.compose(Noise(1.0), label="part 0")
    second.compose(Noise(1.0), label="part 0")
    second._versions[storage.resolve(path)].add(storage.digest(second.to_json().encode()))
    first.save(path)
    with pytest.raises(LedgerConflict):
        second.save(path)


def test_links_are_followed(tmp_path, path):
    ledger_of(1).save(path)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    ledger = Accountant.load(link)
    ledger.compose(Noise(2.0))
    ledger.save(link)
    assert link.is_symlink()
    assert len(Accountant.load(path)) == 2


def test_the_files_mode_is_kept(path):
    ledger = ledger_of(1)
    ledger.save(path)
    path.chmod(0o640)
    ledger.compose(Noise(3.0))
    ledger.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("call", ["fsync", "replace", "write"])
def test_a_failing_disk_leaves_the_old_file(path, monkeypatch, call):
    ledger = ledger_of(1)
    ledger.save(path)
    before = path.read_bytes()
    ledger.compose(Noise(3.0))

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if call == "fsync":
            patch.setattr(os, "fsync", full)
        elif call == "replace":
            patch.setattr("pathlib.Path.replace", full)
        else:
            patch.setattr(storage, "_write_synced", full)
        with pytest.raises(OSError, match="space"):
            ledger.save(path)
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == [".ledger.json.lock", "ledger.json"]
    ledger.save(path)
    assert len(Accountant.load(path)) == 2


def test_a_failing_directory_sync_may_be_tried_again(path, monkeypatch):
    ledger = ledger_of(1)
    ledger.save(path)
    ledger.compose(Noise(3.0))

    def broken(_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(storage.files, "sync_directory", broken)
        with pytest.raises(OSError, match="Input"):
            ledger.save(path)
    ledger.save(path)
    assert len(Accountant.load(path)) == 2


def test_the_order_of_system_calls(path, monkeypatch):
    # Durable: the contents reach the disk, then the name changes, then the name does.
    calls = []
    real_fsync, real_replace = os.fsync, type(path).replace

    def fsync(descriptor):
        calls.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        real_fsync(descriptor)

    def replace(self, target):
        calls.append("rename")
        return real_replace(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(type(path), "replace", replace)
    ledger_of(1).save(path)
    assert calls == ["file", "rename", "directory"]


def test_bytes_that_are_no_text(path):
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(LedgerError, match="UTF-8"):
        Accountant.load(path)


@pytest.fixture
def open_umask():
    old = os.umask(0)
    yield
    os.umask(old)


@pytest.mark.usefixtures("open_umask")
def test_new_files_are_their_owners_only(tmp_path):
    saved, spent = tmp_path / "saved.json", tmp_path / "spent.json"
    ledger_of(1).save(saved)
    charge(spent)
    assert len(list(tmp_path.iterdir())) == 4
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


@pytest.mark.parametrize("there", [True, False])
def test_a_lock_that_is_a_link_is_refused(tmp_path, path, there):
    other = tmp_path / "other"
    if there:
        other.write_text("kept")
    (tmp_path / ".ledger.json.lock").symlink_to(other)
    with pytest.raises(DomainError, match=r"\.ledger\.json\.lock is a link"):
        ledger_of(1).save(path)
    assert not path.exists()
    assert other.exists() == there


@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_a_lock_that_is_no_file_is_refused(tmp_path, path, kind):
    lock = tmp_path / ".ledger.json.lock"
    os.mkfifo(lock) if kind == "fifo" else lock.mkdir()
    with pytest.raises((DomainError, IsADirectoryError)):
        ledger_of(1).save(path)
    assert not path.exists()


def charge(target):
    with Accountant.transaction(target) as ledger:
        ledger.compose(Noise(2.0))


@pytest.mark.parametrize("how", ["save", "transaction"])
@pytest.mark.parametrize("kind", ["device", "fifo", "directory"])
def test_what_is_no_file_is_neither_read_nor_replaced(tmp_path, kind, how):
    target = tmp_path / "target"
    if kind == "device":
        target.symlink_to("/dev/zero")
    else:
        os.mkfifo(target) if kind == "fifo" else target.mkdir()
    write = ledger_of(1).save if how == "save" else charge
    with pytest.raises(DomainError, match="path must be a regular file"):
        write(target)
    assert [file.name for file in tmp_path.iterdir()] == ["target"]


def test_a_huge_file_is_not_read_before_it_is_refused(path, monkeypatch):
    ledger = ledger_of(1)
    ledger.save(path)
    monkeypatch.setattr(storage, "MAX_BYTES", path.stat().st_size)
    with path.open("a") as stream:
        stream.write(" " * 10**6)
    with pytest.raises(LedgerConflict):
        ledger.save(path)


def test_who_waits_for_a_lock_that_is_removed_waits_for_the_new_one(path):
    lock = path.with_name(".ledger.json.lock")
    inside, leave = threading.Event(), threading.Event()

    def wait():
        with storage.locked(path, 60.0):
            inside.set()
            leave.wait(60.0)

    waiting = threading.Thread(target=wait)
    with storage.locked(path, 60.0):
        waiting.start()
        assert not inside.wait(0.05)
        lock.unlink()
    try:
        assert inside.wait(60.0)
        with pytest.raises(LedgerConflict, match="in use"), storage.locked(path, 0.05):
            pass
    finally:
        leave.set()
        waiting.join()


@pytest.mark.skipif(os.name == "nt", reason="Windows removes no open file")
def test_a_lock_removed_under_its_holder_lets_nobody_else_in(path):
    Accountant(Budget(3.0, 1e-5)).save(path)
    lock = path.with_name(".ledger.json.lock")
    inside = threading.Event()

    def charge():
        with Accountant.transaction(path, timeout=60.0) as other:
            inside.set()
            other.compose(Noise(60.0))

    waiting = threading.Thread(target=charge)
    with Accountant.transaction(path) as ledger:
        lock.unlink()
        ledger.compose(Noise(50.0))
        with pytest.raises(LedgerConflict, match="in use"), storage.locked(path, 0.05):
            pass
        waiting.start()
        assert not inside.wait(0.05)
    waiting.join()
    assert len(Accountant.load(path)) == 2


@pytest.mark.skipif(os.name == "nt", reason="Windows locks no ledger itself")
def test_a_ledger_is_charged_where_a_locked_file_cannot_be_read(path, monkeypatch):
    """So it is over SMB: only the descriptor that holds the lock may read."""
    Accountant(Budget(3.0, 1e-5)).save(path)
    lock, unlock, opened = files.lock, files.unlock, Path.open
    held = set()

    def locking(descriptor, **how):
        taken = lock(descriptor, **how)
        if taken:
            held.add(os.fstat(descriptor).st_ino)
        return taken

    def unlocking(descriptor):
        held.discard(os.fstat(descriptor).st_ino)
        unlock(descriptor)

    def opening(self, *how, **options):
        if self.exists() and self.stat().st_ino in held:
            raise PermissionError(errno.EACCES, "locked", str(self))
        return opened(self, *how, **options)

    monkeypatch.setattr(files, "lock", locking)
    monkeypatch.setattr(files, "unlock", unlocking)
    monkeypatch.setattr(Path, "open", opening)
    with Accountant.transaction(path) as ledger:
        assert held == {path.with_name(".ledger.json.lock").stat().st_ino}
        ledger.compose(Noise(50.0))
    assert not held
    assert len(Accountant.load(path)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_that_was_forked_under_the_lock_does_not_keep_it(path):
    read, write = os.pipe()
    with storage.locked(path, 60.0):
        child = os.fork()
        if child == 0:
            os.close(write)
            os.read(read, 1)  # until the parent is done
            os._exit(0)
    try:
        with storage.locked(path, 0.05):
            pass
    finally:
        os.close(write)
        os.close(read)
        os.waitpid(child, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_that_leaves_the_block_does_not_give_up_the_lock_of_its_parent(path):
    with contextlib.ExitStack() as held:
        held.enter_context(storage.locked(path, 60.0))
        child = os.fork()
        if child == 0:
            held.close()
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(LedgerConflict), storage.locked(path, 0.0):
            pass


def spend(path):
    """Charge all that a budget in a file allows."""
    done = 0
    with contextlib.suppress(BudgetExceeded), Accountant.transaction(path, BUDGET) as ledger:
        while True:
            ledger.compose(Noise(10.0))
            done += 1
    return done


BUDGET = Budget(1.0, 1e-5)


def test_a_file_with_a_hard_link_is_not_written(tmp_path, path):
    """A rename would part the two names, and each would have the whole budget."""
    with Accountant.transaction(path, BUDGET) as ledger:
        ledger.compose(Noise(10.0))
    other = tmp_path / "other.json"
    os.link(path, other)
    before = path.read_bytes()
    for each in (path, other):
        with pytest.raises(DomainError, match=r"second name, a hard link.*Mount the directory"):
            spend(each)
        loaded = Accountant.load(each)
        with pytest.raises(DomainError, match="second name"):
            loaded.save(each)
    assert path.read_bytes() == before
    other.unlink()
    assert spend(path) > 0


SAVES = """
import sys
from accountant.ledger import Accountant
try:
    with Accountant.transaction(sys.argv[1]):
        print("was opened")
except Exception as error:
    print(error)
"""


def test_a_file_that_is_mounted_by_itself_is_not_written(tmp_path, path):
    with Accountant.transaction(path, BUDGET):
        pass
    other = tmp_path / "other"
    other.mkdir()
    (other / "ledger.json").touch()
    said = mounted([f"mount --bind {path} {other}/ledger.json"], SAVES, f"{other}/ledger.json")
    assert "is a mount point" in said
    assert "was opened" not in said
    assert (
        mounted([f"mount --bind {tmp_path} {other}"], SAVES, f"{other}/ledger.json")
        == "was opened\n"
    )


TEAM, ALICE, BOB = 4242, 4243, 4244


def test_a_member_of_a_group_leaves_the_ledger_and_its_lock_to_the_others():
    """In a directory without setgid, where new files have their maker's own group."""
    if os.getuid():
        pytest.skip("only root can be another user")
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        os.chmod(home, 0o770)
        os.chown(home, ALICE, TEAM)
        path = Path(home) / "ledger.json"

        def record():
            with Accountant.transaction(path, BUDGET) as ledger:
                ledger.compose(Noise(50.0))

        assert forked(record, ALICE, TEAM) == "None"
        os.chown(path, ALICE, TEAM)
        path.chmod(0o660)
        assert forked(record, ALICE, TEAM) == "None"
        for user in (BOB, ALICE, BOB):
            assert forked(record, user, TEAM, umask=0o077) == "None"
            found = path.stat()
            assert (found.st_gid, stat.S_IMODE(found.st_mode)) == (TEAM, 0o660)
        assert len(Accountant.load(path)) == 5
        # A group that the writer is not in cannot be kept: the others would be locked out.
        os.chown(path, BOB, TEAM + 7)
        os.chmod(home, 0o777)
        before = path.read_bytes()
        assert forked(record, BOB, TEAM).startswith("PermissionError")
        assert path.read_bytes() == before
