"""The meter for kinds fixed in advance, of which any number may be released in any order."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from accountant import checks
from accountant._basics.tolerances import relative_width
from accountant.analyses.adaptive_counts import Lattice, Packet, capacity, lattice_for
from accountant.composition.problems import symmetrised_pairs
from accountant.errors import DomainError, PrecisionError, UnsupportedError
from accountant.ledger.fixed_parameters import FixedMeter
from accountant.ledger.meters import Meter, Remaining, unspent
from accountant.mechanisms.base import Mechanism
from accountant.pairs.base import DominatingPair, has_pld
from accountant.relations import NeighbouringRelation

if TYPE_CHECKING:
    from accountant.ledger.budget import Budget


# Into how many units the whole budget is divided, at most: more are finer and take longer, in
# proportion to the kinds. From a half on that number is taken which rounds the packets least.
_UNITS, _FEWEST, _WORK = 832, 416, 6656

# The most units of a packet.
_LARGEST = 16

# A packet holds no more releases; more would need too fine a lattice.
_MOST_RELEASES = 1 << 12


# The relative width of the ε by which packets are chosen; any packet is sound.
_ROUGHLY = 1e-3


class Level(NamedTuple):
    """A kind, and how its releases are paid: ``releases`` at a time, ``units`` for them."""

    kind: Mechanism
    releases: int
    units: int


class KindsMeter(Meter):
    """Counts of each kind, paid in packets; the units of all packets are bounded (Theorem L13)."""

    def __init__(self, budget: Budget) -> None:
        self._levels = levels_of(budget)
        self._target = budget.epsilon, budget.delta
        super().__init__(len(self._levels))

    @property
    def _capacity(self) -> int:
        return certified(self._levels, *self._target)

    def cost(self, mechanism: Mechanism) -> tuple[int, ...]:
        """Return one release of the cheapest kind that dominates ``mechanism``."""
        fitting = [
            (level.units / level.releases, j)
            for j, level in enumerate(self._levels)
            if dominates(level.kind, mechanism)
        ]
        if not fitting:
            raise UnsupportedError(
                f"{mechanism!r:.80} must be one of the {len(self._levels)} kinds of this budget, or"
                " a step with at least the noise and at most the sampling probability of one. Give"
                ' it among the kinds, or use filter="renyi"'
            )
        return tuple(int(j == min(fitting)[1]) for j in range(len(self._levels)))

    def holds(self, sums: Sequence[int]) -> bool:
        """Tell whether the packets that hold so many releases are within the capacity."""
        return self._units(sums) <= self._capacity

    def reserve(self, menu: Sequence[tuple[Mechanism, int]]) -> None:
        """Charge a menu in full; what is not among the kinds leaves nothing."""
        try:
            self.add(menu)
        except UnsupportedError:
            self._spent = [checks.MAX_COUNT * _MOST_RELEASES] * len(self._levels)

    def remaining(self) -> Remaining:
        """Describe the units."""
        spent, most = self._units(self._spent), self._capacity
        used = spent / most if most else math.inf if spent else 0.0
        return Remaining(float(spent), float(most), "units of the budget's kinds", unspent(used))

    def _units(self, sums: Sequence[int]) -> int:
        pairs = zip(sums, self._levels, strict=True)
        return sum(-(-count // level.releases) * level.units for count, level in pairs)


def levels_of(budget: Budget) -> tuple[Level, ...]:
    """Return the kinds of a budget and how each is paid."""
    kinds: Any = budget.kinds
    packets: Any = budget.packets
    rows = zip(kinds, packets, strict=True)
    return tuple(Level(kind, releases, units) for kind, (releases, units) in rows)


def packets_for(
    kinds: Sequence[Mechanism], epsilon: float, delta: float
) -> tuple[tuple[int, int], ...]:
    """Choose how each kind is paid: releases at a time, and the units that they cost.

    A ledger keeps the choice with its budget: the guarantee is that of one game (Theorem L13).
    """
    alone = [_alone(kind, epsilon, delta) for kind in kinds]
    most = _units(len(kinds))
    units = min(
        range(most // 2, most + 1),
        key=lambda n: sum(_packet(each, n, len(kinds))[0] for each in alone),
    )
    return tuple(
        (releases, cost) for _, cost, releases in (_packet(n, units, len(kinds)) for n in alone)
    )


@functools.lru_cache(maxsize=32)
def certified(levels: tuple[Level, ...], epsilon: float, delta: float) -> int:
    """Return the capacity in units: the smaller of the two directions'."""
    from accountant.calibration import calibrate_sigma

    mu = 1.0 / calibrate_sigma(epsilon, delta)
    # Losses that spread far on the finest lattice, as some in small budgets do, take a coarser one.
    for units in (_units(len(levels)), 128, 32):
        with contextlib.suppress(PrecisionError):
            return min(_capacities(levels, epsilon, delta, lattice_for(epsilon, mu, units)))
    return min(_capacities(levels, epsilon, delta, lattice_for(epsilon, mu, 8)))


def _capacities(
    levels: tuple[Level, ...], epsilon: float, delta: float, lattice: Lattice
) -> list[int]:
    """Return the capacities of both directions."""
    found = []
    for direction in (0, -1):
        offered = [Packet(_pair(kind, direction), n, cost) for kind, n, cost in levels]
        found.append(capacity(offered, epsilon, delta, lattice, 2 * _UNITS))
    return found


def _alone(kind: Mechanism, epsilon: float, delta: float) -> int:
    """Return how many releases of a kind would fill a budget of nothing else."""
    with relative_width(_ROUGHLY):
        alone = FixedMeter(epsilon, delta).affordable(kind)
    if not alone:
        raise DomainError(
            f"every kind of a budget must fit it once; {kind!r:.80} exceeds (epsilon, delta) ="
            f" ({epsilon!r}, {delta!r})"
        )
    return alone


def _units(kinds: int) -> int:
    """Return the largest number of units for so many kinds."""
    return min(_UNITS, max(_FEWEST, _WORK // kinds))


def _packet(alone: int, units: int, kinds: int) -> tuple[float, int, int]:
    """Return a price, the units and the releases of a packet of a kind that fills ``units`` alone.

    Any packet is sound: the capacity is certified for it.
    """
    # Of the packets of so many kinds, which share the budget, each is left half used in the end.
    waste = kinds / (2.0 * units)
    choices = []
    for cost in range(1, _LARGEST + 1):
        releases = min(cost * alone // units, _MOST_RELEASES)
        if releases:
            choices.append((cost * alone / (releases * units) + waste * cost, cost, releases))
    cost = -(-units // alone)
    choices.append((cost * alone / units + waste * cost, cost, 1))
    return min(choices)


def _pair(kind: Mechanism, direction: int) -> DominatingPair:
    pair = symmetrised_pairs(kind)[direction]
    if not has_pld(pair):
        raise UnsupportedError(
            f"every kind of a budget must have a known loss distribution; {kind!r:.80} has none."
            ' Use filter="renyi"'
        )
    return pair


def dominates(kind: Mechanism, mechanism: Mechanism) -> bool:
    """Tell whether a release is a post-processing of one of the kind (Theorem L8 (c))."""
    if kind == mechanism:
        return True
    if not (kind.relation is mechanism.relation is NeighbouringRelation.ADD_OR_REMOVE):
        return False
    return all(_lies_below(mechanism.pairs()[d], kind.pairs()[d]) for d in (0, -1))


def _lies_below(pair: DominatingPair, kind: DominatingPair) -> bool:
    one, other = pair.gaussian_part, kind.gaussian_part
    return (
        one is not None
        and other is not None
        and (one.add is other.add or 1.0 in (one.sampling_probability, other.sampling_probability))
        and one.noise_multiplier >= other.noise_multiplier
        and one.sampling_probability <= other.sampling_probability
    )


def noise_levels(low: float, high: float) -> Iterable[float]:
    """Yield at most 24 noise multipliers from ``low`` to ``high``, at least some 4 % apart."""
    count = min(24, math.ceil(math.log(high / low) / math.log(1.04)) + 1) if high > low else 1
    for k in range(count):
        yield min(low * (high / low) ** (k / max(count - 1, 1)), high) if k else low
