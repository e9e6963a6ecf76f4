"""The tail event of different steps (Theorem 16), where its masses nearly underflow."""

import ctypes

import pytest
from flint import arb, ctx

from support.native import build, core_files

# One part whose window ends at `hi`, closed without any point of a line.
DRIVER = """
#include "heterogeneous_sum.c"
int driver(double q, double sigma, double hi, double steps, double epsilon, double *out) {
    static double memory[ACCT_TILTED_LAW_DOUBLES(ACCT_MAX_NODES)];
    static double points[ACCT_HETEROGENEOUS_SUM_DOUBLES];
    static acct_heterogeneous_sum sums;
    static double terms[2][ACCT_LINE_SPARE];
    static acct_contour contour = {.terms = {.re = terms[0], .im = terms[1]}};
    static acct_tilted_law law;
    const acct_step step = acct_step_make(q, sigma);
    const acct_window window = {.lo = -40.0 * sigma, .hi = hi};
    const acct_heterogeneous_plan plan = {
        .direction = ACCT_REMOVE, .steps = steps, .b = 0.5, .dy = 0.5, .right_b = 1.0,
        .left_b = 0.25, .reverse_order = 1e-3};
    acct_bounds found;
    acct_tilted_law_place(&law, memory, ACCT_MAX_NODES);
    if (acct_tilted_law_set(&law, &step, &window, 1.0, 0.0, -40.0)) return 0;
    acct_heterogeneous_sum_place(&sums, points);
    acct_heterogeneous_sum_start(&sums, &plan);
    const acct_part part = {q, sigma, steps, NULL};
    double low_err;
    const double low = acct_tilted_law_log_mgf(&law, -1e-3, &low_err);
    acct_heterogeneous_add_tail(&sums, &law, &part, low, low_err);
    acct_heterogeneous_sum_close(&sums, &contour);
    acct_tail_event_profile(&contour.tail, epsilon, &found);
    out[0] = found.lower;
    out[1] = found.upper;
    return 1;
}
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    directory = tmp_path_factory.mktemp("driver")
    source = directory / "driver.c"
    source.write_text(DRIVER)
    others = [f for f in core_files() if f.name != "heterogeneous_sum.c"]
    return build(directory, [source, *others]).driver


def exact(q, sigma, hi, steps, epsilon):
    """P^n(E) - e^ε Q^n(E) of the event that some step lies above `hi`."""

    def above(x):
        return (x / (arb(2).sqrt() * arb(sigma))).erfc() / 2

    mass = above(arb(hi))
    other = (1 - arb(q)) * mass + arb(q) * above(arb(hi) - 1)
    return arb(epsilon).exp() * ((1 - mass) ** int(steps) - 1) + 1 - (1 - other) ** int(steps)


@pytest.mark.long
@pytest.mark.parametrize("steps", [1, 2**30])
@pytest.mark.parametrize("deviations", [38.1, 38.2, 38.25, 38.3, 38.35, 38.4])
def test_masses_that_nearly_underflow(driver, steps, deviations):
    ctx.prec = 2400
    q, sigma, epsilon = 2.0**-40, 0.032, 675.0
    hi = deviations * sigma
    out = (ctypes.c_double * 2)()
    arguments = (ctypes.c_double(v) for v in (q, sigma, hi, float(steps), epsilon))
    assert driver(*arguments, out)
    truth = exact(q, sigma, hi, steps, epsilon)
    assert arb(out[0]) <= truth or out[0] == 0.0
    assert truth <= arb(out[1])
