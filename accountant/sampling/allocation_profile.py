"""The privacy profile of one of T Gaussian steps, and its inverse.

S is the mean of T independent likelihood ratios. The profile of removal is the call E(S - e^ε)₊,
that of addition e^ε times the put E(e^{-ε} - S)₊. docs/theorems_sampling.md, Theorems S4 and S15.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from accountant._rounding import U
from accountant.bounds import Bounds
from accountant.mechanisms.gaussian import GaussianPair
from accountant.sampling.allocation_line import Contour, contour
from accountant.search import DOUBLES, crossing

Ends: TypeAlias = "tuple[float, float]"

# A line serves other ε while its brackets are narrower than this; only times depend on it.
NARROW = 1e-9
# A search for an ε ends when its two sides are this close, relatively.
CLOSE = 1e-12
# The least ε that is looked for.
LEAST = 1e-300
# Beyond it exponentials of ε leave the doubles.
FARTHEST = 300.0
# Where the δ of the plain Gaussian is below it, no line is made.
NEGLIGIBLE = 1e-250
# A line with more terms takes long.
LONG = 3000
# The most lines of that kind in a search for an ε: without a limit some take seconds.
MOST_LONG = 3
# Answers that a profile remembers.
MOST_ANSWERS = 512


def crossing_of(
    upper: Callable[[float], float],
    lower: Callable[[float], float],
    delta: float,
    guess: float,
    farthest: float,
) -> Bounds | None:
    """Bracket the ε in (0, ``farthest``] where a falling profile is ``delta``; None if none is.

    ``upper`` and ``lower`` bound the profile. δ is at most ``delta`` at the upper end, and above it
    at the lower one: both were evaluated.
    """
    ends = DOUBLES.rank(LEAST), DOUBLES.rank(farthest)
    rank = crossing(upper, delta, DOUBLES, guess, ends, True, CLOSE)
    if rank is None:
        return None
    above = DOUBLES.value(rank)
    rank = crossing(lower, delta, DOUBLES, above * (1.0 - CLOSE), ends, True, CLOSE)
    below = 0.0 if rank is None else DOUBLES.value(rank)
    tried = (below * (1.0 - CLOSE * 2.0**k) for k in range(40))
    below = next((at for at in tried if at > 0.0 and lower(at) > delta), 0.0)
    return Bounds(min(below, above), above)


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
        spread = math.sqrt(math.expm1(min(self._mu**2, 3.0)) / self._steps)
        guess = spread * math.sqrt(max(-2.0 * math.log(delta / min(spread, 1.0) + 1e-300), 0.1))
        farthest = min(2.0 + 40.0 * self._mu + self._mu**2, FARTHEST - 1.0)
        guess = min(max(0.5 * guess, 1e-12), 0.5 * farthest)

        def upper(epsilon: float) -> float:
            return float(self.delta_bounds(epsilon, add).upper)

        def lower(epsilon: float) -> float:
            return float(self.delta_bounds(epsilon, add).lower)

        return crossing_of(upper, lower, delta, guess, farthest)

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
        return found


def _ends(one: Contour, kappa: float, put: bool) -> Ends:
    """Evaluate at both ends of what κ may be: puts grow with it, calls fall."""
    around = np.array([kappa * (1.0 - 8.0 * U), kappa * (1.0 + 8.0 * U)])
    around.sort()
    lower, upper = one.bounds(around)
    low, high = (0, 1) if put else (1, 0)
    return float(lower[low]), float(upper[high])
