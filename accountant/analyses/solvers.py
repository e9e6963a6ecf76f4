"""One solver for each analysis: brackets of one direction of one composition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

import numpy as np

from accountant._basics.rounding import LEAST, TINY, U, up
from accountant._core import answers as core
from accountant.analyses import renyi_conversion
from accountant.analyses.pld import Composed, TooWide
from accountant.analyses.pld.saddle_point import is_far
from accountant.analyses.solver import (
    LEAST_EPSILON,
    Question,
    Solver,
    below_crossing,
    bracket_crossing,
    capped,
    delta_listed,
    epsilon_listed,
    is_within,
)
from accountant.bounds import Bounds
from accountant.checks import MAX_COUNT
from accountant.errors import AccountantError, PrecisionError
from accountant.pairs.base import DominatingPair, Parts, gaussian_part, has_rdp, offers
from accountant.pairs.product import total

# Relative widths of brackets that grids try for, in turn.
TOLERANCES = (1e-6, 1e-4, 1e-2)
# After this many failures in a row at a tolerance, the tolerance is no longer tried.
MOST_MISSES = (2, 3, 24)
# A bracket of a contour, or of a pair's own profile, that is wider than this, relatively, is
# narrowed by another analysis.
WIDE = 1e-4
# Probabilities below count as zero.
NOTHING = 1e-280
# Number of different parts up to which the grid narrows a contour at these tolerances, and which
# costs about 0.1 s or 0.01 s a part.
BESIDE_CONTOUR = {8: TOLERANCES, 64: TOLERANCES[1:], 500: (1e-3, TOLERANCES[-1])}
# A δ below it may be the end of a grid's window, beyond which the curve may be lower.
TINY_DELTA = 1e-270


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
        if delta is None and self.variation <= NOTHING:  # no δ is larger
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


class Grid(Solver):
    """The loss distribution on a grid; Rényi where that is sharper or the grid too large."""

    name = "grid"
    reason = "every part has a loss distribution, composed on one grid"

    def __init__(self, parts: Parts, tolerances: Sequence[float] = TOLERANCES) -> None:
        super().__init__(parts)
        self._tolerances = tolerances
        self._grids: dict[float, Composed] = {}
        self._misses = [0] * len(tolerances)
        self._renyi = all(has_rdp(pair) for pair, _ in parts)
        self._left_out = total((pair.left_out, n) for pair, n in parts)
        # The profile of one release is at most the conversion of its curve.
        several = sum(n for _, n in parts) > 1
        self._sharper = several and self._renyi and any(pair.sharper_rdp for pair, _ in parts)

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

    def quick(self, asked: Question) -> float:
        """Evaluate the coarsest grid."""
        if self._far or self._misses[0] or (asked.kind == "epsilon" and asked.at == 0.0):
            return math.inf
        try:
            coarsest = self._composed(self._tolerances[-1])
            return float(_read(coarsest, asked._replace(both=False)).upper)
        except PrecisionError:
            return math.inf

    def _composed(self, tolerance: float) -> Composed:
        """Return the composition on a grid, made when first needed and kept."""
        if tolerance not in self._grids:
            self._grids[tolerance] = Composed(self.parts, tolerance=tolerance)
        return self._grids[tolerance]

    def _ask(self, asked: Question) -> tuple[Bounds | None, bool]:
        """Return the intersection of all grids' brackets, and whether one met its tolerance."""
        known: Bounds | None = None
        if self._far:
            return known, False
        for place, tolerance in enumerate(self._tolerances):
            if tolerance < asked.width < self._tolerances[-1]:
                continue
            if known is not None and is_within(known, tolerance):  # too wide for a finer one
                return known, True
            if self._misses[place] >= MOST_MISSES[place - len(self._tolerances)]:
                continue
            try:
                found = _read(self._composed(tolerance), asked).intersection(known)
                self._misses[place] = 0
                return found, True
            except PrecisionError as error:
                # Close to the largest loss no grid has an answer; at other ε it has one.
                self._misses[place] += 1
                if isinstance(error, TooWide) and error.known is not None:
                    known = error.known.intersection(known)
        return known, False

    def _answer(self, asked: Question) -> Bounds:
        if not asked.both:
            return self.upper_met(asked)[0]
        if asked.kind == "delta":
            return delta_listed(self.upper_met(asked)[0], self._left_out)
        return epsilon_listed(
            lambda delta: self.upper_met(asked._replace(at=delta))[0], asked.at, self._left_out
        )

    def upper_met(self, asked: Question) -> tuple[Bounds, bool]:
        """Return the bracket by grids, and by the curve where its upper end may be lower.

        Tell, too, whether a grid's upper end is as near as asked.
        """
        found, met = self._ask(asked)
        by_curve = self._renyi and (self._sharper or not met)
        if asked.kind == "epsilon":
            known = capped(found, total((pair.pure_epsilon, n) for pair, n in self.parts))
            if by_curve:
                curve = renyi_conversion.epsilon_upper(self.parts, asked.at, self._curve)
                known = capped(known, curve)
        else:
            known = capped(found, 1.0)
            # Beyond a grid's window its upper end is the value at the window's end.
            end = known.lower <= 0.0 if asked.both else known.upper <= TINY_DELTA
            if by_curve or (self._renyi and end):
                curve = renyi_conversion.delta_upper(self.parts, asked.at, self._curve)
                known = capped(known, curve)
        if found is None and not self._renyi and known.upper == asked.most:
            raise PrecisionError(self._out_of_reach)
        return known, met and not self._sharper

    @property
    def _out_of_reach(self) -> str:
        return (
            f"no grid in memory brackets {len(self.parts)} parts to a relative {TOLERANCES[-1]:g};"
            " give the coarse ones without a Rényi curve a bound such as PureDP or ApproximateDP"
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


def _read(composed: Composed, asked: Question) -> Bounds:
    if asked.kind == "epsilon":
        if asked.both:
            return composed.epsilon_bounds(asked.at)
        return Bounds(0.0, composed.epsilon_upper(asked.at))
    if asked.both:
        return composed.delta_bounds(asked.at)
    return Bounds(0.0, composed.delta_upper(asked.at))


def _beside_contour(parts: Parts) -> Solver:
    """Return the solver that narrows a contour's bracket; with more parts, to fewer digits."""
    for most, tolerances in BESIDE_CONTOUR.items():
        if len(parts) <= most:
            return Grid(parts, tolerances)
    return Renyi(parts)


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
        if len(parts) == 1 and gaussian_part(parts[0][0]).exact and parts[0][1] <= MAX_COUNT:
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


# Probabilities below count as zero.
LEAST_MASS = 1e-280
# Losses of one release up to which its profile is summed again and again; it affects speed alone.
MOST_LOSSES = 2**16


def inverts_itself(pair: DominatingPair) -> bool:
    """Tell whether a pair has a quick way from δ to ε."""
    return offers(pair, "inverse_profile")


def answers_itself(parts: Parts) -> bool:
    """Tell whether the parts are one release whose own profile answers."""
    if len(parts) != 1 or parts[0][1] != 1:
        return False
    pair = parts[0][0]
    return inverts_itself(pair) or (offers(pair, "profile") and _few_losses(pair))


def _few_losses(pair: DominatingPair) -> bool:
    table = pair.loss_atoms
    return table is not None and table.loss.size <= MOST_LOSSES


class OneRelease(Solver):
    """The profile of one release, and its inverse: in closed form, or a sum over few losses."""

    name = "profile"
    reason = "one release, whose profile and its inverse are computed directly"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._pair = parts[0][0]
        self._inverts = inverts_itself(self._pair)
        self._grid: Grid | None = None

    @cached_property
    def largest_loss(self) -> float:
        """The pair's own bound where no table of losses is needed for it."""
        return self._pair.pure_epsilon if self._inverts else super().largest_loss

    def _beside(self) -> Grid:
        if self._grid is None:
            self._grid = Grid(self.parts)
        return self._grid

    def answer(self, asked: Question) -> Bounds:
        """Return both ends, which are known at once."""
        asked = asked._replace(both=True)
        direct = asked.at > 0.0 if asked.kind == "epsilon" else asked.at < math.inf
        # The laws on a grid have some mass at infinity, a pair that inverts its profile has none.
        return self._once(asked) if direct and self._inverts else super().answer(asked)

    def is_below(self, asked: Question, reached: float) -> bool:
        """Tell by the profile there, which is one step of its inversion."""
        if not self._inverts or asked.kind != "epsilon":
            return False
        return float(self._pair.profile(reached).upper) <= asked.at

    def _least(self) -> float:
        if not self._inverts:
            return self._beside()._least()
        # ε does not rise with δ.
        found = self._pair.inverse_profile(LEAST_MASS)
        return 0.0 if found is None else float(found.lower)

    def _epsilon(self, delta: float) -> Bounds:
        if not self._inverts:
            return epsilon_listed(self._crossed, delta, self._pair.left_out)
        found = self._pair.inverse_profile(delta)
        if found is not None and found.upper - found.lower <= WIDE * found.upper:
            return found
        return self._beside().epsilon_bounds(delta).intersection(found)

    def _crossed(self, delta: float) -> Bounds:
        """Bracket ε where the sum over the losses is ``delta``."""
        table = self._pair.loss_atoms
        if table is None or self._side(0.0, 1) <= delta:
            return Bounds(0.0, 0.0)
        farthest = up(max(float(table.loss[-1]) + 2.0 * table.loss_error, LEAST_EPSILON))
        if self._side(farthest, 0) > delta:
            return Bounds(math.inf, math.inf)
        found = bracket_crossing(self._side, delta, 0.5 * farthest, farthest)
        if found is None:  # the mass of infinite losses is next to delta
            low = below_crossing(lambda x: self._side(x, 0), delta, farthest, farthest)
            found = Bounds(low, math.inf)
        return capped(found, self._pair.pure_epsilon)

    def _side(self, epsilon: float, side: int) -> float:
        found = self._pair.profile(epsilon)
        return float(found.upper if side else found.lower)

    def _delta(self, epsilon: float) -> Bounds:
        found = self._pair.profile(epsilon)
        if not self._inverts:
            return delta_listed(found, self._pair.left_out)
        if found.upper <= found.lower * (1.0 + WIDE) + LEAST_MASS:
            return found
        return self._beside().delta_bounds(epsilon).intersection(found)
