"""Skellam noise: exact, from tables of its distribution function."""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant.noise.generator import SecureGenerator

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
