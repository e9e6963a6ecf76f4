"""Integrals of a law below a soft threshold, certified, against mpmath."""

import ctypes
import math

import mpmath
import numpy as np
import pytest

from support.native import build, core_files

ASK = """
#include "bounds.h"
#include "tilted_law.h"

/* out: log A(c) and its error, the mean loss and its error; returns the status */
int moments(double q, double sigma, double order, double outer, double lo, double hi,
            double log_error, double *out) {
    static double slots[ACCT_TILTED_LAW_DOUBLES(ACCT_MAX_NODES)];
    static double above[ACCT_MAX_NODES], share[ACCT_MAX_NODES];
    const acct_step step = acct_step_make(q, sigma);
    const acct_threshold threshold = {step.log_1mq, outer, ACCT_OUTER_DOUBLINGS};
    acct_tilted_law law;
    acct_moments m;
    acct_tilted_law_place(&law, slots, ACCT_MAX_NODES);
    const acct_window window = {.lo = lo, .hi = hi, .threshold = threshold};
    const int status = acct_tilted_law_set(&law, &step, &window, order, 0.0, log_error);
    if (status) return status;
    acct_threshold_values(law.count, law.loss, threshold, above, share);
    acct_thresholded_moments(&law, above, share, threshold, order, 1, &m);
    out[0] = m.log_mgf;
    out[1] = m.log_mgf_err;
    out[2] = m.mean;
    out[3] = m.mean_err;
    return ACCT_OK;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    directory = tmp_path_factory.mktemp("thresholded_law")
    source = directory / "ask.c"
    source.write_text(ASK)
    found = build(directory, [*core_files(), source])
    doubles = np.ctypeslib.ndpointer(dtype=np.float64, flags="C_CONTIGUOUS")
    found.moments.argtypes = [*[ctypes.c_double] * 7, doubles]
    return found


def moments(library, *given):
    out = np.empty(4)
    return library.moments(*given, out), out


@pytest.mark.long
@pytest.mark.parametrize(
    ("q", "sigma", "order", "outer", "window"),
    [
        (2.24e-3, 0.25, 1.32, 3.2, (-2.2, 2.0)),
        (1e-4, 0.6, 4.0, 2.0, (-5.0, 6.5)),
        (0.05, 0.8, 1.01, 3.0, (-7.0, 8.0)),
        (1e-7, 1.3, 30.0, 0.05, (-11.0, 13.0)),
    ],
)
def test_moments_are_within_their_errors(library, q, sigma, order, outer, window):
    status, (log_a, error, mean, mean_error) = moments(
        library, q, sigma, order, outer, *window, -40.0
    )
    assert status == 0
    with mpmath.workdps(40):
        q, s, c = mpmath.mpf(q), mpmath.mpf(sigma), mpmath.mpf(order)

        def at(x):
            above_zero = mpmath.log1p(q / (1 - q) * mpmath.exp((2 * x - 1) / (2 * s**2)))
            t = -mpmath.expm1(-((above_zero / mpmath.mpf(outer)) ** 2))
            loss = above_zero + mpmath.log1p(-q)
            density = mpmath.exp(c * loss - x**2 / (2 * s**2)) / (s * mpmath.sqrt(2 * mpmath.pi))
            return (1 - t**128) * density, loss

        ends = mpmath.linspace(*map(mpmath.mpf, window), 61)
        whole = mpmath.quad(lambda x: at(x)[0], ends)
        exact = mpmath.quad(lambda x: math.prod(at(x)), ends) / whole
        assert abs(mpmath.log(whole) - mpmath.mpf(log_a)) <= error < 1e-11
        assert abs(exact - mpmath.mpf(mean)) <= mean_error < 1e-10


@pytest.mark.parametrize(
    ("q", "sigma", "order", "outer", "window", "log_error"),
    [
        (1e-4, 0.12, 8.6, 300.0, (-1.2, 2.0), 640.0),
        (1e-3, 1.0, 35.0, 15.0, (-9.0, 37.0), 300.0),
        (1e-3, 1.0, 31.0, 13.0, (-9.0, 36.0), 200.0),
    ],
)
def test_what_leaves_the_doubles_has_no_bound(library, q, sigma, order, outer, window, log_error):
    """Below the threshold e^{(c-1)L} overflows, while N e^{cL} is within the doubles."""
    status, (_, error, _, mean_error) = moments(library, q, sigma, order, outer, *window, log_error)
    assert status == 0
    assert error == math.inf
    assert not mean_error < math.inf
