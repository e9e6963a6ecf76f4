"""Replace-one steps with rare events: large steps apart (Theorem D27), against integrals in balls.

A driver asks the core for a line, and for all it is made of: the masses of a large step, transforms
without large steps and their decay, upper sums over cells, the bound on the reverse term. Whole
profiles are compared with brute force.
"""

import ctypes
import itertools
import math

import pytest
from flint import acb, arb, ctx

from accountant._core import answers as core
from support.native import SOURCES, build
from support.oracle.exchange import lattice, two_steps

DRIVER = """
#include <stdlib.h>
#include "exchange_rare.h"

int driver(double mu, double q, double n, double epsilon, double log_delta, double fine,
           double small, double turn, double *out) {
    acct_exchange_rare r;
    acct_contour k;
    const size_t nodes = ACCT_EXCHANGE_PATH_DOUBLES + ACCT_EXCHANGE_CELL_DOUBLES;
    double *memory = malloc((nodes + 2 * ACCT_MIXTURE_POINTS) * sizeof(double));
    k.amplitude = memory + nodes;
    k.phase = k.amplitude + ACCT_MIXTURE_POINTS;
    acct_exchange_rare_set(&r, mu, q, n, memory, memory + ACCT_EXCHANGE_PATH_DOUBLES, &k);
    r.epsilon = epsilon;
    r.log_delta = log_delta;
    r.fine = fine;
    const int good = acct_exchange_rare_line(&r, small > 0.0);
    if (good) {
        const double y = turn / epsilon, c2 = 1.0 + 1.7 * k.b;
        const double numbers[] = {k.b, k.drift / n, r.split.outer.scale, r.split.threshold.scale,
            r.cells.x[r.cells.lowest], r.large.p, r.large.p_err, r.large.q, r.large.q_err,
            r.large.log_mgf, r.large.log_mgf_err, y, c2, acct_exchange_cells_excess(&r.cells, c2),
            r.reverse_order, acct_exchange_cells_reverse(&r.cells, n, r.reverse_order),
            k.tail.left_out};
        for (int i = 0; i < 17; i++) out[i] = numbers[i];
        double *o = out + 17;
        if (small > 0.0) {
            o[2] = acct_exchange_path_split(&r.path, y, &o[0], &o[1], &o[3], &o[5]);
            o[7] = acct_exchange_cells_middling(&r.cells, r.split.threshold, c2);
            acct_exchange_cells_inner(&r.cells, r.split.threshold);
            o[8] = acct_exchange_cells_small(&r.cells, c2);
            o[9] = k.small_losses_log;
            o[10] = k.small_losses_slope;
        } else {
            o[2] = acct_exchange_path_sum(&r.path, y, &o[0], &o[1]);
            o[7] = acct_exchange_decay_at(&r.decay, y);
        }
        o[6] = acct_exchange_path_decay(&r.path, y);
    }
    free(memory);
    return good;
}
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    directory = tmp_path_factory.mktemp("driver")
    source = directory / "driver.c"
    source.write_text(DRIVER)
    return build(directory, [source, *sorted(SOURCES.glob("*.c"))]).driver


def chance(size, scale, power):
    return (1 - (-((size / scale) ** 2)).exp()) ** power


def not_chance(size, scale, power):
    """1 - t^m, without a difference."""
    rest, doubled = (-((size / scale) ** 2)).exp(), 1
    t = 1 - rest
    while doubled < power:
        rest, t, doubled = rest * (1 + t), t * t, 2 * doubled
    return rest


def integral(m, q, function, low, high):
    """The integral over real noise of N times a function of U, W and U - log(1 - q)."""
    mu, rate = arb(m), arb(q)

    def integrand(x, _):
        up = 1 - rate + rate * (mu * x - mu * mu / 2).exp()
        down = 1 - rate + rate * (-mu * x - mu * mu / 2).exp()
        if not (up.real > 0 and down.real > 0):
            return acb(float("nan"))
        u, w = up.log(), down.log()
        return (-x * x / 2).exp() * function(u, w, (up / (1 - rate)).log())

    pieces = math.ceil((high - low) * max(2.0 * m, 4.0))
    cuts = [low + (high - low) * i / pieces for i in range(pieces + 1)]
    tight = arb(2) ** (30 - ctx.prec)
    parts = (
        acb.integral(integrand, a, b, rel_tol=tight, abs_tol=tight**3)
        for a, b in itertools.pairwise(cuts)
    )
    return sum(parts, acb(0)) / (2 * arb.pi()).sqrt()


# distance, q, steps, epsilon, log of δ, where the transform is judged, in units of 1/ε
LINES = [
    (0.3, 1e-4, 50, 0.002, math.log(1e-7), 40.0, False),
    (0.96, 1e-4, 3, 0.013, math.log(1e-10), 9.0, True),
    (4.0, 3e-5, 5, 0.29, math.log(6e-5), 30.0, True),
    (0.15, 4e-5, 40_000, 0.012, math.log(1e-10), 8.0, False),
]


@pytest.mark.long
@pytest.mark.parametrize("line", LINES)
def test_all_that_a_line_is_made_of(driver, line):
    m, q, n, epsilon, log_delta, turn, small = line
    ctx.prec = 150
    out = (ctypes.c_double * 28)()
    given = (m, q, float(n), epsilon, log_delta, -22.0, float(small), turn)
    assert driver(*map(ctypes.c_double, given), out)
    b, mean, outer, inner, lo, p, p_err, other, q_err, log_mgf, mgf_err, y, c2 = out[:13]
    excess, order, reverse, left_out = out[13:17]
    ends = -17.0 - m, 17.0 + m

    def large(e):
        return chance(e, arb(outer), 128)

    def stays(e):
        return not_chance(e, arb(outer), 128)

    assert abs(integral(m, q, lambda u, w, e: large(e) * u.exp(), *ends).real - p) <= arb(p_err)
    assert abs(integral(m, q, lambda u, w, e: large(e) * w.exp(), *ends).real - other) <= arb(q_err)
    assert p_err <= 1e-9 * math.exp(log_delta) / n

    def tilted(s, weight):
        return integral(m, q, lambda u, w, e: weight(u - w, e) * (s * u + (1 - s) * w).exp(), *ends)

    whole = tilted(acb(1 + arb(b)), lambda loss, e: stays(e)).real
    assert abs(whole.log() - arb(log_mgf)) <= arb(mgf_err)
    turned = acb(0, -arb(y) * arb(mean)).exp()
    truth = tilted(acb(1 + arb(b), y), lambda loss, e: stays(e)) / whole
    assert abs(truth * turned - 1 - acb(out[17], out[18])) <= arb(out[19])
    assert out[19] < 1e-9
    assert tilted(acb(c2), lambda loss, e: stays(e)).real - 1 <= arb(excess)

    if small:

        def middling(loss, e):
            return stays(e) * chance(loss, arb(inner), 16)

        part = tilted(acb(1 + arb(b), y), middling) / whole
        assert abs(part * turned - acb(out[20], out[21])) <= arb(out[22])
        assert tilted(acb(c2), middling).real.log() <= arb(out[24])
        little = tilted(acb(c2), lambda loss, e: stays(e) * not_chance(loss, arb(inner), 16)).real
        assert little - 1 <= arb(out[25])
        slope = arb(out[27])
        little = tilted(
            acb(1 + slope), lambda loss, e: stays(e) * not_chance(loss, arb(inner), 16)
        ).real
        chernoff = slope * slope.log() - (1 + slope) * (1 + slope).log()
        assert chernoff + n * little.log() <= arb(out[26])
    for further in (1.0, 1.4, 2.3):
        weight = middling if small else (lambda loss, e: stays(e))
        size = abs(tilted(acb(1 + arb(b), y * further), weight)) / whole
        assert size <= arb(out[23])
        assert small or size <= arb(out[24])

    back = arb(order)
    some = integral(m, q, lambda u, w, e: large(e) * (w - back * (u - w)).exp(), lo, ends[1]).real
    others = integral(m, q, lambda u, w, e: (w - back * (u - w)).exp(), lo, ends[1]).real
    chernoff = back * back.log() - (1 + back) * (1 + back).log()
    # Where the noise never reaches a large loss, nothing is left of it to the balls.
    assert log_delta < -23.0 or some > 0
    assert not some > 0 or chernoff + (n * some).log() + (n - 1) * others.log() <= arb(reverse)
    below = integral(m, q, lambda u, w, e: w.exp(), -40.0, lo).real
    assert n * below <= arb(left_out)
    assert left_out <= 2e-13


@pytest.mark.long
@pytest.mark.parametrize(
    ("distance", "q", "epsilon"),
    [
        (1.0, 1e-4, 0.01),
        (0.3, 1e-3, 1e-3),
        pytest.param(4.0, 3e-5, 0.29, marks=pytest.mark.slow),
        pytest.param(2.0, 1e-5, 0.04, marks=pytest.mark.slow),
        pytest.param(0.9, 0.02, 1.0, marks=pytest.mark.slow),
    ],
)
def test_two_steps_are_enclosed(distance, q, epsilon):
    low, high = core.exchange_delta_bounds(distance, q, 2.0, epsilon)
    least, most = two_steps(distance, q, epsilon)
    assert low <= most
    assert high >= least
    assert high - low <= 1e-6 * high
    truth = float(least)
    above, _ = core.exchange_epsilon_bounds(distance, q, 2.0, truth * (1.0 + 1e-9))
    _, below = core.exchange_epsilon_bounds(distance, q, 2.0, truth * (1.0 - 1e-9))
    assert above <= epsilon <= below


@pytest.mark.long
@pytest.mark.parametrize(
    ("distance", "q", "steps", "delta"),
    [
        (1.0, 1e-3, 10, 1e-4),
        (4.0, 1e-3, 8, 3e-4),
        (2.0, 0.01, 20, 1e-5),
        (0.3, 0.02, 16, 1e-3),
    ],
)
def test_few_steps_are_enclosed(distance, q, steps, delta):
    low, high = core.exchange_epsilon_bounds(distance, q, float(steps), delta)
    assert high - low <= 1e-6 * high
    for epsilon in (0.7 * high, high, 1.3 * high):
        found = core.exchange_delta_bounds(distance, q, float(steps), epsilon)
        least, most = lattice(distance, q, steps, epsilon)
        assert found[0] <= most
        assert found[1] >= least
        assert found[1] - found[0] <= 1e-5 * found[1]
        assert most - least <= 0.5 * most + 1e-9
