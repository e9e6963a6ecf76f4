"""Products of pairs, the worst of several, and sums over parts, against fractions."""

import math
import random
from fractions import Fraction

import mpmath
import pytest

from accountant._basics import rounding as ar
from accountant.mechanisms import ApproximateDP, Gaussian, Laplace, PureDP
from accountant.pairs import product
from accountant.pairs.product import ProductPair, WorstPair
from support.exact_laws import exactly_up
from support.toy_mechanisms import LinePair

mp = mpmath.mpf

U = mp(2) ** -53


pytestmark = pytest.mark.usefixtures("sixty_digits")


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


def test_sums_and_products_are_rounded_up_once():
    draw = random.Random(5)
    for _ in range(200):
        terms = [(10 ** draw.uniform(-20, 20), draw.choice([0, 1, 3, 2**53])) for _ in range(4)]
        x, n = terms[0]
        exactly_up(ar.times_up(x, n), Fraction(x) * n)
        exactly_up(ar.sum_up([x for x, _ in terms]), sum(Fraction(x) for x, _ in terms))
        truth = sum(Fraction(x) * n for x, n in terms)
        found = Fraction(product.total(terms))
        assert truth <= found <= truth * (1 + Fraction(1, 2**50))
        with mpmath.workdps(60):
            root = mpmath.sqrt(sum(n * mp(x) ** 2 for x, n in terms))
            assert root <= product.root_of_squares(terms) <= root * (1 + 30 * U)
    assert ar.times_up(math.inf, 3) == ar.sum_up([1.0, math.inf]) == math.inf
    assert ar.times_up(0.0, 5) == ar.times_up(3.0, 0) == ar.sum_up([]) == 0.0
    assert ar.times_up(1e308, 100) == math.inf
    assert product.total([(math.inf, 0), (0.5, 2)]) == 1.0


def test_roots_of_squares_at_the_ends():
    root = product.root_of_squares
    assert root([]) == root([(0.0, 5), (3.0, 0)]) == root([(math.inf, 0)]) == 0.0
    assert root([(math.inf, 1), (1.0, 1)]) == math.inf
    assert root([(0.1, 1)]) == 0.1
    assert root([(0.1, 1), (0.2, 0), (0.0, 3)]) == 0.1
    for terms in ([(1e300, 4)], [(1e-300, 4)], [(1e-300, 1), (1e-300, 3)], [(5e-324, 4)]):
        truth = 2 * mp(terms[0][0])
        assert truth <= root(terms) <= truth * (1 + 30 * U) + mp(5e-324)


def test_masses_at_infinity_are_composed_and_rounded_up():
    for masses in ([(1e-6, 3)], [(0.25, 2), (1e-12, 10**6)], [(0.5, 0), (2.0**-40, 1)]):
        parts = [(ApproximateDP(0.1, delta=m).pairs()[0], n) for m, n in masses]
        kept = mp(1)
        for pair, n in parts:
            kept *= (1 - mp(pair.infinite_mass)) ** n
        found = product.infinite_mass(parts)
        assert 1 - kept <= found <= (1 - kept) * (1 + 80 * U)
    whole = ApproximateDP(0.1, delta=1.0 - 2.0**-53).pairs()[0]
    assert product.infinite_mass([(whole, 2), (whole, 0)]) == 1.0
    assert product.infinite_mass([]) == product.infinite_mass([(whole, 0)]) == 0.0
    assert (0 * ApproximateDP(0.1, delta=1.0 - 2.0**-53)).pairs()[0].infinite_mass == 0.0


class Public(LinePair):
    infinite_mass = 1.0


def test_what_is_public_stays_so():
    assert product.infinite_mass([(Public(0.1), 1)]) == 1.0
    assert product.infinite_mass([(Public(0.1), 0)]) == 0.0
