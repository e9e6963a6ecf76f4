"""What mutation testing (support/hardening) found nobody watching in sums of pairs."""

import math
import random
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from accountant import _rounding as ar
from accountant.composition import Composition, Parallel
from accountant.errors import DomainError, UnsupportedError
from accountant.mechanisms import ApproximateDP, Gaussian, Laplace, PureDP
from accountant.pairs import excess, sampled_loss, sums
from accountant.pairs.product import ProductPair, WorstPair
from accountant.relations import NeighbouringRelation
from support.toy_mechanisms import LinePair, Skewed

mp = mpmath.mpf
U = mp(2) ** -53


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(60):
        yield


def exactly_up(found, truth):
    """The least double that is not below a fraction."""
    nearest = float(truth)
    up = nearest if Fraction(nearest) >= truth else math.nextafter(nearest, math.inf)
    assert found == up


def test_sums_and_products_are_rounded_up_once():
    draw = random.Random(5)
    for _ in range(200):
        terms = [(10 ** draw.uniform(-20, 20), draw.choice([0, 1, 3, 2**53])) for _ in range(4)]
        x, n = terms[0]
        exactly_up(ar.times_up(x, n), Fraction(x) * n)
        exactly_up(ar.sum_up([x for x, _ in terms]), sum(Fraction(x) for x, _ in terms))
        truth = sum(Fraction(x) * n for x, n in terms)
        found = Fraction(sums.total(terms))
        assert truth <= found <= truth * (1 + Fraction(1, 2**50))
        with mpmath.workdps(60):
            root = mpmath.sqrt(sum(n * mp(x) ** 2 for x, n in terms))
            assert root <= sums.root_of_squares(terms) <= root * (1 + 30 * U)
    assert ar.times_up(math.inf, 3) == ar.sum_up([1.0, math.inf]) == math.inf
    assert ar.times_up(0.0, 5) == ar.times_up(3.0, 0) == ar.sum_up([]) == 0.0
    assert ar.times_up(1e308, 100) == math.inf
    assert sums.total([(math.inf, 0), (0.5, 2)]) == 1.0


def test_roots_of_squares_at_the_ends():
    root = sums.root_of_squares
    assert root([]) == root([(0.0, 5), (3.0, 0)]) == root([(math.inf, 0)]) == 0.0
    assert root([(math.inf, 1), (1.0, 1)]) == math.inf
    assert root([(0.1, 1)]) == 0.1
    assert root([(0.1, 1), (0.2, 0), (0.0, 3)]) == 0.1
    for terms in ([(1e300, 4)], [(1e-300, 4)], [(1e-300, 1), (1e-300, 3)], [(5e-324, 4)]):
        truth = 2 * mp(terms[0][0])
        assert truth <= root(terms) <= truth * (1 + 30 * U) + mp(5e-324)


def test_masses_at_infinity_are_composed_and_rounded_up():
    for masses in ([(1e-6, 3)], [(0.25, 2), (1e-12, 10**6)], [(0.5, 0), (2.0**-40, 1)]):
        parts = [(ApproximateDP(0.1, m).pairs()[0], n) for m, n in masses]
        kept = mp(1)
        for pair, n in parts:
            kept *= (1 - mp(pair.infinite_mass)) ** n
        found = sums.infinite_mass(parts)
        assert 1 - kept <= found <= (1 - kept) * (1 + 80 * U)
    whole = ApproximateDP(0.1, 1.0 - 2.0**-53).pairs()[0]
    assert sums.infinite_mass([(whole, 2), (whole, 0)]) == 1.0
    assert sums.infinite_mass([]) == sums.infinite_mass([(whole, 0)]) == 0.0
    assert (0 * ApproximateDP(0.1, 1.0 - 2.0**-53)).pairs()[0].infinite_mass == 0.0


class Public(LinePair):
    infinite_mass = 1.0


def test_what_is_public_stays_so():
    assert sums.infinite_mass([(Public(0.1), 1)]) == 1.0
    assert sums.infinite_mass([(Public(0.1), 0)]) == 0.0


def test_products_of_pairs_add_up():
    pure, laplace, gaussian = (
        PureDP(0.1).pairs()[0],
        Laplace(3.0).pairs()[0],
        Gaussian(2.0).pairs()[0],
    )
    pair = ProductPair(((pure, 3), (laplace, 2)), PureDP(0.1))
    low, high = pair.support
    truth = sum(n * Fraction(p.support[1]) for p, n in pair.parts)
    exactly_up(high, truth)
    exactly_up(-low, -sum(n * Fraction(p.support[0]) for p, n in pair.parts))
    assert ProductPair(((gaussian, 0), (pure, 1)), PureDP(0.1)).support == pure.support
    assert ProductPair(((gaussian, 1), (pure, 1)), PureDP(0.1)).support == (-math.inf, math.inf)
    for name in ("rho", "mu"):
        power = 1 if name == "rho" else 2
        each = [(mp(getattr(p, name)) ** power, n) for p, n in pair.parts]
        truth = sum(x * n for x, n in each) ** (mp(1) / power)
        assert truth <= getattr(pair, name) <= truth * (1 + 40 * U)
    for name in ("rdp", "finite_rdp"):
        truth = sum(n * Fraction(getattr(p, name)(2.5)) for p, n in pair.parts)
        found = Fraction(getattr(pair, name)(2.5))
        assert truth <= found <= truth * (1 + Fraction(1, 2**50))


class Fixed(LinePair):
    """A pair with every figure its own."""

    @property
    def support(self):
        return -2 * self.slope, self.slope

    @property
    def infinite_mass(self):
        return self.slope / 8

    @property
    def rho(self):
        return self.slope * 3

    @property
    def mu(self):
        return self.slope * 5

    def finite_rdp(self, order):
        return self.slope * order / 2


def test_the_worst_of_pairs_in_every_figure():
    pair = WorstPair((Fixed(0.5), Fixed(1.0), Fixed(0.25)), PureDP(0.1))
    assert pair.support == (-2.0, 1.0)
    assert pair.infinite_mass == 0.125
    assert (pair.rho, pair.mu, pair.rdp(7.0), pair.finite_rdp(7.0)) == (3.0, 5.0, 7.0, 3.5)


def test_directions_are_kept_apart():
    mixed = 3 * Skewed(0.25, 0.5) + Skewed(1.0, 0.125) + 2 * Skewed(0.0, 1.0)
    remove, add = mixed.pairs()
    assert remove.rdp(2.0) == 2 * (3 * 0.25 + 1.0)
    assert add.rdp(2.0) == 2 * (3 * 0.5 + 0.125 + 2.0)
    assert len((2 * Gaussian(1.0)).pairs()) == 1
    remove, add = Parallel((Skewed(0.25, 0.5), Skewed(1.0, 0.125))).pairs()
    assert (remove.rdp(2.0), add.rdp(2.0)) == (2.0, 1.0)
    assert len(Parallel((Gaussian(1.0), Gaussian(2.0))).pairs()) == 1


def test_counts_of_parts():
    a, b = Gaussian(1.0), Laplace(2.0)
    assert (a + a + 0 * b).parts == ((a, 2),)
    assert (0 * a + 0 * b).parts == ((a, 0),)
    assert (2 * (a + 3 * b) + b).parts == ((a, 2), (b, 7))
    assert (2**53 * a).parts == ((a, 2**53),)
    for build in (lambda: 2**53 * a + a, lambda: (2**53 + 1) * a, lambda: Composition(())):
        with pytest.raises(DomainError):
            build()
    with pytest.raises(DomainError):
        Parallel(())
    for build in (
        lambda: Parallel((a, a.under(NeighbouringRelation.REPLACE_ONE))),
        lambda: Parallel((a.under(NeighbouringRelation.REPLACE_ONE),)),
        lambda: a + a.under(NeighbouringRelation.REPLACE_ONE),
    ):
        with pytest.raises(UnsupportedError):
            build()
    assert repr(1 * a) == "1 * Gaussian(1.0)"
    assert repr(2 * a + b) == "2 * Gaussian(1.0) + Laplace(2.0)"


# Rounding outwards.


def test_moving_up():
    for value in (1.0, -1.0, 3e-5, 1e300, -7e-200):
        for units in (1.0, 4.0, 8.0, 32.0):
            found = mp(ar.up(value, units)) - mp(value)
            assert units * U * abs(mp(value)) < found <= (units + 4) * U * abs(mp(value))
    assert ar.up(0.0) == 0.0
    assert ar.up(math.inf) == math.inf
    assert ar.up(1.0) == 1.0 + 10 * 2.0**-53
    assert ar.up(5e-324) == 1e-323
    assert (ar.lift(1e-310), ar.lift(0.0), ar.lift(2.0)) == (sys.float_info.min,) * 2 + (2.0,)
    assert ar.half_square(0.0) == 0.0
    assert sys.float_info.min < ar.half_square(1e-200) <= sys.float_info.min * (1 + 1e-15)
    for value in (0.1, 3.0, 1e100, 1e-100):
        truth = mp(value) ** 2 / 2
        assert truth < ar.half_square(value) <= truth * (1 + 12 * U)


def test_quotients_are_rounded_where_they_are_asked_to():
    draw = random.Random(9)
    for _ in range(300):
        a, b = (10 ** draw.uniform(-150, 150) for _ in range(2))
        truth = Fraction(a) / Fraction(b)
        exactly_up(ar.ratio_up(a, b), truth)
        exactly_up(-ar.ratio_down(a, b), -truth)
    for a, b, down, up in (
        (1e300, 1e-300, sys.float_info.max, math.inf),
        (1e-300, 1e300, 5e-324, 5e-324),
        (1.0, math.inf, 5e-324, 0.0),
        (math.inf, 1.0, math.inf, math.inf),
        (6.0, 3.0, 2.0, 2.0),
    ):
        assert (ar.ratio_down(a, b), ar.ratio_up(a, b)) == (down, up)


@pytest.mark.parametrize("order", [1 + 1e-9, 1.001, 1.1, 2.0, 7.5, 1e3, 1e8, 2e13])
def test_bends_keep_their_stated_accuracy(order):
    draw = random.Random(int(order * 1000))
    losses = [s * 10 ** draw.uniform(-150, 2) for s in (-1, 1) for _ in range(40)]
    losses += [s * 10 ** draw.uniform(-6, 1) for s in (-1, 1) for _ in range(60)]
    losses += [s * x / order for s in (-1, 1) for x in (0.2, 0.26, 0.9, 1.1, 30.0, 699.0)]
    for loss, another in zip(
        losses, excess.rdp_excess_terms(order, np.array(losses)).tolist(), strict=True
    ):
        a, x = mp(order), mp(loss)
        with mpmath.workdps(500):
            truth = mpmath.exp(a * x) - 1 - a * mpmath.expm1(x)
        for found in (excess.rdp_excess_term(order, loss), another):
            if a * x > 700:
                assert found == math.inf
            else:
                assert abs(found - truth) <= (512 + 8 * abs(a * x)) * U * truth + mp(5e-324)
    assert excess.rdp_excess_term(order, 0.0) == 0.0


def test_the_exponential_without_its_line():
    for z in (1e-200, 1e-9, 0.1, 0.49, 0.5, 0.51, 3.0, 30.0, -0.3, -0.5, -7.0, -1e-5):
        truth = mpmath.expm1(mp(z)) - mp(z)
        assert abs(excess.exp_minus_linear(z) - truth) <= 16 * U * truth + mp(5e-324)


def test_divergences_from_their_moments():
    for moment in (1e-300, 1e-10, 0.5, 1e10, 1e308):
        for order in (1.5, 2.0, 100.0):
            truth = mpmath.log1p(mp(moment)) / (mp(order) - 1)
            found = excess.divergence(moment, order)
            assert truth * (1 + 20 * U) <= found <= truth * (1 + 48 * U) + mp(3e-308)
    assert excess.divergence(0.0, 2.0) == 0.0
    assert excess.divergence(math.inf, 2.0) == math.inf
    assert excess.divergence(5e-324, 2.0) > sys.float_info.min


@pytest.mark.parametrize("q", [1e-12, 0.01, 0.3, 0.5, 0.51, 0.9, 1 - 1e-9])
def test_losses_of_samples_and_back(q):
    draw = random.Random(int(q * 1e6))
    losses = [s * 10 ** draw.uniform(-12, 2) for s in (-1, 1) for _ in range(60)]
    losses += [690.0, 701.0, 705.0, 720.0, 900.0, -800.0]
    with mpmath.workdps(500):
        p = mp(q)
        found = sampled_loss.loss_of_sample(q, np.array(losses)).tolist()
        for loss, value in zip(losses, found, strict=True):
            truth = mpmath.log(1 - p + p * mpmath.exp(mp(loss)))
            assert abs(value - truth) <= 16 * U * abs(truth)
        targets = [x for x in found if x > math.log1p(-q) * (1 - 1e-6) and x != 0.0]
        back = sampled_loss.loss_of_sample_inverse(q, np.array(targets)).tolist()
        for target, loss in zip(targets, back, strict=True):
            stands_for = mpmath.log(1 - p + p * mpmath.exp(mp(loss)))
            room = 16 * U * abs(mp(target)) + 8 * U * max(mp(loss), 0)
            assert abs(stands_for - target) <= room
    ends = sampled_loss.loss_of_sample(q, np.array([-math.inf, 0.0, math.inf])).tolist()
    assert ends[0] == pytest.approx(math.log1p(-q), rel=1e-15)
    assert ends[1:] == [0.0, math.inf]
