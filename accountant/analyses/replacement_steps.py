"""The analysis of equal steps on batches of a fixed number of draws, under replace-one.

From above the game of Theorem S19, where it can be played, else the pair of Theorem S6 or S7. From
below the steps in which the record stands out against all others (Poisson sampling with half the
noise, or the mixture of Theorem S8), and those of a record that hides once it has won (S22).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from accountant._basics.rounding import U, up
from accountant.analyses.gaussian_mixtures import Contour
from accountant.analyses.mixed import LEAST_SIGMA
from accountant.analyses.replacement_game import CHOICES, Reached, Value, play, reach
from accountant.analyses.solver import Question, Solver
from accountant.analyses.solvers import Grid
from accountant.bounds import Bounds
from accountant.errors import UnsupportedError
from accountant.mechanisms.gaussian import GaussianPair
from accountant.mechanisms.mixture import repeated_draws
from accountant.pairs.base import DominatingPair, Parts
from accountant.sampling.lattice_envelope import Lattice, law_below, rare_loss
from accountant.sampling.replacement_laws import laws_above
from accountant.sampling.replacement_pair import Draws, ReplacementPair

# None of these numbers is part of a proof: they were chosen by trial, and move widths and times.
# The most steps of a game: more take long.
_STEPS = 5000
# Contributions in deviations of the noise for which a game is played: beyond them the window is
# too long, or all of its choices are alike.
_UNITS = (0.1, 3.0)
# Multiplications per law that are worth a game.
_WORK = 4e8
# The same where noise is large and steps are many: the choices differ by little.
_MORE_WORK = 3.2e9
# The most knots of a window.
_MOST_SIZE = 2000
# Places between two knots: the losses of a step without the record need them.
_STRIDE = 16
# Noise is large where a contribution is less than this many of its deviations.
_LARGE_NOISE = 0.95
# And where there are more steps than this.
_MANY = 500
# The share of δ that losses may have in all which are taken for infinite.
_CUT_OFF = 1e-3
# The window ends at this share of the answer.
_HIGH = 1.15
# The widest window, whose ends must have exponentials.
_WIDEST = 80.0
# The narrowest, whose losses must be resolved.
_NARROWEST = 2e-3
# The least δ that a game is played for.
_LEAST_DELTA = 1e-15
# The window of the game from below ends at this share of the answer.
_REACHED = 1.4
# Knots of that window, where the choices are many, and where they are few.
_KNOTS = 6000
_MANY_KNOTS = 2**15
# So few steps are played again between two knots, up to this share of ε.
_FEW = 10
_BETWEEN = 2e-3
# Draws with a smaller probability count as infinite loss.
_RARE = 1e-17
# ε that an earlier game answers, as shares of the one it was played for.
_NEAR = (0.5, 1.1)
# The reason where no game is played.
UNPLAYED = "equal steps beyond their game: the pair of one on a grid, from below what data reach"


class _Game(NamedTuple):
    """A game from above, the ε around which it was played, and how fast log δ falls there."""

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
        self._large = unit < _LARGE_NOISE and self._count > _MANY
        if not self.is_played:
            self.name, self.reason = Grid.name, UNPLAYED
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

    def value(self, epsilon: float, delta: float) -> Value | None:
        """Return the game around ``epsilon``, from above, for about ``delta``.

        None where it is not played.
        """
        high = _HIGH * epsilon
        if not self.is_played or not _NARROWEST < high < _WIDEST:
            return None
        draws = self._draws
        chance = _CUT_OFF * delta / self._count
        top = min(rare_loss(draws.weights, 2.0 * draws.unit, chance), _WIDEST)
        work = _MORE_WORK if self._large else _WORK
        knots = math.sqrt(work * high / (top * self._count))
        size = min(math.ceil(knots), _MOST_SIZE)
        reach = math.ceil(top / high * size)
        lattice = Lattice(high / (size * _STRIDE), _STRIDE, reach)
        return play(laws_above(draws, lattice, fine=self._large), lattice, self._count, size)

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
            lower = max(lower, self._lower(game, asked))
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
        found = self._played_for(wanted)
        if found is not None:
            self._played.append(found)
        return found

    def _lower(self, game: _Game, asked: Question) -> float:
        """Bound the answer by the game from below."""
        at = asked.at
        if game.epsilon not in self._below:
            self._below[game.epsilon] = self._reach(game)
        found = self._below[game.epsilon]
        if asked.kind == "delta":
            return found.at(at)
        lower = found.epsilon_of(at)
        step = float(found.epsilon[1] - found.epsilon[0])
        # Between two knots, where another game takes next to no time.
        while self._count <= _FEW and step > _BETWEEN * lower > 0.0:
            step *= 0.5
            if self._reach(game, lower + step).at(lower + 0.999 * step) > at:
                lower += 0.999 * step
        return lower

    def _reach(self, game: _Game, knot: float = 0.0) -> Reached:
        """Play from below, around the same answer, with one more knot."""
        draws = self._draws
        shift = 2.0 * draws.unit * (1.0 - 8.0 * U)
        knots = min(_KNOTS * max(CHOICES // self._count, 1), _MANY_KNOTS)
        spacing = _REACHED * game.epsilon / knots
        law, offset = law_below(draws.weights, shift, draws.error, spacing, knots)
        return reach(law, (spacing, offset), self._count, game.tilt, knot)

    def _played_for(self, delta: float) -> _Game | None:
        whole = float(self._alone_delta(0.0).upper)
        target = min(delta, 0.02 * whole)
        if not target >= _LEAST_DELTA:
            return None
        epsilon = float(self._alone_epsilon(target).upper)
        near = [float(self._alone_delta(epsilon * share).upper) for share in (1.0 - 1e-3, 1.001)]
        if not near[0] > near[1] > 0.0:
            return None
        value = self.value(epsilon, target)
        tilt = (math.log(near[0]) - math.log(near[1])) / (2e-3 * epsilon)
        return None if value is None else _Game(epsilon, tilt, value)

    def _beside(self) -> Grid:
        if self._other is None:
            self._other = Grid(self.parts)
        return self._other
