"""Batches of statements: answers in order, errors, and what an interruption leaves."""

import threading
import time

import psycopg
import pytest

from accountant import store
from accountant.ledger import Budget
from accountant.mechanisms import Gaussian
from accountant.store.postgres import Pipeline


@pytest.fixture
def connection(server):
    made = psycopg.connect(server._url(), autocommit=True, client_encoding="UTF8")
    yield made
    made.close()


@pytest.fixture
def pipeline(connection):
    return Pipeline(psycopg, connection)


def test_what_a_socket_cannot_hold_is_sent_while_answers_are_read(pipeline):
    long = "x" * 300_000
    asked = [pipeline.add("SELECT CAST(? AS text)", (long,)) for _ in range(30)]
    pipeline.send()
    assert all(answer.fetchone() == (long,) for answer in asked)


def test_a_text_with_nul_is_refused_not_cut(pipeline, connection):
    pipeline.add("SELECT 1", ())
    pipeline.add("SELECT CAST(? AS text)", ("a\0b",))
    with pytest.raises(psycopg.DataError, match="character 0"):
        pipeline.send()
    assert connection.closed  # half of a batch was handed over


@pytest.mark.long
def test_a_server_that_dies_is_noticed(pipeline, server):
    killer = threading.Timer(0.3, server.kill)
    killer.start()
    pipeline.add("SELECT pg_sleep(60)", ())
    with pytest.raises(psycopg.OperationalError):
        pipeline.send()
    killer.join()
    server.start()


def test_an_interrupted_client_gives_its_connection_up(pipeline, connection, monkeypatch):
    def interrupted(waiting, *_):
        next(waiting)
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "_wait", interrupted)
    pipeline.add("SELECT pg_sleep(0.1)", ())
    with pytest.raises(KeyboardInterrupt):
        pipeline.send()
    assert connection.closed


def test_writers_wait_in_line_and_a_silent_one_loses_its_turn(server):
    url = server.fresh()
    with store.open(url, create=True) as slow, store.open(url) as quick:
        slow.add_blocks("a/b/c", Budget(1.0, 1e-6))
        slow._database.begin()
        took = []

        def charge():
            start = time.perf_counter()
            quick.charge("a/b/c", Gaussian(100.0))
            took.append(time.perf_counter() - start)

        waiter = threading.Thread(target=charge)
        waiter.start()
        time.sleep(0.3)
        slow._database.execute("SET LOCAL idle_in_transaction_session_timeout = '100ms'")
        waiter.join()
        assert took[0] > 0.3
        slow.charge("a/b/c", Gaussian(100.0))  # its connection is gone, so it makes another
        assert slow.verify().passed


@pytest.mark.long
def test_what_died_with_the_server_is_not_reported_by_a_new_connection(server, monkeypatch):
    """A reader saw a charge that no disk had; the server lost it before the reader's wait."""
    url = server.fresh()
    with store.open(url, create=True) as hasty, store.open(url) as reader:
        hasty.add_blocks("a/b/c", Budget(1.0, 1e-6))
        base = hasty._database
        monkeypatch.setattr(base, "commit", lambda: base.execute("COMMIT"))
        seen = []

        def look(database):
            if not seen:
                hasty.charge("a/b/c", Gaussian(100.0))
            rows = database.execute("SELECT count(*) FROM accountant_journal").fetchone()[0]
            if not seen:
                server.kill()
                server.start()
            seen.append(rows)
            return rows

        found = reader._read(look)
        assert len(seen) == 2  # it looked again
        assert found == reader.head().rows
