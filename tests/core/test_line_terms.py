"""Terms of a line that are turned from point to point, against sums in ball arithmetic."""

import ctypes
import random
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from support.native import build, core_files

MOST = 400
DRIVER = """
#include "characteristic_sum.h"
void sum_terms(int count, double dy, const double *amplitude, const double *phase, double drift,
              double epsilon, double b, double *out) {
    static double re[512], im[512];
    acct_line_terms terms = {.re = re, .im = im};
    acct_line_sums sums;
    for (int k = 0; k < 512; k++) {
        re[k] = k < count ? amplitude[k] : 1e300; /* what was there before */
        im[k] = k < count ? phase[k] : 1e300;
    }
    acct_line_terms_set(&terms, count, dy);
    acct_line_terms_sum(&terms, drift - epsilon, fabs(drift) + fabs(epsilon), b, &sums);
    out[0] = sums.re;
    out[1] = sums.slope;
    out[2] = sums.rounding;
}
"""
U = Fraction(1, 2**53)


@pytest.fixture(scope="module")
def sum_terms(tmp_path_factory):
    directory = tmp_path_factory.mktemp("line_terms")
    source = directory / "sum_terms.c"
    source.write_text(DRIVER)
    summed = build(directory, [*core_files(), source]).sum_terms
    double, pointer = ctypes.c_double, ctypes.POINTER(ctypes.c_double)
    summed.argtypes = [ctypes.c_int, double, pointer, pointer, double, double, double, pointer]

    def ask(dy, amplitude, phase, drift, epsilon, b):
        array, out = double * len(amplitude), (double * 3)()
        summed(len(amplitude), dy, array(*amplitude), array(*phase), drift, epsilon, b, out)
        return list(out)

    return ask


def exact(value):
    value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def true_sums(dy, amplitude, phase, drift, epsilon, b):
    """The sum of a cos(phase + (drift - ε) y), and its derivative beside a factor e^-bε."""
    rate, real, slope = Fraction(drift) - Fraction(epsilon), arb(0), arb(0)
    for k, (a, angle) in enumerate(zip(amplitude, phase, strict=True)):
        y = k * Fraction(dy)
        s, c = exact(Fraction(angle) + rate * y).sin_cos()
        real += exact(a) * c
        slope += exact(a) * (exact(y) * s - exact(b) * c)
    return real, slope


def lines(draw, count):
    """Amplitudes that fall, phases and a step of 24 bits; a drift that was rounded, and ε."""
    dy = draw.randrange(2**23, 2**24) * 2.0 ** draw.randrange(-30, -18)
    flat, turn = draw.choice([0.5, 3.0, 30.0]), draw.choice([0.0, 0.01, 1.0, 1000.0])
    amplitude = [2.0 ** (-flat * k / count) * draw.random() for k in range(count)]
    phase = [draw.uniform(-turn, turn) * k for k in range(count)]
    rounded = draw.uniform(-50.0, 50.0)
    drift = Fraction(rounded) * (1 + draw.choice([-1, 0, 1]) * U)
    return dy, amplitude, phase, rounded, drift, draw.choice([0.0, draw.uniform(0.0, 60.0)])


# around one register, one strand, the turns between two sines, and many of them
@pytest.mark.long(keep=13)
@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 31, 33, 110, 127, 128, 129, 186, 257, MOST])
def test_the_sum_is_as_near_as_it_says(sum_terms, count):
    draw, worst = random.Random(count), 0.0
    for _ in range(12):
        dy, amplitude, phase, rounded, drift, epsilon = lines(draw, count)
        b = draw.uniform(0.1, 20.0)
        found = sum_terms(dy, amplitude, phase, rounded, epsilon, b)
        with ctx.workprec(200):
            real, slope = true_sums(dy, amplitude, phase, drift, epsilon, b)
            apart = abs(real - exact(found[0]))
            assert apart < exact(found[2])
            size = sum(a * (k * dy + b) for k, a in enumerate(amplitude))
            assert abs(slope - exact(found[1])) < exact(1e-8 * size)
            worst = max(worst, float((apart / exact(found[2])).mid()))
    assert worst > 1e-4 or count == 1  # the bound is not beside the point


@pytest.mark.parametrize("phase", [0.5, 2.0**20, -(2.0**30)])
@pytest.mark.parametrize("drift", [1.0, 2.0**20, -(2.0**25)])
def test_angles_beyond_the_range_of_the_vector_sines(sum_terms, phase, drift):
    line = 0.5, [1.0] * 20, [0.0] * 19 + [phase]
    found = sum_terms(*line, drift, 0.5, 1.0)
    with ctx.workprec(200):
        real, _ = true_sums(*line, Fraction(drift), 0.5, 1.0)
        assert abs(real - exact(found[0])) < exact(found[2])


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_no_number_has_no_bound(sum_terms, wrong):
    assert not sum_terms(0.5, [1.0] * 20, [0.0] * 19 + [wrong], 1.0, 0.5, 1.0)[2] < float("inf")
    assert not sum_terms(0.5, [1.0] * 20, [0.0] * 20, wrong, 0.5, 1.0)[2] < float("inf")


def test_terms_without_a_bound_have_none(sum_terms):
    assert not sum_terms(0.5, [1.0, float("inf")], [0.0, 0.0], 1.0, 0.5, 1.0)[2] < float("inf")
