"""The mean excess of a sum of few terms: a finite sum over how often each value occurs.

docs/theorems_shuffling.md, Theorem H3.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accountant._rounding import U
from accountant._typing import FloatArray

# Terms, and numbers of values in all their multisets, that are looked at: a contour costs as much.
MOST_TERMS, MOST_NUMBERS = 512, 2**20
# What probabilities that underflow may be off by, all together.
LOST = 1e-300


class Multisets(NamedTuple):
    """How often each value occurs, and the probability of that."""

    numbers: FloatArray
    chances: FloatArray
    slip: float  # the chances' relative error


def are_few(values: int, count: int) -> bool:
    """Tell whether ``count`` terms of so many values have few multisets of values."""
    return count <= MOST_TERMS and values * math.comb(count + values - 1, count) <= MOST_NUMBERS


def excess_of_few(values: FloatArray, masses: FloatArray, count: int) -> tuple[float, float]:
    """Bracket E(Z₁ + … + Z_count)₊, to within the masses' own errors."""
    every = multisets(tuple(masses.tolist()), count)
    sums = every.numbers @ values
    off = (values.size + 4.0) * U * (every.numbers @ np.abs(values))
    slip = every.slip + (sums.size + 16.0) * U
    low = float(every.chances @ np.maximum(sums - off, 0.0)) * (1.0 - slip)
    high = float(every.chances @ np.maximum(sums + off, 0.0)) * (1.0 + slip)
    return max(low - LOST, 0.0), high + LOST * count * float(np.abs(values).max())


@lru_cache(maxsize=4)
def multisets(masses: tuple[float, ...], count: int) -> Multisets:
    """Return all multisets of ``count`` values with these masses."""
    factorials = [math.log(math.factorial(k)) for k in range(count + 1)]
    numbers = _numbers(len(masses), count)
    logs = np.log(np.array(masses))
    exponents = factorials[-1] - np.array(factorials)[numbers].sum(axis=1) + numbers @ logs
    # Of logarithms, their products and sums: a few units of their sizes.
    size = 1.0 + 2.0 * factorials[-1] + count * float(np.abs(logs).max())
    slip = (8.0 * len(masses) + 16.0) * U * size
    return Multisets(numbers.astype(np.float64), np.exp(exponents), slip)


def _numbers(values: int, count: int) -> NDArray[np.int64]:
    """Return every way to write ``count`` as a sum of so many numbers, one a row."""
    rows, rest = np.zeros((1, 0), np.int64), np.array([count])
    for _ in range(values - 1):
        last = np.cumsum(rest + 1)
        following = np.arange(int(last[-1])) - np.repeat(last - rest - 1, rest + 1)
        rows = np.column_stack([np.repeat(rows, rest + 1, axis=0), following])
        rest = np.repeat(rest, rest + 1) - following
    return np.column_stack([rows, rest])
