"""Likelihood ratios of one normal score, rounded to a few values on cells.

``below`` is smaller than the exact ratio in the convex order, also beside other ratios of the same
score; ``above_calls`` and ``above_puts`` are larger for rising and for falling convex functions.
docs/theorems_matrix.md, Theorem X8.
"""

from __future__ import annotations

import math

import numpy as np

from accountant._typing import FloatArray
from accountant.mechanisms.normal_masses import cells

# Values are moved to the safe side by this part, far beyond the round-off of normal masses.
SLACK = 1e-9
_BISECTIONS = 50
_FAR = 12.0  # no value is that of a score farther out


def tail(x: float) -> float:
    """Return the probability that a normal score exceeds ``x``, to 1e-12 of itself."""
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def edges_of(count: int, slope: float, far: float, shape: str, end: float) -> FloatArray:
    """Return the edges of about ``count`` cells; a mere choice.

    Parameters
    ----------
    count : int
        Number of cells.
    slope : float
        Of the log-ratio.
    far : float
        Mean of the score in the rare event that decides, 0 if there is none.
    shape : str
        "below", "calls" or "puts": what the cells are for.
    end : float
        Where scores are cut: the largest for "calls", the least for "puts".
    """
    rare, bulk, places, share = (1.0, 2.5, 0.0, 0.1) if shape == "below" else (2.5, 2.2, 0.5, 0.2)
    x = np.linspace(
        max(end + 1.0, -5.2) if shape == "puts" else -3.6,
        min(end - 0.4, 5.2 + 0.5 * far) if shape == "calls" else 5.2 + 0.4 * far,
        4096,
    )
    density = np.exp(-(((x - 0.5 * slope) / bulk) ** 2))
    if far > 0.0:
        density += rare * np.exp(-(((x - far - places) / (bulk if places == 0.0 else 2.0)) ** 2))
    below = np.cumsum(density + share * density.max())
    return np.interp(np.arange(1, count) / count, below / below[-1], x)


def below(edges: FloatArray, slope: float) -> FloatArray:
    """Return the mean of e^{slope x - slope²/2} in every cell, rounded down."""
    masses, _ = cells(edges, 0.0)
    moved, _ = cells(edges, slope)
    return np.asarray(moved / masses * (1.0 - SLACK))


def above_calls(edges: FloatArray, slope: float, right: float) -> FloatArray:
    """Return values that are larger for rising convex functions, of the ratio cut at ``right``."""
    cut = _Ratio(slope)
    ends = [-math.inf, *edges.tolist(), right]
    last = len(ends) - 2
    values = np.empty(last + 1)
    values[last] = cut.at(right)
    # D(x), the mean of what the rounded ratio has more than the exact one beyond x.
    more = values[last] * tail(ends[last]) - cut.mass(ends[last], right)
    more -= values[last] * tail(right)
    aims = [cut.dip(ends[k], ends[k + 1]) for k in range(last + 1)]
    for k in range(last - 1, -1, -1):
        low, high = ends[k], ends[k + 1]
        least = cut.at(cut.crossing(low, high, more))
        aim = max(aims[k - 1], aims[k]) if k else 0.0
        wanted = (cut.mass(low, high) + aim - more) / _between(low, high)
        values[k] = min(max(wanted, least), cut.at(high))
        more += values[k] * _between(low, high) - cut.mass(low, high)
    return np.maximum.accumulate(values * (1.0 + SLACK))


def above_puts(edges: FloatArray, slope: float, left: float) -> FloatArray:
    """Return values that are larger for falling convex functions, of scores above ``left``."""
    cut = _Ratio(slope)
    ends = [left, *edges.tolist(), math.inf]
    last = len(ends) - 2
    values = np.empty(last + 1)
    values[0] = cut.at(left)
    # What the exact ratio has more than the rounded one, on average, below x.
    less = cut.mass(left, ends[1]) - values[0] * _between(left, ends[1])
    aims = [cut.dip(max(ends[k], left), min(ends[k + 1], _FAR)) for k in range(last + 1)]
    for k in range(1, last + 1):
        low, high = ends[k], ends[k + 1]
        most = cut.at(cut.rising(low, min(high, _FAR), less))
        aim = max(aims[k], aims[k + 1]) if k < last else 0.0
        wanted = (cut.mass(low, high) + less - aim) / _between(low, high)
        values[k] = max(min(wanted, most), cut.at(low))
        less += cut.mass(low, high) - values[k] * _between(low, high)
    return values * (1.0 - SLACK)


class _Ratio:
    """e^{ax - a²/2} of a standard normal x."""

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def at(self, x: float) -> float:
        return math.exp(self.slope * x - 0.5 * self.slope**2)

    def mass(self, low: float, high: float) -> float:
        """Return the mean of the ratio on a cell, not divided by the cell's mass."""
        return _between(low - self.slope, high - self.slope)

    def dip(self, low: float, high: float) -> float:
        """Return what a cell's mean lacks, at worst, beyond a point of the cell."""
        mean = self.mass(low, high) / _between(low, high)
        x = math.log(mean) / self.slope + 0.5 * self.slope
        return self._lack(min(max(x, low), high), high)

    def _lack(self, x: float, high: float) -> float:
        return self.mass(x, high) - self.at(x) * _between(x, high)

    def crossing(self, low: float, high: float, room: float) -> float:
        """Return the least x of the cell such that its value lacks no more than ``room``."""
        low = max(low, -_FAR)
        if self._lack(low, high) <= room:
            return low
        good = high
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + good)
            low, good = (middle, good) if self._lack(middle, high) > room else (low, middle)
        return good

    def rising(self, low: float, high: float, room: float) -> float:
        """Return the largest x of the cell such that its value exceeds by no more than ``room``."""

        def excess(x: float) -> float:
            return self.at(x) * _between(low, x) - self.mass(low, x)

        if excess(high) <= room:
            return high
        good = low
        for _ in range(_BISECTIONS):
            middle = 0.5 * (good + high)
            good, high = (middle, high) if excess(middle) <= room else (good, middle)
        return good


def _between(low: float, high: float) -> float:
    """Return the mass of a cell under the standard normal law, to a part of the nearer tail."""
    return tail(low) - tail(high) if low > 0.0 else tail(-high) - tail(-low)
