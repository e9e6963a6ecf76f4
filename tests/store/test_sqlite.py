"""What is particular to a store in a file."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import accountant as ac
from accountant import store
from accountant.errors import DomainError, LedgerConflict, LedgerError
from accountant.ledger import Budget
from support.elsewhere import forked, mounted

LOCKS = Path("/proc/locks")


@pytest.mark.skipif(not LOCKS.exists(), reason="the kernel does not list its locks")
def test_opening_a_store_once_more_keeps_the_locks_of_this_process(tmp_path):
    """Closing any descriptor of a file gives up all locks that the process has on it."""
    path = tmp_path / "budget.db"
    with store.open(f"sqlite:///{path}", create=True) as first:
        first.add_blocks("a/b/c", None)
        first._database.begin()

        def held():
            inodes = {str(each.stat().st_ino) for each in tmp_path.iterdir()}
            lines = (line.split() for line in LOCKS.read_text().splitlines())
            return sorted(words[1:6] for words in lines if words[5].split(":")[-1] in inodes)

        before = held()
        assert before
        store.open(f"sqlite:///{path}", create=True).close()
        assert held() == before
        first._database.rollback()


def test_nothing_is_left_beside_a_new_file(tmp_path):
    store.open(f"sqlite:///{tmp_path / 'budget.db'}", create=True).close()
    names = {path.name for path in tmp_path.iterdir()}
    assert names <= {"budget.db", "budget.db-wal", "budget.db-shm"}


def test_paths_are_relative_or_from_the_root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store.open("sqlite:///budget.db", create=True).close()
    with store.open(f"sqlite:///{tmp_path / 'budget.db'}") as same:
        assert same.head().rows == 0


@pytest.fixture
def place(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def client(place):
    with store.open(f"sqlite:///{place}", create=True, timeout=0.2) as opened:
        opened.add_blocks("a/b/c", Budget(1.0, 1e-6))
        opened.charge("a/b/c", ac.Gaussian(50.0))
        yield opened


def remove(place):
    for path in place.parent.glob(f"{place.name}*"):
        path.unlink()


def test_a_copy_that_was_restored_under_its_clients_is_what_they_charge(client, place):
    """They would go on in the file that was removed, and nobody else would see it."""
    copy = place.with_name("copy.db")
    with sqlite3.connect(place) as other:
        other.execute("VACUUM INTO ?", (str(copy),))
    other.close()
    remove(place)
    copy.rename(place)
    client.charge("a/b/c", ac.Gaussian(50.0))
    with store.open(f"sqlite:///{place}") as newcomer:
        assert [block.releases for block in newcomer.blocks()] == [2]
        assert newcomer.verify(client.head()).passed


def test_a_store_that_was_removed_is_charged_no_more_and_not_made_anew(client, place):
    remove(place)
    for ask in (lambda: client.charge("a/b/c", ac.Gaussian(50.0)), client.blocks):
        with pytest.raises(LedgerError, match=r"budget\.db: the file was removed"):
            ask()
    assert not place.exists()


def test_a_commit_that_failed_may_have_been_written(client, monkeypatch):
    base = client._database

    def fails(sql, values=()):
        if sql == "COMMIT":
            raise sqlite3.OperationalError("disk I/O error")
        return base._connection.execute(sql, values)

    with monkeypatch.context() as patch:
        patch.setattr(base, "execute", fails)
        with pytest.raises(LedgerError, match=r"unknown whether this was written.*'one'"):
            client.charge("a/b/c", ac.Gaussian(50.0), key="one")
    client.charge("a/b/c", ac.Gaussian(50.0), key="one")
    assert [block.releases for block in client.blocks()] == [2]


# Two names

LIMIT = 18
STEP = ac.Gaussian(20.0)
CHARGES = """
import sys
import accountant as ac
from accountant import store
try:
    with store.open("sqlite:///" + sys.argv[1], timeout=float(sys.argv[2])) as shared:
        while True:
            shared.charge("a/b/c", ac.Gaussian(20.0))
            print("charged")
except Exception as error:
    print(error)
"""


def charged(shared, most=2 * LIMIT):
    for done in range(most):
        try:
            shared.charge("a/b/c", STEP)
        except store.BlockExceeded:
            return done
    return most


@pytest.fixture
def made(place):
    """A store whose block affords LIMIT steps, and that nobody has open."""
    with store.open(f"sqlite:///{place}", create=True) as opened:
        opened.add_blocks("a/b/c", Budget(1.0, 1e-6))
    return f"sqlite:///{place}"


def test_a_file_with_a_hard_link_is_refused_under_both_names(made, place, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    with store.open(made) as before:
        assert before.charge("a/b/c", STEP).row
        os.link(place, other / "budget.db")
        for url in (made, f"sqlite:///{other}/budget.db"):
            with pytest.raises(DomainError, match=r"second name.*Mount the directory"):
                store.open(url)
        with pytest.raises(DomainError, match="second name"):
            before.charge("a/b/c", STEP)
        (other / "budget.db").unlink()
        assert charged(before) == LIMIT - 1
        (other / "link.db").symlink_to(place)
        with store.open(f"sqlite:///{other}/link.db") as linked:
            assert charged(linked) == 0


@pytest.mark.long
def test_a_file_that_is_mounted_by_itself_is_refused_and_its_directory_is_not(made, place):
    other = place.parent / "other"
    other.mkdir()
    (other / "budget.db").touch()
    one = mounted([f"mount --bind {place} {other}/budget.db"], CHARGES, f"{other}/budget.db", 9)
    assert "Mount the directory" in one
    assert "charged" not in one
    whole = mounted([f"mount --bind {place.parent} {other}"], CHARGES, f"{other}/budget.db", 9)
    assert whole.splitlines().count("charged") == LIMIT
    with store.open(made) as shared:
        assert charged(shared) == 0


# Logs that were removed under living clients


@pytest.mark.long
@pytest.mark.parametrize("endings", [("-wal", "-shm"), ("-wal",), ("-shm",)])
@pytest.mark.parametrize("newcomer_first", [True, False])
def test_no_charge_is_lost_or_doubled_with_the_logs(made, place, endings, newcomer_first):
    with store.open(made, timeout=0.5) as first, store.open(made) as beside:
        done = charged(first, 3) + charged(beside, 2)
        for ending in endings:
            Path(f"{place}{ending}").unlink()
        program = [sys.executable, "-c", CHARGES, place, "0.5"]  # a fork would close the others
        told = subprocess.run(program, capture_output=True, text=True, check=True).stdout
        assert "were removed" in told
        assert "charged" not in told
        if not newcomer_first:  # one of its own process
            with pytest.raises(LedgerConflict, match="were removed"):
                store.open(made, timeout=0.1)
        with pytest.raises(LedgerConflict, match="were removed"):  # the other has them, too
            first.charge("a/b/c", STEP)
        done += charged(beside, 1)
        done += charged(first)
        assert done == LIMIT
        for each in (first, beside):
            assert [block.releases for block in each.blocks()] == [LIMIT]
            assert each.verify().passed
    with store.open(made) as again:
        assert charged(again) == 0
        assert again.verify().passed


def test_logs_that_were_replaced_are_not_written_into_the_file(made, place):
    first = store.open(made, timeout=0.5)
    assert charged(first, 3) == 3
    for ending in ("-wal", "-shm"):
        log = Path(f"{place}{ending}")
        log.rename(f"{place}.away{ending}")
        log.touch()
    with pytest.raises((LedgerError, LedgerConflict)):
        first.charge("a/b/c", STEP)
    for ending in ("-wal", "-shm"):
        Path(f"{place}{ending}").unlink()
        Path(f"{place}.away{ending}").rename(f"{place}{ending}")
    first.close()
    with store.open(made) as again:
        assert charged(again) == LIMIT - 3
        assert again.verify().passed


def test_logs_that_are_removed_while_it_commits_take_no_charge_with_them(made, place, monkeypatch):
    with store.open(made) as shared:
        base, execute, left = shared._database, shared._database.execute, [1]

        def removing(sql, values=()):
            found = execute(sql, values)
            if sql == "COMMIT" and left:
                left.clear()
                Path(f"{place}-wal").unlink()
            return found

        monkeypatch.setattr(base, "execute", removing)
        assert not shared.charge("a/b/c", STEP, key="one").repeated
        monkeypatch.undo()
        assert shared.charge("a/b/c", STEP, key="one").repeated
        assert [block.releases for block in shared.blocks()] == [1]


# Groups, other users

TEAM, ALICE, BOB, MALLORY = 4242, 4243, 4244, 4245


@pytest.fixture
def team(tmp_path_factory):
    """A directory of a group, without setgid, and a store of one of its members in it."""
    if os.getuid():
        pytest.skip("only root can be another user")
    import tempfile

    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        os.chmod(home, 0o770)
        os.chown(home, ALICE, TEAM)
        yield Path(home)


def killed(url):
    """Charge, and die with the file open."""
    store.open(url).charge("a/b/c", STEP)
    os._exit(9)


def test_members_of_a_group_open_what_a_killed_one_left(team):
    url = f"sqlite:///{team}/budget.db"

    def make():
        with store.open(url, create=True) as shared:
            shared.add_blocks("a/b/c", Budget(1.0, 1e-6))
        os.chmod(team / "budget.db", 0o660)
        os.chown(team / "budget.db", -1, TEAM)

    assert forked(make, ALICE, TEAM) == "None"
    assert forked(lambda: killed(url), BOB, TEAM, umask=0o077) == ""
    assert (team / "budget.db-wal").stat().st_gid == TEAM
    assert forked(lambda: charged(store.open(url), 1), ALICE, TEAM) == "1"
    assert "Error" in forked(lambda: charged(store.open(url), 1), MALLORY)


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_logs_made_beforehand_by_another_user_are_not_used(team, ending):
    os.chmod(team, 0o1777)
    url, log = f"sqlite:///{team}/budget.db", team / f"budget.db{ending}"

    def trap():
        log.touch()
        log.chmod(0o666)

    assert forked(trap, MALLORY) == "None"
    made = forked(lambda: store.open(url, create=True), ALICE)
    assert "made by another user" in made
    assert log.stat().st_size == 0
    log.unlink()
    log.symlink_to(team / "elsewhere")
    assert "made by another user" in forked(lambda: store.open(url, create=True), ALICE)
    log.unlink()
    assert forked(lambda: store.open(url, create=True).head().rows, ALICE) == "0"


# Answers

READS = """
import sys
from accountant import store
with store.open("sqlite:///" + sys.argv[1]) as shared:
    print(shared.blocks()[0].releases, shared.verify().passed, shared.remaining("a/b/c").unit)
    try:
        shared.charge("a/b/c", __import__("accountant").Gaussian(20.0))
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("logs", [True, False])
def test_a_store_that_one_may_only_read_is_read_and_verified(made, place, logs):
    with store.open(made) as shared:
        assert charged(shared, 3) == 3
        if logs:
            forked(lambda: killed(made))
            copies = {each: each.read_bytes() for each in place.parent.glob("budget.db*")}
    if logs:
        for each, content in copies.items():
            each.write_bytes(content)
    read_only = [f"mount --bind {place.parent} /mnt", "mount -o remount,ro,bind /mnt"]
    told = mounted(read_only, READS, "/mnt/budget.db").splitlines()
    assert told[0].startswith(f"{4 if logs else 3} True ")
    assert told[1].startswith("LedgerError the database of this store says: attempt to write")
    assert "unknown" not in told[1]


FULL = """
import os, sys
import accountant as ac
from accountant import store
from accountant.errors import LedgerError
from accountant.ledger import Budget
home = sys.argv[1]
told = []
with store.open(f"sqlite:///{home}/budget.db", create=True) as shared:
    shared.add_blocks("a/b/c", None)
    filler = os.open(f"{home}/filler", os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(filler, b"x" * 4096):
            pass
    except OSError:
        pass
    done = 0
    for k in range(400):
        try:
            shared.charge("a/b/c", ac.Gaussian(20.0), label="x" * 900, key=f"key-{k}")
            done += 1
        except LedgerError as error:
            told.append(str(error))
    print(len(told), sum("unknown" in each for each in told), told[-1])
    os.unlink(f"{home}/filler")
    print(shared.blocks()[0].releases - done, shared.verify().passed)
"""


def test_on_a_full_disk_nobody_is_told_that_something_may_be_written(tmp_path):
    small = [f"mount -t tmpfs -o size=700k tmpfs {tmp_path}"]
    told = mounted(small, FULL, tmp_path).splitlines()
    refused, unknown, message = told[0].split(" ", 2)
    assert int(refused) > 0
    assert unknown == "0"
    assert "full" in message
    assert told[1] == "0 True"
