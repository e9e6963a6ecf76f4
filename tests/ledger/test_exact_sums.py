"""Exact sums: what is charged is rounded up, what may be spent down, and doubles are exact."""

import math
from fractions import Fraction

import numpy as np

from accountant._basics.rounding import fraction_up
from accountant.ledger import exact_sums

UNIT = Fraction(1, 2**1074)
VALUES = [Fraction(1, 3), Fraction(10**30, 7), Fraction(1, 3 * 2**1074), Fraction(2, 3) ** 500]


def test_charges_are_rounded_up_and_capacities_down():
    for value in VALUES:
        assert value <= exact_sums.ceiling(value) * UNIT < value + UNIT
        assert value - UNIT < exact_sums.floor(value) * UNIT <= value
    for value in (0.1, 5e-324, 1.7e308, 0.0):
        assert exact_sums.ceiling(value) == exact_sums.floor(value) == exact_sums.units(value)
        assert exact_sums.units(value) * UNIT == Fraction(value)
    rng = np.random.default_rng(0)
    for _ in range(300):
        value = Fraction(int(rng.integers(1, 2**62)), int(rng.integers(1, 2**62)))
        units = int(value / UNIT)
        up, down = exact_sums.to_float_up(units), exact_sums.to_float_down(units)
        assert Fraction(down) <= units * UNIT <= Fraction(up)
        assert up <= math.nextafter(down, math.inf)
        share = fraction_up(value)
        assert value <= Fraction(share)
        assert Fraction(math.nextafter(share, 0.0)) < value
    assert exact_sums.ceiling(math.inf) == exact_sums.INFINITE > exact_sums.units(1.7e308) << 53
    assert exact_sums.to_float_up(exact_sums.INFINITE) == math.inf


def test_doubles_are_whole_units():
    for value in (0.0, 5e-324, 1e-300, 0.1, 1.0, 1.7976931348623157e308):
        assert Fraction(exact_sums.units(value), 2**1074) == Fraction(value)
        assert exact_sums.floor(value) == exact_sums.ceiling(value) == exact_sums.units(value)
