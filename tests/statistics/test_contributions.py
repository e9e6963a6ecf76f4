"""Contribution bounds in every engine: one answer, and little that a unit can change."""

import math
import random
from collections import defaultdict

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import accountant as ac
from accountant.statistics import bounded_counts, bounded_counts_dask, contributions, keyed_hash

PRIME = 2**31 - 1


def table(seed, rows=3000, units=120, keys=40):
    rng = np.random.default_rng(seed)
    return {
        "unit": rng.integers(-units // 3, units, rows),
        "key": rng.integers(0, keys, rows) ** 2 - 7,
        "value": rng.integers(-40, 160, rows),
    }


def duckdb_frame(columns):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    connection = duckdb.connect()
    frame = pa.table(columns)
    connection.register("rows_of_the_test", frame)
    return connection.sql("select * from rows_of_the_test")


@pytest.fixture(scope="module")
def spark():
    sql = pytest.importorskip("pyspark.sql", reason="PySpark is not installed")
    try:
        session = (
            sql.SparkSession.builder.master("local[2]")
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.ui.enabled", "false")
            .getOrCreate()
        )
    except Exception as error:  # no Java runtime
        pytest.skip(f"PySpark does not start: {type(error).__name__}")
    yield session
    session.stop()


def dask_frame(columns):
    dataframe = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
    return dataframe.from_pandas(pd.DataFrame(columns), npartitions=4)


LOCAL = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "duckdb": duckdb_frame,
    "dask": dask_frame,
}
BOUNDS = (
    {"max_partitions": 3},
    {"max_partitions": 2, "max_per_partition": 2},
    {"max_partitions": 4, "max_per_partition": 3, "value": "value", "between": (-10, 100)},
)


def counted(frame, **named):
    named = {"unit": "unit", "key": "key", "seed": 9, **named}
    call = bounded_counts_dask if type(frame).__module__.startswith("dask") else bounded_counts
    found = call(frame, **named)
    columns = ["key", "count"] + (["sum"] if named.get("value") else [])
    assert list(found.columns if not isinstance(found, pa.Table) else found.column_names) == columns
    lists = [
        list(found[name].to_pylist() if isinstance(found, pa.Table) else found[name])
        for name in columns
    ]
    return {row[0]: tuple(int(each) for each in row[1:]) for row in zip(*lists, strict=True)}


def reference(columns, *, max_partitions, max_per_partition=1, value=None, between=None):
    """Bound the contributions of each unit by loops."""

    def mixed(unit, key, seed):
        import hashlib

        digest = hashlib.sha256(f"accountant contributions {seed}".encode()).digest()
        a, b, c, d = (1 + int.from_bytes(digest[8 * i : 8 * i + 8]) % (PRIME - 1) for i in range(4))
        return (unit % PRIME * a + b) % PRIME * ((key % PRIME * c + d) % PRIME) % PRIME

    rows = defaultdict(lambda: defaultdict(list))
    for unit, key, number in zip(
        *(columns[n].tolist() for n in ("unit", "key", "value")), strict=True
    ):
        rows[unit][key].append(number)
    found = {}
    for unit, by_key in rows.items():
        for key in sorted(by_key, key=lambda k: (mixed(unit, k, 9), k))[:max_partitions]:
            values = by_key[key]
            n = min(len(values), max_per_partition)
            count, total = found.get(key, (0, 0))
            if value is not None:
                clipped = [min(max(v, between[0]), between[1]) for v in values]
                clipped.sort(key=lambda v: (mixed(1, v, 10), v))
                total += sum(clipped[:n])
            found[key] = count + n, total
    return {key: pair if value is not None else pair[:1] for key, pair in found.items()}


@pytest.mark.parametrize("engine", LOCAL)
@pytest.mark.parametrize("bounds", BOUNDS)
def test_every_engine_counts_the_same(engine, bounds):
    columns = table(1)
    assert counted(LOCAL[engine](columns), **bounds) == reference(columns, **bounds)


def test_spark_counts_the_same(spark):
    columns = table(1)
    frame = spark.createDataFrame(pd.DataFrame(columns))
    for bounds in BOUNDS:
        assert counted(frame, **bounds) == reference(columns, **bounds)
    without_a_unit(lambda rows: spark.createDataFrame(pd.DataFrame(rows)), tries=1)


def without_a_unit(make, tries=3):
    for seed in range(tries):
        columns = table(seed, rows=800, units=30, keys=12)
        bounds = BOUNDS[2]
        whole = counted(make(columns), **bounds)
        unit = random.Random(seed).choice(columns["unit"].tolist())
        other = {name: column[columns["unit"] != unit] for name, column in columns.items()}
        less = counted(make(other), **bounds)
        changed = {k for k in whole.keys() | less.keys() if whole.get(k) != less.get(k)}
        assert 1 <= len(changed) <= bounds["max_partitions"]
        for key in changed:
            one, two = whole.get(key, (0, 0)), less.get(key, (0, 0))
            assert 0 <= one[0] - two[0] <= bounds["max_per_partition"]
            assert abs(one[1] - two[1]) <= bounds["max_per_partition"] * 100


@pytest.mark.parametrize("engine", LOCAL)
def test_a_unit_changes_few_keys_and_each_by_little(engine):
    without_a_unit(LOCAL[engine])


ODD_UNITS = [
    *(None, math.nan, 0.5, 1e300, -1e18, 2**53 + 2, -0.0, math.inf),
    *("text", True, b"", 10**40, 2**62, -(2**63)),
]


def require_others_alike(make, columns, bounds, column, odd):
    """Require the same counts with a record more that holds something odd; return the plain."""
    plain = counted(make(columns), **bounds)
    record = {"unit": 10**6, "key": 12345, "value": 7, "order": 3, column: odd}
    more = {name: [*values.tolist(), record[name]] for name, values in columns.items()}
    found = counted(make(more), **bounds)
    assert {k: v for k, v in found.items() if k in plain} == plain
    assert len(found) <= len(plain) + 1
    return plain


@pytest.mark.parametrize("odd", ODD_UNITS, ids=repr)
@pytest.mark.parametrize("column", ["unit", "key", "value"])
def test_an_odd_record_changes_nobody_else_in_pandas(odd, column):
    """Whatever it holds, and whatever it makes of the type of its column."""
    columns = table(4, rows=300, units=20, keys=9)
    require_others_alike(pd.DataFrame, columns, BOUNDS[2], column, odd)


@pytest.mark.long(keep=25)
@pytest.mark.parametrize("odd", [None, "text", 0.5, 2**63, 10**40], ids=repr)
@pytest.mark.parametrize("column", ["unit", "key", "value", "order"])
@pytest.mark.parametrize("large", ["unit", "key", "value", "order", "texts"])
def test_an_odd_record_changes_no_long_integers_and_no_texts_in_pandas(odd, column, large):
    """In columns of NumPy's type: what doubles cannot tell apart is left out of all of them."""
    columns = table(4, rows=300, units=20, keys=9)
    columns["order"] = columns["unit"] * 31 + columns["key"] * 17
    if large == "texts":
        columns |= {name: np.array([f"{n}" for n in columns[name]]) for name in ("unit", "key")}
    else:
        columns[large] = columns[large] % 5 + 2**53 - 3
    bounds = {**BOUNDS[2], "order": "order"}
    assert require_others_alike(pd.DataFrame, columns, bounds, column, odd) or large == "order"


def test_longer_integers_than_64_bits_are_left_out_by_every_engine():
    units = [1, 2**63 - 1, 2**63, 2**64 - 1]
    frame = pl.DataFrame({"unit": pl.Series(units, dtype=pl.UInt64), "key": [5] * 4})
    assert counted(frame, max_partitions=1) == {5: (2,)}
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    for kind in ("UBIGINT", "HUGEINT"):
        values = ", ".join(f"({unit}::{kind}, 5)" for unit in units)
        rows = duckdb.sql(f"SELECT * FROM (VALUES {values}) AS rows(unit, key)")
        assert counted(rows, max_partitions=1) == {5: (2,)}


@pytest.mark.parametrize("odd", [None, 2**62, -(2**62)])
def test_an_odd_record_changes_nobody_else_in_polars(odd):
    columns = table(4, rows=300, units=20, keys=9)
    for column in ("unit", "key"):
        require_others_alike(pl.DataFrame, columns, BOUNDS[0], column, odd)


@pytest.mark.parametrize("engine", LOCAL)
def test_text_is_ordered_by_a_keyed_hash(engine):
    columns = table(2, rows=500, units=30, keys=12)
    text = {"unit": [f"u{u}" for u in columns["unit"]], "key": [f"k{k}" for k in columns["key"]]}
    text["order"] = keyed_hash(text["unit"], text["key"], b"a secret")
    found = counted(LOCAL[engine](text), order="order", max_partitions=2)
    places = defaultdict(set)
    for unit, key, place in zip(text["unit"], text["key"], text["order"], strict=True):
        places[unit].add((place, key))
    wanted = defaultdict(int)
    for pairs in places.values():
        for _, key in sorted(pairs)[:2]:
            wanted[key] += 1
    assert found == {key: (n,) for key, n in wanted.items()}


def test_the_hash_is_keyed_and_does_not_join_texts():
    assert keyed_hash(["ab"], ["c"], b"x") != keyed_hash(["a"], ["bc"], b"x")
    assert keyed_hash(["a"], ["b"], b"x") != keyed_hash(["a"], ["b"], b"y")
    assert 0 <= keyed_hash(["a"], ["b"], b"x")[0] < 2**53


def test_the_seed_chooses_other_keys():
    columns = table(3)
    one = counted(pl.DataFrame(columns), max_partitions=1)
    other = counted(pl.DataFrame(columns), max_partitions=1, seed=10)
    assert one != other
    assert sum(n for (n,) in one.values()) == sum(n for (n,) in other.values())


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"max_partitions": 0}, ac.DomainError, "max_partitions"),
        ({"max_partitions": 1, "max_per_partition": 0}, ac.DomainError, "max_per_partition"),
        ({"max_partitions": 1, "value": "value"}, ac.DomainError, "between"),
        ({"max_partitions": 1, "key": "unit"}, ac.DomainError, "different columns"),
        ({"max_partitions": 1, "unit": 3}, ac.ArgumentTypeError, "unit"),
        ({"max_partitions": 1, "value": "value", "between": (3, 2)}, ac.DomainError, "between"),
        ({"max_partitions": 1, "key": "word"}, ac.ArgumentTypeError, "word"),
    ],
)
def test_refusals(change, error, words):
    columns = {**table(1, rows=5), "word": ["w"] * 5}
    with pytest.raises(error, match=words):
        bounded_counts(pl.DataFrame(columns), **{"unit": "unit", "key": "key", **change})


def test_frames_without_windows_are_named():
    with pytest.raises(ac.UnsupportedError, match="windows"):
        bounded_counts(pa.table(table(1, rows=9)), unit="unit", key="key", max_partitions=1)
    with pytest.raises(ac.ArgumentTypeError, match="narwhals"):
        bounded_counts([1, 2], unit="unit", key="key", max_partitions=1)
    with pytest.raises(ac.UnsupportedError, match="bounded_counts_dask"):
        bounded_counts(dask_frame(table(1, rows=9)), unit="unit", key="key", max_partitions=1)


def test_products_of_residues_are_64_bit_integers():
    assert (contributions.PRIME - 1) ** 2 + contributions.PRIME < 2**63
