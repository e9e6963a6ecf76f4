"""The analysis of equal steps on batches of a fixed size, under replace-one.

From above the game of Theorem S19, where it can be played, else the pair of Theorem S6. From below
the steps in which the record stands out against all others: Poisson sampling with half the noise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from accountant._core import subsampled_gaussian as core
from accountant._rounding import U
from accountant.analyses.replacement_game import Plan, Value, play
from accountant.analyses.solvers import Grid, Solver
from accountant.bounds import Bounds
from accountant.sampling.fixed_size import FixedSizePair
from accountant.sampling.replacement_laws import Step

if TYPE_CHECKING:
    from accountant.pairs.base import Parts

__all__ = ["ReplacementGame", "plays"]

# Units of one contribution, in standard deviations of the noise, and steps: more take long.
_UNITS, _STEPS = (0.1, 3.0), 5000
# Knots of the window; with the knots around them they fill a transform of 4096 points.
_SIZE = 1900
# The window around the answer, as shares of it; its ends must have exponentials and be resolved.
_LOW, _HIGH, _WIDEST = 0.15, 1.4, 30.0
_LEAST_DELTA = 1e-15
# ε that an earlier game answers, as shares of the one it was played for.
_NEAR = (0.5, 1.1)


def plays(parts: Parts) -> bool:
    """Tell whether the parts are steps on batches of a fixed size whose game is worth playing."""
    ((pair, count),) = parts
    if not isinstance(pair, FixedSizePair) or not 1 < count <= _STEPS:
        return False
    return pair.sampling_probability < 1.0 and _UNITS[0] <= 0.5 * pair.distances[0] <= _UNITS[1]


class ReplacementGame(Solver):
    """Equal steps on uniform batches of a fixed size."""

    name = "replacement game"
    reason = "equal steps on batches of a fixed size: the best adversary's choices, step by step"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        ((pair, self._count),) = parts
        assert isinstance(pair, FixedSizePair)
        self._step = Step(pair.sampling_probability, 0.5 * pair.distances[0])
        self._played: list[tuple[float, Value]] = []
        self._other: Grid | None = None

    def _least(self) -> float:
        return math.inf

    def _epsilon(self, delta: float) -> Bounds:
        lower, upper = self._contour(core.epsilon_bounds, delta)
        value = self._value(upper, delta)
        found = math.inf if value is None else value.epsilon_of(delta)
        if found > 2.0 * upper + 1e-9:
            found = min(found, float(self._beside().epsilon_bounds(delta).upper))
        return Bounds(min(lower, found), found)

    def _delta(self, epsilon: float) -> Bounds:
        lower, upper = self._contour(core.delta_bounds, epsilon)
        value = self._value(epsilon, upper)
        found = 1.0 if value is None else value.at(epsilon)
        if found > 100.0 * lower:
            found = min(found, float(self._beside().delta_bounds(epsilon).upper))
        return Bounds(min(lower, found), found)

    def _contour(self, ask: object, at: float) -> tuple[float, float]:
        """Bracket what a record reaches that stands out, a trifle less often and less far."""
        q, noise = self._step.q * (1.0 - 4.0 * U), 0.5 / self._step.unit * (1.0 + 8.0 * U)
        lower, upper = ask(q, noise, self._count, at, core.REMOVE)  # type: ignore[operator]
        return float(lower), float(upper)

    def _value(self, epsilon: float, delta: float) -> Value | None:
        """Return a game whose window has ``epsilon``, played before if possible."""
        for answered, value in self._played:
            if _NEAR[0] * answered <= epsilon <= _NEAR[1] * answered:
                return value
        plan = self._plan(delta)
        if plan is None:
            return None
        target, made = plan
        value = play(self._step, self._count, made)
        self._played.append((target, value))
        return value

    def _plan(self, delta: float) -> tuple[float, Plan] | None:
        whole = self._contour(core.delta_bounds, 0.0)[1]
        target = min(delta, 0.02 * whole)
        if not target >= _LEAST_DELTA:
            return None
        epsilon = self._contour(core.epsilon_bounds, target)[1]
        spacing = (_LOW + _HIGH) * epsilon / _SIZE
        if not 0.0 < spacing * _SIZE <= _WIDEST or spacing < 1e-6:
            return None
        near = [
            self._contour(core.delta_bounds, epsilon * share)[1] for share in (1.0 - 1e-3, 1.001)
        ]
        if not near[0] > near[1] > 0.0:
            return None
        tilt = (math.log(near[0]) - math.log(near[1])) / (2e-3 * epsilon)
        low = -math.ceil(_LOW * epsilon / spacing) * spacing
        return epsilon, Plan(low, spacing, _SIZE, tilt)

    def _beside(self) -> Grid:
        if self._other is None:
            self._other = Grid(self.parts)
        return self._other
