"""Binary trees (Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accountant.bounds import Bounds
from accountant.environment import to_nearest
from accountant.matrix.strategy import Participation, Strategy, TreeStream
from accountant.matrix.toeplitz import as_steps


@dataclass(frozen=True, repr=False)
class BinaryTree(Strategy):
    """Binary tree aggregation, of the nodes that prefix sums are decoded from.

    Row t of C adds up the last 2^v steps until t (counted from 1), 2^v the largest power of two
    that divides t. Those are the left children of the tree; a right child is part of no prefix, and
    is not released.

    Parameters
    ----------
    steps : int
        Number of steps T.

    Notes
    -----
    A prefix sum is the sum of at most log₂ T + 1 nodes. Estimates that use more nodes (Honaker
    2015) have less noise and need all of them.

    Examples
    --------
    >>> from accountant.matrix import BinaryTree
    >>> BinaryTree(8).sensitivity_bounds().upper  # steps 1, 2, 4 and 8
    2.0
    """

    steps: int

    @to_nearest
    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", as_steps(self.steps))

    @property
    def bands(self) -> int:
        """The size of the largest node."""
        return 1 << (self.steps.bit_length() - 1)

    def stream(self, size: int, *, whole: bool = False) -> TreeStream:
        """Return the stream of noise, which keeps one vector a level."""
        return TreeStream(size, self.steps, whole=whole)

    @to_nearest
    def rms_error_bounds(self) -> Bounds:
        """Bracket the root mean square error of the prefix sums, for noise of deviation one."""
        return _root(_ones(self.steps), self.steps)

    @to_nearest
    def max_error_bounds(self) -> Bounds:
        """Bracket the error of the prefix sum with most nodes, for noise of deviation one."""
        count = self.steps.bit_length()
        # All ones below the top bit, or one bit less than that many.
        return _root(count if self.steps + 1 == 1 << count else max(count - 1, 1), 1)

    def _sensitivity(self, participation: Participation) -> tuple[float, float]:
        separation, most, cyclic = participation
        if most == 1:
            square = self.steps.bit_length()
            return _ends(square, square)
        attained = self._cyclic(separation, most)
        return _ends(attained, attained if cyclic else self._largest(separation, most))

    def _cyclic(self, separation: int, most: int) -> int:
        """Return the largest Σ over nodes of (participations)², over all offsets."""
        offsets = min(separation, self.steps)
        total = np.zeros(offsets, dtype=np.int64)
        for level in range(self.steps.bit_length()):
            total += _level(self.steps, level, separation, most, offsets)
        return int(total.max())

    def _largest(self, separation: int, most: int) -> int:
        """Bound Σ over nodes of (participations)², every level at its best (Theorem X2)."""
        total = 0
        for level in range(self.steps.bit_length()):
            nodes = ((self.steps >> level) + 1) // 2
            full = min(most, -(-(1 << level) // separation))
            used = min(most, nodes * full)
            total += used // full * full**2 + (used % full) ** 2
        return total

    def _noise_growth(self) -> float:
        return math.sqrt(self.steps.bit_length()) * (1.0 + 1e-15)

    def _drift(self, scale: float, participation: Participation | None) -> float:
        return 0.0  # sums of integers are exact


def _level(steps: int, level: int, separation: int, most: int, offsets: int) -> np.ndarray:
    """Return, for every offset, Σ over the nodes of one level of (participations)²."""
    starts = np.arange(offsets, dtype=np.int64)
    times = np.arange(most, dtype=np.int64) * separation
    found = np.zeros(offsets, dtype=np.int64)
    rows = max(1, 2**20 // most)
    limit = (steps >> level) << level  # later nodes are not complete
    for begin in range(0, offsets, rows):
        at = starts[begin : begin + rows, None] + times
        node = at >> level
        kept = (at < limit) & (node & 1 == 0)
        blocks = int(node.max()) + 1
        # Neighbouring participations share a node, so nodes are runs.
        key = np.where(kept, node + blocks * np.arange(at.shape[0])[:, None], -1).ravel()
        values, counts = np.unique(key, return_counts=True)
        held = values >= 0
        squares = counts[held].astype(np.int64) ** 2
        found[begin : begin + rows] += np.bincount(
            values[held] // blocks, weights=squares, minlength=at.shape[0]
        ).astype(np.int64)
    return found


def _ones(steps: int) -> int:
    """Return the number of ones in the binary digits of 1 … steps."""
    total = 0
    for bit in range(steps.bit_length()):
        block = 1 << (bit + 1)
        total += (steps + 1) // block * (block // 2) + max((steps + 1) % block - block // 2, 0)
    return total


def _ends(low: int, high: int) -> tuple[float, float]:
    return float(_root(low, 1).lower), float(_root(high, 1).upper)


def _root(numerator: int, denominator: int) -> Bounds:
    """Bracket the root of a fraction, exactly where it is a double."""
    value = math.sqrt(numerator / denominator)
    if value.is_integer() and int(value) ** 2 * denominator == numerator:
        return Bounds(value, value)
    low = math.nextafter(math.nextafter(value, 0.0), 0.0)
    return Bounds(low, math.nextafter(math.nextafter(value, math.inf), math.inf))
