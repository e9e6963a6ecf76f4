"""Equal steps of Gaussian noise on Poisson samples under replace-one.

Both laws of the pair are mixtures, and the loss is odd and increasing: its transform is inverted on
a contour of its own (docs/theorems_mixtures.md, Theorems D21 and D22).
"""

from __future__ import annotations

import math

from accountant._core import answers as core
from accountant.analyses.solvers import LEAST, BesideGrid
from accountant.bounds import Bounds
from accountant.errors import UnsupportedError
from accountant.pairs.base import Parts
from accountant.sampling.exchange_pair import ExchangePair


class ExchangeContour(BesideGrid):
    """Repeated releases on Poisson samples under replace-one, on a contour."""

    name = "exchange contour"
    reason = "Gaussian noise on Poisson samples under replace-one: transforms on a contour"
    _least_delta = LEAST

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        ((pair, count),) = parts
        if not isinstance(pair, ExchangePair):  # pragma: no cover (chosen by the caller)
            raise UnsupportedError(f"{pair!r} is not the pair of Theorem E7")
        self._pair, self._count = pair, float(count)

    def quick_epsilon_upper(self, delta: float) -> float:
        """Return the contour's upper end, which no grid has narrowed."""
        return float(self._by_contour(delta).upper) if delta > 0.0 else math.inf

    def _least(self) -> float:
        # The loss has no bound.
        return math.inf

    def _epsilon(self, delta: float) -> Bounds:
        return self._narrowed(self._by_contour(delta), delta=delta)

    def _delta(self, epsilon: float) -> Bounds:
        pair = self._pair
        found = core.exchange_delta_bounds(pair.distance, pair.q, self._count, epsilon)
        return self._narrowed(Bounds(*found), epsilon=epsilon)

    def _by_contour(self, delta: float) -> Bounds:
        pair = self._pair
        return Bounds(*core.exchange_epsilon_bounds(pair.distance, pair.q, self._count, delta))
