"""What every analysis of one direction answers: brackets, and upper ends alone."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property

from accountant.analyses.brackets import (
    bounded_otherwise,
    capped,
)
from accountant.bounds import Bounds
from accountant.pairs.base import Parts
from accountant.pairs.product import infinite_mass, total, variation

MOST_ANSWERS = 512  # that a solver caches


class Solver(ABC):
    """Brackets for the parts of one direction; states its name and why it was chosen."""

    name: str
    reason: str
    # Whether data sets reach its lower ends, though they reach no pair of the parts.
    reaches = False

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._answers: dict[tuple[str, float], Bounds] = {}

    @cached_property
    def variation(self) -> float:
        """An upper bound on every δ; usually the probability that the record is used at all."""
        return variation(self.parts)

    def epsilon_upper(self, delta: float) -> float:
        """Bound ε(delta), 0 <= delta < 1, from above; nothing is asked of a lower end."""
        known = self._known_epsilon(delta)
        if known is not None:
            return float(known.upper)
        found = float(self._once("upper epsilon", delta, self._upper_epsilon).upper)
        return min(found, self._otherwise(delta, found))

    def epsilon_bounds(self, delta: float) -> Bounds:
        """Bracket ε(delta), 0 <= delta < 1."""
        known = self._known_epsilon(delta)
        if known is not None:
            return Bounds(min(self._least(), known.upper), known.upper) if delta == 0.0 else known
        found = self._once("epsilon", delta, self._epsilon)
        return capped(found, self._otherwise(delta, float(found.upper)))

    def delta_upper(self, epsilon: float) -> float:
        """Bound δ(epsilon), 0 <= epsilon <= inf, from above."""
        known = self._known_delta(epsilon)
        if known is not None:
            return float(known.upper)
        found = float(self._once("upper delta", epsilon, self._upper_delta).upper)
        return min(found, self.variation)

    def delta_bounds(self, epsilon: float) -> Bounds:
        """Bracket δ(epsilon), 0 <= epsilon <= inf."""
        known = self._known_delta(epsilon)
        if known is not None:
            return known
        return capped(self._once("delta", epsilon, self._delta), self.variation)

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

    def _upper_epsilon(self, delta: float) -> Bounds:
        """Bound ε(delta) from above; the default needs both ends for it."""
        return self._once("epsilon", delta, self._epsilon)

    def _upper_delta(self, epsilon: float) -> Bounds:
        return self._once("delta", epsilon, self._delta)

    @abstractmethod
    def _epsilon(self, delta: float) -> Bounds: ...

    @abstractmethod
    def _delta(self, epsilon: float) -> Bounds: ...
