"""Steps of replace-one whose game is played, beside other releases.

From above the steps are one release, whose profile is the value of their game, and that composes
with the others whatever their order; from below their record stands out against all others
(docs/theorems_sampling.md, Theorem S19).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from accountant._basics.rounding import up
from accountant.analyses.replacement_game import Value
from accountant.analyses.replacement_steps import ReplacementGame, plays
from accountant.analyses.solver import Question, Solver
from accountant.bounds import Bounds
from accountant.errors import AccountantError
from accountant.pairs.base import DominatingPair, Parts
from accountant.pairs.profile_pair import TwoSidedPair

# The least δ for which a game is played.
_LEAST = 1e-15
# The largest: a game for it serves larger ones.
_LARGEST = 0.02
# ε that an earlier game answers, as shares of the one it was played for.
_NEAR = (0.8, 1.05)
# One in so many of the game's knots is one of its pair's.
_APART = 8
# Where the ends are further apart than this, the steps' own pairs are tried as well.
_WIDE = 1.1


@dataclass(frozen=True, eq=False)
class _Played:
    """The value of a game, as bounds on the profile of its steps in both directions."""

    value: Value
    pure_epsilon: float = math.inf

    def delta(self, epsilon: float) -> float:
        """Bound the profile."""
        return self.value.at(epsilon)

    def rdp(self, order: float) -> float:
        """Return infinity: a game bounds no Rényi divergence."""
        return math.inf


@dataclass(frozen=True)
class PlayedPair(TwoSidedPair):
    """The pair of the profile that a game bounds at its knots (Theorems S19 and E1)."""

    bounds: _Played
    sharper_rdp = False

    @property
    def lattice(self) -> tuple[float, float]:
        """The knots."""
        knots = self.bounds.value.epsilon
        return 0.0, float(knots[-1] - knots[0]) / (knots.size - 1)

    def _values(self) -> tuple[list[float], list[float]]:
        _, spacing = self.lattice
        count = int(np.count_nonzero(self.bounds.value.epsilon > -0.5 * spacing))
        grid = [k * spacing for k in range(count)]
        return grid, [self.bounds.delta(max(x * (1.0 - 1e-14) - 1e-300, 0.0)) for x in grid]


def plays_beside(parts: Parts) -> bool:
    """Tell whether some of several parts are equal steps whose game is worth playing."""
    return len(parts) > 1 and any(plays((part,)) for part in parts)


class BesideGame(Solver):
    """Equal steps on fixed numbers of draws beside other releases.

    Of several kinds of such steps the costliest is played, and the others have their pairs.

    Parameters
    ----------
    parts : tuple of (DominatingPair, int)
        All parts.
    solve : callable
        Returns the solver of parts none of which is played.
    """

    name = ReplacementGame.name
    reason = "equal steps on fixed numbers of draws, by their best adversary, beside other releases"

    def __init__(self, parts: Parts, solve: Callable[[Parts], Solver]) -> None:
        super().__init__(parts)
        played = [part for part in parts if plays((part,))]
        most = max(played, key=_cost)
        self.played: DominatingPair = most[0]
        self._game, self._solve = ReplacementGame((most,)), solve
        self.is_played = self._game.is_played
        if not self.is_played:
            self.name, self.reason = self._game.name, self._game.reason
        self._others = tuple(part for part in parts if part != most)
        games = [ReplacementGame((part,)) for part in played]
        rest = (part for part in parts if part not in played)
        self._reached = solve((*rest, *(game.standing_out for game in games)))
        self._excess = math.fsum(game.excess for game in games)
        self._besides: list[tuple[float, Solver]] = []

    @cached_property
    def together(self) -> Solver:
        """The solver of the steps' own pairs and the others."""
        return self._solve(self.parts)

    def _least(self) -> float:
        return math.inf

    def _answer(self, asked: Question) -> Bounds:
        """Bracket by the game that is played for about the δ of the answer."""
        if asked.kind == "epsilon":
            about = asked.at
            more = up(about + self._excess) if self._excess else about
            lower = float(self._reached.epsilon_bounds(more).lower) if more < 1.0 else 0.0
        else:
            lower = float(self._reached.delta_bounds(asked.at).lower)
            if self._excess:
                lower = max(math.nextafter(lower - up(self._excess), 0.0), 0.0)
            about = lower
        beside = self._beside(about)
        upper = asked.most if beside is None else _upper(beside, asked)
        if beside is None or not upper <= _WIDE * lower:
            upper = min(upper, _upper(self.together, asked))
        return Bounds(min(lower, upper), upper)

    def _beside(self, delta: float) -> Solver | None:
        """Return the solver of the others and the game's pair; None where no game is played."""
        target = min(delta, _LARGEST)
        if not target >= _LEAST:
            return None
        epsilon = float(self._reached.epsilon_bounds(target).upper)
        for answered, solver in self._besides:
            if _NEAR[0] * answered <= epsilon <= _NEAR[1] * answered:
                return solver
        if not 0.0 < epsilon < math.inf:
            return None
        value = self._game.value(epsilon, target)
        if value is None:
            return None
        knots = value._replace(epsilon=value.epsilon[::_APART], delta=value.delta[::_APART])
        solver = self._solve((*self._others, (PlayedPair(_Played(knots)), 1)))
        self._besides.append((epsilon, solver))
        return solver


def _cost(part: tuple[DominatingPair, int]) -> tuple[bool, float]:
    """Return by what the part to play is chosen: one that can be, and the costliest of these."""
    pair, count = part
    return ReplacementGame((part,)).is_played, count * pair.finite_rdp(2.0)


def _upper(solver: Solver, asked: Question) -> float:
    try:
        return float(solver.answer(asked._replace(both=False)).upper)
    except AccountantError:
        return asked.most
