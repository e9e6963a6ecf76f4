"""Counts and sums by keys that are not known in advance: bound contributions, draw, charge.

``contributions`` bounds what each user adds, where the rows are: in pandas, Polars, DuckDB or
PySpark by narwhals, in Dask by a function of its own. ``release`` draws the noise of a sparse
histogram, drops the keys below its threshold and charges a ledger; it bounds records that belong
to several people, too.
"""

from accountant.statistics.contributions import bounded_counts, bounded_counts_dask, keyed_hash
from accountant.statistics.release import (
    FixedPlan,
    HistogramRelease,
    bound_owners,
    release_histogram,
)

__all__ = [
    "FixedPlan",
    "HistogramRelease",
    "bound_owners",
    "bounded_counts",
    "bounded_counts_dask",
    "keyed_hash",
    "release_histogram",
]
