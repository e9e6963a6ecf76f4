"""A μ that summarises a profile, the δ down to which it holds, and its regret.

Theorems R3 and R4 of docs/theorems_report.md. The points are brackets of the profile δ(ε), in which
it is convex in e^ε and never increases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from accountant.analyses.gdp import delta_ends
from accountant.search import narrow

# A value of erfc is trusted to this share, with the roundings of its argument (R3 depends on it).
TRUST = 1e-12
# Beyond this argument erfc is not trusted at all.
FARTHEST = 26.0
# μ is found by this many bisections, to the last digits of a double.
HALVINGS = 40
# This many tangents are tried on each piece; more would make μ smaller by less than one percent.
TANGENTS = 12
# Added to the regret: sums and quotients of numbers of size one, each rounded a few times.
SLACK = 1e-9


@dataclass(frozen=True)
class Point:
    """A certified bracket of the profile at one ε."""

    epsilon: float
    lower: float
    upper: float


@dataclass(frozen=True)
class GaussianSummary:
    """The releases are at most as visible as a shift by ``mu`` of Gaussian noise of variance one.

    Attributes
    ----------
    mu : float
        The profile is nowhere above that of μ-GDP where this is at least ``delta``.
    delta : float
        The least δ for which that is so.
    regret : float
        An upper bound on how much more any attack could do by μ than by the exact profile: the
        distance of the two trade-off curves (Theorem R4). 0 where the releases are Gaussian noise.
    """

    mu: float
    delta: float
    regret: float


def gaussian_summary(points: Sequence[Point], delta: float) -> GaussianSummary | None:
    """Return the least μ found for every δ >= ``delta`` > 0, or None where no ε is known for it.

    Parameters
    ----------
    points : sequence of Point
        In any order, ε >= 0 and finite. More of them make μ and the regret smaller.
    delta : float
        In (0, 1).
    """
    known = _merged(points)
    last = next((k for k, point in enumerate(known) if point.upper <= delta), None)
    if last is None or last == 0 or known[0].upper >= 1.0:
        return None
    mu = 0.0
    for left, right in pairwise(known[: last + 1]):
        mu = _raised(mu, left, right)
        if mu == math.inf:
            return None
    return GaussianSummary(mu, delta, _regret(mu, known))


def _merged(points: Sequence[Point]) -> list[Point]:
    """Sort the points, join those of one ε, and let bounds that hold elsewhere hold."""
    least: dict[float, Point] = {}
    for point in points:
        other = least.get(point.epsilon, Point(point.epsilon, 0.0, 1.0))
        least[point.epsilon] = Point(
            point.epsilon, max(point.lower, other.lower), min(point.upper, other.upper)
        )
    known = [least[epsilon] for epsilon in sorted(least)]
    highs = accumulate((point.upper for point in known), min)
    lows = [*accumulate((point.lower for point in reversed(known)), max)][::-1]
    rows = zip(known, lows, highs, strict=True)
    return [Point(point.epsilon, min(low, high), high) for point, low, high in rows]


def _raised(mu: float, left: Point, right: Point) -> float:
    """Return the least μ found, at least ``mu``, whose profile is above the chord."""

    def above(value: float) -> bool:
        return _is_above(value, left, right)

    if above(mu):
        return mu
    high = max(2.0 * mu, 2.0**-20)
    while not above(high):
        high *= 2.0
        if high > 2.0**20:
            return math.inf
    return narrow(above, high, mu, HALVINGS)[0]


def _is_above(mu: float, left: Point, right: Point) -> bool:
    """Tell whether one tangent of the profile of μ-GDP is above both ends of a chord (R3)."""
    if mu == 0.0:
        return left.upper <= 0.0
    for k in range(TANGENTS + 1):
        at = left.epsilon + (right.epsilon - left.epsilon) * k / TANGENTS
        hits, alarms = _tail(at / mu - mu / 2.0), _tail(at / mu + mu / 2.0)
        if all(
            hits * (1.0 - TRUST) - math.exp(end.epsilon) * alarms * (1.0 + TRUST) >= end.upper
            for end in (left, right)
        ):
            return True
    return False


def _tail(x: float) -> float:
    """Return P(N(0, 1) > x); nothing beyond FARTHEST, where erfc is not trusted."""
    if x > FARTHEST:
        return math.nan
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def _regret(mu: float, known: list[Point]) -> float:
    """Bound (G(ε) - δ(ε)) / (1 + e^ε) over ε >= 0, G the profile of μ-GDP (Theorem R4)."""
    # Points that exp does not tell apart are one; with fewer the bound is larger.
    known = list({math.exp(point.epsilon): point for point in known}.values())
    above = [delta_ends(mu, point.epsilon)[1] for point in known]
    places = [math.exp(point.epsilon) for point in known]
    worst = above[-1] / (1.0 + places[-1])
    for k in range(len(known) - 1):
        ends = places[k], places[k + 1]
        lines = _lines_below(known, places, k)

        def gap(x: float, k: int = k, lines: list[tuple[float, float]] = lines) -> float:
            weight = (x - places[k]) / (places[k + 1] - places[k])
            chord = above[k] + weight * (above[k + 1] - above[k])
            return (chord - max(value + slope * x for value, slope in lines)) / (1.0 + x)

        crossings = [
            (b[0] - a[0]) / (a[1] - b[1])
            for i, a in enumerate(lines)
            for b in lines[i + 1 :]
            if a[1] != b[1]
        ]
        inside = [x for x in crossings if ends[0] < x < ends[1]]
        worst = max(worst, *(gap(x) for x in (*ends, *inside)))
    return min(max(worst, 0.0) + SLACK, 1.0)


def _lines_below(known: list[Point], places: list[float], k: int) -> list[tuple[float, float]]:
    """Return lines (value at 0, slope) below the profile between points k and k + 1.

    The last value, and the chords of the neighbouring pieces, prolonged.
    """
    lines = [(known[k + 1].lower, 0.0)]
    sides = []
    if k > 0:
        sides.append((places[k], known[k].lower, places[k - 1], known[k - 1].upper))
    if k + 2 < len(known):
        sides.append((places[k + 1], known[k + 1].lower, places[k + 2], known[k + 2].upper))
    for near, low, far, high in sides:
        slope = (low - high) / (near - far)
        lines.append((low - slope * near, slope))
    return lines
