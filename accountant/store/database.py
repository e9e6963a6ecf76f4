"""What the two databases have in common, and the little SQL in which they differ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeAlias

from accountant.store.texts import compact

# A statement and its values.
Query: TypeAlias = "tuple[str, tuple[object, ...]]"

# What an error of the database means: another has the turn; the connection was lost; a table is not
# there; a constraint on counts was violated; anything else that the database or its driver says.
Trouble: TypeAlias = 'Literal["busy", "lost", "missing", "count", "other"]'


class Database(ABC):
    """One connection. SQL is written with ``?``, and both databases run the same text.

    Attributes
    ----------
    members : str
        A subquery: the strings of one JSON list. It takes a placeholder.
    now : str
        An expression: microseconds since 1970 by the database's clock.
    integer : str
        The type of integers of 64 bits.
    bytewise : str
        What makes a column of text sort by its bytes.
    schema : str
        A query: all that the database knows of the store's tables.
    """

    members: str
    now: str
    integer: str
    bytewise: str
    schema: str

    @abstractmethod
    def rows(self, columns: int) -> str:
        """Return a subquery, the rows of a JSON list of lists: columns c0, c1, …, as text."""

    def among(self, column: str, texts: Sequence[str]) -> Query:
        """Return a condition, that a column has one of some texts, and its values."""
        if len(texts) <= 2:  # as of a charge to one block, and perhaps to everyone's
            return f"{column} IN ({', '.join('?' * len(texts))})", tuple(texts)
        return f"{column} IN {self.members}", (compact(list(texts)),)

    @abstractmethod
    def connect(self, deadline: float) -> None:
        """Open the connection, unless it is open; what follows waits until then at most.

        ``deadline`` is one of ``time.monotonic``.
        """

    @abstractmethod
    def begin(self) -> None:
        """Begin to write; an error of trouble "busy" where others do until the deadline."""

    @abstractmethod
    def look(self) -> None:
        """Begin to read one state of the database, whatever others write meanwhile."""

    @abstractmethod
    def execute(self, sql: str, values: tuple[object, ...] = ()) -> Any:
        """Run one statement; fetch from what is returned after the batch, if there is one."""

    @abstractmethod
    def batch(self) -> AbstractContextManager[Any]:
        """Send the statements of a ``with`` block at once, where that saves time."""

    @abstractmethod
    def commit(self) -> None:
        """Make what was written last, on the disk."""

    @abstractmethod
    def settled(self) -> None:
        """Undo, and wait until what was read is on the disk, where it may be seen before."""

    @abstractmethod
    def may_have_written(self) -> bool:
        """Tell whether the last error leaves open what became of a commit."""

    @abstractmethod
    def rollback(self) -> None:
        """Undo what was written since ``begin``; never fails."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection; ``connect`` makes another. Never fails."""

    @abstractmethod
    def abandon(self) -> None:
        """Let go of a connection that is another process's, without a word to the database."""

    @abstractmethod
    def trouble(self, error: BaseException) -> Trouble | None:
        """Return what an error means; None for one that is not the database's."""
