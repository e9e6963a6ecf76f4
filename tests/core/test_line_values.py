"""Powers of one step's transform: what is bounded relative to itself, and what is bounded apart."""

import ctypes
import math
import random

import pytest

from support.native import build, core_files

DRIVER = """
#include "characteristic_sum.h"
double power(int count, double steps, double *of_points, double *out) {
    acct_line_values v;
    acct_line_values_place(&v, of_points, (size_t)count);
    return acct_line_values_power(&v, count, steps, -1.0, out, out + count);
}
"""


@pytest.fixture(scope="module")
def power(tmp_path_factory):
    """Terms of powers of points, and the bound on their errors."""
    directory = tmp_path_factory.mktemp("line_values")
    source = directory / "power.c"
    source.write_text(DRIVER)
    raised = build(directory, [*core_files(), source]).power
    double, pointer = ctypes.c_double, ctypes.POINTER(ctypes.c_double)
    raised.argtypes = [ctypes.c_int, double, pointer, pointer]
    raised.restype = double

    def ask(points, steps):
        count = len(points)
        arrays = [number for row in zip(*points, strict=True) for number in row] + [0.0] * count
        out = (double * (2 * count))()
        bound = raised(count, steps, (double * (7 * count))(*arrays), out)
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


def off(row, steps, found, turned):
    """How far a term is from the power itself, and from that of what errors leave of its base."""
    log_modulus, turn, error, most, factor, poles = row
    power = math.exp(steps * log_modulus) * factor
    phase = abs(turned + steps * turn + poles)
    apart = power + math.exp(min(steps * most, 700.0)) * factor
    near = power * math.expm1(min(steps * error, 700.0))
    return abs(found - power) + found * phase, min(near, apart)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 64, 101])
@pytest.mark.parametrize("steps", [2.0, 999.0, 1e6])
def test_little_errors_are_bounded_by_themselves(power, count, steps):
    points = drawn(random.Random(count), count, 600.0 / steps, 0.33 / steps)
    found, bound = power(points, steps)
    moved = [off(row, steps, found[k], found[count + k]) for k, row in enumerate(points)]
    assert math.fsum(a for a, _ in moved) <= 1e-9 * math.fsum(found[:count])
    assert math.fsum(b for _, b in moved) * (1.0 - 1e-9) <= bound
    assert bound <= 0.5 * math.fsum(found[:count])


@pytest.mark.parametrize(("deepest", "ratio"), [(2000.0, 1e-9), (10.0, 40.0), (2000.0, 400.0)])
def test_errors_that_are_not_little_are_bounded_apart(power, deepest, ratio):
    """A power that is taken for 0 is its own error, and a large error is no more than the terms."""
    points = drawn(random.Random(3), 40, deepest, ratio)
    found, bound = power(points, 1.0)
    moved = [off(row, 1.0, found[k], found[40 + k]) for k, row in enumerate(points)]
    assert math.fsum(a + b for a, b in moved) * (1.0 - 1e-9) <= bound
    if deepest > 690.0:
        assert 0.0 in found[:40]
