"""What mutation testing (support/hardening) found nobody watching in pairs of laws."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import accountant as ac
from accountant.mechanisms.gaussian import GDP, Gaussian, GaussianPair
from accountant.mechanisms.laplace import ExponentialLossPair, Laplace, LaplacePair
from accountant.relations import NeighbouringRelation as Relation

mp = mpmath.mpf
U = mp(2) ** -53


pytestmark = pytest.mark.usefixtures("sixty_digits")


def tail(x):
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


class Truth:
    """Subsampled N(1, σ²) against N(0, σ²), or the reverse, to 40 digits."""

    def __init__(self, sigma, q, add):
        self.sigma, self.q, self.add = mp(sigma), mp(q), add

    def where(self, loss):
        """The output at which the loss of the mixture over the plain law is ``loss``."""
        gain = mpmath.expm1(loss) / self.q
        return self.sigma**2 * mpmath.log1p(gain) + mp(0.5) if gain > -1 else -mpmath.inf

    def beyond(self, loss):
        """Masses above a loss, under P and Q."""
        x = self.where(-loss if self.add else loss)
        plain, moved = tail(x / self.sigma), tail((x - 1) / self.sigma)
        mixed = (1 - self.q) * plain + self.q * moved
        return (1 - plain, 1 - mixed) if self.add else (mixed, plain)

    def profile(self, epsilon):
        p, q = self.beyond(mp(epsilon))
        return p - mpmath.exp(mp(epsilon)) * q


CASES = [(1.0, 1.0), (0.7, 1.0), (3.0, 1.0), (1.0, 0.3), (0.8, 0.01), (2.0, 0.999)]


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(("sigma", "q"), CASES)
def test_masses_of_sampled_gaussians(sigma, q, add):
    pair, truth = GaussianPair(sigma, q, add), Truth(sigma, q, add)
    low, high = pair.support
    edges = [x for x in np.linspace(-1.5, 1.5, 13).tolist() if low + 1e-9 < x < high - 1e-9]
    p, q_masses, error = pair.masses(np.array(edges))
    shift = mp(pair.loss_error)
    assert shift < 1e-11
    assert 30 * U < error < 1e-11
    for column, found in ((0, p), (1, q_masses)):
        for i, mass in enumerate(found.tolist()):
            above = [
                truth.beyond(edges[i - 1] + s * shift)[column] if i else mp(1) for s in (-1, 1)
            ]
            below = [
                truth.beyond(edges[i] + s * shift)[column] if i < len(edges) else mp(0)
                for s in (1, -1)
            ]
            assert (above[1] - below[1]) * (1 - error) - mp("1e-30") <= mass
            assert mass <= (above[0] - below[0]) * (1 + error) + mp("1e-30")


@pytest.mark.long(keep=6)
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(("sigma", "q"), CASES)
def test_figures_of_sampled_gaussians(sigma, q, add):
    pair, truth = GaussianPair(sigma, q, add), Truth(sigma, q, add)
    for epsilon in (-2.0, -0.4, -1e-3, 0.0, 0.1, 1.0):
        bounds, exact = pair.profile(epsilon), truth.profile(epsilon)
        assert bounds.lower <= exact <= bounds.upper
        assert bounds.upper - bounds.lower <= 1e-8 * exact + mp("1e-200")
    low, high = pair.support
    if q == 1.0:
        assert (low, high) == (-math.inf, math.inf)
    else:
        end = mpmath.log1p(-mp(q))
        outer = -high if add else low
        assert end * (1 + 16 * U) <= outer <= end
        assert (low if add else high) == (-math.inf if add else math.inf)
    assert Fraction(pair.mu) >= 1 / Fraction(sigma)
    assert pair.mu == pytest.approx(1 / sigma, rel=1e-15)
    assert 1 / mp(sigma) ** 2 / 2 <= pair.rho <= 1 / mp(sigma) ** 2 / 2 * (1 + 16 * U)
    for order in (1.5, 7.0):
        found = pair.rdp(order)
        if q == 1.0:
            exact = mp(order) / (2 * mp(sigma) ** 2)
            assert exact <= found <= exact * (1 + 16 * U)
        else:
            # An integral over the output of the base law.
            ratio = lambda x: 1 - mp(q) + mp(q) * mpmath.exp((x - mp(0.5)) / mp(sigma) ** 2)  # noqa: E731
            power = 1 - mp(order) if add else mp(order)
            density = lambda x: mpmath.npdf(x, 0, mp(sigma)) * ratio(x) ** power  # noqa: B023, E731
            with mpmath.workdps(20):
                moment = mpmath.quad(density, np.linspace(-60, 90, 25).tolist())
                exact = mpmath.log(moment) / (mp(order) - 1)
                assert exact * (1 - mp("1e-9")) <= found <= exact * (1 + mp("1e-7"))
    assert pair.gaussian_part == (q, sigma, add, True)


def test_no_noise_of_infinite_width_loses_anything():
    pair = GaussianPair(math.inf)
    assert pair.support == (0.0, 0.0)
    assert pair.loss_error == pair.mu == pair.rho == pair.rdp(3.0) == 0.0
    assert pair.profile(0.0) == pair.profile(1.0) == ac.Bounds(0.0, 0.0)
    for edges, place in (([-1.0, 0.0, 1.0], 1), ([0.5], 0), ([-0.5], 1)):
        p, q, error = pair.masses(np.array(edges))
        assert p.tolist() == q.tolist() == [float(i == place) for i in range(len(edges) + 1)]
        assert error == 0.0


def test_losses_are_off_by_a_few_units_within_reach():
    for sigma in (0.3, 1.0, 50.0):
        mu = 1 / sigma
        plain, sampled = GaussianPair(sigma).loss_error, GaussianPair(sigma, 0.5).loss_error
        assert 16 * U * (40 * mu + mu**2) <= plain <= 16 * U * (40 * mu + mu**2) * (1 + 32 * U)
        assert 16 * U * (80 * mu + 2 * mu**2 + 1) <= sampled
        assert sampled <= 16 * U * (80 * mu + 2 * mu**2 + 1) * (1 + 32 * U)


def test_noise_that_is_no_double_is_bracketed():
    (pair,) = Gaussian(1.0, sensitivity=3.0).pairs()
    assert not pair.exact
    assert Fraction(pair.noise_multiplier) < Fraction(1, 3)
    assert Fraction(math.nextafter(pair.noise_multiplier, 1.0)) > Fraction(1, 3)
    exact = GaussianPair(pair.noise_multiplier)
    edges = np.linspace(-3.0, 5.0, 9)
    extra = pair.masses(edges).relative_error - exact.masses(edges).relative_error
    # Half of a unit moves a loss by as much, relatively, within reach.
    assert extra == pytest.approx(8 * 2.0**-53 * (40 * 3 + 9), rel=1e-9)
    for epsilon in (-1.0, 0.0, 2.0):
        m, e = mp(3), mp(epsilon)
        truth = tail(e / m - m / 2) - mpmath.exp(e) * tail(e / m + m / 2)
        bounds = pair.profile(epsilon)
        assert bounds.lower <= truth <= bounds.upper
        higher = GaussianPair(pair.gaussian_part.most_noise).profile(epsilon)
        if epsilon >= 0.0:
            assert bounds.upper == exact.profile(epsilon).upper
            assert bounds.lower == min(exact.profile(epsilon).lower, higher.lower)
    assert Gaussian(1.0, sensitivity=2.0).pairs()[0].exact


def test_distances_of_gaussians():
    for relation, factor in ((Relation.ADD_OR_REMOVE, 1), (Relation.REPLACE_ONE, 2)):
        mechanism = Gaussian(6.0, sensitivity=1.5, relation=relation)
        assert mechanism.pairs()[0].noise_multiplier == 4.0 / factor
        assert mechanism.group(2).pairs()[0].noise_multiplier == 2.0 / factor
        assert Laplace(6.0, sensitivity=1.5, relation=relation).pairs()[0].reach == 0.25 * factor
        assert (
            Laplace(6.0, sensitivity=1.5, relation=relation).group(3).pairs()[0].reach
            == 0.75 * factor
        )
    assert Gaussian(1.0, sensitivity=0.0).pairs() == (GaussianPair(math.inf),)
    assert Laplace(1.0, sensitivity=0.0).pairs() == (LaplacePair(0.0),)
    assert GDP(0.5).pairs()[0].noise_multiplier == 2.0
    assert GDP(0.5).group(4).mu0 == 2.0
    assert GDP(0.5).under(Relation.REPLACE_ONE).mu0 == 1.0
    assert Fraction(Laplace(3.0).pairs()[0].reach) >= Fraction(1, 3)


class Bounded:
    """Loss on [-a, a] with density ∝ e^{t/2} under P and atoms at the ends, to 40 digits."""

    def __init__(self, a, atoms):
        self.a = mp(a)
        self.high, self.low = (mp(0.5), mpmath.exp(-self.a) / 2) if atoms else (mp(0), mp(0))
        self.between = 1 - self.high - self.low

    def above(self, t, sign=1):
        """Mass above t, under P (sign 1) or Q (-1)."""
        high = self.high if sign == 1 else self.low
        if t < -self.a:
            return mp(1)
        if t >= self.a:
            return mp(0)
        span = lambda x: mpmath.expm1(sign * x / 2)  # noqa: E731
        return high + self.between * (span(self.a) - span(t)) / (span(self.a) - span(-self.a))

    def profile(self, epsilon):
        return self.above(mp(epsilon)) - mpmath.exp(mp(epsilon)) * self.above(mp(epsilon), -1)

    def divergence(self, order):
        a, half = mp(order), self.a / 2
        moment = self.high * mpmath.exp((a - 1) * self.a) + self.low * mpmath.exp((1 - a) * self.a)
        rate = a - mp(0.5)
        integral = 2 * mpmath.sinh(rate * self.a) / rate
        moment += self.between * integral / (4 * mpmath.sinh(half))
        return mpmath.log(moment) / (a - 1)


@pytest.mark.long(keep=6)
@pytest.mark.parametrize("kind", [LaplacePair, ExponentialLossPair])
@pytest.mark.parametrize("a", [1e-9, 1e-3, 0.3, 1.0, 8.0, 40.0, 900.0])
def test_bounded_losses(kind, a):
    pair, truth = kind(a), Bounded(a, kind is LaplacePair)
    assert pair.support == (-a, a)
    assert pair.loss_error == 4 * 2.0**-53 * a
    assert pair.lattice == ((-a, 2 * a) if kind is LaplacePair else None)
    edges = [a * x for x in (-1.5, -0.9, -0.3, -1e-6, 1e-7, 0.2, 0.21, 0.99, 1.2)]
    p, q, error = pair.masses(np.array(edges))
    assert error == (64 + 4 * a) * 2.0**-53
    with mpmath.workdps(500):
        for sign, found in ((1, p), (-1, q)):
            for i, mass in enumerate(found.tolist()):
                exact = truth.above(mp(edges[i - 1]), sign) if i else mp(1)
                exact -= truth.above(mp(edges[i]), sign) if i < len(edges) else 0
                assert abs(mass - exact) <= error * exact + mp("1e-300")
        for epsilon in (-2.0 * a, -a, -0.5 * a, 0.0, 0.3 * a, 0.999 * a, a, 2 * a):
            bounds, exact = pair.profile(epsilon), truth.profile(epsilon)
            assert bounds.lower <= exact <= bounds.upper
            # The reach may be a rounding less: the lower end knows.
            assert bounds.upper - bounds.lower <= 140 * U * exact + 8 * U * a + mp("3e-308")
        for order in (1.001, 1.5, 2.0, 7.0, 300.0, 1e4):
            exact, found = truth.divergence(order), pair.rdp(order)
            assert exact <= found
            room = 70 * U * ((order + 1) * a + math.log(2 * order) + 9) / (mp(order) - 1)
            assert found <= exact * (1 + mp("1e-11")) + room * (a > 0.1)


@pytest.mark.parametrize("kind", [LaplacePair, ExponentialLossPair])
def test_bounded_losses_next_to_none(kind):
    for a in (0.0, 5e-324, 1e-310, 1e-301):
        pair = kind(a)
        for order in (1.5, 2.0, 1e6):
            assert pair.rdp(order) >= 0.0
        p, q, _ = pair.masses(np.array([-1.0, 0.0, 1.0]))
        assert p.sum() == pytest.approx(1.0)
        assert q.sum() == pytest.approx(1.0)
        assert pair.profile(a).upper == 0.0
        assert pair.profile(0.0).upper >= Fraction(a) / (2 if kind is LaplacePair else 4)
    assert kind(0.0).profile(-1.0).upper >= -math.expm1(-1.0)
    assert kind(0.0).masses(np.array([-1.0, 0.0, 1.0])).p.tolist() == [0.0, 1.0, 0.0, 0.0]
