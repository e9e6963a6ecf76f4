"""Powers of one step's transform: the quick way and the one for all numbers are the same."""

import ctypes
import math
import random

import pytest

from support.native import build, core_files

DRIVER = """
#include "characteristic_sum.h"
double power(int count, double steps, double *of_points, double least_log, double most_ratio,
             double *out) {
    acct_line_values v = {.least_log = least_log, .most_ratio = most_ratio};
    acct_line_values_place(&v, of_points, (size_t)count);
    return acct_line_values_power(&v, count, steps, -1.0, out, out + count);
}
"""


@pytest.fixture(scope="module")
def power(tmp_path_factory):
    """Terms and bound of powers of points, by what is said of all points."""
    directory = tmp_path_factory.mktemp("line_values")
    source = directory / "power.c"
    source.write_text(DRIVER)
    raised = build(directory, [*core_files(), source]).power
    double, pointer = ctypes.c_double, ctypes.POINTER(ctypes.c_double)
    raised.argtypes = [ctypes.c_int, double, pointer, double, double, pointer]
    raised.restype = double

    def ask(points, steps, least_log, most_ratio):
        count = len(points)
        arrays = [number for row in zip(*points, strict=True) for number in row] + [0.0] * count
        out = (double * (2 * count))()
        bound = raised(count, steps, (double * (7 * count))(*arrays), least_log, most_ratio, out)
        return list(out), bound

    return ask


def drawn(draw, count, deepest, ratio):
    """Points: log |1+V|, its argument, ratio of errors, log of the most, factor and poles."""
    rows = []
    for _ in range(count):
        log_modulus, error = -deepest * draw.random(), ratio * draw.random()
        most, turn = log_modulus + error, draw.uniform(-3.0, 3.0)
        rows.append((log_modulus, turn, error, most, draw.random(), draw.random()))
    return rows


def ends(points):
    return min(row[0] for row in points), max(row[2] for row in points)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 64, 101])
@pytest.mark.parametrize("steps", [2.0, 999.0, 1e6])
def test_little_errors_are_raised_as_all_are(power, count, steps):
    draw = random.Random(count)
    points = drawn(draw, count, 600.0 / steps, 0.33 / steps)
    quick, bound = power(points, steps, *ends(points))
    slow, other = power(points, steps, -math.inf, math.inf)
    assert quick == slow
    assert bound == other > 0.0


@pytest.mark.parametrize(("deepest", "ratio"), [(2000.0, 1e-9), (10.0, 40.0), (2000.0, 400.0)])
def test_errors_that_are_not_little_are_bounded_apart(power, deepest, ratio):
    """A power that is taken for 0 and a bound that is large are seen by what is said of all."""
    points = drawn(random.Random(3), 40, deepest, ratio)
    found, bound = power(points, 1.0, *ends(points))
    slow, other = power(points, 1.0, -math.inf, math.inf)
    assert found == slow
    assert bound == other
    if deepest > 690.0:
        assert 0.0 in found[:40]
