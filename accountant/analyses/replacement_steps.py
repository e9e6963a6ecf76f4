"""The analysis of equal steps on batches of a fixed number of draws, under replace-one.

From above the game of Theorem S19, where it can be played, else the pair of Theorem S6 or S7. From
below the steps in which the record stands out against all others (Poisson sampling with half the
noise, or the mixture of Theorem S8), and those of a record that hides once it has won (S22).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accountant._basics.rounding import U, up
from accountant.analyses.gaussian_mixtures import Contour
from accountant.analyses.mixed import LEAST_SIGMA
from accountant.analyses.replacement_game import CHOICES, Plan, Reached, Value, play, reach
from accountant.analyses.solver import Question, Solver
from accountant.analyses.solvers import Grid
from accountant.bounds import Bounds
from accountant.errors import UnsupportedError
from accountant.mechanisms.gaussian import GaussianPair
from accountant.mechanisms.mixture import repeated_draws
from accountant.pairs.base import DominatingPair, Parts
from accountant.sampling.lattice_envelope import lattice_spacing, law_below
from accountant.sampling.replacement_laws import laws_above
from accountant.sampling.replacement_pair import Draws, ReplacementPair

# None of these numbers is part of a proof: they were chosen by trial, and move widths and times.
# The most steps of a game: more take long.
_STEPS = 5000
# Contributions in deviations of the noise for which a game is played: beyond them the window is
# too long, or all of its choices are alike.
_UNITS = (0.1, 3.0)
# Least knots of the window: with the knots around them they fill transforms of 4096 points.
_SIZE = 1900
# The most knots of the window.
_MOST_SIZE = 3400
# Share of the answer that chords between knots may add.
_SHARE = 0.004
# Noise is large where a contribution is less than this many of its deviations.
_LARGE_NOISE = 0.95
# And where there are this many steps.
_FEW = 500
# Chords may then add this share of the answer, times the square of the contribution.
_UNIT_SHARE = 0.003
# But at least this share of it.
_LEAST_SHARE = 0.0013
# The window begins at this share of the answer below 0.
_LOW = 0.15
# And ends at this share of it.
_HIGH = 1.15
# The widest window, whose ends must have exponentials.
_WIDEST = 80.0
# The least spacing of knots, whose losses must be resolved.
_LEAST_SPACING = 1e-6
# The least δ that a game is played for.
_LEAST_DELTA = 1e-15
# The largest ε of the window of the game from below, as a share of the answer.
_REACHED = 1.4
# Knots of that window.
_KNOTS = 6000
# Knots of it where noise is large.
_MANY_KNOTS = 12000
# The most knots of it.
_MOST_KNOTS = 2**14
# How often the choice from below is made anew where noise is large.
_MANY_CHOICES = 4 * CHOICES
# Draws with a smaller probability count as infinite loss.
_RARE = 1e-17
# ε that an earlier game answers, as shares of the one it was played for.
_NEAR = (0.5, 1.1)
# The reason where no game is played.
UNPLAYED = "equal steps beyond their game: the pair of one on a grid, from below what data reach"


class _Game(NamedTuple):
    """A game from above, the ε around which it was played, and the tilt."""

    epsilon: float
    tilt: float
    value: Value


def plays(parts: Parts) -> bool:
    """Tell whether the parts are equal steps that no record reaches by their own pair."""
    ((pair, count),) = parts
    if not isinstance(pair, ReplacementPair) or pair.draws is None:
        return False
    return pair.sampling_probability < 1.0 < count


def _told(draws: Draws) -> Draws:
    """Return the draws that are not too rare to count."""
    kept = max(sum(weight > _RARE for weight in draws.weights), 2)
    left_out = math.fsum(draws.weights[kept:]) + draws.remainder
    return draws._replace(weights=draws.weights[:kept], remainder=1.001 * left_out)


def _alone(draws: Draws, count: int) -> tuple[tuple[DominatingPair, int], Solver]:
    """Return the steps of a record that stands out, from below but for draws that are left out."""
    if len(draws.weights) == 2:
        # A trifle less often and less far; never farther than the core can tell.
        noise = max(0.5 / draws.unit * (1.0 + 8.0 * U), LEAST_SIGMA)
        pair = GaussianPair(noise, draws.weights[1] * (1.0 - 4.0 * U))
        return (pair, count), Contour(((pair, count),))
    shift = min(2.0 * draws.unit * (1.0 - 8.0 * U), 1.0 / LEAST_SIGMA)
    mixture = repeated_draws(draws.weights, shift, error=draws.error)
    return (mixture, count), Contour(((mixture, count),))


class ReplacementGame(Solver):
    """Equal steps on uniform batches of a fixed size, or of a fixed number of draws.

    ``is_played`` tells whether their game is worth playing; else their own pair bounds them.
    """

    name = "replacement game"
    reason = "equal steps on fixed numbers of draws: the best adversary's choices, step by step"
    reaches = True

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        ((pair, self._count),) = parts
        if not isinstance(pair, ReplacementPair) or pair.draws is None:  # pragma: no cover (asked)
            raise UnsupportedError(f"{pair!r} is not the pair of Theorem S6 or S7")
        self._draws = _told(pair.draws)
        self.standing_out, self._solver = _alone(self._draws, self._count)
        # Draws that are left out are not in its pair, but may be in its lower end.
        self.excess = self._count * 1.001 * self._draws.remainder
        unit = self._draws.unit
        self.is_played = self._count <= _STEPS and _UNITS[0] <= unit <= _UNITS[1]
        if not self.is_played:
            self.name, self.reason = Grid.name, UNPLAYED
        self._large = unit < _LARGE_NOISE and self._count >= _FEW
        self._share = max(_LEAST_SHARE, _UNIT_SHARE * unit**2) if self._large else _SHARE
        self._played: list[_Game] = []
        self._below: dict[float, Reached] = {}
        self._other: Grid | None = None

    def _alone_epsilon(self, delta: float) -> Bounds:
        """Bracket ε of a record that stands out against all others."""
        upper = float(self._solver.epsilon_bounds(delta).upper)
        more = up(delta + self.excess) if self.excess else delta
        low = float(self._solver.epsilon_bounds(more).lower) if more < 1.0 else 0.0
        return Bounds(min(low, upper), upper)

    def _alone_delta(self, epsilon: float) -> Bounds:
        """Bracket its δ."""
        low, high = self._solver.delta_bounds(epsilon)
        return Bounds(max(float(low) - self.excess, 0.0), float(high))

    def value(self, epsilon: float, tilt: float) -> Value | None:
        """Return the game around ``epsilon``, from above; None where it is not played."""
        plan = self._window(epsilon, tilt)
        return None if plan is None else self._play(plan)

    def _play(self, plan: Plan) -> Value:
        laws = laws_above(self._draws, plan.spacing, plan.size - 1, fine=self._large)
        return play(laws, self._count, plan)

    def _least(self) -> float:
        return math.inf

    def _answer(self, asked: Question) -> Bounds:
        """Bound by the game from above, from below by a record that stands out or hides in time."""
        at = asked.at
        if asked.kind == "epsilon":
            alone, game = self._alone_epsilon(at), self._game(delta=at)
            upper = math.inf if game is None else game.value.epsilon_of(at)
            is_far = upper > 1.1 * alone.upper + 1e-9
        else:
            alone, game = self._alone_delta(at), self._game(epsilon=at)
            upper = 1.0 if game is None else game.value.at(at)
            is_far = upper > 100.0 * alone.lower
        if game is None or is_far:
            upper = min(upper, float(self._beside().answer(asked._replace(both=False)).upper))
        lower = float(alone.lower)
        if asked.both and game is not None:
            reached = self._reached(game)
            lower = max(lower, (reached.epsilon_of if asked.kind == "epsilon" else reached.at)(at))
        return Bounds(min(lower, upper), upper)

    def _game(self, *, epsilon: float | None = None, delta: float | None = None) -> _Game | None:
        """Return a game around ``epsilon``, or the ε of ``delta``, played before if possible.

        None where none is played: then the steps' own pair bounds them.
        """
        if not self.is_played:
            return None
        at = float(self._alone_epsilon(delta).upper) if delta is not None else epsilon or 0.0
        for game in self._played:
            if _NEAR[0] * game.epsilon <= at <= _NEAR[1] * game.epsilon:
                return game
        wanted = float(self._alone_delta(at).upper) if delta is None else delta
        plan = self._plan(wanted)
        if plan is None:
            return None
        target, made = plan
        self._played.append(_Game(target, made.tilt, self._play(made)))
        return self._played[-1]

    def _reached(self, game: _Game) -> Reached:
        """Play from below, around the same answer."""
        if game.epsilon in self._below:
            return self._below[game.epsilon]
        draws, width = self._draws, (_LOW + _REACHED) * game.epsilon
        shift = 2.0 * draws.unit * (1.0 - 8.0 * U)
        wanted = width / (_MANY_KNOTS if self._large else _KNOTS)
        spacing = lattice_spacing(draws.weights, shift, wanted)
        size = math.ceil(width / spacing)
        found = Reached(np.zeros(1), np.zeros(1), 0.0)
        if size <= _MOST_KNOTS:
            law = law_below(draws.weights, shift, draws.error, spacing, size)
            low = -math.ceil(_LOW * game.epsilon / spacing) * spacing
            choices = _MANY_CHOICES if self._large else CHOICES
            found = reach(law, self._count, Plan(low, spacing, size + 1, game.tilt), choices)
        self._below[game.epsilon] = found
        return found

    def _plan(self, delta: float) -> tuple[float, Plan] | None:
        whole = float(self._alone_delta(0.0).upper)
        target = min(delta, 0.02 * whole)
        if not target >= _LEAST_DELTA:
            return None
        epsilon = float(self._alone_epsilon(target).upper)
        near = [float(self._alone_delta(epsilon * share).upper) for share in (1.0 - 1e-3, 1.001)]
        if not near[0] > near[1] > 0.0:
            return None
        plan = self._window(epsilon, (math.log(near[0]) - math.log(near[1])) / (2e-3 * epsilon))
        return None if plan is None else (epsilon, plan)

    def _window(self, epsilon: float, tilt: float) -> Plan | None:
        width = (_LOW + _HIGH) * epsilon
        if not self.is_played:
            return None
        if not 0.0 < width <= _WIDEST or width < _LEAST_SPACING * _SIZE:
            return None
        # A chord adds D²/6 or so to the variance of a loss, and T(θ+1)D²/12 to ε at the tilt θ.
        asked = math.sqrt(12.0 * self._share * epsilon / (self._count * (1.0 + max(tilt, 0.0))))
        most = min(_MOST_SIZE, int(width / _LEAST_SPACING))
        size = min(max(math.ceil(width / asked), _SIZE), max(most, _SIZE))
        spacing = width / size
        low = -math.ceil(_LOW * epsilon / spacing) * spacing
        return Plan(low, spacing, size, tilt)

    def _beside(self) -> Grid:
        if self._other is None:
            self._other = Grid(self.parts)
        return self._other
