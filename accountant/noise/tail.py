"""Decides rare roundings: the normal tail to 100 digits, compared with as many bits as needed."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache

from accountant._core import training

# Thirty digits more than the error claimed: the series below has a few hundred terms.
CONTEXT = Context(prec=150, Emin=-(10**6), Emax=10**6)
ERROR = Fraction(1, 10**100)


def tail_probability(x: Fraction) -> Fraction:
    """Return P{Z > x} for 0 <= x <= 40, with absolute error at most 1e-100.

    Notes
    -----
    *Algorithm.* 1/2 - φ(x) Σ x^{2k+1} / (1·3···(2k+1)), a sum of positive terms.
    """
    at = CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))
    square = CONTEXT.multiply(at, at)
    term = total = at
    k = 1
    while term > Decimal("1e-130"):
        k += 2
        term = CONTEXT.divide(CONTEXT.multiply(term, square), Decimal(k))
        total = CONTEXT.add(total, term)
    density = CONTEXT.divide(
        CONTEXT.exp(CONTEXT.divide(square, Decimal(-2))), CONTEXT.sqrt(_two_pi())
    )
    return Fraction(1, 2) - Fraction(CONTEXT.multiply(density, total))


@cache
def _two_pi() -> Decimal:
    """Return 2π by Machin's formula, in integers scaled by 10¹⁶⁰."""
    unit = 10**160

    def arctan_of_inverse(n: int) -> int:
        power = total = unit // n
        k, sign = 1, 1
        while power:
            power //= n * n
            k += 2
            sign = -sign
            total += sign * (power // k)
        return total

    quarter = 4 * arctan_of_inverse(5) - arctan_of_inverse(239)
    return CONTEXT.divide(Decimal(8 * quarter), Decimal(unit))


def nearest_integer(word: int, scale: float, more: Callable[[], int]) -> float:
    """Return the integer nearest to ``scale · Z`` for the Z that ``word`` begins.

    Parameters
    ----------
    word : int
        64 bits: the lowest is the sign, the other 63 the leading bits of the tail probability of
        ``|Z|``, in (0, 1/2).
    scale : float
        As in :meth:`accountant.noise.SecureGenerator.rounded_normal`.
    more : callable
        Returns 64 further random bits.
    """
    bits, length = word >> 1, 64

    def extend() -> None:
        nonlocal bits, length
        bits, length = (bits << 64) | more(), length + 64

    def inside(boundary: Fraction) -> bool:
        """Tell whether |Z| < boundary, that is, the tail probability is above the boundary's."""
        threshold = tail_probability(boundary)
        while True:
            if Fraction(bits, 2**length) > threshold + ERROR:
                return True
            if Fraction(bits + 1, 2**length) < threshold - ERROR:
                return False
            extend()

    extend()
    while bits == 0:
        extend()
    exact = Fraction(scale)
    half = Fraction(1, 2)
    start = training.normal_tail_quantile(float(Fraction(2 * bits + 1, 2 ** (length + 1))))
    j = round(start * scale)
    while not inside((j + half) / exact):
        j += 1
    while j > 0 and inside((j - half) / exact):
        j -= 1
    return float(-j if word & 1 else j)
