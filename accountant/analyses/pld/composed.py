"""Both ends of a bracket on a grid: the lower ends, and the refinement until they meet.

A second law on the grid has a profile that is nowhere higher. It is composed only when a lower end
is asked for, and grids are refined until the bracket meets its tolerance.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

from accountant.analyses.pld.composed_law import ComposedLaw
from accountant.analyses.pld.loss_grid import largest_loss
from accountant.analyses.pld.upper import MEMORY_CAP, TARGET, Aim, TooWide, UpperEnds
from accountant.bounds import Bounds
from accountant.checks import EPSILON, real
from accountant.environment import to_nearest
from accountant.errors import PrecisionError
from accountant.pairs.base import DominatingPair

# Grids that are tried for one bracket at most.
MOST_GRIDS = 5
# The width falls like the square of the spacing: the next grid aims at this share of what does.
AIM = 0.8
# The next spacing is at least and at most these shares of the last.
LEAST_SHARE = 0.125
MOST_SHARE = 0.7
# A width that fell by less than this power of the spacing is left as it is: a grid that would do
# takes seconds.
STEADY = 1.5
# Where a grid of more points would be needed, which takes half a second, none is tried.
LONG = 2**20
# Nor are grids of more points than this whose bracket is at most NEARLY times as wide as wanted.
HUGE = 2**19
NEARLY = 5.0


class Composed(UpperEnds):
    """Brackets of the privacy profile of a composition of dominating pairs.

    Parameters are those of :class:`UpperEnds`; ``tolerance`` is the width of a bracket. A grid of
    half a million points is not refined where the bracket is within five times the tolerance.
    """

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
        return self._bracket(self._about_delta(epsilon))

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
        return self._bracket(self._about_epsilon(delta))

    def _bracket(self, asked: Aim) -> Bounds:
        """Refine the grid of the upper end until the lower one is near."""
        upper, one = self._upper(asked)
        known, before, share = Bounds(0.0, upper), math.inf, 1.0
        for _ in range(MOST_GRIDS):
            known = self._read(asked, one).intersection(known)
            excess = self._excess(asked, one, known)
            if excess <= (NEARLY if one.size > HUGE else 1.0):
                return known
            wanted = AIM / math.sqrt(excess) if excess < math.inf else 0.0
            # Losses between knots have no density: the width falls like the spacing, if at all.
            slowly = before < math.inf and excess > before * share**STEADY
            if slowly or not one.size <= wanted * LONG:
                break
            before, share = excess, min(max(wanted, LEAST_SHARE), MOST_SHARE)
            last = one.plan.spacing
            spacing = self._spacings.fitted(last * share)
            if not spacing < last:
                break
            try:
                one = self._law(asked, one.plan._replace(spacing=spacing), last)
            except TooWide:
                break
        raise TooWide(
            f"{asked.name} must be bracketed within a relative {self._tolerance:g}, but a grid of"
            f" {one.size} points reached {excess * self._tolerance:g} with memory_cap="
            f"{self._memory_cap}. Raise memory_cap or tolerance",
            known,
        )

    def _read(self, asked: Aim, one: ComposedLaw) -> Bounds:
        upper, lower = asked.upper(one, self._tolerance), 0.0
        with contextlib.suppress(PrecisionError):  # the round-off of the lower law exceeds it
            if asked.name == "delta":
                lower = one.delta_lower(asked.at)
            else:
                lower = one.epsilon_lower(asked.at, 1e-6 * self._tolerance * asked.scale)
        return Bounds(min(lower, upper), upper)

    def _excess(self, asked: Aim, one: ComposedLaw, known: Bounds) -> float:
        """Return how many times as wide a bracket is as it may be."""
        lower, upper = float(known.lower), float(known.upper)
        if lower == upper:
            return 0.0
        if asked.name == "delta":
            if asked.wanted == math.inf or upper < 1e-300:
                return 0.0
            return math.log(upper / lower) / asked.wanted if lower > 0.0 else math.inf
        if upper == math.inf and asked.at + one.infinite_upper < 1.0:
            # No grid has an upper end: it is fine enough where finite losses alone would do.
            upper = asked._replace(at=asked.at + one.infinite_upper).upper(one, 1.0)
        if upper == math.inf:
            return math.inf
        size = max(upper, 0.01 * asked.saddle.spread)
        return max(upper - lower, 0.0) / (size * self._tolerance)


@to_nearest
def delta_bounds(
    parts: Sequence[tuple[DominatingPair, int]],
    epsilon: float,
    *,
    tolerance: float = 1e-6,
    memory_cap: int = MEMORY_CAP,
) -> Bounds:
    """Bracket δ(epsilon) of the composition of ``parts``; see :class:`Composed`."""
    return Composed(parts, tolerance=tolerance, memory_cap=memory_cap).delta_bounds(epsilon)


@to_nearest
def epsilon_bounds(
    parts: Sequence[tuple[DominatingPair, int]],
    delta: float,
    *,
    tolerance: float = 1e-6,
    memory_cap: int = MEMORY_CAP,
) -> Bounds:
    """Bracket ε(delta) of the composition of ``parts``; see :class:`Composed`."""
    return Composed(parts, tolerance=tolerance, memory_cap=memory_cap).epsilon_bounds(delta)
