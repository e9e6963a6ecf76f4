"""Expectations of a value after packets, at every knot of a lattice, by products of matrices.

The recursion of Theorem L13 sums the products of a value with each law at some thousand knots, for
some hundred capacities. Knots are taken 64 at a time: their windows are the rows of one matrix, and
each law, shifted by 0 to 63 knots, is 64 columns of another. One product then serves all
laws of packets that cost the same, several times as fast as sums for one law after another.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.analyses.adaptive_counts.law import Law, total

# Knots in a row.
_TOGETHER = 64


class Offer:
    """Packets that cost the same, on a lattice of ``knots`` knots.

    Parameters
    ----------
    laws : sequence of Law
        Of one packet each.
    knots : int
        Length of the values.
    """

    def __init__(self, laws: Sequence[Law], knots: int) -> None:
        self._first = min(law.first for law in laws)
        last = max(law.first + len(law.masses) for law in laws) - 1
        # From every knot, what is gained by ``knots`` or more leads beyond the lattice.
        taps = max(min(last, knots) - self._first + 1, 1)
        self._width = _TOGETHER + taps - 1
        self._laws = np.zeros((self._width, len(laws), _TOGETHER))
        self._infinite = np.zeros(len(laws))
        for k, law in enumerate(laws):
            start = law.first - self._first
            kept = law.masses[: max(taps - start, 0)]
            for j in range(_TOGETHER if len(kept) else 0):
                self._laws[start + j : start + j + len(kept), k, j] = kept
            lost = total(law.masses[len(kept) :])
            self._infinite[k] = (law.infinite + lost) * (1.0 + 2.0 * U)

    def best(self, value: FloatArray, tiny: float = 0.0) -> FloatArray:
        """Return the largest expectation of a value after one of the packets, rounded up.

        Below the lattice the value is at most what it is at its end, above it at most 1. The value
        does not decrease. From knots where it rises by at most ``tiny``, whatever the packet
        brings, the expectation is taken from the next row above: it does not decrease either.
        """
        rows = -(-len(value) // _TOGETHER)
        rises = int(np.searchsorted(value, value[0] + tiny, "right"))
        skipped = min(max(rises - self._first - self._width, 0) // _TOGETHER, rows - 1)
        below = max(0, -self._first)
        start = self._first + below
        length = max(start + rows * _TOGETHER + self._width, below + len(value))
        seen = np.ones(length)
        seen[:below] = value[0]
        seen[below : below + len(value)] = value
        first = start + skipped * _TOGETHER
        windows = np.lib.stride_tricks.as_strided(
            seen[first:], (rows - skipped, self._width), (_TOGETHER * seen.itemsize, seen.itemsize)
        )
        # NumPy before 2.3 multiplies what overlaps by itself, fifty times as slowly.
        picked = np.ascontiguousarray(windows)
        found = picked @ self._laws.reshape(self._width, -1)
        found = found.reshape(rows - skipped, -1, _TOGETHER) + self._infinite[:, np.newaxis]
        # Sums of products that are not negative: their rounding is relative, but for underflow. The
        # threads of a matrix product may round in another direction, which doubles it.
        raised = found.max(axis=1).reshape(-1) * (1.0 + (2 * self._width + 32) * U) + 2.0**-1040
        everywhere = np.full(rows * _TOGETHER, raised[0])
        everywhere[skipped * _TOGETHER :] = raised
        return everywhere[: len(value)]
