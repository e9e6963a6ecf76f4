"""ε and δ from two-sided bounds on a profile: those of a line, or of all sums of losses."""

from __future__ import annotations

import math
from typing import Protocol

from accountant._basics.rounding import U
from accountant.analyses.line_laws import Doubt
from accountant.bounds import Bounds
from accountant.errors import PrecisionError

# Evaluations for one end: Newton's method needs some five, but few losses make a profile of stairs,
# where halving needs fifty more. Both affect widths and speed alone.
MOST_TRIES = 70
NEWTON = 12


class Ends(Protocol):
    """Bounds on a profile: a line, or all sums of losses."""

    b: float
    outside: float

    def ends(self, epsilon: float) -> tuple[float, float]:
        """Return a lower and an upper bound at ε."""


def epsilon_of(doubt: Doubt, line: Ends, under: Ends, start: float, delta: float) -> Bounds:
    """Bracket ε(delta) by the upper end of one line and the lower end of another."""
    upper = crossing(line, start, doubt.listed(delta, line.outside), at_most=True)
    most = (delta - doubt.least_infinite * (1.0 - 4.0 * U)) * (1.0 + 2.0 * doubt.mass_error)
    lower = crossing(under, upper, most * (1.0 + 4.0 * U), at_most=False)
    upper = math.nextafter(upper + doubt.shift, math.inf)
    return Bounds(max(math.nextafter(lower - doubt.shift, -math.inf), 0.0), max(upper, 0.0))


def delta_of(doubt: Doubt, line: Ends, under: Ends, epsilon: float) -> Bounds:
    """Bracket δ(epsilon) in the same way."""
    upper = line.ends(epsilon - doubt.shift)[1] * (1.0 + 2.0 * doubt.mass_error)
    lower = under.ends(epsilon + doubt.shift)[0] * (1.0 - doubt.mass_error)
    lower = max(lower, 0.0) + doubt.least_infinite
    upper = (upper + doubt.infinite + doubt.unlisted + line.outside) * (1.0 + 8.0 * U)
    if not (upper >= 0.0 and lower < math.inf):
        raise PrecisionError("the profile on a line is no number")
    return Bounds(min(max(lower * (1.0 - 8.0 * U), 0.0), upper), min(upper, 1.0))


def crossing(line: Ends, start: float, delta: float, *, at_most: bool) -> float:
    """Return an ε whose upper end is at most δ, or whose lower end is above it, next to the best.

    Newton's method on log δ finds it, whose slope is near -b, and halving where that leaves what
    is known; only the evaluation at the returned ε counts.
    """
    place, epsilon, slope = (1 if at_most else 0), start, -line.b
    low, high = -math.inf, math.inf  # above δ at low, not at high
    before, size = None, max(1.0, line.b * start)
    near, away = 1e-12 * size, 1e-9 * size / line.b
    for attempt in range(MOST_TRIES):
        value = line.ends(epsilon)[place]
        above = not value <= delta if at_most else value > delta  # no number certifies nothing
        low, high = (epsilon, high) if above else (low, epsilon)
        gap = math.log(value / delta) if value > 0.0 else -math.inf
        if above is not at_most and abs(gap) <= near * 2.0**attempt:
            return epsilon
        if gap > -math.inf and before is not None and before[0] != epsilon:
            secant = (gap - before[1]) / (epsilon - before[0])
            if 0.2 * slope > secant > 5.0 * slope:
                slope = secant
        if gap > -math.inf:
            before = epsilon, gap
            gap += 0.2 * near * 2.0**attempt * (1.0 if at_most else -1.0)
            guess = epsilon - gap / slope
        else:
            guess, away = epsilon - away, 8.0 * away
        if high - low <= 1e-13 * size / line.b:
            break
        if not low < guess < high or (attempt >= NEWTON and -math.inf < low < high < math.inf):
            guess = 0.5 * (low + high) if -math.inf < low < high < math.inf else epsilon + away
        epsilon = guess
    found = high if at_most else low
    if found < math.inf:
        return found  # a lower end that is nowhere above δ is at -inf
    raise PrecisionError("the crossing of a line was not found")
