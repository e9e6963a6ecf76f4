"""What is asked of an analysis of one direction, and what every analysis answers."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

from accountant.analyses.brackets import bounded_otherwise, capped
from accountant.bounds import Bounds
from accountant.pairs.base import Parts
from accountant.pairs.product import infinite_mass, total, variation

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
