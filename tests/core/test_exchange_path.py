"""Replace-one steps on a path above the real noise, against integrals in ball arithmetic.

A driver calls the core's own functions on one step: the transform, its claimed error and its decay
(Theorem D23).
"""

import ctypes
import itertools
import math
import random

import pytest
from flint import acb, arb, ctx

from support.native import build, core_files

DRIVER = """
#include <stdlib.h>
#include "exchange_law.h"

/* out: mean; V, its error, decay */
int driver(double mu, double q, double c, double y, double *out) {
    const size_t doubles = ACCT_EXCHANGE_DOUBLES + ACCT_EXCHANGE_PATH_DOUBLES;
    double *memory = malloc(doubles * sizeof(double)), *rest = memory + ACCT_EXCHANGE_DOUBLES;
    double lattice;
    acct_exchange_law law;
    acct_exchange_moments m;
    acct_exchange_path path;
    const double digits = 40.0;
    int good = acct_exchange_law_set(&law, memory, mu, q, c, 0.0, digits);
    if (good) acct_exchange_moments_set(&law, c, 0.0, &m, &lattice);
    good = good && acct_exchange_path_set(&path, rest, mu, q, c, m.mean, digits);
    if (good) {
        out[0] = m.mean;
        out[3] = acct_exchange_path_sum(&path, y, &out[1], &out[2]);
        out[4] = acct_exchange_path_decay(&path, y);
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
    return build(directory, [source, *core_files()]).driver


def transform(m, q, z, reach=16.0):
    """The integral of N e^{zU + (1-z)W}."""
    mu, rate = arb(m), arb(q)

    def integrand(x, _):
        up = 1 - rate + rate * (mu * x - mu * mu / 2).exp()
        down = 1 - rate + rate * (-mu * x - mu * mu / 2).exp()
        if not (up.real > 0 and down.real > 0):
            return acb(float("nan"))
        u, w = up.log(), down.log()
        return (z * u + (1 - z) * w - x * x / 2).exp()

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


@pytest.mark.long
@pytest.mark.parametrize(("seed", "problems"), [(3, 1), pytest.param(4, 4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("m", "q", "c", "epsilon"),
    [
        (3.0, 1e-4, 2.4, 5.9),
        (12.0, 1e-2, 1.04, 327.0),
        (5.0, 1e-7, 2.0, 7.2),
        (2.0, 1e-3, 2.0, 4.0),
    ],
)
def test_sums_and_decay(driver, m, q, c, epsilon, seed, problems):
    ctx.prec = 110
    draw = random.Random(seed)
    for _ in range(problems):
        y = math.exp(draw.uniform(math.log(0.3 / epsilon), math.log(200.0 / epsilon)))
        out = (ctypes.c_double * 5)()
        assert driver(*map(ctypes.c_double, (m, q, c, y)), out)
        everything = transform(m, q, acb(c)).real
        turned = acb(0, -arb(y) * arb(out[0])).exp()
        truth = transform(m, q, acb(c, y)) * turned / everything
        assert abs(truth - 1 - acb(out[1], out[2])) <= arb(out[3])
        assert out[3] < 1e-9
        for further in (1.0, 1.3, 2.1):
            assert abs(transform(m, q, acb(c, y * further)) / everything) <= arb(out[4])
