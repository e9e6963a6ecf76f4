"""The privacy profile of one of T Gaussian steps, and its inverse.

S is the mean of T independent likelihood ratios. The profile of removal is the call E(S - e^ε)₊,
that of addition e^ε times the put E(e^{-ε} - S)₊. docs/theorems_sampling.md, Theorems S4 and S15.
"""

from __future__ import annotations

import functools
import math
from typing import TypeAlias

import numpy as np

from accountant._basics.rounding import U
from accountant.bounds import Bounds
from accountant.mechanisms.gaussian import GaussianPair
from accountant.sampling.allocation_line import Contour, contour

Ends: TypeAlias = "tuple[float, float]"

# A line serves other ε while its brackets are narrower than this; only times depend on it.
NARROW = 1e-9
# Beyond it exponentials of ε leave the doubles.
FARTHEST = 300.0
# Where the δ of the plain Gaussian is below it, no line is made.
NEGLIGIBLE = 1e-250
# Calls less certain than this are also computed from puts, which few steps with much noise need.
WIDE = 1e-7
# A line with more terms takes long.
LONG = 3000
# The most lines of that kind in a search for an ε: without a limit some take seconds.
MOST_LONG = 3
# The most steps of Newton's method.
MOST_STEPS = 60
# Answers that a profile remembers.
MOST_ANSWERS = 512


@functools.lru_cache(maxsize=64)
def profile_of(noise_multiplier: float, steps: int) -> AllocationProfile:
    """Return the profile, from a small cache: lines serve several questions."""
    return AllocationProfile(noise_multiplier, steps)


class AllocationProfile:
    """Brackets of both profiles of one of ``steps`` >= 2 Gaussian releases."""

    def __init__(self, noise_multiplier: float, steps: int) -> None:
        self._mu, self._steps = 1.0 / noise_multiplier, steps
        # Not telling which step was picked only hides (Theorem S2).
        self._plain = GaussianPair(noise_multiplier)
        self._recent: dict[bool, tuple[Contour, float]] = {}
        self._long = -1000  # lines made so far that took long
        self._answers: dict[tuple[float, bool], Bounds | None] = {}

    def delta_bounds(self, epsilon: float, add: bool) -> Bounds:
        """Bracket δ at any real ``epsilon``."""
        plain = min(float(self._plain.profile(epsilon).upper), 1.0)
        least = max(-math.expm1(epsilon), 0.0) if epsilon < 0.0 else 0.0
        least *= 1.0 - 8.0 * U
        if not abs(epsilon) < FARTHEST or plain < least + NEGLIGIBLE:
            return Bounds(min(least, plain), plain)
        lower, upper = self._option(math.expm1(-epsilon if add else epsilon))
        scale = math.exp(epsilon) if add else 1.0
        # The option out of the money, and by parity what the other one is worth more.
        low = (lower * scale + least) * (1.0 - 16.0 * U)
        high = (upper * scale + least * (1.0 + 16.0 * U)) * (1.0 + 16.0 * U)
        high = min(high, plain)
        return Bounds(min(low, high), high)

    def epsilon_bounds(self, delta: float, add: bool) -> Bounds | None:
        """Bracket ε at ``delta`` in (0, 1); None where the profile is not known well enough."""
        if (delta, add) not in self._answers:
            if len(self._answers) > MOST_ANSWERS:
                self._answers.clear()
            self._long = 0
            self._answers[delta, add] = self._epsilon_bounds(delta, add)
            self._long = -1000  # single questions about δ are answered at any length
        return self._answers[delta, add]

    def _epsilon_bounds(self, delta: float, add: bool) -> Bounds | None:
        first = self.delta_bounds(0.0, add)
        if first.upper <= delta:
            return Bounds(0.0, 0.0)
        if first.lower <= delta:
            return None
        found = self._root(delta, add)
        if found is None:
            return None
        epsilon, slope = found
        step = max(1e-11 / slope, 4.0 * U * epsilon)
        ends = [0.0, math.inf]
        for side, sign in enumerate((-1.0, 1.0)):
            for k in range(24):
                at = epsilon + sign * step * 2.0**k
                if at <= 0.0:
                    break
                bounds = self.delta_bounds(at, add)
                if bounds.upper <= delta if side else bounds.lower > delta:
                    ends[side] = at
                    break
        return Bounds(ends[0], ends[1]) if ends[1] < math.inf else None

    def _root(self, delta: float, add: bool) -> Ends | None:
        """Return roughly where the profile is ``delta``, and the slope of its logarithm there."""
        low, high = 0.0, min(float(2.0 + 40.0 * self._mu + self._mu**2), FARTHEST - 1.0)
        spread = math.sqrt(math.expm1(min(self._mu**2, 3.0)) / self._steps)
        epsilon = spread * math.sqrt(max(-2.0 * math.log(delta / min(spread, 1.0) + 1e-300), 0.1))
        epsilon = min(max(0.5 * epsilon, 1e-12), 0.5 * high)
        for _ in range(MOST_STEPS):
            value = self._log_middle(epsilon, add)
            if value is None:
                return None
            miss = value - math.log(delta)
            low, high = (epsilon, high) if miss > 0.0 else (low, epsilon)
            beside = self._log_middle(epsilon * (1.0 + 1e-4), add)
            slope = 0.0 if beside is None else (value - beside) / (1e-4 * epsilon)
            if slope > 0.0 and abs(miss) < 1e-10:
                return epsilon + miss / slope, slope
            following = epsilon + miss / slope if slope > 0.0 else 0.5 * (low + high)
            # Far steps only as far as doubling or halving.
            following = min(max(following, 0.4 * epsilon), 2.5 * epsilon)
            epsilon = following if low < following < high else 0.5 * (low + high)
        return None

    def _log_middle(self, epsilon: float, add: bool) -> float | None:
        bounds = self.delta_bounds(epsilon, add)
        if not 0.0 < bounds.lower <= bounds.upper <= 1.1 * bounds.lower:
            return None
        return 0.5 * (math.log(bounds.lower) + math.log(bounds.upper))

    def _option(self, kappa: float) -> Ends:
        """Bracket the put at κ < 0, the call at κ >= 0, κ within a few units of the true one."""
        put = kappa < 0.0
        if put in self._recent:
            recent, width = self._recent[put]
            found = _ends(recent, kappa, put)
            if found[1] <= found[0] * (1.0 + width):
                return found
        if self._long > MOST_LONG:
            return 0.0, math.inf
        made = contour(self._mu, self._steps, kappa, put)
        found = (0.0, math.inf) if made is None else _ends(made, kappa, put)
        if made is not None and found[0] > 0.0:
            self._recent[put] = made, max(NARROW, 4.0 * (found[1] / found[0] - 1.0))
        self._long += made is None or made.terms > LONG
        if kappa > 0.0 and not found[1] <= found[0] * (1.0 + WIDE):
            other = contour(self._mu, self._steps, kappa, True)
            if other is not None:
                low, high = _ends(other, kappa, True)
                found = (
                    max(found[0], (low - kappa) - 8.0 * U * kappa),
                    min(found[1], (high - kappa) + 8.0 * U * kappa),
                )
        return found


def _ends(one: Contour, kappa: float, put: bool) -> Ends:
    """Evaluate at both ends of what κ may be: puts grow with it, calls fall."""
    around = np.array([kappa * (1.0 - 8.0 * U), kappa * (1.0 + 8.0 * U)])
    around.sort()
    lower, upper = one.bounds(around)
    low, high = (0, 1) if put else (1, 0)
    return float(lower[low]), float(upper[high])
