"""One turn of writing: rows are appended to the journal, and what follows from them is updated."""

from __future__ import annotations

from typing import Any

from accountant.store.chain import Chain, Head
from accountant.store.database import Database
from accountant.store.texts import compact, digest

_HOLD = "INSERT INTO accountant_accounts (block, kind, held)"
_ADD = "ON CONFLICT (block, kind) DO UPDATE SET held = accountant_accounts.held + excluded.held"

# A statement and its values.
Query = tuple[str, tuple[object, ...]]


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

    def enter(self, table: str, action: str, text: str, **body: Any) -> int:
        """Append a row for a text that the store has not seen, and return the number it has."""
        number = self.append(action, body)
        self.later(
            f"INSERT INTO accountant_{table} (id, digest, text) VALUES (?, ?, ?)",
            (number, digest(text), text),
        )
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
