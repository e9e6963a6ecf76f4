"""The largest δ of an adversary who chooses every next packet of releases after the last outcome.

Theorem L13: with kinds fixed in advance, and their numbers not, the best strategy within a capacity
is found by dynamic programming over (capacity left, privacy loss so far).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.analyses.adaptive_counts.expectations import Offer
from accountant.analyses.adaptive_counts.law import Law, lifted, power
from accountant.pairs.base import DominatingPair

# Fractions of δ that may be lost to truncation of the packets' laws, all together.
_LOST = 2.0**-10

# Masses of the packets' smallest losses that may be moved up, all together: a value does not
# decrease, so that each adds at most its share of the value itself.
_LIFTED = 2.0**-10

# Knots above the largest loss that costs nothing.
_ABOVE = 1 << 13


class Packet(NamedTuple):
    """Releases that are paid for together.

    Attributes
    ----------
    pair : DominatingPair
        Of one release, in one direction.
    releases, units : int
        How many are paid for at once, and what they cost.
    """

    pair: DominatingPair
    releases: int
    units: int


class Lattice(NamedTuple):
    """Privacy losses ``spacing * k``, first <= k <= last; beyond the last everything is lost."""

    spacing: float
    first: int
    last: int


def capacity(
    packets: Sequence[Packet], epsilon: float, delta: float, lattice: Lattice, most: int
) -> int:
    """Return the largest capacity, at most ``most``, whose worst δ at ``epsilon`` is certified."""
    found = worst_deltas(packets, epsilon, delta, lattice, most)
    return len(found) - 1 if found[-1] <= delta else len(found) - 2


def worst_deltas(
    packets: Sequence[Packet], epsilon: float, delta: float, lattice: Lattice, most: int
) -> list[float]:
    """Return upper bounds on the δ of every strategy within 0, 1, … units, until one is too large.

    Parameters
    ----------
    packets : sequence of Packet
        What may be chosen, of one direction.
    epsilon, delta : float
        The target; δ decides what is negligible.
    lattice : Lattice
        Of the loss so far; it holds 0.
    most : int
        The largest capacity of interest.
    """
    laws = [
        lifted(
            power(each.pair, each.releases, lattice.spacing, _LOST * delta * each.units / most),
            _LIFTED * each.units / most,
        )
        for each in packets
    ]
    # No mixture of packets has more releases for its units than the best of them.
    steps = max(-(-most * each.releases // each.units) for each in packets)
    error = max(each.pair.loss_error for each in packets) + 16.0 * U * (abs(epsilon) + 64.0)
    values = [_payoff(lattice, epsilon - steps * error)]
    found = [float(values[0][-lattice.first])]
    depth = max(each.units for each in packets)
    alike: dict[int, list[Law]] = {}
    for each, law in zip(packets, laws, strict=True):
        alike.setdefault(each.units, []).append(law)
    offers = {units: Offer(those, len(values[0])) for units, those in alike.items()}
    tiny = _LOST * delta / (64.0 * most)
    for k in range(1, most + 1):
        best = values[-1]
        for units, offer in offers.items():
            if units <= k:
                best = np.maximum(best, offer.best(values[-units], tiny))
        # Exactly non-decreasing, where rounding might have left a dent.
        values.append(np.maximum.accumulate(np.minimum(best, 1.0)))
        found.append(float(values[-1][-lattice.first]))
        if found[-1] > delta:
            break
        if len(values) > depth:
            values.pop(0)
    return found


def _payoff(lattice: Lattice, epsilon: float) -> FloatArray:
    """Return (1 - e^(ε - x))₊ at the knots, rounded up."""
    x = np.arange(lattice.first, lattice.last + 1) * lattice.spacing
    x += np.abs(x) * (2.0 * U)
    return np.asarray(np.maximum(-np.expm1(np.minimum(epsilon - x, 0.0)), 0.0) * (1.0 + 8.0 * U))


def lattice_for(epsilon: float, mu: float, units: int) -> Lattice:
    """Return a lattice for losses of a composition that is about μ-GDP, paid in so many units."""
    spacing = mu / (9.0 * math.sqrt(units))
    # Rare losses far above ε count as what they are, not as infinite, as far as knots allow.
    low, high = -(4.0 * mu + 0.5 * mu * mu), epsilon + max(2.0 * mu, min(0.5, _ABOVE * spacing))
    return Lattice(spacing, math.floor(low / spacing), math.ceil(high / spacing))
