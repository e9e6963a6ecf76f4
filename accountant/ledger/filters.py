"""The meters behind a budget: their sums, and the condition that must hold.

A meter never refuses by itself: it tells whether ``count`` more of a mechanism would keep the
predicate true, and adds them. Charges are integers of units, rounded up; capacities are rounded
down.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from accountant._basics.rounding import fraction_up
from accountant.analyses.moments import is_within, truncated, used
from accountant.calibration.subsampled_gaussian import calibrate_sigma
from accountant.errors import AccountantError, PrecisionError, UnsupportedError
from accountant.ledger import basic, evaluation, meters
from accountant.ledger.basic import BestOf, SumMeter, directions
from accountant.ledger.kinds import FixedMeter, KindsMeter
from accountant.ledger.meters import Charges, Limits, Meter, Remaining, Row, described, left_of
from accountant.mechanisms import GDP, Gaussian
from accountant.mechanisms.base import Mechanism
from accountant.pairs.base import DominatingPair, has_pld
from accountant.search import least, narrow

_OWN_DELTA = "δ of the releases"

# Halvings of the search for the μ that a plan leaves: the last costs this part of μ at most.
_HALVINGS = 24

# An ε in a message is looked for between these numbers.
_RANGE = 2.0**-20, 2.0**20

# Letters of a mechanism in a message.
LONGEST_NAME = 80


class MomentsMeter(Meter):
    """Log-moments at orders fixed in advance, of the losses up to an end of each release.

    For each direction (remove, add): one row an order; the ends, or the largest losses; the masses
    beyond them.
    """

    def __init__(self, budget: Limits) -> None:
        self._target = _target(budget)
        self._size = len(self._target.below) + 2
        super().__init__(2 * self._size)
        alone = self._target.alone
        self._capacities = [meters.floor(Fraction(c)) if c >= 0.0 else -1 for c in alone]
        self._epsilon = meters.floor(budget.epsilon)
        self._mass = meters.floor(budget.releases_delta)

    def cost(self, mechanism: Mechanism) -> tuple[int, ...]:
        """Return the log-moments, the end and the mass beyond it, of each direction."""
        return _cost(mechanism, self._target)

    def holds(self, sums: Sequence[int]) -> bool:
        """Tell whether each direction keeps its mass, and its losses or its moments, within."""
        return all(self._keeps(sums[d : d + self._size]) for d in (0, self._size))

    def beyond(self, sums: Sequence[int]) -> Fraction:
        """Return the masses beyond the ends of the worse direction."""
        return meters.UNIT * max(sums[self._size - 1], sums[-1])

    def epsilon_of(self, sums: Sequence[int]) -> float:
        """Return the ε of the moments, or of the largest losses, of the worse direction."""
        if max(sums[self._size - 1], sums[-1]) > self._mass:
            return math.inf
        return max(self._epsilon_of(sums[d : d + self._size]) for d in (0, self._size))

    def _epsilon_of(self, row: Sequence[int]) -> float:
        *moments, most, _ = row
        logs, goal = [meters.to_float_up(k) for k in moments], self._target
        found = least(lambda e: is_within(logs, goal.below, e, goal.delta), *_RANGE, halvings=40)
        return min(found, meters.to_float_up(most))

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
        logs = [meters.to_float_up(k) for k in moments]
        return is_within(logs, goal.below, goal.epsilon, goal.delta)

    def _scarcest(self, row: Sequence[int]) -> Row:
        *moments, most, mass = row
        goal = self._target
        logs = [meters.to_float_up(k) for k in moments]
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
    found: list[int] = []
    for pair in directions(mechanism):
        price = _price(mechanism, pair, goal)
        found += map(meters.ceiling, (*price.logs, price.most, price.beyond))
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
    raise UnsupportedError(f"{mechanism!r} must have a Rényi divergence >= 0; got {found!r}")


def _times_up(b: float, rho: float) -> float:
    return rho if rho in (0.0, math.inf) else fraction_up(Fraction(b) * Fraction(rho))


class RenyiMeter(Meter):
    """Rényi divergences at orders fixed in advance, in each direction (Theorems L3, L4).

    Row ``2 * j + d``: order j, direction d (remove, add). In each direction one order must stay
    within its capacity. The last two rows are the masses at infinite loss, with a delta of their
    own.
    """

    def __init__(self, budget: Limits) -> None:
        self._orders, capacities = budget.renyi_capacities()
        super().__init__(2 * len(self._orders) + 2)
        self._units = [f"Rényi divergence of order {a!r}, in nats" for a in self._orders]
        self._finite = [meters.floor(c) for c in capacities]
        # -1 closes an order for good, even to releases that cost nothing at it.
        self._capacities = [meters.floor(c) if c >= 0.0 else -1 for c in capacities]
        self._epsilon = meters.floor(budget.epsilon)
        self._delta = meters.floor(budget.releases_delta)

    def cost(self, mechanism: Mechanism) -> tuple[int, ...]:
        """Return the divergences of finite losses, then the masses of infinite ones."""
        pairs = directions(mechanism)
        rows = [divergence(mechanism, pair, a) for a in self._orders for pair in pairs]
        return tuple(map(meters.ceiling, [*rows, *(pair.infinite_mass for pair in pairs)]))

    def holds(self, sums: Sequence[int]) -> bool:
        """Tell whether each direction has an order, and the mass, within its capacity."""
        return max(sums[-2:]) <= self._delta and all(
            any(s <= c for s, c in zip(sums[d:-2:2], self._capacities, strict=True)) for d in (0, 1)
        )

    def beyond(self, sums: Sequence[int]) -> Fraction:
        """Return the masses at infinite loss of the worse direction."""
        return meters.UNIT * max(sums[-2:])

    def epsilon_of(self, sums: Sequence[int]) -> float:
        """Return the ε of the best order of the worse direction."""
        if max(sums[-2:]) > self._delta:
            return math.inf
        # A capacity is ε and what does not depend on it, which may be negative.
        rows = [zip(sums[d:-2:2], self._finite, strict=True) for d in (0, 1)]
        excess = max(min(s - c for s, c in row) for row in rows)
        return meters.to_float_up(max(self._epsilon + excess, 0))

    def remaining(self) -> Remaining:
        """Describe the best order of the worse direction."""
        best = []
        for d in (0, 1):
            rows = zip(self._spent[d:-2:2], self._capacities, self._units, strict=True)
            best.append(min(described(*row) for row in rows))
        return left_of(max(*best, described(max(self._spent[-2:]), self._delta, _OWN_DELTA)))


class GaussianMeter(SumMeter):
    """The sum of μ² (Theorem L5)."""

    def __init__(self, budget: Limits) -> None:
        # The certified ε of one Gaussian release at this σ is within the budget.
        self._target = budget.epsilon, budget.delta
        whole = 1 / Fraction(calibrate_sigma(*self._target)) ** 2
        super().__init__(whole, basic.squared_mu, "squared μ")

    def reserve(self, menu: Charges) -> None:
        """Keep what the exact composition leaves beside a menu (Theorem L14)."""
        if all(basic.is_plain(pair) for kind, _ in menu for pair in directions(kind)):
            super().reserve(menu)
            return
        left = squared_mu_beside(menu, *self._target)
        self.capacity = Fraction(-1) if left is None else left

    def epsilon_of(self, sums: Sequence[int | Fraction]) -> float:
        """Return the ε of one Gaussian release with the sum of μ²."""
        mu = math.nextafter(math.sqrt(super().epsilon_of(sums)), math.inf)
        return GDP(mu).epsilon(self._target[1]) if 0.0 < mu < math.inf else mu


class ApproximateMeter(Meter):
    """The sums of ε² and δ (Theorem L7); the sum of ε is basic composition, which counts anyway."""

    def __init__(self, budget: Limits) -> None:
        super().__init__(2)
        self._delta = meters.floor(budget.releases_delta)
        self._losses_delta = budget.losses_delta
        self._squares = meters.floor(_variance_lower(budget.epsilon, budget.losses_delta))

    def cost(self, mechanism: Mechanism) -> tuple[int, ...]:
        """Return ε² and δ of the larger direction."""
        pairs = directions(mechanism)
        epsilon = max(0.0, *(pair.support[1] for pair in pairs))
        if not epsilon < math.inf:
            raise UnsupportedError(
                f"{mechanism!r} has no finite ε at its own δ, so this filter cannot charge it."
                " Charge ApproximateDP(mechanism.epsilon(d), delta=d) at a d fixed before"
            )
        delta = max(pair.infinite_mass for pair in pairs)
        return meters.ceiling(Fraction(epsilon) ** 2), meters.floor(delta)

    def holds(self, sums: Sequence[int]) -> bool:
        """Tell whether δ holds, and ε by advanced composition."""
        return sums[0] <= self._squares and sums[1] <= self._delta

    def beyond(self, sums: Sequence[int]) -> Fraction:
        """Return the sum of the releases' δ."""
        return meters.UNIT * sums[1]

    def epsilon_of(self, sums: Sequence[int]) -> float:
        """Return the ε of advanced composition."""
        square = meters.to_float_up(sums[0])
        if sums[1] > self._delta or square == math.inf:
            return math.inf
        advanced = math.sqrt(-2.0 * square * math.log(self._losses_delta)) + 0.5 * square
        return advanced * (1.0 + 2.0**-46)

    def remaining(self) -> Remaining:
        """Describe the scarcer of ε² and δ."""
        squares, delta = self._spent
        advanced = described(squares, self._squares, "squared ε")
        return left_of(max(advanced, described(delta, self._delta, _OWN_DELTA)))


def meter(budget: Limits) -> Meter:
    """Return a fresh meter for ``budget``: of its one sum, or the best of its filter and a sum."""
    if (one := basic.limit(budget)) is not None:
        return one
    kinds: dict[str, Callable[[Limits], Meter]] = {
        "moments": MomentsMeter,
        "renyi": RenyiMeter,
        "gaussian": GaussianMeter,
        "approximate": ApproximateMeter,
        "kinds": KindsMeter,
    }
    if budget.filter == "non-adaptive":
        return exact(budget)
    return BestOf(kinds[budget.filter](budget), budget, budget.releases_delta)


def exact(budget: Limits) -> Meter:
    """Return a fresh meter of what was fixed in advance, by exact composition or its one sum."""
    if (one := basic.limit(budget)) is not None:
        return one
    return FixedMeter(budget.epsilon, budget.delta)


def named(charges: Charges) -> str:
    """Return the first few charges as messages name them: a long name by its type alone."""
    names = []
    for mechanism, count in charges[:3]:
        name = repr(mechanism)
        if len(name) > LONGEST_NAME:
            name = f"{type(mechanism).__name__}(…)"
        names.append(f"{count} x " * (count != 1) + name)
    return ", ".join(names)


def squared_mu_beside(menu: Charges, epsilon: float, delta: float) -> Fraction | None:
    """Return a sum of μ² that the product with a menu certifies within (ε, δ); None for no plan.

    The product of the menu's pairs and one Gaussian pair is composed exactly; its profile grows
    with μ, so the largest μ is searched for, and the last composition that fits counts.
    """
    relation = menu[0][0].relation

    def fits(sigma: float | None) -> bool:
        rest = () if sigma is None else ((Gaussian(sigma, relation=relation), 1),)
        try:
            return evaluation.epsilon((*menu, *rest), delta) <= epsilon
        except AccountantError:
            return False  # what could not be certified is too dear

    if not fits(None):
        return None
    alone = calibrate_sigma(epsilon, delta)
    low, _ = narrow(lambda part: fits(alone / part), 0.0, 1.0, _HALVINGS)
    return 1 / Fraction(alone / low) ** 2 if low > 0.0 else Fraction(0)


def _variance_lower(epsilon: float, delta: float) -> float:
    """Return the v with ε = √(2v·log(1/δ')) + v/2, rounded down."""
    tail = -2.0 * math.log(delta)
    root = 2.0 * epsilon / (math.sqrt(tail + 2.0 * epsilon) + math.sqrt(tail))
    # Some ten roundings, twice for the square, and the logarithm's near δ' = 1.
    return root * root * (1.0 - 2.0**-46)
