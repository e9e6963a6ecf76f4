"""Analyses in closed form: of the empty release, and of plain Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant._core import answers as core
from accountant._rounding import LEAST, TINY, U
from accountant.analyses.solvers import Solver
from accountant.bounds import Bounds
from accountant.checks import MAX_COUNT
from accountant.pairs.base import Parts, gaussian_part


class Nothing(Solver):
    """Nothing was released."""

    name = "nothing"
    reason = "nothing is released"

    def _epsilon(self, delta: float) -> Bounds:
        return Bounds(0.0, 0.0)

    def _delta(self, epsilon: float) -> Bounds:
        return Bounds(0.0, 0.0)


class MergedGaussian(Solver):
    """Plain Gaussians: the sum of their independent normal losses is normal."""

    name = "gaussian"
    reason = "all parts are plain Gaussian noise, which merges into one release (closed form)"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        # Noise multipliers that bracket the true one: (least, most).
        # Equal parts are counted together, in all perhaps more often than the core counts.
        if len(parts) == 1 and parts[0][0].exact and parts[0][1] <= MAX_COUNT:
            self._count = parts[0][1]
            self._sigma = (gaussian_part(parts[0][0]).noise_multiplier,) * 2
            return
        self._count = 1
        # 1/σ² = Σ n/σᵢ²: squares, quotients, sum and root lose less than 8 units together; in
        # units of the least σ, so that no square leaves the range of the doubles.
        sigmas = [gaussian_part(pair).noise_multiplier for pair, _ in parts]
        unit = min(sigmas)
        precision = math.fsum(n * (unit / s) ** 2 for s, (_, n) in zip(sigmas, parts, strict=True))
        sigma = unit / math.sqrt(precision)
        self._sigma = sigma * (1.0 - 16.0 * U), sigma * (1.0 + 16.0 * U)
        if sigma < TINY:  # it may have underflowed; the least double already costs all there is
            self._sigma = LEAST, math.nextafter(2.0 * sigma, 1.0)

    def _least(self) -> float:
        return math.inf

    def _epsilon(self, delta: float) -> Bounds:
        return self._bracket(core.epsilon_bounds, delta)

    def _delta(self, epsilon: float) -> Bounds:
        return self._bracket(core.delta_bounds, epsilon)

    def _bracket(self, ask: Callable[..., tuple[float, float]], at: float) -> Bounds:
        least, most = self._sigma
        upper = ask(1.0, least, self._count, at, core.REMOVE)
        if least == most:
            return Bounds(*upper)
        lower = ask(1.0, most, self._count, at, core.REMOVE)
        return Bounds(min(lower[0], upper[1]), upper[1])
