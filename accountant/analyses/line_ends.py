"""ε and δ from two-sided bounds on a profile: those of a line, or of all sums of losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.analyses.line_laws import Doubt
from accountant.bounds import Bounds
from accountant.errors import PrecisionError
from accountant.pairs.atoms import listed
from accountant.pairs.base import LAPLACE, LineLaw, Parts

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


# Sums of losses that are listed, at most. This and the next affect speed alone.
MOST_SUMS = 1 << 15
# Runs of all parts, at most: the digits of larger factorials are lost.
MOST_RUNS = 1 << 12
# Losses whose sum may be beyond it are not listed: their products and sums would overflow.
LARGEST = 1e300


def listed_laws(parts: Parts) -> tuple[list[tuple[LineLaw, int]], float] | None:
    """Return the laws of few sums, and the largest loss of one Laplace release beside them.

    None where some part is neither, the sums are many, or there is one release alone.
    """
    laws: list[tuple[LineLaw, int]] = []
    reach, count = 0.0, 1
    runs = sum(n for _, n in parts)
    if not 2 <= runs <= MOST_RUNS or 1 << (len(parts) - 1) > MOST_SUMS:
        return None
    for pair, n in parts:
        law = pair.line
        if law is not None and law.kind == LAPLACE and n == 1 and not reach:
            reach = law.spread
            continue
        atoms = listed(pair)
        if atoms is None:
            return None
        count *= math.comb(n + atoms.p.size - 1, n)
        if count > MOST_SUMS or not float(np.abs(atoms.loss).max()) < LARGEST / runs:
            return None
        laws.append((atoms, n))
    return laws, reach


class Enumerated:
    """All sums of losses with their masses under P, as lines answer: upper and lower ends at ε."""

    outside = 0.0
    b = 1.0  # about the slope of the logarithm

    def __init__(self, laws: Sequence[tuple[LineLaw, int]], reach: float) -> None:
        loss, mass, doubt = np.zeros(1), np.zeros(1), 0.0
        for law, n in laws:
            more, of_more = _runs(law, n)
            loss = np.add.outer(loss, more).ravel()
            mass = np.add.outer(mass, of_more).ravel()
            # A sum of at most k terms that are not 0, then of all laws' sums, each to a unit of
            # their size: k of a law's losses occur in n runs, and of factorials as many.
            terms = 8.0 + min(n, law.p.size) + len(laws)
            size = float(np.abs(np.log(law.p)).max())
            doubt += n * (16.0 + terms * (size + 2.0 * math.log1p(n)))
        order = np.argsort(loss)
        self._loss, self._mass = loss[order], np.exp(mass[order])
        self._reach = reach
        self._error = (doubt + 64.0 + loss.size) * U
        largest = max(math.fsum(n * float(np.abs(law.loss).max()) for law, n in laws), reach)
        self.rounding = (16.0 + 4.0 * len(laws)) * U * largest

    def ends(self, epsilon: float) -> tuple[float, float]:
        """Return a lower and an upper bound on the profile at ε."""
        first = int(self._loss.searchsorted(epsilon - self._reach))
        beyond, mass = epsilon - self._loss[first:], self._mass[first:]
        # Beside a Laplace release of reach a, H(x) is 1 - e^x below -a and 1 - e^{(x-a)/2} up to a.
        bent = np.where(beyond < -self._reach, beyond, 0.5 * (beyond - self._reach))
        value = float(mass @ -np.expm1(np.minimum(bent, 0.0)))
        return value * (1.0 - self._error) - 1e-300, value * (1.0 + self._error) + 1e-300


def _runs(law: LineLaw, n: int) -> tuple[FloatArray, FloatArray]:
    """Return the losses of n runs, and the logarithms of their masses."""
    if n == 1:
        return law.loss, np.log(law.p)
    # One element for each way to share out n runs: what is left of them after the losses so far.
    left, loss, mass = np.full(1, n), np.zeros(1), np.full(1, math.lgamma(n + 1.0))
    logs, factorial = np.log(law.p), np.array([math.lgamma(k + 1.0) for k in range(n + 1)])
    for i in range(law.p.size - 1):
        repeat = left + 1
        rows = np.repeat(np.arange(left.size), repeat)
        now = np.arange(rows.size) - np.repeat(np.cumsum(repeat) - repeat, repeat)
        left = left[rows] - now
        loss = loss[rows] + now * law.loss[i]
        mass = mass[rows] + (now * logs[i] - factorial[now])
    return loss + left * law.loss[-1], mass + (left * logs[-1] - factorial[left])
