"""Bounds on a profile by the moduli along a line, beside the integral of these (Theorem 20)."""

import ctypes
import math
import re
from functools import lru_cache

import mpmath
import numpy as np
import pytest

from accountant._core import answers as core
from support.native import build, core_file, core_files

ASK = """
#include "chernoff.h"
#include "order.h"
#include "plan.h"

/* Chernoff's bound and the one by moduli, at distance b; 0: no law */
int bounds_at(double q, double sigma, double steps, int direction, double b, double epsilon,
              double enough, double *chernoff, double *upper) {
    acct_workspace w;
    acct_line_modulus found;
    if (acct_workspace_alloc(&w, ACCT_MAX_NODES)) return 0;
    const acct_step step = acct_step_make(q, sigma);
    const acct_window window = acct_plan_window(&step, steps, direction, -60.0);
    const double order = acct_order_at(direction, b), log_error = -30.0 - log(steps);
    const int set = !acct_tilted_law_set(&w.law, &step, &window, order, 0.0, log_error);
    if (set)
        acct_line_modulus_set(&found, &w.law, &w.scratch, steps, direction, b, epsilon, enough);
    *chernoff = found.chernoff;
    *upper = found.upper;
    acct_workspace_free(&w);
    return set;
}
"""

REMOVE, ADD = 0, 1


@pytest.fixture(scope="module")
def bounds_at(tmp_path_factory):
    directory = tmp_path_factory.mktemp("line_modulus")
    source = directory / "ask.c"
    source.write_text(ASK)
    found = build(directory, [*core_files(), source])

    def ask(q, sigma, steps, direction, b, epsilon, enough=0.0):
        chernoff, upper = ctypes.c_double(), ctypes.c_double()
        numbers = [ctypes.c_double(value) for value in (b, epsilon, enough)]
        known = found.bounds_at(
            *map(ctypes.c_double, (q, sigma, steps)),
            direction,
            *numbers,
            ctypes.byref(chernoff),
            ctypes.byref(upper),
        )
        # no nodes serve lines so far out
        return (chernoff.value, upper.value) if known else (1.0, 1.0)

    return ask


@lru_cache
def line(q, sigma, steps, direction, b):
    """Return y, and the integrand of Theorem 1 there but for its phase e^{-i y ε}, up to e^{-b ε}.

    A step's transform is by the trapezoid rule, which is exact for such integrands.
    """
    order, side = (1 + b, 1) if direction == REMOVE else (-b, -1)
    reach = max(abs(order), 1.0) + 14.0 * sigma
    x = np.linspace(-reach, reach + 1.0, 4001)
    loss = np.log1p(q * np.expm1((2 * x - 1) / (2 * sigma**2)))
    weight = np.exp(order * loss - x**2 / (2 * sigma**2)) * (x[1] - x[0])
    whole = weight.sum()
    mean = weight @ loss / whole
    y = np.linspace(0.0, 30.0 / math.sqrt(steps * (weight @ (loss - mean) ** 2 / whole)), 2401)
    phi = np.array([weight @ np.exp(1j * side * t * (loss - mean)) for t in y]) / whole
    log_whole = steps * math.log(whole / (sigma * math.sqrt(2 * math.pi)))
    poles = (b + 1j * y) * (b + 1 + 1j * y)
    return y, math.exp(log_whole) * phi**steps * np.exp(1j * steps * side * mean * y) / poles


def integral(y, values):
    """Return the integral by the trapezoid rule, exact for even functions that end at y."""
    return float((values.sum() - 0.5 * values[0]) * (y[1] - y[0]))


def moduli(*asked, epsilon):
    """Return the bound of Theorem 20(a)."""
    y, values = line(*asked)
    return integral(y, np.abs(values)) * math.exp(-asked[-1] * epsilon) / math.pi


def profile(*asked, epsilon):
    """Return the profile itself, by Theorem 1."""
    y, values = line(*asked)
    assert abs(values[-1]) < 1e-12 * abs(values[0])
    turned = (values * np.exp(-1j * y * epsilon)).real
    return integral(y, turned) * math.exp(-asked[-1] * epsilon) / math.pi


CASES = [
    (0.01, 1.0, 1000, 3.0),
    (0.01, 1.0, 1000, 1.0),
    (0.2, 2.0, 50, 3.0),
    (0.001, 0.8, 100_000, 5.0),
    (0.5, 4.0, 200, 4.0),
    (0.9, 3.0, 20, 6.0),
]
FEW = (0.3, 1.5, 6, 2.0)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("direction", [REMOVE, ADD])
@pytest.mark.parametrize(("q", "sigma", "steps", "b"), [*CASES, FEW])
def test_the_bound_is_above_the_integral_and_near_it(bounds_at, q, sigma, steps, b, direction):
    _, upper = bounds_at(q, sigma, steps, direction, b, 1.0)
    truth = moduli(q, sigma, steps, direction, b, epsilon=1.0)
    assert upper >= min(truth, 1.0)
    if steps >= 1000 and direction == ADD:
        assert upper <= truth * 1.02


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("direction", [REMOVE, ADD])
@pytest.mark.parametrize(("q", "sigma", "steps", "b"), CASES)
def test_the_bound_is_above_the_profile(bounds_at, q, sigma, steps, b, direction):
    for epsilon in (0.1, 0.5, 2.0):
        for distance in (0.3 * b, b):
            truth = profile(q, sigma, steps, direction, distance, epsilon=epsilon)
            chernoff, upper = bounds_at(q, sigma, steps, direction, distance, epsilon)
            assert truth <= upper <= chernoff <= 1.0


def test_it_is_narrow_at_the_saddle_point(bounds_at):
    # the add direction of a common question: Chernoff is a factor above it, this is within 1 %
    q, sigma, steps = 0.01, 1.0, 1000
    lower, upper = core.epsilon_bounds(q, sigma, steps, 1e-5, ADD)
    found = [bounds_at(q, sigma, steps, ADD, b, lower) for b in np.linspace(4.0, 16.0, 121)]
    assert upper - lower < 1e-9
    assert 1e-5 < min(bound for _, bound in found) < 1.01e-5
    assert min(chernoff for chernoff, _ in found) > 2e-5


def test_nothing_more_is_done_than_is_asked(bounds_at):
    chernoff, upper = bounds_at(0.01, 1.0, 1000, ADD, 8.0, 1.8, 1.0)
    assert upper == chernoff


@pytest.mark.usefixtures("bounds_at")  # skipped where the sources are not
def test_the_weights_of_the_cells():
    text = core_file("line_modulus.c").read_text()
    rows = re.findall(r"\{([\d.]+), ([\d.e-]+), ([\d.e-]+)\},", text)
    assert len(rows) == int(re.search(r"#define CELLS (\d+)", text)[1])
    start = mpmath.mpf(0)
    with mpmath.workdps(40):
        for row in rows:
            end, left, right = (mpmath.mpf(float(number)) for number in row)
            root = mpmath.sqrt(2)
            mass = mpmath.sqrt(mpmath.pi / 2) * (mpmath.erf(end / root) - mpmath.erf(start / root))
            falls = [x * mpmath.exp(-x * x / 2) for x in (start, end)]
            second = mass + falls[0] - falls[1]
            width = end**2 - start**2
            for weight, exact in (
                (left, (end**2 * mass - second) / width),
                (right, (second - start**2 * mass) / width),
            ):
                assert abs(weight / exact - 1) < 1e-13
            start = end
