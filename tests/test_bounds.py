"""Bounds: frozen, ordered, never NaN."""

import copy
import math
import pickle

import numpy as np
import pytest

from accountant import AccountantError, Bounds, DomainError


def test_scalars():
    bounds = Bounds(1.0, 1.5)
    assert (bounds.lower, bounds.upper, bounds.width) == (1.0, 1.5, 0.5)
    assert tuple(bounds) == (1.0, 1.5)
    assert all(x in bounds for x in (1.0, 1.2, 1.5, np.float64(1.3), 1))
    assert not any(x in bounds for x in (0.999, 1.501, math.nan, math.inf))


def test_arrays_are_copied_and_read_only():
    lower = np.array([0.0, 1.0])
    bounds = Bounds(lower, lower + 0.25)
    lower[0] = 99.0
    assert bounds.lower[0] == 0.0
    assert np.array_equal(bounds.width, [0.25, 0.25])
    assert [0.1, 1.1] in bounds
    assert [0.1, 1.3] not in bounds
    with pytest.raises(ValueError, match="read-only"):
        bounds.lower[0] = 1.0


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (2.0, 1.0),
        (math.nan, 1.0),
        (1.0, math.nan),
        (math.nan, math.nan),
        ([1.0, 2.0], [2.0, 1.0]),
        ([1.0, math.nan], [2.0, 2.0]),
        ([1.0, 2.0], [2.0, 3.0, 4.0]),
        (1.0, [2.0, 3.0]),
    ],
)
def test_disorder_is_refused(lower, upper):
    with pytest.raises(DomainError, match="lower <= upper"):
        Bounds(lower, upper)


def test_ends_must_be_real():
    with pytest.raises(AccountantError, match="real ends"):
        Bounds("1", 2.0)


def test_infinite_ends_have_a_width():
    assert Bounds(math.inf, math.inf).width == 0.0
    assert Bounds(1.0, math.inf).width == math.inf
    assert np.array_equal(Bounds([1.0, math.inf], [math.inf, math.inf]).width, [math.inf, 0.0])


def test_frozen():
    bounds = Bounds(1.0, 2.0)
    for name in ("lower", "upper"):
        with pytest.raises(AttributeError):
            setattr(bounds, name, 0.0)
    with pytest.raises(AttributeError):
        del bounds.lower


def test_equal_and_hash_by_value():
    assert Bounds(0.0, 1.0) == Bounds(-0.0, 1)
    assert hash(Bounds(0.0, 1.0)) == hash(Bounds(-0.0, 1))
    assert Bounds([0.0], [1.0]) == Bounds(np.array([0.0]), np.array([1.0]))
    assert hash(Bounds([0.0], [1.0])) == hash(Bounds([-0.0], [1.0]))
    assert Bounds(0.0, 1.0) != Bounds(0.0, 2.0)
    assert Bounds(0.0, 1.0) != (0.0, 1.0)


def test_repr_evaluates_back():
    names = {"Bounds": Bounds, "array": np.array}
    for bounds in (Bounds(0.1, 0.25), Bounds([0.1, 0.2], [0.3, 0.4])):
        assert eval(repr(bounds), names) == bounds
    assert repr(Bounds(0.1, 0.25)) == "Bounds(0.1, 0.25)"


def test_copies():
    bounds = Bounds([0.1], [0.2])
    assert pickle.loads(pickle.dumps(bounds)) == bounds
    assert copy.deepcopy(bounds) == bounds
    match bounds:
        case Bounds(lower, upper):
            assert lower <= upper


def test_the_intersection_of_brackets_of_one_number():
    assert Bounds(1.0, 3.0).intersection(None) == Bounds(1.0, 3.0)
    assert Bounds(1.0, 3.0).intersection(Bounds(2.0, 4.0)) == Bounds(2.0, 3.0)
    assert Bounds(0.0, math.inf).intersection(Bounds(0.0, 1.0)) == Bounds(0.0, 1.0)
    # A rounding apart: the upper end is kept.
    assert Bounds(2.0, 3.0).intersection(Bounds(1.0, 1.5)) == Bounds(1.5, 1.5)
    both = Bounds([0.0, 2.0], [1.0, 4.0]).intersection(Bounds([0.5, 1.0], [2.0, 3.0]))
    assert both == Bounds([0.5, 2.0], [1.0, 3.0])
