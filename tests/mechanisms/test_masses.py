"""The masses and profiles of every pair against laws in high precision, in both tails."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

import accountant as ac
from accountant._core import tools
from accountant.analyses.pld.saddle_point import coarse_law
from accountant.mechanisms.user_defined import GivenLossPair
from accountant.pairs.base import has_pld
from accountant.pairs.excess import cells
from support import every_mechanism
from support.every_mechanism import EXAMPLES
from support.oracle import losses as oracle
from support.oracle.losses import agrees, discrete_gaussian
from support.strategies import log_uniform


def fans(centre, *widths):
    """Edges: far tails, wide cells, and cells narrow enough to cancel."""
    edges = {centre + sign * width for width in widths for sign in (-1.0, 1.0)}
    edges |= {centre, math.nextafter(centre, math.inf) + 1e-9, centre + 1e-7}
    return sorted(edges)


@pytest.mark.long
@pytest.mark.parametrize("sigma", [0.31, 1.0, 7.3, 251.0])
def test_gaussian_masses(sigma):
    mu = 1.0 / sigma
    law = oracle.mixture(sigma, [(1, 1)])
    (pair,) = ac.Gaussian(sigma).pairs()
    agrees(pair, law, fans(0.0, 1e-5 * mu, 0.1 * mu, mu, 6 * mu, 17 * mu, 31 * mu))
    agrees(pair, law, fans(9 * mu, 1e-5 * mu, 1e-3 * mu, 0.1 * mu))
    agrees(pair, law, fans(-9 * mu, 1e-5 * mu, 1e-3 * mu, 0.1 * mu))


def test_the_series_of_a_narrow_cell_has_all_its_terms():
    """Against fractions: what powers a and b have, and how a sum of both signs is rounded."""
    rng = np.random.default_rng(3)
    a, b = rng.uniform(0.0, 0.9, 200), -rng.uniform(0.0, 0.9, 200)
    for x, y, found in zip(a, b, tools.series(a, b), strict=True):
        terms = [
            Fraction(x) ** j
            * Fraction(y) ** k
            / (math.factorial(2 * j) * math.factorial(k) * (2 * (j + k) + 1))
            for j in range(6)
            for k in range(6 - j)
        ]
        assert abs(Fraction(found) - sum(terms)) <= Fraction(2.0**-50) * abs(sum(terms))
    with pytest.raises(ValueError, match="fit"):
        tools.series(a, b[1:])


NEAR = [-10.5, -10.4, -8.0, -7.99, -1.0, -1e-4, 0.3, 0.31, 6.0, 6.02, 11.0, 16.5]
FAR = [-37.0, -36.99999, -20.0, -20.0 + 1e-8, -1.0, 1e-9, 3.0, 3.0000001, 36.0]


@pytest.mark.parametrize("mean", [0.0, 0.25, 6.0])
@pytest.mark.parametrize("edges", [NEAR, FAR])
def test_normal_cells_in_the_tails(edges, mean):
    found, error = cells(np.array(edges), mean)
    truth = oracle.cells(
        lambda t: (oracle.tail(mpf(mean) - t),) * 2 + (oracle.tail(t - mpf(mean)),) * 2,
        [mpf(x) for x in edges],
    )[0]
    for mass, exact in zip(found, truth, strict=True):
        assert abs(mpf(float(mass)) - exact) <= mpf(error) * exact + mpf("1e-300")
    assert error < 1e-10


@pytest.mark.parametrize(("scale", "distance"), [(2.0, 1.0), (0.3, 1.0), (50.0, 0.7)])
def test_laplace_masses(scale, distance):
    (pair,) = ac.Laplace(scale, sensitivity=distance).pairs()
    a = distance / scale
    edges = [-2 * a, -0.9 * a, -0.1 * a, 1e-6 * a, 1.1e-6 * a, 0.5 * a, 0.99 * a, 1.5 * a]
    agrees(pair, oracle.laplace(scale, distance), edges)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(("sigma", "distance"), [(0.4, 1), (2.5, 1), (3.0, 4)])
def test_discrete_gaussian_masses(sigma, distance):
    (pair,) = ac.DiscreteGaussian(sigma, sensitivity=distance).pairs()
    offset, spacing = pair.lattice
    edges = [offset + (k + 0.5) * spacing for k in (-30, -11, -5, -1, 0, 1, 2, 3, 7, 20)]
    agrees(pair, oracle.atoms(discrete_gaussian(sigma, distance)), edges)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("scale", "distance"), [(1.0, 1), (2.0, 3), (0.2, 2)])
def test_discrete_laplace_masses(scale, distance):
    rate = 1 / mpf(scale)
    reach = 400
    rows = oracle.discrete(lambda x: mp.exp(-abs(x) * rate), distance, reach)
    (pair,) = ac.DiscreteLaplace(scale, sensitivity=distance).pairs()
    edges = [(k + 0.3) / scale for k in range(-distance - 1, distance + 1)]
    # The oracle's outcomes that share a loss differ by rounding: merge them by their position.
    agrees(pair, oracle.atoms(rows), edges)


@pytest.mark.parametrize(("epsilon", "k"), [(1.0, 2), (1.0, 5), (1e-3, 2), (30.0, 3)])
def test_randomized_response_masses(epsilon, k):
    total = mp.exp(epsilon) + k - 1
    rows = [(mp.exp(epsilon) / total, 1 / total), (1 / total, mp.exp(epsilon) / total)]
    rows += [(1 / total, 1 / total)] * (k - 2)
    (pair,) = ac.RandomizedResponse(epsilon, k=k).pairs()
    agrees(pair, oracle.atoms(rows), [-0.5 * epsilon, 1e-9 * epsilon, 0.999 * epsilon])


@pytest.mark.long
def test_mixture_masses():
    parts = [(0, 0.5), (1, 0.25), (2, 0.25)]
    law = oracle.mixture(1.2, parts)
    remove, add = ac.MixtureOfGaussians(
        1.2, sensitivities=[0, 1, 2], probabilities=[0.5, 0.25, 0.25]
    ).pairs()
    edges = [-0.8, -0.69, -0.5, -1e-3, 1e-3, 1.001e-3, 1.0, 5.0, 12.0]
    agrees(remove, law, edges)

    def reversed_law(t):
        p0, q0, p1, q1 = law(-mpf(t))
        return q1, p1, q0, p0

    agrees(add, reversed_law, [-t for t in reversed(edges)])


@pytest.mark.long
@given(a=log_uniform(1e-4, 30.0), x=st.floats(-0.999, 0.999))
def test_the_bounded_range_pair_dominates_every_range(a, x):
    """The profile is the largest of the two-point laws on [t - a, t], 0 <= t <= a."""
    (pair,) = ac.ExponentialMechanism(a).pairs()
    epsilon = x * a
    lower, upper = pair.profile(epsilon)
    e, r = mpf(epsilon), mpf(a)

    def two_point(t):
        high = (1 - mp.exp(t - r)) / (mp.exp(t) - mp.exp(t - r))  # Q's mass at loss t
        gains = [high * (mp.exp(t) - mp.exp(e)), (1 - high) * (mp.exp(t - r) - mp.exp(e))]
        return mp.fsum(max(gain, mpf(0)) for gain in gains)

    assert all(two_point(r * i / 64) <= upper for i in range(65))
    assert lower <= two_point((r + e) / 2) <= upper


@pytest.mark.long
@given(a=log_uniform(1e-3, 5.0), x=st.floats(-1.2, 1.2))
def test_profiles_are_those_of_the_masses(a, x):
    for pair in (*ac.Laplace(1.0, sensitivity=a).pairs(), *ac.ExponentialMechanism(a).pairs()):
        epsilon = x * a
        edges = np.linspace(-a, a, 20001)
        found = pair.masses(edges)
        low = np.concatenate([[-a], edges])
        high = np.concatenate([edges, [a]])
        with np.errstate(over="ignore"):
            least = float(found.p @ -np.expm1(np.minimum(epsilon - low, 0.0)))
            most = float(found.p @ -np.expm1(np.minimum(epsilon - high, 0.0)))
        lower, upper = pair.profile(epsilon)
        assert least * (1 - 1e-9) <= upper
        assert lower <= most * (1 + 1e-9)


@pytest.mark.parametrize("mechanism", EXAMPLES, ids=repr)
def test_pairs_are_symmetric_where_they_say_so(mechanism):
    """A single pair must be its own reverse: masses of -L under Q are those of L under P."""
    pairs = mechanism.pairs()
    curves = (ac.ZCDP, ac.TruncatedCDP, ac.RenyiCurve, ac.DiscreteGaussianVector)
    if len(pairs) == 2 or isinstance(mechanism, curves):
        return
    edges = np.array([-1.0311, -0.3117, -0.0113, 0.02171, 0.4137, 0.9031])
    here, there = pairs[0].masses(edges), pairs[0].masses(-edges[::-1])
    np.testing.assert_allclose(here.p, there.q[::-1], rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("mechanism", EXAMPLES, ids=repr)
def test_masses_are_probabilities_with_the_loss_between_the_edges(mechanism):
    edges = np.linspace(-3.0, 3.0, 61)
    for pair in mechanism.pairs():
        try:
            p, q, error = pair.masses(edges)
        except ac.UnsupportedError:
            continue
        assert p.min() >= 0.0
        assert q.min() >= 0.0
        assert abs(math.fsum(p) - 1.0) <= error + 1e-15
        assert abs(math.fsum(q) - 1.0) <= error + 1e-15
        inner = (p[1:-1] > 1e-290) & (q[1:-1] > 1e-290)
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.log(p[1:-1] / q[1:-1])
        assert np.all(loss[inner] >= edges[:-1][inner] - 4 * error - pair.loss_error)
        assert np.all(loss[inner] <= edges[1:][inner] + 4 * error + pair.loss_error)


def test_a_loss_distribution_of_ones_own():
    from scipy.special import ndtr

    own = ac.LossDistribution(
        lambda t: ndtr(t - 0.5),
        lambda t: ndtr(0.5 - t),
        lambda t: ndtr(t + 0.5),
        lambda t: ndtr(-t - 0.5),
        relative_error=1e-13,
    )
    (pair, reverse), (gauss,) = own.pairs(), ac.Gaussian(1.0).pairs()
    edges = np.linspace(-3.0, 3.0, 13)
    for one in (pair, reverse):  # the loss is its own mirror image
        np.testing.assert_allclose(one.masses(edges).p, gauss.masses(edges).p, rtol=1e-11)
        np.testing.assert_allclose(one.masses(edges).q, gauss.masses(edges).q, rtol=1e-11)


def _every_pair():
    found = {}
    for relation in ac.NeighbouringRelation:
        for mechanism in every_mechanism.under(relation):
            try:
                pairs = mechanism.pairs()
            except ac.AccountantError:
                continue
            found.update((pair, f"{type(pair).__name__}-{len(found)}") for pair in pairs)
    # Differences of a user's functions have no more digits than these.
    kept = [pair for pair in found if has_pld(pair) and not isinstance(pair, GivenLossPair)]
    assert len(kept) > 100
    return [pytest.param(pair, id=found[pair]) for pair in kept]


@pytest.mark.long(keep=33)
@pytest.mark.parametrize("pair", _every_pair())
def test_losses_of_a_cell_lie_between_its_edges(pair):
    """On grids from a few hundred to many edges, inside the support and across its ends."""
    rng = np.random.default_rng(5)
    mean, variance = coarse_law(pair, 1).cumulants(0.0)[1:]
    reach = 8.0 * math.sqrt(variance) + 1e-3 * abs(mean) + 1e-6
    low, high = pair.support
    for count in (300, 4200, 7001):
        first, last = mean - rng.uniform(0.1, 8.0) * reach, mean + reach
        if count != 7001:  # no more than a few edges lie beyond an end
            first, last = max(first, low - 0.001), min(last, high + 0.001)
        edges = np.linspace(first, last, count)
        masses = pair.masses(edges)
        raised = (1.0 + masses.relative_error) ** 2 * (1.0 + 1e-12)
        p, q, wide = masses.p[1:-1], masses.q[1:-1], pair.loss_error + 1e-12 * np.abs(edges).max()
        with np.errstate(over="ignore"):
            assert np.all(p <= np.exp(edges[1:] + wide) * (q + 1e-299) * raised + 1e-295)
            assert np.all(q <= np.exp(wide - edges[:-1]) * (p + 1e-299) * raised + 1e-295)
        assert abs(masses.p.sum() - 1.0) <= raised - 1.0 + 1e-11
        # wider cells have the masses of those they consist of
        few = pair.masses(edges[::97])
        cell = np.append(np.searchsorted(edges[::97], edges), few.p.size - 1)
        for fine, wider in ((masses.p, few.p), (masses.q, few.q)):
            off = np.abs(np.bincount(cell, weights=fine) - wider)
            allowed = masses.relative_error + few.relative_error + 1e-12
            assert np.all(off <= allowed * wider + 1e-297)
