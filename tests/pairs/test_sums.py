"""Sums over parts are rounded up once, against fractions."""

import math
import random
from fractions import Fraction

import mpmath
import pytest

from accountant._basics import rounding as ar
from accountant.mechanisms import ApproximateDP
from accountant.pairs import product
from support.exact_laws import exactly_up
from support.toy_mechanisms import LinePair

mp = mpmath.mpf

U = mp(2) ** -53


pytestmark = pytest.mark.usefixtures("sixty_digits")


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
