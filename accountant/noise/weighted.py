"""The draw of the exponential mechanism: an index with weight width · exp(-rate · score), exactly.

One 64-bit word has the first digits of a uniform number. Integer sums of float weights, with a
bound on their error, decide its index. For a word too close to a boundary, further digits are drawn
and compared with sums in decimal arithmetic of increasing precision.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from itertools import accumulate, repeat

import numpy as np
from numpy.typing import NDArray

from accountant.errors import DomainError
from accountant.noise.generator import SecureGenerator

# A float weight exp(-e) is off by at most this times 1 + e: three roundings of e, a few of exp.
ROUGH = 2.0**-46
UNITS = 2.0**60  # what the weights are scaled to, before they become integers
NOTHING = 10**6  # e^-NOTHING is below every unit of a comparison


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
    more = _words(generator)
    word = more()
    with np.errstate(over="ignore"):  # an exponent beyond the doubles has weight 0
        exponents = offsets.astype(np.float64) * float(rate)
    chosen = _by_floats(word, exponents, weights)
    if chosen is None:
        exact = [int(offset) * rate for offset in offsets.tolist()]
        chosen = _by_digits(word, exact, weights.tolist(), more)
    return int(kept[chosen])


def _words(generator: SecureGenerator) -> Callable[[], int]:
    return lambda: int(generator.words(1)[0])


def _by_floats(word: int, exponents: NDArray[np.float64], widths: NDArray[np.int64]) -> int | None:
    """Return the index that ``word`` decides, or None when it is too near to a boundary."""
    with np.errstate(under="ignore"):
        weights = widths * np.exp(-exponents)
        units = (weights * (UNITS / weights.sum())).astype(np.int64)
    ends = np.cumsum(units)
    # Every weight, in units: cut off by less than one, and off by ROUGH (1 + e) relative.
    blur = float((units + 1.0) @ (1.0 + np.minimum(exponents, 800.0)))
    error = int(2.0 * ROUGH * blur) + 2 * units.size
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
    negative = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    return width * int(Fraction(context.exp(negative.copy_negate())) * 10**context.prec)


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
