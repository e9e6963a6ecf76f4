"""Any number of releases of kinds fixed in advance, chosen as one goes (Theorem L13).

The worst strategy within a capacity is found by dynamic programming over (capacity left, privacy
loss so far). Losses are upper laws on a lattice: masses under P at consecutive multiples of a
spacing, and a mass at +∞. All masses are non-negative and nothing is subtracted after the cells
were split, so every rounding is a relative one, and is answered by a factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.analyses.pld.loss_grid import LossGrid, discretise
from accountant.errors import PrecisionError
from accountant.pairs.base import DominatingPair

# Losses beyond are taken for infinite; knots beyond are refused.
_REACH = 64.0
_KNOTS = 1 << 20

# Products of masses in one convolution; more take minutes.
_PRODUCTS = 1 << 31


# A law whose knots are this many times its masses is summed mass by mass; speed alone.
_SPARSE = 16


class Law(NamedTuple):
    """Masses at ``spacing * (first + k)``, and the mass at +∞."""

    spacing: float
    first: int
    masses: FloatArray
    infinite: float


def single(pair: DominatingPair, spacing: float, lost: float) -> Law:
    """Return the chord law of one release (Theorem G2); at most ``lost`` is moved to +∞."""
    cells = 256
    while True:
        if cells > _KNOTS:
            raise PrecisionError(
                "the losses of a kind spread too far for the lattice of its packet"
            )
        knots = LossGrid(0.0, spacing, -cells, cells)
        law = discretise(pair, knots, has_atoms=False)
        # The mass below the window was moved up to its lower end.
        below = float(pair.masses(knots.losses()[:1]).p[0])
        narrow = law.infinite_upper > pair.infinite_mass + lost or below > lost
        if not narrow or cells * spacing >= _REACH:
            return cut(Law(spacing, -cells, law.upper, law.infinite_upper), lost)
        cells *= 2


def cut(law: Law, lost: float) -> Law:
    """Move at most ``lost`` from the top to +∞, as much from the bottom up to what is kept.

    Where few masses make up the rest, as much of the others goes to +∞, too.
    """
    masses = law.masses
    above = np.cumsum(masses[::-1])[::-1]
    below = np.cumsum(masses)
    last = max(int(np.count_nonzero(above > lost)), 1)
    first = min(int(np.count_nonzero(below <= lost)), last - 1)
    kept = masses[first:last].copy()
    kept[0] += total(masses[:first])
    gone = law.infinite * (1 + 4 * U) + total(masses[last:])
    # Rare kinds of few losses have next to nothing between them.
    little = np.sort(kept)
    few = little[int(np.count_nonzero(np.cumsum(little) <= lost)) :]
    if 0 < _SPARSE * few.size < kept.size:
        faint = kept < few[0]
        gone, kept = gone + total(kept[faint]), np.where(faint, 0.0, kept)
    return Law(law.spacing, law.first + first, kept, gone * (1 + 4 * U))


def lifted(law: Law, share: float) -> Law:
    """Move at most ``share`` from the bottom up to what is kept, and nothing from the top."""
    below = np.cumsum(law.masses)
    first = min(int(np.count_nonzero(below <= share)), len(law.masses) - 1)
    kept = law.masses[first:].copy()
    kept[0] += total(law.masses[:first])
    return Law(law.spacing, law.first + first, kept * (1.0 + 2.0 * U), law.infinite)


def total(masses: FloatArray) -> float:
    """Return a sum of non-negative masses, rounded up."""
    return float(np.sum(masses)) * (1.0 + (len(masses) + 2) * U)


def coarser(law: Law) -> Law:
    """Return an upper law of twice the spacing: odd knots become their chords (Theorem G2)."""
    first, masses = law.first, law.masses
    if first % 2:
        first, masses = first - 1, np.concatenate([[0.0], masses])
    if len(masses) % 2 == 0:
        masses = np.concatenate([masses, [0.0]])
    high = min(1.0 / (1.0 + math.exp(-law.spacing)) * (1.0 + 8.0 * U), 1.0)
    kept, odd = masses[::2].copy(), masses[1::2]
    kept[1:] += odd * high
    kept[:-1] += odd * (1.0 - high) * (1.0 + 2.0 * U)
    return Law(2.0 * law.spacing, first // 2, kept * (1.0 + 8.0 * U), law.infinite)


def _sum(a: Law, b: Law) -> Law:
    """Return an upper law of the sum of independent losses on one lattice (Theorem G1)."""
    if np.count_nonzero(a.masses) > np.count_nonzero(b.masses):
        a, b = b, a
    where = np.flatnonzero(a.masses)
    if _SPARSE * where.size < len(a.masses):
        masses = np.zeros(len(a.masses) + len(b.masses) - 1)
        for i in where.tolist():
            masses[i : i + len(b.masses)] += a.masses[i] * b.masses
        masses *= 1.0 + (where.size + 4) * U
    else:
        fewer, more = sorted((len(a.masses), len(b.masses)))
        if fewer * more > _PRODUCTS:
            raise PrecisionError("the sum of a packet takes too many values")
        masses = np.convolve(a.masses, b.masses) * (1.0 + (fewer + 4) * U)
    infinite = (a.infinite * max(total(b.masses), 1.0) + b.infinite) * (1.0 + 8.0 * U)
    infinite += a.infinite * b.infinite
    return Law(a.spacing, a.first + b.first, masses, infinite)


def power(pair: DominatingPair, count: int, spacing: float, lost: float) -> Law:
    """Return an upper law of ``count`` releases on multiples of ``spacing``.

    One release is put on a lattice finer by about √count, which becomes coarser as the sum spreads,
    so that chords add about as little to the variance of the sum as to that of one release.
    """
    finer = max(0, math.ceil(0.5 * math.log2(count)))
    scale = lost / (4.0 * count * (count.bit_length() + 1))
    base = single(pair, math.ldexp(spacing, -finer), scale)
    law, made = base, 1
    for bit in bin(count)[3:]:
        law, made = cut(_sum(law, law), scale * 2 * made), 2 * made
        while finer > 0 and math.ldexp(1.0, 2 * finer) * made > 4 * count:
            law, base, finer = coarser(law), coarser(base), finer - 1
        if bit == "1":
            law, made = cut(_sum(law, base), scale * made), made + 1
    while finer > 0:
        law, finer = coarser(law), finer - 1
    return cut(law, lost / 4.0)


# Knots in a row.
_TOGETHER = 64


class Offer:
    """Packets that cost the same, on a lattice of ``knots`` knots.

    Parameters
    ----------
    laws : sequence of Law
        Of one packet each.
    knots : int
        Length of the values.
    """

    def __init__(self, laws: Sequence[Law], knots: int) -> None:
        self._first = min(law.first for law in laws)
        last = max(law.first + len(law.masses) for law in laws) - 1
        # From every knot, what is gained by ``knots`` or more leads beyond the lattice.
        taps = max(min(last, knots) - self._first + 1, 1)
        self._width = _TOGETHER + taps - 1
        sparse = all(_SPARSE * np.count_nonzero(law.masses) < taps for law in laws)
        self._few: list[list[tuple[int, float]]] | None = [] if sparse else None
        self._laws = np.zeros((0 if sparse else self._width, len(laws), _TOGETHER))
        self._infinite = np.zeros(len(laws))
        for k, law in enumerate(laws):
            start = law.first - self._first
            kept = law.masses[: max(taps - start, 0)]
            if self._few is not None:
                where = np.flatnonzero(kept)
                self._few.append(list(zip((law.first + where).tolist(), kept[where], strict=True)))
            for j in range(_TOGETHER if len(kept) and self._few is None else 0):
                self._laws[start + j : start + j + len(kept), k, j] = kept
            lost = total(law.masses[len(kept) :])
            self._infinite[k] = (law.infinite + lost) * (1.0 + 2.0 * U)

    def best(self, value: FloatArray, tiny: float = 0.0) -> FloatArray:
        """Return the largest expectation of a value after one of the packets, rounded up.

        Below the lattice the value is at most what it is at its end, above it at most 1. The value
        does not decrease. From knots where it rises by at most ``tiny``, whatever the packet
        brings, the expectation is taken from the next row above: it does not decrease either.
        """
        rows = -(-len(value) // _TOGETHER)
        rises = int(np.searchsorted(value, value[0] + tiny, "right"))
        skipped = min(max(rises - self._first - self._width, 0) // _TOGETHER, rows - 1)
        below = max(0, -self._first)
        start = self._first + below
        length = max(start + rows * _TOGETHER + self._width, below + len(value))
        seen = np.ones(length)
        seen[:below] = value[0]
        seen[below : below + len(value)] = value
        # The threads of a matrix product may round in another direction, which doubles it.
        round_up = 1.0 + (2 * self._width + 32) * U
        if self._few is not None:
            sums = np.zeros((len(self._few), len(value)))
            for found, taps in zip(sums, self._few, strict=True):
                for k, mass in taps:
                    found += mass * seen[below + k : below + k + len(value)]
            best: FloatArray = (sums + self._infinite[:, np.newaxis]).max(axis=0)
            return best * round_up + 2.0**-1040
        first = start + skipped * _TOGETHER
        windows = np.lib.stride_tricks.as_strided(
            seen[first:], (rows - skipped, self._width), (_TOGETHER * seen.itemsize, seen.itemsize)
        )
        # NumPy before 2.3 multiplies what overlaps by itself, fifty times as slowly.
        picked = np.ascontiguousarray(windows)
        found = picked @ self._laws.reshape(self._width, -1)
        found = found.reshape(rows - skipped, -1, _TOGETHER) + self._infinite[:, np.newaxis]
        # Sums of products that are not negative: their rounding is relative, but for underflow.
        raised = found.max(axis=1).reshape(-1) * round_up + 2.0**-1040
        everywhere = np.full(rows * _TOGETHER, raised[0])
        everywhere[skipped * _TOGETHER :] = raised
        return everywhere[: len(value)]


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
    """Return a lattice for losses of a composition that is about μ-GDP, paid in ``units`` units."""
    spacing = mu / (9.0 * math.sqrt(units))
    # Rare losses far above ε count as what they are, not as infinite, as far as knots allow.
    low, high = -(4.0 * mu + 0.5 * mu * mu), epsilon + max(2.0 * mu, min(0.5, _ABOVE * spacing))
    return Lattice(spacing, math.floor(low / spacing), math.ceil(high / spacing))
