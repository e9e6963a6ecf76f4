"""The nodes that one direction leaves to the other: whatever is not whole must not serve."""

import ctypes

import pytest

from support.native import build, core_files

# one_direction.c and plan.c are included, so that their static functions can be asked
ASK = """
#include "one_direction.c"
#undef TOLERANCE
#include "plan.c"
#include "gauss_legendre.h"

enum { WHOLE, SHORT_OF_ROOM, THRESHOLD, SHIFTED };

/* sets a law on a window in one of these ways; 1: its nodes will do for the other direction */
int who_takes_it(double q, double sigma, int way) {
    static acct_workspace w;
    if (!w.block && acct_workspace_alloc(&w, ACCT_MAX_NODES)) return -1;
    const int room = w.law.capacity;
    const acct_step step = acct_step_make(q, sigma);
    acct_window window = acct_plan_window(&step, 1000.0, ACCT_REMOVE, -30.0);
    const acct_window narrow = {.lo = window.lo + 0.5 * sigma, .hi = 0.9 * window.hi};
    int status = acct_tilted_law_set(&w.law, &step, &window, 2.0, 0.0, -40.0);
    if (status || !w.law.whole) return -2;
    if (way == SHORT_OF_ROOM) w.law.capacity = ACCT_GL_ORDER;
    if (way == SHIFTED) window.shift = 0.5 * fmin(sigma, sigma * sigma);
    if (way == THRESHOLD)
        window.threshold = (acct_threshold){.origin = step.log_1mq, .scale = 4.0, .doublings = 4};
    status = acct_tilted_law_set(&w.law, &step, &window, 2.0, 0.0, -40.0);
    w.law.capacity = room;
    if ((status == ACCT_EPRECISION) != (way == SHORT_OF_ROOM) || !w.law.panels) return -3;
    return has_nodes(&w, &narrow);
}

/* a workspace that was never used has no nodes, and says so without reading what was never set */
int unused_has_nodes(void) {
    acct_workspace w;
    for (unsigned char *at = (unsigned char *)&w; at < (unsigned char *)(&w + 1); at++) *at = 0xff;
    if (acct_workspace_alloc(&w, ACCT_MAX_NODES)) return -1;
    const acct_window window = {.lo = -1.0, .hi = 1.0};
    const int found = has_nodes(&w, &window) + 2 * (w.contour.direction != ACCT_REMOVE);
    acct_workspace_free(&w);
    return found;
}

/* the widest panel of a law of so large an error, in deviations of the noise */
double widest(double q, double sigma, double log_delta, double order, double log_error) {
    acct_workspace w;
    double most = -1.0, before;
    if (acct_workspace_alloc(&w, ACCT_MAX_NODES)) return -1.0;
    const acct_step step = acct_step_make(q, sigma);
    const acct_window window = acct_plan_window(&step, 1.0, ACCT_REMOVE, log_delta);
    if (!acct_tilted_law_set(&w.law, &step, &window, order, 0.0, log_error)) {
        before = window.lo;
        for (int i = 0; i < w.law.panels; i++) { /* to twice the middle, less the start */
            const double end = 2.0 * w.law.panel[i].mid - before;
            most = fmax(most, (end - before) / sigma);
            before = end;
        }
    }
    acct_workspace_free(&w);
    return most;
}

/* sets mean, variance and log A as searches have them, then as certificates do */
int moments(double q, double sigma, double order, double found[6]) {
    acct_workspace w;
    if (acct_workspace_alloc(&w, ACCT_MAX_NODES)) return -1;
    const acct_step step = acct_step_make(q, sigma);
    const acct_window window = acct_plan_window(&step, 10.0, ACCT_REMOVE, -300.0);
    const int status = acct_tilted_law_set(&w.law, &step, &window, 1.0, 0.0, -10.0);
    for (int certify = 0; certify < 2 && !status; certify++) {
        acct_moments m;
        acct_tilted_law_moments(&w.law, order, certify, &m);
        found[3 * certify] = m.mean;
        found[3 * certify + 1] = m.m2;
        found[3 * certify + 2] = m.log_mgf;
    }
    acct_workspace_free(&w);
    return status;
}

/* what the sums leave of the mean, by the quadrature's bounds, over what the bound on its error and
 * the quadrature's on (L - mean) N e^{cL} count of it (the paper, Section 4); -1: no claim */
double left_of_mean(double q, double sigma, int direction, double b, double log_error) {
    static acct_workspace w;
    if (!w.block && acct_workspace_alloc(&w, ACCT_MAX_NODES)) return -1.0;
    acct_moments m;
    double of_one, of_exp_u;
    const acct_step step = acct_step_make(q, sigma);
    const acct_window window = acct_plan_window(&step, 1000.0, direction, -20.0);
    const double order = acct_order_at(direction, b);
    if (acct_tilted_law_set(&w.law, &step, &window, order, 1.0, log_error)) return -1.0;
    acct_tilted_law_moments(&w.law, order, 1, &m);
    acct_tilted_law_plain_errors(&w.law, &of_one, &of_exp_u);
    const double a = exp(m.log_mgf), linear = q * (of_one + of_exp_u) / a;
    const double left = linear + fabs(m.mean) * (of_one / a + fabs(order) * linear);
    const double one = acct_tilted_law_error(&w.law, &m, 0.0);
    if (!(m.log_mgf_err < INFINITY)) return -1.0;
    return left / (m.mean_err + one * acct_tilted_law_reach(&w.law, m.mean));
}
"""

WHOLE, SHORT_OF_ROOM, THRESHOLD, SHIFTED = range(4)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tilted_law")
    source = directory / "ask.c"
    source.write_text(ASK)
    included = {"one_direction.c", "plan.c"}
    others = [file for file in core_files() if file.name not in included]
    found = build(directory, [*others, source])
    found.who_takes_it.argtypes = [ctypes.c_double, ctypes.c_double, ctypes.c_int]
    found.widest.argtypes = [ctypes.c_double] * 5
    found.widest.restype = ctypes.c_double
    found.left_of_mean.argtypes = [*[ctypes.c_double] * 2, ctypes.c_int, *[ctypes.c_double] * 2]
    found.left_of_mean.restype = ctypes.c_double
    return found


@pytest.mark.parametrize(("q", "sigma"), [(0.01, 0.6), (0.3, 1.0), (0.001, 5.0)])
def test_only_a_whole_law_is_taken(library, q, sigma):
    assert library.who_takes_it(q, sigma, WHOLE) == 1
    # the first panels are as good as before, but the last are missing
    assert library.who_takes_it(q, sigma, SHORT_OF_ROOM) == 0
    # panels that were judged with a threshold, or on a path beside the real noise
    assert library.who_takes_it(q, sigma, THRESHOLD) == 0
    assert library.who_takes_it(q, sigma, SHIFTED) == 0


def test_a_workspace_that_was_never_used_has_no_nodes(library):
    assert library.unused_has_nodes() == 0


@pytest.mark.parametrize("order", [-30.0, -0.5, 1.0, 1.5, 30.0, 400.0, 900.0])
@pytest.mark.parametrize(("q", "sigma"), [(1e-7, 1.0), (4e-7, 1.7), (1e-3, 5.0), (0.3, 1.0)])
def test_a_search_has_the_moments_of_a_certificate(library, q, sigma, order):
    # Far orders leave no more than the window's end: the mean's square hides the variance there.
    found = (ctypes.c_double * 6)()
    library.moments.argtypes = [ctypes.c_double] * 3 + [ctypes.c_double * 6]
    assert library.moments(q, sigma, order, found) == 0
    assert found[3:] == pytest.approx(found[:3], rel=1e-6, abs=0.0)


@pytest.mark.parametrize("log_delta", [-2.0, -30.0, -300.0, -700.0])
@pytest.mark.parametrize("log_error", [-0.5, -3.0, -8.0])
@pytest.mark.parametrize(("q", "sigma"), [(1e-9, 1.0), (1e-3, 5.0), (1e-4, 50.0), (0.3, 20.0)])
def test_panels_are_no_wider_than_their_round_off_is_counted_for(
    library, q, sigma, log_delta, log_error
):
    for order in (0.0, 1.0, 2.0):
        assert 0.0 < library.widest(q, sigma, log_delta, order, log_error) <= 12.0


@pytest.mark.parametrize("direction", [0, 1])
def test_the_mean_is_a_quotient(library, direction):
    """What the quadrature moves A by moves A'/A, too: coarse laws of large orders show it."""
    found = [
        library.left_of_mean(q, sigma, direction, b, log_error)
        for q in (1e-6, 0.01, 0.3, 0.6, 0.9, 0.99)
        for sigma in (0.3, 0.5, 1.0, 3.0, 20.0)
        for b in (0.1, 1.0, 10.0, 60.0)
        for log_error in (-8.0, -20.0)
    ]
    assert sum(each > 0.0 for each in found) > 100
    assert max(found) <= 1.0
