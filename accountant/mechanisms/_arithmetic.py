"""Rounding outwards, and differences of exponentials without cancellation.

``math``'s exp, expm1, log and log1p are trusted to five units of roundoff, as in docs/theorems.md;
the margins below are many times what the few operations in question can lose.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "LEAST",
    "TINY",
    "U",
    "bend",
    "bends",
    "divergence",
    "exp_minus_linear",
    "half_square",
    "lift",
    "loss_of_sample",
    "loss_of_sample_inverse",
    "ratio_down",
    "ratio_up",
    "sum_up",
    "times_up",
    "up",
]

FloatArray: TypeAlias = "NDArray[np.float64]"

U = 2.0**-53
NORMAL = sys.float_info.min  # the least double with all its digits
LEAST = math.nextafter(0.0, 1.0)
TINY = 1e-300  # masses below it are allowed any relative error by the protocol


def up(value: float, units: float = 8.0) -> float:
    """Return ``value`` moved up by ``units`` units of roundoff; 0 stays 0."""
    if value == 0.0 or value == math.inf:
        return value
    return math.nextafter(value + abs(value) * units * U, math.inf)


def lift(value: float) -> float:
    """Return ``value``, or the least normal double where it is below.

    For what is positive, but may have lost digits to underflow, or all of itself.
    """
    return max(value, NORMAL)


def half_square(value: float) -> float:
    """Return value²/2 for value >= 0, rounded up; 0 only of 0."""
    return up(lift(0.5 * value * value)) if value else 0.0


def ratio_down(numerator: float, denominator: float) -> float:
    """Return numerator / denominator rounded towards 0 when inexact; both are positive.

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
        return numerator
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


def bend(order: float, loss: float) -> float:
    """Return e^{αL} - 1 - α(e^L - 1) ≥ 0 for α > 1, to a relative error below (512 + 8|αL|) U.

    Infinite on overflow.
    """
    z = order * loss
    if z > 700.0:
        return math.inf
    if abs(z) > 0.25 and abs(loss) * (order - 1.0) > 0.125:
        return math.expm1(z) - order * math.expm1(loss)
    if abs(z) > 1.0:
        # The order is near 1: e^{αL} - e^L is small beside both.
        return _near_one(order, loss)
    if abs(loss) < 1e-140 or order > 1e13:
        # Powers of the loss would underflow, or of the order overflow: E(αL) - α E(L) with
        # E(x) = e^x - 1 - x, where E(L) is L²/2 to all digits, and so is the other if αL is tiny.
        small = (order - 1.0) * loss
        return exp_minus_linear(z) - 0.5 * z * loss if abs(z) > 1e-100 else 0.5 * z * small
    # The series Σ (α^k - α) L^k / k!, k ≥ 2; twenty terms leave less than 1/21!.
    total, term, growth = 0.0, loss, math.log(order)
    parts = []
    for k in range(2, 24):
        term *= loss / k
        parts.append(order * math.expm1((k - 1) * growth) * term)
    total = math.fsum(parts)
    return max(total, 0.0)


def _near_one(order: float, loss: float) -> float:
    # e^L(e^{(α-1)L} - 1) - (α-1)(e^L - 1), with e^x - 1 = x + E(x): the first order is
    # (α-1)(L e^L - e^L + 1), which is positive and free of cancellation for |L| above 1/2.
    small = (order - 1.0) * loss
    second = math.exp(loss) * exp_minus_linear(small)
    return (order - 1.0) * (loss * math.exp(loss) - math.expm1(loss)) + second


def exp_minus_linear(z: float) -> float:
    """Return e^z - 1 - z."""
    if abs(z) > 0.5:
        return math.expm1(z) - z
    total, term = 0.0, z
    for k in range(2, 22):
        term *= z / k
        total += term
    return total


def bends(order: float, losses: FloatArray) -> FloatArray:
    """Return :func:`bend` of every loss, to the same relative error."""
    with np.errstate(over="ignore"):
        z = order * losses
        large = np.abs((order - 1.0) * losses) > 0.125
    beyond = z > 700.0
    far = ~beyond & large & (np.abs(z) > 0.25)
    near = ~(beyond | far) & (np.abs(z) > 1.0)
    rest = ~(beyond | far | near)
    tiny = rest & ((np.abs(losses) < 1e-140) | (order > 1e13))
    rest &= ~tiny
    found = np.full(losses.shape, math.inf)
    found[far] = np.expm1(z[far]) - order * np.expm1(losses[far])
    found[near] = _bends_near_one(order, losses[near])
    found[tiny] = [bend(order, loss) for loss in losses[tiny].tolist()]
    if rest.any():
        found[rest] = np.maximum(_bends_by_series(order, losses[rest]), 0.0)
    return found


def _bends_near_one(order: float, losses: FloatArray) -> FloatArray:
    # As in _near_one; |small| <= 1/8 leaves the rest of its series below 1/8^12.
    small = (order - 1.0) * losses
    total, term = np.zeros(losses.shape), small
    for k in range(2, 14):
        term = term * (small / k)
        total += term
    grown = np.exp(losses)
    return (order - 1.0) * (losses * grown - np.expm1(losses)) + grown * total


def _bends_by_series(order: float, losses: FloatArray) -> FloatArray:
    # As at the end of bend. The sum of the sizes of the terms is at most four times their sum, so
    # that adding them up one by one loses less than a hundred units.
    growth = math.log(order)
    total, term = np.zeros(losses.shape), losses
    for k in range(2, 24):
        term = term * (losses / k)
        total += order * math.expm1((k - 1) * growth) * term
    return total


def divergence(excess: float, order: float) -> float:
    """Return log1p(excess) / (order - 1), rounded up: a Rényi divergence from A(order) - 1."""
    if excess == 0.0 or excess == math.inf:
        return excess
    return up(lift(math.log1p(excess) / (order - 1.0)), 32.0)


def loss_of_sample(q: float, loss: FloatArray) -> FloatArray:
    """Return log(1 - q + q·e^L), 0 < q < 1, for every L in [-∞, ∞], to a relative 16 U.

    Theorem M6 has the analysis of the error.
    """
    loss = np.asarray(loss, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # The gain q(e^L - 1), positive or above -q, has the digits of its factors.
        half = np.exp(0.5 * loss)
        gain = np.where(loss > 700.0, (q * half) * half, q * np.expm1(loss))
        found = np.log1p(gain)
        if q > 0.5:
            # Near -1 the gain has lost those of the sum with 1; but then 1 - q is exact.
            found = np.where(gain < -0.5, np.log((1.0 - q) + q * np.exp(loss)), found)
        # Where q·e^L overflows, 1 - q is nothing beside it.
        return np.where(gain == math.inf, math.log(q) + loss, found)


def loss_of_sample_inverse(q: float, loss: FloatArray) -> FloatArray:
    """Return an L with log(1 - q + q·e^L) equal to ``loss`` > log(1 - q), 0 < q < 1.

    The ``loss`` that L stands for is within 16 U of the one given, relatively, and within 8 U·L
    more where L is positive (Theorem M6).
    """
    loss = np.asarray(loss, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        gain = np.expm1(loss)
        found = np.log1p(np.maximum(gain / q, -1.0))
        if q > 0.5:
            rest = np.maximum(np.exp(loss) - (1.0 - q), 0.0)
            found = np.where(gain < -0.5, np.log(rest / q), found)
        # Where the quotient overflows, 1 - q is nothing beside q·e^L, but perhaps beside e^loss.
        large = loss - math.log(q) + np.log(-np.expm1(-np.maximum(loss, 0.0)))
        return np.where(gain / q == math.inf, large, found)


def times_up(value: float, count: int) -> float:
    """Return value * count, rounded up when inexact; both are >= 0."""
    product = value * count
    if product == math.inf or value == 0.0:
        return product
    a, b = value.as_integer_ratio()
    c, d = product.as_integer_ratio()
    return math.nextafter(product, math.inf) if c * b < a * count * d else product


def sum_up(values: list[float]) -> float:
    """Return the sum of the values, rounded up when inexact."""
    if math.inf in values:
        return math.inf
    nearest = math.fsum(values)
    # fsum rounds once, so the sign of the rest is exact.
    return math.nextafter(nearest, math.inf) if math.fsum([*values, -nearest]) > 0.0 else nearest
