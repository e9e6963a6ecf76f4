"""The one way in for data: no record changes how another is read, and none raises anything."""

import warnings
from array import array
from collections import UserList, deque
from dataclasses import replace

import numpy as np
import pytest

from accountant.errors import ArgumentTypeError, DomainError
from accountant.learn import (
    Batches,
    Frozen,
    LogisticRegression,
    Noise,
    PerExampleModel,
    train_dp_sgd,
)
from accountant.learn.blocks import block_estimates
from accountant.learn.models.base import BLOCK_ROWS
from accountant.learn.pate import TeacherEnsemble
from accountant.learn.validation import (
    as_examples,
    class_labels,
    features,
    labels_among,
    numbers,
    targets,
)
from support.twins import cases, odd, pairs
from support.twins.cases_features import EXTRACTIONS, D, rows_apart
from support.twins.comparison import twins

READING = odd.reading(cases())


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", READING)
def test_one_odd_record_changes_no_other(name):
    """Nothing raises, warns or prints, and sums move by what the record itself may move."""
    for pair, lost in odd.odd_pairs(READING[name]):
        case = odd.adding_nothing(READING[name], pair) if lost else READING[name]
        wrong, one, _ = twins(case, pair)
        assert not wrong, f"{pair.name}: {'; '.join(wrong)}"
        assert one.raised is None, f"{pair.name}: {one.raised}"


def framed(data):
    pandas = pytest.importorskip("pandas")
    return tuple(
        pandas.DataFrame(part) if isinstance(part[0], list) else pandas.Series(part)
        for part in data
    )


@pytest.mark.long(keep=38)
@pytest.mark.parametrize("name", [name for name in READING if not odd.in_a_table(READING[name])])
def test_one_odd_record_in_a_frame_changes_no_other(name):
    """A frame's columns are of the type that all of their entries have."""
    for pair, lost in odd.odd_pairs(READING[name]):
        if pair.name.partition(" in")[0] in ("text", "a huge integer"):
            frames = replace(pair, left=framed(pair.left), right=framed(pair.right))
            case = odd.adding_nothing(READING[name], pair) if lost else READING[name]
            wrong, one, _ = twins(case, frames)
            assert not wrong, f"{pair.name}: {'; '.join(wrong)}"
            assert one.raised is None, f"{pair.name}: {one.raised}"


@pytest.mark.parametrize("extraction", EXTRACTIONS, ids=lambda e: e.name)
def test_one_odd_record_changes_no_others_features(extraction):
    rows = pairs.features(9, D).tolist()
    ids = tuple(range(10))
    for entry in (*odd.UNREADABLE.values(), *odd.READABLE.values()):
        for record in ([entry] * D, entry, [0.5] * (D + 1), []):
            pair = pairs.Pair("odd", ([*rows, record],), (rows,), ids, ids[:-1], 9, "add or remove")
            assert not rows_apart(extraction, pair), record
            assert np.isfinite(extraction.make()([*rows, record])).all()


def test_one_word_moves_one_block():
    records = [0.95] * 2000
    plain, word = (
        block_estimates(data, np.mean, 100, (0.0, 1.0), rng=3)
        for data in ([*records, 0.95], [*records, "n/a"])
    )
    assert (plain != word).sum() == 1


class Bare:
    """A sequence by what it can do, as a column of a data set is."""

    def __init__(self, records):
        self.records = list(records)

    def __len__(self):
        return len(self.records)

    def __getitem__(self, place):
        return self.records[place]


@pytest.mark.parametrize("kind", [deque, UserList, Bare])
def test_one_word_in_any_sequence_changes_no_other(kind):
    words = kind([0.5] * 20 + ["n/a"])
    assert np.array_equal(numbers("y", words, ()), [0.5] * 20 + [np.nan], equal_nan=True)
    assert targets(words, 21, 1, np.dtype(np.float64))[:20].tolist() == [[0.5]] * 20
    assert features(kind([[1.0, 2.0], "n/a"]), 2, np.dtype(np.float64))[0].tolist() == [1.0, 2.0]
    plain, word = (
        block_estimates(kind([0.95] * 200 + [last]), np.mean, 10, (0.0, 1.0), rng=3)
        for last in (0.95, "n/a")
    )
    assert (plain != word).sum() == 1


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.int64])
def test_one_word_in_a_frame_changes_no_other_block(dtype):
    """A sum of two small integers overflows in their own type, and not in another."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": np.full(200, 100, dtype), "b": np.full(200, 100, dtype)})
    odd_one = frame.astype({"a": object})
    odd_one.loc[7, "a"] = "n/a"
    plain, word = (
        block_estimates(data, lambda block: (block[:, 0] + block[:, 1]).mean(), 10, (0, 300), rng=3)
        for data in (frame, odd_one)
    )
    assert (plain != word).sum() == 1


def test_one_complex_number_in_a_frame_changes_no_other():
    pandas = pytest.importorskip("pandas")
    column = pandas.Series([0.5] * 20 + [1j])
    assert column.dtype.kind == "c"
    expected = [0.5] * 20 + [np.nan]
    assert np.array_equal(numbers("y", column, ()), expected, equal_nan=True)
    frame = pandas.DataFrame({"a": column, "b": 1.0})
    assert np.array_equal(features(frame, 2, np.dtype(np.float64))[:, 0], expected, equal_nan=True)
    with pytest.raises(ArgumentTypeError, match="complex128"):
        numbers("y", column.to_numpy(), ())


def test_dates_are_labels_in_every_container():
    pandas = pytest.importorskip("pandas")
    for unit in ("D", "s", "ns"):
        days = np.array(["2020-01-01", "2020-01-02"], f"datetime64[{unit}]")
        assert labels_among(days, list(days)).tolist() == [0, 1]
        column = pandas.Series(days)
        for given in (column, list(column), column.astype(object)):
            assert labels_among(given, list(column)).tolist() == [0, 1]


@pytest.mark.parametrize("kind", [str, bytes, dict, set, iter])
def test_what_is_no_sequence_of_records_is_refused(kind):
    with pytest.raises(ArgumentTypeError, match="y must be an array"):
        numbers("y", kind(()), ())


def test_an_array_of_the_standard_library_keeps_its_type():
    assert numbers("y", array("f", [0.1]), ()).tolist() == [float(np.float32(0.1))]


class Majority:
    """A teacher that answers with its shard's larger class, and knows only numbers."""

    def fit(self, X, y):
        assert X.dtype.kind in "fi"
        self.answer = np.bincount(y, minlength=2).argmax()
        assert (X.sum(axis=1) < 99.0).all()
        return self

    def predict(self, X):
        return np.full(len(X), 1 - self.answer)  # unlike the commonest label of a failed teacher


@pytest.mark.parametrize("entry", ["n/a", None, [1.0, 2.0], 1j])
def test_one_odd_record_moves_one_vote(entry):
    X, y = [[float(i % 7), 1.0] for i in range(600)], [i % 3 // 2 for i in range(600)]

    def votes(rows, labels):
        ensemble = TeacherEnsemble(Majority, 50, 2, rng=1).fit(rows, labels)
        return ensemble.votes(np.zeros((1, 2)))[0]

    plain = votes([*X, [0.0, 1.0]], [*y, 0])
    assert plain.max() > 40
    for odd_one in (votes([*X, [entry, 1.0]], [*y, 0]), votes([*X, [0.0, 1.0]], [*y, entry])):
        assert np.abs(plain - odd_one).sum() <= 2


def descend(w, x, t):
    return (x @ w - t)[:, None] * x


def test_one_word_among_the_targets_moves_theta_by_nothing():
    X = np.ones((501, 1))
    for word in ("?", None, [1, 2], float("nan")):
        thetas = []
        for y in ([1] * 500 + [word], [1] * 500):
            result = train_dp_sgd(
                PerExampleModel(np.zeros(1), descend), X[: len(y)], y,
                batches=Batches(500, sampler="full", steps=3), noise=Noise(1.0),
                clipping_norm=1.0, delta=1e-5, rng=1,
            )  # fmt: skip
            thetas.append(result.parameters)
        assert np.array_equal(*thetas)


def test_targets_in_a_list_take_the_type_of_public_examples():
    assert as_examples([1, 2.5], None).dtype == np.float64
    labels = as_examples([1, "?", None, 2], np.array([7, 2]))
    assert labels.dtype == np.array([7]).dtype
    assert labels.tolist() == [1, 7, 7, 2]
    assert np.isnan(as_examples(["?", 0.5], np.array([0.5], np.float32))).tolist() == [True, False]
    pairs_of = as_examples([[1, 2], [1], "?"], np.array([[0, 1]]))
    assert pairs_of.tolist() == [[1, 2], [0, 1], [0, 1]]
    words = as_examples(["yes", None], np.array(["yes", "no"]))
    assert words.tolist() == ["yes", None]
    assert as_examples(np.array([3], np.int8), np.array([0.5])).dtype == np.int8


def test_a_function_that_raises_on_a_record_adds_nothing_for_it():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    X[140, 0] = 7.25

    def fails(w, x, t):
        x[:] = 2.0 * x  # and spoils its argument first
        if (x == 14.5).any():
            warnings.warn("a record was met", stacklevel=1)
            raise ValueError(f"{x[x == 14.5]}")
        return descend(w, x, t)

    def sums(function, rows=slice(None)):
        model = PerExampleModel(np.full(3, 0.1), function)
        return model.clipped_gradient_sum(X[rows], y[rows], 1.0)

    def doubled(w, x, t):
        return descend(w, 2.0 * x, t)

    others = np.delete(np.arange(300), 140)
    # The same blocks: one whose record 140 has no gradient.
    spared = np.where(np.arange(300)[:, None] == 140, np.nan, X)
    model = PerExampleModel(np.full(3, 0.1), doubled)
    assert np.array_equal(sums(fails), model.clipped_gradient_sum(spared, y, 1.0))
    assert np.allclose(sums(fails), sums(doubled, others), rtol=1e-13)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = train_dp_sgd(
            PerExampleModel(np.full(3, 0.1), fails), X, y,
            batches=Batches(300, sampler="full", steps=2), noise=Noise(1.0), clipping_norm=1.0,
            delta=1e-5,
        )  # fmt: skip
    assert result.private


@pytest.mark.parametrize("filters", ["always", "error"])
def test_whether_a_record_raises_changes_no_warning(filters):
    """The function is called on zeros only if a record raises."""

    def complains(w, x, t):
        if (x == 7.25).any():
            raise ValueError
        if not x.any():
            warnings.warn("nothing but zeros", stacklevel=1)
        return descend(w, x, t)

    X, y = np.ones((2 * BLOCK_ROWS, 2)), np.ones(2 * BLOCK_ROWS)
    X[3, 0] = 7.25
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(filters)
        PerExampleModel(np.zeros(2), complains).clipped_gradient_sum(X, y, 1.0)
    assert not caught


def test_what_warns_of_a_block_or_a_shard_is_not_heard():
    def warning(block):
        warnings.warn(f"{len(block)} records", stacklevel=1)
        return float(block.mean())

    class Complaining(Majority):
        def fit(self, X, y):
            warnings.warn(f"{len(X)} records", stacklevel=1)
            return super().fit(X, y)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        block_estimates([0.5] * 20, warning, 3, (0.0, 1.0))
        TeacherEnsemble(Complaining, 3, 2).fit(np.ones((20, 2)), np.ones(20, int))
    assert not caught


def test_a_function_that_always_raises_is_not_silent():
    def broken(w, x, t):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        PerExampleModel(np.zeros(2), broken).gradient_sum(np.ones((BLOCK_ROWS, 2)), np.ones(128))


def test_every_container_gives_the_same_numbers():
    pandas = pytest.importorskip("pandas")
    sparse = pytest.importorskip("scipy.sparse")
    rows = [[1, 2.5], [0, 2**60 + 2**36 + 1]]
    for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
        expected = np.array(rows, np.float64).astype(dtype)
        frame = pandas.DataFrame({"a": [1, 0], "b": [2.5, 2**60 + 2**36 + 1]})
        for container in (
            rows, tuple(rows), expected.astype(np.float64), np.array(rows, object), frame,
            frame.astype(object), sparse.csr_matrix(np.array(rows, np.float64)),
        ):  # fmt: skip
            assert np.array_equal(features(container, 2, dtype), expected)
    assert class_labels(pandas.Series([1, 0]), 2, 2).tolist() == [1, 0]
    assert class_labels([1, "0", 2, 0.5, None], 5, 2).tolist() == [1, 0, -1, -1, -1]
    assert targets([[1.0], 2.0, "x"], 3, 1, np.dtype(np.float64))[:2].tolist() == [[1.0], [2.0]]


def test_what_is_refused_is_public():
    for refused in (np.eye(2) * 1j, np.array([["a"]]), np.array(["2020-01-01"], "M8[D]")):
        with pytest.raises(ArgumentTypeError, match="must be an array of numbers"):
            numbers("X", refused)
    for refused in (5, "text", {1.0}, {"a": 1}, (x for x in "abc")):
        with pytest.raises(ArgumentTypeError, match="must be an array; got"):
            numbers("X", refused)
    with pytest.raises(DomainError, match="shape"):
        LogisticRegression(2).check(np.zeros((3, 4)), np.zeros(3))


def test_a_frozen_function_that_raises_on_a_record_gives_zeros_for_it():
    rows = pairs.features(300, 4)
    rows[271, 1] = 99.0

    def fails(x):
        if (x == 99.0).any():
            raise ValueError(f"{x[x == 99.0]}")
        return x[:, :2] * 3.0

    found = Frozen(fails)(rows)
    expected = rows[:, :2] * 3.0
    expected[271] = 0.0
    assert np.array_equal(found, expected)
