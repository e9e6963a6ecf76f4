"""Products of pairs, and the worst of several, figure by figure."""

import math
from fractions import Fraction

import mpmath
import pytest

from accountant.mechanisms import Gaussian, Laplace, PureDP
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
