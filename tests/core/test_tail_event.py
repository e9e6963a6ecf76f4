"""Outcomes beyond the window: what was set for one number of steps, read for another."""

import ctypes

import pytest

from support.native import build, core_files

DRIVER = """
#include <string.h>
#include "plan.h"
/* out: the profile's ends and the reverse term's log, read for other steps and set for them */
int read_tail(double q, double sigma, double end, double built, double steps, double epsilon,
              double *out) {
    static acct_workspace w;
    if (!w.block && acct_workspace_alloc(&w, ACCT_MAX_NODES)) return -1;
    const acct_step step = acct_step_make(q, sigma);
    acct_window window = acct_plan_window(&step, built, ACCT_REMOVE, -30.0);
    window.hi = end;
    /* nodes as fine as a line's */
    if (acct_tilted_law_set(&w.law, &step, &window, 3.0, 20.0, -40.0)) return -1;
    acct_tail_event tail[2];
    memset(tail, 0xff, sizeof tail); /* NaN where nothing is set */
    acct_tail_event_set(&tail[0], &w.law, built, ACCT_REMOVE, epsilon, 0.0, 1);
    acct_tail_event_for_steps(&tail[0], &w.law, steps);
    acct_tail_event_set(&tail[1], &w.law, steps, ACCT_REMOVE, epsilon, tail[0].reverse_order, 1);
    for (int i = 0; i < 2; i++) {
        acct_bounds share;
        acct_tail_event_profile(&tail[i], epsilon, &share);
        out[3 * i] = share.lower;
        out[3 * i + 1] = share.upper;
        out[3 * i + 2] = tail[i].reverse_log;
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def read_tail(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tail_event")
    source = directory / "read_tail.c"
    source.write_text(DRIVER)
    read = build(directory, [*core_files(), source]).read_tail
    double = ctypes.c_double
    read.argtypes = [*[double] * 6, ctypes.POINTER(double)]

    def ask(*problem):
        out = (double * 6)()
        assert read(*problem, out) == 0
        return list(out)

    return ask


@pytest.mark.parametrize(
    ("q", "sigma", "end"), [(0.01, 1.0, 3.5), (0.2, 0.7, 2.5), (0.05, 1.5, 4.5)]
)
@pytest.mark.parametrize("steps", [2.0, 99.0, 100.0, 5000.0])
def test_other_steps_read_what_would_be_set_for_them(read_tail, q, sigma, end, steps):
    found = read_tail(q, sigma, end, 100.0, steps, 0.05)
    assert found[:3] == found[3:]
    assert 0.0 <= found[0] <= found[1] <= 1.0
    assert found[2] < float("inf")


def test_a_window_that_ends_below_epsilon_has_no_reverse_term(read_tail):
    lower, upper, reverse = read_tail(0.01, 1.0, 3.5, 100.0, 500.0, 9.0)[:3]
    assert reverse == float("inf")
    assert 0.0 <= lower <= upper <= 1.0
