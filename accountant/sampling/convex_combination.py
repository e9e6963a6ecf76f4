"""Pairs mixed by a public coin (joint convexity)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from accountant._rounding import U, lift, up
from accountant._typing import FloatArray
from accountant.bounds import Bounds
from accountant.pairs.base import DominatingPair, Masses


@dataclass(frozen=True)
class BlendPair(DominatingPair):
    """``worse`` with probability ``weight``, else ``usual``; the coin is seen.

    The profile of ``worse`` must be nowhere below that of ``usual``, so that rounding ``weight`` up
    is safe.
    """

    weight: float
    worse: DominatingPair
    usual: DominatingPair

    @property
    def support(self) -> tuple[float, float]:
        """The union of both."""
        (a, b), (c, d) = self.worse.support, self.usual.support
        return min(a, c), max(b, d)

    @property
    def infinite_mass(self) -> float:
        """The blended mass."""
        return up(self._blend(self.worse.infinite_mass, self.usual.infinite_mass))

    @property
    def loss_error(self) -> float:
        """The larger of both."""
        return max(self.worse.loss_error, self.usual.loss_error)

    @property
    def variation(self) -> float:
        """The blended one."""
        worse, usual = self.worse.variation, self.usual.variation
        return min(up(lift(self._blend(worse, usual))), 1.0) if worse or usual else 0.0

    @property
    def mu(self) -> float:
        """The larger of both."""
        return max(self.worse.mu, self.usual.mu)

    @property
    def rho(self) -> float:
        """The larger of both."""
        return max(self.worse.rho, self.usual.rho)

    def _blend(self, worse: float, usual: float) -> float:
        return self.weight * worse + (1.0 - self.weight) * usual

    def masses(self, edges: FloatArray) -> Masses:
        """Blend the masses."""
        worse, usual = self.worse.masses(edges), self.usual.masses(edges)
        rest = 1.0 - self.weight
        return Masses(
            self.weight * worse.p + rest * usual.p,
            self.weight * worse.q + rest * usual.q,
            max(worse.relative_error, usual.relative_error) + 4.0 * U,
        )

    def rdp(self, order: float) -> float:
        """Return the divergence, rounded up: e^{(α-1)D} is blended."""
        worse, usual = self.worse.rdp(order) * (order - 1.0), self.usual.rdp(order) * (order - 1.0)
        # The usual divergence is no larger; a bound on it may be, by any factor.
        usual = min(worse, usual)
        if worse < 1.0:
            excess = self.weight * math.expm1(worse) + (1.0 - self.weight) * math.expm1(usual)
            return up(math.log1p(excess) / (order - 1.0), 64.0)
        if not worse < math.inf or self.weight == 0.0:
            return worse / (order - 1.0)
        if worse - usual > 690.0:
            return up(worse / (order - 1.0), 8.0)
        total = self.weight * math.exp(worse - usual) + (1.0 - self.weight)
        return up((usual + math.log(total)) / (order - 1.0) * (1.0 + 1e-14), 64.0)

    def profile(self, epsilon: float) -> Bounds:
        """Blend the profiles."""
        worse, usual = self.worse.profile(epsilon), self.usual.profile(epsilon)
        low = self._blend(float(worse.lower), float(usual.lower)) * (1.0 - 4.0 * U)
        high = self._blend(float(worse.upper), float(usual.upper)) * (1.0 + 4.0 * U)
        return Bounds(low, min(max(high, low), 1.0))
