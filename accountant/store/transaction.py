"""One turn of writing: rows are appended to the journal, and what follows from them is updated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from accountant.store.chain import Head
from accountant.store.texts import compact, digest

if TYPE_CHECKING:
    from accountant.store.chain import Chain
    from accountant.store.database import Database

__all__ = ["Query", "Transaction"]

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

    def price(self, budget: int, kind: int, cost: str) -> None:
        """Enter what one release of a kind adds to the sums of a budget."""
        self.append("price", {"budget": budget, "kind": kind, "cost": cost})
        self.later(
            "INSERT INTO accountant_prices (budget, kind, cost) VALUES (?, ?, ?)",
            (budget, kind, cost),
        )

    def later(self, sql: str, values: tuple[object, ...]) -> None:
        """Run a statement at the end."""
        self._waiting.append((sql, values))

    def hold(self, held: Sequence[tuple[int, int, int]]) -> None:
        """Add counts, negative ones too, to accounts: (block, kind, count) each."""
        # A negative count would break the constraint before it meets the row that it adds to.
        new = [row for row in held if row[2] > 0]
        back = [row for row in held if row[2] < 0]
        if len(new) == 1:
            self.later(f"{_HOLD} VALUES (?, ?, ?) {_ADD}", new[0])
        elif new:
            self.later(
                f"{_HOLD} SELECT CAST(c0 AS bigint), CAST(c1 AS bigint), CAST(c2 AS bigint)"
                f" FROM {self.database.rows(3)} AS added WHERE true {_ADD}",
                (compact(new),),
            )
        if back:
            self.later(
                "UPDATE accountant_accounts SET held = held + CAST(c2 AS bigint)"
                f" FROM {self.database.rows(3)} AS added"
                " WHERE block = CAST(c0 AS bigint) AND kind = CAST(c1 AS bigint)",
                (compact(back),),
            )

    def settle(self, blocks: Sequence[tuple[int, str, str]]) -> None:
        """Set the relation and the sums of blocks: (block, relation, sums) each."""
        if len(blocks) == 1:
            block, relation, sums = blocks[0]
            self.later(
                "UPDATE accountant_blocks SET relation = ?, sums = ? WHERE id = ?",
                (relation, sums, block),
            )
        elif blocks:
            self.later(
                "UPDATE accountant_blocks SET relation = c1, sums = c2"
                f" FROM {self.database.rows(3)} AS new WHERE id = CAST(c0 AS bigint)",
                (compact(list(blocks)),),
            )

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
