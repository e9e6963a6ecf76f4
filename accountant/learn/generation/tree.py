"""Converts noisy marginals to a distribution: consistency, and sampling from a tree.

Everything here is post-processing of noisy counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import FloatArray

Edge: TypeAlias = tuple[int, int]
ROUNDS = 100  # Rounds of proportional fitting, at most.
TOLERANCE = 1e-9  # It ends where no margin is off by more.


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy counts of a marginal: of one column, or of two.

    Attributes
    ----------
    columns : tuple of int
        One or two positions, increasing.
    counts : ndarray
        Of shape (size,) or (size, size).
    deviation : float
        Standard deviation of the noise on every count.
    """

    columns: tuple[int, ...]
    counts: FloatArray
    deviation: float


@dataclass(frozen=True, eq=False)
class TreeModel:
    """A distribution whose columns depend on each other along a forest.

    Attributes
    ----------
    total : float
        The estimated number of records.
    singles : tuple of ndarray
        The distribution of every column.
    pairs : mapping of (int, int) to ndarray
        Joint distributions along the edges, consistent with ``singles``.
    """

    total: float
    singles: tuple[FloatArray, ...]
    pairs: Mapping[Edge, FloatArray]

    def sample(self, n: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw ``n`` rows of positions, shape (n, columns)."""
        out = np.full((n, len(self.singles)), -1, np.int64)
        for child, parent in walk(len(self.singles), list(self.pairs)):
            if parent is None:
                law = np.broadcast_to(self.singles[child], (1, self.singles[child].size))
                rows = np.zeros(n, np.int64)
            else:
                low, high = min(child, parent), max(child, parent)
                joint = self.pairs[low, high]
                law = joint if parent == low else joint.T
                rows = out[:, parent]
            out[:, child] = _draw(law, rows, generator)
        return out


def fit_tree(sizes: Sequence[int], measurements: Sequence[Measurement]) -> TreeModel:
    """Return consistent distributions from noisy marginals whose pairs form a forest.

    Every column's distribution is the mean of all estimates of it, weighted by their variances, on
    the simplex; every pair is the noisy table, on the simplex, fitted to those proportionally.
    """
    total = max(_total(measurements), 1.0)
    singles = tuple(_single(i, size, measurements, total) for i, size in enumerate(sizes))
    pairs: dict[Edge, FloatArray] = {}
    for found in measurements:
        if len(found.columns) == 2:
            low, high = found.columns
            pairs[low, high] = _fitted(found.counts / total, singles[low], singles[high])
    return TreeModel(total, singles, pairs)


def on_simplex(values: FloatArray) -> FloatArray:
    """Return the nearest distribution, in Euclidean distance, of the same shape."""
    flat = np.sort(values.ravel())[::-1]
    sums = np.cumsum(flat) - 1.0
    count = int(np.count_nonzero(flat * np.arange(1, flat.size + 1) > sums))
    shift = sums[max(count, 1) - 1] / max(count, 1)
    found = np.maximum(values - shift, 0.0)
    return np.asarray(found / found.sum())


def joined(component: NDArray[np.int64], edge: Edge) -> bool:
    """Join the components of an edge's ends; False where they are one already: a cycle."""
    a, b = component[list(edge)]
    component[component == b] = a
    return bool(a != b)


def walk(columns: int, edges: Sequence[Edge]) -> list[tuple[int, int | None]]:
    """Return all columns with their parents, every parent before its children."""
    order: list[tuple[int, int | None]] = []
    seen: set[int] = set()
    for start in range(columns):
        stack: list[tuple[int, int | None]] = [(start, None)]
        while stack:
            column, parent = stack.pop()
            if column in seen:
                continue
            seen.add(column)
            order.append((column, parent))
            stack += [(a + b - column, column) for a, b in edges if column in (a, b)]
    return order


def _total(measurements: Sequence[Measurement]) -> float:
    weights = [1.0 / (m.counts.size * m.deviation**2) for m in measurements]
    sums = [float(m.counts.sum()) for m in measurements]
    return float(np.average(sums, weights=weights))


def _single(
    column: int, size: int, measurements: Sequence[Measurement], total: float
) -> FloatArray:
    estimate, weight = np.zeros(size), 0.0
    for found in measurements:
        if column not in found.columns:
            continue
        counts, variance = found.counts, found.deviation**2
        if len(found.columns) == 2:
            other = 1 - found.columns.index(column)
            variance *= counts.shape[other]
            counts = counts.sum(axis=other)
        estimate += counts / variance
        weight += 1.0 / variance
    if weight == 0.0:
        return np.full(size, 1.0 / size)
    return on_simplex(estimate / weight / total)


def _fitted(table: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Return a table with the given margins, near the noisy one."""
    # The nearest table with these margins, signs aside; then on the simplex.
    table = table + ((rows - table.sum(axis=1)) / columns.size)[:, None]
    table = table + (columns - table.sum(axis=0)) / rows.size
    # A little of independence, so that proportions can be fitted everywhere.
    found = 0.9999 * on_simplex(table) + 0.0001 * np.outer(rows, columns)
    for _ in range(ROUNDS):
        found = found * _ratio(rows, found.sum(axis=1))[:, None]
        ratio = _ratio(columns, found.sum(axis=0))
        found = found * ratio
        if np.abs(found.sum(axis=1) - rows).max() < TOLERANCE:
            break
    return np.asarray(found)


def _ratio(wanted: FloatArray, found: FloatArray) -> FloatArray:
    return np.divide(wanted, found, out=np.zeros_like(wanted), where=found > 0.0)


def _draw(
    law: FloatArray, rows: NDArray[np.int64], generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw one position for each entry of ``rows``, by that row of ``law``."""
    sums = np.cumsum(law, axis=1)
    uniform = generator.random(len(rows)) * sums[rows, -1]
    return np.asarray((uniform[:, None] >= sums[rows]).sum(axis=1).clip(0, law.shape[1] - 1))
