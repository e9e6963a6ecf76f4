"""The journal, its chain of hashes, the tables that follow from it, and one turn of writing.

Each row's hash covers the row and the hash before it. Without a secret the hash is SHA-256, and
whoever can write to the database can compute a whole new chain; with one it is HMAC-SHA256. Either
shows an edit, a deletion, an insertion or a swap inside the journal. That the *end* was cut off, or
an older copy restored, only a head kept elsewhere shows.

``head`` has one row, the end of the journal; writers take turns by locking it. ``journal`` is only
added to. All other tables follow from it, and ``verify`` derives them anew: ``budgets`` and
``kinds`` hold texts once, ``blocks`` what was planned on each ([kind, cap, label]), ``accounts``
how many releases of each kind it holds, which is all that decisions look at.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from typing import Any, NamedTuple

from accountant import checks
from accountant.errors import DomainError, LedgerError
from accountant.store.database import Database, Query
from accountant.store.texts import compact, digest

_HOLD = "INSERT INTO accountant_accounts (block, kind, held)"
_ADD = "ON CONFLICT (block, kind) DO UPDATE SET held = accountant_accounts.held + excluded.held"
_WRITTEN = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")
_LEAST_SECRET = 16

_TABLES = (
    """CREATE TABLE accountant_store (
        version {integer} NOT NULL, identity TEXT NOT NULL, keyed {integer} NOT NULL)""",
    """CREATE TABLE accountant_head (
        id {integer} PRIMARY KEY CHECK (id = 1), seq {integer} NOT NULL, digest TEXT NOT NULL)""",
    """CREATE TABLE accountant_journal (
        seq {integer} PRIMARY KEY, time {integer} NOT NULL, action TEXT NOT NULL,
        key TEXT UNIQUE, body TEXT NOT NULL, digest TEXT NOT NULL)""",
    """CREATE TABLE accountant_budgets (
        id {integer} PRIMARY KEY, digest TEXT NOT NULL UNIQUE, text TEXT NOT NULL)""",
    """CREATE TABLE accountant_kinds (
        id {integer} PRIMARY KEY, digest TEXT NOT NULL UNIQUE, text TEXT NOT NULL)""",
    """CREATE TABLE accountant_blocks (
        id {integer} PRIMARY KEY, address TEXT {bytewise} NOT NULL UNIQUE,
        budget {integer} REFERENCES accountant_budgets (id), deltas TEXT NOT NULL,
        relation TEXT NOT NULL, planned TEXT NOT NULL)""",
    """CREATE TABLE accountant_accounts (
        block {integer} NOT NULL, kind {integer} NOT NULL,
        held {integer} NOT NULL CHECK (held >= 0 AND held <= 9007199254740992),
        PRIMARY KEY (block, kind))""",
    """CREATE TABLE accountant_reservations (
        key TEXT PRIMARY KEY, seq {integer} NOT NULL, until {integer} NOT NULL,
        state TEXT NOT NULL, used {integer} NOT NULL)""",
)

VERSION = 1


class Head(NamedTuple):
    """The end of a journal: keep it outside the database, and ``verify`` sees what was cut off.

    Attributes
    ----------
    rows : int
        How many rows the journal has.
    digest : str
        The hash of the last of them, 64 hexadecimal digits.
    """

    rows: int
    digest: str

    def __str__(self) -> str:
        return f"{self.rows}:{self.digest}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Read what ``str`` wrote, ``ROWS:DIGEST``."""
        found = _WRITTEN.fullmatch(text)
        if found is None:
            raise DomainError(f"head must be ROWS:DIGEST as verify prints it; got {text!r:.100}")
        return cls(int(found[1]), found[2])


class Chain:
    """Computes the hashes of rows."""

    def __init__(self, secret: bytes | None) -> None:
        if secret is not None:
            checks.instance("secret", secret, bytes, "bytes")
            if len(secret) < _LEAST_SECRET:
                raise DomainError(f"secret must have >= {_LEAST_SECRET} bytes; got {len(secret)}")
        self.keyed = secret is not None
        self._hash: Any = hmac.new(secret, digestmod="sha256") if secret else hashlib.sha256()

    def first(self, identity: str) -> str:
        """Return what the first row's hash covers in place of a hash before it."""
        return self._digest(f"accountant store\n{identity}")

    def next(
        self, before: str, seq: int, time: int, action: str, key: str | None, body: str
    ) -> str:
        """Return the hash of a row.

        No field that is written holds a line break, so different rows have different texts: a text
        with five line breaks can be split into six fields in one way only.
        """
        mark = "" if key is None else f"={key}"
        return self._digest(f"{before}\n{seq}\n{time}\n{action}\n{mark}\n{body}")

    def _digest(self, text: str) -> str:
        made = self._hash.copy()
        made.update(text.encode("utf-8", "surrogatepass"))
        return str(made.hexdigest())


class Transaction:
    """Holds the head of the journal from ``open`` to ``close``, so that writers take turns.

    Statements are collected and sent at once: to a server, a charge is two round trips.
    """

    def __init__(self, database: Database, chain: Chain) -> None:
        self.database = database
        self._chain = chain
        self._waiting: list[Query] = []
        self.now = self._seq = 0
        self._digest = ""

    def open(self, *queries: Query) -> list[list[Any]]:
        """Wait for the turn, and return the rows that each query finds then."""
        base = self.database
        head = f"SELECT seq, digest, {base.now} FROM accountant_head"
        with base.batch():
            base.begin()
            held = base.execute(head)
            asked = [base.execute(*query) for query in queries]
        self._seq, self._digest, self.now = held.fetchone()
        return [cursor.fetchall() for cursor in asked]

    def ask(self, sql: str, *values: object) -> list[Any]:
        """Return the rows of one further query."""
        return list(self.database.execute(sql, values).fetchall())

    def append(self, action: str, body: dict[str, Any], key: str | None = None) -> int:
        """Append a row to the journal; return its number."""
        text = compact(body)
        self._seq += 1
        self._digest = self._chain.next(self._digest, self._seq, self.now, action, key, text)
        self.later(
            "INSERT INTO accountant_journal (seq, time, action, key, body, digest)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (self._seq, self.now, action, key, text, self._digest),
        )
        return self._seq

    def number_of(
        self, text: str, table: str = "kinds", action: str = "kind", name: str = "mechanism"
    ) -> int:
        """Return the number of a mechanism's text, or a budget's; a new one where there is none."""
        known = self.ask(f"SELECT id FROM accountant_{table} WHERE digest = ?", digest(text))
        if known:
            return int(known[0][0])
        number = self.append(action, {name: json.loads(text)})
        insert = f"INSERT INTO accountant_{table} (id, digest, text) VALUES (?, ?, ?)"
        self.later(insert, (number, digest(text), text))
        return number

    def later(self, sql: str, values: tuple[object, ...]) -> None:
        """Run a statement at the end."""
        self._waiting.append((sql, values))

    def hold(self, runs: list[list[int]], kind: int, count: int) -> None:
        """Add a count, perhaps a negative one, to the accounts of blocks: [first, last] each."""
        if count < 0:
            self.later(
                "UPDATE accountant_accounts SET held = held + CAST(? AS bigint)"
                f" FROM {self._runs} WHERE block >= CAST(c0 AS bigint)"
                " AND block <= CAST(c1 AS bigint) AND kind = ?",
                (count, compact(runs), kind),
            )
        elif len(runs) == 1 and runs[0][0] == runs[0][1]:
            self.later(f"{_HOLD} VALUES (?, ?, ?) {_ADD}", (runs[0][0], kind, count))
        else:
            self.later(
                f"{_HOLD} SELECT b.id, CAST(? AS bigint), CAST(? AS bigint)"
                f" FROM {self._runs} JOIN accountant_blocks b"
                f" ON b.id >= CAST(c0 AS bigint) AND b.id <= CAST(c1 AS bigint) WHERE true {_ADD}",
                (kind, count, compact(runs)),
            )

    def relate(self, runs: list[list[int]], relation: str) -> None:
        """Set the relation of blocks."""
        self.later(
            f"UPDATE accountant_blocks SET relation = ? FROM {self._runs}"
            " WHERE id >= CAST(c0 AS bigint) AND id <= CAST(c1 AS bigint)",
            (relation, compact(runs)),
        )

    @property
    def _runs(self) -> str:
        return f"{self.database.rows(2)} AS run"

    def leave(self) -> None:
        """Write nothing; when this returns, what was read is on the disk."""
        self.database.settled()

    def close(self) -> Head:
        """Write everything and commit; when this returns, it is on the disk."""
        base = self.database
        self.later("UPDATE accountant_head SET seq = ?, digest = ?", (self._seq, self._digest))
        with base.batch():
            for sql, values in self._waiting:
                base.execute(sql, values)
            base.commit()
        return Head(self._seq, self._digest)


def opened(database: Database, chain: Chain) -> str:
    """Return the identity of the store that is there; LedgerError if it is not this version's."""
    rows = _stated(database)
    if rows is None:
        raise LedgerError("this database holds no store; make one by create=True")
    if not rows:
        raise LedgerError("this store has lost its version: its table accountant_store is empty")
    version, identity, keyed = rows[0]
    if version != VERSION:
        raise LedgerError(f"a store's version must be {VERSION}; got {version}")
    if bool(keyed) != chain.keyed:
        what = "needs its secret" if keyed else "has no secret; open it without"
        raise LedgerError(f"this store {what}")
    return str(identity)


def create(database: Database, chain: Chain) -> None:
    """Make the tables where there are none; two at once do no harm.

    The schema's digest is a part of the identity, and so of every hash of the journal.
    """
    if _stated(database) is not None:
        return
    database.begin()
    try:
        for statement in _TABLES:
            database.execute(statement.format(integer=database.integer, bytewise=database.bytewise))
        identity = f"{secrets.token_hex(16)}:{schema(database)}"
        stated = VERSION, identity, int(chain.keyed)
        database.execute("INSERT INTO accountant_store VALUES (?, ?, ?)", stated)
        database.execute("INSERT INTO accountant_head VALUES (1, 0, ?)", (chain.first(identity),))
        database.commit()
    except BaseException:
        database.rollback()
        if _stated(database) is None:  # else another process made them first
            raise


def schema(database: Database) -> str:
    """Return the digest of all that the database says of the tables: columns, triggers, …"""
    rows = database.execute(database.schema).fetchall()
    return digest("\n".join(sorted(repr(tuple(row)) for row in rows)))


def is_as_created(database: Database, identity: str) -> bool:
    """Tell whether the tables are what they were when the store was made."""
    return identity.rpartition(":")[2] == schema(database)


def _stated(database: Database) -> list[Any] | None:
    """Return what a store says of itself; None where there is none."""
    try:
        found = database.execute("SELECT version, identity, keyed FROM accountant_store").fetchall()
    except Exception as error:
        if database.trouble(error) != "missing":
            raise
        database.rollback()
        return None
    return list(found)
