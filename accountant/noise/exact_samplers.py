"""Exact selection noise: coins, Laplace noise, uniform and exponentially weighted indices.

A 64-bit word has the first binary digits of a uniform number. Usually floats with error bounds
decide the result. For the rare word that they do not decide, further digits are drawn and compared
in decimal arithmetic of increasing precision.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from itertools import accumulate, repeat

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant.errors import DomainError
from accountant.noise.generator import GRID_SCALE, SecureGenerator

FULL = 2.0**64
# Assumed relative error of float exponents, logarithms and exponentials; far above the true one.
ROUGH = 1e-11


def bernoulli_exp(generator: SecureGenerator, exponents: Sequence[Fraction]) -> NDArray[np.bool_]:
    """Return independent coins, the i-th true with probability exp(-exponents[i]).

    Parameters
    ----------
    generator : SecureGenerator
        Where the bits come from.
    exponents : sequence of Fraction
        Exact, >= 0.

    Notes
    -----
    *Guarantee.* Exact in law (docs/theorems_selection.md, Theorem P1).
    """
    # Compared as fractions, because one beyond the range of doubles would raise.
    rough = np.array([float(x) if x < 800 else 800.0 for x in exponents])
    if not (rough >= 0.0).all():
        raise DomainError("exponents must be >= 0")
    words = generator.words(rough.size)
    uniform = words.astype(np.float64) / FULL
    chance = np.exp(-rough)
    gap = uniform - chance
    coins = np.asarray(gap < 0.0)
    open_ends = np.abs(gap) <= chance * (ROUGH * (1.0 + rough)) + 2.0**-50
    for i in np.flatnonzero(open_ends).tolist():
        coins[i] = exponents[i] == 0 or _is_below_exp(
            int(words[i]), exponents[i], lambda: int(generator.words(1)[0])
        )
    return coins


def rounded_laplace(generator: SecureGenerator, n: int, scale: float) -> FloatArray:
    """Return ``n`` integers (as float64): Laplace variables of ``scale``, rounded.

    Notes
    -----
    *Guarantee.* Exact in law: the sign of one bit, and floor(scale·E + 1/2) of a standard
    exponential E (Theorem P1). Added to a value on the grid, it is the Laplace mechanism followed
    by rounding.
    """
    checks.number(GRID_SCALE, scale)
    words = generator.words(n)
    negative = (words & np.uint64(1)).astype(bool)
    # 63 bits left: U in [bits, bits + 1) / 2**63.
    bits = words >> np.uint64(1)
    middle = -scale * np.log((bits.astype(np.float64) + 0.5) / 2.0**63) + 0.5
    # One step of the word moves log U by 1/bits.
    blur = scale / np.maximum(bits.astype(np.float64), 0.5) + ROUGH * (1.0 + middle + scale)
    magnitude = np.floor(middle)
    open_ends = (np.floor(middle - blur) != magnitude) | (np.floor(middle + blur) != magnitude)
    open_ends |= bits == 0  # the unbounded tail
    for i in np.flatnonzero(open_ends).tolist():
        magnitude[i] = _floor_of(int(bits[i]), scale, lambda: int(generator.words(1)[0]))
    return np.where(negative, -magnitude, magnitude)


def uniform_below(generator: SecureGenerator, bound: int) -> int:
    """Return a uniform integer in [0, bound), exactly."""
    return int(uniform_index(generator, bound, 1)[0])


def uniform_index(generator: SecureGenerator, bound: int, n: int) -> NDArray[np.int64]:
    """Return ``n`` independent uniform integers in [0, bound), exactly."""
    if not (1 <= bound <= 2**63):
        raise DomainError(f"bound must be in [1, 2**63]; got {bound!r}")
    limit = 2**64 // bound * bound
    kept = np.empty(0, np.uint64)
    while kept.size < n:
        words = generator.words(n - kept.size + 8)
        if limit < 2**64:
            words = words[words < np.uint64(limit)]
        kept = np.concatenate([kept, words])
    return (kept[:n] % np.uint64(bound)).astype(np.int64)


def _is_below_exp(word: int, exponent: Fraction, more: Callable[[], int]) -> bool:
    """Tell whether the uniform number that begins with ``word`` is below exp(-exponent)."""
    bits, length = word, 64
    while True:
        bits, length = (bits << 64) | more(), length + 64
        context = Context(prec=20 + length // 3)
        value = _decimal(exponent, context)
        # Quotient and exponential are correctly rounded; a unit of the argument moves the result
        # by its size, at most 10^4 here.
        # A minus sign would round to the digits of the current context.
        chance = Fraction(context.exp(value.copy_negate()))
        slack = chance * Fraction(10) ** (8 - context.prec) * (1 + int(exponent))
        if Fraction(bits + 1, 2**length) <= chance - slack:
            return True
        if Fraction(bits, 2**length) >= chance + slack:
            return False


def _floor_of(bits: int, scale: float, more: Callable[[], int]) -> float:
    """Return floor(1/2 - scale·log U) for the U that begins with 63 ``bits``."""
    length = 63
    exact = Fraction(scale)
    while True:
        bits, length = (bits << 64) | more(), length + 64
        context = Context(prec=30 + length // 3)
        slack = Fraction(10) ** (8 - context.prec) * exact * length
        largest = None
        if bits > 0:
            log = Fraction(context.ln(_decimal(Fraction(bits, 2**length), context)))
            largest = Fraction(1, 2) - exact * log + slack
        log = Fraction(context.ln(_decimal(Fraction(bits + 1, 2**length), context)))
        least = Fraction(1, 2) - exact * log - slack
        if largest is not None and largest // 1 == least // 1:
            return float(least // 1)


def _decimal(value: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def discrete_laplace(scale: int, below: Callable[[int], int]) -> int:
    """Return an integer j with probability proportional to ``exp(-|j| / scale)``.

    Parameters
    ----------
    scale : int
        At least 1.
    below : callable
        ``below(n)`` returns a uniform integer in [0, n).

    Notes
    -----
    *Guarantee.* Exact: Canonne, Kamath and Steinke (2020), Algorithms 1 and 2.
    """

    def happens(numerator: int, denominator: int) -> bool:
        """Bernoulli(exp(-x)) for x = numerator / denominator in [0, 1]."""
        k = 1
        while below(k) == 0 and below(denominator) < numerator:
            k += 1
        return k % 2 == 1

    while True:
        size = below(scale)
        if not happens(size, scale):
            continue
        while happens(1, 1):
            size += scale
        negative = below(2) == 1
        if negative and size == 0:
            continue  # zero is counted once
        return -size if negative else size


# A float weight exp(-e) is off by at most this times 1 + e: three roundings of e, a few of exp.
WEIGHT_ERROR = 2.0**-46
# What the weights are scaled to, before they become integers.
UNITS = 2.0**60
# e^-NOTHING is below every unit of a comparison.
NOTHING = 10**6


def weighted_index(
    generator: SecureGenerator,
    scores: NDArray[np.int64],
    rate: Fraction,
    widths: NDArray[np.int64] | None = None,
) -> int:
    """Return i with probability proportional to ``widths[i] · exp(-rate · scores[i])``.

    Parameters
    ----------
    generator : SecureGenerator
        Where the bits come from.
    scores : array of int64, shape (k,)
        Less than 2**62 apart.
    rate : Fraction
        Exact, >= 0.
    widths : array of int64, shape (k,), optional
        In [0, 2**53], with a positive sum; all one if left out.

    Notes
    -----
    *Guarantee.* Exact in law (docs/theorems_selection.md, Theorem P1).
    """
    sizes = np.ones(len(scores), np.int64) if widths is None else widths
    kept = np.flatnonzero(sizes > 0)
    if not (kept.size and (sizes >= 0).all() and rate >= 0):
        raise DomainError("widths must be >= 0, with a positive sum, and rate >= 0")
    weights, offsets = sizes[kept], scores[kept] - scores[kept].min()

    def more() -> int:
        return int(generator.words(1)[0])

    word = more()
    with np.errstate(over="ignore"):  # an exponent beyond the doubles has weight 0
        exponents = offsets.astype(np.float64) * float(rate)
    chosen = _by_floats(word, exponents, weights)
    if chosen is None:
        exact = [int(offset) * rate for offset in offsets.tolist()]
        chosen = _by_digits(word, exact, weights.tolist(), more)
    return int(kept[chosen])


def _by_floats(word: int, exponents: NDArray[np.float64], widths: NDArray[np.int64]) -> int | None:
    """Return the index that ``word`` decides, or None when it is too near to a boundary."""
    with np.errstate(under="ignore"):
        weights = widths * np.exp(-exponents)
        units = (weights * (UNITS / weights.sum())).astype(np.int64)
    ends = np.cumsum(units)
    # Every weight, in units: cut off by less than one, and off by WEIGHT_ERROR (1 + e).
    blur = float((units + 1.0) @ (1.0 + np.minimum(exponents, 800.0)))
    error = int(2.0 * WEIGHT_ERROR * blur) + 2 * units.size
    return _place(word, 64, ends.tolist(), error)


def _by_digits(
    word: int, exponents: Sequence[Fraction], widths: Sequence[int], more: Callable[[], int]
) -> int:
    """Decide with as many digits as needed."""
    bits, length = word, 64
    while True:
        bits, length = (bits << 64) | more(), length + 64
        digits = 20 + length // 3
        context = Context(prec=digits)
        ends = list(accumulate(map(_in_units, exponents, widths, repeat(context))))
        # Rounding x moves e^-x by at most 5 x e^-x < 2 units, rounding that by 5, and the integer
        # part cuts off less than one more.
        chosen = _place(bits, length, ends, 10 * sum(widths))
        if chosen is not None:
            return chosen


def _in_units(exponent: Fraction, width: int, context: Context) -> int:
    """Return ``width · exp(-exponent)`` in units of the context's last digit."""
    if exponent > NOTHING:
        return 0
    # The sign is copied, because a minus sign would round to the digits of the current context.
    negative = _decimal(exponent, context).copy_negate()
    return width * int(Fraction(context.exp(negative)) * 10**context.prec)


def _place(bits: int, length: int, ends: list[int], error: int) -> int | None:
    """Return the index of a uniform number with the first digits ``bits``, or None if undecided.

    ``error`` bounds the error of every one of the cumulative sums ``ends``.
    """
    least = bits * max(ends[-1] - error, 0) >> length
    largest = ((bits + 1) * (ends[-1] + error) >> length) + 1
    found = bisect_right(ends, least - error)
    # The end before is cleared by the choice of `found`; nothing lies beyond the last one.
    decided = found == len(ends) - 1 or (found < len(ends) and largest <= ends[found] - error)
    return found if decided else None
