"""The profile of plain Gaussian noise where it is next to nothing.

The native core counts underflow as an absolute error of 1e-322. With M the ratio of a normal tail
to the density, H(ε) = φ(a)·(M(a) - M(a + μ)), a = ε/μ - μ/2, and M lies between neighbouring
convergents of its continued fraction (docs/theorems.md, Theorem 10).
"""

from __future__ import annotations

import math

from accountant._rounding import U
from accountant.bounds import Bounds

__all__ = ["FAINT", "tail_delta", "tail_epsilon"]

# δ below which the core's brackets are not used.
FAINT = 1e-289
# The range of a: where the convergents agree to all digits, and beyond the least double.
NEAREST, FARTHEST = 12.0, 40.0
DEPTH = 40
# Round-off of the exponent, of the logarithm and of the ratios.
SLACK = 1e-11


def tail_epsilon(most: float, least: float, delta: float) -> Bounds:
    """Bracket ε(delta), 0 < delta < 1e-280, of a distance between ``least`` and ``most`` > 0."""
    goal = math.log(delta)
    upper = math.inf
    if _log_profile(NEAREST, most, 1.0) > goal:
        a = _crossing(most, goal, 1.0)[1]
        upper = most * (a + 0.5 * most) * (1.0 + 8.0 * U)
    lower = 0.0
    if _log_profile(NEAREST, least, -1.0) > goal:
        a = _crossing(least, goal, -1.0)[0]
        lower = least * (a + 0.5 * least) * (1.0 - 8.0 * U)
    return Bounds(min(lower, upper), upper)


def tail_delta(most: float, least: float, epsilon: float) -> Bounds:
    """Bracket δ(epsilon) of a distance between ``least`` and ``most``."""
    lower, upper = 0.0, 1.0
    if not least > 0.0:
        return Bounds(0.0, 1.0)
    high, low = (epsilon / mu - 0.5 * mu for mu in (most, least))
    # The rounding of a moves the exponent a²/2.
    moved = 4.0 * U * (epsilon / least + most)
    if NEAREST < high - moved < high < FARTHEST * 1e3:
        upper = math.exp(_log_profile(high - moved, most, 1.0)) * (1.0 + SLACK)
        upper = math.nextafter(upper, 1.0)
    if NEAREST < low < FARTHEST:
        lower = math.exp(_log_profile(low + moved, least, -1.0)) * (1.0 - SLACK)
        lower = max(math.nextafter(lower, 0.0), 0.0)
    return Bounds(min(lower, upper), upper)


def _crossing(mu: float, goal: float, side: float) -> tuple[float, float]:
    """Return two neighbours; the bound on the profile is above ``goal`` at the first alone."""
    low, high = NEAREST, FARTHEST
    while (middle := 0.5 * (low + high)) not in (low, high):
        if _log_profile(middle, mu, side) > goal:
            low = middle
        else:
            high = middle
    return low, high


def _log_profile(a: float, mu: float, side: float) -> float:
    """Bound the logarithm of φ(a)·(M(a) - M(a + mu)): above with ``side`` 1, below with -1."""
    near, far = _mills(a, side), _mills(a + mu, -side)
    difference = (near - far) + side * 8.0 * U * near
    if not difference > 0.0:
        return -math.inf
    return -0.5 * a * a - 0.5 * math.log(2.0 * math.pi) + math.log(difference) + side * SLACK


def _mills(x: float, side: float) -> float:
    """Bound M(x) = (1 - Φ(x))/φ(x), x >= 12: even convergents are above, odd ones below."""
    t = x
    for k in range(DEPTH if side > 0.0 else DEPTH - 1, 0, -1):
        t = x + k / t
    return (1.0 + side * 8.0 * U) / t
