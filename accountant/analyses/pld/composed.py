"""The privacy loss distribution on a grid: certified brackets for any composition of pairs.

Every part gives the masses of cells of its loss. Two distributions on one grid enclose it: the
profile of one is nowhere lower, and that of the other nowhere higher. Both are tilted, composed by
FFT and evaluated, and the bracket includes every error (docs/theorems_grid.md). A composition is of
one direction; the answer of a mechanism is the larger of its two directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from accountant._rounding import TINY
from accountant.analyses.pld.composed_law import ComposedLaw, TooLarge
from accountant.analyses.pld.grid_parts import GridPart, GridPlan, largest_loss, refuse_huge
from accountant.analyses.pld.lattice import lattice_parts
from accountant.analyses.pld.memory import keep
from accountant.analyses.pld.nearly_one import NearlyOne
from accountant.analyses.pld.refinement import finer, is_steady, most_excess
from accountant.analyses.pld.saddle_point import (
    Saddle,
    coarse_law,
    gentler,
    log_share,
    saddle_at_delta,
    saddle_at_epsilon,
)
from accountant.analyses.pld.spacings import Spacings
from accountant.analyses.pld.within_memory import law_within
from accountant.bounds import Bounds
from accountant.checks import EPSILON, MAX_COUNT, Argument, count, real
from accountant.environment import to_nearest
from accountant.errors import PrecisionError
from accountant.pairs.base import DominatingPair

MEMORY_CAP = 512 * 2**20
# If a bracket is this many times too wide, the next try leaves out this share of the mass.
NEAR, TRIM = 32.0, 1e-3
# Number of points of a grid that takes a few milliseconds.
SMALL = 2**12

# So many scales of the profile, 1/tilt, may its saddle point be off.
MISSED = 1.5

# The usual logarithm of a profile's share of the tilted law, negative, and the least one planned.
USUAL, FAINTEST = 4.0, -40.0

# Of a bracket on log δ, whatever the tolerance on ε means for it.
MOST_NATS = 3.0

# log δ below which the finite part of a profile is bounded, but not measured; and that of the least
# δ for whose ε a grid is planned where masses are known below 1e-300.
FARTHEST, FARTHEST_OF_ATOMS = -640.0, -703.0
# Grids without any bracket, from which on it is given up.
MOST_BLIND = 2
# How much smaller a δ may be than its saddle point tells, in nats, where rare losses are left out.
DOUBT = 25.0

TARGET = Argument(
    "delta", "a probability in (0, 1)", lambda x: (x > 0.0) & (x < 1.0), "It is a target"
)
TOLERANCE = Argument(
    "tolerance",
    "a number in [1e-12, 0.1]",
    lambda x: (x >= 1e-12) & (x <= 0.1),
    "It is the relative width of the bracket",
)
CAP = Argument("memory_cap", "bytes >= 2**20", lambda x: x >= 2**20, "A smaller grid is useless")
COUNT = Argument(
    "count", "an integer in [0, 2**53]", lambda x: (x >= 0) & (x <= MAX_COUNT), "It counts releases"
)


class TooWide(PrecisionError):  # noqa: N818 (a bracket, not a malfunction)
    """No grid met the tolerance; ``known`` is the intersection of their brackets, or None.

    ``blind`` where none of them told the answer from nothing: a rougher one will not.
    """

    def __init__(self, message: str, known: Bounds | None = None, *, blind: bool = False) -> None:
        super().__init__(message)
        self.known = known
        self.blind = blind


class Composed:
    """Brackets of the privacy profile of a composition of dominating pairs.

    Parameters
    ----------
    parts : sequence of (DominatingPair, int)
        The pairs, all of one direction, and how often each runs (>= 0).
    tolerance : float
        The width of a bracket on ε, relative to ε, or to a hundredth of the standard deviation of
        the total loss where ε is smaller. A bracket on δ has the width this means for it. A grid of
        a million points, or half as many for several parts, is not refined where it is within
        five times the tolerance of 1e-6, and one of two million points, for several parts, within
        ten times.
    memory_cap : int
        Approximate limit, in bytes, on the memory of one evaluation.
    upper_alone : bool
        Lower ends are 0, and the first grid's upper end is the answer: about as near to the truth
        as the tolerance, which no lower end confirms.
    """

    @to_nearest
    def __init__(
        self,
        parts: Sequence[tuple[DominatingPair, int]],
        *,
        tolerance: float = 1e-6,
        memory_cap: int = MEMORY_CAP,
        upper_alone: bool = False,
    ) -> None:
        self._tolerance = float(real(TOLERANCE, tolerance))
        self._memory_cap = int(count(CAP, memory_cap))
        used = [(pair, int(count(COUNT, n))) for pair, n in parts if count(COUNT, n)]
        refuse_huge(used)
        self._laws = [coarse_law(pair, n) for pair, n in used]
        self._used = used
        lattices, self._parts = lattice_parts(used, self._laws)
        self._upper_alone = upper_alone
        self._spacings = self._spaced(lattices)
        infinite = sum(
            law.times * math.log1p(-min(law.infinite, 1.0 - 1e-16)) for law in self._laws
        )
        self._infinite = -math.expm1(infinite)
        self._nearly_one = NearlyOne(used, self._laws)
        self._done: list[ComposedLaw] = []
        self._wide: list[ComposedLaw] = []  # reach farther than they are accurate

    @to_nearest
    def delta_bounds(self, epsilon: float) -> Bounds:
        """Bracket δ(epsilon).

        Parameters
        ----------
        epsilon : float
            In nats, >= 0; may be infinite.

        Returns
        -------
        Bounds
            lower <= H(epsilon) <= upper. A finite part below 1e-277 has the lower end 0.

        Raises
        ------
        PrecisionError
            If the tolerance cannot be met within the memory cap.
        """
        epsilon = float(real(EPSILON, epsilon))
        if not self._parts:
            return Bounds(0.0, 0.0)
        if epsilon >= largest_loss(self._parts):
            return Bounds(0.0, self._infinite_upper())
        if (near := self._nearly_one.bracket(epsilon)) is not None:
            return Bounds(0.0, 1.0) if self._upper_alone else near
        parts = self._parts
        saddle = saddle_at_epsilon(self._laws, epsilon)
        if self._spacings.atoms and saddle.log_delta > FARTHEST:
            parts = self._without_rare(math.exp(min(saddle.log_delta, 0.0) - DOUBT))
            saddle = saddle_at_epsilon([part.law for part in parts], epsilon)
        if saddle.log_delta < FARTHEST:
            parts = self._parts
            saddle = saddle_at_delta(self._laws, math.exp(FARTHEST))
        if saddle.epsilon < epsilon - 4.0 / saddle.tilt - 2.0 * saddle.deviation:
            return self._far(saddle, epsilon)
        saddle = saddle._replace(epsilon=epsilon)
        # An error of ε times the slope of log δ, or a relative error of δ where that is more.
        scale = max(self._scale(saddle), 1.0 / saddle.tilt)
        wanted = min(self._tolerance * saddle.tilt * scale, MOST_NATS)

        def width(one: ComposedLaw) -> tuple[Bounds, float]:
            lower, upper = one.delta_lower(epsilon), one.delta_upper(epsilon)
            spread = math.log(upper / lower) if lower > 0.0 else math.inf
            return Bounds(min(lower, upper), upper), 0.0 if upper < 1e-300 else spread / wanted

        return self._refine(parts, saddle, scale, width, "delta")

    @to_nearest
    def epsilon_bounds(self, delta: float) -> Bounds:
        """Bracket ε(delta), the least ε >= 0 with H(ε) <= delta.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Returns
        -------
        Bounds
            lower <= ε(delta) <= upper; both infinite where the mass at infinite loss exceeds delta.

        Raises
        ------
        PrecisionError
            If the tolerance cannot be met within the memory cap.
        """
        delta = float(real(TARGET, delta))
        if not self._parts:
            return Bounds(0.0, 0.0)
        rest = delta - self._infinite
        hopeless = rest < -1e-6 * delta
        if hopeless:
            rest = delta
        rest = max(rest, 1e-3 * delta, math.exp(self._farthest))
        parts = self._without_rare(rest)
        laws = [part.law for part in parts]
        saddle = saddle_at_delta(laws, rest)
        if saddle.epsilon <= 0.0:
            saddle = saddle_at_epsilon(laws, 0.0)._replace(epsilon=0.0)
            # Far above H(0) a rough grid shows that ε is zero.
            distance = rest / math.exp(max(min(saddle.log_delta, 0.0), FARTHEST)) - 1.0
            scale = max(self._scale(saddle), min(distance, 0.01 / self._tolerance) * saddle.spread)
        else:
            scale = self._scale(saddle)

        def width(one: ComposedLaw) -> tuple[Bounds, float]:
            step = 1e-3 * self._tolerance * self._scale(saddle)
            upper = one.epsilon_upper(delta, step)
            lower = min(one.epsilon_lower(delta, step), upper)
            if lower == upper or (hopeless and self._upper_alone):
                return Bounds(lower, upper), 0.0
            above = upper
            if hopeless and lower > 0.0 and delta + one.infinite_upper < 1.0:
                # No grid has an upper end: it is fine enough where finite losses alone would do.
                above = one.epsilon_upper(delta + one.infinite_upper, step)
            if above == math.inf:
                return Bounds(lower, upper), math.inf
            size = max(above, 0.01 * saddle.spread)
            return Bounds(lower, upper), max(above - lower, 0.0) / (size * self._tolerance)

        # Where masses are hardly told from nothing, a finer grid tells no more.
        blind = MOST_BLIND if delta < math.exp(FARTHEST) else 0
        return self._refine(parts, saddle, scale, width, "epsilon", blind=blind)

    @property
    def held(self) -> int:
        """Bytes kept for the next question."""
        return sum(one.held for one in (*self._done, *self._wide))

    def forget(self) -> None:
        """Free what is kept for the next question."""
        self._done, self._wide = [], []

    def _far(self, saddle: Saddle, epsilon: float) -> Bounds:
        """Bracket a δ whose finite part is too small to resolve, by that at a smaller ε."""
        scale = max(self._scale(saddle), 1.0 / saddle.tilt)

        def bracket(one: ComposedLaw) -> tuple[Bounds, float]:
            upper = one.delta_upper(epsilon)
            known = 0.0 if one.high >= saddle.epsilon else math.inf
            return Bounds(min(one.delta_lower(epsilon), upper), upper), known

        return self._refine(self._parts, saddle, scale, bracket, "delta", near=False)

    def _infinite_upper(self) -> float:
        """Bound the mass at infinite loss."""
        log_finite = sum(
            n * math.log1p(-min(pair.infinite_mass, 1.0 - 1e-16)) for pair, n in self._used
        )
        return min(abs(math.expm1(log_finite)) * (1.0 + 1e-12), 1.0)

    @property
    def _farthest(self) -> float:
        """The logarithm of the least δ for which a grid is planned."""
        tables = [pair.loss_atoms for pair, _ in self._used]
        known = all(one is not None and one.absolute_error < TINY for one in tables)
        return FARTHEST_OF_ATOMS if known else FARTHEST

    def _scale(self, saddle: Saddle) -> float:
        return max(abs(saddle.epsilon), 0.01 * saddle.spread, 1e-12)

    def _without_rare(self, delta: float) -> tuple[GridPart, ...]:
        """Return the parts with losses too rare to matter at ``delta`` left out of the plan.

        They may rule the tilt, though they hardly count: their mass goes to infinite loss.
        """
        if self._spacings.pure:
            return self._parts
        rare = 0.02 * self._tolerance * delta / len(self._parts)
        return tuple(part if part.pure else part.without_rare(rare) for part in self._parts)

    def _refine(
        self,
        parts: Sequence[GridPart],
        saddle: Saddle,
        scale: float,
        width: Callable[[ComposedLaw], tuple[Bounds, float]],
        name: str,
        *,
        near: bool = True,
        blind: int = 0,
    ) -> Bounds:
        """Evaluate ever finer grids until ``width`` is at most one.

        ``blind`` of the grids that may have no bracket are not to be tried.
        """
        known: Bounds | None = None
        for one in (*self._done, *self._wide) if near else self._done:
            if one.covers(saddle.epsilon):
                bounds, excess = width(one)
                known = bounds.intersection(known)
                if self._is_narrow(one, excess):
                    return known
        parts = self._loosened(parts, saddle, scale)
        if name != "epsilon":
            saddle = self._gentler(parts, saddle)
        spacing, best, size = self._spacings.first(parts, saddle, scale), math.inf, 0
        trim, tried, unlucky, moved, last = 1.0, False, False, name != "epsilon", 0.0
        beyond = False  # whether an answer lay beyond a window
        before = (math.inf, math.inf)  # the last excess, and its spacing
        for _ in range(6):
            plan = self._plan(parts, saddle, scale, spacing, trim)
            try:
                one, spacing = law_within(parts, plan, self._memory_cap, last)
            except TooLarge as refusal:
                size = refusal.size
                break
            last = 0.0 if self._spacings.lattices else spacing
            bounds, excess = width(one)
            # Every grid certifies its bracket, however wide.
            known = bounds.intersection(known)
            size = one.size
            if self._is_narrow(one, excess):
                self._remember(one, trimmed=trim != 1.0)
                return known
            at = float(bounds.upper) if name == "epsilon" else saddle.epsilon
            if not moved and abs(at - saddle.epsilon) * saddle.tilt > MISSED and at < math.inf:
                # Few rare large losses: their variance says little about the profile at the answer.
                # Beyond the window there is none but the largest loss, which is seldom near it.
                near_by = at if beyond else min(at, one.high)
                moved, beyond = near_by == at, True
                saddle = self._moved(parts, saddle, near_by)
                continue
            if self._upper_alone:
                if bounds.upper < (math.inf if name == "epsilon" else 1.0):
                    return known
                if name == "delta" and near and one.is_nearly_one(at):
                    return known
            blind += excess == math.inf
            if blind > MOST_BLIND:
                break
            if trim == 1.0 and excess < math.inf and one.omitted_share(at) > 0.5:
                # What is left out, and not the spacing, makes the bracket wide.
                best, trim = min(best, excess), TRIM if excess < NEAR else TRIM**2
                continue
            if tried and not (excess < 0.9 * best) and best < math.inf:
                # Isolated atoms fall on or between grid points, so one small grid may do badly.
                if unlucky or size > SMALL:
                    break
                unlucky = True
            steady = not tried or is_steady(excess / before[0], spacing / before[1])
            best, tried, before = min(best, excess), True, (excess, spacing)
            share = finer(excess, size, len(self._parts), self._tolerance, steady=steady)
            spacing = self._spacings.fitted(spacing * share)
        raise self._too_wide(name, size, best, known)

    def _loosened(
        self, parts: Sequence[GridPart], saddle: Saddle, scale: float
    ) -> Sequence[GridPart]:
        """Give up the lattices that a grid need not contain, from now on; return the parts."""
        found = self._spacings.loosened(saddle, scale)
        if found is None:
            return parts
        lattices, self._parts = found
        self._spacings = self._spaced(lattices, contained=len(lattices) == 1)
        return self._parts

    def _spaced(self, lattices: tuple[float, ...], *, contained: bool = False) -> Spacings:
        return Spacings(
            lattices,
            self._parts,
            self._tolerance,
            upper_alone=self._upper_alone,
            contained=contained,
        )

    def _is_narrow(self, one: ComposedLaw, excess: float) -> bool:
        return excess <= most_excess(one.size, len(self._parts), self._tolerance)

    def _moved(self, parts: Sequence[GridPart], saddle: Saddle, epsilon: float) -> Saddle:
        """Return the saddle point at ``epsilon``, for the same δ."""
        found = saddle_at_epsilon([part.law for part in parts], epsilon)
        found = found._replace(epsilon=epsilon, log_delta=saddle.log_delta)
        return self._gentler(parts, found)

    def _gentler(self, parts: Sequence[GridPart], saddle: Saddle) -> Saddle:
        return gentler([part.law for part in parts], saddle, self._tolerance)

    def _remember(self, law: ComposedLaw, *, trimmed: bool) -> None:
        """Keep a law that met the tolerance for the next question."""
        if trimmed:
            self._wide = [law]
        else:
            self._done = [law, *self._done[:1]]
        keep(self)

    def _too_wide(self, name: str, size: int, excess: float, known: Bounds | None) -> TooWide:
        return TooWide(
            f"{name} must be bracketed within a relative {self._tolerance:g}, but a grid of"
            f" {size} points reached {excess * self._tolerance:g} with memory_cap="
            f"{self._memory_cap}. Raise memory_cap or tolerance",
            known,
            blind=known is not None and excess == math.inf,
        )

    def _plan(
        self, parts: Sequence[GridPart], saddle: Saddle, scale: float, spacing: float, trim: float
    ) -> GridPlan:
        fine = math.log(1e-3 * trim * self._tolerance * min(1.0, saddle.tilt * scale))
        share = log_share([part.law for part in parts], saddle)
        loss = fine + min(max(share, FAINTEST) + USUAL, 0.0)
        tail = fine + min(saddle.log_delta, 0.0)
        return GridPlan(saddle, spacing, tail, loss, self._upper_alone)
