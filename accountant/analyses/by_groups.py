"""Parts that no one analysis serves well, bounded in groups as well as together."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from functools import partial

from accountant._rounding import sum_up
from accountant.analyses.brackets import is_within
from accountant.analyses.shift_cuts import covers
from accountant.analyses.solvers import Grid, Solver, is_far
from accountant.bounds import Bounds
from accountant.errors import AccountantError
from accountant.pairs.base import DominatingPair, Parts, has_pld

# Brackets narrower than this, relatively, are not compared with those of the groups.
NARROW = 1e-3
# So many parts of one kind are each a group.
MOST_ALONE = 4
# What one group gets of ε or δ, the others sharing the rest alike.
LARGEST_SHARES = (0.98,)


def groups_of(parts: Parts) -> tuple[Parts, ...]:
    """Return the parts in groups that each have an analysis of their own; one if none gains.

    Gaussian noise has the contour, and losses that no grid reaches spoil that of the others; parts
    without a loss distribution have their curves. A few parts of one kind are groups of their own.
    """
    kinds: dict[str, list[tuple[DominatingPair, int]]] = {}
    for pair, n in parts:
        kinds.setdefault(_kind(pair), []).append((pair, n))
    if kinds.keys() & {"curve", "far"} and len(kinds) > 1:
        return tuple(tuple(group) for group in kinds.values())
    if kinds.keys() == {"curve"}:
        # Some have a pair above their profile as well, which is wide beside a curve.
        alone = tuple(part for part in parts if _is_curve_alone(part[0]))
        return tuple(group for group in (alone, _without(parts, alone)) if group)
    few = 1 < len(parts) <= MOST_ALONE
    return tuple((part,) for part in parts) if few else (parts,)


def _kind(pair: DominatingPair) -> str:
    shifts = pair.gaussian_mixture
    if pair.gaussian_part is not None or (shifts is not None and covers(shifts)):
        return "gaussian"
    if not has_pld(pair):
        return "curve"
    return "far" if is_far(pair) else "grid"


def _is_curve_alone(pair: DominatingPair) -> bool:
    return type(pair).pld_upper_pair is DominatingPair.pld_upper_pair


def _without(parts: Parts, some: Parts) -> Parts:
    return tuple(part for part in parts if part not in some)


class ByGroups(Solver):
    """The bracket of all parts together, and where it is wide the brackets of groups of them.

    No part lowers the loss of another, so the lower end of every group holds (Theorem M20), and the
    upper ends of the groups add up (basic composition, Theorem C1).
    """

    name = "combined"
    reason = "parts of different kinds, bounded together and in groups that share an analysis"

    def __init__(self, parts: Parts, together: Solver, groups: tuple[Solver, ...]) -> None:
        super().__init__(parts)
        self._together, self._groups = together, groups
        # The bracket of such a pair is narrow around its own losses, and its curve may be below it.
        self._sharper = any(pair.sharper_rdp for pair, _ in parts)
        if isinstance(together, Grid):
            self.name, self.reason = together.name, together.reason

    @property
    def together(self) -> Solver:
        """The solver of all parts."""
        return self._together

    def _least(self) -> float:
        return max(one._least() for one in (self._together, *self._groups))

    def quick_epsilon_upper(self, delta: float) -> float:
        """Bound by all parts together."""
        return self._together.quick_epsilon_upper(delta)

    def quick_delta_upper(self, epsilon: float) -> float:
        """Bound by all parts together."""
        return self._together.quick_delta_upper(epsilon)

    def _upper_epsilon(self, delta: float) -> Bounds:
        if isinstance(self._together, Grid):
            with contextlib.suppress(AccountantError):
                found, met = self._together.epsilon_upper_met(delta)
                if met:
                    return Bounds(0.0, found)
        return self._narrower(delta, math.inf, lambda one, at: Bounds(0.0, one.epsilon_upper(at)))

    def _upper_delta(self, epsilon: float) -> Bounds:
        if isinstance(self._together, Grid):
            with contextlib.suppress(AccountantError):
                found, met = self._together.delta_upper_met(epsilon)
                if met:
                    return Bounds(0.0, found)
        return self._narrower(epsilon, 1.0, lambda one, at: Bounds(0.0, one.delta_upper(at)))

    def _epsilon(self, delta: float) -> Bounds:
        return self._narrower(delta, math.inf, lambda one, at: one.epsilon_bounds(at))

    def _delta(self, epsilon: float) -> Bounds:
        return self._narrower(epsilon, 1.0, lambda one, at: one.delta_bounds(at))

    def _narrower(self, at: float, most: float, ask: Callable[[Solver, float], Bounds]) -> Bounds:
        known = _or_nothing(partial(ask, self._together, at), most)
        if is_within(known, NARROW) and not self._sharper:
            return known
        alone = [_or_nothing(partial(ask, one, at), most) for one in self._groups]
        upper = float(known.upper)
        # The sum of the groups, each with all of δ or ε, is what no share of it can be below.
        if math.fsum(float(each.upper) for each in alone) < upper:
            for shares in _shares(len(alone)):
                ends = [
                    float(_or_nothing(partial(ask, one, at * share), most).upper)
                    for one, share in zip(self._groups, shares, strict=True)
                ]
                upper = min(upper, sum_up(ends))
        # A lower end above it belongs to a pair and is no bound on the mechanism.
        lower = [float(each.lower) for each in (known, *alone)]
        return Bounds(max((end for end in lower if end <= upper), default=0.0), upper)


def _shares(groups: int) -> Iterator[list[float]]:
    """Yield shares of δ or ε, which add up to less than one."""
    less = 1.0 - 2.0**-40
    yield [less / groups] * groups
    for largest in LARGEST_SHARES:
        for i in range(groups):
            rest = less * (1.0 - largest) / (groups - 1)
            yield [less * largest if j == i else rest for j in range(groups)]


def _or_nothing(ask: Callable[[], Bounds], most: float) -> Bounds:
    try:
        return ask()
    except AccountantError:
        return Bounds(0.0, most)
