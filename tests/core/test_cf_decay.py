"""Where the terms of a line may stop: what is quicker must not stop elsewhere."""

import ctypes

import pytest

from support.native import SOURCES, build

# cf_decay.c is included, so that its static functions can be asked
ASK = """
#include "cf_decay.c"
#include "plan.h"

/* how far apart, relatively, the moments' reach is by short strides and by long ones first;
 * -1: no law, -2: not even one long stride */
double apart(double q, double sigma, double steps, double order, double share, double beyond) {
    acct_workspace w;
    if (acct_workspace_alloc(&w, ACCT_MAX_NODES)) return -1.0;
    const acct_step step = acct_step_make(q, sigma);
    const acct_window window = acct_plan_window(&step, steps, ACCT_REMOVE, -30.0);
    double found = -1.0;
    if (!acct_tilted_law_set(&w.law, &step, &window, order, 0.0, -40.0)) {
        acct_cf_decay decay;
        acct_moments m;
        acct_tilted_law_moments(&w.law, order, 1, &m);
        acct_cf_decay_set(&decay, &w.law, &m, steps);
        decay.y_uniform = beyond / sqrt(m.m2);
        const double b = order - 1.0, quick = descend(&decay, b, share);
        const double slow = descend_by(&decay, b, share, decay.y_uniform, STRIDE);
        found = slow < 0.8 * decay.y_uniform ? fabs(quick / slow - 1.0) : -2.0;
    }
    acct_workspace_free(&w);
    return found;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    directory = tmp_path_factory.mktemp("cf_decay")
    source = directory / "ask.c"
    source.write_text(ASK)
    others = [file for file in sorted(SOURCES.glob("*.c")) if file.name != "cf_decay.c"]
    found = build(directory, [*others, source])
    found.apart.restype = ctypes.c_double
    found.apart.argtypes = [ctypes.c_double] * 6
    return found


@pytest.mark.parametrize(
    ("q", "sigma", "steps", "order"),
    [(0.01, 0.6, 1e5, 3.0), (0.3, 1.0, 1e4, 4.0), (0.001, 5.0, 1e7, 20.0), (0.05, 2.0, 1e6, 1.5)],
)
@pytest.mark.parametrize("share", [1e-6, 1e-12, 1e-20])
def test_long_strides_end_where_short_ones_do(library, q, sigma, steps, order, share):
    for beyond in (0.9, 0.97, 1.0, 1.03):
        assert 0.0 <= library.apart(q, sigma, steps, order, share, beyond) < 1e-9
