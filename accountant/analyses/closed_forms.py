"""Releases whose profile is known: none, plain Gaussian noise, and a single one."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

from accountant._basics.rounding import LEAST, TINY, U, up
from accountant._core import answers as core
from accountant.analyses.brackets import (
    LEAST_EPSILON,
    below_crossing,
    bracket_crossing,
    capped,
    delta_listed,
    epsilon_listed,
)
from accountant.analyses.solver import Question, Solver
from accountant.analyses.solvers import Grid
from accountant.bounds import Bounds
from accountant.checks import MAX_COUNT
from accountant.pairs.base import DominatingPair, Parts, gaussian_part, offers


class Nothing(Solver):
    """Nothing was released."""

    name = "nothing"
    reason = "nothing is released"

    def _epsilon(self, delta: float) -> Bounds:
        return Bounds(0.0, 0.0)

    def _delta(self, epsilon: float) -> Bounds:
        return Bounds(0.0, 0.0)


class MergedGaussian(Solver):
    """Plain Gaussians: the sum of their independent normal losses is normal."""

    name = "gaussian"
    reason = "all parts are plain Gaussian noise, which merges into one release (closed form)"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        # Noise multipliers that bracket the true one: (least, most).
        # Equal parts are counted together, in all perhaps more often than the core counts.
        if len(parts) == 1 and parts[0][0].exact and parts[0][1] <= MAX_COUNT:
            self._count = parts[0][1]
            self._sigma = (gaussian_part(parts[0][0]).noise_multiplier,) * 2
            return
        self._count = 1
        # 1/σ² = Σ n/σᵢ²: squares, quotients, sum and root lose less than 8 units together; in
        # units of the least σ, so that no square leaves the range of the doubles.
        sigmas = [gaussian_part(pair).noise_multiplier for pair, _ in parts]
        unit = min(sigmas)
        precision = math.fsum(n * (unit / s) ** 2 for s, (_, n) in zip(sigmas, parts, strict=True))
        sigma = unit / math.sqrt(precision)
        self._sigma = sigma * (1.0 - 16.0 * U), sigma * (1.0 + 16.0 * U)
        if sigma < TINY:  # it may have underflowed; the least double already costs all there is
            self._sigma = LEAST, math.nextafter(2.0 * sigma, 1.0)

    def _least(self) -> float:
        return math.inf

    def _epsilon(self, delta: float) -> Bounds:
        return self._bracket(core.epsilon_bounds, delta)

    def _delta(self, epsilon: float) -> Bounds:
        return self._bracket(core.delta_bounds, epsilon)

    def _bracket(self, ask: Callable[..., tuple[float, float]], at: float) -> Bounds:
        least, most = self._sigma
        upper = ask(1.0, least, self._count, at, core.REMOVE)
        if least == most:
            return Bounds(*upper)
        lower = ask(1.0, most, self._count, at, core.REMOVE)
        return Bounds(min(lower[0], upper[1]), upper[1])


# A bracket that is wider, relatively, is narrowed by the grid.
WIDE = 1e-4
# Probabilities below count as zero.
LEAST_MASS = 1e-280
# Losses of one release up to which its profile is summed again and again; it affects speed alone.
MOST_LOSSES = 2**16


def inverts_itself(pair: DominatingPair) -> bool:
    """Tell whether a pair has a quick way from δ to ε."""
    return offers(pair, "inverse_profile")


def answers_itself(parts: Parts) -> bool:
    """Tell whether the parts are one release whose own profile answers."""
    if len(parts) != 1 or parts[0][1] != 1:
        return False
    pair = parts[0][0]
    return inverts_itself(pair) or (offers(pair, "profile") and _few_losses(pair))


def _few_losses(pair: DominatingPair) -> bool:
    table = pair.loss_atoms
    return table is not None and table.loss.size <= MOST_LOSSES


class OneRelease(Solver):
    """The profile of one release, and its inverse: in closed form, or a sum over few losses."""

    name = "profile"
    reason = "one release, whose profile and its inverse are computed directly"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._pair = parts[0][0]
        self._inverts = inverts_itself(self._pair)
        self._grid: Grid | None = None

    @cached_property
    def largest_loss(self) -> float:
        """The pair's own bound where no table of losses is needed for it."""
        return self._pair.pure_epsilon if self._inverts else super().largest_loss

    def _beside(self) -> Grid:
        if self._grid is None:
            self._grid = Grid(self.parts)
        return self._grid

    def answer(self, asked: Question) -> Bounds:
        """Return both ends, which are known at once."""
        asked = asked._replace(both=True)
        direct = asked.at > 0.0 if asked.kind == "epsilon" else asked.at < math.inf
        # The laws on a grid have some mass at infinity, a pair that inverts its profile has none.
        return self._once(asked) if direct and self._inverts else super().answer(asked)

    def is_below(self, asked: Question, reached: float) -> bool:
        """Tell by the profile there, which is one step of its inversion."""
        if not self._inverts or asked.kind != "epsilon":
            return False
        return float(self._pair.profile(reached).upper) <= asked.at

    def _least(self) -> float:
        if not self._inverts:
            return self._beside()._least()
        # ε does not rise with δ.
        found = self._pair.inverse_profile(LEAST_MASS)
        return 0.0 if found is None else float(found.lower)

    def _epsilon(self, delta: float) -> Bounds:
        if not self._inverts:
            return epsilon_listed(self._crossed, delta, self._pair.left_out)
        found = self._pair.inverse_profile(delta)
        if found is not None and found.upper - found.lower <= WIDE * found.upper:
            return found
        return self._beside().epsilon_bounds(delta).intersection(found)

    def _crossed(self, delta: float) -> Bounds:
        """Bracket ε where the sum over the losses is ``delta``."""
        table = self._pair.loss_atoms
        if table is None or self._side(0.0, 1) <= delta:
            return Bounds(0.0, 0.0)
        farthest = up(max(float(table.loss[-1]) + 2.0 * table.loss_error, LEAST_EPSILON))
        if self._side(farthest, 0) > delta:
            return Bounds(math.inf, math.inf)
        found = bracket_crossing(self._side, delta, 0.5 * farthest, farthest)
        if found is None:  # the mass of infinite losses is next to delta
            low = below_crossing(lambda x: self._side(x, 0), delta, farthest, farthest)
            found = Bounds(low, math.inf)
        return capped(found, self._pair.pure_epsilon)

    def _side(self, epsilon: float, side: int) -> float:
        found = self._pair.profile(epsilon)
        return float(found.upper if side else found.lower)

    def _delta(self, epsilon: float) -> Bounds:
        found = self._pair.profile(epsilon)
        if not self._inverts:
            return delta_listed(found, self._pair.left_out)
        if found.upper <= found.lower * (1.0 + WIDE) + LEAST_MASS:
            return found
        return self._beside().delta_bounds(epsilon).intersection(found)
