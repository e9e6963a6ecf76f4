"""The tables of a store have a version: a store of another is refused, and so is a changed one."""

import pytest

from accountant import store
from accountant.errors import LedgerError
from support.threads import together


@pytest.mark.parametrize("version", [0, 2])
def test_a_store_of_another_version_is_refused(url, version):
    with store.open(url, create=True) as made:
        made._database.execute(f"UPDATE accountant_store SET version = {version}")
    for create in (False, True):
        with pytest.raises(LedgerError, match=f"version must be 1; got {version}"):
            store.open(url, create=create)


def test_a_store_that_lost_its_version_is_refused(url):
    with store.open(url, create=True) as made:
        made._database.execute("DELETE FROM accountant_store")
    for create in (False, True):
        with pytest.raises(LedgerError, match="accountant_store is empty"):
            store.open(url, create=create)


def test_a_database_without_a_store(url, tmp_path):
    if url.startswith("sqlite"):
        (tmp_path / "budget.db").touch()
    with pytest.raises(LedgerError, match="holds no store"):
        store.open(url)


def test_what_is_no_database_is_refused(tmp_path):
    path = tmp_path / "budget.db"
    path.write_text("this is a text, and not a database\n" * 100)
    before = path.read_text()
    with pytest.raises(LedgerError, match="holds no store"):
        store.open(f"sqlite:///{path}")
    assert path.read_text() == before


def test_a_new_file_is_its_owners_only(tmp_path):
    with store.open(f"sqlite:///{tmp_path / 'budget.db'}", create=True) as made:
        made.add_blocks("a/b/c", None)
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert set(modes) >= {"budget.db"}
    assert set(modes.values()) == {0o600}


def test_two_who_create_at_once_create_one_store(url):
    opened, errors = [], []

    def create():
        try:
            opened.append(store.open(url, create=True))
        except Exception as error:
            errors.append(error)

    together(*[create] * 4)
    assert not errors
    assert len({str(each.head()) for each in opened}) == 1
    for each in opened:
        each.close()
