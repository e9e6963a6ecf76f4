"""How often a record takes part that pauses after every participation.

docs/theorems_matrix.md, Theorem X7.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.mechanisms.base import Mechanism
from accountant.pairs.base import DominatingPair
from accountant.relations import NeighbouringRelation
from accountant.sampling.allocation_statistic import Chances, SumPair

_MOST_COUNTS = 1500
# Entries of the tables of all steps, and terms of the sums for all numbers.
_MOST_ENTRIES, _MOST_TERMS = 5e7, 5e5
_LEAST, _LEAST_MEAN = 1e-290, 1e-9


@dataclass(frozen=True, repr=False)
class SumOfParticipations(Mechanism):
    """The sum of a function of every release of a run, participations of one law of their number.

    Parameters
    ----------
    noise_multiplier : float
        σ.
    steps : int
        Releases that a participation may fall on.
    chances : Chances
        The law of the number of participations.
    relation : NeighbouringRelation
        Add-or-remove or zero-out.
    """

    noise_multiplier: float
    _: KW_ONLY
    steps: int
    chances: Chances
    relation: NeighbouringRelation = field(default=NeighbouringRelation.ADD_OR_REMOVE, kw_only=True)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return (remove, add)."""
        return tuple(
            SumPair(self.noise_multiplier, self.steps, self.chances, add) for add in (False, True)
        )


def participation_chances(steps: int, p: float, separation: int, every: int) -> Chances | None:
    """Return the law of the number of participations at steps 0, ``every``, 2 · ``every``, …

    None where it is too long or too expensive, and where there is hardly any.
    """
    most = -(-steps // separation)
    if not 0.0 < p < 1.0 or p * steps < _LEAST_MEAN:
        return None
    if every == 1:
        mean = steps * p / (1.0 + (separation - 1.0) * p)
        last = min(most, math.ceil(2.0 * mean + 60.0 * math.sqrt(mean) + 200.0))
        if last * min(separation, steps) > _MOST_TERMS:
            return None
        masses = np.array([_chance(steps, p, separation, n) for n in range(last + 1)])
        # The logarithms of binomial coefficients.
        error = 64.0 * U * (1.0 + 4.0 * steps * math.log(steps + 2.0))
    else:
        counts = min(most, -(-steps // every))
        if steps * min(separation, steps) * (counts + 1.0) > _MOST_ENTRIES:
            return None
        masses = _by_steps(steps, p, separation, every)
        error = 8.0 * U * (steps + 8.0)
    seen = np.flatnonzero(masses > _LEAST)
    found = masses[seen[0] : seen[-1] + 1]
    if found.size > _MOST_COUNTS or not (found > 0.0).all():
        return None
    return Chances(int(seen[0]), tuple(found.tolist()), error)


def _chance(steps: int, p: float, separation: int, count: int) -> float:
    """Return the probability of ``count`` participations: of all that end in time, or but one."""
    free = steps - count * separation
    total = 0.0
    if free >= 0:
        total += math.exp(_log_choose(free + count, count) + _log_heads(p, count, free))
    if count:
        # Steps from the last participation on, fewer than the pause needs.
        for rest in range(1, min(separation, steps + 1)):
            left = steps - rest - (count - 1) * separation
            if left < 0:
                break
            ways = _log_choose(left + count - 1, count - 1)
            total += math.exp(ways + _log_heads(p, count, left))
    return total


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)


def _log_heads(p: float, heads: int, tails: int) -> float:
    return heads * math.log(p) + tails * math.log1p(-p)


def _by_steps(steps: int, p: float, separation: int, every: int) -> FloatArray:
    """Return the law step by step: rows are steps still to wait, columns numbers that counted."""
    most = min(-(-steps // separation), -(-steps // every))
    # A ring: row (step + w) modulo the separation holds those who wait w steps more.
    waiting = np.zeros((separation, most + 2))
    free = np.zeros(most + 2)
    free[0] = 1.0
    for step in range(steps):
        row = step % separation
        free = free + waiting[row]
        heads = p * free
        if step % every == 0:
            heads = np.concatenate([[0.0], heads[:-1]])
        waiting[row] = heads
        free = (1.0 - p) * free
    return np.asarray(free + waiting.sum(axis=0))
