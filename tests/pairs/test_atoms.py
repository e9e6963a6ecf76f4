"""Tables of losses: their common spacing, and their divergences."""

import math
import sys
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest

import accountant as ac
from accountant.analyses.pld import Composed
from accountant.pairs import atoms
from accountant.pairs.atoms import ResponsePair


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


@pytest.mark.parametrize("others", [0, 3])
def test_a_loss_beyond_the_doubles_is_infinite_and_on_no_lattice(others):
    pair = ResponsePair(math.inf, others)
    assert pair.lattice is None
    assert pair.infinite_mass == 1.0
    assert pair.has_negative_infinite_loss
    assert pair.rdp(2.0) == math.inf


@pytest.mark.parametrize("bound", [1e308, sys.float_info.max])
def test_a_lattice_has_a_spacing_that_is_a_double(bound):
    pair = ResponsePair(bound)
    assert pair.lattice is None or pair.lattice[1] < math.inf
    found = ac.PureDP(bound).epsilon_bounds(0.0)
    assert found.lower <= bound <= found.upper


@pytest.mark.parametrize(
    "mechanism",
    [
        ac.ReportNoisyMax(5e-324, noise="exponential"),
        ac.ReportNoisyMax(5e-324, noise="laplace"),
        ac.AboveThreshold(5e-324, query_scale=1.0),
        ac.Laplace(5e-324),
    ],
)
@pytest.mark.filterwarnings("error")
def test_noise_below_every_sensitivity_protects_nothing(mechanism):
    for each in (mechanism, 3 * mechanism, mechanism + ac.Gaussian(1.0)):
        assert each.epsilon_bounds(1e-30).upper > sys.float_info.max / 2.0
        assert each.delta_bounds(3.0).upper == 1.0
