"""Exact sums: charges are rounded up, capacities down; the largest count that is admitted."""

import math
from fractions import Fraction

import numpy as np

from accountant._basics.rounding import fraction_up
from accountant.ledger import meters

VALUES = [Fraction(1, 3), Fraction(10**30, 7), Fraction(1, 3 * 2**1074), Fraction(2, 3) ** 500]


def test_charges_are_rounded_up_and_capacities_down():
    for value in VALUES:
        assert value <= meters.ceiling(value) * meters.UNIT < value + meters.UNIT
        assert value - meters.UNIT < meters.floor(value) * meters.UNIT <= value
    for value in (0.1, 5e-324, 1.7e308, 0.0):
        assert meters.ceiling(value) == meters.floor(value)
        assert meters.floor(value) * meters.UNIT == Fraction(value)
    rng = np.random.default_rng(0)
    for _ in range(300):
        value = Fraction(int(rng.integers(1, 2**62)), int(rng.integers(1, 2**62)))
        units = int(value / meters.UNIT)
        up, down = meters.to_float_up(units), meters.to_float_down(units)
        assert Fraction(down) <= units * meters.UNIT <= Fraction(up)
        assert up <= math.nextafter(down, math.inf)
        share = fraction_up(value)
        assert value <= Fraction(share)
        assert Fraction(math.nextafter(share, 0.0)) < value
    assert meters.ceiling(math.inf) == meters.INFINITE > meters.floor(1.7e308) << 53
    assert meters.to_float_up(meters.INFINITE) == math.inf


def test_the_largest_count_is_found_at_both_ends():
    assert meters.largest(lambda n: False) == 0
    assert meters.largest(lambda n: True) == 2**53
    for most in (1, 2, 3, 1000, 2**53 - 1):
        assert meters.largest(lambda n, most=most: n <= most) == most
