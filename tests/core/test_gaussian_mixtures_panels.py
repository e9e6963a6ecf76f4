"""The bounds on panels, tails and decay where the shift is random, against ball arithmetic.

A driver calls the core's own functions on one step: the transform over the window at real orders
and its claimed error (Theorems 4 and D3), the masses above the window (D4), and the bounds on the
fall of the transform along a line (Theorems 6 and 7 with D5). The truth is an integral in balls.
"""

import ctypes
import math
import random
from itertools import pairwise

import pytest
from flint import acb, arb, ctx

from support.native import build, core_files

DRIVER = """
#include <stdlib.h>
#include "cf_decay.h"
#include "mixture_loss.h"
#include "tilted_law.h"

/* out: log A(c), its error; P - Q above, its relative error; bounds on log |phi(y)|; mean, error */
int driver(const acct_mixture_part *part, double lo, double hi, double c, double y,
           double log_error, double shift, double *out) {
    acct_mixture mixture;
    acct_tilted_law *law = malloc(sizeof *law);
    acct_cf_decay *decay = malloc(sizeof *decay);
    double *memory = malloc(ACCT_TILTED_LAW_DOUBLES(ACCT_MAX_NODES) * sizeof(double));
    int status = acct_mixture_set(&mixture, part);
    const acct_step step = acct_step_make_mixture(&mixture, part->sigma);
    const acct_window window = {.lo = lo, .hi = hi, .shift = shift};
    acct_tilted_law_place(law, memory, ACCT_MAX_NODES);
    if (!status) status = acct_tilted_law_set(law, &step, &window, c, 0.0, log_error);
    if (!status) {
        acct_moments m;
        acct_tilted_law_moments(law, c, 1, &m);
        out[0] = m.log_mgf;
        out[1] = m.log_mgf_err;
        out[2] = law->pq_above;
        out[3] = law->above_err;
        acct_cf_decay_set(decay, law, &m, 1.0);
        out[4] = acct_cf_decay_moment_upper(decay, y, y);
        out[5] = acct_cf_decay_minorant_upper(decay, y, 3, 24, -50.0);
        out[6] = m.mean;
        out[7] = m.mean_err;
    }
    free(memory);
    free(decay);
    free(law);
    return status;
}

/* where the bound along a shifted path takes over, infinite where none does; and its logarithm */
double shifted(const acct_mixture_part *part, double lo, double hi, double c, double steps,
               double wanted, double *log_bound) {
    acct_mixture mixture;
    acct_tilted_law *law = malloc(2 * sizeof *law);
    acct_cf_decay *decay = malloc(sizeof *decay);
    const size_t each = ACCT_TILTED_LAW_DOUBLES(ACCT_MAX_NODES);
    double *memory = malloc(2 * each * sizeof(double)), found = -1.0;
    const int status = acct_mixture_set(&mixture, part);
    const acct_step step = acct_step_make_mixture(&mixture, part->sigma);
    const acct_window window = {.lo = lo, .hi = hi};
    acct_tilted_law_place(law, memory, ACCT_MAX_NODES);
    acct_tilted_law_place(law + 1, memory + each, ACCT_MAX_NODES);
    if (!status && !acct_tilted_law_set(law, &step, &window, c, 0.0, -32.0)) {
        acct_moments m;
        acct_tilted_law_moments(law, c, 1, &m);
        acct_cf_decay_set(decay, law, &m, steps);
        acct_cf_decay_shift(decay, law + 1, wanted, 1e5);
        found = decay->y_uniform;
        *log_bound = decay->log_uniform;
    }
    free(memory);
    free(decay);
    free(law);
    return found;
}
"""


class Part(ctypes.Structure):
    _fields_ = (
        ("sigma", ctypes.c_double), ("count", ctypes.c_int),
        ("shift", ctypes.POINTER(ctypes.c_double)), ("weight", ctypes.POINTER(ctypes.c_double)),
        ("silent", ctypes.c_double), ("weight_err", ctypes.c_double),
    )  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    directory = tmp_path_factory.mktemp("driver")
    source = directory / "driver.c"
    source.write_text(DRIVER)
    return build(directory, [source, *core_files()])


@pytest.fixture(scope="module")
def driver(library):
    return library.driver


def log_uniform(draw, low, high):
    return math.exp(draw.uniform(math.log(low), math.log(high)))


class Step:
    """One step, in balls."""

    def __init__(self, draw):
        self.sigma = log_uniform(draw, 0.3, 10.0)
        count = draw.randint(1, 6)
        self.shifts = sorted({round(log_uniform(draw, 0.2, 6.0), 4) for _ in range(count)})
        q = log_uniform(draw, 1e-5, 0.9)
        parts = [log_uniform(draw, 1e-4, 1.0) for _ in self.shifts]
        self.weights = [q * part / (1.000001 * math.fsum(parts)) for part in parts]

    def asked(self, driver, lo, hi, c, y, log_error):
        double = ctypes.c_double * len(self.shifts)
        part = Part(
            self.sigma, len(self.shifts), double(*self.shifts), double(*self.weights), 0.0, 0.0
        )
        out = (ctypes.c_double * 8)()
        status = driver(
            ctypes.byref(part), *map(ctypes.c_double, (lo, hi, c, y, log_error, 0.0)), out
        )
        return None if status else list(out)

    def transform(self, lo, hi, s, weighted=False):
        """The integral of N e^{sL} over the window, or of N L e^{sL}."""
        var = arb(self.sigma) ** 2
        rest = 1 - sum(map(arb, self.weights), arb(0))

        def integrand(x, analytic):
            parts = [
                arb(w) * ((2 * x - d) * arb(d) / (2 * var)).exp()
                for d, w in zip(self.shifts, self.weights, strict=True)
            ]
            loss = sum(parts, acb(rest)).log(analytic=analytic)
            value = (s * loss - x * x / (2 * var)).exp()
            return value * loss if weighted else value

        whole = acb(0)
        edges = [lo + (hi - lo) * i / 24 for i in range(25)]
        for a, b in pairwise(edges):
            whole += acb.integral(integrand, a, b, rel_tol=2.0**-90, abs_tol=2.0**-200)
        return whole / (arb(self.sigma) * (2 * arb.pi()).sqrt())


@pytest.mark.long
def test_one_step_against_integrals(driver):
    ctx.prec = 160
    draw = random.Random(11)
    useful, seen = 0, 0
    for _ in range(60):
        step = Step(draw)
        c = draw.choice([1.0 + log_uniform(draw, 0.01, 20.0), -log_uniform(draw, 0.01, 20.0)])
        lo = -draw.uniform(5.0, 9.0) * step.sigma
        hi = step.shifts[-1] + draw.uniform(1.0, 8.0) * step.sigma
        y = log_uniform(draw, 0.05, 200.0)
        out = step.asked(driver, lo, hi, c, y, draw.choice([-8.0, -14.0, -32.0]))
        if out is None:
            continue
        seen += 1
        real = step.transform(lo, hi, acb(c)).real
        assert abs(arb(out[0]) - real.log()) <= arb(out[1])
        mean = step.transform(lo, hi, acb(c), weighted=True).real / real
        assert abs(arb(out[6]) - mean) <= arb(out[7])
        tails = [
            arb(w) * (((hi - arb(d)) / step.sigma / arb(2).sqrt()).erfc())
            for d, w in zip(step.shifts, step.weights, strict=True)
        ]
        none = sum(map(arb, step.weights), arb(0)) * ((hi / arb(step.sigma)) / arb(2).sqrt()).erfc()
        above = (sum(tails, arb(0)) - none) / 2
        assert abs(arb(out[2]) - above) <= arb(out[3]) * above
        fall = abs(step.transform(lo, hi, acb(c, y)) / real).log()
        assert fall.lower() <= arb(out[4])
        assert fall.lower() <= arb(out[5])
        useful += out[5] < -1e-3
    assert seen > 30
    assert useful > 6


@pytest.mark.long
@pytest.mark.parametrize("last", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_the_bound_along_a_shifted_path(library, last):
    """Theorem 9 with D14: beyond the y returned, the transform stays below the bound.

    The largest shift times twice the height of the path is far beyond π in many of the cases.
    """
    ctx.prec = 160
    draw = random.Random(5)
    library.shifted.restype = ctypes.c_double
    cases = [
        (0.4, (1.0, 2.0, 3.0, 4.0, 5.0), (0.3, 0.3, 0.2, 0.1, 0.1)),
        (8.0, (1.0, 50.0, 100.0), (0.53, 0.43, 0.04)),
        (8.0, (1.0, 2.0), (0.53, 0.47)),
        (3.0, tuple(map(float, range(1, 31))), None),
    ]
    taken = 0
    for sigma, shifts, weights in cases[:last]:
        if weights is None:
            chances = [math.comb(30, k) * 0.4**k * 0.6 ** (30 - k) for k in range(1, 31)]
            weights = tuple(chance / math.fsum(chances) for chance in chances)
        double = ctypes.c_double * len(shifts)
        part = Part(sigma, len(shifts), double(*shifts), double(*weights), 1e-20, 1e-15)
        lo, hi = -8.0 * sigma, shifts[-1] + 8.0 * sigma
        for wanted in (-4.0, -10.0):
            c, bound = 1.0 + log_uniform(draw, 0.01, 0.2), ctypes.c_double()
            numbers = map(ctypes.c_double, (lo, hi, c, 1.0, wanted))
            y = library.shifted(ctypes.byref(part), *numbers, ctypes.byref(bound))
            if not 0.0 < y < math.inf:
                continue
            taken += 1
            step = Step.__new__(Step)
            step.sigma, step.shifts, step.weights = sigma, shifts, weights
            real = step.transform(lo, hi, acb(c)).real
            for at in (y, 1.1 * y, 1.5 * y):
                fall = abs(step.transform(lo, hi, acb(c, at)) / real).log()
                assert fall.lower() <= arb(bound.value) + arb(1e-9)
    assert taken >= last
