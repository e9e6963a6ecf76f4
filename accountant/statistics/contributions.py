"""Bounds on what each user adds to counts by key, computed where the rows are."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from accountant import checks
from accountant.errors import ArgumentTypeError, DomainError, UnsupportedError

# Products of two residues modulo it are 64-bit integers in every engine.
PRIME = 2**31 - 1
# Integers below it are doubles, into which pandas turns a column with a missing value.
DOUBLES = 2**53
# What a 64-bit integer holds; a column may hold longer ones.
LARGEST = 2**63 - 1
# Names of columns that are added, and taken away again.
ADDED = "_accountant_"


@dataclass(frozen=True, kw_only=True)
class _Bounds:
    """The arguments of a bounded count."""

    unit: str
    key: str
    max_partitions: int
    max_per_partition: int = 1
    order: str | None = None
    value: str | None = None
    between: tuple[int, int] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        columns = {name: getattr(self, name) for name in ("unit", "key", "order", "value")}
        given = {name: each for name, each in columns.items() if each is not None}
        for name, column in ({"unit": self.unit, "key": self.key} | given).items():
            checks.instance(name, column, str, "the name of a column")
        if len(set(given.values())) < len(given):
            raise DomainError("unit, key, order and value must be different columns")
        if (self.value is None) is not (self.between is None):
            raise DomainError("between must be given with a value, and only then: its two ends")
        if self.between is not None:
            low, high = checks.sequence("between", self.between)
            least = checks.integer("between", low, -(2**31), 2**31)
            checks.integer("between", high, least, 2**31)
        checks.integer("max_partitions", self.max_partitions, 1)
        checks.integer("max_per_partition", self.max_per_partition, 1, 2**31)
        checks.integer("seed", self.seed, 0)


def bounded_counts(
    rows: Any,
    *,
    unit: str,
    key: str,
    max_partitions: int,
    max_per_partition: int = 1,
    order: str | None = None,
    value: str | None = None,
    between: tuple[int, int] | None = None,
    seed: int = 0,
) -> Any:
    """Count rows by key, each unit in at most so many keys and so many rows a key.

    Parameters
    ----------
    rows : DataFrame or LazyFrame of pandas, Polars, DuckDB or PySpark
        One row an event; anything that narwhals reads.
    unit, key : str, keyword only
        The columns that say whom a row belongs to and under which key it counts: integers, or any
        type with ``order``. Rows without one of them are left out, and so are integers of 2**53 and
        more in a column of NumPy's type (pandas' ``int64``): one missing value elsewhere would make
        it a column of doubles, which cannot tell them apart. pandas' ``Int64``, Polars, DuckDB and
        PySpark keep all of 64 bits.
    max_partitions : int, keyword only
        The largest number of keys of one unit, >= 1.
    max_per_partition : int, keyword only
        The largest number of rows of one unit under one key, >= 1.
    order : str, optional, keyword only
        A column by which a unit's keys are chosen, the least first: a function of unit and key, as
        :func:`keyed_hash` makes one. None takes a hash of the two integers.
    value : str, optional, keyword only
        A column of integers that is summed, too, each clipped to ``between``.
    between : (int, int), optional, keyword only
        The ends that values are clipped to; needed with ``value``.
    seed : int, keyword only
        Of the hash. It need not be secret: any choice among a unit's own rows is sound.

    Returns
    -------
    DataFrame
        Columns ``key``, ``count`` and with a value ``sum``, one row a key that is present: of
        pandas or Polars as the rows were, of Arrow from DuckDB and PySpark.

    Raises
    ------
    UnsupportedError
        narwhals is not installed, or the frame is Dask's: see :func:`bounded_counts_dask`.
    ArgumentTypeError, DomainError
        An argument, or the type of a column.

    Notes
    -----
    *Guarantee.* Which rows stay is a function of a unit's own rows, so that two tables which
    differ in one unit have counts that differ in at most ``max_partitions`` keys, each by at most
    ``max_per_partition`` (docs/theorems_statistics.md, Theorem N13); a sum by at most
    ``max_per_partition`` times the larger end. The counts are the same in every engine.

    *Algorithm.* Two group-bys and a window, or two, which the engine runs.
    """
    bounds = _Bounds(
        unit=unit, key=key, max_partitions=max_partitions, max_per_partition=max_per_partition,
        order=order, value=value, between=between, seed=seed,
    )  # fmt: skip
    frame = _frame(rows)
    try:
        return frame_counts(frame, bounds).to_native()
    except NotImplementedError as error:
        raise UnsupportedError(
            f"rows must be of an engine with windows, as Polars and DuckDB; a {type(rows).__name__}"
            " has none. Both of them read what it holds"
        ) from error


def bounded_counts_dask(rows: Any, **named: Any) -> Any:
    """Count rows by key as :func:`bounded_counts` does, in a DataFrame of Dask.

    Dask has no windows: the rows are shuffled by unit, so that each part has all rows of its units
    and is bounded by itself; the counts of the parts are added up.

    Parameters
    ----------
    rows : dask.dataframe.DataFrame
        One row an event.
    **named
        ``unit``, ``key``, ``max_partitions`` and the others of :func:`bounded_counts`.

    Returns
    -------
    pandas.DataFrame
        As there.
    """
    bounds = _Bounds(**named)
    unit, key = bounds.unit, bounds.key
    names = [name for name in (unit, key, bounds.order, bounds.value) if name is not None]
    # A missing unit has no place in a shuffle.
    parts = rows[names].dropna(subset=[unit, key]).shuffle(on=unit).to_delayed()
    dask: Any = import_module("dask")
    count = dask.delayed(_pandas_counts)
    counted = dask.compute(*[count(part, bounds) for part in parts])
    together = import_module("pandas").concat([part for part in counted if len(part)] or counted)
    return together.groupby(key, as_index=False).sum()


def keyed_hash(units: Iterable[object], keys: Iterable[object], secret: bytes) -> list[int]:
    """Return a hash of each pair of a unit and a key, by BLAKE2: the column ``order`` of text.

    Parameters
    ----------
    units, keys : iterable
        Of one length; hashed as their texts.
    secret : bytes
        At most 64 bytes; the same on every machine.

    Returns
    -------
    list of int
        In [0, 2**53), so that doubles hold them.
    """
    found = []
    for pair in zip(units, keys, strict=True):
        text = b"".join(
            len(part).to_bytes(8, "big") + part for part in (str(each).encode() for each in pair)
        )
        digest = hashlib.blake2b(text, digest_size=8, key=secret).digest()
        found.append(int.from_bytes(digest, "big") >> 11)
    return found


def frame_counts(frame: Any, bounds: _Bounds) -> Any:
    """Return the counts of a narwhals frame, collected."""
    import narwhals as nw

    rounds = {name for name in frame.columns if _rounds(frame, name)}
    lazy = _whole_rows(_of_one_type(frame, bounds).lazy(), bounds, rounds)
    unit, key = bounds.unit, bounds.key
    n, total, place = ADDED + "n", ADDED + "sum", ADDED + "place"
    wanted = [nw.len().alias(n)]
    if bounds.value is not None:
        lazy = _few_rows(lazy, bounds)
        wanted.append(nw.col(bounds.value).sum().alias(total))
    if bounds.order is not None:
        wanted.append(nw.col(bounds.order).min().alias(place))
    pairs = lazy.group_by(unit, key).agg(*wanted)
    if bounds.order is None:
        pairs = pairs.with_columns(_hash(nw.col(unit), nw.col(key), bounds.seed).alias(place))
    rank = nw.col(n).cum_count().over(unit, order_by=[place, key])
    kept = pairs.with_columns(rank.alias(ADDED + "rank"))
    kept = kept.filter(nw.col(ADDED + "rank") <= bounds.max_partitions)
    counts = [nw.col(n).clip(1, bounds.max_per_partition).alias(n)]
    sums = [nw.col(n).sum().alias("count")]
    if bounds.value is not None:
        sums.append(nw.col(total).sum().alias("sum"))
    found = kept.with_columns(*counts).group_by(key).agg(*sums)
    # Engines differ in the types of their sums.
    names = ["count", "sum"][: len(sums)]
    found = found.with_columns(*(nw.col(name).cast(nw.Int64) for name in names)).collect()
    if bounds.order is not None and frame.collect_schema().get(key) == nw.Object:
        native = found.to_native()
        native[key] = native[key].map(_as_it_was).astype(object)
    return found


def _of_one_type(frame: Any, bounds: _Bounds) -> Any:
    """Give columns of pandas that hold anything one type: integers, or texts that stand for them.

    A single odd record makes a column such a one, and must not change the others.
    """
    import narwhals as nw

    schema = frame.collect_schema()
    for name in (bounds.unit, bounds.key, *filter(None, (bounds.order, bounds.value))):
        if schema.get(name) == nw.Object:
            both = bounds.order is not None and name in (bounds.unit, bounds.key)
            values = [_of_object(each, both) for each in frame[name].to_list()]
            kept = [each for each in values if each is not None]
            frame = frame.filter([each is not None for each in values])
            dtype: Any = nw.String if both else nw.Int64
            frame = frame.with_columns(
                nw.new_series(name, kept, dtype, backend=frame.implementation)
            )
    return frame


def _of_object(value: object, both: bool) -> int | str | None:
    """Return an integer, or in a column of texts, too, a text of the same order; None to drop."""
    if type(value) is str:
        return "s" + value if both else None
    if type(value) is float and value.is_integer():  # of a column that had a missing value before
        value = int(value)
    if type(value) is not int or not -DOUBLES < value < DOUBLES:
        return None
    return f"i{value + DOUBLES:017d}" if both else value


def _as_it_was(text: str) -> int | str:
    """Return the key that :func:`_of_object` made a text of."""
    return text[1:] if text[0] == "s" else int(text[1:]) - DOUBLES


def _rounds(frame: Any, name: str) -> bool:
    """Return whether a missing value in one row would round the integers of the others."""
    native = frame.to_native()
    kind = native.dtypes[name] if frame.implementation.is_pandas_like() else None
    return type(kind).__module__.startswith("numpy")


def _whole_rows(lazy: Any, bounds: _Bounds, rounds: Collection[str]) -> Any:
    """Keep the rows that have a unit, a key and a value, as 64-bit integers where they are such.

    Each row by itself: a missing value in one turns a column of pandas into floats, an odd one its
    integers into unsigned ones.
    """
    import narwhals as nw

    schema = lazy.collect_schema()
    names = [bounds.unit, bounds.key, *filter(None, (bounds.order, bounds.value))]
    lazy = lazy.select(*dict.fromkeys(names))
    for name in names:
        kind = schema[name]
        lazy = lazy.filter(~nw.col(name).is_null())
        column = nw.col(name)
        if kind.is_float() or (kind.is_integer() and name in rounds):
            lazy = lazy.filter((column > -DOUBLES) & (column < DOUBLES))
        elif kind.is_unsigned_integer():
            lazy = lazy.filter(column <= LARGEST)
        elif kind == nw.Int128:
            lazy = lazy.filter((column >= -LARGEST) & (column <= LARGEST))
        if kind.is_float():
            lazy = lazy.filter(column == column.floor())
        if kind.is_float() or kind.is_integer():
            lazy = lazy.with_columns(nw.col(name).cast(nw.Int64))
        elif name == bounds.value or bounds.order is None:
            raise ArgumentTypeError(
                f"{name} must be a column of integers; text needs a column to order by, which"
                " keyed_hash makes"
            )
    return lazy


def _few_rows(lazy: Any, bounds: _Bounds) -> Any:
    """Clip the values, and keep at most so many rows of a unit under a key, by a hash of them."""
    import narwhals as nw

    assert bounds.value is not None
    assert bounds.between is not None
    value, place, rank = nw.col(bounds.value), ADDED + "place", ADDED + "rank"
    lazy = lazy.with_columns(value.clip(*bounds.between))
    # Rows of one hash and value are alike.
    lazy = lazy.with_columns(_hash(nw.lit(1, nw.Int64), value, bounds.seed + 1).alias(place))
    over = value.cum_count().over(bounds.unit, bounds.key, order_by=[place, bounds.value])
    lazy = lazy.with_columns(over.alias(rank))
    return lazy.filter(nw.col(rank) <= bounds.max_per_partition).drop(place, rank)


def _hash(unit: Any, key: Any, seed: int) -> Any:
    """Return a hash in [0, PRIME) of two integers, by arithmetic that every engine has."""
    digest = hashlib.sha256(f"accountant contributions {seed}".encode()).digest()
    a, b, c, d = (1 + int.from_bytes(digest[8 * i : 8 * i + 8]) % (PRIME - 1) for i in range(4))

    def residue(column: Any) -> Any:
        # The remainder of a negative number is negative in some engines.
        return (column % PRIME + PRIME) % PRIME

    first = (residue(unit) * a + b) % PRIME
    second = (residue(key) * c + d) % PRIME
    return (first * second) % PRIME


def _pandas_counts(part: Any, bounds: _Bounds) -> Any:
    import narwhals as nw

    return frame_counts(nw.from_native(part), bounds).to_native()


def _frame(rows: Any) -> Any:
    """Return the rows as a frame of narwhals."""
    try:
        import narwhals as nw
    except ImportError as error:
        raise UnsupportedError(
            "bounded_counts needs narwhals: pip install dp-accountant[statistics]"
        ) from error
    if type(rows).__module__.startswith("dask"):
        raise UnsupportedError("a frame of Dask has no windows; use bounded_counts_dask")
    try:
        return nw.from_native(rows)
    except TypeError as error:
        raise ArgumentTypeError(
            f"rows must be a frame that narwhals reads; got a {type(rows).__name__}"
        ) from error
