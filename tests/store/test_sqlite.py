"""What is particular to a store in a file."""

from pathlib import Path

import pytest

from accountant import store

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
