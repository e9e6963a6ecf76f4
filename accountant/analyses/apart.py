"""Parts that only add a bounded δ are set apart from the analysis of the rest (Theorem M20)."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from accountant._rounding import U, up
from accountant.analyses.direct import Direct
from accountant.analyses.solvers import Solver
from accountant.bounds import Bounds
from accountant.errors import AccountantError
from accountant.pairs.base import DominatingPair, Parts, has_pld
from accountant.pairs.sums import infinite_mass, variation

# A part whose releases together are seen with less probability than this is seldom seen: where all
# parts are Gaussian noise, and where some are of another kind.
SELDOM, SELDOM_ON_GRID = 1e-18, 1e-10
# It is left out of the analysis where δ is at least this many times as large: the digits of a
# contour or a sum of few losses, and those of a grid, whose width a rare part would determine.
RATIO, RATIO_ON_GRID = 1e12, 1e8
LARGEST = 1.0 - U  # of the δ of a question


def without_parts_apart(parts: Parts) -> tuple[Parts, Parts, Parts]:
    """Return the parts that need an analysis, those that only fail, and those seldom seen."""
    rest: list[tuple[DominatingPair, int]] = []
    failing: list[tuple[DominatingPair, int]] = []
    seldom: list[tuple[DominatingPair, int]] = []
    limit = SELDOM if _are_gaussian(parts) else SELDOM_ON_GRID
    for part in parts:
        if _only_fails(part[0]):
            failing.append(part)
        elif len(parts) > 1 and _seen(part) < limit:
            seldom.append(part)
        else:
            rest.append(part)
    # What is seldom seen is analysed where nothing else is.
    left, right = (rest, seldom) if rest else (seldom, [])
    return tuple(left), tuple(failing), tuple(right)


def _seen(part: tuple[DominatingPair, int]) -> float:
    return part[0].variation if part[1] == 1 else variation((part,))


def _are_gaussian(parts: Parts) -> bool:
    shifted = (pair for pair, _ in parts if pair.gaussian_part is None)
    return all(pair.gaussian_mixture is not None or _only_fails(pair) for pair in shifted)


def _only_fails(pair: DominatingPair) -> bool:
    """Tell whether every finite loss is 0 and some loss is infinite, as in (0, δ)-privacy."""
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
        rest, failing, self._seldom = without_parts_apart(parts)
        self._apart = {pair: "fails" for pair, _ in failing}
        self._apart |= {pair: "seldom" for pair, _ in self._seldom}
        self._solve, self._rest = solve, solve(rest)
        self._kept = (*rest, *self._seldom)
        self._with_seldom: Solver | None = None
        self._seen = variation(self._seldom)
        self._fails = _at_least_once(failing), infinite_mass(failing)
        self.name, self.reason = self._rest.name, self._rest.reason

    @property
    def rest(self) -> Solver:
        """The solver of the parts that need an analysis."""
        return self._rest

    def reason_apart(self, pair: DominatingPair) -> str | None:
        """Return why a pair is set apart, ``"fails"`` or ``"seldom"``; None where it is not."""
        return self._apart.get(pair)

    def _least(self) -> float:
        return math.inf if self._fails[0] > 0.0 else self._rest._least()

    def _epsilon(self, delta: float) -> Bounds:
        most, least = self._left(delta)
        if most < 0.0:
            return Bounds(math.inf, math.inf)
        one = self._rest
        if least > 0.0 and self._is_felt(least):
            one = self._everything()
        elif self._seen > 0.0:
            least = math.nextafter(least - self._seen, 0.0)
        # The lower end first: it is then that of the rest alone, to the last bit.
        lower = float(one.epsilon_bounds(min(most, LARGEST)).lower)
        upper = float(one.epsilon_bounds(least).upper) if least > 0.0 else math.inf
        return Bounds(min(lower, upper), upper)

    def _delta(self, epsilon: float) -> Bounds:
        found = self._rest.delta_bounds(epsilon)
        if self._seen > 0.0:
            more = Bounds(found.lower, min(up(float(found.upper) + self._seen, 2.0), 1.0))
            if self._is_felt(float(found.upper)):
                with contextlib.suppress(AccountantError):
                    more = self._everything().delta_bounds(epsilon).intersection(more)
            found = more
        low, high = self._fails
        return Bounds(
            _down((low + (1.0 - low) * float(found.lower)) * (1.0 - 8.0 * U))
            if low
            else found.lower,
            min(up(high + (1.0 - high) * float(found.upper), 8.0), 1.0) if high else found.upper,
        )

    def _is_felt(self, delta: float) -> bool:
        """Tell whether the parts seldom seen matter beside ``delta``, to the digits there are."""
        if not self._seen * RATIO > delta:
            return False
        return self._seen * RATIO_ON_GRID > delta or self._has_more_digits

    @cached_property
    def _has_more_digits(self) -> bool:
        return _are_gaussian(self._kept) or Direct(self._kept).is_known()

    def _everything(self) -> Solver:
        """Return the solver with the seldom seen parts, for a δ that is not large beside them."""
        if self._with_seldom is None:
            self._with_seldom = self._solve(self._kept)
        return self._with_seldom

    def _left(self, delta: float) -> tuple[float, float]:
        """Return what of ``delta`` is left for finite losses: (at most, at least)."""
        low, high = self._fails
        if high == 0.0:
            return delta, delta
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
