"""Gaussian noise with a random shift: users with several records, repeated draws, mixtures.

P = Σ_j w_j·N(d_j, σ²) against N(0, σ²), w_0 > 0 the weight of no shift, or reversed, many times
over: the transform of the loss is inverted on the native contour (docs/theorems_mixtures.md).
Beside other Gaussian releases in one direction the transforms are multiplied (Theorem D9).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import lru_cache

from accountant._basics.rounding import U
from accountant._core import answers as core
from accountant.analyses import mixed
from accountant.analyses.shift_cuts import LEAST_DELTA, ShiftCut, covers, cut_shifts, shifts_of
from accountant.analyses.solvers import BesideGrid
from accountant.bounds import Bounds
from accountant.errors import AccountantError
from accountant.pairs.base import DominatingPair, Parts, gaussian_part

# The δ for which shifts are cut off first.
FIRST_DELTA = 1e-14


class CutContour(BesideGrid):
    """Releases with random shifts, of which those too rare to matter are cut off."""

    name = "mixture contour"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._by_contour = lru_cache(maxsize=64)(self._certified)

    def quick_epsilon_upper(self, delta: float) -> float:
        """Return the contour's upper end, which no grid has narrowed."""
        return float(self._by_contour(delta).upper) if delta > 0.0 else math.inf

    def _epsilon(self, delta: float) -> Bounds:
        found = self._by_contour(delta)
        # Where no line answers, all of the profile may be below δ.
        if found.lower == 0.0 < found.upper and self._profile(0.0).upper <= delta:
            return Bounds(0.0, 0.0)
        return self._narrowed(found, delta=delta)

    def _certified(self, delta: float) -> Bounds:
        """Bracket ε(delta) by contours alone."""
        cuts = self._cut(delta)
        missing = _missing(cuts)
        # What was cut off may add `missing` to δ at every ε (Theorem D8).
        rest = math.nextafter(delta - missing, 0.0)
        upper = math.inf
        if rest > 0.0:
            above = self._ask("epsilon", cuts, rest)
            upper = float(above.upper)
        if upper == math.inf:
            # No line was found, and none will be for nearly the same weights.
            return Bounds(0.0, math.inf)
        below = self._ask("epsilon", cuts, delta, less=True)
        return Bounds(min(float(below.lower), upper), upper)

    def _delta(self, epsilon: float) -> Bounds:
        return self._narrowed(self._profile(epsilon), epsilon=epsilon)

    def _profile(self, epsilon: float) -> Bounds:
        """Bracket δ(epsilon) by contours alone."""
        known, size = Bounds(0.0, 1.0), FIRST_DELTA
        while True:
            cuts = self._cut(size)
            missing = _missing(cuts)
            above = self._ask("delta", cuts, epsilon)
            below = self._ask("delta", cuts, epsilon, less=True)
            upper = min(math.nextafter(float(above.upper) + missing, 1.0), float(known.upper))
            known = Bounds(min(max(float(below.lower), float(known.lower)), upper), upper)
            if missing <= 1e-9 * known.upper or size <= LEAST_DELTA:
                return known
            # What is cut off does not hide the lower end, which is how small the answer may be.
            size = max(min(float(known.lower), 1e-9 * size) or size * size, LEAST_DELTA)

    def _ask(
        self, kind: str, cuts: tuple[ShiftCut, ...], at: float, *, less: bool = False
    ) -> Bounds:
        try:
            return Bounds(*self._bracket(kind, cuts, at, less))
        except AccountantError:
            return Bounds(0.0, math.inf if kind == "epsilon" else 1.0)

    @abstractmethod
    def _cut(self, delta: float) -> tuple[ShiftCut, ...]:
        """Cut the shifts of each part off where they add next to nothing to delta."""

    @abstractmethod
    def _bracket(
        self, kind: str, cuts: tuple[ShiftCut, ...], at: float, less: bool
    ) -> tuple[float, float]:
        """Bracket ``kind``, epsilon or delta, for shifts rounded up, or down with ``less``."""


def _missing(cuts: tuple[ShiftCut, ...]) -> float:
    """Bound what all that was cut off adds to δ (Theorem D9)."""
    return math.fsum(cut.missing for cut in cuts) * (1.0 + 2.0 * U)


class MixtureContour(CutContour):
    """Repeated releases of Gaussian noise with a random shift: the transform on a contour."""

    reason = "Gaussian noise with a random shift, whose transform is inverted on a contour"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        ((pair, self._count),) = parts
        self._part = shifts_of(pair)
        self._direction = core.ADD if self._part.add else core.REMOVE

    def _least(self) -> float:
        # The loss of a removal has no bound; that of an addition is counted as the grid does.
        return self._beside()._least() if self._part.add else math.inf

    def _bracket(
        self, kind: str, cuts: tuple[ShiftCut, ...], at: float, less: bool
    ) -> tuple[float, float]:
        question = core.mixture_epsilon_bounds if kind == "epsilon" else core.mixture_delta_bounds
        (cut,) = cuts
        return question(
            self._part.noise_multiplier,
            cut.less_shifts if less else cut.more_shifts,
            cut.less_weights if less else cut.more_weights,
            self._count,
            at,
            self._direction,
            cut.no_shift,
            cut.weight_error,
        )

    def _cut(self, delta: float) -> tuple[ShiftCut, ...]:
        return (cut_shifts(self._part, self._count, delta),)


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


class MixedContour(CutContour):
    """Different Gaussian releases, with one shift or a random one: one contour for all."""

    reason = (
        "all parts are Gaussian noise with one shift or a random one, whose transforms are"
        " multiplied and inverted on a contour"
    )

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._single = [(pair, n) for pair, n in parts if pair.gaussian_part is not None]
        self._several = [(shifts_of(p), n) for p, n in parts if p.gaussian_part is None]
        self._direction = core.ADD if self._several[0][0].add else core.REMOVE

    def _least(self) -> float:
        # Losses are bounded in an addition without plain noise; they are counted as on the grid.
        bounded = all(math.isfinite(pair.support[1]) for pair, _ in self.parts)
        return self._beside()._least() if bounded else math.inf

    def _cut(self, delta: float) -> tuple[ShiftCut, ...]:
        share = delta / len(self._several)
        return tuple(cut_shifts(part, n, share) for part, n in self._several)

    def _bracket(
        self, kind: str, cuts: tuple[ShiftCut, ...], at: float, less: bool
    ) -> tuple[float, float]:
        mixtures = tuple(
            mixed.Mixture(
                part.noise_multiplier,
                cut.less_shifts if less else cut.more_shifts,
                cut.less_weights if less else cut.more_weights,
                n,
                cut.no_shift,
                cut.weight_error,
            )
            for (part, n), cut in zip(self._several, cuts, strict=True)
        )
        question = mixed.epsilon_bounds if kind == "epsilon" else mixed.delta_bounds
        singles = [_single(pair, n, less) for pair, n in self._single]
        return question(singles, at, self._direction, mixtures)


def _single(pair: DominatingPair, steps: int, less: bool) -> mixed.Part:
    """Return a release with one shift; less noise has a larger profile."""
    part = gaussian_part(pair)
    noise = pair.most_noise if less else part.noise_multiplier
    return mixed.Part(part.sampling_probability, noise, steps)
