"""Operations on brackets that several analyses share."""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant._basics.rounding import ratio_down
from accountant._core import answers as core
from accountant.bounds import Bounds
from accountant.pairs.base import Parts
from accountant.pairs.product import root_of_squares, total
from accountant.search import DOUBLES, crossing

# A search for an ε ends when its two sides are this close, relatively.
CLOSE = 1e-12
# The least ε that is looked for.
LEAST_EPSILON = 1e-300
# Lower ends that are tried, each four times as far below the crossing as the one before.
TRIES = 40


def capped(bounds: Bounds | None, most: float) -> Bounds:
    """Lower the upper end to ``most``.

    A Rényi curve may bound the mechanism itself, while the losses are those of a dominating pair.
    If the ends cross, the lower end belongs to the pair and is no bound on the mechanism.
    """
    if bounds is None:
        return Bounds(0.0, most)
    if bounds.upper <= most:
        return bounds
    upper = min(float(bounds.upper), most)
    return Bounds(float(bounds.lower) if bounds.lower <= upper else 0.0, upper)


def is_within(bounds: Bounds, tolerance: float) -> bool:
    """Tell whether a bracket is as narrow as ``tolerance`` asks, relatively."""
    lower, upper = float(bounds.lower), float(bounds.upper)
    return upper < math.inf and upper - lower <= tolerance * upper


def bounded_otherwise(parts: Parts, delta: float, failing: float) -> float:
    """Bound ε(delta), 0 < delta < 1, by the largest finite losses, or by GDP; infinite if unknown.

    ``failing`` is at least the probability of an infinite loss.
    """
    known = math.inf
    if failing <= delta:
        # Above every finite loss the profile is the mass of the infinite ones.
        known = total((max(pair.support[1], 0.0), n) for pair, n in parts)
    if known == math.inf:
        mu = root_of_squares((pair.mu, n) for pair, n in parts)
        if 0.0 < mu < math.inf:
            least = ratio_down(1.0, mu)
            known = float(core.epsilon_bounds(1.0, least, 1.0, delta, core.REMOVE)[1])
    return known


def epsilon_listed(counted: Callable[[float], Bounds], delta: float, left_out: float) -> Bounds:
    """Return ``counted(delta)``, its lower end that of a profile smaller by ``left_out``.

    That mass was not listed, and is infinite loss in the upper end alone.
    """
    found = counted(delta)
    if not left_out > 0.0 or not found.lower > 0.0:
        return found
    more = math.nextafter(delta + left_out, 2.0)
    lower = float(counted(more).lower) if more < 1.0 else 0.0
    return Bounds(min(lower, float(found.upper)), found.upper)


def delta_listed(found: Bounds, left_out: float) -> Bounds:
    """Return a bracket of δ, its lower end smaller by ``left_out``."""
    if not left_out > 0.0 or not found.lower > 0.0:
        return found
    return Bounds(max(math.nextafter(float(found.lower) - left_out, 0.0), 0.0), found.upper)


def bracket_crossing(
    side: Callable[[float, int], float], delta: float, guess: float, farthest: float
) -> Bounds | None:
    """Bracket the ε in (0, ``farthest``] where a falling profile is ``delta``; None if none is.

    ``side(ε, 0)`` bounds it from below, and ``side(ε, 1)`` from above. The latter is at most
    ``delta`` at the upper end, and the former above it at the lower one: both were evaluated.
    """
    above = above_crossing(lambda x: side(x, 1), delta, guess, farthest)
    if above is None:
        return None
    return Bounds(below_crossing(lambda x: side(x, 0), delta, above, above), above)


def above_crossing(
    upper: Callable[[float], float],
    delta: float,
    guess: float,
    farthest: float,
    *,
    nearest: float = LEAST_EPSILON,
    close: float = CLOSE,
) -> float | None:
    """Return an ε between the ends where a falling bound is at most ``delta``; None if none is.

    It is above ``delta`` where ε is smaller by a share of ``close``.
    """
    ends = DOUBLES.rank(nearest), DOUBLES.rank(farthest)
    rank = crossing(upper, delta, DOUBLES, guess, ends, True, close)
    return None if rank is None else DOUBLES.value(rank)


def below_crossing(
    lower: Callable[[float], float],
    delta: float,
    guess: float,
    farthest: float,
    *,
    nearest: float = LEAST_EPSILON,
    close: float = CLOSE,
) -> float:
    """Return an ε between the ends where a falling bound is above ``delta``, or 0."""
    found = above_crossing(lower, delta, guess, farthest, nearest=nearest, close=close)
    below = found or 0.0
    tried = (below * (1.0 - close * 4.0**k) for k in range(TRIES))
    return next((at for at in tried if at >= nearest and lower(at) > delta), 0.0)
