"""The meter for parameters fixed in advance: the exact composition itself (Theorem L1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from accountant.errors import AccountantError
from accountant.ledger import basic, evaluation
from accountant.ledger.meters import Meter, Remaining, largest, unspent
from accountant.mechanisms.base import Mechanism


class FixedMeter(Meter):
    """Compose everything, and compare ε at the budget's δ.

    One composition costs more than a sum, so after a mechanism was admitted twice as many of it are
    tried at once: a run of n equal steps costs about log n compositions. That is sound: what fits
    as a whole fits in parts, which are a post-processing of the whole.
    """

    quick = False

    def __init__(self, epsilon: float, delta: float) -> None:
        super().__init__(0)
        self._epsilon, self._delta = epsilon, delta
        self._counts: dict[Mechanism, int] = {}
        self._known: tuple[Mechanism | None, int] = (None, 0)

    def cost(self, mechanism: Mechanism) -> tuple[int, ...]:
        """Return nothing: a composition is not a sum."""
        return ()

    def holds(self, sums: Sequence[int]) -> bool:
        """Tell nothing about sums; :meth:`admits` composes."""
        return not sums

    def admits(self, charges: Sequence[tuple[Mechanism, int]]) -> bool:
        """Tell whether the composition with all ``charges`` is within the budget."""
        if len(charges) != 1:
            return self._fits(charges)
        mechanism, count = charges[0]
        if self._known[0] == mechanism and count <= self._known[1]:
            return True
        if not self._fits(charges):
            return False
        ahead = 2 * (self._counts.get(mechanism, 0) + count)
        self._known = mechanism, ahead if self._surely_fits([(mechanism, ahead)]) else count
        return True

    def add(self, charges: Sequence[tuple[Mechanism, int]]) -> None:
        """Add charges, without asking."""
        for mechanism, count in charges:
            self._counts[mechanism] = self._counts.get(mechanism, 0) + count
            known, ahead = self._known
            self._known = (mechanism, ahead - count) if known == mechanism else (None, 0)

    def affordable(self, mechanism: Mechanism) -> int:
        """Return a count that will be admitted, at most 2**53: the largest found by bisection."""
        found = largest(lambda n: self._surely_fits([(mechanism, n)]))
        known, ahead = self._known
        # Kept: asked anew, the composition may answer with other last digits, and shorter ones
        # with a wider bracket. What was promised is admitted, at once or in parts.
        found = max(found, ahead) if known == mechanism else found
        self._known = mechanism, found
        return found

    def epsilon_after(self, charges: Sequence[tuple[Mechanism, int]]) -> float:
        """Return the ε of the composition."""
        return self._epsilon_of(self._with(charges))

    def remaining(self) -> Remaining:
        """Describe ε at the budget's δ."""
        spent = self._epsilon_of(tuple(self._counts.items()))
        used = spent / self._epsilon
        used = math.nextafter(used, math.inf) if used > 0.0 else 0.0
        unit = f"ε at delta = {self._delta!r}, in nats"
        return Remaining(spent, self._epsilon, unit, unspent(used))

    def _surely_fits(self, charges: Sequence[tuple[Mechanism, int]]) -> bool:
        """Tell whether charges nobody has asked for yet would fit; no if it cannot be computed."""
        try:
            return self._fits(charges)
        except (AccountantError, ArithmeticError, MemoryError):
            return False

    def _fits(self, charges: Sequence[tuple[Mechanism, int]]) -> bool:
        counts = self._with(charges)
        # A sum of decimals is exact, and δ pays for a hair (Theorem L18).
        if basic.fits(*basic.summed(counts), basic.written(self._epsilon), Fraction(self._delta)):
            return True
        # In positive form: what could not be certified is too dear.
        return evaluation.epsilon(counts, self._delta) <= self._epsilon

    def _epsilon_of(self, counts: tuple[tuple[Mechanism, int], ...]) -> float:
        return min(evaluation.epsilon(counts, self._delta), basic.basic_epsilon(counts))

    def _with(self, charges: Sequence[tuple[Mechanism, int]]) -> tuple[tuple[Mechanism, int], ...]:
        counts = dict(self._counts)
        for mechanism, count in charges:
            counts[mechanism] = counts.get(mechanism, 0) + count
        return tuple(counts.items())
