"""The path of a rare-event line: its sums against the integrals on the real line, by mpmath."""

import ctypes
import itertools

import mpmath
import numpy as np
import pytest

from support.native import build, core_files

ASK = """
#include "rare_event.h"
#include "bounds.h"
#include "tilted_law.h"
#include <string.h>

/* the line on a path that is given, at the points of some blocks
 * out: V and C (real and imaginary) at every point
 * off: bounds on their errors, block by block, and on |C| from the block's last point on
 * nodes: how many there are, and how many whose losses turn further than each height's can
 * returns the status */
int path_sums(double q, double sigma, double order, double outer, double inner, double lo,
              double hi, int rises, const double *at, const double *height, double y_most,
              double log_error, double dy, int blocks, double *mean, double *out, double *off,
              int *nodes) {
    static double memory[ACCT_RARE_EVENT_ARRAYS * ACCT_MAX_NODES], chances[2 * ACCT_MAX_NODES];
    static double slots[ACCT_TILTED_LAW_DOUBLES(ACCT_MAX_NODES)];
    const acct_step step = acct_step_make(q, sigma);
    acct_thresholds t = {.outer = {step.log_1mq, outer, ACCT_OUTER_DOUBLINGS},
                         .inner = {step.log_1mq, inner, ACCT_INNER_DOUBLINGS},
                         .above_out = chances, .share_out = chances + ACCT_MAX_NODES};
    acct_tilted_law law;
    acct_rare_event_path path = {.rises = rises};
    acct_rare_event_sum rare;
    acct_rare_event_errors e;
    acct_rare_event_sums sums;
    acct_moments m;
    memcpy(path.at, at, (size_t)rises * sizeof *at);
    memcpy(path.height, height, (size_t)rises * sizeof *at);
    acct_tilted_law_place(&law, slots, ACCT_MAX_NODES);
    acct_window window = {.lo = lo, .hi = hi, .threshold = t.outer, .inner_threshold = t.inner};
    int status = acct_tilted_law_set(&law, &step, &window, order, 0.0, log_error);
    if (status) return status;
    acct_threshold_values(law.count, law.loss, t.outer, t.above_out, t.share_out);
    acct_thresholded_moments(&law, t.above_out, t.share_out, t.outer, order, 1, &m);
    *mean = m.mean;
    status = acct_rare_event_path_set(&rare, memory, &law, &step, &window, &path, &m, &t, y_most,
                                      log_error, &e);
    if (status) return status;
    nodes[0] = rare.count;
    for (int i = 0; i < rises; i++) {
        nodes[i + 1] = 0;
        for (int j = 0; j < rare.count; j++)
            nodes[i + 1] += rare.l_im[j] > height[i] / sigma / sigma * (1.0 + 1e-9);
    }
    const double whole = acct_rare_event_sum_large(&rare, 0.0), scale = 1.0 + 2.0 * m.log_mgf_err;
    acct_rare_event_sum_step(&rare, dy);
    for (int b = 0; b < blocks; b++) {
        const long first = (long)b * ACCT_RARE_EVENT_BLOCK;
        const double last = (double)(first + ACCT_RARE_EVENT_BLOCK - 1) * dy;
        double left_a, left_c, of_a, of_c;
        acct_rare_event_sum_block(&rare, first, ACCT_RARE_EVENT_BLOCK, &sums, &left_a, &left_c);
        acct_rare_event_sum_roundoff(&rare, last, &of_a, &of_c);
        off[3 * b] = 2.0 * e.a + of_a + left_a + 2.0 * m.log_mgf_err;
        off[3 * b] += last * (e.a * e.reach + m.mean_err);
        off[3 * b + 1] = e.c + of_c + left_c + 2.0 * m.log_mgf_err * whole;
        off[3 * b + 2] = acct_rare_event_sum_large(&rare, last) * scale * (1.0 + 1e-9);
        off[3 * b + 2] += e.tail_c;
        const double *parts[4] = {sums.ar, sums.ai, sums.cr, sums.ci};
        for (int i = 0; i < 4; i++)
            memcpy(out + (4 * b + i) * ACCT_RARE_EVENT_BLOCK, parts[i], sizeof sums.ar);
    }
    return ACCT_OK;
}
"""

BLOCK = 16


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    directory = tmp_path_factory.mktemp("rare_event_path")
    source = directory / "ask.c"
    source.write_text(ASK)
    found = build(directory, [*core_files(), source])
    doubles = np.ctypeslib.ndpointer(dtype=np.float64, flags="C_CONTIGUOUS")
    whole = np.ctypeslib.ndpointer(dtype=np.int32, flags="C_CONTIGUOUS")
    one = ctypes.c_double
    found.path_sums.argtypes = [
        *[one] * 7,
        ctypes.c_int,
        doubles,
        doubles,
        *[one] * 3,
        ctypes.c_int,
        doubles,
        doubles,
        doubles,
        whole,
    ]
    return found


def sums_along(library, q, sigma, order, thresholds, window, path, dy, blocks, log_error=-40.0):
    at, angles = (np.array(column, dtype=float) for column in zip(*path, strict=True))
    inner = thresholds[1]
    mean, out, off = np.empty(1), np.empty((blocks, 4, BLOCK)), np.empty((blocks, 3))
    nodes = np.zeros(7, dtype=np.int32)
    status = library.path_sums(
        q,
        sigma,
        order,
        *thresholds,
        *window,
        len(path),
        at,
        angles * sigma**2,
        300 / inner,
        log_error,
        dy,
        blocks,
        mean,
        out,
        off,
        nodes,
    )
    assert status == 0
    return mean[0], out, off, nodes


class Truth:
    """A(c+iy) e^{-iy mean}/A(c) - 1 and C likewise, on the real line, with 40 digits."""

    def __init__(self, q, sigma, order, thresholds, window):
        with mpmath.workdps(40):
            q, s, c = mpmath.mpf(q), mpmath.mpf(sigma), mpmath.mpf(order)
            ends = mpmath.linspace(*map(mpmath.mpf, window), 81)
            nodes = mpmath.calculus.quadrature.GaussLegendre(mpmath.mp).calc_nodes(4, 140)
            self.loss, self.below, self.middle = [], [], []
            for a, b in itertools.pairwise(ends):
                for node, weight in nodes:
                    x = (a + b) / 2 + (b - a) / 2 * node
                    above_zero = mpmath.log1p(q / (1 - q) * mpmath.exp((2 * x - 1) / (2 * s**2)))
                    outer, inner = (
                        -mpmath.expm1(-((above_zero / mpmath.mpf(v)) ** 2)) for v in thresholds
                    )
                    loss = above_zero + mpmath.log1p(-q)
                    tilted = weight * (b - a) / 2 * mpmath.exp(c * loss - x**2 / (2 * s**2))
                    self.loss.append(loss)
                    self.below.append(tilted * (1 - outer**128))
                    self.middle.append(tilted * (inner**16 - outer**128))
            self.whole = mpmath.fsum(self.below)

    def at(self, y, mean):
        with mpmath.workdps(40):
            turned = [mpmath.expj(mpmath.mpf(y) * (loss - mpmath.mpf(mean))) for loss in self.loss]
            a = mpmath.fdot(self.below, turned) / self.whole - 1
            return a, mpmath.fdot(self.middle, turned) / self.whole


# q, sigma, order, (outer, inner), (lo, hi), and rises: where, and to which multiple of sigma^2
PATHS = [
    (2.24e-3, 0.25, 1.32, (3.2, 0.36), (-2.2, 2.0), [(0.48, 0.25)]),
    (
        2.24e-3,
        0.25,
        1.32,
        (3.2, 0.36),
        (-2.2, 2.0),
        [(0.48, 0.25), (1.0, 0.44), (1.2, 0.8), (1.4, 1.3)],
    ),
    (1e-4, 0.6, 1.9, (2.0, 0.5), (-5.0, 6.5), [(2.2, 0.2), (4.4, 0.5), (5.2, 1.1)]),
    (0.05, 0.8, 1.5, (3.0, 0.8), (-7.0, 8.0), [(0.2, 0.2), (2.6, 0.45)]),
]


@pytest.mark.long
@pytest.mark.parametrize(("q", "sigma", "order", "thresholds", "window", "path"), PATHS)
def test_sums_are_those_on_the_real_line(library, q, sigma, order, thresholds, window, path):
    dy, blocks = 0.125, 12
    mean, out, off, _ = sums_along(library, q, sigma, order, thresholds, window, path, dy, blocks)
    truth = Truth(q, sigma, order, thresholds, window)
    for k in (0, 1, 7, 40, 100, BLOCK * blocks - 1):
        block, i = divmod(k, BLOCK)
        a, c = truth.at(k * dy, mean)
        assert abs(mpmath.mpc(*out[block, :2, i]) - a) <= off[block, 0]
        assert abs(mpmath.mpc(*out[block, 2:, i]) - c) <= off[block, 1]
        for earlier in range(block):  # from there on
            assert abs(c) <= off[earlier, 2]
    assert off[-1, 0] < 1e-12
    assert off[-1, 1] < 1e-12
    assert off[0, 2] < 1.1 * float(sum(truth.middle) / truth.whole)


def test_every_rise_is_taken_and_saves_nodes(library):
    """Otherwise the paths above were one path."""
    counts = [sums_along(library, *case, 0.125, 1)[3] for case in PATHS[:2]]
    assert (counts[1][1:4] > 0).all()  # above all heights but the last
    assert counts[1][0] < 0.8 * counts[0][0]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    "path",
    [
        [(0.48, 0.25), (1.0, 0.44), (1.02, 1.4)],  # small losses would turn too far
        [(0.48, 0.1), (1.5, 1.35)],  # an ellipse that stays above the real noise is too flat
    ],
)
def test_a_rise_whose_error_is_large_is_left_out(library, path):
    case = PATHS[1][:-1]
    mean, out, off, nodes = sums_along(library, *case, path, 0.125, 2)
    assert nodes[len(path) - 1] == 0
    truth = Truth(*case)
    a, c = truth.at(17 * 0.125, mean)
    assert abs(mpmath.mpc(*out[1, :2, 1]) - a) <= off[1, 0] < 1e-12
    assert abs(mpmath.mpc(*out[1, 2:, 1]) - c) <= off[1, 1] < 1e-12
