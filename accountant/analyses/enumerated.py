"""Parts of finitely many losses whose sums are few: the profile is a sum over all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.pairs.base import Parts
from accountant.pairs.line import LAPLACE, LineLaw

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
        listed = pair.listed
        if listed is None:
            return None
        count *= math.comb(n + listed.p.size - 1, n)
        if count > MOST_SUMS or not float(np.abs(listed.loss).max()) < LARGEST / runs:
            return None
        laws.append((listed, n))
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
