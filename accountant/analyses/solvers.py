"""One solver for each analysis: brackets of one direction of one composition."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np

from accountant._core import answers as core
from accountant._rounding import U
from accountant.analyses import mixed, renyi_conversion
from accountant.analyses.brackets import capped, is_within
from accountant.analyses.direct import Direct
from accountant.analyses.far_losses import is_far
from accountant.analyses.not_listed import delta_listed, epsilon_listed
from accountant.analyses.other_bounds import bounded_otherwise
from accountant.analyses.pld import Composed
from accountant.bounds import Bounds
from accountant.errors import AccountantError, PrecisionError
from accountant.pairs.base import GaussianPart, Parts, has_rdp
from accountant.pairs.sums import infinite_mass, total, variation
from accountant.tolerances import TOLERANCES, wanted_tolerances

# After this many failures in a row at a tolerance, the tolerance is no longer tried.
MOST_MISSES = (2, 3, 24)

# A contour's bracket wider than this, relatively, is narrowed by another analysis. Probabilities
# below LEAST count as zero.
WIDE = 1e-4
LEAST = 1e-280
# Number of different parts up to which the grid narrows a contour at these tolerances, and which
# costs about 0.1 s or 0.01 s a part.
BESIDE_CONTOUR = {8: TOLERANCES, 64: TOLERANCES[1:], 500: (1e-3, TOLERANCES[-1])}
NEAR_ONE = (1.0 - 1e-9, 1.0 - 1e-4, 0.9)  # whose ε tells that another ε has no smaller δ
NEGLIGIBLE = 1e-12  # absolute width of a δ for which no grid is computed

MOST_ANSWERS = 512  # that a solver caches

Bracket: TypeAlias = Callable[..., tuple[float, float]]
GaussianParts: TypeAlias = list[tuple[GaussianPart, int]]


class Solver(ABC):
    """Brackets for the parts of one direction; states its name and why it was chosen."""

    name: str
    reason: str
    # Whether data sets reach its lower ends, though they reach no pair of the parts.
    reaches = False

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._variation: float | None = None
        self._answers: dict[tuple[str, float], Bounds] = {}

    @property
    def variation(self) -> float:
        """An upper bound on every δ; usually the probability that the record is used at all."""
        if self._variation is None:
            self._variation = variation(self.parts)
        return self._variation

    def epsilon_bounds(self, delta: float) -> Bounds:
        """Bracket ε(delta), 0 <= delta < 1."""
        if delta == 0.0:
            # At δ = 0 the losses must be bounded, and the bounds add up.
            pure = total((pair.pure_epsilon, n) for pair, n in self.parts)
            upper = min(pure, self.largest_loss)
            return Bounds(min(self._least(), upper), upper)
        failing = infinite_mass(self.parts)
        if failing >= 1.0:
            return Bounds(0.0, math.inf)
        if self.variation <= delta:
            return Bounds(0.0, 0.0)
        found = self._once("epsilon", delta, self._epsilon)
        if found.upper < math.inf and failing == 0.0:
            return found
        return capped(found, bounded_otherwise(self.parts, delta, failing))

    def delta_bounds(self, epsilon: float) -> Bounds:
        """Bracket δ(epsilon), 0 <= epsilon <= inf."""
        if epsilon == math.inf:
            return Bounds(0.0, infinite_mass(self.parts))
        pure = total((pair.pure_epsilon, n) for pair, n in self.parts)
        if epsilon >= min(pure, self.largest_loss):
            return Bounds(0.0, 0.0)
        return capped(self._once("delta", epsilon, self._delta), self.variation)

    @cached_property
    def largest_loss(self) -> float:
        """An upper bound on the loss, and so on ε at any δ; infinite where it has none."""
        if infinite_mass(self.parts) > 0.0:
            return math.inf
        return total((max(pair.support[1], 0.0), n) for pair, n in self.parts)

    def quick_epsilon_upper(self, delta: float) -> float:
        """Bound ε(delta) from above at little cost; infinite where no such bound is known."""
        return math.inf

    def quick_delta_upper(self, epsilon: float) -> float:
        """Bound δ(epsilon) from above at little cost; infinite where no such bound is known."""
        return math.inf

    def _once(self, kind: str, at: float, ask: Callable[[float], Bounds]) -> Bounds:
        """Cache answers: a later evaluation could depend on what was computed in between."""
        found = self._answers.get((kind, at))
        if found is None:
            found = ask(at)
            if len(self._answers) >= MOST_ANSWERS:
                self._answers.clear()
            self._answers[kind, at] = found
        return found

    def _least(self) -> float:
        """Bound ε(0) from below."""
        return 0.0

    @abstractmethod
    def _epsilon(self, delta: float) -> Bounds: ...

    @abstractmethod
    def _delta(self, epsilon: float) -> Bounds: ...


class BesideGrid(Solver):
    """A contour's bracket, intersected with the grid's where it is wide."""

    _other: Solver | None = None
    # A δ below it counts as zero.
    _least_delta = 1e-305

    def _beside(self) -> Solver:
        if self._other is None:
            self._other = _beside_contour(self.parts)
        return self._other

    def _narrowed(
        self, found: Bounds, *, delta: float | None = None, epsilon: float | None = None
    ) -> Bounds:
        """Intersect a wide bracket with that of the grid, or of Rényi for many parts.

        The transform of a few steps decays slowly, so that the contour may resolve it poorly.
        """
        if is_within(found, WIDE) or found.upper <= self._least_delta:
            return found
        if delta is None and self.variation <= LEAST:  # no δ is larger
            return found
        try:
            if delta is not None:
                bounds = self._beside().epsilon_bounds(delta)
            else:
                bounds = self._beside().delta_bounds(0.0 if epsilon is None else epsilon)
        except AccountantError:
            return found
        upper = min(float(found.upper), float(bounds.upper))
        return Bounds(min(max(float(found.lower), float(bounds.lower)), upper), upper)


class Contour(BesideGrid):
    """Subsampled Gaussians: the transform of the loss inverted on a contour."""

    name = "contour"
    reason = "all parts are (subsampled) Gaussian noise, whose transform is inverted on a contour"

    def __init__(self, parts: Parts, gaussian: Sequence[GaussianPart]) -> None:
        super().__init__(parts)
        self.upper = [(part, n) for part, (_, n) in zip(gaussian, parts, strict=True)]

    @cached_property
    def _lower(self) -> GaussianParts:
        # Less noise has a larger profile, so lower ends use the other end of an inexact multiplier.
        return [
            (part._replace(noise_multiplier=pair.most_noise), n)
            for (pair, _), (part, n) in zip(self.parts, self.upper, strict=True)
        ]

    def _least(self) -> float:
        return math.inf

    def _epsilon(self, delta: float) -> Bounds:
        found = self._bracket(delta, core.epsilon_bounds, mixed.epsilon_bounds)
        return self._narrowed(found, delta=delta)

    def _delta(self, epsilon: float) -> Bounds:
        found = self._bracket(epsilon, core.delta_bounds, mixed.delta_bounds)
        return self._narrowed(found, epsilon=epsilon)

    def _bracket(self, at: float, single: Bracket, several: Bracket) -> Bounds:
        # A plain part is its own reverse, so it fits either direction.
        direction = core.ADD if any(part.add for part, _ in self.upper) else core.REMOVE

        def bracket(parts: GaussianParts) -> tuple[float, float]:
            rows = [mixed.Part(q, sigma, n) for (q, sigma, _), n in parts]
            if len(rows) == 1:
                return single(*rows[0], at, direction)
            return several(rows, at, direction)

        lower, upper = bracket(self.upper)
        if self._lower != self.upper:
            lower = min(lower, bracket(self._lower)[0])
        return Bounds(lower, upper)


class Grid(Solver):
    """The loss distribution on a grid; Rényi where that is sharper or the grid too large."""

    name = "grid"
    reason = "every part has a loss distribution, composed on one grid"

    def __init__(
        self,
        parts: Parts,
        tolerances: Sequence[float] | None = None,
        *,
        upper_alone: bool = False,  # lower ends say nothing
    ) -> None:
        super().__init__(parts)
        self._tolerances = tolerances = tolerances or wanted_tolerances()
        self._upper_alone = upper_alone
        self._grids: dict[float, Composed] = {}
        self._misses = [0] * len(tolerances)
        self._renyi = all(has_rdp(pair) for pair, _ in parts)
        self._direct = Direct(parts)
        self._left_out = total((pair.left_out, n) for pair, n in parts)
        # The profile of one release is at most the conversion of its curve.
        sharper = not self._direct.is_lone and self._renyi
        self._sharper = sharper and any(pair.sharper_rdp for pair, _ in parts)

    @cached_property
    def _curve(self) -> Callable[[float], float]:
        # The scan of orders is the same for every question.
        return lru_cache(maxsize=4096)(renyi_conversion.curve_of(self.parts))

    @cached_property
    def _far(self) -> bool:
        return self._renyi and any(is_far(pair) for pair, _ in self.parts)

    def _least(self) -> float:
        # Losses just below the end of every support add up (Theorem M2 on the edges).
        ends = []
        for pair, n in self.parts:
            high = pair.support[1]
            edge = high - 1e-9 * abs(high) - 4.0 * pair.loss_error
            if not (0.0 < edge < math.inf and pair.masses(np.array([edge])).p[-1] > 1e-290):
                return 0.0
            ends.append(n * (edge - pair.loss_error))
        return math.fsum(ends) * (1.0 - 8.0 * U)

    def quick_epsilon_upper(self, delta: float) -> float:
        """Evaluate the coarsest grid; what needs none has no cheaper bound than its answer."""
        if delta == 0.0 or self._direct.is_known():
            return math.inf
        return self._roughly(lambda rough: rough.epsilon_bounds(delta))

    def quick_delta_upper(self, epsilon: float) -> float:
        """Evaluate the coarsest grid; what needs none has no cheaper bound than its answer."""
        if self._direct.is_known():
            return math.inf
        return self._roughly(lambda rough: rough.delta_bounds(epsilon))

    def _roughly(self, question: Callable[[Composed], Bounds]) -> float:
        if self._far or self._misses[0]:
            return math.inf
        try:
            return float(question(self._composed(self._tolerances[-1])).upper)
        except PrecisionError:
            return math.inf

    def _composed(self, tolerance: float) -> Composed:
        """Return the composition on a grid, made when first needed and kept."""
        if tolerance not in self._grids:
            from accountant.analyses.pld import Composed

            grid = Composed(self.parts, tolerance=tolerance, upper_alone=self._upper_alone)
            self._grids[tolerance] = grid
        return self._grids[tolerance]

    def _ask(
        self, question: Callable[[Composed], Bounds], first: int = 0
    ) -> tuple[Bounds | None, bool]:
        """Return the intersection of all grids' brackets, and whether one met its tolerance."""
        known: Bounds | None = None
        if self._far:
            return known, False
        for place, tolerance in enumerate(self._tolerances):
            if known is not None and is_within(known, tolerance):  # too wide for a finer one
                return known, True
            missed = self._misses[place] >= MOST_MISSES[place - len(self._tolerances)]
            if place < first or missed:
                continue
            try:
                return question(self._composed(tolerance)).intersection(known), self._met(place)
            except PrecisionError as error:
                # Close to the largest loss no grid has an answer; at other ε it has one.
                self._misses[place] += 1
                wide: Bounds | None = getattr(error, "known", None)
                known = known if wide is None else wide.intersection(known)
                if getattr(error, "blind", False):
                    break
        return known, False

    def _met(self, place: int) -> bool:
        self._misses[place] = 0
        return True

    def _epsilon(self, delta: float) -> Bounds:
        return epsilon_listed(self._counted_epsilon, delta, self._left_out)

    def _delta(self, epsilon: float) -> Bounds:
        return delta_listed(self._counted_delta(epsilon), self._left_out)

    def _counted_epsilon(self, delta: float) -> Bounds:
        """Bracket ε(delta) where what was left out is infinite loss."""
        pure = total((pair.pure_epsilon, n) for pair, n in self.parts)
        exact = self._direct.epsilon_bounds(delta)
        if exact is not None and not self._sharper and is_within(exact, TOLERANCES[0]):
            return capped(exact, pure)
        found, narrow = self._ask(lambda composed: composed.epsilon_bounds(delta))
        known = capped(found, pure)
        known = known if exact is None else known.intersection(exact)
        if self._renyi and (self._sharper or not narrow):
            known = capped(known, self._renyi_epsilon(delta))
        elif found is None and not known.upper < math.inf:
            raise PrecisionError(self._out_of_reach)
        return known

    def _counted_delta(self, epsilon: float) -> Bounds:
        """Bracket δ(epsilon) where what was left out is infinite loss."""
        exact = self._direct.delta_bounds(epsilon)
        if exact is not None and not self._sharper and self._settles(exact):
            return exact
        # Masses that do not decide it at two edges take a grid long to narrow down.
        found, narrow = self._ask(
            lambda composed: composed.delta_bounds(epsilon), int(exact is not None)
        )
        if exact is None and (found is None or found.lower < NEAR_ONE[-1] < found.upper):
            # It is only the lower end that a δ near 1 raises.
            one = Bounds(0.0, 1.0) if self._upper_alone else self._nearly_one(epsilon)
            found = one.intersection(found)
            if not (self._renyi or found.lower > 0.0 or found.upper < 1.0):
                raise PrecisionError(self._out_of_reach)
        known = Bounds(0.0, 1.0).intersection(found).intersection(exact)
        # Beyond a grid's window its upper end is the value at the window's end.
        if self._renyi and (self._sharper or not narrow or known.lower <= 0.0):
            known = capped(known, self._renyi_delta(epsilon))
        return known

    def _nearly_one(self, epsilon: float) -> Bounds:
        """Bracket a δ far above the saddle point's by a δ near 1 that has a larger ε."""
        for delta in NEAR_ONE:
            found, _ = self._ask(lambda composed, at=delta: composed.epsilon_bounds(at))  # type: ignore[misc]
            # Only where that ε is positive: at 0 it may be the end of its range, not the root.
            if found is not None and found.lower >= epsilon and found.lower > 0.0:
                return Bounds(delta, 1.0)
        return Bounds(0.0, 1.0)

    def _settles(self, found: Bounds) -> bool:
        """Tell whether a bracket without a grid is as narrow as one with it, or nearly."""
        lower, upper = float(found.lower), float(found.upper)
        # The error of the losses limits every grid, and a negligible δ needs no narrow bracket.
        wide = min(max(TOLERANCES[0], 64.0 * self._direct.loss_error), TOLERANCES[-1])
        if upper - lower <= NEGLIGIBLE:
            wide = max(wide, TOLERANCES[1])
        return upper <= max(lower * (1.0 + wide), LEAST)

    def _renyi_epsilon(self, delta: float) -> float:
        return renyi_conversion.epsilon_upper(self.parts, delta, self._curve)

    def _renyi_delta(self, epsilon: float) -> float:
        return renyi_conversion.delta_upper(self.parts, epsilon, self._curve)

    @property
    def _out_of_reach(self) -> str:
        return (
            f"no grid that fits into memory brackets {len(self.parts)} parts to a relative"
            f" {TOLERANCES[-1]:g}, and some have no Rényi curve to fall back on; give the coarse"
            " parts a bound such as PureDP or ApproximateDP"
        )


class Renyi(Solver):
    """Rényi divergences, added up and converted: from above only."""

    name = "renyi"
    reason = "some part is known by its Rényi curve alone"

    def _epsilon(self, delta: float) -> Bounds:
        pure = total((pair.pure_epsilon, n) for pair, n in self.parts)
        return Bounds(0.0, min(renyi_conversion.epsilon_upper(self.parts, delta), pure))

    def _delta(self, epsilon: float) -> Bounds:
        return Bounds(0.0, renyi_conversion.delta_upper(self.parts, epsilon))


def _beside_contour(parts: Parts) -> Solver:
    """Return the solver that narrows a contour's bracket; with more parts, to fewer digits."""
    for most, tolerances in BESIDE_CONTOUR.items():
        if len(parts) <= most:
            return Grid(parts, tolerances)
    return Renyi(parts)
