"""The public description of a table, its columns, their values and ranges; what draws new ones.

Everything a record holds is mapped into the domain one record at a time, by rules that look at
nothing else, so a record never changes how another is read, and never raises.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant.errors import ArgumentTypeError, DomainError
from accountant.learn.account import Released
from accountant.learn.validation import labels_among, numbers
from accountant.mechanisms.base import Mechanism

Codes: TypeAlias = "NDArray[np.int64]"

MOST_CELLS = 10**6  # The table of a pair of columns has no more cells: it is held in memory.


@dataclass(frozen=True)
class Category:
    """A column with one of some values.

    Parameters
    ----------
    values : sequence
        All values, at least two, hashable and different, known without the data. Whatever is not
        among them, a missing value for instance, is read as the last one.
    """

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        given: object = self.values
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise ArgumentTypeError(f"values must be a sequence; got {given!r:.60}")
        values = tuple(given)
        if not all(isinstance(value, Hashable) for value in values):
            raise ArgumentTypeError("values must be hashable, such as words and numbers")
        if len(values) < 2 or len(set(values)) != len(values):
            raise DomainError(f"values must be at least two different ones; got {values!r:.60}")
        object.__setattr__(self, "values", values)

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.values)

    @property
    def width(self) -> int:
        """The number of features: an indicator of each value."""
        return len(self.values)

    def encode(self, column: Any) -> Codes:
        """Return the positions of a column's entries among the values."""
        places = labels_among(column, self.values).astype(np.int64)
        return np.where(places < 0, len(self.values) - 1, places)

    def decode(self, codes: Codes, generator: np.random.Generator) -> Array:
        """Return the values at positions."""
        values = np.empty(len(self.values), object)
        values[:] = self.values
        chosen = values[codes]
        kinds = {type(value) for value in self.values}
        return np.array(chosen.tolist()) if kinds <= {str} or kinds <= {int} else chosen

    def features(self, column: object) -> FloatArray:
        """Return indicators, shape (n, size)."""
        return np.asarray(np.eye(self.size)[self.encode(column)])

    def read(self, features: FloatArray) -> Codes:
        """Return the position of the largest indicator."""
        return np.asarray(features.argmax(axis=1), dtype=np.int64)


@dataclass(frozen=True)
class Numeric:
    """A column of numbers, in bins.

    Parameters
    ----------
    edges : sequence of float
        Ends of the bins, increasing, finite, at least two, known without the data. Numbers outside
        are moved to the nearer end; what is no number counts as the lower end.
    """

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        given: object = self.edges
        if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray)):
            raise ArgumentTypeError(f"edges must be numbers; got {given!r:.60}")
        try:
            edges = tuple(float(edge) for edge in given)
        except (TypeError, ValueError):
            raise ArgumentTypeError(f"edges must be numbers; got {self.edges!r:.60}") from None
        rising = all(low < high for low, high in pairwise(edges))
        if not (len(edges) >= 2 and rising and math.isfinite(edges[-1] - edges[0])):
            raise DomainError(
                f"edges must be finite and increasing, two or more; got {edges!r:.60}"
            )
        object.__setattr__(self, "edges", edges)

    @property
    def size(self) -> int:
        """The number of bins."""
        return len(self.edges) - 1

    @property
    def width(self) -> int:
        """One feature: the number, scaled to [0, 1]."""
        return 1

    def encode(self, column: object) -> Codes:
        """Return the bins of a column's entries."""
        inner = np.array(self.edges[1:-1])
        return np.asarray(np.digitize(self._numbers(column), inner), dtype=np.int64)

    def decode(self, codes: Codes, generator: np.random.Generator) -> Array:
        """Return numbers drawn uniformly from the bins."""
        ends = np.array(self.edges)
        low, high = ends[codes], ends[codes + 1]
        return np.asarray(low + (high - low) * generator.random(len(codes)))

    def features(self, column: object) -> FloatArray:
        """Return the numbers scaled to [0, 1], shape (n, 1)."""
        low, high = self.edges[0], self.edges[-1]
        return ((self._numbers(column) - low) / (high - low))[:, None]

    def read(self, features: FloatArray) -> FloatArray:
        """Return the numbers that features stand for."""
        low, high = self.edges[0], self.edges[-1]
        return np.asarray(low + (high - low) * np.clip(features[:, 0], 0.0, 1.0))

    def _numbers(self, column: Any) -> FloatArray:
        low, high = self.edges[0], self.edges[-1]
        whole = isinstance(column, np.ndarray) and column.dtype.kind in "fiub"
        found = numbers("column", column if whole else list(column), ())
        return np.asarray(np.clip(np.where(np.isnan(found), low, found), low, high))


Column: TypeAlias = Category | Numeric


@dataclass(frozen=True)
class Domain:
    """The columns of a table, by name.

    Parameters
    ----------
    columns : mapping of str to Category or Numeric
        In order; known without the data.

    Examples
    --------
    >>> domain = Domain({"age": Numeric((0, 18, 65, 120)), "sex": Category(("f", "m"))})
    >>> domain.encode({"age": [70, float("nan")], "sex": ["f", "?"]})
    array([[2, 0],
           [0, 1]])
    """

    columns: Mapping[str, Column]

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping):
            raise ArgumentTypeError("columns must be a mapping of names to Category or Numeric")
        if not self.columns:
            raise DomainError("columns must name at least one column; got none")
        for name, column in self.columns.items():
            checks.instance(
                f"column {name!r}", column, (Category, Numeric), "a Category or a Numeric"
            )
        object.__setattr__(self, "columns", dict(self.columns))

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self.columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values or bins each column has."""
        return tuple(column.size for column in self.columns.values())

    def index(self, name: str) -> int:
        """Return the position of a column."""
        if name not in self.columns:
            raise DomainError(f"there is no column {name!r}; there are {', '.join(self.names)}")
        return self.names.index(name)

    def encode(self, table: object) -> Codes:
        """Return a table as positions of values and bins, shape (n, columns).

        Parameters
        ----------
        table : mapping of str to sequence, or ndarray of shape (n, columns)
            Columns of equal length; columns that are not in the domain are left out.
        """
        found = self._take(table)
        codes = [column.encode(found[name]) for name, column in self.columns.items()]
        return np.column_stack(codes) if len(codes[0]) else np.zeros((0, len(codes)), np.int64)

    def decode(self, codes: Codes, generator: np.random.Generator) -> dict[str, Array]:
        """Return a table of values, numbers drawn uniformly from their bins."""
        return {
            name: column.decode(codes[:, i], generator)
            for i, (name, column) in enumerate(self.columns.items())
        }

    def features(self, table: object) -> FloatArray:
        """Return indicators of values and scaled numbers, shape (n, total width)."""
        found = self._take(table)
        return np.hstack([column.features(found[name]) for name, column in self.columns.items()])

    def read(self, features: FloatArray, generator: np.random.Generator) -> dict[str, Array]:
        """Return the table that features stand for."""
        table: dict[str, Array] = {}
        start = 0
        for name, column in self.columns.items():
            part = features[:, start : start + column.width]
            start += column.width
            found = column.read(part)
            table[name] = (
                column.decode(found.astype(np.int64), generator)
                if isinstance(column, Category)
                else found
            )
        return table

    def _take(self, table: object) -> dict[str, Any]:
        if isinstance(table, np.ndarray):
            if table.ndim != 2 or table.shape[1] != len(self.columns):
                # The number of rows is private, and so are the rows.
                raise DomainError(
                    f"table must have shape (n, {len(self.columns)}); got"
                    f" ({', '.join(['n', *map(str, table.shape[1:])])})"
                )
            return {name: table[:, i] for i, name in enumerate(self.columns)}
        if not isinstance(table, Mapping):
            raise ArgumentTypeError(
                "table must be a mapping of names to columns, or an array;"
                f" got a {type(table).__name__}"
            )
        missing = [name for name in self.columns if name not in table]
        if missing:
            raise DomainError(f"table must have the columns of the domain; missing: {missing}")
        found = {name: table[name] for name in self.columns}
        for name, column in found.items():
            if isinstance(column, str) or not hasattr(column, "__len__"):
                raise ArgumentTypeError(
                    f"column {name!r} must be one-dimensional; got a {type(column).__name__}"
                )
        wide = [name for name, column in found.items() if getattr(column, "ndim", 1) != 1]
        if wide:
            # Its second column would be read as the next one of the domain.
            raise DomainError(f"columns must have one dimension; these do not: {wide}")
        lengths = {len(column) for column in found.values()}
        if len(lengths) != 1:
            raise DomainError("columns must have one length; some are longer than others")
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Synthesis(Released, ABC):
    """A source of synthetic records with a guarantee.

    Attributes
    ----------
    mechanism : Mechanism
        What the run released.
    ledger : Accountant
        The ledger given, or the run's own, with the mechanism charged.
    epsilon, delta : float
        The guarantee of everything in the ledger when the run ended.
    run_epsilon : float
        The ε of this run alone, at ``delta``.
    private : bool
        False when noise came from a known seed.
    """

    mechanism: Mechanism

    @abstractmethod
    def _draw(self, n: int, generator: np.random.Generator) -> dict[str, Array]:
        """Draw a table of ``n`` records."""

    def sample(self, n: int, *, seed: int | None = None) -> dict[str, Array]:
        """Draw a table of ``n`` records; post-processing, as often as one likes.

        Parameters
        ----------
        n : int
            The number of records, which must not be the private one unless that is public.
        seed : int, optional
            For the same table again; it has no part in the guarantee.
        """
        count = checks.integer("n", n, 0, 10**8)
        if seed is not None:
            checks.integer("seed", seed, 0)
        return self._draw(count, np.random.default_rng(seed))
