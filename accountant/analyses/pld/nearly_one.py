"""A δ that is nearly one, by how little the two distributions overlap (Theorem G15)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from accountant._rounding import TINY, U
from accountant.analyses.pld.saddle_point import CoarseLaw
from accountant.bounds import Bounds
from accountant.pairs.base import DominatingPair, Masses

# Orders that are tried: the losses' fluctuations decide small ones, their largest values others.
ORDERS = (0.85, 0.7, *(2.0 ** (-0.5 * k) for k in range(2, 18)))
# The logarithm of the largest 1 - δ that is answered: no grid brackets δ more narrowly.
MOST = -28.0
# The logarithm of the least mass of a cell with edges of its own, where others have lost digits.
HEAVY = -16.0
# Bounds the round-off of the logarithm of a sum of powers of doubles.
ROUND_OFF = 1e-12


class NearlyOne:
    """Brackets of the profile of a composition at ε far below its losses, without a grid.

    Parameters
    ----------
    used : sequence of (DominatingPair, int)
        The pairs and how often each runs.
    laws : sequence of CoarseLaw
        Their coarse laws, by which the order is chosen.
    """

    def __init__(
        self, used: Sequence[tuple[DominatingPair, int]], laws: Sequence[CoarseLaw]
    ) -> None:
        self._used, self._laws = used, laws
        self._roughly: list[float] | None = None
        self._sums: dict[float, tuple[float, float]] = {}

    def bracket(self, epsilon: float) -> Bounds | None:
        """Bracket δ(epsilon); None where it is not nearly one."""
        if self._roughly is None:
            self._roughly = [
                sum(law.times * law.cumulants(-order)[0] for law in self._laws) for order in ORDERS
            ]
        tried = [k + order * epsilon for k, order in zip(self._roughly, ORDERS, strict=True)]
        least = min(tried)
        if not least < MOST:
            return None
        order = ORDERS[tried.index(least)]
        if order not in self._sums:
            self._sums[order] = self._sum(order)
        known, size = self._sums[order]
        log_rest = known + order * epsilon
        log_rest += 8.0 * U * (size + order * epsilon)
        if not log_rest < MOST:
            return None
        return Bounds(-math.expm1(log_rest) * (1.0 - 8.0 * U), 1.0)

    def _sum(self, order: float) -> tuple[float, float]:
        """Return an upper bound on the sum of all releases' overlaps but for its rounding.

        And the sum of their absolute values, of which that is a part.
        """
        terms = [
            n * log_overlap(pair, law, order)
            for (pair, n), law in zip(self._used, self._laws, strict=True)
        ]
        return math.fsum(terms), math.fsum(map(abs, terms))


def log_overlap(pair: DominatingPair, law: CoarseLaw, order: float) -> float:
    """Bound log ∫ p^{1-order} q^{order} from above, 0 < order < 1, by the masses of cells."""
    found = _by_cells(pair.masses(np.union1d(law.low, law.high)), order)
    if not found <= 0.0:
        # Masses that are differences may have lost all digits in cells that hold next to nothing.
        heavy = law.log_mass > HEAVY
        edges = np.union1d(law.low[heavy], law.high[heavy])
        if edges.size:
            found = _by_cells(pair.masses(edges), order)
    return min(found, 0.0)  # it is at most the integrals of p and q, to their powers


def _by_cells(masses: Masses, order: float) -> float:
    p, q, error = masses
    more = 1.0 + error
    terms = (1.0 - order) * np.log(np.maximum(p, 0.0) * more + TINY)
    terms += order * np.log(np.maximum(q, 0.0) * more + TINY)
    top = float(terms.max())
    return top + math.log(float(np.exp(terms - top).sum())) + ROUND_OFF
