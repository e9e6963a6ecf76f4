"""The analysis of equal steps on batches of a fixed number of draws, under replace-one.

From above the game of Theorem S19, where it can be played, else the pair of Theorem S6 or S7. From
below the steps in which the record stands out against all others (Poisson sampling with half the
noise, or the mixture of Theorem S8), and those of a record that hides once it has won (S22).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from accountant._core import answers as core
from accountant._rounding import U
from accountant.analyses.gaussian_mixtures import MixtureContour
from accountant.analyses.mixed import LEAST_SIGMA
from accountant.analyses.replacement_game import Value, play
from accountant.analyses.replacement_reached import CHOICES, Reached, reach
from accountant.analyses.replacement_round import Plan
from accountant.analyses.solvers import Grid, Solver
from accountant.bounds import Bounds
from accountant.errors import UnsupportedError
from accountant.mechanisms.gaussian import GaussianPair
from accountant.pairs.base import DominatingPair, Parts
from accountant.sampling.fixed_size import FixedSizePair
from accountant.sampling.mixture_pair import MixturePair
from accountant.sampling.repeated_laws import Draws, repeated_laws
from accountant.sampling.replacement_laws import Fineness, Step, laws_above
from accountant.sampling.replacement_pair import ReplacementPair, is_game
from accountant.sampling.standing_out import lattice_spacing, law_below
from accountant.sampling.with_replacement import WithReplacementPair
from accountant.tolerances import wanted_tolerances

if TYPE_CHECKING:
    from accountant.sampling.lattice_envelope import LatticeLaw


# Least knots of the window, and where only printed digits are asked for; with the knots around them
# they fill transforms of 4096 and of 3072 points. The most of them.
_SIZE, _PRINTED_SIZE, _PRINTED, _MOST_SIZE = 1900, 1425, 1e-4, 3400
# Share of the answer that chords between knots may add. Where noise is large, which is where a
# contribution is less than so many of its deviations, and steps are not few: the least, and in
# units of its square.
_SHARE, _LARGE_NOISE, _FEW, _LEAST_SHARE, _UNIT_SHARE = 0.004, 0.95, 500, 0.0013, 0.003
# The window around the answer, as shares of it; its ends must have exponentials and be resolved.
_LOW, _HIGH, _WIDEST, _LEAST_SPACING = 0.15, 1.15, 80.0, 1e-6
_LEAST_DELTA = 1e-15
# From below: the largest ε of the window as a share of the answer, its knots, those where only
# printed digits are asked for, where noise is large, and the most of them.
_REACHED, _KNOTS, _PRINTED_KNOTS, _MANY_KNOTS, _MOST_KNOTS = 1.4, 6000, 4500, 12000, 2**14
# Draws with a smaller probability count as infinite loss.
_RARE = 1e-17
# The reason where no game is played.
UNPLAYED = "equal steps beyond their game: the pair of one on a grid, from below what data reach"
# ε that an earlier game answers, as shares of the one it was played for.
_NEAR = (0.5, 1.1)


class _Steps(Protocol):
    """A kind of steps: its laws from above, and brackets of what a record reaches."""

    @property
    def unit(self) -> float:
        """The bound on one contribution, in standard deviations of the noise."""

    def laws(self, spacing: float, size: int, fineness: Fineness) -> tuple[LatticeLaw, ...]:
        """Return laws of which one is above a step, whatever the contributions."""

    def law_below(self, spacing: float, largest: float) -> tuple[LatticeLaw | None, float]:
        """Return the law of a step of a record that stands out, from below, and its spacing.

        There is none where the lattice would be too long.
        """

    def standing_out(self) -> tuple[tuple[DominatingPair, int], float]:
        """Return the steps of a record that stands out, from below but for an excess of δ."""

    def epsilon(self, delta: float) -> Bounds:
        """Bracket ε of a record that stands out against all others."""

    def delta(self, epsilon: float) -> Bounds:
        """Bracket its δ."""


class _FixedSize:
    """Batches without repetition."""

    def __init__(self, pair: FixedSizePair, count: int) -> None:
        self._step = Step(pair.sampling_probability, 0.5 * pair.distances[0])
        # A trifle less often and less far; never farther than the core can tell.
        noise = max(0.5 / self._step.unit * (1.0 + 8.0 * U), LEAST_SIGMA)
        self._less = self._step.q * (1.0 - 4.0 * U), noise, count

    @property
    def unit(self) -> float:
        return self._step.unit

    def laws(self, spacing: float, size: int, fineness: Fineness) -> tuple[LatticeLaw, ...]:
        return laws_above(self._step, spacing, size, fineness)

    def law_below(self, spacing: float, largest: float) -> tuple[LatticeLaw | None, float]:
        q, noise, _ = self._less
        return _below((1.0 - q, q), 1.0 / noise, 2.0 * U, spacing, largest)

    def standing_out(self) -> tuple[tuple[DominatingPair, int], float]:
        q, noise, count = self._less
        return (GaussianPair(noise, q), count), 0.0

    def epsilon(self, delta: float) -> Bounds:
        return Bounds(*core.epsilon_bounds(*self._less, delta, core.REMOVE))

    def delta(self, epsilon: float) -> Bounds:
        return Bounds(*core.delta_bounds(*self._less, epsilon, core.REMOVE))


class _WithReplacement:
    """Independent draws."""

    def __init__(self, pair: WithReplacementPair, count: int) -> None:
        unit, error = 0.5 * pair.distances[0], pair.draw_error
        kept = sum(weight > _RARE for weight in pair.draws)
        left_out = math.fsum(pair.draws[kept:]) + pair.infinite_mass
        self._draws = Draws(pair.draws[:kept], unit, error, 1.001 * left_out)
        shift = min(2.0 * unit * (1.0 - 8.0 * U), 1.0 / LEAST_SIGMA)
        less = MixturePair(self._draws.weights, shift, 0.0, False, error)
        self._less = less, count
        self._reached = MixtureContour((self._less,))
        # Draws that are left out are not in the mixture, but may be in its lower end.
        self._excess = count * (self._draws.remainder + 1e-30)

    @property
    def unit(self) -> float:
        return self._draws.unit

    def laws(self, spacing: float, size: int, fineness: Fineness) -> tuple[LatticeLaw, ...]:
        return repeated_laws(self._draws, spacing, size, fineness)

    def law_below(self, spacing: float, largest: float) -> tuple[LatticeLaw | None, float]:
        shift = 2.0 * self._draws.unit * (1.0 - 8.0 * U)
        return _below(self._draws.weights, shift, self._draws.error, spacing, largest)

    def standing_out(self) -> tuple[tuple[DominatingPair, int], float]:
        return self._less, self._excess

    def epsilon(self, delta: float) -> Bounds:
        more = delta + self._excess * 1.001
        low = float(self._reached.epsilon_bounds(more).lower) if more < 1.0 else 0.0
        return Bounds(low, max(float(self._reached.epsilon_bounds(delta).upper), low))

    def delta(self, epsilon: float) -> Bounds:
        low, high = self._reached.delta_bounds(epsilon)
        return Bounds(max(float(low) - self._excess, 0.0), float(high))


def _below(
    weights: tuple[float, ...], shift: float, error: float, wanted: float, largest: float
) -> tuple[LatticeLaw | None, float]:
    spacing = lattice_spacing(weights, shift, wanted)
    size = math.ceil(largest / spacing)
    if size > _MOST_KNOTS:
        return None, spacing
    law = law_below(weights, shift, spacing, size)
    errors = law.mass_error + error, law.loss_error + 2.0 * error
    return law._replace(mass_error=errors[0], loss_error=errors[1]), spacing


def _steps_of(pair: DominatingPair, count: int) -> _Steps | None:
    if isinstance(pair, FixedSizePair):
        return _FixedSize(pair, count)
    return _WithReplacement(pair, count) if isinstance(pair, WithReplacementPair) else None


def plays(parts: Parts) -> bool:
    """Tell whether the parts are equal steps that no record reaches by their own pair."""
    ((pair, count),) = parts
    if not isinstance(pair, (FixedSizePair, WithReplacementPair)):
        return False
    return pair.sampling_probability < 1.0 < count


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
        found = _steps_of(pair, self._count)
        if found is None:  # pragma: no cover (chosen by the caller)
            raise UnsupportedError(f"{pair!r} is not the pair of Theorem S6 or S7")
        self._steps = found
        self.is_played = isinstance(pair, ReplacementPair) and is_game(pair, self._count)
        if not self.is_played:
            self.name, self.reason = Grid.name, UNPLAYED
        printed = wanted_tolerances()[0] >= _PRINTED
        self._size, self._knots = (_PRINTED_SIZE, _PRINTED_KNOTS) if printed else (_SIZE, _KNOTS)
        large = found.unit < _LARGE_NOISE and self._count >= _FEW
        self._share = max(_LEAST_SHARE, _UNIT_SHARE * found.unit**2) if large else _SHARE
        small = Fineness.ROUGH if printed else Fineness.PLAIN
        self._fineness = Fineness.FINE if large else small
        self._choices = CHOICES
        if large:
            self._knots, self._choices = _MANY_KNOTS, 4 * CHOICES
        self._played: list[tuple[float, Value, Reached]] = []
        self._other: Grid | None = None

    @property
    def standing_out(self) -> tuple[tuple[DominatingPair, int], float]:
        """The steps of a record that stands out, from below but for an excess of δ."""
        return self._steps.standing_out()

    def value(self, epsilon: float, tilt: float) -> Value | None:
        """Return the game around ``epsilon``, from above; None where it is not played."""
        plan = self._window(epsilon, tilt)
        return None if plan is None else self._play(plan)

    def _play(self, plan: Plan) -> Value:
        laws = self._steps.laws(plan.spacing, plan.size - 1, self._fineness)
        return play(laws, self._count, plan)

    def _least(self) -> float:
        return math.inf

    def _epsilon(self, delta: float) -> Bounds:
        lower, upper = (float(end) for end in self._steps.epsilon(delta))
        played = self._value(upper, delta)
        found = math.inf
        if played is not None:
            found = played[0].epsilon_of(delta)
            lower = max(lower, played[1].epsilon_of(delta))
        if played is None or found > 1.1 * upper + 1e-9:
            found = min(found, float(self._beside().epsilon_bounds(delta).upper))
        return Bounds(min(lower, found), found)

    def _delta(self, epsilon: float) -> Bounds:
        lower, upper = (float(end) for end in self._steps.delta(epsilon))
        played = self._value(epsilon, upper)
        found = 1.0
        if played is not None:
            found, lower = played[0].at(epsilon), max(lower, played[1].at(epsilon))
        if played is None or found > 100.0 * lower:
            found = min(found, float(self._beside().delta_bounds(epsilon).upper))
        return Bounds(min(lower, found), found)

    def _value(self, epsilon: float, delta: float) -> tuple[Value, Reached] | None:
        """Return a game around ``epsilon``, from both sides, played before if possible.

        None where none is played: then the steps' own pair bounds them.
        """
        if not self.is_played:
            return None
        for answered, value, reached in self._played:
            if _NEAR[0] * answered <= epsilon <= _NEAR[1] * answered:
                return value, reached
        plan = self._plan(delta)
        if plan is None:
            return None
        target, made = plan
        value = self._play(made)
        reached = self._reached(target, made.tilt)
        self._played.append((target, value, reached))
        return value, reached

    def _reached(self, epsilon: float, tilt: float) -> Reached:
        """Play from below, around the same answer."""
        width = (_LOW + _REACHED) * epsilon
        law, spacing = self._steps.law_below(width / self._knots, width)
        if law is None:
            return Reached(np.zeros(1), np.zeros(1), 0.0)
        size = (law.masses.size - 1) // 2 + 1
        low = -math.ceil(_LOW * epsilon / spacing) * spacing
        return reach(law, self._count, Plan(low, spacing, size, tilt), self._choices)

    def _plan(self, delta: float) -> tuple[float, Plan] | None:
        whole = float(self._steps.delta(0.0).upper)
        target = min(delta, 0.02 * whole)
        if not target >= _LEAST_DELTA:
            return None
        epsilon = float(self._steps.epsilon(target).upper)
        near = [float(self._steps.delta(epsilon * share).upper) for share in (1.0 - 1e-3, 1.001)]
        if not near[0] > near[1] > 0.0:
            return None
        plan = self._window(epsilon, (math.log(near[0]) - math.log(near[1])) / (2e-3 * epsilon))
        return None if plan is None else (epsilon, plan)

    def _window(self, epsilon: float, tilt: float) -> Plan | None:
        width = (_LOW + _HIGH) * epsilon
        if not self.is_played:
            return None
        if not 0.0 < width <= _WIDEST or width < _LEAST_SPACING * self._size:
            return None
        # A chord adds D²/6 or so to the variance of a loss, and T(θ+1)D²/12 to ε at the tilt θ.
        asked = math.sqrt(12.0 * self._share * epsilon / (self._count * (1.0 + max(tilt, 0.0))))
        most = min(_MOST_SIZE, int(width / _LEAST_SPACING))
        size = min(max(math.ceil(width / asked), self._size), max(most, self._size))
        spacing = width / size
        low = -math.ceil(_LOW * epsilon / spacing) * spacing
        return Plan(low, spacing, size, tilt)

    def _beside(self) -> Grid:
        if self._other is None:
            self._other = Grid(self.parts)
        return self._other
