"""Where the terms of a line may stop: what is quicker must not stop elsewhere."""

import ctypes

import numpy as np
import pytest

from support.native import build, core_files

# cf_decay.c is included, so that its static functions can be asked
ASK = """
#include "cf_decay.c"
#include "plan.h"
#include "saddle_point.h"

/* panels that end where a line's do; of losses up to `most` */
static int set_law(acct_tilted_law *law, const acct_step *step, double steps, double order,
                   double most, acct_moments *m) {
    acct_window window = acct_plan_window(step, steps, ACCT_REMOVE, -30.0);
    window.hi = fmin(window.hi, acct_loss_inverse(step, most));
    if (acct_tilted_law_set(law, step, &window, order, 0.0, -40.0)) return 0;
    acct_tilted_law_moments(law, order, 1, m);
    acct_place_breaks(step, law->count, law->loss, law->weight, &window);
    if (acct_tilted_law_set(law, step, &window, order, 0.0, -40.0)) return 0;
    acct_tilted_law_moments(law, order, 1, m);
    return 1;
}

/* the bounds on steps * log |phi(y)| by the moments, and about the truth, at so many y
 * returns 0 where there is no law */
int decay_at(double q, double sigma, double steps, double order, double most, int count,
             const double *y, double *bound, double *truth) {
    acct_workspace w;
    acct_moments m;
    acct_cf_decay decay;
    if (acct_workspace_alloc(&w, ACCT_MAX_NODES)) return 0;
    const acct_step step = acct_step_make(q, sigma);
    const int set = set_law(&w.law, &step, steps, order, most, &m);
    if (set) acct_cf_decay_set(&decay, &w.law, &m, steps);
    for (int i = 0; i < count && set; i++) {
        double re = 0.0, im = 0.0;
        for (int j = 0; j < w.law.count; j++) {
            re += w.law.weight[j] * cos(y[i] * (w.law.loss[j] - m.mean));
            im += w.law.weight[j] * sin(y[i] * (w.law.loss[j] - m.mean));
        }
        truth[i] = 0.5 * steps * log(re * re + im * im);
        bound[i] = steps * acct_cf_decay_moment_upper(&decay, y[i], y[i]);
    }
    acct_workspace_free(&w);
    return set;
}

/* how far apart, relatively, the moments' reach is by short strides and by long ones first;
 * -1: no law, -2: not even one long stride */
double apart(double q, double sigma, double steps, double order, double share, double beyond) {
    acct_workspace w;
    if (acct_workspace_alloc(&w, ACCT_MAX_NODES)) return -1.0;
    const acct_step step = acct_step_make(q, sigma);
    double found = -1.0;
    acct_moments m;
    if (set_law(&w.law, &step, steps, order, 1e3, &m)) {
        acct_cf_decay decay;
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
    others = [file for file in core_files() if file.name != "cf_decay.c"]
    found = build(directory, [*others, source])
    found.apart.restype = ctypes.c_double
    found.apart.argtypes = [ctypes.c_double] * 6
    doubles = np.ctypeslib.ndpointer(dtype=np.float64, flags="C_CONTIGUOUS")
    found.decay_at.argtypes = [*[ctypes.c_double] * 5, ctypes.c_int, doubles, doubles, doubles]
    return found


@pytest.mark.parametrize(
    ("q", "sigma", "steps", "order"),
    [(0.01, 0.6, 1e5, 3.0), (0.3, 1.0, 1e4, 4.0), (0.001, 5.0, 1e7, 20.0), (0.05, 2.0, 1e6, 1.5)],
)
@pytest.mark.parametrize("share", [1e-6, 1e-12, 1e-20])
def test_long_strides_end_where_short_ones_do(library, q, sigma, steps, order, share):
    for beyond in (0.9, 0.97, 1.0, 1.03):
        assert 0.0 <= library.apart(q, sigma, steps, order, share, beyond) < 1e-9


# Most losses are tiny and a few are large, by a factor of 10^4 to 10^5 of each other.
SPREAD = [
    (2.9e-5, 0.48, 179542.0, 6.4, 1.1),
    (5.6e-6, 0.465, 42513.0, 80.0, 0.09),
    (1.4e-5, 0.555, 2087569.0, 8.0, 1.3),
]


@pytest.mark.parametrize(("q", "sigma", "steps", "order", "most"), SPREAD)
def test_moments_bound_the_decay_of_a_law_spread_over_scales(library, q, sigma, steps, order, most):
    count = 200
    y = np.geomspace(1.0, 1e5, count)
    bound, truth = np.empty(count), np.empty(count)
    assert library.decay_at(q, sigma, steps, order, most, count, y, bound, truth)
    # sums over the nodes are the truth where neighbouring nodes' losses turn by little
    known = truth > -300.0
    rounding = 1e-14 * steps  # of those sums, whose logarithm is raised to so many steps
    assert np.all(bound[known] >= truth[known] - rounding)
    # from where the terms are small the bound stays so: no scale is without a window
    small = int(np.argmax(bound < -40.0))
    assert bound[small] < -40.0
    assert y[small] < 2.5 * y[int(np.argmax(truth < -40.0))]
    assert np.all(bound[small : small + 40] < -20.0)
