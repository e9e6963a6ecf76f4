"""Replace-one steps on a path above the real noise, against integrals in ball arithmetic.

A driver calls the core's own functions on one step: the transform and the middling steps' transform
with their claimed errors and decay (Theorems D23 and D24), and the bound on the small steps' share.
"""

import ctypes
import itertools
import math
import random

import pytest
from flint import acb, arb, ctx

from support.native import SOURCES, build

DRIVER = """
#include <stdlib.h>
#include "exchange_path.h"

/* out: mean; V, its error, decay; C, its error, decay; scale, and bound and slope of the small
 * steps' share */
int driver(double mu, double q, double c, double y, double turn, double steps, double epsilon,
           double wanted, double *out) {
    const size_t doubles = ACCT_EXCHANGE_DOUBLES + ACCT_EXCHANGE_PATH_DOUBLES;
    double *memory = malloc(doubles * sizeof(double));
    double lattice, middling[2];
    acct_exchange_law law;
    acct_exchange_moments m;
    acct_exchange_path path;
    acct_exchange_split split;
    const double digits = 40.0;
    int good = acct_exchange_law_set(&law, memory, mu, q, c, 0.0, digits);
    if (good) acct_exchange_moments_set(&law, c, 0.0, &m, &lattice);
    out[0] = m.mean;
    double *rest = memory + ACCT_EXCHANGE_DOUBLES;
    good = good && acct_exchange_path_set(&path, rest, mu, q, c, m.mean, digits, turn, NULL);
    if (good) {
        out[3] = acct_exchange_path_sum(&path, y, &out[1], &out[2]);
        out[4] = acct_exchange_path_decay(&path, y);
    }
    good = good &&
           acct_exchange_split_find(&split, &law, memory, mu, q, steps, epsilon, wanted,
                                    2.0 * turn) &&
           acct_exchange_path_set(&path, rest, mu, q, c, m.mean, digits, turn, &split);
    if (good) {
        double re, im;
        acct_exchange_path_split(&path, y, &re, &im, middling, &out[7]);
        out[5] = middling[0];
        out[6] = middling[1];
        out[8] = acct_exchange_path_decay(&path, y);
        out[9] = split.threshold.scale;
        out[10] = split.small_log;
        out[11] = split.small_slope;
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


def transform(m, q, z, chance, reach=16.0):
    """The integral of N e^{zU + (1-z)W} times a function of the loss."""
    mu, rate = arb(m), arb(q)

    def integrand(x, _):
        up = 1 - rate + rate * (mu * x - mu * mu / 2).exp()
        down = 1 - rate + rate * (-mu * x - mu * mu / 2).exp()
        if not (up.real > 0 and down.real > 0):
            return acb(float("nan"))
        u, w = up.log(), down.log()
        return (z * u + (1 - z) * w - x * x / 2).exp() * chance(u - w)

    low, high = -reach - m, float(z.real) * m + reach
    pieces = math.ceil((high - low) * max(m, 1.0))
    cuts = [low + (high - low) * i / pieces for i in range(pieces + 1)]
    tight = arb(2) ** (20 - ctx.prec)
    whole = sum(
        (
            acb.integral(integrand, a, b, rel_tol=tight, abs_tol=tight)
            for a, b in itertools.pairwise(cuts)
        ),
        acb(0),
    )
    return whole / (2 * arb.pi()).sqrt()


def asked(driver, *arguments):
    """The driver's numbers on the highest path that has a split."""
    for turn in (1.2, 0.6, 0.3, 0.15):
        out = (ctypes.c_double * 12)()
        if driver(*map(ctypes.c_double, (*arguments[:4], turn, *arguments[4:])), out):
            return list(out)
    raise AssertionError(arguments)


@pytest.mark.long
@pytest.mark.parametrize(("seed", "problems"), [(3, 1), pytest.param(4, 4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("m", "q", "c", "steps", "epsilon"),
    [
        (3.0, 1e-4, 2.4, 1000, 5.9),
        (12.0, 1e-2, 1.04, 30, 327.0),
        (5.0, 1e-7, 2.0, 1000, 7.2),
        (2.0, 1e-3, 2.0, 10, 4.0),
    ],
)
def test_sums_decay_and_small_steps(driver, m, q, c, steps, epsilon, seed, problems):
    ctx.prec = 110
    draw = random.Random(seed)
    for _ in range(problems):
        y = math.exp(draw.uniform(math.log(0.3 / epsilon), math.log(200.0 / epsilon)))
        out = asked(driver, m, q, c, y, float(steps), epsilon, -30.0)
        everything = transform(m, q, acb(c), lambda _: acb(1)).real
        z = acb(c, y)
        turned = acb(0, -arb(y) * arb(out[0])).exp()
        truth = transform(m, q, z, lambda _: acb(1)) * turned / everything
        assert abs(truth - 1 - acb(out[1], out[2])) <= arb(out[3])
        assert out[3] < 1e-9
        scale = arb(out[9])

        def middling(loss, scale=scale):
            return (1 - (-((loss / scale) ** 2)).exp()) ** 16

        part = transform(m, q, z, middling) * turned / everything
        assert abs(part - acb(out[5], out[6])) <= arb(out[7])
        for further in (1.0, 1.3, 2.1):
            z = acb(c, y * further)
            assert abs(transform(m, q, z, lambda _: acb(1)) / everything) <= arb(out[4])
            assert abs(transform(m, q, z, middling) / everything) <= arb(out[8])
        b = arb(out[11])

        def little(loss, scale=scale):  # 1 - t^16 without a difference
            rest = (-((loss / scale) ** 2)).exp()
            t = 1 - rest
            return rest * (1 + t) * (1 + t**2) * (1 + t**4) * (1 + t**8)

        small = transform(m, q, acb(1 + b), little).real
        chernoff = b * b.log() - (1 + b) * (1 + b).log()
        assert chernoff + steps * small.log() <= arb(out[10])
