"""A finite privacy loss distribution with every error stated: the profile and its inverse.

Theorem numbers refer to docs/theorems_conversions.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from accountant import intervals as iv
from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.analyses.optimal.certified_inverse import certified_epsilon
from accountant.intervals import Interval
from accountant.search import bisect

# NumPy's expm1 is trusted to 8 roundings, as the core's is; tests/test_intervals.py measures it.
LIBRARY = 8.0
# Share of δ given to the event that roundings to the grid add up further than the lower bound says.
SACRIFICE = 1e-9


@dataclass(frozen=True, eq=False)
class LossTable:
    """Atoms of the loss under P, in increasing order of loss.

    Attributes
    ----------
    losses, masses : float64 arrays of one shape
        The atoms.
    relative_error : float
        Every mass lies within this share of its exact value.
    shift : float
        Every loss lies within this distance of its exact value, in nats.
    missing : float
        At most this mass under P has no atom here.
    infinite : Interval
        The mass at +∞; the atoms describe the rest, normalised to one.
    rounded, spacing : int and float
        So many independent summands of the loss were spread over a grid of this spacing so that the
        table dominates the exact distribution (Theorem C6).
    """

    losses: FloatArray
    masses: FloatArray
    relative_error: float
    shift: float
    missing: float
    infinite: Interval
    rounded: int = 0
    spacing: float = 0.0

    def delta_bounds(self, epsilon: float) -> tuple[float, float]:
        """Bracket the profile at ``epsilon``."""
        above = math.nextafter(self._sum(_down(epsilon - self.shift)), math.inf)
        roundings = 2.0 * math.sqrt(self.losses.size) + LIBRARY + 32.0
        # The factor 2 covers the products of these errors and what assembling them rounds.
        error = 2.0 * (self.relative_error + roundings * U)
        upper = above * (1.0 + error) + self.missing
        sacrificed, shift = self._lower_corrections(above)
        lower = self._sum(_up(epsilon + self.shift + shift)) * (1.0 - error) - sacrificed
        # One more rounding each, in the last additions above.
        upper = min(upper * (1.0 + 8.0 * U), 1.0)
        lower = min(max(lower * (1.0 - 8.0 * U), 0.0), 1.0)
        finite = iv.of(1.0) - self.infinite
        return (
            min(max((self.infinite + finite * lower).down(), 0.0), 1.0),
            min((self.infinite + finite * upper).up(), 1.0),
        )

    def epsilon_bounds(self, delta: float, largest: Interval) -> tuple[float, float]:
        """Bracket ε(delta); ``largest`` encloses the largest finite loss."""
        if self.infinite.lower > iv.of(delta).upper:
            return math.inf, math.inf
        if delta == 0.0 and self.infinite.upper == 0:
            # The profile is positive below the largest loss, and zero there.
            return max(largest.down(), 0.0), largest.up()
        # Beyond the largest loss the profile does not fall any more.
        most = 2.0 * largest.up()
        lower, upper = certified_epsilon(self.delta_bounds, delta, self._guess(delta), most)
        if self.infinite.upper <= iv.of(delta).lower:
            upper = min(upper, largest.up())
        return min(lower, upper), upper

    def _sum(self, epsilon: float) -> float:
        """Return Σ mass (1 - e^(ε - loss))₊ in plain floating point."""
        first = int(np.searchsorted(self.losses, epsilon, side="right"))
        weights = -np.expm1(epsilon - self.losses[first:])
        return add_up(weights * self.masses[first:])

    def _lower_corrections(self, profile: float) -> tuple[float, float]:
        if self.rounded == 0:
            return 0.0, 0.0
        sacrificed = SACRIFICE * profile
        if not sacrificed > 0.0:
            return 0.0, math.inf
        spread = math.sqrt(-0.5 * self.rounded * math.log(sacrificed))
        return sacrificed, (self.rounded * self.spacing / 8.0 + spread) * self.spacing * (1 + 1e-12)

    def _guess(self, delta: float) -> float:
        """Return roughly ε(delta): find the two atoms around it, then interpolate in e^ε."""
        infinite = float(self.infinite.upper)
        target = max(delta - infinite, 0.0) / max(1.0 - infinite, 1e-300)
        last = self.losses.size - 1
        if last < 0 or self._sum(0.0) <= target:
            return 0.0
        below = bisect(lambda k: self._sum(float(self.losses[k])) > target, 0, last)
        start = max(float(self.losses[below]), 0.0)
        end = float(self.losses[min(below + 1, last)])
        return interpolate(self._sum, start, end, target)


def interpolate(profile: Callable[[float], float], start: float, end: float, delta: float) -> float:
    """Return where a profile linear in e^ε between ``start`` and ``end`` takes ``delta``."""
    at_start, at_end = profile(start), profile(end)
    if not at_start > at_end or not start < end:
        return max(end, 0.0)
    share = min(max((at_start - delta) / (at_start - at_end), 0.0), 1.0)
    width = end - start
    if width < 700.0:
        return start + math.log1p(math.expm1(width) * share)
    return end + math.log(share) if share > 0.0 else start


def add_up(terms: FloatArray) -> float:
    """Add n terms so that none passes through more than 2 + 2√n additions."""
    side = math.isqrt(terms.size)
    if side < 2:
        return float(terms.sum())
    whole = side * (terms.size // side)
    rows = terms[:whole].reshape(-1, side).sum(axis=1)
    return float(rows.sum() + terms[whole:].sum())


def _down(x: float) -> float:
    return math.nextafter(math.nextafter(x, -math.inf), -math.inf)


def _up(x: float) -> float:
    return math.nextafter(math.nextafter(x, math.inf), math.inf)
