"""ε after every one of many different steps, against questions about each beginning alone."""

import random

import numpy as np
import pytest

from accountant._core import answers as core


def schedule(seed, size):
    draw = random.Random(seed)
    q = np.array([draw.choice([0.01, 0.02]) for _ in range(size)])
    return q, np.array([1.0 + draw.random() for _ in range(size)]), np.ones(size)


def odometer(columns, delta, direction, *options):
    lower, upper = np.empty(columns[0].size), np.empty(columns[0].size)
    core.fill_heterogeneous_odometer(*columns, delta, direction, lower, upper, *options)
    return lower, upper


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("direction", [core.REMOVE, core.ADD])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_every_bracket_meets_that_of_the_steps_so_far(direction, delta):
    columns = schedule(1, 700)
    lower, upper = odometer(columns, delta, direction)
    assert (np.diff(lower) >= 0.0).all()
    assert (np.diff(upper) >= 0.0).all()
    for last in (40, 150, 300, 450, 451, 600, 699, 700):
        low, high = core.heterogeneous_epsilon_bounds(
            *(column[:last] for column in columns), delta, direction
        )
        assert lower[last - 1] <= high
        assert low <= upper[last - 1]
    narrow = upper[400:] - lower[400:] <= 4e-10 * upper[400:]
    assert narrow.all()


def test_a_few_digits_are_as_true():
    columns = schedule(2, 500)
    lower, upper = odometer(columns, 1e-6, core.REMOVE)
    low, high = odometer(columns, 1e-6, core.REMOVE, 1e-3, 100, 500)
    assert (low <= upper).all()
    assert (lower <= high).all()
    assert (high[100:] - low[100:] <= 0.01 * high[100:]).all()
