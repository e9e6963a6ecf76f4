"""Different releases of Gaussian noise, of which some move the noise at random.

The parts are plain, subsampled, and mixtures of shifts (users with several records, repeated draws,
mixtures), all in one direction. One line serves all of them: the transform of their total loss is
the product of theirs (docs/theorems_mixtures.md, Theorem D9).
"""

from __future__ import annotations

import math

from accountant._core import answers as core
from accountant.analyses import mixed
from accountant.analyses.gaussian_mixtures import CutContour
from accountant.analyses.shift_cuts import ShiftCut, covers, cut_shifts, shifts_of
from accountant.pairs.base import DominatingPair, Parts, gaussian_part


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
