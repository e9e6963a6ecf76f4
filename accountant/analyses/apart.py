"""Parts that only add a δ are set apart from the analysis of the rest (Theorem M20)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from accountant._rounding import U, up
from accountant.analyses.solvers import Solver
from accountant.bounds import Bounds
from accountant.pairs.base import DominatingPair, Parts, has_pld
from accountant.pairs.product import infinite_mass

LARGEST = 1.0 - U  # of the δ of a question


def failing_parts(parts: Parts) -> Parts:
    """Return the parts whose every finite loss is 0, as in (0, δ)-privacy."""
    return tuple([part for part in parts if _only_fails(part[0])])


def _only_fails(pair: DominatingPair) -> bool:
    if type(pair).inverse_profile is not DominatingPair.inverse_profile:
        return False  # its losses need not be computed, and take long
    return pair.infinite_mass > 0.0 and has_pld(pair) and pair.support == (0.0, 0.0)


class Apart(Solver):
    """The rest of a composition, and a δ that the parts set apart add to it.

    Parameters
    ----------
    parts : tuple of (DominatingPair, int)
        All parts.
    solve : callable
        Returns the solver of some of the parts.
    """

    def __init__(self, parts: Parts, solve: Callable[[Parts], Solver]) -> None:
        super().__init__(parts)
        self.failing = failing_parts(parts)
        self.rest = solve(tuple([part for part in parts if part not in self.failing]))
        self._fails = _at_least_once(self.failing), infinite_mass(self.failing)
        self.name, self.reason = self.rest.name, self.rest.reason

    def _least(self) -> float:
        return math.inf if self._fails[0] > 0.0 else self.rest._least()

    def _upper_epsilon(self, delta: float) -> Bounds:
        _, least = self._left(delta)
        return Bounds(0.0, self.rest.epsilon_upper(least) if least > 0.0 else math.inf)

    def _epsilon(self, delta: float) -> Bounds:
        most, least = self._left(delta)
        if most < 0.0:
            return Bounds(math.inf, math.inf)
        lower = float(self.rest.epsilon_bounds(min(most, LARGEST)).lower)
        upper = float(self.rest.epsilon_bounds(least).upper) if least > 0.0 else math.inf
        return Bounds(min(lower, upper), upper)

    def _delta(self, epsilon: float) -> Bounds:
        found = self.rest.delta_bounds(epsilon)
        low = self._fails[0]
        lower = low + (1.0 - low) * float(found.lower)
        return Bounds(_down(lower * (1.0 - 8.0 * U)), self._with_failures(float(found.upper)))

    def _upper_delta(self, epsilon: float) -> Bounds:
        return Bounds(0.0, self._with_failures(self.rest.delta_upper(epsilon)))

    def _with_failures(self, upper: float) -> float:
        high = self._fails[1]
        return min(up(high + (1.0 - high) * upper, 8.0), 1.0)

    def _left(self, delta: float) -> tuple[float, float]:
        """Return what of ``delta`` is left for finite losses: (at most, at least)."""
        low, high = self._fails
        # H = m + (1 - m)·H' is at most delta if and only if H' <= (delta - m)/(1 - m).
        most = (delta - low) / (1.0 - low)
        most += 4.0 * U * (abs(most) + U * delta)
        least = math.nextafter((delta - high) / (1.0 - high) * (1.0 - 8.0 * U), -math.inf)
        return most, max(least, 0.0)


def _at_least_once(parts: Parts) -> float:
    """Return the probability that one of the releases fails, rounded down."""
    log_none = 0.0
    for pair, n in parts:
        beyond = pair.masses(np.array([1.0]))
        mass = float(beyond.p[-1]) * (1.0 - 2.0 * beyond.relative_error)
        log_none += n * math.log1p(-min(max(mass, 0.0), 1.0 - U))
    return _down(-math.expm1(log_none * (1.0 - 2.0**-48)) * (1.0 - 16.0 * U))


def _down(value: float) -> float:
    """Return the next double below, 0 at least: factors next to 1 lower no subnormal number."""
    return max(math.nextafter(value, 0.0), 0.0)
