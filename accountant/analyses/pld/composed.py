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

# Grids that are tried for one bracket at most, each twice as fine: its width falls to a quarter,
# or to a half where losses between knots have no density. It affects widths and times.
MOST_GRIDS = 4
# Points beyond which no finer grid is tried: it would take half a second.
LONG = 2**20


class Composed(UpperEnds):
    """Brackets of the privacy profile of a composition of dominating pairs.

    Parameters are those of :class:`UpperEnds`; ``tolerance`` is the width of a bracket.
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
        known = Bounds(0.0, upper)
        for _ in range(MOST_GRIDS):
            known = self._read(asked, one).intersection(known)
            excess = self._excess(asked, one, known)
            if excess <= 1.0:
                return known
            last = one.plan.spacing
            spacing = self._spacings.fitted(0.5 * last)
            if not (2 * one.size <= LONG and spacing < last):
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
