"""The weights of a rare-event line's nodes against mpmath, and its sums against direct ones."""

import ctypes

import mpmath
import numpy as np
import pytest

from support.native import build, core_files

# rare_event_path.c is included, so that a sum can be laid out by hand
ASK = """
#include "rare_event_path.c"

/* weighs nodes x + i eta
 * rows of `out`: l, w, c (real and imaginary), size, large, w_err, c_err, moved */
void weigh(double q, double sigma, double order, double log_mgf, double mean, double outer,
           double inner, int count, const double *x, const double *eta, double quad, double *out) {
    static double memory[ACCT_RARE_EVENT_ARRAYS * ACCT_MAX_NODES];
    const acct_step step = acct_step_make(q, sigma);
    const double var = sigma * sigma;
    const acct_thresholds thresholds = {.outer = {step.log_1mq, outer, ACCT_OUTER_DOUBLINGS},
                                        .inner = {step.log_1mq, inner, ACCT_INNER_DOUBLINGS}};
    acct_rare_event_sum rare;
    place(&rare, memory);
    for (int j = 0; j < count; j++) {
        double p;
        const double loss = acct_loss(&step, x[j], &p);
        acct_loss_complex(&step, x[j], eta[j], &rare.l_re[j], &rare.l_im[j]);
        rare.size[j] = quad;
        rare.w_re[j] = (eta[j] * eta[j] - x[j] * x[j]) / (2.0 * var);
        rare.w_im[j] = -x[j] * eta[j] / var;
        rare.c_err[j] = 0.5 * x[j] * x[j] / var;
        rare.c_re[j] = loss;
        rare.moved[j] = acct_loss_error(loss, p, (x[j] - 0.5) / var);
    }
    const acct_moments m = {.order = order, .log_mgf = log_mgf, .mean = mean};
    weigh_nodes(&rare, 0, count, &m, &thresholds);
    const double *rows[11] = {rare.l_re, rare.l_im,  rare.w_re,  rare.w_im,  rare.c_re, rare.c_im,
                              rare.size, rare.large, rare.w_err, rare.c_err, rare.moved};
    for (int i = 0; i < 11; i++) memcpy(out + i * count, rows[i], (size_t)count * sizeof(double));
}

/* the sums at the points of some blocks of a sum whose nodes are given by rows as above
 * out: A, C (real and imaginary) at every point; off: what a block's are off by at most, A and C */
void block_sums(int count, double origin, const double *rows, double dy, int blocks, double *out,
                double *off) {
    static double memory[ACCT_RARE_EVENT_ARRAYS * ACCT_MAX_NODES];
    acct_rare_event_sum rare;
    acct_rare_event_sums sums;
    memset(memory, 0, sizeof memory);
    place(&rare, memory);
    double *slots[11] = {rare.l_re, rare.l_im,  rare.w_re,  rare.w_im,  rare.c_re, rare.c_im,
                         rare.size, rare.large, rare.w_err, rare.c_err, rare.moved};
    for (int i = 0; i < 11; i++) memcpy(slots[i], rows + i * count, (size_t)count * sizeof(double));
    rare.count = count;
    rare.origin = origin;
    acct_rare_event_sum_step(&rare, dy);
    for (int b = 0; b < blocks; b++) {
        const long first = (long)b * ACCT_RARE_EVENT_BLOCK;
        double of_a, of_c;
        acct_rare_event_sum_block(&rare, first, ACCT_RARE_EVENT_BLOCK, &sums, &of_a, &of_c);
        acct_rare_event_sum_roundoff(&rare, (double)(first + ACCT_RARE_EVENT_BLOCK - 1) * dy,
                                     &off[2 * b], &off[2 * b + 1]);
        off[2 * b] += of_a;
        off[2 * b + 1] += of_c;
        const double *parts[4] = {sums.ar, sums.ai, sums.cr, sums.ci};
        for (int i = 0; i < 4; i++)
            memcpy(out + (4 * b + i) * ACCT_RARE_EVENT_BLOCK, parts[i], sizeof sums.ar);
    }
}
"""

BLOCK = 16


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    directory = tmp_path_factory.mktemp("rare_event_nodes")
    source = directory / "ask.c"
    source.write_text(ASK)
    others = [file for file in core_files() if file.name != "rare_event_path.c"]
    found = build(directory, [*others, source])
    doubles = np.ctypeslib.ndpointer(dtype=np.float64, flags="C_CONTIGUOUS")
    one = ctypes.c_double
    found.weigh.argtypes = [*[one] * 7, ctypes.c_int, doubles, doubles, one, doubles]
    found.block_sums.argtypes = [ctypes.c_int, one, doubles, one, ctypes.c_int, doubles, doubles]
    return found


def weighed(library, q, sigma, order, scale, thresholds, x, eta, quad=0.01):
    log_mgf, mean = scale
    out = np.empty((11, len(x)))
    library.weigh(q, sigma, order, log_mgf, mean, *thresholds, len(x), x, eta, quad, out)
    return out


SETTINGS = [
    (2.2e-5, 0.86, 129.0, (1e-4, 1e-5), (0.037, 0.0088)),
    (3.5e-3, 0.3, 1.28, (2e-3, 0.01), (10.7, 0.85)),
    (0.7, 0.6, 3.0, (1.0, 0.5), (6.0, 1.0)),
    (1e-9, 0.25, 2.5, (1e-9, 0.0), (4.0, 0.3)),
    (0.03, 2.2, 18.0, (0.02, 1e-3), (0.7, 0.08)),
]


@pytest.mark.long
@pytest.mark.parametrize(("q", "sigma", "order", "scale", "thresholds"), SETTINGS)
def test_weights_are_within_their_errors(library, q, sigma, order, scale, thresholds):
    draw = np.random.default_rng(8)
    count, quad = 60, 0.01
    x = draw.uniform(-4 * sigma, 1 + 7 * sigma, count)
    eta = np.where(draw.random(count) < 0.3, 0.0, draw.uniform(0, 0.25, count)) * sigma**2
    l_re, l_im, w_re, w_im, c_re, c_im, size, large, w_err, c_err, moved = weighed(
        library, q, sigma, order, scale, thresholds, x, eta, quad
    )
    with mpmath.workdps(900):  # the chances are differences of nearly equal numbers
        q, s, c = mpmath.mpf(q), mpmath.mpf(sigma), mpmath.mpf(order)
        for j in range(count):
            z = mpmath.mpc(x[j], eta[j])
            above_zero = mpmath.log1p(q / (1 - q) * mpmath.exp((2 * z - 1) / (2 * s**2)))
            loss = above_zero + mpmath.log1p(-q)
            t_out, t_in = (-mpmath.expm1(-((above_zero / mpmath.mpf(v)) ** 2)) for v in thresholds)
            tilted = quad * mpmath.exp(c * loss - z**2 / (2 * s**2) - mpmath.mpf(scale[0]))
            below = 1 - t_out**128
            middle = tilted * (t_in**16 - t_out**128)
            assert abs(mpmath.mpc(l_re[j], l_im[j]) - (loss - mpmath.mpf(scale[1]))) <= moved[j]
            assert abs(mpmath.mpc(w_re[j], w_im[j]) - tilted * below) <= w_err[j] + 1e-300
            assert abs(mpmath.mpc(c_re[j], c_im[j]) - middle) <= c_err[j] + 1e-300
            for bound, value in ((size, tilted * below), (large, middle)):
                assert abs(value) <= bound[j] * (1 + mpmath.mpf(1e-9)) + 1e-300


def test_what_leaves_the_doubles_is_no_bound(library):
    x, eta = np.array([0.2, 30.0]), np.array([0.01, 0.01])
    rows = weighed(library, 0.5, 0.4, 400.0, (0.0, 0.0), (900.0, 5.0), x, eta)
    assert not np.isfinite(rows[2:7, 1]).all()


@pytest.mark.parametrize(("q", "sigma", "order", "scale", "thresholds"), SETTINGS)
def test_sums_of_blocks_are_within_their_errors(library, q, sigma, order, scale, thresholds):
    count, blocks = 400, 12
    x = np.linspace(-5 * sigma, 1 + 6 * sigma, count)
    reach = sigma**2 * np.log1p(np.expm1(0.3 * thresholds[1]) / q)
    eta = np.where(x > reach, 0.2 * sigma**2, 0.0)
    rows = weighed(library, q, sigma, order, scale, thresholds, x, eta, (x[1] - x[0]) / sigma / 2.5)
    origin = float(np.log1p(-q)) - scale[1]
    dy = float(np.float32(0.5 / thresholds[0]))
    out, off = np.empty((blocks, 4, BLOCK)), np.empty((blocks, 2))
    library.block_sums(count, origin, rows, dy, blocks, out, off)
    values = rows.astype(np.longdouble)
    loss, w, c = (values[i] + 1j * values[i + 1] for i in (0, 2, 4))
    for k in range(blocks * BLOCK):
        y = np.longdouble(k * dy)
        # v(t) = e^{it} - 1 - it keeps the digits of a small t
        t = y * loss
        half = np.sin(t / 2)
        turned = -2 * half * half + 1j * np.sin(t)
        series = 1j * t * t * t * (-1 / np.longdouble(6) + t * t / np.longdouble(120))
        v = np.where(abs(t) < 1e-4, -2 * half * half + series, turned - 1j * t)
        block, i = divmod(k, BLOCK)
        sums = out[block, :, i]
        a, middle = (w * v).sum(), (c * np.exp(1j * t)).sum()
        slack = 1e-18 * float((abs(w) * (2 + abs(t))).sum())  # of the oracle
        assert abs(complex(sums[0], sums[1]) - complex(a)) <= off[block, 0] + slack + 2e-16 * abs(a)
        assert abs(complex(sums[2], sums[3]) - complex(middle)) <= off[
            block, 1
        ] + slack + 2e-16 * abs(middle)
    # and the bounds are those of rounding: nothing that counts was left out
    assert off[-1, 1] < 1e-11 * float(rows[7].sum())
