"""The Rényi divergences of every pair against sums and quadrature in high precision."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

import accountant as ac
from accountant._basics.rounding import U
from accountant.pairs.excess import rdp_excess_terms
from support.oracle import losses as oracle
from support.oracle.losses import discrete_gaussian
from support.strategies import log_uniform

ORDERS = [1.0001, 1.5, 2.0, 7.3, 40.0]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("a", [1e-5, 0.01, 0.7, 5.0])
def test_laplace_renyi(order, a):
    b, r = 1 / mpf(a), mpf(order)
    truth = oracle.renyi_of_densities(
        lambda x: mp.exp(-abs(x - 1) / b) / (2 * b),
        lambda x: mp.exp(-abs(x) / b) / (2 * b),
        r,
        [-60 * b, -1, 0, 0.5, 1, 2, 60 * b + 1],
    )
    (pair,) = ac.Laplace(1.0, sensitivity=a).pairs()
    assert truth * (1 - mpf(10) ** -15) <= pair.rdp(order) <= truth * (1 + mpf(10) ** -10)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("a", [1e-5, 0.01, 0.7, 5.0])
def test_bounded_range_renyi(order, a):
    """It bounds every two-point law of the range, and is at most that of the pair."""
    (pair,) = ac.ExponentialMechanism(a).pairs()
    r, e = mpf(order), mpf(a)
    worst = mpf(0)
    for i in range(1, 64):
        t = e * i / 64
        high = (1 - mp.exp(t - e)) / (mp.exp(t) - mp.exp(t - e))
        moment = high * mp.exp(r * t) + (1 - high) * mp.exp(r * (t - e))
        worst = max(worst, mp.log(moment) / (r - 1))
    own = mp.log(mp.sinh((r - mpf("0.5")) * e) / ((2 * r - 1) * mp.sinh(e / 2))) / (r - 1)
    assert worst <= pair.rdp(order) <= own * (1 + mpf(10) ** -9)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("epsilon", "k"), [(1e-5, 2), (1.0, 2), (2.0, 7), (30.0, 3)])
def test_randomized_response_renyi(order, epsilon, k):
    total = mp.exp(epsilon) + k - 1
    rows = [(mp.exp(epsilon) / total, 1 / total), (1 / total, mp.exp(epsilon) / total)]
    rows += [(1 / total, 1 / total)] * (k - 2)
    truth = oracle.renyi_of_atoms(rows, order)
    (pair,) = ac.RandomizedResponse(epsilon, k=k).pairs()
    assert truth <= pair.rdp(order) <= truth * (1 + mpf(10) ** -12)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("order", [*ORDERS, 900.0])
def test_discrete_renyi(order):
    rows = oracle.discrete(lambda x: mp.exp(-abs(x) / mpf(2)), 3, 400)
    truth = oracle.renyi_of_atoms(rows, order)
    (pair,) = ac.DiscreteLaplace(2.0, sensitivity=3).pairs()
    assert truth <= pair.rdp(order) <= truth * (1 + mpf(10) ** -9)
    if order < 10:
        # The oracle's outcomes must reach beyond order * sensitivity.
        truth = oracle.renyi_of_atoms(discrete_gaussian(1.5, 2), order)
        (pair,) = ac.DiscreteGaussian(1.5, sensitivity=2).pairs()
        assert truth <= pair.rdp(order) <= truth * (1 + mpf(10) ** -3)


@pytest.mark.parametrize("order", ORDERS)
def test_pmf_renyi(order):
    p, q = (0.5, 0.25, 0.25), (0.25, 0.25, 0.5)
    found = ac.DominatingPMFs(p, q).pairs()
    remove, add = found[0], found[-1]
    rows = list(zip(p, q, strict=True))
    for pair, truth in (
        (remove, oracle.renyi_of_atoms(rows, order)),
        (add, oracle.renyi_of_atoms([row[::-1] for row in rows], order)),
    ):
        assert truth <= pair.rdp(order) <= truth * (1 + mpf(10) ** -11)


@given(
    order=log_uniform(1.0000001, 1e4), size=log_uniform(1e-12, 40.0), sign=st.sampled_from((-1, 1))
)
def test_bend(order, size, sign):
    loss = sign * size
    with mp.workdps(80):  # the difference of two numbers that may agree in fifty digits
        a, x = mpf(order), mpf(loss)
        truth = mp.expm1(a * x) - a * mp.expm1(x)
    found = float(rdp_excess_terms(order, np.array([loss]))[0])
    if found == math.inf:
        assert a * x > 690
    else:
        assert abs(mpf(found) - truth) <= (512 + 8 * abs(a * x)) * U * truth + mpf("1e-300")


def test_tables_of_orders_interpolate_the_convex_way():
    curve = ac.RenyiCurve.from_table([2.0, 4.0, 8.0], [0.1, 0.25, 0.7])
    (pair,) = curve.pairs()
    assert pair.rdp(2.0) == 0.1
    assert pair.rdp(8.0) == 0.7
    assert pair.rdp(8.5) == math.inf
    # (α - 1)·D is 0.1 and 0.75 at 2 and 4: 0.425 in the middle.
    assert 0.425 / 2 <= pair.rdp(3.0) <= 0.425 / 2 * (1 + 1e-14)
    assert pair.rdp(1.5) <= 0.1


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("q", [1.0, 0.3])
def test_outcomes_of_one_law_alone_count_in_the_divergence(order, q):
    """Mass of Q alone raises the divergence of what is finite; sampling moves it."""
    p0, q0 = (0.5, 0.4, 0.0, 0.1), (0.55, 0.25, 0.2, 0.0)
    leaky = ac.PoissonSampled(ac.DominatingPMFs(p0, q0, infinite_loss=True), q)
    remove, add = leaky.pairs()
    w = mpf(q)
    # The masses given are accounted as if normalised: in binary they miss one by rounding.
    p0 = [mpf(x) / mp.fsum(map(mpf, p0)) for x in p0]
    q0 = [mpf(x) / mp.fsum(map(mpf, q0)) for x in q0]
    rows = [((1 - w) * mpf(b) + w * mpf(a), mpf(b)) for a, b in zip(p0, q0, strict=True)]
    finite = [row for row in rows if row[0] > 0 and row[1] > 0]
    truth = oracle.renyi_of_atoms(finite, order)
    assert max(truth, mpf(0)) <= remove.finite_rdp(order) <= max(truth, 0) + mpf(10) ** -9
    rows = [(mpf(b), (1 - w) * mpf(b) + w * mpf(a)) for a, b in zip(p0, q0, strict=True)]
    finite = [row for row in rows if row[0] > 0 and row[1] > 0]
    truth = oracle.renyi_of_atoms(finite, order)
    assert max(truth, mpf(0)) <= add.finite_rdp(order) <= max(truth, 0) + mpf(10) ** -9
