"""Directed rounding, against fractions and mpmath."""

import math
import random
import sys
from fractions import Fraction

import mpmath
import pytest

from accountant._basics import rounding as ar
from support.exact_laws import exactly_up

mp = mpmath.mpf

U = mp(2) ** -53


pytestmark = pytest.mark.usefixtures("sixty_digits")


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


def test_a_fraction_becomes_the_least_double_that_is_not_below_it():
    for value in (Fraction(1, 3), Fraction(-1, 3), Fraction(2**60 + 1), Fraction(1, 10**400)):
        up = ar.fraction_up(value)
        assert Fraction(math.nextafter(up, -math.inf)) < value <= Fraction(up)
    for exact in (0.0, 0.5, -1e300, 5e-324, sys.float_info.max):
        assert ar.fraction_up(Fraction(exact)) == exact
    assert ar.fraction_up(Fraction(10) ** 400) == math.inf
    assert ar.fraction_up(-(Fraction(10) ** 400)) == -sys.float_info.max


def test_ratios_of_counts_are_directed():
    for part, whole in ((1, 3), (2, 3), (10, 49), (1, 2**53), (2**53 - 1, 2**53)):
        low, high = ar.ratio_down(part, whole), ar.ratio_up(part, whole)
        assert Fraction(low) <= Fraction(part, whole) <= Fraction(high)
        assert high in (low, math.nextafter(low, math.inf))
    assert type(ar.ratio_up(3, 1)) is float
    assert ar.ratio_up(2, 1.0) == 2.0
    assert ar.ratio_up(2, 0.5) == 4.0
