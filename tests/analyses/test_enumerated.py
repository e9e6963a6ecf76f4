"""Few sums of losses are listed: their profile against all of them in ball arithmetic."""

import math

import numpy as np
import pytest

import accountant as ac

pytest.importorskip("flint")
from flint import arb, ctx

from support.oracle.lines import ball, line_of, parts_of, size


@pytest.fixture(autouse=True)
def _many_digits():
    with ctx.workprec(160):
        yield


def at(outcomes, epsilon):
    """Enclose the profile of listed losses and masses."""
    above = [(x, p) for x, p in outcomes if float(x.mid()) > epsilon]
    return sum((p * (1 - (ball(epsilon) - x).exp()) for x, p in above), arb(0))


@pytest.mark.long(keep=10)
@pytest.mark.parametrize("seed", range(1000))
def test_few_sums_are_exact(seed):
    rng = np.random.default_rng([22, seed])
    ctx.prec = 500
    parts, laws = [], []
    for _ in range(int(rng.integers(1, 4))):
        outcomes, n = int(rng.integers(2, 5)), int(rng.integers(1, 6))
        # powers of ten far apart, and as far as they go
        p, q = (10.0 ** -rng.uniform(0, 3 if seed % 2 else 100, outcomes) for _ in range(2))
        p[rng.integers(outcomes)] = q[rng.integers(outcomes)] = 1.0
        p, q = p / math.fsum(p), q / math.fsum(q)
        parts.append((ac.DominatingPMFs(p.tolist(), q.tolist()), n))
        laws += [[((ball(x) / ball(y)).log(), ball(x)) for x, y in zip(p, q, strict=True)]] * n
    if sum(n for _, n in parts) < 2 or size(laws) > 5_000:
        return
    found = [(arb(0), arb(1))]
    for law in laws:
        found = [(x + y, p * w) for x, p in found for y, w in law]
    solver = line_of(parts_of(*parts))
    assert solver.name == "sums"
    largest = max(float(loss.mid()) for loss, _ in found)
    for share in (0.0, 0.3, 0.9):
        epsilon = max(share * largest, 0.0)
        truth, bounds = at(found, epsilon), solver.delta_bounds(epsilon)
        assert not arb(bounds.lower) > truth
        # Doubles that should add up to 1 may have a little more.
        assert bounds.upper == 1.0 or not arb(bounds.upper) < truth
        assert bounds.upper - bounds.lower <= 1e-8 * bounds.upper + 1e-11
        delta = float(truth.mid())
        if 1e-280 < delta < 1:
            inverse = solver.epsilon_bounds(delta)
            assert not at(found, inverse.upper) > arb(delta)
            assert inverse.lower == 0.0 or not at(found, inverse.lower) < arb(delta)
