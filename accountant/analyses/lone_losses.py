"""One release of finitely many losses: its profile is a sum, and its inverse needs no grid."""

from __future__ import annotations

from accountant.analyses.brackets import capped, is_within
from accountant.analyses.single_release import epsilon_of_one
from accountant.analyses.solvers import Grid, Solver
from accountant.bounds import Bounds
from accountant.tolerances import TOLERANCES


class LoneLosses(Solver):
    """The profile of one release and its inverse; what they leave open is asked of the grid."""

    name = Grid.name
    reason = Grid.reason
    _grid: Grid | None = None

    def epsilon_bounds(self, delta: float) -> Bounds:
        """Bracket ε(delta), 0 <= delta < 1.

        A positive lower end shows that the variation of the pair is above ``delta``: none of the
        bounds that the other solvers ask for first would be the answer.
        """
        pair = self.parts[0][0]
        if delta > 0.0 and pair.infinite_mass == 0.0 and ("epsilon", delta) not in self._answers:
            found = epsilon_of_one(pair, delta)
            if found is not None and found.lower > 0.0 and is_within(found, TOLERANCES[0]):
                return self._once("epsilon", delta, lambda _: capped(found, pair.pure_epsilon))
        return super().epsilon_bounds(delta)

    def _beside(self) -> Grid:
        if self._grid is None:
            self._grid = Grid(self.parts)
        return self._grid

    def _least(self) -> float:
        return self._beside()._least()

    def _epsilon(self, delta: float) -> Bounds:
        return self._beside()._epsilon(delta)

    def _delta(self, epsilon: float) -> Bounds:
        return self._beside()._delta(epsilon)
