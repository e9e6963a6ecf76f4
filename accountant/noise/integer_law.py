"""Noise on a grid, and discrete noise by tables of exact probabilities."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant.checks import Argument
from accountant.errors import DomainError
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


LARGEST_VARIANCE = 2**28
LARGEST_TABLE = 2**16  # a larger variance is that of a sum
WORD = 64
MARGIN = 4  # units by which a threshold may be off


def skellam(generator: SecureGenerator, n: int, variance: int) -> NDArray[np.int64]:
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
        total += _skellam_part(generator, n, part)
    return total


def _skellam_part(generator: SecureGenerator, n: int, variance: int) -> NDArray[np.int64]:
    reach, ends = _skellam_ends(variance)
    words = generator.words(n)
    place = np.minimum(np.searchsorted(ends, words, side="right"), ends.size - 1)
    out = place.astype(np.int64) - 1 - reach
    margin = np.uint64(MARGIN)
    near = (words - ends[place - 1] <= margin) | (ends[place] - words <= margin)
    for i in np.flatnonzero(near).tolist():
        out[i] = _decided(generator, int(words[i]), variance)
    return out


@lru_cache(maxsize=8)
def _skellam_ends(variance: int) -> tuple[int, NDArray[np.uint64]]:
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


LARGEST_EXACT = 2.0**52


@dataclass(frozen=True)
class Grid:
    """The multiples of ``step``, a power of two, and the noise that is added on them.

    Attributes
    ----------
    step : float
        A power of two, so that dividing and multiplying by it is exact.

    Notes
    -----
    *Guarantee.* :meth:`release_gaussian` is a function of ``round(value) + N(0, sd²)``, the
    Gaussian mechanism on the rounded value: post-processing, so that every account of the
    continuous Gaussian mechanism applies, at the sensitivity of the *rounded* value. No float
    rounding of value or noise is outside it (docs/theorems_training.md, Theorem T5).

    Examples
    --------
    >>> Grid.at_most(0.3).step
    0.25
    """

    step: float

    def __post_init__(self) -> None:
        if not (self.step > 0.0 and math.isfinite(self.step)) or math.frexp(self.step)[0] != 0.5:
            raise DomainError(f"step must be a power of two; got {self.step!r}")

    @classmethod
    def at_most(cls, step: float) -> Grid:
        """Return the coarsest grid whose step is at most ``step``."""
        if not (step >= 2.0**-1000 and math.isfinite(step)):
            raise DomainError(f"step must be in [2**-1000, inf); got {step!r}")
        return cls(math.ldexp(0.5, math.frexp(step)[1]))

    def require_range(self, largest: float) -> None:
        """Refuse a grid on which values up to ``largest`` would not be exact float64 multiples."""
        if not (largest / self.step <= LARGEST_EXACT):
            raise DomainError(
                f"values up to {largest:g} do not fit the grid of step {self.step:g} exactly;"
                " use a smaller batch or more noise"
            )

    def round(self, value: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``value / step`` rounded to integers, as float64."""
        scaled = value * (1.0 / self.step)
        return np.rint(scaled, out=scaled)

    def release_gaussian(
        self, value: NDArray[np.float64], standard_deviation: float, generator: SecureGenerator
    ) -> NDArray[np.float64]:
        """Return ``value`` on the grid plus Gaussian noise rounded to the grid."""
        released = self.round(value)
        released += generator.rounded_normal(value.size, standard_deviation / self.step)
        released *= self.step
        return released

    def release_discrete_gaussian(
        self, value: NDArray[np.float64], scale: int, generator: SecureGenerator
    ) -> NDArray[np.float64]:
        """Return ``value`` on the grid plus discrete Gaussian noise of ``scale`` steps."""
        released = self.round(value)
        released += generator.discrete_gaussian(value.size, scale)
        released *= self.step
        return released
