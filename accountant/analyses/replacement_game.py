"""Steps of replace-one on batches of a fixed size, as a game against the best adversary.

An adversary who sees the outputs chooses the contributions of the next step. What it gains is the
largest of a few convolutions in every step, an upper bound that is attained up to the width of the
bands (docs/theorems_sampling.md, Theorems S18 and S19).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.analyses.replacement_round import Plan, Step

if TYPE_CHECKING:
    from accountant.sampling.lattice_envelope import LatticeLaw


class Value(NamedTuple):
    """Upper bounds on δ at the knots of ε."""

    epsilon: FloatArray
    delta: FloatArray
    loss_error: float

    def at(self, epsilon: float) -> float:
        """Bound δ at ``epsilon``: the chord between two knots, in e^ε."""
        least = epsilon - self.loss_error
        if not self.epsilon[0] <= least:
            return 1.0
        place = min(int(np.searchsorted(self.epsilon, least, side="right")), self.epsilon.size) - 1
        if place == self.epsilon.size - 1:
            return float(self.delta[-1])
        share = math.expm1(least - self.epsilon[place])
        share /= math.expm1(self.epsilon[place + 1] - self.epsilon[place])
        share = max(share * (1.0 - 1e-13), 0.0)
        high, low = float(self.delta[place]), float(self.delta[place + 1])
        return min(high - min(share, 1.0) * (high - low), 1.0) * (1.0 + 8.0 * U)

    def epsilon_of(self, delta: float) -> float:
        """Bound ε where δ is ``delta``; infinite beyond the window."""
        small = np.flatnonzero(self.delta <= delta)
        if small.size == 0:
            return math.inf
        place = int(small[0])
        if place == 0:
            return max(float(self.epsilon[0]), 0.0) + self.loss_error
        high, low = float(self.delta[place - 1]), float(self.delta[place])
        rise = math.expm1(self.epsilon[place] - self.epsilon[place - 1])
        share = min((high - delta) / (high - low) * (1.0 + 1e-13), 1.0)
        found = float(self.epsilon[place - 1]) + math.log1p(share * rise)
        return max(found * (1.0 + 1e-14) + 1e-300, 0.0) + self.loss_error


def play(laws: tuple[LatticeLaw, ...], count: int, plan: Plan) -> Value:
    """Return the adversary's largest δ after ``count`` steps of its choice, from above.

    The laws have ``plan.size - 1`` losses ``plan.spacing`` apart on either side of 0.
    """
    epsilon: FloatArray = np.asarray(plan.low + plan.spacing * np.arange(plan.size), np.float64)
    errors = max(law.mass_error for law in laws), max(law.loss_error for law in laws)
    step = Step(laws, plan, epsilon)
    tilted = step.weight * np.maximum(-np.expm1(epsilon), 0.0)
    for _ in range(count):
        tilted = step.best(tilted)
    values = tilted / step.weight * math.exp(count * errors[0] * 1.01) * (1.0 + 1e-9)
    loss_error = count * errors[1] + 32.0 * U * (1.0 + float(np.abs(epsilon).max()))
    return Value(epsilon, np.minimum.accumulate(np.minimum(values, 1.0)), loss_error)
