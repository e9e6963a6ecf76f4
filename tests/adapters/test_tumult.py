"""Budgets and noise of the real Tumult Analytics as mechanisms."""

import math

import pytest

import accountant as ac

analytics = pytest.importorskip("tmlt.analytics", reason="Tumult Analytics is not installed")
from accountant.adapters.tumult import from_budget, from_noise_info  # noqa: E402


@pytest.fixture(scope="module")
def rows():
    import pandas as pd
    from pyspark.sql import SparkSession

    try:
        spark = (
            SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "1")
            .getOrCreate()
        )
    except Exception as error:  # no Java runtime
        pytest.skip(f"PySpark does not start: {type(error).__name__}")
    table = {"id": list("abcd"), "k": list("xyxz"), "v": [1.0, 2.0, 3.0, 4.0]}
    yield spark.createDataFrame(pd.DataFrame(table))
    spark.stop()


def noise_of(rows, budget, query, change=None):
    protected = change or analytics.AddMaxRows(2)
    session = analytics.Session.from_dataframe(budget, "t", rows, protected_change=protected)
    return session._noise_info(query, budget)


def grouped():
    keys = analytics.KeySet.from_dict({"k": ["x", "y"]})
    return analytics.QueryBuilder("t").groupby(keys)


def test_budgets():
    assert from_budget(analytics.PureDPBudget(3)) == ac.PureDP(3.0)
    assert from_budget(analytics.RhoZCDPBudget(0.5)) == ac.mechanisms.ZCDP(0.5)
    found = from_budget(analytics.ApproxDPBudget(3, 1e-6))
    assert isinstance(found, ac.ApproximateDP)
    assert found.epsilon0 == 3.0
    assert 1e-6 <= found.delta0 <= 1.0000000001e-6
    with pytest.raises(ac.UnsupportedError, match="budget"):
        from_budget(3.0)
    with pytest.raises(ac.DomainError, match="finite"):
        from_budget(analytics.PureDPBudget(float("inf")))


def test_noise_has_the_cost_of_its_budget(rows):
    """Two rows of one unit: in one group twice, or in two groups."""
    info = noise_of(rows, analytics.PureDPBudget(3), grouped().count())
    laplace = from_noise_info(info, changes=[2])
    assert laplace.epsilon(0.0) == pytest.approx(3.0)
    info = noise_of(rows, analytics.RhoZCDPBudget(1.0), grouped().count())
    gaussian = from_noise_info(info, changes=[2])
    assert gaussian.rho() == pytest.approx(1.0)
    assert gaussian.epsilon(1e-6) < ac.mechanisms.ZCDP(1.0).epsilon(1e-6)
    info = noise_of(rows, analytics.RhoZCDPBudget(1.0), grouped().sum("v", 0, 3))
    assert from_noise_info(info, changes=[6.0]).rho() == pytest.approx(1.0)
    info = noise_of(rows, analytics.PureDPBudget(3), grouped().average("v", 0, 3))
    assert len(info) == 2
    assert from_noise_info(info, changes=[3.0, 2]).epsilon(0.0) == pytest.approx(3.0)


def test_groups_of_a_unit_with_identifiers(rows):
    query = (
        analytics.QueryBuilder("t")
        .enforce(analytics.MaxGroupsPerID("k", 3))
        .enforce(analytics.MaxRowsPerGroupPerID("k", 2))
        .groupby(analytics.KeySet.from_dict({"k": ["x", "y"]}))
        .count()
    )
    budget = analytics.RhoZCDPBudget(1.0)
    info = noise_of(rows, budget, query, analytics.AddRowsWithID("id"))
    found = from_noise_info(info, changes=[2], max_groups=3)
    assert found == 3 * ac.DiscreteGaussian(math.sqrt(6.0), sensitivity=2)
    assert found.rho() == pytest.approx(1.0)


def test_get_groups_tells_no_noise(rows):
    query = analytics.QueryBuilder("t").get_groups(["k"])
    info = noise_of(rows, analytics.ApproxDPBudget(3, 1e-6), query)
    with pytest.raises(ac.UnsupportedError, match="get_groups"):
        from_noise_info(info, changes=[])
    # Its δ for scale 2, threshold 20 and four rows is 1.3771e-3: valid, and far above the truth.
    exact = ac.SparseHistogram(ac.DiscreteLaplace(2.0), threshold=20.0, max_rows=4)
    assert exact.delta(2.0) == pytest.approx(2.0881e-4, rel=1e-4)


def test_changes_must_be_stated_for_each_noise(rows):
    info = noise_of(rows, analytics.PureDPBudget(3), grouped().count())
    with pytest.raises(ac.DomainError, match="changes"):
        from_noise_info(info, changes=[1, 2])
