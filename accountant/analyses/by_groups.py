"""Parts of a composition that are analysed apart: in groups, or because they only add a δ."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from accountant._basics.rounding import U, sum_up, up
from accountant.analyses import renyi_conversion
from accountant.analyses.gaussian_mixtures import covers
from accountant.analyses.pld.saddle_point import is_far
from accountant.analyses.solver import Question, Solver, is_within
from accountant.analyses.solvers import TOLERANCES, Grid, Renyi
from accountant.bounds import Bounds
from accountant.errors import AccountantError, UnsupportedError
from accountant.pairs.base import DominatingPair, Parts, has_pld, has_rdp, offers
from accountant.pairs.product import infinite_mass, total
from accountant.pairs.profile_pair import ProfilePair

# Brackets narrower than this, relatively, are not compared with those of the groups.
NARROW = 1e-3
# Equal shares of δ or ε times this add up to less than all of it.
LESS = 1.0 - 2.0**-40
# Up to this many parts of one kind are each a group; it affects the width of mixes alone.
MOST_ALONE = 4


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
    return not offers(pair, "pld_upper_pair")


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

    def quick(self, asked: Question) -> float:
        """Bound by all parts together."""
        return self._together.quick(asked)

    def _answer(self, asked: Question) -> Bounds:
        if not asked.both and isinstance(self._together, Grid):
            with contextlib.suppress(AccountantError):
                found, met = self._together.upper_met(asked)
                if met:
                    return found
        known = _or_nothing(self._together, asked)
        if is_within(known, NARROW) and not self._sharper:
            return known
        alone = [_or_nothing(one, asked) for one in self._groups]
        upper = float(known.upper)
        # The sum of the groups, each with all of δ or ε, is what no share of it can be below.
        if math.fsum(float(each.upper) for each in alone) < upper:
            shared = asked._replace(at=asked.at * LESS / len(alone))
            ends = [float(_or_nothing(one, shared).upper) for one in self._groups]
            upper = min(upper, sum_up(ends))
        # A lower end above it belongs to a pair and is no bound on the mechanism.
        lower = [float(each.lower) for each in (known, *alone)]
        return Bounds(max((end for end in lower if end <= upper), default=0.0), upper)


def _or_nothing(solver: Solver, asked: Question) -> Bounds:
    try:
        return solver.answer(asked)
    except AccountantError:
        return Bounds(0.0, asked.most)


LARGEST = 1.0 - U  # of the δ of a question


def failing_parts(parts: Parts) -> Parts:
    """Return the parts whose every finite loss is 0, as in (0, δ)-privacy."""
    return tuple([part for part in parts if _only_fails(part[0])])


def _only_fails(pair: DominatingPair) -> bool:
    if offers(pair, "inverse_profile"):
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

    def _answer(self, asked: Question) -> Bounds:
        if asked.kind == "delta":
            found, low = self.rest.answer(asked), self._fails[0]
            lower = low + (1.0 - low) * float(found.lower)
            return Bounds(_down(lower * (1.0 - 8.0 * U)), self._with_failures(float(found.upper)))
        most, least = self._left(asked.at)
        if most < 0.0 and asked.both:
            return Bounds(math.inf, math.inf)
        upper = float(self.rest.answer(asked._replace(at=least)).upper) if least > 0.0 else math.inf
        if not asked.both:
            return Bounds(0.0, upper)
        lower = float(self.rest.epsilon_bounds(min(most, LARGEST)).lower)
        return Bounds(min(lower, upper), upper)

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


# A conversion of Rényi curves loses parts in a thousand: grids beside it need no more digits.
ROOMY = (1e-5, *TOLERANCES[1:])


@dataclass(frozen=True)
class CurveBounds:
    """Bounds on the profile of a composition by Rényi curves alone."""

    parts: Parts

    def delta(self, epsilon: float) -> float:
        """Bound the profile."""
        return renyi_conversion.delta_upper(self.parts, epsilon, _curve(self.parts), floats=True)

    def rdp(self, order: float) -> float:
        """Bound the Rényi divergence."""
        return total((pair.rdp(order), n) for pair, n in self.parts)

    @property
    def pure_epsilon(self) -> float:
        """Bound the loss."""
        return total((pair.pure_epsilon, n) for pair, n in self.parts)


@lru_cache(maxsize=8)
def _curve(parts: Parts) -> Callable[[float], float]:
    # Hundreds of values of the profile scan the same orders.
    return lru_cache(maxsize=4096)(renyi_conversion.curve_of(parts))


def dominating(parts: Parts) -> Parts:
    """Return parts with a loss distribution that dominate the given ones.

    A pair may know one from other answers. The divergences of all others add up, and convert to a
    bound on their joint profile (Theorems M12 and C10), whose chords are a loss distribution
    (Theorem P7).
    """
    found: list[tuple[DominatingPair, int]] = []
    curves: list[tuple[DominatingPair, int]] = []
    for pair, n in parts:
        upper = pair if has_pld(pair) else _upper_pair(pair)
        if upper is not None:
            found.append((upper, n))
        elif has_rdp(pair):
            curves.append((pair, n))
        else:
            raise UnsupportedError(
                f"{type(pair).__name__} has no capability that an analysis uses: a loss"
                " distribution (masses), a Rényi curve (rdp) or the parameters of Gaussian noise"
                " (gaussian_part)"
            )
    if curves:
        found.append((ProfilePair(CurveBounds(tuple(curves))), 1))
    return tuple(found)


def _upper_pair(pair: DominatingPair) -> DominatingPair | None:
    try:
        return pair.pld_upper_pair()
    except AccountantError:
        # The profile could not be computed. Rényi divergences remain, as without such a pair.
        return None


class UpperPairs(Solver):
    """The smaller of two bounds: dominating pairs on a grid, and Rényi curves.

    A dominating pair bounds the profile from above only, so the lower end is 0.
    """

    name = "grid"
    reason = (
        "what shares a sample, has no order or is known by its Rényi curve alone has a pair that"
        " dominates its profile, on one grid"
    )

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        pairs = dominating(parts)
        has_curve = any(isinstance(pair, ProfilePair) for pair, _ in pairs)
        self._grid = Grid(pairs, ROOMY if has_curve else TOLERANCES)
        self._curves = Renyi(parts) if all(has_rdp(pair) for pair, _ in parts) else None

    def quick(self, asked: Question) -> float:
        """Evaluate the coarsest grid of the dominating pairs."""
        return self._grid.quick(asked)

    def answer(self, asked: Question) -> Bounds:
        """Return the lesser of the bounds by the dominating pairs and by the curves, and 0."""
        asked = asked._replace(both=False)
        try:
            known = math.inf if self._curves is None else float(self._curves.answer(asked).upper)
        except UnsupportedError:  # some part has a dominating pair and no curve
            known = math.inf
        try:
            known = min(float(self._grid.answer(asked).upper), known)
        except AccountantError:
            if known == math.inf:
                raise
        return Bounds(0.0, known)
