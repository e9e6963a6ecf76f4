"""Phases in bulk against mpmath, and products by pieces against exact ones."""

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

from accountant._rounding import U
from accountant.analyses.pld import phases as module
from accountant.analyses.pld.phases import matrix_product, phases, phases_of_turns


@pytest.mark.parametrize("reach", [1e-300, 1e-9, 1.0, 60.0, 1e9, 1e18])
def test_phases_are_those_of_the_angles(reach):
    angle = np.random.default_rng(3).uniform(-reach, reach, 400)
    with mp.workdps(50):
        for found, exact in zip(phases(angle), angle.tolist(), strict=True):
            assert abs(mp.mpc(found) - mp.expj(-mp.mpf(exact))) <= 8 * U


@pytest.mark.parametrize("size", [2, 3, 96, 2**26, 3 * 2**25, 2**40])
def test_phases_of_turns_take_the_shorter_way(size):
    rng = np.random.default_rng(size)
    turns = np.concatenate([rng.integers(-(2**61), 2**61, 300), [0, 1, size // 2, size - 1, -1]])
    with mp.workdps(50):
        for found, turn in zip(phases_of_turns(turns, size), turns.tolist(), strict=True):
            exact = mp.expjpi(-mp.mpf(2 * (turn % size)) / size)
            assert abs(mp.mpc(found) - exact) <= 18 * U


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (5, 7, 3), (300, 4, 2), (3, 64, 80), (2, 3, 0), (0, 3, 2)]
)
@pytest.mark.parametrize("turned", [False, True])
def test_products_by_pieces_are_products(shape, turned, monkeypatch):
    monkeypatch.setattr(module, "ONE_THREAD", 400)
    rows, inner, columns = shape
    rng = np.random.default_rng(inner)
    left, right = rng.integers(-99, 99, (rows, inner)) * 1.0, rng.integers(0, 9, (inner, columns))
    found = matrix_product(left, right * (1.0 + 2.0j) if turned else right * 1.0)
    exact = [
        [sum(Fraction(x) * int(y) for x, y in zip(row, column, strict=True)) for column in right.T]
        for row in left.tolist()
    ]
    assert found.shape == (rows, columns)
    assert found.real.tolist() == exact
    if turned:
        assert found.imag.tolist() == [[2 * each for each in row] for row in exact]
