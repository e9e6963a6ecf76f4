"""Neighbours from the rows to the release: an odd unit shows in nothing but what is charged."""

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import accountant as ac
from accountant.statistics import bounded_counts, bounded_counts_dask, release, release_histogram

MECHANISM = ac.SparseHistogram(ac.DiscreteLaplace(1.0), threshold=12.0, max_partitions=2)
ROWS = 600
ODD = {
    "a lone key": ([10**6], [99_999]),
    "many rows": ([10**6] * 500, [7] * 500),
    "many keys": ([10**6] * 300, list(range(50_000, 50_300))),
    "the most common keys": ([10**6] * 4, [0, 1, 4, 9]),
    "negative": ([-(2**53)], [-(2**53)]),
    "large": ([2**62], [2**62]),
    "a row of another unit's": ([0], [99_999]),
}
ODD_VALUES = [None, math.nan, math.inf, 0.5, "text", b"", True, 10**40, (1, 2), pd.NaT]


def rows():
    rng = np.random.default_rng(5)
    unit = rng.integers(1, 200, ROWS).tolist()
    return unit, (rng.integers(0, 8, ROWS) ** 2).tolist()


def pipeline(make, unit, key):
    """Return everything that can be seen of a run, and what reaches the noise."""
    seen, ledger = [], ac.Accountant()

    def still(generator, n, noise):
        return np.zeros(n, np.int64)

    with warnings.catch_warnings(record=True) as caught, pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("always")
        patch.setattr(release, "_noise", still)
        frame = make({"unit": unit, "key": key})
        call = bounded_counts_dask if type(frame).__module__.startswith("dask") else bounded_counts
        try:
            table = call(frame, unit="unit", key="key", max_partitions=2, seed=3)
            counts = dict(zip(list(table["key"]), list(table["count"]), strict=True))
            kept = release_histogram(table["key"], table["count"], MECHANISM, ledger=ledger, rng=8)
            seen.append((repr(kept.keys), [type(k) for k in kept.keys], kept.counts.dtype))
            seen.append(dict(kept.as_dict()))
        except ac.AccountantError as error:
            counts, seen = {}, [type(error), str(error)]
    seen.append(sorted({str(each.message)[:60] for each in caught}))
    seen.append(ledger.epsilon(1e-6))
    return seen, counts


def frames():
    yield "pandas", pd.DataFrame
    yield "polars", lambda columns: pl.DataFrame(columns, strict=False)

    def dask(columns):
        dataframe = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
        return dataframe.from_pandas(pd.DataFrame(columns), npartitions=3)

    yield "dask", dask


@pytest.mark.parametrize(("engine", "make"), list(frames()), ids=[name for name, _ in frames()])
@pytest.mark.parametrize("odd", ODD)
def test_a_unit_more(engine, make, odd):
    unit, key = rows()
    plain, before = pipeline(make, unit, key)
    more_units, more_keys = ODD[odd]
    found, after = pipeline(make, unit + more_units, key + more_keys)
    changed = {k for k in before.keys() | after.keys() if before.get(k) != after.get(k)}
    assert len(changed) <= MECHANISM.max_partitions
    assert all(abs(before.get(k, 0) - after.get(k, 0)) <= 1 for k in changed)
    # All else is the same: types, order, warnings, the ledger.
    assert found[-2:] == plain[-2:]
    if all(before.get(k, 0) < 5 for k in changed):  # far below the threshold
        assert found == plain


@pytest.mark.parametrize("odd", ODD_VALUES, ids=repr)
@pytest.mark.parametrize("place", [0, 300, ROWS])
@pytest.mark.parametrize("column", ["unit", "key"])
def test_a_record_that_is_no_integer(odd, place, column):
    unit, key = rows()
    plain, _ = pipeline(pd.DataFrame, unit, key)
    unit, key = list(unit), list(key)
    unit.insert(place, odd if column == "unit" else 10**6)
    key.insert(place, odd if column == "key" else 99_999)
    found, _ = pipeline(pd.DataFrame, unit, key)
    assert found == plain


@pytest.mark.parametrize("odd", [None, math.nan, 0.5, 10**18], ids=repr)
def test_a_record_that_is_no_integer_in_polars(odd):
    unit, key = rows()
    plain, _ = pipeline(lambda c: pl.DataFrame(c, strict=False), unit, key)
    found, _ = pipeline(lambda c: pl.DataFrame(c, strict=False), [*unit, odd], [*key, 99_999])
    assert found == plain
