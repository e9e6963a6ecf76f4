"""One line, read far from where it was built and with tolerances out of all proportion."""

import ctypes
from functools import cache

import mpmath
import pytest

from support.native import build, core_files

# builds a line for one step and reads the bracket of its profile
READ = """
#include <math.h>
#include "plan.h"
int read_line(double sigma, int direction, double b, double spread, double built, double log_error,
              double epsilon, double *lower, double *upper) {
    static acct_workspace w;
    if (!w.block && acct_workspace_alloc(&w, ACCT_MAX_NODES)) return -1;
    const acct_step step = acct_step_make(1.0, sigma);
    const acct_problem problem = {.step = step, .steps = 100.0, .direction = direction,
                                  .epsilon = built, .b = b,
                                  .window = acct_plan_window(&step, 100.0, direction, -30.0),
                                  .spread = spread, .log_error = log_error,
                                  .most_points = ACCT_MAX_POINTS};
    const int status = acct_contour_build(&w.contour, &w.law, &w.scratch, &w.cf, &problem);
    if (status) return status;
    acct_profile_point p;
    acct_contour_profile(&w.contour, epsilon, &p);
    *lower = p.bounds.lower;
    *upper = p.bounds.upper;
    return 0;
}
"""


@cache
def gaussian(mu, epsilon):
    """δ of the Gaussian mechanism in forty digits; both directions are the same."""
    with mpmath.workdps(40):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
            -mu / 2 - epsilon / mu
        )


@pytest.fixture(scope="module")
def read_line(tmp_path_factory):
    directory = tmp_path_factory.mktemp("contour")
    source = directory / "read_line.c"
    source.write_text(READ)
    read = build(directory, [*core_files(), source]).read_line
    double, pointer = ctypes.c_double, ctypes.POINTER(ctypes.c_double)
    read.argtypes = [double, ctypes.c_int, *[double] * 5, pointer, pointer]

    def bracket(*problem):
        lower, upper = ctypes.c_double(), ctypes.c_double()
        status = read(*problem, lower, upper)
        return None if status else (lower.value, upper.value)

    return bracket


@pytest.mark.parametrize("direction", [0, 1], ids=["remove", "add"])
@pytest.mark.parametrize("sigma", [1.25, 10.0, 80.0])
def test_a_line_is_valid_wherever_it_was_built_and_read(read_line, sigma, direction):
    """100 steps without sampling, which have a closed form."""
    read = 0
    mu = 10.0 / sigma  # exact
    for b in (0.5, 3.0, 20.0):
        for built in (0.01, 1.0, 8.0, 60.0):
            scale = b * built - mu**2 * b * (b + 1.0) / 2.0
            for log_error in (-30.0, -3.0, 0.0, scale - 30.0, scale - 5.0, scale - 1.0, 700.0):
                for epsilon in (0.0, 0.005, 0.1, 0.4, 1.0, 3.0, 8.0):
                    found = read_line(sigma, direction, b, mu, built, log_error, epsilon)
                    if found:
                        read += 1
                        assert found[0] <= gaussian(mu, epsilon) <= found[1]
    assert read > 200
