"""Values that look alike and are not the same."""

import random
from functools import partial

import numpy as np
import pytest

from accountant.audit import audit_replay
from accountant.audit.recorded import distance, is_same

DATA = np.arange(1.0, 11.0)


def around(mean):
    return lambda x: x - mean


def with_default(mean):
    def predict(x, mean=mean):
        return x - mean

    return predict


@pytest.mark.parametrize("made", [around, with_default, lambda m: partial(max, m), random.Random])
def test_what_computes_from_another_value_is_not_the_same(made):
    assert is_same(made(1.0), made(1.0))
    assert not is_same(made(1.0), made(2.0))
    report = audit_replay(lambda data, releases: made(float(data.mean())), DATA, remove=[0])
    assert [finding.kind for finding in report.findings] == ["result"]


def test_zero_and_minus_zero_differ_in_a_bit():
    for one, other in (
        (0.0, -0.0),
        (np.float32(0.0), np.float32(-0.0)),
        (np.array([1.0, 0.0]), np.array([1.0, -0.0])),
        (complex(0.0, 0.0), complex(0.0, -0.0)),
        (np.array([0j]), np.array([complex(-0.0, 0.0)])),
        ([0.0], [-0.0]),
    ):
        assert is_same(one, one)
        assert is_same(other, other)
        assert not is_same(one, other)
    assert is_same(float("nan"), -float("nan"))
    assert is_same(np.array([np.nan, 1.0]), np.array([-np.nan, 1.0]))
    report = audit_replay(lambda data, releases: 0.0 * (5.5 - data.mean()), DATA, remove=[9, 0])
    assert [finding.kind for finding in report.findings] == ["result"]


def test_a_function_that_calls_itself_is_compared():
    def countdown(steps):
        def call(n):
            return n if n < steps else call(n - steps)

        return call

    assert is_same(countdown(1), countdown(1))
    assert not is_same(countdown(1), countdown(2))


def test_labels_of_tables_are_compared():
    pandas = pytest.importorskip("pandas")
    one = pandas.Series([1.0, 2.0], index=["a", "b"])
    other = pandas.Series([1.0, 2.0], index=["a", "c"])
    assert is_same(one, one.copy())
    assert not is_same(one, other)
    assert not is_same(one.to_frame("x"), one.to_frame("y"))
    assert distance(one, one + 1.0, np.inf)[0] == 1.0
    assert distance(one, other, np.inf)[0] == np.inf


def test_removing_a_row_leaves_others_of_its_label():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"x": [1.0, 2.0, 3.0]}, index=[0, 0, 1])

    def run(data, releases):
        return releases.gaussian(float(len(data)), sensitivity=1.0, scale=1.0)

    report = audit_replay(run, table, remove=[0])
    assert not report.flagged, str(report)


class Around:
    def __init__(self, mean):
        self.mean = mean

    def shifted(self, x):
        return x - self.mean


def test_a_method_is_compared_with_what_it_is_bound_to():
    assert is_same(Around(1.0).shifted, Around(1.0).shifted)
    assert not is_same(Around(1.0).shifted, Around(2.0).shifted)
