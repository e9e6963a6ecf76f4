"""Meters of what was fixed in advance: kinds, released in any number and order, or everything."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, fraction_up
from accountant.analyses.adaptive_counts import Packet, capacity, lattice_for
from accountant.analyses.pld.saddle_point import coarse_law, saddle_at_delta
from accountant.composition.problems import symmetrised_pairs
from accountant.errors import AccountantError, DomainError, PrecisionError, UnsupportedError
from accountant.ledger import basic, evaluation
from accountant.ledger.evaluation import dp_sgd_step
from accountant.ledger.meters import Charges, Limits, Meter, Remaining, largest, unspent
from accountant.mechanisms.base import Mechanism
from accountant.pairs.base import DominatingPair, has_pld
from accountant.relations import NeighbouringRelation

# The whole budget is divided into at most this many units: more are finer and take longer. Any
# number is sound, as the capacity is certified for it.
_UNITS = 832
# With many kinds the work is held down by fewer units, but never fewer than these.
_FEWEST = 416
# The number of kinds times that of units stays below this, which takes some seconds.
_WORK = 6656
# No packet has more units; only the search for packets becomes longer with more.
_LARGEST = 16
# A packet holds no more releases; more would need too fine a lattice.
_MOST_RELEASES = 1 << 12


class Level(NamedTuple):
    """A kind, and how its releases are paid: ``releases`` at a time, ``units`` for them."""

    kind: Mechanism
    releases: int
    units: int


class KindsMeter(Meter):
    """Counts of each kind, paid in packets; the units of all packets are bounded (Theorem L13)."""

    def __init__(self, budget: Limits) -> None:
        self._levels = levels_of(budget)
        self._target = budget.epsilon, budget.delta
        super().__init__(len(self._levels))

    @property
    def _capacity(self) -> int:
        return certified(self._levels, *self._target)

    def cost(self, mechanism: Mechanism) -> tuple[int, ...]:
        """Return one release of the cheapest kind that dominates ``mechanism``."""
        each = enumerate(self._levels)
        fitting = [(k.units / k.releases, j) for j, k in each if dominates(k.kind, mechanism)]
        if not fitting:
            raise UnsupportedError(
                f"{mechanism!r:.80} must be one of the {len(self._levels)} kinds of this budget, or"
                " a step with at least the noise and at most the sampling probability of one"
            )
        return tuple(int(j == min(fitting)[1]) for j in range(len(self._levels)))

    def holds(self, sums: Sequence[int]) -> bool:
        """Tell whether the packets that hold so many releases are within the capacity."""
        return self._units(sums) <= self._capacity

    def reserve(self, menu: Charges) -> None:
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


def levels_of(budget: Limits) -> tuple[Level, ...]:
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
    each = (_packet(n, units, len(kinds)) for n in alone)
    return tuple((releases, cost) for _, cost, releases in each)


@functools.lru_cache(maxsize=32)
def certified(levels: tuple[Level, ...], epsilon: float, delta: float) -> int:
    """Return the capacity in units: the smaller of the two directions'."""
    from accountant.calibration import calibrate_sigma

    mu = 1.0 / calibrate_sigma(epsilon, delta)

    def with_units(units: int) -> int:
        lattice = lattice_for(epsilon, mu, units)
        sides = ([Packet(_pair(kind, d), n, cost) for kind, n, cost in levels] for d in (0, -1))
        return min(capacity(side, epsilon, delta, lattice, 2 * _UNITS) for side in sides)

    # Losses that spread far on the finest lattice, as some in small budgets do, take a coarser one.
    for units in (_units(len(levels)), 128, 32):
        with contextlib.suppress(PrecisionError):
            return with_units(units)
    return with_units(8)


def _alone(kind: Mechanism, epsilon: float, delta: float) -> int:
    """Return about how many releases of a kind would fill a budget of nothing else.

    One release is composed; more are estimated, as the number only chooses the packets. Those of
    Gaussian noise are counted: that takes no time, and rare ones spread too far for the estimate.
    """
    meter = FixedMeter(epsilon, delta)
    if not meter.fits(kind, 1):
        raise DomainError(f"kinds must each fit {(epsilon, delta)} once; got {kind!r:.80}")
    pairs = dict.fromkeys(_pair(kind, direction) for direction in (0, -1))
    if all(pair.gaussian_part is not None for pair in pairs):
        return meter.affordable(kind)
    laws = [coarse_law(pair, 1) for pair in pairs]

    def fits(count: int) -> bool:
        for law in laws:
            left = delta + math.expm1(count * math.log1p(-min(law.infinite, 1.0 - U)))
            if left <= 0.0 or saddle_at_delta([law._replace(times=count)], left).epsilon > epsilon:
                return False
        return True

    return max(largest(fits), 1)


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
        raise UnsupportedError(f"kinds must have a known loss distribution; got {kind!r:.80}")
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


class FixedMeter(Meter):
    """Compose everything, and compare ε at the budget's δ.

    One composition costs more than a sum, so after a mechanism was admitted twice as many of it are
    tried at once: a run of n equal steps costs about log n compositions. That is sound: what fits
    as a whole fits in parts, which are a post-processing of the whole.
    """

    quick = False

    def __init__(self, epsilon: float, delta: float) -> None:
        super().__init__(0)
        self._epsilon, self._delta = epsilon, delta
        self._counts: dict[Mechanism, int] = {}
        self._known: tuple[Mechanism | None, int] = (None, 0)

    def cost(self, mechanism: Mechanism) -> tuple[int, ...]:
        """Return nothing: a composition is not a sum."""
        return ()

    def holds(self, sums: Sequence[int]) -> bool:
        """Tell nothing about sums; :meth:`admits` composes."""
        return not sums

    def admits(self, charges: Charges) -> bool:
        """Tell whether the composition with all ``charges`` is within the budget."""
        if len(charges) != 1:
            return self._fits(charges)
        mechanism, count = charges[0]
        if self._known[0] == mechanism and count <= self._known[1]:
            return True
        if not self._fits(charges):
            return False
        ahead = 2 * (self._counts.get(mechanism, 0) + count)
        self._known = mechanism, ahead if self._surely_fits([(mechanism, ahead)]) else count
        return True

    def fits(self, mechanism: Mechanism, count: int) -> bool:
        """Tell whether releases are admitted; no if it cannot be computed."""
        return self._surely_fits([(mechanism, count)])

    def add(self, charges: Charges) -> None:
        """Add charges, without asking."""
        for mechanism, count in charges:
            self._counts[mechanism] = self._counts.get(mechanism, 0) + count
            known, ahead = self._known
            self._known = (mechanism, ahead - count) if known == mechanism else (None, 0)

    def affordable(self, mechanism: Mechanism) -> int:
        """Return a count that will be admitted, at most 2**53: the largest found by bisection."""
        found = largest(lambda n: self._surely_fits([(mechanism, n)]))
        known, ahead = self._known
        # Kept: asked anew, the composition may answer with other last digits, and shorter ones
        # with a wider bracket. What was promised is admitted, at once or in parts.
        found = max(found, ahead) if known == mechanism else found
        self._known = mechanism, found
        return found

    def epsilon_after(self, charges: Charges) -> float:
        """Return the ε of the composition."""
        return self._epsilon_of(self._with(charges))

    def remaining(self) -> Remaining:
        """Describe ε at the budget's δ."""
        spent = self._epsilon_of(tuple(self._counts.items()))
        used = spent / self._epsilon
        used = math.nextafter(used, math.inf) if used > 0.0 else 0.0
        unit = f"ε at delta = {self._delta!r}, in nats"
        return Remaining(spent, self._epsilon, unit, unspent(used))

    def _surely_fits(self, charges: Charges) -> bool:
        """Tell whether charges nobody has asked for yet would fit; no if it cannot be computed."""
        try:
            return self._fits(charges)
        except (AccountantError, ArithmeticError, MemoryError):
            return False

    def _fits(self, charges: Charges) -> bool:
        counts = self._with(charges)
        # A sum of decimals is exact, and δ pays for a hair (Theorem L18).
        if basic.fits(*basic.summed(counts), basic.written(self._epsilon), Fraction(self._delta)):
            return True
        # In positive form: what could not be certified is too dear.
        return evaluation.epsilon(counts, self._delta) <= self._epsilon

    def _epsilon_of(self, counts: tuple[tuple[Mechanism, int], ...]) -> float:
        return min(evaluation.epsilon(counts, self._delta), basic.basic_epsilon(counts))

    def _with(self, charges: Charges) -> tuple[tuple[Mechanism, int], ...]:
        counts = dict(self._counts)
        for mechanism, count in charges:
            counts[mechanism] = counts.get(mechanism, 0) + count
        return tuple(counts.items())


class RecordKinds:
    """The kinds of a budget, for many records at once (Theorem L16)."""

    def __init__(self, budget: Limits) -> None:
        self._levels = levels_of(budget)
        add = NeighbouringRelation.ADD_OR_REMOVE
        if any(level.kind.relation is not add for level in self._levels):
            raise DomainError(f"kinds must be of add-or-remove for records; got {budget!r:.160}")
        self.capacity = certified(self._levels, budget.epsilon, budget.delta)

    def __len__(self) -> int:
        return len(self._levels)

    def units(self, counts: FloatArray) -> FloatArray:
        """Return the units of the packets that hold ``counts``, of shape (kinds, n)."""
        # Exact: what is beyond 2**40 releases is beyond any capacity.
        rows = zip(counts, self._levels, strict=True)
        return np.asarray(sum(np.ceil(row / kind.releases) * kind.units for row, kind in rows))

    def releases(self, norms: FloatArray, sigma: float, probability: float) -> FloatArray:
        """Return one release of the cheapest kind that dominates each contribution.

        The shape is (kinds, n); a contribution that no kind dominates has infinitely many.
        """
        counts = np.zeros((len(self), *norms.shape))
        if probability == 0.0 or sigma == math.inf:
            return counts
        waiting = norms > 0.0
        by_price = sorted(range(len(self)), key=lambda j: self._price(j))
        for j in by_price:
            fitting = waiting & (norms <= self._largest(j, sigma, probability))
            counts[j, fitting] = 1.0
            waiting &= ~fitting
        counts[0, waiting] = np.inf
        return counts

    def _price(self, index: int) -> Fraction:
        level = self._levels[index]
        return Fraction(level.units, level.releases)

    def _largest(self, index: int, sigma: float, probability: float) -> float:
        """Return the largest norm whose release is a post-processing of a kind; -1 if none."""
        kind = self._levels[index].kind
        parts = [pair.gaussian_part for pair in kind.pairs()]
        noises = [part.noise_multiplier for part in parts if part is not None]
        if len(noises) < len(parts) or not 0.0 < max(noises) < math.inf:
            return -1.0
        if not dominates(kind, dp_sgd_step(max(noises), probability)):
            return -1.0
        return -fraction_up(-Fraction(sigma) / Fraction(max(noises)))
