"""Poisson sampling: masses and Rényi curves against high precision, laws, refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant import PoissonSampled
from accountant.pairs.base import GaussianPart
from support.oracle import losses as oracle
from support.oracle.losses import agrees, discrete_gaussian
from support.strategies import log_uniform

ORDERS = [1.3, 2.0, 3.0, 6.5, 20.0]


def around(low, high):
    """Edges across the support of the loss, and a narrow cell inside."""
    span = high - low
    shares = (0.003, 0.1, 0.3, 0.3000001, 0.5, 0.77, 0.95, 0.999)
    return [low + share * span for share in shares]


def both_agree(mechanism, q, law, edges):
    remove, add = PoissonSampled(mechanism, q).pairs()
    agrees(remove, oracle.sampled(law, q, add=False), edges)
    agrees(add, oracle.sampled(law, q, add=True), sorted(-t for t in edges))
    return remove, add


@pytest.mark.long
@pytest.mark.parametrize("q", [1e-6, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("sigma", [0.6, 3.0])
def test_gaussian_masses(q, sigma):
    law = oracle.mixture(sigma, [(1, 1)])
    low, high = math.log1p(-q), math.log1p(q * math.expm1(min(8.0 / sigma, 30.0)))
    remove, add = both_agree(ac.Gaussian(sigma), q, law, [low - 1e-3, *around(low, high)])
    assert remove.gaussian_part == GaussianPart(q, sigma, add=False)
    assert add.gaussian_part == GaussianPart(q, sigma, add=True)


@pytest.mark.long(keep=6)
@pytest.mark.parametrize("q", [1e-6, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("scale", [0.2, 2.0])
def test_laplace_masses(q, scale):
    law = oracle.laplace(scale, 1.0)
    low, high = (math.log1p(q * math.expm1(sign / scale)) for sign in (-1.0, 1.0))
    edges = [low - 1e-3 * (high - low), *around(low, high), high + 0.1]
    both_agree(ac.Laplace(scale), q, law, edges)


@pytest.mark.parametrize("q", [1e-4, 0.3])
def test_discrete_masses(q):
    law = oracle.atoms(discrete_gaussian(1.5, 1))
    spacing = 1 / 1.5**2
    edges = [math.log1p(q * math.expm1(k * spacing)) for k in (-6, -2, -1, 0, 1, 2, 5)]
    both_agree(ac.DiscreteGaussian(1.5), q, law, edges)


def test_mass_at_infinity_moves():
    """A certain loss becomes a possible one; what only Q can do becomes a finite loss."""
    q, delta = 0.25, 1e-3
    remove, add = PoissonSampled(ac.ApproximateDP(0.5, delta=delta), q).pairs()
    assert q * delta <= remove.infinite_mass <= q * delta * (1 + 1e-12)
    assert add.infinite_mass == 0.0
    low = math.log1p(-q)
    found = remove.masses(np.array([low - 1e-9, low + 1e-9]))
    assert found.p[1] == pytest.approx((1 - q) * delta, rel=1e-12)
    assert found.q[1] == pytest.approx(delta, rel=1e-12)
    found = add.masses(np.array([-low - 1e-9, -low + 1e-9]))
    assert found.p[1] == pytest.approx(delta, rel=1e-12)
    assert found.q[1] == pytest.approx((1 - q) * delta, rel=1e-12)
    assert found.q[0] == pytest.approx(1 - (1 - q) * delta, rel=1e-9)


def laplace_pair(scale):
    b = mpf(scale)
    return (
        lambda x: mp.exp(-abs(x - 1) / b) / (2 * b),
        lambda x: mp.exp(-abs(x) / b) / (2 * b),
        [-60 * b, -1, 0, 0.5, 1, 2, 60 * b + 1],
    )


@pytest.mark.long
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("q", [1e-3, 0.3])
def test_laplace_renyi(order, q):
    p, r, points = laplace_pair(1.0)
    remove, add = PoissonSampled(ac.Laplace(1.0), q).pairs()

    def mixed(x, first, second):
        return (1 - mpf(q)) * first(x) + mpf(q) * second(x)

    truth = oracle.renyi_of_densities(lambda x: mixed(x, r, p), r, order, points)
    assert truth <= remove.rdp(order) <= truth * (1 + mpf(10) ** -5)
    truth = oracle.renyi_of_densities(p, lambda x: mixed(x, p, r), order, points)
    assert truth <= add.rdp(order) <= truth * (1 + mpf(10) ** -5)


@pytest.mark.parametrize("order", ORDERS)
def test_atoms_renyi(order):
    q = 0.2
    p0, p1 = mp.exp(1) / (1 + mp.exp(1)), 1 / (1 + mp.exp(1))
    rows = [(p0, p1), (p1, p0)]
    remove, add = PoissonSampled(ac.PureDP(1.0), q).pairs()
    truth = oracle.renyi_of_atoms([((1 - mpf(q)) * b + mpf(q) * a, b) for a, b in rows], order)
    assert truth <= remove.rdp(order) <= truth * (1 + mpf(10) ** -11)
    truth = oracle.renyi_of_atoms([(a, (1 - mpf(q)) * a + mpf(q) * b) for a, b in rows], order)
    assert truth <= add.rdp(order) <= truth * (1 + mpf(10) ** -11)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("q", [1e-4, 0.05, 0.7])
def test_curves_bound_the_gaussian(order, q):
    """A Gaussian known by its curve alone must cost at least what the Gaussian costs."""
    sigma = 1.2
    known = PoissonSampled(ac.Gaussian(sigma), q).pairs()
    blind = PoissonSampled(ac.ZCDP(0.5 / sigma**2), q).pairs()
    for exact, bound in zip(known, blind, strict=True):
        assert exact.rdp(order) * (1 - 1e-12) <= bound.rdp(order)
    # At integer orders removal is the exact binomial sum.
    if order == int(order):
        assert blind[0].rdp(order) <= known[0].rdp(order) * (1 + 1e-6)


@settings(max_examples=25)
@given(epsilon=log_uniform(0.01, 6.0), q=log_uniform(1e-5, 0.9), order=st.integers(2, 40))
def test_curves_bound_randomised_response(epsilon, q, order):
    """Also in the direction of adding, where the general theorem's factor 3 is needed."""
    pair = ac.PureDP(epsilon)
    (inner,) = pair.pairs()
    table = [inner.rdp(float(j)) for j in range(2, order + 1)]
    curve = ac.RenyiCurve.from_table([float(j) for j in range(2, order + 1)], table)
    for exact, bound in zip(
        PoissonSampled(pair, q).pairs(), PoissonSampled(curve, q).pairs(), strict=True
    ):
        assert exact.rdp(float(order)) * (1 - 1e-9) <= bound.rdp(float(order))


@pytest.mark.parametrize(
    "mechanism",
    [ac.Gaussian(2.0), ac.Laplace(2.0), ac.PureDP(0.3), ac.ZCDP(0.1), ac.DiscreteLaplace(2.0)],
    ids=repr,
)
def test_probability_one_and_zero(mechanism):
    assert PoissonSampled(mechanism, 1.0).pairs() == mechanism.pairs()
    assert PoissonSampled(mechanism, 0.0).epsilon(1e-6) == 0.0


@given(q=log_uniform(1e-4, 0.5), epsilon=st.floats(0.0, 2.0))
def test_one_release_is_the_amplified_profile(q, epsilon):
    """δ'(log(1 + q(e^ε - 1))) = q·δ(ε) for removal (Balle, Barthe, Gaboardi 2018)."""
    a = 1.5
    (plain,) = ac.Laplace(1.0, sensitivity=a).pairs()
    remove, _ = PoissonSampled(ac.Laplace(1.0, sensitivity=a), q).pairs()
    lower, upper = plain.profile(epsilon)
    target = math.log1p(q * math.expm1(epsilon))
    edges = np.linspace(*remove.support, 8001)
    found = remove.masses(edges)
    high = np.concatenate([edges, edges[-1:]])
    low = np.concatenate([edges[:1], edges])
    most = float(found.p @ -np.expm1(np.minimum(target - high, 0.0)))
    least = float(found.p @ -np.expm1(np.minimum(target - low, 0.0)))
    assert q * lower <= most * (1 + 1e-9) + 1e-16
    assert q * upper >= least * (1 - 1e-9) - 1e-16


def test_unbounded_losses_stay_unbounded():
    """What is kept of a discrete Gaussian is finite, what it stands for is not."""
    noise = PoissonSampled(ac.DiscreteGaussian(3.0), 0.1)
    assert noise.epsilon(0.0) == math.inf
    with pytest.raises(ac.UnsupportedError):
        noise.mu()
    assert noise.rho() == ac.DiscreteGaussian(3.0).rho()


def test_nested_sampling_multiplies():
    inner = PoissonSampled(ac.PureDP(1.0), 0.5)
    nested, single = PoissonSampled(inner, 0.5), PoissonSampled(ac.PureDP(1.0), 0.25)
    edges = np.array([-0.2, -0.05, 0.01, 0.13, 0.4])
    for a, b in zip(nested.pairs(), single.pairs(), strict=True):
        np.testing.assert_allclose(a.masses(edges).p, b.masses(edges).p, rtol=1e-12)
    nested = PoissonSampled(PoissonSampled(ac.Laplace(1.0), 0.5), 0.5)
    single = PoissonSampled(ac.Laplace(1.0), 0.25)
    for a, b in zip(nested.pairs(), single.pairs(), strict=True):
        np.testing.assert_allclose(a.masses(edges).p, b.masses(edges).p, rtol=1e-10)


@pytest.mark.long(keep=21)
@pytest.mark.parametrize("q", [5e-324, 1e-300, 1e-9, 0.01, 1 / 3, 0.5, 1.0 - 2.0**-53])
@pytest.mark.parametrize("size", [2, 3, 40, 150])
def test_chances_in_a_group_are_binomial_and_rounded_once(size, q):
    chances = PoissonSampled(ac.Gaussian(1.0), q).group(size)
    rate, found = Fraction(q), dict(zip(chances.sensitivities, chances.probabilities, strict=True))
    for k in range(size + 1):
        exact = float(math.comb(size, k) * rate**k * (1 - rate) ** (size - k))
        if k in found and (k < size or exact > 0.0):
            assert found[k] == max(exact, 5e-324)
        else:
            assert exact == 0.0  # counted at the largest shift
    assert found[size] >= 5e-324


def test_group_of_a_sampled_gaussian():
    pair = PoissonSampled(ac.Gaussian(1.0), 0.1)
    assert pair.group(1) is pair
    group = pair.group(2)
    assert group.sensitivities == (0.0, 1.0, 2.0)
    np.testing.assert_allclose(group.probabilities, (0.81, 0.18, 0.01), rtol=1e-12)
    with pytest.raises(ac.UnsupportedError, match="group"):
        PoissonSampled(ac.Laplace(1.0), 0.1).group(2)


def test_values_and_refusals():
    one = PoissonSampled(ac.Gaussian(1.1), 0.01)
    assert one.relation is Relation.ADD_OR_REMOVE
    assert one.under(Relation.ZERO_OUT).pairs() == one.pairs()
    replaced = PoissonSampled(ac.Gaussian(1.1, relation=Relation.REPLACE_ONE), 0.01)
    assert one.under(Relation.REPLACE_ONE) == replaced
    with pytest.raises(ac.UnsupportedError, match="no theorem"):
        PoissonSampled(ac.PureDP(1.0), 0.1).under(Relation.REPLACE_ONE)
    for q in (-0.1, 1.1, math.nan):
        with pytest.raises(ac.DomainError, match="sampling_probability"):
            PoissonSampled(ac.Gaussian(1.0), q)
    with pytest.raises(ac.ArgumentTypeError, match="Mechanism"):
        PoissonSampled(1.0, 0.1)


def test_outcomes_possible_without_the_record_alone():
    """Their mass is in the total variation: no bound on the finite losses tells it (M1)."""
    p, q, share = (1.0, 0.0), (0.125, 0.875), 0.75
    mixed = [share * a + (1.0 - share) * b for a, b in zip(p, q, strict=True)]
    sampled = PoissonSampled(ac.DominatingPMFs(p, q, infinite_loss=True), share)
    assert sampled.delta(math.log(1.25)) >= 0.625  # of removal: exact, and above that of addition
    for one, other in ((mixed, q), (q, mixed)):
        for loss in (0.0, 0.1, math.log(1.25), 0.4):
            grown = math.exp(loss)
            truth = sum(max(a - grown * b, 0.0) for a, b in zip(one, other, strict=True))
            assert sampled.delta(loss) >= truth
            # Zero only where nothing is left.
            assert truth < 1e-3 or sampled.epsilon(truth * 0.999) > loss
    for pair in ac.DominatingPMFs(p, q, infinite_loss=True).pairs():
        assert pair.variation >= 0.875
        assert pair.mu == pair.rho == math.inf


def test_outcomes_possible_without_the_record_alone_of_a_given_loss():
    """The distribution functions tell it below the finite losses."""

    def below(mass, lonely):
        return lambda t: np.where(np.asarray(t) >= math.log(8.0), mass + lonely, lonely)

    def above(mass):
        return lambda t: np.where(np.asarray(t) >= math.log(8.0), 0.0, mass)

    given = ac.LossDistribution(
        below(1.0, 0.0), above(1.0), below(0.125, 0.875), above(0.125), losses=(0.0, 3.0)
    )
    pair = given.pairs()[0]
    assert pair.has_negative_infinite_loss
    assert pair.variation == 1.0
    assert pair.pure_epsilon == math.inf
    assert PoissonSampled(given, 0.75).delta(math.log(1.25)) >= 0.625
