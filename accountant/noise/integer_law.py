"""Discrete Gaussian and discrete Laplace noise of any scale, by a table of exact probabilities."""

from __future__ import annotations

from bisect import bisect_right
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant.checks import Argument
from accountant.noise.generator import SecureGenerator

# Binary digits of the probabilities, a hundred decimal ones and more, and of what computes them.
DIGITS = 384
WORKING = DIGITS + 96
# The scale up to which a table has less than a million entries: masses below 2^-384 are left out
# from 23.1 σ and 266 b on.
LARGEST_SIGMA = 2.0**15
LARGEST_LAPLACE_SCALE = 2.0**11


def discrete_gaussian(generator: SecureGenerator, n: int, sigma: float) -> NDArray[np.int64]:
    """Return ``n`` integers x with probabilities proportional to exp(-x²/2σ²).

    Parameters
    ----------
    generator : SecureGenerator
        Where the bits come from.
    n : int
        How many, >= 0.
    sigma : float
        In [2**-10, 2**15].

    Notes
    -----
    *Guarantee.* Exact to 100 digits: a uniform number is compared with the cumulative
    probabilities, by its first 64 bits and, where these leave it open, by 384
    (docs/theorems_statistics.md, Theorem N16).
    """
    return _drawn(generator, n, _gaussian_table(checks.number(_scale(LARGEST_SIGMA), sigma)))


def discrete_laplace(generator: SecureGenerator, n: int, scale: float) -> NDArray[np.int64]:
    """Return ``n`` integers x with probabilities proportional to exp(-abs(x)/scale).

    Parameters
    ----------
    generator, n
        As in :func:`discrete_gaussian`.
    scale : float
        In [2**-10, 2**11].

    Notes
    -----
    *Guarantee.* As in :func:`discrete_gaussian`.
    """
    return _drawn(generator, n, _laplace_table(checks.number(_scale(LARGEST_LAPLACE_SCALE), scale)))


def _scale(largest: float) -> Argument:
    return Argument(
        "scale",
        f"a number in [2**-10, {largest:g}], the noise that is drawn",
        lambda x: (x >= 2.0**-10) & (x <= largest),
        "Count in coarser units, or in finer ones",
    )


@lru_cache(maxsize=8)
def _gaussian_table(sigma: float) -> tuple[list[int], NDArray[np.uint64]]:
    rate = 1 / Fraction(sigma) ** 2
    # exp(-x²/2σ²) is the one before times exp(-(2x-1)/2σ²), which falls by exp(-1/σ²) each time.
    return _table(_exponential(rate / 2), _exponential(rate))


@lru_cache(maxsize=8)
def _laplace_table(scale: float) -> tuple[list[int], NDArray[np.uint64]]:
    return _table(_exponential(1 / Fraction(scale)), 1 << WORKING)


def _exponential(exponent: Fraction) -> int:
    """Return exp(-exponent)·2^WORKING, rounded down."""
    context = Context(prec=WORKING // 3, Emin=-(10**9), Emax=10**9)
    quotient = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    # A minus sign would round to the digits of the current context.
    found = context.exp(quotient.copy_negate()) if exponent < 10**6 else Decimal(0)
    return int(Fraction(found) * 2**WORKING)


def _table(first: int, change: int) -> tuple[list[int], NDArray[np.uint64]]:
    """Return Pr[abs(x) <= j]·2^DIGITS for all j of more than no mass, and their first 64 bits."""
    weight, factor, total = 2 << WORKING, first, 1 << WORKING
    sums = [total]
    while True:
        weight = weight * factor >> WORKING
        factor = factor * change >> WORKING
        if not weight >> (WORKING - DIGITS):
            break
        total += weight
        sums.append(total)
    table = [(each << DIGITS) // total for each in sums[:-1]]
    first_bits = np.array([each >> (DIGITS - 64) for each in table], dtype=np.uint64)
    return table, first_bits


def _drawn(
    generator: SecureGenerator, n: int, law: tuple[list[int], NDArray[np.uint64]]
) -> NDArray[np.int64]:
    table, first_bits = law
    words = generator.words(n)
    found = first_bits.searchsorted(words, side="left")
    # A word that begins a probability leaves open on which side of it the number is.
    after = first_bits.searchsorted(words, side="right")
    for i in np.flatnonzero(found != after).tolist():
        more = generator.words(DIGITS // 64 - 1).tolist()
        number = int(words[i])
        for word in more:
            number = number << 64 | int(word)
        found[i] = bisect_right(table, number)
    sizes = found.astype(np.int64)
    signs = generator.words(-(-n // 64)).view(np.uint8)
    return np.where(np.unpackbits(signs, count=n).astype(bool), -sizes, sizes)
