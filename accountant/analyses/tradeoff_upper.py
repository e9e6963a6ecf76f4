"""Upper bounds on the trade-off function, by secants of a concave function.

Theorem numbers refer to docs/theorems_conversions.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from accountant._basics import intervals as iv

Profile: TypeAlias = Callable[[float], float]

# Distances, in ε, of the points whose secants bound the trade-off function from above.
WIDTHS = (2.0**-3, 2.0**-6, 2.0**-9, 2.0**-12, 2.0**-16)


def bounded_above(
    x: float, best: float, up: tuple[Profile, Profile], down: tuple[Profile, Profile]
) -> float:
    """Bound sup over γ > 0 of g(γ) = 1 - H(log γ) - γx from above (Theorem C18)."""
    answer = 1.0 - x
    for width in WIDTHS:
        # Five points a < b < m < c < d around the best one.
        places = [best + width * k for k in (-2.0, -1.0, 0.0, 1.0, 2.0)]
        gammas = [iv.exp(place) for place in places]
        above = [iv.of(_g(x, *each, down).upper) for each in zip(places, gammas, strict=True)]
        below = [iv.of(_g(x, *each, up).lower) for each in zip(places, gammas, strict=True)]
        rise = (above[1] - below[0]) / (gammas[1] - gammas[0])
        fall = (above[3] - below[4]) / (gammas[4] - gammas[3])
        inside = _crossing(above[1], rise, above[3], fall, gammas[3] - gammas[1])
        # Beyond c the slope is at most that from m to c, and g <= 0 from γ = 1/x on; likewise
        # before b.
        beyond, before = math.inf, math.inf
        if x > 0.0:
            climb = _positive((above[3] - below[2]) / (gammas[3] - gammas[2]))
            beyond = (above[3] + climb * _positive(1.0 / iv.of(x) - gammas[3])).up()
        climb = _positive((above[1] - below[2]) / (gammas[2] - gammas[1]))
        before = (above[1] + climb * gammas[1]).up()
        answer = min(answer, max(inside, beyond, before))
    return max(answer, 0.0)


def _positive(slope: iv.Interval) -> iv.Interval:
    zero = iv.of(0.0)
    return iv.Interval(max(slope.lower, zero.lower), max(slope.upper, zero.upper))


def _crossing(
    left: iv.Interval, rise: iv.Interval, right: iv.Interval, fall: iv.Interval, gap: iv.Interval
) -> float:
    """Bound min(left + rise·t, right + fall·(gap - t)) over 0 <= t <= gap from above."""
    # Either line alone is a bound, and largest at an end.
    one = max(left.up(), (left + rise * gap).up())
    other = max(right.up(), (right + fall * gap).up())
    total = rise + fall
    if rise.lower <= 0 or fall.lower <= 0:
        return min(one, other)
    # One line rises and one falls: the minimum of both is largest where they cross.
    return min(one, other, ((left * fall + right * rise + rise * fall * gap) / total).up())


def _g(x: float, at: float, gamma: iv.Interval, ways: tuple[Profile, Profile]) -> iv.Interval:
    if at >= 0.0:
        return iv.of(1.0) - ways[0](at) - gamma * x
    return gamma * (iv.of(1.0) - ways[1](-at) - x)
