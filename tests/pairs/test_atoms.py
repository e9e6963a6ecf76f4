"""Tables of losses: their common spacing, and their divergences."""

import math
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest

import accountant as ac
from accountant.analyses.pld import Composed
from accountant.pairs import atoms


def test_a_few_equally_spaced_losses_are_on_a_lattice():
    pair = ac.DominatingPMFs((0.5, 0.25, 0.25), (0.25, 0.25, 0.5)).pairs()[0]
    offset, spacing = pair.lattice
    assert offset == pytest.approx(-math.log(2.0), rel=1e-15)
    assert spacing == pytest.approx(math.log(2.0), rel=1e-15)
    # so that a grid has no error but rounding
    found = Composed([(pair, 10**6)]).epsilon_bounds(1e-6)
    assert found.upper - found.lower <= 1e-7 * found.upper


def test_multiples_with_gaps_are_on_a_lattice():
    pair = ac.DominatingPMFs((0.4, 0.3, 0.3), (0.1, 0.6, 0.3)).pairs()[0]
    offset, spacing = pair.lattice
    assert offset == pytest.approx(-math.log(2.0), rel=1e-15)
    assert spacing == pytest.approx(math.log(2.0), rel=1e-15)


@pytest.mark.parametrize("off", [1e-14, 1e-9, 1e-3])
def test_nearly_equal_spacings_are_none(off):
    masses = (0.5, 0.25 * math.exp(off), 0.5 - 0.25 * math.exp(off))
    pair = ac.DominatingPMFs(masses, (0.25, 0.25, 0.5)).pairs()[0]
    assert pair.lattice is None


def test_divergences_bound_the_exact_sum():
    masses = np.random.default_rng(2).dirichlet(np.ones(1000), 2)
    pair = ac.DominatingPMFs(*map(tuple, masses.tolist())).pairs()[0]
    table = pair.loss_atoms
    assert table.loss.size > atoms.FEW
    orders = [1.5, 2.0, 7.25, 30.0, 2.0, 100.0, 1.5, 3.0]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(pair.finite_rdp, orders * 8))
    assert together == [pair.finite_rdp(order) for order in orders] * 8
    with mpmath.workdps(40):
        for order in set(orders):
            moment = mpmath.fsum(
                mpmath.mpf(float(q)) * mpmath.exp(order * mpmath.mpf(float(loss)))
                for q, loss in zip(table.q, table.loss, strict=True)
            )
            exact = mpmath.log(moment) / (order - 1)
            found = pair.finite_rdp(order)
            assert exact <= found <= exact * (1 + mpmath.mpf(10) ** -8)
