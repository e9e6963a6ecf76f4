"""Exact selection noise: coins of probability e^-x, rounded Laplace noise, uniform indices.

Indices with exponential weights are in :mod:`accountant.noise.weighted`.

A 64-bit word has the first binary digits of a uniform number. Usually floats with error bounds
decide the result. For the rare word that they do not decide, further digits are drawn and compared
in decimal arithmetic of increasing precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._typing import FloatArray
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
