"""The arithmetic of losses: what one adds to a Rényi divergence, and what sampling makes of it.

The excess e^{αL} - 1 - α(e^L - 1) of a loss has the mean A(α) - 1 under Q, of which a divergence is
the logarithm. A Poisson sample turns a loss L into log(1 - q + q·e^L).

``math``'s exp, expm1, log and log1p are assumed accurate to five units of round-off, as in
docs/theorems.md. The margins below are many times the error of the few operations they cover.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import TINY, U, lift, up

# The least rise of e^L between two losses.
LEAST_RISE = 1e-30


def rdp_excess_terms(order: float, losses: FloatArray) -> FloatArray:
    """Return e^{αL} - 1 - α(e^L - 1) ≥ 0 of every loss, α > 1, to a relative (512 + 8|αL|) U.

    Infinite on overflow.
    """
    # With E(z) = e^z - 1 - z it is e^L·E((α-1)L) + (α-1)·e^L·E(-L): two positive terms.
    with np.errstate(over="ignore", invalid="ignore"):
        beyond, far = order * losses > 700.0, np.abs(losses) > 0.5
        grown = np.exp(losses)
        first = grown * exps_minus_linear((order - 1.0) * losses)
        # The second is (α-1)(L·e^L - e^L + 1), which loses no digits far from 0.
        near = grown * exps_minus_linear(np.where(far, 0.0, -losses))
        second = np.where(far, losses * grown - np.expm1(losses), near)
        return np.where(beyond, math.inf, first + (order - 1.0) * second)


def exp_minus_linear(z: float) -> float:
    """Return e^z - 1 - z."""
    return _series(z) if abs(z) <= 0.5 else math.expm1(z) - z


def exps_minus_linear(z: FloatArray) -> FloatArray:
    """Return e^z - 1 - z of every number."""
    return np.where(np.abs(z) <= 0.5, _series(np.clip(z, -0.5, 0.5)), np.expm1(z) - z)


def _series(z: Any) -> Any:
    # Of e^z - 1 - z, where the difference would cancel: twenty terms leave less than 1/20!.
    total = 1.0
    for k in range(20, 2, -1):
        total = 1.0 + z / k * total
    return 0.5 * z * z * total


def chord_excess(
    order: float, loss: FloatArray, p: FloatArray, q: FloatArray, shift: float, error: float
) -> float:
    """Bound Σ of the excess over cells between losses, by a chord in each (Theorem M17).

    Parameters
    ----------
    order : float
        α > 1.
    loss : float64 array of shape (m,)
        Increasing ends of the cells.
    p, q : float64 arrays of shape (m - 1,)
        Masses of the cells, with relative ``error``.
    shift, error : float
        Absolute error of the losses, relative one of the masses.
    """
    # The function falls to 0 at L = 0 and rises beyond: its largest value within the loss's error.
    values = rdp_excess_terms(order, loss + np.where(loss < 0.0, -shift, shift))
    if not np.isfinite(values).all():
        return math.inf
    # Losses next to 0 may be equal; then every weight gives the same.
    rise = np.maximum(np.expm1(np.diff(loss)), LEAST_RISE)
    share = (p / np.maximum(q, TINY) * np.exp(-loss[:-1]) - 1.0) / rise
    # A chord's weight is uncertain by the masses' and losses' errors over the width of the cell.
    doubt = (4.0 * error + 4.0 * shift + 64.0 * U) * (1.0 + 1.0 / rise)
    share = np.clip(share + np.copysign(doubt, np.diff(values)), 0.0, 1.0)
    return float((q * (values[:-1] * (1.0 - share) + values[1:] * share)).sum())


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
            # Near -1 the sum with 1 cancels, but then 1 - q is exact.
            found = np.where(gain < -0.5, np.log((1.0 - q) + q * np.exp(loss)), found)
        # Where q·e^L overflows, 1 - q is negligible beside it.
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
