"""A charge ends its turn before the server's disk has it; nobody is told of it before then."""

import re
import time
import traceback

import pytest

import accountant as ac
from accountant import store
from accountant.errors import LedgerConflict, LedgerError
from accountant.ledger import Budget
from accountant.store import postgres

BLOCK = "acme/visits/2026-01"
STEP = ac.Gaussian(100.0)


@pytest.fixture
def url(server):
    return server.fresh()


def power_cut(server):
    server.kill()
    server.start()


def dies_before_it_waits(client, monkeypatch):
    base = client._database
    monkeypatch.setattr(base, "commit", lambda: base.execute("COMMIT"))


@pytest.mark.long
def test_what_was_acknowledged_outlives_a_power_cut(url, server):
    with store.open(url, create=True) as shared:
        shared.add_blocks(BLOCK, Budget(1.0, 1e-6))
        for _ in range(2):
            row = shared.charge(BLOCK, STEP).row
            power_cut(server)
            assert shared.head().rows == row
        assert shared.verify().passed


def test_what_an_interrupted_reader_did_not_send_is_not_sent_by_the_next(url, monkeypatch):
    with store.open(url, create=True) as shared:
        shared.add_blocks(BLOCK, Budget(1.0, 1e-6))

        def interrupted():
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(shared._database._pipeline, "send", interrupted)
            with pytest.raises(KeyboardInterrupt):
                shared.head()
        assert shared.charge(BLOCK, STEP).row == shared.head().rows


@pytest.mark.parametrize("seen", ["charged", "read"])
def test_what_was_acknowledged_is_on_the_disk_in_a_session_of_other_settings(url, seen):
    """As a pooler gives them, or a server whose commits wait for nothing."""
    with store.open(url, create=True) as shared:
        shared.add_blocks(BLOCK, Budget(1.0, 1e-6))
        base = shared._database
        found = []
        for _ in range(5):
            base.execute("SET synchronous_commit = off")
            if seen == "charged":
                shared.charge(BLOCK, STEP)
            else:
                base.execute("SELECT pg_logical_emit_message(true, 'a charge', '')")
                shared.head()
            lsn = "pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn()"
            found += base.execute(f"SELECT pg_wal_lsn_diff({lsn})").fetchone()
        # The server writes some of its own now and then.
        assert found.count(0) >= 4


@pytest.mark.long
@pytest.mark.parametrize("seen", ["repeated", "read"])
def test_what_was_seen_of_another_client_outlives_a_power_cut(url, server, seen, monkeypatch):
    with store.open(url, create=True) as hasty, store.open(url) as shared:
        shared.add_blocks(BLOCK, Budget(1.0, 1e-6))
        shared.charge(BLOCK, STEP)
        dies_before_it_waits(hasty, monkeypatch)
        hasty.charge(BLOCK, STEP, key="one")
        if seen == "repeated":
            receipt = shared.charge(BLOCK, STEP, key="one")
            assert receipt.repeated
            row = receipt.row
        else:
            row = shared.head().rows
        power_cut(server)
        assert shared.head().rows == row
        assert shared.verify(shared.head()).passed


@pytest.mark.long
def test_what_nobody_was_told_of_is_charged_once_by_its_retry(url, server, monkeypatch):
    """Both may be lost, or the first alone be on the disk; who asks again under a key pays once."""
    for round_ in range(3):
        with store.open(url, create=True) as hasty:
            hasty.add_blocks(BLOCK, Budget(1.0, 1e-6))
            dies_before_it_waits(hasty, monkeypatch)
            hasty.charge(BLOCK, STEP, key=f"one-{round_}")
            hasty.charge(BLOCK, STEP, key=f"two-{round_}")
            power_cut(server)
        with store.open(url) as first, store.open(url) as second:
            for client, key in ((second, "two"), (first, "one"), (first, "two"), (second, "one")):
                client.charge(BLOCK, STEP, key=f"{key}-{round_}")
            (block,) = first.blocks(BLOCK)
            assert block.releases == 2 * (round_ + 1)
            assert second.verify().passed


@pytest.mark.parametrize("given", ["one", None])
def test_a_charge_whose_wait_for_the_disk_fails_names_the_key_to_repeat(url, given, monkeypatch):
    with store.open(url, create=True) as shared:
        shared.add_blocks(BLOCK, Budget(1.0, 1e-6))
        with monkeypatch.context() as patch:
            patch.setattr(postgres, "_FLUSH", "SELECT 1 / 0")
            with pytest.raises(LedgerError, match="unknown whether this was written") as failed:
                shared.charge(BLOCK, STEP, key=given)
        key = re.search(r"under its key, '(\w+)'", str(failed.value))[1]
        assert given in (None, key)
        assert shared.charge(BLOCK, STEP, key=key).repeated
        (block,) = shared.blocks(BLOCK)
        assert block.releases == 1
        # What fails before the commit was not written, and nobody is told otherwise.
        with pytest.raises(LedgerError) as failed:
            shared._written(lambda turn: turn.open(("SELECT nothing", ())))
        assert "unknown" not in str(failed.value)
        assert shared.blocks(BLOCK) == [block]


@pytest.fixture
def locked(server):
    """A role that must give its password."""
    import psycopg

    rules = server.home / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text("local all locked scram-sha-256\n" + before)
    with psycopg.connect(server._url(), autocommit=True) as connection:
        connection.execute("CREATE ROLE locked LOGIN PASSWORD 'right'")
        connection.execute("SELECT pg_reload_conf()")
    yield
    rules.write_text(before)
    with psycopg.connect(server._url(), autocommit=True) as connection:
        connection.execute("DROP ROLE locked")
        connection.execute("SELECT pg_reload_conf()")


@pytest.mark.parametrize(
    "login",
    [
        "locked:hunter2@/postgres",  # a wrong password
        "locked@/postgres",  # none
        "owner:hunter2@/nowhere",  # no such database
        "nobody:hunter2@/postgres",  # no such role
        "owner:hunter2/x@/postgres",  # a slash that should have been written as %2F
        "owner:2?hunter2@/postgres",
        "owner:x@hunter2@/postgres",
        "owner@/postgres?hunter2=1&",
    ],
)
def test_what_will_be_refused_again_is_refused_at_once(server, locked, login):
    mark = "&" if "?" in login else "?"
    start = time.monotonic()
    with pytest.raises(LedgerError) as refused:
        store.open(f"postgresql://{login}{mark}host={server.home}", timeout=30.0)
    assert time.monotonic() - start < 10.0
    assert type(refused.value) is LedgerError
    assert "hunter2" not in "".join(traceback.format_exception(refused.value, limit=0))


@pytest.mark.long
def test_a_server_that_is_starting_is_waited_for(url, server):
    server.kill()
    with pytest.raises(LedgerConflict, match=r"could not be used for 0\.3 s"):
        store.open(url, timeout=0.3)
    server.start()
    store.open(url, create=True).close()
