"""Gaussian noise on the native contour: one shift, on a Poisson sample or plain, or a random one.

The transform of the loss of every part is known; their product is inverted. A random shift is
P = Σ_j w_j·N(d_j, σ²) against N(0, σ²), w_0 the weight of no shift, or reversed, as of users with
several records and of repeated draws. Its weights and shifts are rounded both ways, and those that
are too rare to matter are cut off (docs/theorems_mixtures.md, Theorems D8 and D9).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant._core import answers as core
from accountant.analyses import mixed
from accountant.analyses.solver import Question
from accountant.analyses.solvers import NOTHING, BesideGrid
from accountant.bounds import Bounds
from accountant.errors import AccountantError, UnsupportedError
from accountant.pairs.base import DominatingPair, GaussianMixture, Parts, gaussian_part
from accountant.sampling.exchange_pair import ExchangePair

# The δ for which shifts are cut off first.
FIRST_DELTA = 1e-14
# The native core takes at most this many shifts, a weight of no shift and others from these two on,
# and weights with at most this relative error.
MOST_SHIFTS = 256
LEAST_NO_SHIFT = 1e-8
LEAST_WEIGHT = 1e-240
MOST_ERROR = 9e-14
# The least δ for which shifts are cut off.
LEAST_DELTA = 1e-290
# What is cut off may add at most this share to δ.
SHARE = 1e-10


@dataclass(frozen=True)
class ShiftCut:
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


def shifts_of(pair: DominatingPair) -> GaussianMixture:
    """Return the shifts of a pair that has them."""
    part = pair.gaussian_mixture
    if part is None:  # pragma: no cover (chosen by the caller)
        raise UnsupportedError(f"{pair!r} is no mixture of Gaussians")
    return part


def _rest(part: GaussianMixture) -> float:
    """Return what the weights leave of one at least, when rounded up as they will be."""
    total = math.fsum(part.weights) * (1.0 + part.weight_error + 4.0 * U) + part.remainder
    return 1.0 - total - 8.0 * U


def _is_known(part: GaussianMixture) -> bool:
    """Tell whether all weights, that of no shift included, are known well enough as they are.

    The core takes a weight of no shift of 0 beside a positive error as that there is none.
    """
    known = part.no_shift > LEAST_WEIGHT or (part.always_shifted and part.remainder == 0.0)
    return known and part.weight_error <= MOST_ERROR


def cut_shifts(part: GaussianMixture, count: int, delta: float) -> ShiftCut:
    """Leave out the largest shifts, of a total weight that is negligible beside delta."""
    wide = part.weight_error + 4.0 * U
    weights, rest = part.weights, _rest(part)
    is_rest = rest > LEAST_NO_SHIFT
    # Its weight is moved to no shift, or to the likeliest one.
    base = rest if is_rest else max(weights)
    most = SHARE * delta * base / count
    kept, left_out = len(weights), part.remainder
    while kept > 1:
        more = left_out + weights[kept - 1] * (1.0 + wide)
        if (more > most and weights[kept - 1] > LEAST_WEIGHT) and kept <= MOST_SHIFTS:
            break
        kept, left_out = kept - 1, more
    missing = count * left_out / base * (1.0 + 2.0 * wide + 64.0 * U)
    shifts = np.array(part.shifts[:kept], dtype=np.float64)
    chances = np.array(weights[:kept], dtype=np.float64)
    slip = part.shift_error
    if not is_rest:
        up, down = shifts * (1.0 + slip), shifts * (1.0 - slip)
        error = wide + left_out / base * (1.0 + 1e-9)
        return ShiftCut(up, chances, down, chances, missing, part.no_shift, error)
    return ShiftCut(
        shifts * (1.0 + slip) if slip else shifts,
        chances * (1.0 + wide) if part.weight_error else chances,
        shifts * (1.0 - slip) if slip else shifts,
        chances * (1.0 - wide) if part.weight_error else chances,
        missing,
    )


def fits(parts: Parts) -> bool:
    """Tell whether one contour takes all parts."""
    directions = set()
    for pair, _ in parts:
        one, several = pair.gaussian_part, pair.gaussian_mixture
        if one is not None and one.sampling_probability == 1.0:
            continue  # its own reverse
        if one is None and not (several is not None and covers(several)):
            return False
        directions.add((one or shifts_of(pair)).add)
    return len(directions) == 1


class Contour(BesideGrid):
    """Gaussian releases in one direction, with one shift or a random one, on one contour.

    Attributes
    ----------
    rows : tuple of mixed.Part
        The parts with one shift, for upper ends.
    several : list of (GaussianMixture, int)
        The parts with a random shift, and their counts.
    direction : int
        ``core.ADD`` or ``core.REMOVE``.
    exact : bool
        Whether one evaluation gives both ends: no noise, weight or shift is rounded.
    """

    name = "contour"
    reason = "all parts are (subsampled) Gaussian noise, whose transform is inverted on a contour"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        single = [(gaussian_part(pair), n) for pair, n in parts if pair.gaussian_part]
        self.several = [(shifts_of(pair), n) for pair, n in parts if not pair.gaussian_part]
        if self.several:
            self.name = "mixture contour"
            self.reason = (
                "all parts are Gaussian noise with one shift or a random one, whose transforms are"
                " multiplied and inverted on a contour"
            )
        self.rows = tuple([mixed.Part(part[0], part[1], n) for part, n in single])
        # Less noise has a larger profile, so lower ends use the other end of an inexact multiplier.
        self._less = tuple([mixed.Part(part[0], part.most_noise, n) for part, n in single])
        self.exact = not self.several and self.rows == self._less
        # A plain part is its own reverse, so it fits either direction.
        adds = [part.add for part, _ in self.several]
        adds += [part.add for part, _ in single if part.sampling_probability < 1.0]
        self.direction = core.ADD if any(adds) else core.REMOVE
        self._by_contour = lru_cache(maxsize=64)(self._certified)

    def quick(self, asked: Question) -> float:
        """Return the contour's upper end on ε, which no grid has narrowed."""
        if asked.kind == "delta" or asked.at == 0.0:
            return math.inf
        return float(self._by_contour(asked.at).upper)

    def _least(self) -> float:
        # Losses are bounded in an addition without plain noise; they are counted as on the grid.
        bounded = self.several and all(math.isfinite(pair.support[1]) for pair, _ in self.parts)
        return self._beside()._least() if bounded else math.inf

    def _epsilon(self, delta: float) -> Bounds:
        found = self._by_contour(delta)
        # Where no line answers, all of the profile may be below δ.
        lost = self.several and found.lower == 0.0 < found.upper
        if lost and self._profile(0.0).upper <= delta:
            return Bounds(0.0, 0.0)
        return self._narrowed(found, delta=delta)

    def _certified(self, delta: float) -> Bounds:
        """Bracket ε(delta) by contours alone."""
        cuts = self._cut(delta)
        missing = _missing(cuts)
        # What was cut off may add `missing` to δ at every ε (Theorem D8).
        rest = math.nextafter(delta - missing, 0.0) if missing else delta
        above = self._ask("epsilon", cuts, rest) if rest > 0.0 else Bounds(0.0, math.inf)
        if self.exact:
            return above
        if above.upper == math.inf:
            # No line was found, and none will be for nearly the same weights.
            return Bounds(0.0, math.inf)
        below = self._ask("epsilon", cuts, delta, less=True)
        return Bounds(min(float(below.lower), float(above.upper)), above.upper)

    def _delta(self, epsilon: float) -> Bounds:
        return self._narrowed(self._profile(epsilon), epsilon=epsilon)

    def _profile(self, epsilon: float) -> Bounds:
        """Bracket δ(epsilon) by contours alone."""
        known, size = Bounds(0.0, 1.0), FIRST_DELTA
        while True:
            cuts = self._cut(size)
            missing = _missing(cuts)
            above = self._ask("delta", cuts, epsilon)
            below = above if self.exact else self._ask("delta", cuts, epsilon, less=True)
            more = math.nextafter(float(above.upper) + missing, 1.0) if missing else above.upper
            upper = min(float(more), float(known.upper))
            known = Bounds(min(max(float(below.lower), float(known.lower)), upper), upper)
            if missing <= 1e-9 * known.upper or size <= LEAST_DELTA:
                return known
            # What is cut off does not hide the lower end, which is how small the answer may be.
            size = max(min(float(known.lower), 1e-9 * size) or size * size, LEAST_DELTA)

    def _cut(self, delta: float) -> tuple[ShiftCut, ...]:
        """Cut the shifts of each part off where they add next to nothing to delta."""
        share = delta / max(len(self.several), 1)
        return tuple([cut_shifts(part, n, share) for part, n in self.several])

    def _ask(
        self, kind: str, cuts: tuple[ShiftCut, ...], at: float, *, less: bool = False
    ) -> Bounds:
        """Bracket ``kind``, epsilon or delta, for shifts rounded up, or down with ``less``."""
        mixtures = tuple(
            [
                mixed.Mixture(
                    part.noise_multiplier,
                    cut.less_shifts if less else cut.more_shifts,
                    cut.less_weights if less else cut.more_weights,
                    n,
                    cut.no_shift,
                    cut.weight_error,
                )
                for (part, n), cut in zip(self.several, cuts, strict=True)
            ]
        )
        try:
            rows = self._less if less else self.rows
            return Bounds(*mixed.bracket(kind, rows, at, self.direction, mixtures))
        except AccountantError:
            if not self.several:
                raise
            return Bounds(0.0, math.inf if kind == "epsilon" else 1.0)


def _missing(cuts: tuple[ShiftCut, ...]) -> float:
    """Bound what all that was cut off adds to δ (Theorem D9)."""
    return math.fsum(cut.missing for cut in cuts) * (1.0 + 2.0 * U)


class ExchangeContour(BesideGrid):
    """Equal steps of Gaussian noise on Poisson samples under replace-one.

    Both laws of the pair are mixtures, and the loss is odd and increasing: its transform is
    inverted on a contour of its own (docs/theorems_mixtures.md, Theorems D21 and D22).
    """

    name = "exchange contour"
    reason = "Gaussian noise on Poisson samples under replace-one: transforms on a contour"
    _least_delta = NOTHING

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        ((pair, count),) = parts
        if not isinstance(pair, ExchangePair):  # pragma: no cover (chosen by the caller)
            raise UnsupportedError(f"{pair!r} is not the pair of Theorem E7")
        self._pair, self._count = pair, float(count)

    def quick(self, asked: Question) -> float:
        """Return the contour's upper end on ε, which no grid has narrowed."""
        if asked.kind == "delta" or asked.at == 0.0:
            return math.inf
        return float(self._by_contour(asked.at).upper)

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
