"""Balls in bins as a chain of bins that share scores: both ends, cell by cell.

docs/theorems_matrix.md, Theorem X8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.mechanisms.normal_masses import cells
from accountant.sampling import score_cells
from accountant.sampling.score_chain import Chain, Line, Part, Run

IntArray: TypeAlias = "NDArray[np.int64]"

_AGES = 4  # columns that are shorter keep every row
_LONGEST = {"below": 128, "calls": 256}  # rows of a run
_ESCAPED = 0.004  # part of δ that may be cut off
_TRIED, _ROUNDS = 65, 14  # values of ε on a grid, and halvings of one step of it
_FARTHEST = 25.0  # deviations from the mean that answers reach


class Side(NamedTuple):
    """A mean W that is smaller or larger than the likelihood ratio in a convex order.

    Attributes
    ----------
    line : Line
    mean : float
        Of W.
    slack : float
        Relative error of the masses of all outcomes.
    escaped : float
        What was cut off, added to bounds from above.
    shrunk : float
        By how large a part W may be too small, where it should be no larger.
    """

    line: Line
    mean: float
    slack: float
    escaped: float
    shrunk: float

    def removed(self, epsilon: float) -> tuple[float, float]:
        """Bracket E(W - e^ε)₊: δ of removing a record."""
        strike = math.exp(epsilon)
        low, high = self.line.puts(strike)
        rest = self.mean - strike
        slack = self.slack * (high + strike)
        return max(low + rest - slack, 0.0), high + rest + slack + self.escaped

    def added(self, epsilon: float) -> tuple[float, float]:
        """Bracket e^ε E(e^{-ε} - W)₊: δ of adding a record."""
        strike = math.exp(-epsilon)
        low = self.line.puts(strike * (1.0 - self.shrunk))[0]
        high = self.line.puts(strike)[1]
        slack = self.slack + 8.0 * U
        return low / strike * (1.0 - slack), high / strike * (1.0 + slack) + self.escaped


class _Plan(NamedTuple):
    """Bins of one row, and how many rows of them there are; the last bins are in the first run."""

    slopes: tuple[FloatArray, ...]  # of each bin of a row, by age
    short: float  # slopes of the last bins of all, over those of the others
    short_rows: int
    rows: int  # of a run
    runs: int
    bins: int


def lower_side(
    column: FloatArray, bins: int, epochs: int, *, complete: bool, joint: int, delta: float
) -> Side:
    """Return a smaller mean, of what constant contributions reach (Theorem X8 (ii)).

    Parameters
    ----------
    column : float64 array
        Slopes of a bin's log-ratio on its rows, for all epochs together, rounded down.
    bins, epochs : int
        Number of bins, and of epochs that are complete.
    complete : bool
        Whether the columns of all bins end before the run does.
    joint : int
        About the number of cells of all scores that a row depends on.
    delta : float
        About the δ asked for.
    """
    # Three ages of sums: more leave too few cells for each.
    width = 1 if column.size < _AGES else column.size // 2
    slopes = _grouped(column, width)
    late = 0 if complete else column.size - 1
    share = math.sqrt((epochs - 1) / epochs)
    usable = bins if share > 0.0 else bins - late
    rows = usable // width
    count = max(1, rows // _LONGEST["below"])
    short = -(-late // width) if share > 0.0 else 0
    plan = _Plan(slopes, share, short, rows // count, count, bins)
    return _side(plan, "below", joint, delta)


def upper_sides(
    lags: tuple[float, ...], bins: int, gap: int, *, once: bool, joint: int, delta: float
) -> Callable[[str], Side] | None:
    """Return how to make a larger mean for "calls" or "puts" (Theorem X8 (iii)).

    None if the covariances are not those of a moving average with positive weights.

    Parameters
    ----------
    lags : tuple of float
        Covariances of the log-ratios of bins so far apart, rounded up.
    bins, gap : int
        Number of bins, and the distance of those that are kept.
    once : bool
        Whether there is one epoch: then bins are on a line, not a circle.
    joint, delta : int, float
        As for :func:`lower_side`.
    """
    # Bins that are farther apart than a multiple of the distance must have no more in common.
    falling = np.maximum.accumulate(np.array(lags)[::-1])[::-1]
    slopes = _factor(tuple(falling[::gap].tolist()))
    if slopes is None:
        return None
    longest, apart = _LONGEST["calls"], slopes.size - 1
    kept, count = bins // gap, 1
    if not once or (apart and kept > longest):
        kept = (bins - len(lags)) // gap + 1
        count = max(1, kept // longest) if apart else 1
    rows = (kept - (count - 1) * apart) // count
    plan = _Plan((slopes,), 1.0, 0, rows, count, rows * count)
    return lambda shape: _side(plan, shape, joint, delta)


def _grouped(column: FloatArray, width: int) -> tuple[FloatArray, ...]:
    """Return the slopes of ``width`` neighbouring bins on sums of ``width`` neighbouring rows."""
    if width == 1:
        return (column,)
    ages = -(-(column.size + width - 1) // width)
    found = np.zeros((width, ages * width))
    for place in range(width):
        found[place, place : place + column.size] = column
    sums = found.reshape(width, ages, width).sum(axis=2)
    return tuple(sums / math.sqrt(width) * (1.0 - (width + 8.0) * U))


def _factor(lags: tuple[float, ...]) -> FloatArray | None:
    """Return a > 0 with Σ a_i a_{i+d} at least lag d, and little more; None where none is found."""
    if len(lags) == 1:
        return np.array([math.sqrt(lags[0]) * (1.0 + 4.0 * U)])
    periodic = np.zeros(max(4096, 8 * len(lags)))
    periodic[: len(lags)] = lags
    periodic[1 - len(lags) :] = lags[:0:-1]
    spectrum = np.fft.rfft(periodic).real
    if not spectrum.min() > 0.0:
        spectrum = spectrum - spectrum.min() + 1e-9 * lags[0]
    # The minimum-phase factor: half of the cepstrum.
    cepstrum = np.fft.irfft(np.log(spectrum))
    half = np.zeros(cepstrum.size)
    half[0] = 0.5 * cepstrum[0]
    half[1 : cepstrum.size // 2] = cepstrum[1 : cepstrum.size // 2]
    found = np.fft.irfft(np.exp(np.fft.rfft(half)))[: len(lags)]
    if not found.min() > 0.0:
        return None
    reached = [float(found[: found.size - d] @ found[d:]) for d in range(found.size)]
    most = max(want / have for want, have in zip(lags, reached, strict=True))
    return np.asarray(found * math.sqrt(max(most, 1.0)) * (1.0 + 64.0 * U)) if most < 1.05 else None


def _deviation(plan: _Plan) -> float:
    """Return about the deviation of the mean."""
    kinds, ages = plan.slopes, plan.slopes[0].size
    variance = 0.0
    for lag in range(1 - ages, ages):
        for one in kinds:
            for other in kinds:
                low, high = max(0, lag), min(ages, ages + lag)
                shared = float(one[low:high] @ other[low - lag : high - lag])
                variance += math.expm1(shared)
    return math.sqrt(variance * plan.rows * plan.runs) / plan.bins


def _counts(slopes: FloatArray, joint: int) -> list[int]:
    """Return numbers of cells by age, in proportion to the slopes."""
    wanted = slopes / math.exp(float(np.log(slopes).mean())) * joint ** (1.0 / slopes.size)
    return [max(3, round(x)) for x in wanted.tolist()]


def _edges(
    plan: _Plan, deviation: float, shape: str, joint: int, end: float
) -> tuple[list[FloatArray], tuple[IntArray, ...]]:
    """Return the edges of the cells of every age, and how they merge from one to the next."""
    slopes = np.maximum(np.max(plan.slopes, axis=0), 1e-3 * float(np.max(plan.slopes)))
    slopes = np.minimum.accumulate(slopes)
    norm = float(np.linalg.norm(slopes))
    # How far out a single bin must be to move the mean by a few deviations.
    far = math.log(max(plan.bins * 3.0 * deviation, 1.0)) / norm + 0.5 * norm
    far = far if far < 6.5 else 0.0
    found: list[FloatArray] = []
    merges: list[IntArray] = []
    for slope, count in zip(slopes.tolist(), _counts(slopes, joint), strict=True):
        ends_at = end + slope if shape == "calls" else end
        wanted = score_cells.edges_of(count, slope, far * slope / norm, shape, ends_at)
        if not found:
            found.append(wanted)
            continue
        usable = found[-1] if shape != "calls" else found[-1][found[-1] < ends_at - 0.3]
        kept = np.unique(np.abs(usable[:, None] - wanted).argmin(axis=0))
        merges.append(np.concatenate([[0], kept + 1]))
        found.append(found[-1][kept])
    return found, tuple(merges)


def _side(plan: _Plan, shape: str, joint: int, delta: float) -> Side:
    deviation = _deviation(plan)
    end = _end(plan, shape, delta)
    edges, merges = _edges(plan, deviation, shape, joint, end)
    masses, error = cells(edges[0], 0.0)
    masses = masses / masses.sum()

    def part(share: float, rows: int) -> Part:
        return Part(tuple(_table(s * share, edges, shape, end) for s in plan.slopes), rows)

    runs = [Run((part(1.0, plan.rows),), plan.runs)]
    if plan.short_rows:
        last = (part(plan.short, plan.short_rows), part(1.0, plan.rows - plan.short_rows))
        runs = [Run(last, 1), *(Run(run.parts, run.times - 1) for run in runs if run.times > 1)]
    most = 1.0 + _FARTHEST * deviation
    chain = Chain(masses, merges, tuple(runs), plan.bins, most)
    more = sum(_means(chain, p) * p.rows * run.times for run in runs for p in run.parts)
    draws = chain.draws
    slack = draws * (error + 8.0 * U * masses.size) * 2.0 + 1e-13
    escaped = 0.0
    if shape == "calls":
        # The mean that cut ratios lack.
        escaped = plan.slopes[0].size * score_cells.tail(end)
    elif shape == "puts":
        escaped = draws * score_cells.tail(-end)
    line = Line.of(chain, deviation, delta)
    mean = 1.0 + more / plan.bins
    shrunk = 2.0 * score_cells.SLACK * plan.slopes[0].size
    return Side(line, mean, slack, escaped * (1.0 + 1e-9), shrunk)


def _end(plan: _Plan, shape: str, delta: float) -> float:
    """Return where scores are cut, for "calls" less their slope."""
    many = plan.slopes[0].size if shape == "calls" else 2 * plan.rows * plan.runs
    part = _ESCAPED * delta / many
    found = 0.0
    while score_cells.tail(found) > part and found < 30.0:
        found += 0.05
    return -found if shape == "puts" else found


def _table(slopes: FloatArray, edges: list[FloatArray], shape: str, end: float) -> FloatArray:
    """Return what the ratio of a bin is more than 1: the oldest score first."""
    table = np.ones(1)
    for slope, age in zip(slopes.tolist(), edges, strict=True):
        if slope == 0.0:
            here = np.ones(age.size + 1)
        elif shape == "below":
            here = score_cells.below(age, slope)
        elif shape == "calls":
            here = score_cells.above_calls(age, slope, end + slope)
        else:
            here = score_cells.above_puts(age, slope, end)
        table = np.multiply.outer(here, table)
    return np.asarray(table.reshape(table.shape[:-1]) - 1.0)


def _means(chain: Chain, part: Part) -> float:
    """Return the mean of what the bins of a row have more than 1, together."""
    masses = [chain.masses]
    for merge in chain.merges:
        masses.append(np.add.reduceat(masses[-1], merge))
    total = 0.0
    for table in part.tables:
        for mass in masses:
            table = table @ mass
        total += float(table)
    return total


def farthest(reached: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest ε found between the ends that is ``reached``; ``low`` if none is."""
    step = (high - low) / (_TRIED - 1)
    for epsilon in np.linspace(high, low, _TRIED)[:-1].tolist():
        if reached(epsilon):
            # Between it and the one before; every answer is checked by itself.
            return _bisect(reached, epsilon, min(epsilon + step, high))
    return _bisect(reached, low, low + step)


def nearest(enough: Callable[[float], bool], low: float, high: float) -> float:
    """Return the least ε found between the ends that is ``enough``; ``high`` if none is."""
    if enough(low):
        return low
    previous = low
    for epsilon in np.linspace(low, high, _TRIED)[1:-1].tolist():
        if enough(epsilon):
            return _bisect(enough, epsilon, previous)
        previous = epsilon
    return _bisect(enough, high, previous)


def _bisect(holds: Callable[[float], bool], good: float, bad: float) -> float:
    for _ in range(_ROUNDS):
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good
