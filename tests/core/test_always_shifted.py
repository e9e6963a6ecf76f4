"""Mixtures that always shift the noise, natively (Theorem D26): losses without a lower end.

The weights are short binary fractions that add up to one exactly. The oracles are contours in ball
arithmetic and integrals over one of two steps; neither has a window, nor shares code with the core.
"""

import ctypes
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from accountant._core import answers as core
from support.native import build, core_files
from support.oracle.shift_mixture import line, two_steps

# σ, shifts, weights, steps, ε
PROBLEMS = [
    (1.0, (0.5, 1.0), (0.5, 0.5), 4, 8.0),
    (1.0, (1.0, 2.0, 3.0), (0.875, 0.109375, 0.015625), 30, 40.0),
    (0.4, (0.5, 1.0), (0.75, 0.25), 6, 30.0),
    (0.25, (2.0, 2.5), (0.5, 0.5), 3, 140.0),
    (8.0, (2.0**-8, 1.0, 4.0), (0.96875, 0.015625, 0.015625), 500, 0.25),
    (1.0, (2.0**-12, 1.0), (1.0 - 2.0**-8, 2.0**-8), 2000, 3.0),
    (3.0, (1.0,), (1.0,), 40, 9.0),
    (20.0, (1.0, 6.0), (0.25, 0.75), 10_000, 700.0),
]
WAYS = [(core.REMOVE, True), (core.ADD, False)]


def asked(question, sigma, shifts, weights, steps, at, direction):
    shifts, weights = np.array(shifts), np.array(weights)
    return question(sigma, shifts, weights, float(steps), at, direction, 0.0, 2.0**-60)


@pytest.mark.long(keep=5)
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(("direction", "remove"), WAYS)
def test_profiles_are_enclosed(problem, direction, remove):
    sigma, shifts, weights, steps, epsilon = problem
    assert sum(map(Fraction, weights)) == 1
    ctx.prec = 150
    truth = line(sigma, shifts, weights, steps, epsilon, remove, most=4000, digits=14)
    low, high = asked(core.mixture_delta_bounds, *problem, direction)
    assert not arb(low) > truth
    assert not arb(high) < truth
    assert high - low <= 1e-7 * high
    value = float(truth)
    above, _ = asked(core.mixture_epsilon_bounds, *problem[:4], value * (1.0 + 1e-9), direction)
    _, below = asked(core.mixture_epsilon_bounds, *problem[:4], value * (1.0 - 1e-9), direction)
    assert above <= epsilon <= below <= above + 1e-6 * epsilon


@pytest.mark.long
@pytest.mark.parametrize(("direction", "remove"), WAYS)
@pytest.mark.parametrize(
    ("sigma", "shifts", "weights", "epsilon"),
    [(1.0, (1.0, 2.0), (0.75, 0.25), 6.0), (0.5, (0.25, 1.0), (1.0 - 2.0**-7, 2.0**-7), 4.0)],
)
def test_two_steps_are_enclosed(sigma, shifts, weights, epsilon, direction, remove):
    low, high = asked(core.mixture_delta_bounds, sigma, shifts, weights, 2, epsilon, direction)
    least, most = two_steps(sigma, shifts, weights, epsilon, remove, digits=20)
    assert low <= most
    assert high >= least
    # Two steps whose larger shift is rare have no line: the grid answers them.
    assert high - low <= 1e-4 * high or shifts[0] < 0.5


@pytest.mark.parametrize("steps", [1.0, 2.0, 50.0, 1e5])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.3])
def test_a_single_shift_is_plain_noise(steps, delta):
    for sigma in (0.02, 0.5, 3.0, 1e4):
        plain = core.epsilon_bounds(1.0, sigma, steps, delta, core.REMOVE)
        for direction in (core.REMOVE, core.ADD):
            found = asked(
                core.mixture_epsilon_bounds, sigma, (1.0,), (1.0,), steps, delta, direction
            )
            assert found[0] <= plain[1]
            assert plain[0] <= found[1]


@pytest.mark.parametrize("direction", [core.REMOVE, core.ADD])
def test_it_is_above_the_mixture_whose_least_shift_is_none(direction):
    """Theorem D8(a): shifts are larger."""
    for steps in (2.0, 100.0, 1e5):
        less = core.mixture_epsilon_bounds(
            1.0, np.ones(1), np.full(1, 0.125), steps, 1e-6, direction
        )
        for least in (2.0**-60, 2.0**-10, 0.5):
            more = asked(
                core.mixture_epsilon_bounds,
                1.0,
                (least, 1.0),
                (0.875, 0.125),
                steps,
                1e-6,
                direction,
            )
            assert less[0] <= more[1]
            less = more


@pytest.mark.long
@pytest.mark.parametrize("sigma", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("shifts", [(1e-6, 1.0), (1.0, 1e3), (50.0, 50.5)])
def test_extreme_arguments_have_an_answer(sigma, shifts):
    weights = (0.5, 0.5)
    for steps in (1.0, 3.0, 2.0**40):
        for direction in (core.REMOVE, core.ADD):
            for delta in (1e-300, 1e-6, 0.9):
                found = asked(
                    core.mixture_epsilon_bounds, sigma, shifts, weights, steps, delta, direction
                )
                assert 0.0 <= found[0] <= found[1]
            for epsilon in (0.0, 700.0):
                found = asked(
                    core.mixture_delta_bounds, sigma, shifts, weights, steps, epsilon, direction
                )
                assert 0.0 <= found[0] <= found[1] <= 1.0


class Part(ctypes.Structure):
    _fields_ = (
        ("sigma", ctypes.c_double), ("count", ctypes.c_int),
        ("shift", ctypes.POINTER(ctypes.c_double)), ("weight", ctypes.POINTER(ctypes.c_double)),
        ("silent", ctypes.c_double), ("weight_err", ctypes.c_double),
    )  # fmt: skip


DRIVER = """
#include "mixture_loss.h"
int driver(const acct_mixture_part *part, double x, double eta, double *out) {
    acct_mixture m;
    acct_mixture_point p;
    if (acct_mixture_set(&m, part)) return 0;
    acct_mixture_at(&m, x, 0, &p);
    out[0] = p.loss;
    out[1] = p.error;
    acct_mixture_complex(&m, x, eta, &out[2], &out[3], &out[4]);
    return 1;
}
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    directory = tmp_path_factory.mktemp("driver")
    source = directory / "driver.c"
    source.write_text(DRIVER)
    return build(directory, [source, *core_files()]).driver


def test_the_loss_where_all_its_terms_underflow(driver):
    ctx.prec = 300
    for sigma, shifts, weights in (
        (1.0, (60.0, 61.0), (0.75, 0.25)),
        (0.1, (0.5, 1.0), (0.5, 0.5)),
    ):
        count, array = len(shifts), ctypes.c_double * len(shifts)
        part = Part(sigma, count, array(*shifts), array(*weights), 0.0, 2.0**-60)
        for x in (-30.0 * sigma, -3.0 * sigma, 0.0, shifts[0], 20.0 * shifts[-1]):
            for eta in (0.0, 0.2 * sigma**2 / shifts[-1]):
                out = (ctypes.c_double * 5)()
                assert driver(ctypes.byref(part), ctypes.c_double(x), ctypes.c_double(eta), out)
                z = arb(x) + 0 * arb(eta)
                total = 0
                for d, w in zip(shifts, weights, strict=True):
                    u = arb(d) * (2 * z - d) / (2 * arb(sigma) ** 2)
                    total += arb(w) * u.exp()
                if eta == 0.0:
                    assert abs(total.log() - arb(out[0])) <= arb(out[1])
                    assert out[1] <= 1e-12 * (1.0 + abs(out[0]))
                turned = [
                    arb(w) * (arb(d) * (2 * z - d) / (2 * arb(sigma) ** 2)).exp()
                    for d, w in zip(shifts, weights, strict=True)
                ]
                angles = [arb(d) * arb(eta) / arb(sigma) ** 2 for d in shifts]
                re = sum(t * a.cos() for t, a in zip(turned, angles, strict=True))
                im = sum(t * a.sin() for t, a in zip(turned, angles, strict=True))
                modulus = (re * re + im * im).log() / 2
                assert abs(modulus - arb(out[2])) <= arb(out[4])
                assert abs(arb.atan2(im, re) - arb(out[3])) <= arb(out[4])
