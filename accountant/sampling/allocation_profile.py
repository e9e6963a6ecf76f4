"""The privacy profile of one of T Gaussian steps, and its inverse.

S is the mean of T independent likelihood ratios. The profile of removal is the call E(S - e^ε)₊,
that of addition e^ε times the put E(e^{-ε} - S)₊. docs/theorems_sampling.md, Theorems S4, S15 and
S27.
"""

from __future__ import annotations

import functools
import math
from typing import TypeAlias

import numpy as np

from accountant._basics.rounding import U
from accountant.bounds import Bounds
from accountant.mechanisms.gaussian import GaussianPair
from accountant.sampling.allocation_bend import put
from accountant.sampling.allocation_line import Contour, contour
from accountant.sampling.allocation_plan import MOST_TERMS

Ends: TypeAlias = "tuple[float, float]"

# A line serves other ε while its brackets are narrower than this; only times depend on it.
NARROW = 1e-9
# Beyond it exponentials of ε leave the doubles.
FARTHEST = 300.0
# Where the δ of the plain Gaussian is below it, no line is made.
NEGLIGIBLE = 1e-250
# A bent path's bracket that is this narrow, relatively, needs no line: ε is known to 1e-6 of it.
SETTLED = 1e-6
# A line with more terms takes long.
LONG = 3000
# The most lines of that kind in a search for an ε: without a limit some take seconds.
MOST_LONG = 3
# A bent path's bracket that is wider, relatively, does not take the place of a line.
ENOUGH = 1e-2
# Doublings of the distance from a root to either end.
MOST_DOUBLINGS = 40
# The most steps of the search for an ε.
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
        self._hard = {True: math.inf, False: math.inf}  # |κ| from which lines are long
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
        epsilon, slope, doubt = found
        step = max(1e-11, 1.1 * doubt) / slope + 4.0 * U * epsilon
        ends = [0.0, math.inf]
        for side, sign in enumerate((-1.0, 1.0)):
            for k in range(MOST_DOUBLINGS):
                at = epsilon + sign * step * 2.0**k
                if at <= 0.0:
                    break
                bounds = self.delta_bounds(at, add)
                if bounds.upper <= delta if side else bounds.lower > delta:
                    ends[side] = at
                    break
        return Bounds(ends[0], ends[1]) if ends[1] < math.inf else None

    def _root(self, delta: float, add: bool) -> tuple[float, float, float] | None:
        """Return about where the profile is ``delta``, and its logarithm's slope and half width."""
        low, high = 0.0, min(float(2.0 + 40.0 * self._mu + self._mu**2), FARTHEST - 1.0)
        spread = math.sqrt(math.expm1(min(self._mu**2, 3.0)) / self._steps)
        epsilon = spread * math.sqrt(max(-2.0 * math.log(delta / min(spread, 1.0) + 1e-300), 0.1))
        epsilon = min(max(0.5 * epsilon, 1e-12), 0.5 * high)
        last, before = 0.0, math.inf  # the point before, and its value
        for _ in range(MOST_STEPS):
            found = self._log_middle(epsilon, add)
            if found is None:
                if not self.delta_bounds(epsilon, add).upper <= delta:
                    return None
                high = epsilon
                epsilon = 0.5 * (low + high)
                continue
            miss = found[0] - math.log(delta)
            low, high = (epsilon, high) if miss > 0.0 else (low, epsilon)
            slope = (before - miss) / (epsilon - last) if before < math.inf else 0.0
            if slope > 0.0 and abs(miss) < max(1e-6, 0.1 * found[1]):
                return epsilon + miss / slope, slope, found[1]
            if before == math.inf:
                following = epsilon * (1.0 + 1e-4)
            else:
                following = epsilon + miss / slope if slope > 0.0 else 0.5 * (low + high)
            # Far steps only as far as doubling or halving.
            following = min(max(following, 0.4 * epsilon), 2.5 * epsilon)
            last, before = epsilon, miss
            epsilon = following if low < following < high else 0.5 * (low + high)
        return None

    def _log_middle(self, epsilon: float, add: bool) -> Ends | None:
        """Return the middle of the logarithms of the ends of δ, and half their distance."""
        bounds = self.delta_bounds(epsilon, add)
        if not 0.0 < bounds.lower <= bounds.upper <= 1.1 * bounds.lower:
            return None
        ends = math.log(bounds.lower), math.log(bounds.upper)
        return 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0])

    def _option(self, kappa: float) -> Ends:
        """Bracket the put at κ < 0, the call at κ >= 0, κ within a few units of the true one."""
        side = kappa < 0.0
        bent = _bent(self._mu, self._steps, kappa)
        if _is_narrow(bent, SETTLED):
            return bent
        if side in self._recent:
            recent, width = self._recent[side]
            found = _ends(recent, kappa, side)
            if _is_narrow(found, width):
                return max(found[0], bent[0]), min(found[1], bent[1])
        # Where a line is long for want of decay, it is for all strikes beyond, too.
        short = _is_narrow(bent, ENOUGH) or (self._long >= 0 and bent[1] < math.inf)
        if self._long > MOST_LONG or (short and abs(kappa) >= self._hard[side]):
            return bent
        made = contour(
            self._mu, self._steps, kappa, side, longest=MOST_TERMS if short else math.inf
        )
        if made is None and short:
            self._hard[side] = min(self._hard[side], abs(kappa))
            return bent
        found = (0.0, math.inf) if made is None else _ends(made, kappa, side)
        if made is not None and found[0] > 0.0:
            self._recent[side] = made, max(NARROW, 4.0 * (found[1] / found[0] - 1.0))
        self._long += made is None or made.terms > LONG
        if kappa > 0.0 and not _is_narrow(found, SETTLED) and bent[1] == math.inf:
            # Few steps with much noise have shorter lines for puts.
            other = contour(self._mu, self._steps, kappa, True)
            bent = bent if other is None else _call(_ends(other, kappa, True), kappa)
        return max(found[0], bent[0]), min(found[1], bent[1])


def _is_narrow(ends: Ends, width: float) -> bool:
    return ends[0] > 0.0 and ends[1] <= ends[0] * (1.0 + width)


def _call(put: Ends, kappa: float) -> Ends:
    """Return the call by parity."""
    return put[0] - kappa - 8.0 * U * kappa, put[1] - kappa + 8.0 * U * kappa


def _bent(mu: float, steps: int, kappa: float) -> Ends:
    """Bracket the option by a bent path, where ratios are few (Theorem S27)."""
    found = put(mu, steps, kappa)
    if found is None:
        return 0.0, math.inf
    return found if kappa < 0.0 else _call(found, kappa)


def _ends(one: Contour, kappa: float, put: bool) -> Ends:
    """Evaluate at both ends of what κ may be: puts grow with it, calls fall."""
    around = np.array([kappa * (1.0 - 8.0 * U), kappa * (1.0 + 8.0 * U)])
    around.sort()
    lower, upper = one.bounds(around)
    low, high = (0, 1) if put else (1, 0)
    return float(lower[low]), float(upper[high])
