"""Calls on a sum of likelihood ratios of which a few, rare and far above the others, are apart.

A large ratio leaves no room for the tilt that the others need. So they are counted: given which
runs have one, the others make a sum of their own, and what the large ones add moves its strike.
docs/theorems_sampling.md, Theorem S23 (iii).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import TINY, U
from accountant.sampling.ratio_sums import (
    WIDTHS,
    Ends,
    RatioLattice,
    RatioSums,
    mean_bounds,
    tilt_room,
)

# The most ratios that are apart in all runs together, as an expectation.
_EXPECTED = 0.01
# The most values of these ratios.
_VALUES = 6
# The most of them that are told apart in one sum: more are bounded by their mean.
MOST_JUMPS = 3
# The least spacings in a deviation of a common ratio.
_FINE = 20.0
# Standard deviations below the mean of the others at which their calls are on a line.
_DEEP = 5.0


class Jump(NamedTuple):
    """A ratio that is apart: the masses of its cell's ends, or all of it at their mean.

    Attributes
    ----------
    ends : tuple of (value, mass)
        From above.
    mean, mass : float
        From below.
    """

    ends: tuple[tuple[float, float], ...]
    mean: float
    mass: float


class Parts(NamedTuple):
    """A lattice cut in two: the common ratios, of a mass below 1, and those that are apart."""

    common: RatioLattice
    jumps: tuple[Jump, ...]


def is_cramped(one: RatioLattice, steps: int, log_target: float) -> bool:
    """Tell whether the largest ratio needs a larger window, or leaves less room for the tilt."""
    seen = np.flatnonzero(one.masses > 0.0)
    mean = float(one.masses @ np.arange(one.masses.size))
    deviation = math.sqrt(steps * one.variance) / one.spacing
    largest = float(seen[-1]) - mean
    return largest > WIDTHS * deviation or tilt_room(largest) * deviation < math.sqrt(
        -2.0 * log_target
    )


def parts_of(one: RatioLattice, steps: int) -> Parts | None:
    """Cut off large ratios that are rare; None where there are none."""
    seen = np.flatnonzero(one.masses > 0.0)
    # No cell is cut: one that holds a ratio has a mass at one of its ends, or both.
    runs = np.split(seen, np.flatnonzero(np.diff(seen) > 2) + 1)
    jumps: list[Jump] = []
    expected = 0.0
    while len(runs) > 1 and len(jumps) < _VALUES:
        masses = one.masses[runs[-1]]
        total = float(masses.sum())
        expected += steps * total
        if expected > _EXPECTED:
            break
        values = one.spacing * runs.pop()
        ends = tuple(zip(values.tolist(), masses.tolist(), strict=True))
        jumps.append(Jump(ends, float(values @ masses) / total, total))
    if not jumps:
        return None
    count = int(runs[-1][-1]) + 2
    common = one._replace(masses=one.masses[:count], bumps=one.bumps[: count - 1])
    # The lattice was made for all ratios.
    fine = deviation_of(common.masses) >= _FINE
    return Parts(common, tuple(jumps)) if fine else None


def deviation_of(masses: FloatArray) -> float:
    """Return the standard deviation of a law on a lattice, in its spacings."""
    place, total = np.arange(masses.size), float(masses.sum())
    own = float(masses @ place) / total
    return math.sqrt(float(masses @ (place - own) ** 2) / total)


class JumpSums:
    """E(X - K)₊ for the sum X of ``steps`` ratios, by the number of those that are apart.

    Parameters
    ----------
    whole : RatioLattice
        All ratios.
    parts : Parts
        The same, cut in two.
    steps : int
        T, more than ``MOST_JUMPS``.
    sums : callable
        Returns the sums of common ratios, by their number and a tilt.
    log_target : float
        Of the sum without ratios that are apart.
    """

    def __init__(
        self,
        whole: RatioLattice,
        parts: Parts,
        steps: int,
        sums: Callable[[int, float], RatioSums],
        log_target: float,
    ) -> None:
        self._whole, self._steps, self._jumps = whole, steps, parts.jumps
        self._mass = float(parts.common.masses.sum())
        values = parts.common.spacing * np.arange(parts.common.masses.size)
        self._mean = float(parts.common.masses @ values)
        self._deviation = whole.spacing * deviation_of(parts.common.masses)
        self._sums = [[sums(steps, log_target)]]
        self._sums += [[sums(steps - 1, t) for t in (-1.0, -6.0)], [sums(steps - 2, -1.0)]]

    def bounds(self, strikes: FloatArray) -> Ends:
        """Bracket E(S - K)₊ for the mean S and strikes K of shape (m,)."""
        return mean_bounds(self._whole, self._steps, False, strikes, self._options)

    def _options(self, strikes: FloatArray, *, upper: bool) -> FloatArray:
        found = self._sums[0][0].options(strikes, upper=upper)
        for count in range(1, MOST_JUMPS + 1 if upper else len(self._sums)):
            found = found + self._part(strikes, count, upper)
        return found + self._more() if upper else found

    def _part(self, strikes: FloatArray, count: int, upper: bool) -> FloatArray:
        """Bound the part of ``count`` ratios that are apart."""
        moves, weights = self._sums_apart(count, upper)
        # Strikes in their order, move after move: they are looked up among the sum's values.
        moved = strikes - np.array(moves)[:, None]
        calls = self._common(moved.ravel(), count, upper).reshape(moved.shape)
        slack = (count + 1.0) * (self._whole.mass_error * 1.01 + 64.0 * U)
        # A weight that may have underflowed is nothing from below, and not 0 from above: a call
        # without a bound stays without one.
        factor = np.array(weights)
        if upper:
            return np.asarray(np.maximum(factor, TINY) @ calls * (1.0 + slack))
        return np.asarray(np.where(factor < TINY, 0.0, factor) @ calls * (1.0 - slack))

    def _sums_apart(self, count: int, upper: bool) -> tuple[list[float], list[float]]:
        """Return what ``count`` ratios that are apart add up to, and how often, from one side."""
        single = [(jump.mean, jump.mass) for jump in self._jumps]
        # Of the most, which are the rarest, only the sum is spread, to the two ends of its range.
        spread = upper and count == MOST_JUMPS
        if upper and not spread:
            single = [end for jump in self._jumps for end in jump.ends]
        moves, weights = [], []
        for chosen in combinations_with_replacement(range(len(single)), count):
            weight = 1.0
            for i in range(count):
                weight *= (self._steps - i) * single[chosen[i]][1]
            for index in set(chosen):
                weight /= math.factorial(chosen.count(index))
            mean = sum(single[index][0] for index in chosen)
            if not spread:
                moves.append(mean)
                weights.append(weight)
                continue
            low = sum(self._jumps[index].ends[0][0] for index in chosen)
            high = sum(self._jumps[index].ends[-1][0] for index in chosen)
            share = 1.0 if high == low else (mean - low + 32.0 * U * high) / (high - low)
            share = min(max(share, 0.0), 1.0)
            moves += [low, high]
            weights += [weight * (1.0 - share), weight * share]
        return moves, weights

    def _common(self, strikes: FloatArray, count: int, upper: bool) -> FloatArray:
        """Bound calls on the sum of the common ratios of all runs but ``count``."""
        used = min(count, len(self._sums) - 1)
        runs = self._steps - used
        # Where the call is hardly an option: it falls at most by the mass, and is convex.
        mass, mean = self._mass**runs, runs * self._mean * self._mass ** (runs - 1)
        deep = runs * self._mean - _DEEP * self._deviation * math.sqrt(runs)
        slack = runs * (self._whole.mass_error * 1.01 + 64.0 * U)
        found = np.full(strikes.size, math.inf if upper else 0.0)
        for sums in self._sums[used]:
            at = np.maximum(strikes, max(deep, sums.first))
            calls = sums.options(at, upper=upper)
            if upper:
                found = np.minimum(found, calls + (at - strikes) * mass * (1.0 + slack))
            else:
                found = np.maximum(found, calls)
        if upper:
            # A run more, of a ratio >= 0, makes a call larger but for its mass.
            return np.asarray(found * self._mass ** (used - count) * (1.0 + slack))
        forward = mean * (1.0 - slack) - strikes * mass * (1.0 + slack * np.sign(strikes))
        return np.asarray(np.maximum(found, forward))

    def _more(self) -> float:
        """Bound the mean of the sum where more than ``MOST_JUMPS`` ratios are apart."""
        total = sum(jump.mass for jump in self._jumps)
        apart = sum(jump.mean * jump.mass for jump in self._jumps)
        expected = self._steps * total
        more = [expected**k / math.factorial(k) for k in (MOST_JUMPS, MOST_JUMPS + 1)]
        slack = 1.0 + self._steps * (self._whole.mass_error + 64.0 * U) + 1e-9
        return self._steps * (apart * more[0] + self._mean * more[1]) * slack
