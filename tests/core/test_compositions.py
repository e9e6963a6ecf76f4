"""The native core for different steps, each with one shift or a random one.

The stored profiles were computed in ball arithmetic without a window, a panel or a certificate of
the core's (shift_compositions.py); they are judged in decimal arithmetic with zero tolerance.
"""

import math
import os
import signal
from decimal import Decimal

import numpy as np
import pytest

from accountant._core import answers as core
from support.oracle.moments import enclosing_decimals
from support.oracle.shift_compositions import Saddle, draw, epsilon_for, line, too_long
from support.oracle_checks import (
    DIRECTION,
    disjoint,
    largest_double_below,
    smallest_double_above,
    stored,
)

STORED = stored("shift_compositions.jsonl")
NONE = np.empty(0)


def law(sigma, shifts, weights, steps):
    return sigma, np.array(shifts), np.array(weights), float(steps), 0.0, 0.0


def asked(row, question, at, only_mixtures=False):
    """One shift of 1 goes in as a subsampled Gaussian, or as a mixture of one shift."""
    single, several = [], []
    for sigma, shifts, weights, steps in row["parts"]:
        if not shifts:
            single.append((1.0, sigma, float(steps)))
        elif shifts == [1.0] and not only_mixtures:
            single.append((weights[0], sigma, float(steps)))
        else:
            several.append(law(sigma, shifts, weights, steps))
    columns = np.array(single).reshape(-1, 3).T.copy()
    return question(*columns, at, DIRECTION[row["direction"]], tuple(several))


def test_stored_profiles_are_enclosed():
    wrong, wide = [], []
    for row in STORED:
        found = asked(row, core.heterogeneous_delta_bounds, row["epsilon"])
        if disjoint(found, row):
            wrong.append(row["id"])
        if not (found[1] - found[0] <= 1e-6 * found[1]):
            wide.append((row["id"], row["family"]))
    assert not wrong
    assert not wide


def test_stored_profiles_are_enclosed_by_mixtures_of_one_shift():
    rows = [row for row in STORED if any(part[1] == [1.0] for part in row["parts"])]
    assert len(rows) > 20
    found = [
        (asked(row, core.heterogeneous_delta_bounds, row["epsilon"], True), row) for row in rows
    ]
    assert not [row["id"] for bracket, row in found if disjoint(bracket, row)]


@pytest.mark.long
def test_stored_profiles_invert():
    """δ just below the truth at ε asks for at least ε, δ just above for at most ε."""
    wrong = []
    for row in STORED:
        below = largest_double_below(Decimal(row["lower"]))
        above = smallest_double_above(Decimal(row["upper"]))
        if not 1e-280 < below < above < 1.0:
            continue
        if not (
            asked(row, core.heterogeneous_epsilon_bounds, below)[1] >= row["epsilon"]
            and asked(row, core.heterogeneous_epsilon_bounds, above)[0] <= row["epsilon"]
        ):
            wrong.append(row["id"])
    assert not wrong


@pytest.mark.parametrize("direction", [core.REMOVE, core.ADD])
def test_a_run_in_two_pieces_is_the_run(direction):
    """Two codes for equal steps, one truth."""
    shifts, weights = np.array([1.0, 2.0, 3.0]), np.array([0.03, 0.002, 1e-4])
    whole = core.mixture_epsilon_bounds(1.1, shifts, weights, 900.0, 1e-6, direction)
    pieces = tuple(law(1.1, shifts, weights, n) for n in (300, 600))
    found = core.heterogeneous_epsilon_bounds(NONE, NONE, NONE, 1e-6, direction, pieces)
    alone = core.heterogeneous_epsilon_bounds(
        NONE, NONE, NONE, 1e-6, direction, (law(1.1, shifts, weights, 900),)
    )
    for other in (found, alone):
        assert max(whole[0], other[0]) <= min(whole[1], other[1])
        assert other[1] - other[0] <= 1e-9


@pytest.mark.parametrize("steps", [1, 20])
def test_many_different_mixtures(steps):
    """A schedule of noise: searched by groups of similar parts."""
    shifts, weights = np.array([1.0, 2.0]), np.array([0.02, 0.001])
    ends = []
    for least in (1.0, 1.5):
        parts = tuple(law(least + i / 400, shifts, weights, steps) for i in range(200))
        ends.append(core.heterogeneous_epsilon_bounds(NONE, NONE, NONE, 1e-5, core.REMOVE, parts))
    for low, high in ends:
        assert high - low <= 1e-9 * high
    most = core.mixture_epsilon_bounds(1.0, shifts, weights, 200.0 * steps, 1e-5, core.REMOVE)
    least = core.mixture_epsilon_bounds(1.5, shifts, weights, 200.0 * steps, 1e-5, core.REMOVE)
    assert least[0] <= ends[0][1]
    assert ends[0][0] <= most[1]
    assert ends[1][1] <= least[1]


ONE = law(1.0, [1.0], [0.3], 10)


@pytest.mark.parametrize(
    "given",
    [
        (1.0, np.array([1.0, 1.0]), np.array([0.1, 0.1]), 3.0, 0.0, 0.0),
        (1.0, np.array([1.0]), np.array([math.nan]), 3.0, 0.0, 0.0),
        (1.0, np.array([1.0]), np.array([0.1]), 0.0, 0.0, 0.0),
        (1.0, np.array([1.0]), np.array([0.1]), 2.5, 0.0, 0.0),
        (1.0, np.array([1.0]), np.array([0.1]), 2.0**60, 0.0, 0.0),
        (1e-120, np.array([1.0]), np.array([0.1]), 3.0, 0.0, 0.0),
        (1e120, np.array([1.0]), np.array([0.1]), 3.0, 0.0, 0.0),
        (1.0, np.array([1.0]), np.array([0.3]), 3.0, 0.5, 0.0),
        (1.0, np.array([1.0]), np.array([0.3]), 3.0, 0.7, 1e-12),
        (1.0, np.array([1.0, 2.0]), np.array([0.3]), 3.0, 0.0, 0.0),
    ],
)
def test_the_core_refuses_what_is_no_part(given):
    for question, at in (
        (core.heterogeneous_delta_bounds, 1.0),
        (core.heterogeneous_epsilon_bounds, 1e-5),
    ):
        with pytest.raises(ValueError, match=r"domain|differ in length"):
            question(NONE, NONE, NONE, at, core.REMOVE, (ONE, given))


def test_nothing_is_no_composition():
    with pytest.raises(ValueError, match="differ in length"):
        core.heterogeneous_delta_bounds(NONE, NONE, NONE, 1.0, core.REMOVE, ())


EXTREMES = [
    law(1e-3, [1.0, 2.0], [0.1, 0.01], 1),
    law(1e4, [1.0, 2.0], [0.1, 0.01], 10**9),
    law(1.0, [1.0, 2.0], [1e-200, 1e-270], 10**9),
    law(1.0, [1e-30, 1e30], [0.4, 0.4], 3),
    law(1.0, [float(k) for k in range(1, 61)], [0.01] * 60, 1000),
    law(1.0, [1.0], [1.0 - 1e-8], 1),
    (1.0, np.array([1.0]), np.array([1.0]), 5.0, 1e-200, 1e-15),
]


@pytest.mark.long
@pytest.mark.parametrize("direction", [core.REMOVE, core.ADD, core.EITHER])
@pytest.mark.parametrize("first", range(len(EXTREMES)))
def test_extremes_are_answered(first, direction):
    """Every bracket is ordered, and contains what one part alone needs at least."""
    for second in EXTREMES:
        parts = (EXTREMES[first], second)
        for epsilon in (0.0, 1.0, 700.0):
            low, high = core.heterogeneous_delta_bounds(NONE, NONE, NONE, epsilon, direction, parts)
            assert 0.0 <= low <= high <= 1.0
        for delta in (1e-300, 1e-6, 0.9):
            low, high = core.heterogeneous_epsilon_bounds(
                np.array([1.0, 1e-280]), np.array([3.0, 2.0]), np.ones(2), delta, direction, parts
            )
            assert 0.0 <= low <= high


@pytest.mark.slow
def test_random_compositions():
    """More, with the truth computed on the way; HARDEN_SHIFTS says how many are tried."""
    signal.signal(signal.SIGALRM, too_long)
    judged = 0
    tried = int(os.environ.get("HARDEN_SHIFTS", "200"))
    for number in range(10_000, 10_000 + tried):
        _, direction, parts, rng = draw(number)
        remove = direction == "remove"
        epsilon = epsilon_for(Saddle(parts, remove), rng.uniform(-30.0, -1.5))
        if not epsilon >= 0.0:
            continue
        try:
            signal.alarm(20)
            lower, upper = enclosing_decimals(line(parts, epsilon, remove, 2000))
        except (ArithmeticError, ValueError):
            continue
        finally:
            signal.alarm(0)
        row = {"parts": parts, "direction": direction, "lower": lower, "upper": upper}
        judged += 1
        assert not disjoint(asked(row, core.heterogeneous_delta_bounds, epsilon), row), number
    assert judged >= 0.7 * tried
