"""The meter of a budget for releases of any kind: moments of truncated losses, mixed (L17)."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from accountant._basics.rounding import fraction_up
from accountant.analyses.moments import is_within, truncated, used
from accountant.composition.problems import symmetrised_pairs
from accountant.errors import PrecisionError, UnsupportedError
from accountant.ledger import exact_sums
from accountant.ledger.meters import Limits, Meter, Remaining, Row, described, least, left_of
from accountant.mechanisms.base import Mechanism
from accountant.pairs.base import DominatingPair, has_pld


class MomentsMeter(Meter):
    """Log-moments at orders fixed in advance, of the losses up to an end of each release.

    For each direction (remove, add): one row an order; the ends, or the largest losses; the masses
    beyond them.
    """

    def __init__(self, budget: Limits) -> None:
        self._target = _target(budget)
        self._size = len(self._target.below) + 2
        super().__init__(2 * self._size)
        self._capacities = [
            exact_sums.floor(Fraction(c)) if c >= 0.0 else -1 for c in self._target.alone
        ]
        self._epsilon = exact_sums.units(budget.epsilon)
        self._mass = exact_sums.units(budget.releases_delta)

    def cost(self, mechanism: Mechanism) -> tuple[int, ...]:
        """Return the log-moments, the end and the mass beyond it, of each direction."""
        return _cost(mechanism, self._target)

    def holds(self, sums: Sequence[int]) -> bool:
        """Tell whether each direction keeps its mass, and its losses or its moments, within."""
        return all(self._keeps(sums[d : d + self._size]) for d in (0, self._size))

    def beyond(self, sums: Sequence[int]) -> Fraction:
        """Return the masses beyond the ends of the worse direction."""
        return exact_sums.fraction(max(sums[self._size - 1], sums[-1]))

    def epsilon_of(self, sums: Sequence[int]) -> float:
        """Return the ε of the moments, or of the largest losses, of the worse direction."""
        if max(sums[self._size - 1], sums[-1]) > self._mass:
            return math.inf
        return max(self._epsilon_of(sums[d : d + self._size]) for d in (0, self._size))

    def _epsilon_of(self, row: Sequence[int]) -> float:
        *moments, most, _ = row
        logs, goal = [exact_sums.quickly_up(k) for k in moments], self._target
        found = least(lambda e: is_within(logs, goal.below, e, goal.delta))
        return min(found, exact_sums.to_float_up(most))

    def remaining(self) -> Remaining:
        """Describe what the worse direction has used most of."""
        rows = [self._scarcest(self._spent[d : d + self._size]) for d in (0, self._size)]
        return left_of(max(rows))

    def _keeps(self, row: Sequence[int]) -> bool:
        *moments, most, mass = row
        if mass > self._mass:
            return False
        if most <= self._epsilon:
            return True
        # One order alone is often enough, and is compared exactly.
        if any(k <= c for k, c in zip(moments, self._capacities, strict=True)):
            return True
        goal = self._target
        logs = [exact_sums.quickly_up(k) for k in moments]
        return is_within(logs, goal.below, goal.epsilon, goal.delta)

    def _scarcest(self, row: Sequence[int]) -> Row:
        *moments, most, mass = row
        goal = self._target
        logs = [exact_sums.quickly_up(k) for k in moments]
        part = used(logs, goal.below, goal.epsilon, goal.delta)
        if part > 1.0 and self._keeps([*moments, self._epsilon + 1, 0]):
            part = 1.0
        losses = described(most, self._epsilon, "ε, in nats")
        beyond = described(mass, self._mass, "δ of the releases, and of losses beyond their ends")
        return max(min((part, part, 1.0, "parts of the budget"), losses), beyond)


class _Target(NamedTuple):
    """What prices depend on: b = α - 1 of each order, and the log-moments that one alone allows."""

    orders: tuple[float, ...]
    below: tuple[float, ...]
    alone: tuple[float, ...]
    epsilon: float
    delta: float
    mass: float


class _Price(NamedTuple):
    """Log-moments, the end of the losses, and the mass beyond it."""

    logs: tuple[float, ...]
    most: float
    beyond: float


def _target(budget: Limits) -> _Target:
    orders, capacities = budget.renyi_capacities()
    below = tuple(a - 1.0 for a in orders)  # exact
    rows = zip(below, capacities, strict=True)
    alone = tuple(math.nextafter(b * c, -math.inf) for b, c in rows)
    return _Target(orders, below, alone, budget.epsilon, budget.losses_delta, budget.releases_delta)


@functools.lru_cache(maxsize=4096)
def _cost(mechanism: Mechanism, goal: _Target) -> tuple[int, ...]:
    pairs = symmetrised_pairs(mechanism)
    found: list[int] = []
    for pair in (pairs[0], pairs[-1]):
        price = _price(mechanism, pair, goal)
        found += map(exact_sums.ceiling, (*price.logs, price.most, price.beyond))
    return tuple(found)


def _price(mechanism: Mechanism, pair: DominatingPair, goal: _Target) -> _Price:
    """Return the price that lets most releases of this mechanism alone be made."""
    curve = [divergence(mechanism, pair, a) for a in goal.orders]
    logs = tuple(_times_up(b, rho) for b, rho in zip(goal.below, curve, strict=True))
    whole = _Price(logs, max(pair.support[1], 0.0), pair.infinite_mass)
    if not goal.mass > 0.0 or not has_pld(pair) or not any(logs):
        return whole
    cut = _cut(pair, whole, goal)
    return cut if cut is not None and _part(cut, goal) < _part(whole, goal) else whole


def _cut(pair: DominatingPair, whole: _Price, goal: _Target) -> _Price | None:
    """Return the price with the best end."""
    spread = max(pair.finite_rdp(2.0), 0.0) ** 0.5
    spread = min(max(spread, 1e-9 * goal.epsilon), goal.epsilon)
    try:
        table = truncated(pair, goal.below, spread, 2.0 * goal.epsilon)
    except PrecisionError:  # next to no noise
        return None
    if table is None:
        return None
    most = np.minimum(table.ends, whole.most)
    parts = np.divide(most, goal.epsilon)
    for k, alone in enumerate(goal.alone):
        if alone > 0.0:
            parts = np.minimum(parts, table.logs[k] / alone)
    best = int(np.argmin(np.maximum(parts * _gain(goal), table.beyond / goal.mass)))
    # Not the lesser of these and the curve's, which may be that of other losses with the guarantee.
    logs = tuple(float(k) for k in table.logs[:, best])
    return _Price(logs, float(most[best]), float(table.beyond[best]))


@functools.lru_cache(maxsize=256)
def _gain(goal: _Target) -> float:
    """Return about which part of one order's sums the mixture charges, for Gaussian noise."""
    logs = [b * (b + 1.0) for b in goal.below]
    one = min((k / c for k, c in zip(logs, goal.alone, strict=True) if c > 0.0), default=1.0)
    return min(used(logs, goal.below, goal.epsilon, goal.delta) / one, 1.0)


def _part(price: _Price, goal: _Target) -> float:
    """Return about which part of a budget a price is."""
    rows = zip(price.logs, goal.alone, strict=True)
    least = min([price.most / goal.epsilon, *(k / c for k, c in rows if c > 0.0)])
    return max(least, price.beyond / goal.mass)


def divergence(mechanism: Mechanism, pair: DominatingPair, order: float) -> float:
    """Return the Rényi divergence of the finite losses, >= 0; UnsupportedError if it is none."""
    found = pair.finite_rdp(order)
    # The finite losses of a pair with mass at infinity are less than a probability.
    if found >= 0.0:
        return found
    if found < 0.0 and pair.infinite_mass > 0.0:
        return 0.0
    raise UnsupportedError(
        f"{mechanism!r} must have a Rényi divergence >= 0; its curve returned {found!r}"
    )


def _times_up(b: float, rho: float) -> float:
    return rho if rho in (0.0, math.inf) else fraction_up(Fraction(b) * Fraction(rho))
