"""PostgreSQL: one server for many machines, synchronised at every commit."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from accountant.errors import LedgerError, UnsupportedError
from accountant.store.database import Answer, Database, Trouble

# What no later attempt changes. Before a session begins the driver has texts alone, no codes.
_FINAL = (
    "no password supplied",
    "no pg_hba.conf entry",
    "authentication failed",
    "does not exist",
    "is not permitted to log in",
    "permission denied",
)

_UNREADABLE = (
    "url must be postgresql://USER:PASSWORD@HOST:PORT/DATABASE, and characters such as / @ : # ? in"
    " a part of it must be written as %2F %40 %3A %23 %3F; this one cannot be read"
)

_COMMIT = "COMMIT"

# Locks of this kind have one name space in a database; half of the name is ours.
_TURN = (
    "SELECT set_config('lock_timeout', ?, true), set_config('synchronous_commit', 'off', true),"
    f" pg_advisory_xact_lock({0x6163636F << 32} + CAST(CAST(to_regclass('accountant_head')"
    " AS oid) AS bigint))"
)

# Milliseconds: PostgreSQL has 32 bits for them.
_LONGEST = (1 << 31) - 1

# Tables by the names that statements find; their columns, constraints, indexes, triggers, rules,
# policies and heirs, as texts.
_SCHEMA = """
WITH known AS (
    SELECT c.* FROM pg_class c WHERE c.oid IN (
        SELECT CAST(to_regclass('accountant_' || name) AS oid) FROM unnest(ARRAY['store', 'head',
            'journal', 'budgets', 'kinds', 'blocks', 'accounts', 'reservations']) AS name))
SELECT 'table', relname, CAST(relkind AS text), CAST(relpersistence AS text),
    CAST(relrowsecurity AS text) FROM known
UNION ALL SELECT 'column', k.relname, a.attname, format_type(a.atttypid, a.atttypmod),
    concat_ws(' ', a.attnum, a.attnotnull, a.attgenerated, a.attidentity, l.collname,
        pg_get_expr(d.adbin, d.adrelid))
    FROM known k JOIN pg_attribute a ON a.attrelid = k.oid AND a.attnum > 0
    LEFT JOIN pg_attrdef d ON d.adrelid = k.oid AND d.adnum = a.attnum
    LEFT JOIN pg_collation l ON l.oid = a.attcollation
UNION ALL SELECT 'constraint', k.relname, c.conname, pg_get_constraintdef(c.oid),
    CAST(c.convalidated AS text)
    FROM known k JOIN pg_constraint c ON c.conrelid = k.oid AND c.contype <> 'n'
UNION ALL SELECT 'index', k.relname, c.relname, CAST(i.indkey AS text), concat_ws(' ',
        i.indisunique, i.indisvalid, i.indpred IS NULL, i.indexprs IS NULL)
    FROM known k JOIN pg_index i ON i.indrelid = k.oid JOIN pg_class c ON c.oid = i.indexrelid
UNION ALL SELECT 'trigger', k.relname, t.tgname, CAST(t.tgenabled AS text), ''
    FROM known k JOIN pg_trigger t ON t.tgrelid = k.oid
    WHERE NOT t.tgisinternal OR t.tgenabled <> 'O'
UNION ALL SELECT 'rule', k.relname, r.rulename, '', ''
    FROM known k JOIN pg_rewrite r ON r.ev_class = k.oid
UNION ALL SELECT 'policy', k.relname, p.polname, '', ''
    FROM known k JOIN pg_policy p ON p.polrelid = k.oid
UNION ALL SELECT 'heir', k.relname, CAST(h.inhrelid AS text), CAST(h.inhparent AS text), ''
    FROM known k JOIN pg_inherits h ON k.oid IN (h.inhrelid, h.inhparent)
"""

# Seconds after which whoever waits for the server looks at the clock.
_LOOK = 0.1

# Statements that a server keeps for one connection; patterns alone make ever new ones.
_MOST = 64

# Whatever the server's setting: what is acknowledged is on its disk. A client that hangs in its
# turn makes all others wait.
_SESSION = (
    "SELECT set_config('synchronous_commit', 'on', false),"
    " set_config('idle_in_transaction_session_timeout', '60s', false)"
)

# A commit waits for the disk only if something was written: an empty message, in a transaction of
# its own. The setting comes with it: behind a pooler a statement may meet another session.
_FLUSH = (
    "SELECT set_config('synchronous_commit', 'on', true), CASE WHEN NOT pg_is_in_recovery()"
    " THEN pg_logical_emit_message(true, 'accountant', '') END"
)


class Pipeline:
    """Batches of statements, with ``?`` for each value, on one connection of psycopg in UTF-8.

    Each is one message, and its answers are read in one go. psycopg's own pipeline asks the socket
    before and after each statement: a charge has a dozen, and eight clients on two processors
    waited for these questions more than for the database. So the statements are handed to the
    client library through psycopg's interface to it (``psycopg.pq``), and those that come again are
    prepared.
    """

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


class Postgres(Database):
    """A connection by psycopg (the extra ``postgres``)."""

    members = "(SELECT jsonb_array_elements_text(CAST(? AS jsonb)))"
    now = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)"
    integer = "BIGINT"
    bytewise = 'COLLATE "C"'
    schema = _SCHEMA

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise UnsupportedError('it needs pip install "dp-accountant[postgres]"') from None
        self._driver: Any = psycopg
        self._url = url
        self._deadline = 0.0
        self._commits = False
        self._connection: Any = None
        self._pipeline: Pipeline | None = None
        self._batched = False

    def rows(self, columns: int) -> str:
        """Return a subquery over the rows of a JSON list."""
        listed = ", ".join(f"value->>{k} AS c{k}" for k in range(columns))
        return f"(SELECT {listed} FROM jsonb_array_elements(CAST(? AS jsonb)) AS listed(value))"

    def connect(self, deadline: float) -> None:
        """Connect, unless there is a connection."""
        self._deadline = deadline
        self._commits = False
        if self._connection is None:
            made = self._connected()
            pipeline = Pipeline(self._driver, made, deadline)
            pipeline.add(_SESSION, ())
            pipeline.send()
            self._connection, self._pipeline = made, pipeline
        self._ready().deadline = deadline

    def begin(self) -> None:
        """Begin, and wait in line for the lock on the head of the journal.

        A lock on the row itself would wake each waiter twice. The statement has its own snapshot;
        those after it see what was committed while it waited. Whoever did not wait would give its
        first row a number that the journal has, which is refused.
        """
        self.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        left = 1000 * (self._deadline - time.monotonic())
        self.execute(_TURN, (str(min(max(round(left), 1), _LONGEST)),))

    def look(self) -> None:
        """Begin to read one state."""
        self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def execute(self, sql: str, values: tuple[object, ...] = ()) -> Any:
        """Run one statement; in a batch, when it ends."""
        pipeline = self._ready()
        answer = pipeline.add(sql, values)
        if not self._batched:
            pipeline.send()
        return answer

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Send statements together: one round trip."""
        pipeline = self._ready()
        self._batched = True
        try:
            yield
        except BaseException:
            pipeline.drop()
            raise
        finally:
            self._batched = False
        pipeline.send()

    def commit(self) -> None:
        """Commit, let the next writer begin, and wait until the server's disk has it.

        The turn ends with the first commit, which waits for nothing, so that one write to the disk
        serves all writers who wait for it. The log of the server is sequential: what one writer
        waits for includes all that it has seen.
        """
        self.execute(_COMMIT)
        self.execute(_FLUSH)
        self._commits = True

    def settled(self) -> None:
        """End, and wait until the server's disk has what was read; a standby is sent nothing else.

        On the connection that read it: a server that died since may have lost it.
        """
        with self.batch():
            self.execute("ROLLBACK")
            self.execute(_FLUSH)

    def may_have_written(self) -> bool:
        """Tell whether the last error came when the commit was sent, and not from before it."""
        failed = "" if self._pipeline is None else self._pipeline.failed
        return self._commits and failed in ("", _COMMIT, _FLUSH)

    def rollback(self) -> None:
        """Undo; without a connection there is nothing to undo."""
        pipeline = self._pipeline  # a fork in a signal's handler ends it between two looks
        if self._connection is None or pipeline is None:
            return
        self._batched = False
        pipeline.drop()  # of whoever was interrupted before it was sent
        failed = pipeline.failed
        try:
            self.execute("ROLLBACK")
        except self._driver.Error:
            self.close()
        pipeline.failed = failed

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(self._driver.Error):
                connection.close()

    def abandon(self) -> None:
        """Let go of it: psycopg ends no session of another process."""
        self._connection = None

    def trouble(self, error: BaseException) -> Trouble | None:
        """Return what an error means: "lost" where the server went away or ended the turn.

        It is never "busy": the server waits itself.
        """
        known = self._driver.errors
        # Of the first are a shut-down server's errors, and those of a batch that ended before.
        if isinstance(error, (self._driver.OperationalError, self._driver.InterfaceError)):
            return "lost"
        if isinstance(error, known.UndefinedTable):
            return "missing"
        if isinstance(error, known.CheckViolation):
            return "count"
        return "other" if isinstance(error, self._driver.Error) else None

    def _ready(self) -> Pipeline:
        pipeline = self._pipeline
        if self._connection is None or pipeline is None:
            raise self._driver.OperationalError("the connection was given up meanwhile")
        return pipeline

    def _connected(self) -> Any:
        """Connect once; what would fail again is a LedgerError, which is not tried again."""
        if _is_ambiguous(self._url):
            raise LedgerError(_UNREADABLE)
        try:
            left = min(max(2, math.ceil(self._deadline - time.monotonic())), 1 << 20)
            options = {"autocommit": True, "client_encoding": "UTF8", "connect_timeout": left}
            return self._driver.connect(self._url, **options)
        except self._driver.Error as error:
            # The driver quotes what it could not read, which may be a part of the password.
            if self.trouble(error) != "lost" or "invalid" in str(error):
                raise LedgerError(_UNREADABLE) from None
            needs = getattr(getattr(error, "pgconn", None), "needs_password", False)
            if needs or any(each in str(error) for each in _FINAL):
                raise LedgerError(f"the database of this store refuses: {error}") from None
            raise


def _is_ambiguous(url: str) -> bool:
    """Tell whether a part of the password could be read as the server's address."""
    place, _, options = url.partition("://")[2].partition("?")
    login, mark, _ = place.rpartition("@")
    if not mark:
        return "@" in options
    return any(each in login for each in "/@#") or login.count(":") > 1
