"""What is asked of an analysis of one direction, and what every analysis answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from accountant._basics.rounding import ratio_down
from accountant._core import answers as core
from accountant.bounds import Bounds
from accountant.pairs.base import Parts
from accountant.pairs.product import infinite_mass, root_of_squares, total, variation
from accountant.search import DOUBLES, crossing

# A search for an ε ends when its two sides are this close, relatively.
CLOSE = 1e-12
# The least ε that is looked for.
LEAST_EPSILON = 1e-300
# Lower ends that are tried, each four times as far below the crossing as the one before.
TRIES = 40


def capped(bounds: Bounds | None, most: float) -> Bounds:
    """Lower the upper end to ``most``.

    A Rényi curve may bound the mechanism itself, while the losses are those of a dominating pair.
    If the ends cross, the lower end belongs to the pair and is no bound on the mechanism.
    """
    if bounds is None:
        return Bounds(0.0, most)
    if bounds.upper <= most:
        return bounds
    upper = min(float(bounds.upper), most)
    return Bounds(float(bounds.lower) if bounds.lower <= upper else 0.0, upper)


def is_within(bounds: Bounds, tolerance: float) -> bool:
    """Tell whether a bracket is as narrow as ``tolerance`` asks, relatively."""
    lower, upper = float(bounds.lower), float(bounds.upper)
    return upper < math.inf and upper - lower <= tolerance * upper


def bounded_otherwise(parts: Parts, delta: float, failing: float) -> float:
    """Bound ε(delta), 0 < delta < 1, by the largest finite losses, or by GDP; infinite if unknown.

    ``failing`` is at least the probability of an infinite loss.
    """
    known = math.inf
    if failing <= delta:
        # Above every finite loss the profile is the mass of the infinite ones.
        known = total((max(pair.support[1], 0.0), n) for pair, n in parts)
    if known == math.inf:
        mu = root_of_squares((pair.mu, n) for pair, n in parts)
        if 0.0 < mu < math.inf:
            least = ratio_down(1.0, mu)
            known = float(core.epsilon_bounds(1.0, least, 1.0, delta, core.REMOVE)[1])
    return known


def epsilon_listed(counted: Callable[[float], Bounds], delta: float, left_out: float) -> Bounds:
    """Return ``counted(delta)``, its lower end that of a profile smaller by ``left_out``.

    That mass was not listed, and is infinite loss in the upper end alone.
    """
    found = counted(delta)
    if not left_out > 0.0 or not found.lower > 0.0:
        return found
    more = math.nextafter(delta + left_out, 2.0)
    lower = float(counted(more).lower) if more < 1.0 else 0.0
    return Bounds(min(lower, float(found.upper)), found.upper)


def delta_listed(found: Bounds, left_out: float) -> Bounds:
    """Return a bracket of δ, its lower end smaller by ``left_out``."""
    if not left_out > 0.0 or not found.lower > 0.0:
        return found
    return Bounds(max(math.nextafter(float(found.lower) - left_out, 0.0), 0.0), found.upper)


def bracket_crossing(
    side: Callable[[float, int], float], delta: float, guess: float, farthest: float
) -> Bounds | None:
    """Bracket the ε in (0, ``farthest``] where a falling profile is ``delta``; None if none is.

    ``side(ε, 0)`` bounds it from below, and ``side(ε, 1)`` from above. The latter is at most
    ``delta`` at the upper end, and the former above it at the lower one: both were evaluated.
    """
    above = above_crossing(lambda x: side(x, 1), delta, guess, farthest)
    if above is None:
        return None
    return Bounds(below_crossing(lambda x: side(x, 0), delta, above, above), above)


def above_crossing(
    upper: Callable[[float], float],
    delta: float,
    guess: float,
    farthest: float,
    *,
    nearest: float = LEAST_EPSILON,
    close: float = CLOSE,
) -> float | None:
    """Return an ε between the ends where a falling bound is at most ``delta``; None if none is.

    It is above ``delta`` where ε is smaller by a share of ``close``.
    """
    ends = DOUBLES.rank(nearest), DOUBLES.rank(farthest)
    rank = crossing(upper, delta, DOUBLES, guess, ends, True, close)
    return None if rank is None else DOUBLES.value(rank)


def below_crossing(
    lower: Callable[[float], float],
    delta: float,
    guess: float,
    farthest: float,
    *,
    nearest: float = LEAST_EPSILON,
    close: float = CLOSE,
) -> float:
    """Return an ε between the ends where a falling bound is above ``delta``, or 0."""
    found = above_crossing(lower, delta, guess, farthest, nearest=nearest, close=close)
    below = found or 0.0
    tried = (below * (1.0 - close * 4.0**k) for k in range(TRIES))
    return next((at for at in tried if at >= nearest and lower(at) > delta), 0.0)


# Answers that a solver keeps; it affects speed alone.
MOST_ANSWERS = 512


class Question(NamedTuple):
    """ε at a δ in [0, 1), or δ at an ε in [0, inf]: a bracket, or its upper end alone."""

    kind: str  # of the answer: "epsilon" or "delta"
    at: float
    both: bool = True
    width: float = 1e-6  # relative: nothing more is computed for a narrower bracket

    @property
    def most(self) -> float:
        """The largest answer."""
        return math.inf if self.kind == "epsilon" else 1.0


class Solver:
    """Brackets for the parts of one direction; states its name and why it was chosen.

    Subclasses have :meth:`_epsilon` and :meth:`_delta`, and :meth:`_upper_epsilon` and
    :meth:`_upper_delta` where an upper end alone costs less; or :meth:`_answer` in place of all.
    """

    name: str
    reason: str
    # Whether data sets reach its lower ends, though they reach no pair of the parts.
    reaches = False

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._answers: dict[Question, Bounds] = {}

    @cached_property
    def variation(self) -> float:
        """An upper bound on every δ; usually the probability that the record is used at all."""
        return variation(self.parts)

    @cached_property
    def largest_loss(self) -> float:
        """An upper bound on the loss, and so on ε at any δ; infinite where it has none."""
        if infinite_mass(self.parts) > 0.0:
            return math.inf
        return total((max(pair.support[1], 0.0), n) for pair, n in self.parts)

    def epsilon_upper(self, delta: float) -> float:
        """Bound ε(delta), 0 <= delta < 1, from above; nothing is asked of a lower end."""
        return float(self.answer(Question("epsilon", delta, both=False)).upper)

    def epsilon_bounds(self, delta: float) -> Bounds:
        """Bracket ε(delta), 0 <= delta < 1."""
        return self.answer(Question("epsilon", delta))

    def delta_upper(self, epsilon: float) -> float:
        """Bound δ(epsilon), 0 <= epsilon <= inf, from above."""
        return float(self.answer(Question("delta", epsilon, both=False)).upper)

    def delta_bounds(self, epsilon: float) -> Bounds:
        """Bracket δ(epsilon), 0 <= epsilon <= inf."""
        return self.answer(Question("delta", epsilon))

    def answer(self, asked: Question) -> Bounds:
        """Return the bracket; its lower end may be 0 where the upper one alone is asked for."""
        if asked.kind == "delta":
            known = self._known_delta(asked.at)
            return capped(self._once(asked), self.variation) if known is None else known
        known = self._known_epsilon(asked.at)
        if known is None:
            found = self._once(asked)
            return capped(found, self._otherwise(asked.at, float(found.upper)))
        if asked.both and asked.at == 0.0:
            return Bounds(min(self._least(), known.upper), known.upper)
        return known

    def quick(self, asked: Question) -> float:
        """Bound the answer from above at little cost; infinite where no such bound is known."""
        return math.inf

    def is_below(self, asked: Question, reached: float) -> bool:
        """Tell at little cost whether the answer is at most ``reached`` > 0."""
        return self.quick(asked) <= reached

    def _known_epsilon(self, delta: float) -> Bounds | None:
        """Return ε(delta) where it needs no analysis; at δ = 0 the upper end alone."""
        if delta == 0.0:
            # At δ = 0 the losses must be bounded, and the bounds add up.
            pure = total((pair.pure_epsilon, n) for pair, n in self.parts)
            return Bounds(0.0, min(pure, self.largest_loss))
        if infinite_mass(self.parts) >= 1.0:
            return Bounds(0.0, math.inf)
        return Bounds(0.0, 0.0) if self.variation <= delta else None

    def _known_delta(self, epsilon: float) -> Bounds | None:
        """Return δ(epsilon) where it needs no analysis."""
        if epsilon == math.inf:
            return Bounds(0.0, infinite_mass(self.parts))
        pure = total((pair.pure_epsilon, n) for pair, n in self.parts)
        return Bounds(0.0, 0.0) if epsilon >= min(pure, self.largest_loss) else None

    def _otherwise(self, delta: float, found: float) -> float:
        """Bound ε(delta) whatever the analysis; infinite where ``found`` cannot be above it."""
        failing = infinite_mass(self.parts)
        if found < math.inf and failing == 0.0:
            return math.inf
        return bounded_otherwise(self.parts, delta, failing)

    def _once(self, asked: Question) -> Bounds:
        """Cache answers: a later evaluation could depend on what was computed in between."""
        found = self._answers.get(asked)
        if found is None:
            found = self._answer(asked)
            if len(self._answers) >= MOST_ANSWERS:
                self._answers.clear()
            self._answers[asked] = found
        return found

    def _least(self) -> float:
        """Bound ε(0) from below."""
        return 0.0

    def _answer(self, asked: Question) -> Bounds:
        if asked.kind == "epsilon":
            return (self._epsilon if asked.both else self._upper_epsilon)(asked.at)
        return (self._delta if asked.both else self._upper_delta)(asked.at)

    def _upper_epsilon(self, delta: float) -> Bounds:
        """Bound ε(delta) from above; the default needs both ends for it."""
        return self._once(Question("epsilon", delta))

    def _upper_delta(self, epsilon: float) -> Bounds:
        return self._once(Question("delta", epsilon))

    def _epsilon(self, delta: float) -> Bounds:
        raise NotImplementedError  # pragma: no cover (the subclass has it, or _answer)

    def _delta(self, epsilon: float) -> Bounds:
        raise NotImplementedError  # pragma: no cover (the subclass has it, or _answer)
