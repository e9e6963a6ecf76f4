"""Exact selection noise: coins of probability e^-x, rounded Laplace noise, uniform indices.

Indices with exponential weights are in :mod:`accountant.noise.weighted`.

A 64-bit word has the first binary digits of a uniform number. Usually floats with error bounds
decide the result. For the rare word that they do not decide, further digits are drawn and compared
in decimal arithmetic of increasing precision.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

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


IntArray: TypeAlias = "NDArray[np.int64]"

LARGEST_VARIANCE = 2**28
LARGEST_TABLE = 2**16  # a larger variance is that of a sum
WORD = 64
MARGIN = 4  # units by which a threshold may be off


def skellam(generator: SecureGenerator, n: int, variance: int) -> IntArray:
    """Return ``n`` differences of two Poisson counts of mean ``variance / 2``.

    Parameters
    ----------
    generator : SecureGenerator
        Where the bits come from: a word for each 2**16 of the variance, and each number.
    n : int
        At least 0.
    variance : int
        In [1, 2**28].

    Notes
    -----
    *Guarantee.* Exact in law: a word that does not decide the integer, next to a table of 64 bits,
    is extended by further words, and the table by as many bits.

    Examples
    --------
    >>> from accountant.noise import SecureGenerator
    >>> skellam(SecureGenerator(), 3, 100).shape
    (3,)
    """
    checks.integer("variance", variance, 1, LARGEST_VARIANCE, advice="Use fewer levels")
    parts, rest = divmod(int(variance), LARGEST_TABLE)
    total = np.zeros(n, np.int64)
    for part in [LARGEST_TABLE] * parts + [rest] * bool(rest):
        total += _drawn(generator, n, part)
    return total


def _drawn(generator: SecureGenerator, n: int, variance: int) -> IntArray:
    reach, ends = _table(variance)
    words = generator.words(n)
    place = np.minimum(np.searchsorted(ends, words, side="right"), ends.size - 1)
    out = place.astype(np.int64) - 1 - reach
    margin = np.uint64(MARGIN)
    near = (words - ends[place - 1] <= margin) | (ends[place] - words <= margin)
    for i in np.flatnonzero(near).tolist():
        out[i] = _decided(generator, int(words[i]), variance)
    return out


@lru_cache(maxsize=8)
def _table(variance: int) -> tuple[int, NDArray[np.uint64]]:
    reach, known = thresholds(variance, WORD)
    # The ends are open: what lies there is decided by more bits.
    return reach, np.array([0, *known, 2**WORD - 1], dtype=np.uint64)


def _decided(generator: SecureGenerator, word: int, variance: int) -> int:
    """Draw further bits of a uniform number until they decide the integer."""
    bits = WORD
    while True:
        word, bits = word << WORD | int(generator.words(1)[0]), bits + WORD
        reach, known = thresholds(variance, bits)
        place = bisect_right(known, word)
        below = known[place - 1] if place else 0
        above = known[place] if place < len(known) else 1 << bits
        if word - below > MARGIN and above - word > MARGIN:
            return place - reach


@lru_cache(maxsize=16)
def thresholds(variance: int, bits: int) -> tuple[int, tuple[int, ...]]:
    """Return an integer K, and 2**bits P{X <= k} for k = -K … K - 1, off by less than 4.

    Beyond K less than 2**-bits is left. Masses obey P{k - 1} = P{k + 1} + (2 k / variance) P{k};
    from far outside inwards an error of the start is forgotten (Theorem M21).
    """
    reach = 1
    while _log_tail(variance, reach) > -(bits + 8) * math.log(2.0):
        reach += 1 + reach // 64
    guard = bits + 64
    outer, inner = 0, 1 << guard
    masses = [0] * (reach + 1)
    for k in range(2 * reach + 64, 0, -1):
        outer, inner = inner, outer + 2 * k * inner // variance
        if k - 1 <= reach:
            masses[k - 1] = inner
    total = masses[0] + 2 * sum(masses[1:])
    found, below = [], 0
    for k in range(-reach, reach):
        below += masses[abs(k)]
        found.append((below << bits) // total)
    return reach, tuple(found)


def _log_tail(variance: float, k: float) -> float:
    """Bound log P{X >= k} (Chernoff)."""
    ratio = k / variance
    return k * (ratio / (1.0 + math.hypot(1.0, ratio))) - k * math.asinh(ratio)
