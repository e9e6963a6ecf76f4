"""Gaussian noise with a random shift: users with several records, repeated draws, mixtures.

P = Σ_j w_j·N(d_j, σ²) against N(0, σ²), w_0 > 0 the weight of no shift, or reversed, many times
over: the transform of the loss is inverted on the native contour (docs/theorems_mixtures.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from accountant._core import subsampled_gaussian as core
from accountant._rounding import U
from accountant.analyses.solvers import BesideGrid
from accountant.bounds import Bounds
from accountant.errors import AccountantError, UnsupportedError

if TYPE_CHECKING:
    from accountant.pairs.base import FloatArray, GaussianMixture, Parts

__all__ = ["MixtureContour", "covers"]

# Shifts and weights that the native core takes.
MOST_SHIFTS = 256
LEAST_NO_SHIFT = 1e-8
LEAST_WEIGHT = 1e-240
MOST_ERROR = 9e-14
# The δ for which shifts are cut off, and how small their part of it is.
FIRST_DELTA, LEAST_DELTA = 1e-14, 1e-290
SHARE = 1e-10


@dataclass(frozen=True)
class _Cut:
    """Shifts and weights up to a last one, rounded both ways, and what the others add to δ."""

    more_shifts: FloatArray
    more_weights: FloatArray
    less_shifts: FloatArray
    less_weights: FloatArray
    missing: float
    # The weight of no shift and the relative error of all weights; 0 where it is what is left.
    no_shift: float = 0.0
    weight_error: float = 0.0


def covers(part: GaussianMixture) -> bool:
    """Tell whether the contour takes such a release."""
    if not (part.shifts and 1e-90 < part.noise_multiplier < 1e90):
        return False
    return (
        (_rest(part) > LEAST_NO_SHIFT or _is_known(part))
        and part.shifts[0] > 1e-60 * part.noise_multiplier
        and part.shifts[-1] < 1e60 * part.noise_multiplier
        and part.weights[0] > LEAST_WEIGHT
    )


def _rest(part: GaussianMixture) -> float:
    """Return what the weights leave of one at least, when rounded up as they will be."""
    total = math.fsum(part.weights) * (1.0 + part.weight_error + 4.0 * U) + part.remainder
    return 1.0 - total - 8.0 * U


def _is_known(part: GaussianMixture) -> bool:
    """Tell whether all weights, that of no shift included, are known well enough as they are."""
    return part.no_shift > LEAST_WEIGHT and part.weight_error <= MOST_ERROR


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
            above = self._ask(core.mixture_epsilon_bounds, cut, rest, Bounds(0.0, math.inf))
            upper = float(above.upper)
        if upper == math.inf:
            # No line was found, and none will be for nearly the same weights.
            return self._narrowed(Bounds(0.0, math.inf), delta=delta)
        below = self._ask(core.mixture_epsilon_bounds, cut, delta, Bounds(0.0, math.inf), less=True)
        return self._narrowed(Bounds(min(float(below.lower), upper), upper), delta=delta)

    def _delta(self, epsilon: float) -> Bounds:
        known, size = Bounds(0.0, 1.0), FIRST_DELTA
        for _ in range(3):
            cut = self._cut(size)
            above = self._ask(core.mixture_delta_bounds, cut, epsilon, Bounds(0.0, 1.0))
            below = self._ask(core.mixture_delta_bounds, cut, epsilon, Bounds(0.0, 1.0), less=True)
            upper = min(math.nextafter(float(above.upper) + cut.missing, 1.0), float(known.upper))
            known = Bounds(min(max(float(below.lower), float(known.lower)), upper), upper)
            if cut.missing <= 1e-9 * known.upper or size <= LEAST_DELTA:
                break
            size = max(min(float(known.upper), 1e-9 * size), LEAST_DELTA)
        return self._narrowed(known, epsilon=epsilon)

    def _ask(
        self, question: object, cut: _Cut, at: float, nothing: Bounds, *, less: bool = False
    ) -> Bounds:
        shifts = cut.less_shifts if less else cut.more_shifts
        weights = cut.less_weights if less else cut.more_weights
        assert callable(question)
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
            return nothing
        return Bounds(*found)

    def _cut(self, delta: float) -> _Cut:
        """Leave out the largest shifts, of a total weight that is negligible beside delta."""
        part = self._part
        wide = part.weight_error + 4.0 * U
        weights, rest = part.weights, _rest(part)
        is_rest = rest > LEAST_NO_SHIFT
        # Its weight is moved to no shift, or to the likeliest one.
        base = rest if is_rest else max(weights)
        most = SHARE * delta * base / self._count
        kept, left_out = len(weights), part.remainder
        while kept > 1:
            more = left_out + weights[kept - 1] * (1.0 + wide)
            if (more > most and weights[kept - 1] > LEAST_WEIGHT) and kept <= MOST_SHIFTS:
                break
            kept, left_out = kept - 1, more
        missing = self._count * left_out / base * (1.0 + 2.0 * wide + 64.0 * U)
        shifts = np.array(part.shifts[:kept], dtype=np.float64)
        chances = np.array(weights[:kept], dtype=np.float64)
        slip = part.shift_error
        if not is_rest:
            up, down = shifts * (1.0 + slip), shifts * (1.0 - slip)
            error = wide + left_out / base * (1.0 + 1e-9)
            return _Cut(up, chances, down, chances, missing, part.no_shift, error)
        return _Cut(
            shifts * (1.0 + slip) if slip else shifts,
            chances * (1.0 + wide) if part.weight_error else chances,
            shifts * (1.0 - slip) if slip else shifts,
            chances * (1.0 - wide) if part.weight_error else chances,
            missing,
        )
