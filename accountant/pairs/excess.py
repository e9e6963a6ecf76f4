"""The arithmetic of losses: what one adds to a Rényi divergence, a sample's, and normal masses.

The excess e^{αL} - 1 - α(e^L - 1) of a loss has the mean A(α) - 1 under Q, of which a divergence is
the logarithm. A Poisson sample turns a loss L into log(1 - q + q·e^L).

``math``'s exp, expm1, log and log1p are assumed accurate to five units of round-off, as in
docs/theorems.md. The margins below are many times the error of the few operations they cover.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from accountant._basics import intervals as iv
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import TINY, U, lift, up
from accountant._core import tools
from accountant.bounds import Bounds
from accountant.search import DOUBLES, bisect

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


def reflected(reverse: Bounds, epsilon: float) -> Bounds:
    """Bracket H(ε) = 1 - e^ε + e^ε·H'(-ε) at ε < 0 by the reversed pair's H'(-ε) (Theorem M1)."""
    rest, scale = -math.expm1(epsilon), math.exp(epsilon)
    low = (rest + scale * float(reverse.lower)) * (1.0 - 32.0 * U)
    return Bounds(low, min(up(rest + scale * float(reverse.upper), 32.0), 1.0))


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


# erf is trusted to 8 roundings and erfc to 16 (docs/theorems.md, Library functions).
ERF, ERFC = 8.0 * U, 16.0 * U
LOG_2_ROOT_PI = 1.265512123  # log(2√π), rounded down


@lru_cache(maxsize=1024)
def mu_of_pure(epsilon: float) -> float:
    """Return μ = -2 Φ⁻¹(1 / (1 + e^ε)), rounded up (Theorems M11 and C14)."""
    if epsilon in (0.0, math.inf):
        return epsilon
    if epsilon < 1e-290:
        # tanh(ε/2)/2 <= ε/4 <= Φ(0.63·ε) - 1/2, for the density is flat here and 0.63·φ(0) > 1/4.
        return math.nextafter(1.26 * epsilon, math.inf)
    # Between neighbouring doubles, the larger of which is certain.
    certain = _certainty(epsilon)
    largest = DOUBLES.rank(sys.float_info.max)
    return DOUBLES.value(bisect(lambda rank: certain(DOUBLES.value(rank)), largest, 0))


def _certainty(epsilon: float) -> Callable[[float], bool]:
    """Return a function of μ: whether Φ(-μ/2) <= 1/(1 + e^ε) is certain."""
    if epsilon > 600.0:
        # erfc(x) <= e^(-x²)/(x√π), compared by logarithms.
        least, root = (iv.log1p(iv.exp(-epsilon)) + epsilon).upper, iv.sqrt(8.0)

        def by_logarithms(mu: float) -> bool:
            x = iv.of(mu) / root
            return bool((x * x + iv.log(x) + LOG_2_ROOT_PI).lower >= least)

        return by_logarithms
    tail = (2.0 / (iv.exp(epsilon) + 1.0)).down()
    middle = (-iv.expm1(-epsilon) / (iv.exp(-epsilon) + 1.0)).up()
    # The first resolves small ε: Φ(μ/2) - Φ(-μ/2) = erf(μ/√8) >= tanh(ε/2).
    return lambda mu: _erf_lower(mu) >= middle or _erfc_upper(mu) <= tail


def _erf_lower(mu: float) -> float:
    """Bound erf(μ/√8) from below."""
    return math.erf(_argument(mu)) * (1.0 - 2.0 * ERF)


def _erfc_upper(mu: float) -> float:
    """Bound erfc(μ/√8) from above."""
    return math.erfc(_argument(mu)) * (1.0 + 2.0 * ERFC) + 1e-300


def _argument(mu: float) -> float:
    # Three roundings of 2**-53, and taken off four.
    return mu / math.sqrt(8.0) * (1.0 - 2.0**-51)


# Masses of cells under a normal law, to a relative error in both tails (Theorem M4). Differences of
# distribution functions are taken on the side where they are small, and only for cells that are
# wide enough not to cancel; a narrow cell is its density times a short series.

REACH = 40.0  # beyond it, in standard deviations, a normal law has less mass than 1e-300
NARROW = 1.0 / 64.0  # largest h²(1 + m²) of a cell m ± h for which the series is used
BLOCK = 2**14  # cells at a time
ROOT_HALF = math.sqrt(0.5)
ROOT_2PI = math.sqrt(2.0 * math.pi)


def cells(edges: FloatArray, mean: float) -> tuple[FloatArray, float]:
    """Return the masses under N(mean, 1) of the cells between ``edges``, and a relative error.

    ``edges`` are increasing doubles (equal neighbours and infinite ends allowed), taken as exact.
    The first and the last mass are those of the tails.
    """
    if edges.size == 0:
        return np.ones(1), 0.0
    z = edges - mean
    mass = np.empty(edges.size + 1)
    mass[[0, -1]] = distribution(np.array([z[0], -z[-1]]))
    error = np.full(edges.size + 1, 0.0)
    error[0], error[-1] = tail_error(z[0]), tail_error(z[-1])
    if edges.size > 1:
        with np.errstate(invalid="ignore"):
            widths = np.diff(edges)
        # Block by block: what is needed on the way is twenty times what is returned.
        for start in range(0, widths.size, BLOCK):
            stop = min(start + BLOCK, widths.size)
            block = slice(start + 1, stop + 1)
            mass[block], error[block] = _between(z[start : stop + 1], widths[start:stop])
    worst = float(error[mass > TINY].max(initial=0.0))
    return mass, worst


def distribution(z: FloatArray) -> FloatArray:
    """Return the standard normal distribution function of an array (docs/theorems.md)."""
    return 0.5 * tools.libm("erfc", z * -ROOT_HALF)


def _between(z: FloatArray, widths: FloatArray) -> tuple[FloatArray, FloatArray]:
    left, right = z[:-1], z[1:]
    with np.errstate(invalid="ignore", over="ignore"):
        half = 0.5 * widths
        middle = left + half
        narrow = half * half * (1.0 + middle * middle) <= NARROW
    if narrow.all():
        return _narrow(middle, half)
    mass = np.empty_like(widths)
    error = np.empty_like(widths)
    mass[narrow], error[narrow] = _narrow(middle[narrow], half[narrow])
    wide = ~narrow
    a, b = left[wide], right[wide]
    # Reflect cells on the right to the left, where distribution functions are small.
    flip = a > 0.0
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    across = high > 0.0
    difference = np.empty_like(low)
    difference[~across] = distribution(high[~across]) - distribution(low[~across])
    # No double is above both: the two add up.
    inner, outer = high[across] * ROOT_HALF, low[across] * ROOT_HALF
    difference[across] = 0.5 * (tools.libm("erf", inner) - tools.libm("erf", outer))
    mass[wide] = np.maximum(difference, 0.0)
    # The larger of the two exceeds the difference by at most a factor 10 on a wide cell.
    inner = np.minimum(np.abs(high), REACH)
    error[wide] = 30.0 * tail_error(inner)
    return mass, error


def _narrow(m: FloatArray, h: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return masses of narrow cells m ± h, h²(1 + m²) <= 1/64, and their relative errors.

    φ(m)·∫ cosh(ms)·e^{-s²/2} ds over |s| <= h; the terms a^j (-b/2)^k / ((2j)! k! (2j + 2k + 1))
    with a = (mh)², b = h² and j + k <= 5 leave 2e-17. The density: |m| is off by two roundings,
    which move -m²/2 by 2m²U, and so does its square. Farther out there is nothing that an error
    could be of.
    """
    near = np.minimum(np.abs(m), 2.0 * REACH)
    total = tools.series((m * h) ** 2, -0.5 * h * h)
    mass = 2.0 * h * np.exp(-0.5 * m * m) / ROOT_2PI * total
    return mass, (64.0 + 8.0 * near * near) * U


def tail_error(z: FloatArray | float) -> FloatArray:
    """Return the relative error of ``distribution`` at z, its argument off by one rounding.

    `erfc` is trusted to 16u. Its argument is off by 3u (z, √½ and their product), and as
    t·erfc'(t)/erfc(t) is at most 2t² + 1 = z² + 1, that moves it by 3(z² + 1)u.
    """
    squared = np.minimum(np.abs(z), REACH) ** 2
    return np.asarray((32.0 + 6.0 * squared) * U)
