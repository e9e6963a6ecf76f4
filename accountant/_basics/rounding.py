"""Directed rounding: results moved outwards by a stated number of units of roundoff.

``math``'s exp, expm1, log and log1p are trusted to five units of roundoff, as in docs/theorems.md.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction

U = 2.0**-53
NORMAL = sys.float_info.min  # the least double with all its digits
LEAST = math.nextafter(0.0, 1.0)
TINY = 1e-300  # masses below it are allowed any relative error by the protocol


def up(value: float, units: float = 8.0) -> float:
    """Return ``value`` moved up by ``units`` units of roundoff; 0 stays 0."""
    if value == 0.0 or value == math.inf:
        return value
    return math.nextafter(value + abs(value) * units * U, math.inf)


def product_up(first: float, second: float) -> float:
    """Return the product of two numbers >= 0, rounded up; 0 only where one of them is 0."""
    return up(max(first * second, LEAST), 2.0) if first and second else 0.0


def lift(value: float) -> float:
    """Return ``value``, or the least normal double where it is below.

    For what is positive, but may have lost digits to underflow, or all of itself.
    """
    return max(value, NORMAL)


def half_square(value: float) -> float:
    """Return value²/2 for value >= 0, rounded up; 0 only of 0."""
    return up(lift(0.5 * value * value)) if value else 0.0


def fraction_up(value: Fraction) -> float:
    """Return the least double that is at least ``value``; ``inf`` beyond all."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    # A float is a fraction, compared without rounding.
    return math.nextafter(nearest, math.inf) if nearest < value else nearest


def ratio_down(numerator: float, denominator: float) -> float:
    """Return numerator / denominator rounded towards 0 when inexact; both are positive.

    Integers up to 2**53 are as good as doubles here, as in :func:`ratio_up`.
    A finite quotient beyond the doubles becomes the largest of them, and one below them the least,
    which as a noise multiplier already costs infinitely much.
    """
    return max(_directed(numerator, denominator, 0.0), LEAST)


def ratio_up(numerator: float, denominator: float) -> float:
    """Return numerator / denominator rounded up when inexact; both are positive.

    A positive quotient below the doubles becomes the least of them.
    """
    return _directed(numerator, denominator, math.inf)


def _directed(numerator: float, denominator: float, towards: float) -> float:
    if denominator == 1.0:
        return float(numerator)
    quotient = numerator / denominator
    if math.isinf(denominator) or math.isinf(numerator):
        return quotient
    if quotient == math.inf:
        return quotient if towards > 0.0 else sys.float_info.max
    if quotient == 0.0:
        return quotient if towards == 0.0 else LEAST
    # Exact: floats are fractions, and so is their product.
    a, b = numerator.as_integer_ratio()
    c, d = denominator.as_integer_ratio()
    e, f = quotient.as_integer_ratio()
    excess = e * c * b - a * f * d  # the sign of quotient * denominator - numerator
    if excess > 0 and towards == 0.0:
        return math.nextafter(quotient, 0.0)
    if excess < 0 and towards > 0.0:
        return math.nextafter(quotient, math.inf)
    return quotient


def times_up(value: float, count: int) -> float:
    """Return value * count, rounded up when inexact; both are >= 0."""
    product = value * count
    if product == math.inf or value == 0.0 or count == 1:
        return product
    a, b = value.as_integer_ratio()
    c, d = product.as_integer_ratio()
    return math.nextafter(product, math.inf) if c * b < a * count * d else product


def sum_up(values: list[float]) -> float:
    """Return the sum of the values, rounded up when inexact."""
    if len(values) == 1:
        return values[0]
    if math.inf in values:
        return math.inf
    nearest = math.fsum(values)
    # fsum rounds once, so the sign of the rest is exact.
    return math.nextafter(nearest, math.inf) if math.fsum([*values, -nearest]) > 0.0 else nearest
