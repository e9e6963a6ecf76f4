"""The release of a sparse histogram: charge first, the law drawn, nothing of a dropped key."""

import datetime
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import binomtest

import accountant as ac
from accountant.noise import SecureGenerator
from accountant.statistics import FixedPlan, HistogramRelease, release, release_histogram

MECHANISM = ac.SparseHistogram(ac.DiscreteGaussian(3.0), threshold=20.0, max_partitions=2)


def run(keys, counts, mechanism=MECHANISM, **named):
    named.setdefault("ledger", ac.Accountant())
    named.setdefault("rng", 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return release_histogram(keys, counts, mechanism, **named)


@pytest.fixture
def silent(monkeypatch):
    """Take the noise away, to see what else depends on the data."""
    monkeypatch.setattr(release, "_noise", lambda generator, n, noise: np.zeros(n, np.int64))


def test_every_kind_of_column_gives_the_same(silent):
    keys, counts = ["b", "a", "rare"], [30, 40, 1]
    columns = [
        (keys, counts),
        (np.array(keys), np.array(counts)),
        (pd.Series(keys), pd.Series(counts)),
        (pl.Series(keys), pl.Series(counts, dtype=pl.UInt32)),
        (pa.array(keys), pa.array(counts)),
        (pa.chunked_array([keys]), pa.chunked_array([counts])),
        (dict(zip(keys, counts, strict=True)), None),
    ]
    for one, other in columns:
        found = run(one, other)
        assert found.keys == ("a", "b")
        assert found.counts.tolist() == [40, 30]
        assert found.as_dict() == {"a": 40, "b": 30}
        assert isinstance(found, HistogramRelease)


def test_it_charges_before_it_draws():
    ledger = ac.Accountant(budget=ac.Budget(0.01, 1e-9, filter="non-adaptive"))
    generator = SecureGenerator(7)
    state = generator.words(1)
    with pytest.raises(ac.BudgetExceeded):
        run(["a"], [50], ledger=ledger, rng=generator)
    assert generator.words(1) == SecureGenerator(7).words(2)[1:], state
    paid = ac.Accountant()
    run(["a"], [50], ledger=paid)
    assert paid.epsilon(1e-6) == MECHANISM.epsilon(1e-6)
    assert len(paid.history) == 1


@pytest.mark.parametrize(
    "noise", [ac.DiscreteGaussian(3.3), ac.DiscreteLaplace(2.7)], ids=["gaussian", "laplace"]
)
def test_the_law_that_is_drawn(noise):
    """A lone user is shown as often as the account says; a larger count has the noise's law."""
    n = 60_000
    mechanism = ac.SparseHistogram(noise, threshold=6.0)
    lone = run(list(range(n)), np.ones(n, np.int64), mechanism)
    q = mechanism.pairs()[0].infinite_mass
    assert binomtest(len(lone.keys), n, q).pvalue > 1e-6
    large = run(list(range(n)), np.full(n, 1000), mechanism)
    assert len(large.keys) == n
    values = large.counts - 1000
    table = (noise.pairs()[0]).loss_atoms
    assert table is not None
    for x in range(-4, 5):
        chance = _mass(noise, x)
        assert binomtest(int((values == x).sum()), n, chance).pvalue > 1e-6


def _mass(noise, x):
    if isinstance(noise, ac.DiscreteLaplace):
        return math.tanh(0.5 / noise.scale) * math.exp(-abs(x) / noise.scale)
    s = noise.noise_multiplier
    total = sum(math.exp(-0.5 * (y / s) ** 2) for y in range(-60, 61))
    return math.exp(-0.5 * (x / s) ** 2) / total


ODD_KEYS = [
    None,
    math.nan,
    np.nan,
    -0.0,
    1e300,
    10**30,
    "",
    "z" * 10_000,
    "\x00",
    b"bytes",
    (1, None),
    (),
    True,
    datetime.date(2020, 1, 1),
    np.datetime64("NaT"),
    np.float32(0.5),
    frozenset(),
    2**63,
    -(2**63),
]


@pytest.mark.parametrize("odd", ODD_KEYS, ids=repr)
@pytest.mark.parametrize("place", [0, 2])
def test_nothing_of_a_dropped_key_shows(silent, odd, place):
    keys, counts = ["b", "a", 3, 2, 10], [30, 40, 25, 26, 27]
    plain = run(keys, counts)
    more, larger = list(keys), list(counts)
    more.insert(place, odd)
    larger.insert(place, 1)
    assert repr(run(more, larger)) == repr(plain)
    # Missing values of a column turn integers into floats, and must not show in the others.
    if odd is None:
        numbers = pd.Series([3, 2, 10])
        with_missing = pd.Series([3, 2, None, 10])
        one = run(numbers, pd.Series([25, 26, 27]))
        other = run(with_missing, pd.Series([25, 26, 1, 27]))
        assert repr(one) == repr(other)
        assert {type(key) for key in other.keys} == {int}


@pytest.mark.parametrize("odd", ODD_KEYS, ids=repr)
def test_an_odd_key_that_is_kept_is_released_like_any_other(silent, odd):
    found = run([odd, "a"], [30, 40])
    assert len(found.keys) == 2
    assert sorted(found.counts.tolist()) == [30, 40]


def test_the_order_of_the_rows_does_not_show(silent):
    keys = [f"k{i}" for i in range(50)]
    counts = list(range(50))
    shuffled = np.random.default_rng(1).permutation(50)
    one = run(keys, counts)
    other = run([keys[i] for i in shuffled], [counts[i] for i in shuffled])
    assert repr(one) == repr(other)


def test_a_count_below_one_is_no_key(silent):
    found = run(
        ["a", "b", "c"], [0, -5, 30], ac.SparseHistogram(ac.DiscreteLaplace(1.0), threshold=-99.0)
    )
    assert found.keys == ("c",)
    assert run([], []).keys == ()


def test_extreme_counts_do_not_overflow():
    huge = run(["a", "b"], np.array([2**63 - 1, 2**63 - 5], np.int64))
    assert (huge.counts > 2**52).all()
    assert (run(["a"], np.array([2**64 - 1], np.uint64)).counts > 2**52).all()


def test_sums_beside_and_a_minimum_of_users(silent):
    beside = ac.SparseHistogram(
        ac.DiscreteGaussian(3.0), threshold=20.0, beside=ac.DiscreteGaussian(9.0, sensitivity=50)
    )
    found = run(["b", "a", "c"], [30, 40, 2], beside, sums=[-7, 9, 100])
    assert found.sums is not None
    assert found.sums.tolist() == [9, -7]
    of_users = ac.SparseHistogram(
        ac.DiscreteGaussian(3.0, sensitivity=4), threshold=20.0, minimum=5
    )
    kept = run(["a", "b"], [30, 40], of_users, users=[4, 5])
    assert kept.keys == ("b",)
    of_ones = ac.SparseHistogram(ac.DiscreteGaussian(3.0), threshold=2.0, minimum=35)
    assert run(["a", "b"], [30, 40], of_ones).keys == ("b",)


SECRET = "SECRET-KEY"


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: run([SECRET], [1.5]), ac.ArgumentTypeError),
        (lambda: run([SECRET], [True]), ac.ArgumentTypeError),
        (lambda: run([SECRET], [[1]]), ac.ArgumentTypeError),
        (lambda: run([SECRET], [98765, 1]), ac.DomainError),
        (lambda: run([SECRET, SECRET], [98765, 1]), ac.DomainError),
        (lambda: run({SECRET: 98765}, [98765]), ac.ArgumentTypeError),
        (lambda: run([SECRET], [98765], sums=[98765]), ac.ArgumentTypeError),
        (lambda: run(SECRET, [98765]), ac.ArgumentTypeError),
        (
            lambda: run([SECRET], [98765], ac.SparseHistogram(ac.Gaussian(3.0), threshold=9.0)),
            ac.UnsupportedError,
        ),
        (
            lambda: run(
                [SECRET],
                [98765],
                ac.SparseHistogram(
                    ac.DiscreteGaussian(3.0), threshold=9.0, beside=ac.Gaussian(1.0)
                ),
                sums=[1],
            ),
            ac.UnsupportedError,
        ),
        (
            lambda: run(
                [SECRET],
                [98765],
                ac.SparseHistogram(
                    ac.DiscreteGaussian(3.0, sensitivity=4), threshold=20.0, minimum=5
                ),
            ),
            ac.ArgumentTypeError,
        ),
        (lambda: run([SECRET], [98765], ac.Gaussian(1.0)), ac.ArgumentTypeError),
    ],
)
def test_refusals_have_no_key_and_no_count(call, error):
    with pytest.raises(error) as caught:
        call()
    assert SECRET not in str(caught.value)
    assert "98765" not in str(caught.value)


def test_a_seed_says_that_it_is_not_private():
    with pytest.warns(UserWarning, match="not private"):
        seeded = release_histogram(["a"], [50], MECHANISM, ledger=ac.Accountant(), rng=1)
    assert not seeded.private
    assert release_histogram(["a"], [50], MECHANISM, ledger=ac.Accountant()).private


def test_googles_threshold_is_rounded_up(silent):
    """A noisy count of 37 at the threshold 37.3 is dropped (google/differential-privacy #101)."""
    mechanism = ac.SparseHistogram(ac.DiscreteLaplace(1.0), threshold=37.3)
    assert run(["a", "b"], [37, 38], mechanism).keys == ("b",)


def test_a_fixed_plan_is_one_entry_and_is_released_part_by_part():
    other = ac.SparseHistogram(ac.DiscreteGaussian(4.0), threshold=30.0)
    plan = 2 * MECHANISM + other
    ledger = ac.Accountant()
    paid = FixedPlan(plan, ledger, label="the plan")
    assert ledger.epsilon(1e-6) == plan.epsilon(1e-6)
    assert ledger.epsilon(1e-6) < plan.adaptively().epsilon(1e-6)
    for mechanism in (MECHANISM, other, MECHANISM):
        run(["a"], [60], mechanism, ledger=paid)
    assert len(ledger.history) == 1
    for mechanism in (MECHANISM, other, ac.DiscreteGaussian(1.0)):
        with pytest.raises(ac.BudgetExceeded, match="not left"):
            paid.compose(mechanism)
    poor = ac.Accountant(budget=ac.Budget(0.01, 1e-9, filter="non-adaptive"))
    with pytest.raises(ac.BudgetExceeded):
        FixedPlan(plan, poor)
