"""Statements for PostgreSQL that are sent in one message, and their answers read in one go.

psycopg's own pipeline asks the socket before and after each statement. A charge has a dozen, and
eight clients on two processors waited for these questions more than for the database. Here the
statements of a batch are handed to the client library together, through psycopg's interface to it
(``psycopg.pq``), and those that come again are prepared.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

# Seconds after which whoever waits for the server looks at the clock.
_LOOK = 0.1

# Statements that a server keeps for one connection; patterns alone make ever new ones.
_MOST = 64


class Answer:
    """The rows that a statement found, once its batch was sent."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def fetchall(self) -> list[Any]:
        """Return all rows."""
        return self.rows

    def fetchone(self) -> Any:
        """Return the first row; None without one."""
        return self.rows[0] if self.rows else None


class Pipeline:
    """Batches of statements, with ``?`` for each value, on one connection of psycopg in UTF-8."""

    def __init__(self, driver: Any, connection: Any, deadline: float = math.inf) -> None:
        from psycopg.adapt import Transformer
        from psycopg.waiting import Wait, wait

        self._driver = driver
        self._status = driver.pq.ExecStatus
        self._connection = connection
        self._reader: Any = Transformer(connection)
        self._for: Any = Wait
        self._wait: Any = wait
        self._seen: dict[str, bytes] = {}
        self._prepared: set[str] = set()
        self._sent: set[str] = set()
        self._waiting: list[tuple[str, Sequence[object], Answer]] = []
        self.deadline = deadline  # until when the server is waited for
        self.failed = ""  # the statement of the last batch that the server refused

    def add(self, sql: str, values: Sequence[object]) -> Answer:
        """Add a statement to the batch; what is returned has rows when it was sent."""
        self._waiting.append((sql, values, Answer()))
        return self._waiting[-1][2]

    def drop(self) -> None:
        """Forget what was added and not sent."""
        self._waiting = []

    def send(self) -> None:
        """Send the batch, and wait for all answers; raise the server's first error.

        After an error the server runs nothing more of a batch. Whoever is interrupted here leaves
        a connection of which nobody knows what it still answers, so it is closed.
        """
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        raw = self._connection.pgconn
        self._sent = set()
        self.failed = ""
        try:
            raw.enter_pipeline_mode()
            asked = [answer for each in waiting for answer in self._asked(raw, *each)]
            raw.pipeline_sync()
            # Not by the connection, which would ask the server to cancel after an interruption.
            found = self._wait(self._received(raw), raw.socket, _LOOK)
            raw.exit_pipeline_mode()
        except BaseException:
            self._connection.close()
            raise
        for (sql, answer), result in zip(asked, found, strict=True):
            self._take(sql, answer, result)

    def _asked(
        self, raw: Any, sql: str, values: Sequence[object], answer: Answer
    ) -> Iterator[tuple[str, Answer | None]]:
        """Hand a statement over; yield what each of the answers to come is for."""
        data = [self._written(value) for value in values] or None
        name = self._seen.get(sql)
        if name is None:
            if len(self._seen) < _MOST:
                self._seen[sql] = f"accountant_{len(self._seen)}".encode()
            raw.send_query_params(self._text(sql), data)
        else:
            if sql not in self._prepared and sql not in self._sent:
                self._sent.add(sql)
                raw.send_prepare(name, self._text(sql))
                yield sql, None
            raw.send_query_prepared(name, data)
        yield sql, answer

    def _text(self, sql: str) -> bytes:
        first, *others = sql.split("?")
        marked = (f"${k}{part}" for k, part in enumerate(others, 1))
        return (first + "".join(marked)).encode()

    def _written(self, value: object) -> bytes | None:
        if value is None:
            return None
        data = str(value).encode()
        if b"\0" in data:  # the client library would end the text there
            raise self._driver.DataError("a text for PostgreSQL must not contain the character 0")
        return data

    def _received(self, raw: Any) -> Generator[Any, Any, list[Any]]:
        """Wait for the answers up to the end of the batch; a generator for psycopg."""
        found: list[Any] = []
        while True:
            while (more := raw.flush()) or raw.is_busy():
                while not (yield self._for.RW if more else self._for.R):
                    if time.monotonic() > self.deadline:
                        raise self._driver.OperationalError("the server did not answer in time")
                raw.consume_input()
            result = raw.get_result()
            if result is None:  # between the answers of two statements
                if raw.status != self._driver.pq.ConnStatus.OK:
                    raise self._driver.OperationalError("the connection was lost")
                continue
            if result.status == self._status.PIPELINE_SYNC:
                return found
            found.append(result)

    def _take(self, sql: str, answer: Answer | None, result: Any) -> None:
        """Read an answer, or raise what it says."""
        if result.status == self._status.TUPLES_OK:
            assert answer is not None
            self._reader.set_pgresult(result)
            answer.rows = self._reader.load_rows(0, result.ntuples, tuple)
        elif result.status != self._status.COMMAND_OK:
            self.failed = sql
            raise self._driver.errors.error_from_result(result)
        elif answer is None:
            self._prepared.add(sql)
