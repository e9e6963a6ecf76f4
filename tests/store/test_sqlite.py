"""What is particular to a store in a file."""

import sqlite3
from pathlib import Path

import pytest

import accountant as ac
from accountant import store
from accountant.errors import LedgerError
from accountant.ledger import Budget

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
    assert names <= {"budget.db", "budget.db-wal", "budget.db-shm", ".budget.db.queue"}


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
        return base._connected().execute(sql, values)

    with monkeypatch.context() as patch:
        patch.setattr(base, "execute", fails)
        with pytest.raises(LedgerError, match=r"unknown whether this was written.*'one'"):
            client.charge("a/b/c", ac.Gaussian(50.0), key="one")
    client.charge("a/b/c", ac.Gaussian(50.0), key="one")
    assert [block.releases for block in client.blocks()] == [2]
