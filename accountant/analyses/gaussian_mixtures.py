"""Gaussian noise with a random shift: users with several records, repeated draws, mixtures.

P = Σ_j w_j·N(d_j, σ²) against N(0, σ²), w_0 > 0 the weight of no shift, or reversed, many times
over: the transform of the loss is inverted on the native contour (docs/theorems_mixtures.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from accountant._core import subsampled_gaussian as core
from accountant.analyses.shift_cuts import LEAST_DELTA, ShiftCut, covers, cut_shifts
from accountant.analyses.solvers import BesideGrid
from accountant.bounds import Bounds
from accountant.errors import AccountantError, UnsupportedError

if TYPE_CHECKING:
    from accountant.pairs.base import Parts

__all__ = ["MixtureContour", "covers"]

# The δ for which shifts are cut off first.
FIRST_DELTA = 1e-14


class MixtureContour(BesideGrid):
    """Repeated releases of Gaussian noise with a random shift: the transform on a contour."""

    name = "contour"
    reason = "Gaussian noise with a random shift, whose transform is inverted on a contour"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        ((pair, self._count),) = parts
        part = pair.gaussian_mixture
        if part is None:  # pragma: no cover (chosen by the caller)
            raise UnsupportedError(f"{pair!r} is no mixture of Gaussians")
        self._part = part
        self._direction = core.ADD if part.add else core.REMOVE

    def _least(self) -> float:
        # The loss of a removal has no bound; that of an addition is counted as the grid does.
        return self._beside()._least() if self._part.add else math.inf

    def _epsilon(self, delta: float) -> Bounds:
        cut = self._cut(delta)
        # What was cut off may add `missing` to δ at every ε (Theorem D8).
        rest = math.nextafter(delta - cut.missing, 0.0)
        upper = math.inf
        if rest > 0.0:
            above = self._ask("epsilon", cut, rest)
            upper = float(above.upper)
        if upper == math.inf:
            # No line was found, and none will be for nearly the same weights.
            return self._narrowed(Bounds(0.0, math.inf), delta=delta)
        below = self._ask("epsilon", cut, delta, less=True)
        return self._narrowed(Bounds(min(float(below.lower), upper), upper), delta=delta)

    def _delta(self, epsilon: float) -> Bounds:
        known, size = Bounds(0.0, 1.0), FIRST_DELTA
        for _ in range(3):
            cut = self._cut(size)
            above = self._ask("delta", cut, epsilon)
            below = self._ask("delta", cut, epsilon, less=True)
            upper = min(math.nextafter(float(above.upper) + cut.missing, 1.0), float(known.upper))
            known = Bounds(min(max(float(below.lower), float(known.lower)), upper), upper)
            if cut.missing <= 1e-9 * known.upper or size <= LEAST_DELTA:
                break
            size = max(min(float(known.upper), 1e-9 * size), LEAST_DELTA)
        return self._narrowed(known, epsilon=epsilon)

    def _ask(self, kind: str, cut: ShiftCut, at: float, *, less: bool = False) -> Bounds:
        question = core.mixture_epsilon_bounds if kind == "epsilon" else core.mixture_delta_bounds
        shifts = cut.less_shifts if less else cut.more_shifts
        weights = cut.less_weights if less else cut.more_weights
        try:
            found = question(
                self._part.noise_multiplier,
                shifts,
                weights,
                self._count,
                at,
                self._direction,
                cut.no_shift,
                cut.weight_error,
            )
        except AccountantError:
            return Bounds(0.0, math.inf if kind == "epsilon" else 1.0)
        return Bounds(*found)

    def _cut(self, delta: float) -> ShiftCut:
        return cut_shifts(self._part, self._count, delta)
