"""The loss of a Poisson-sampled release as a function of the loss without sampling; its inverse."""

from __future__ import annotations

import math

import numpy as np

from accountant._rounding import U, up
from accountant._typing import FloatArray

# So few losses are mapped by a loop, which is faster than arrays.
LOOPED = 8


def loss_of_sample(q: float, loss: FloatArray) -> FloatArray:
    """Return log(1 - q + q·e^L), 0 < q < 1, for every L in [-∞, ∞], to a relative 16 U.

    Theorem M6 has the analysis of the error.
    """
    loss = np.asarray(loss, dtype=np.float64)
    if loss.ndim == 1 and loss.size <= LOOPED:
        return np.array([one_loss_of_sample(q, one) for one in loss.tolist()])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # The gain q(e^L - 1), positive or above -q, has the digits of its factors.
        half = np.exp(0.5 * loss)
        gain = np.where(loss > 700.0, (q * half) * half, q * np.expm1(loss))
        found = np.log1p(gain)
        if q > 0.5:
            # Near -1 the sum with 1 cancels, but then 1 - q is exact.
            found = np.where(gain < -0.5, np.log((1.0 - q) + q * np.exp(loss)), found)
        # Where q·e^L overflows, 1 - q is negligible beside it.
        return np.where(gain == math.inf, math.log(q) + loss, found)


def one_loss_of_sample(q: float, loss: float) -> float:
    """Return :func:`loss_of_sample` of a number, by the same formulas."""
    if loss <= 700.0:
        gain = q * math.expm1(loss)
        if q > 0.5 and gain < -0.5:
            return math.log((1.0 - q) + q * math.exp(loss))
        return math.log1p(gain)
    half = math.exp(0.5 * loss) if loss < 1400.0 else math.inf
    gain = (q * half) * half
    return math.log1p(gain) if gain < math.inf else math.log(q) + loss


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
        # Where the quotient overflows, 1 - q is negligible beside q·e^L, not always beside e^loss.
        large = loss - math.log(q) + np.log(-np.expm1(-np.maximum(loss, 0.0)))
        return np.where(gain / q == math.inf, large, found)


def loss_of_the_rest(q: float) -> float:
    """Return log(1 - q), the loss of a record that was not used, rounded down."""
    return -up(-math.log1p(-q), 16.0)


def ends_of_sample(q: float, low: float, high: float) -> tuple[float, float]:
    """Return log(1 - q + q·e^L) of two ends of a support, rounded outwards; 0 stays 0."""
    first, last = loss_of_sample(q, np.array([low, high])).tolist()
    first, last = first - 16.0 * U * abs(first), last + 16.0 * U * abs(last)
    return (
        math.nextafter(first, -math.inf) if low else first,
        math.nextafter(last, math.inf) if high else last,
    )
