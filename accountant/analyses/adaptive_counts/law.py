"""Upper laws of the privacy loss on a lattice, and their sums, with relative errors only.

A law is a vector of masses under P at consecutive multiples of a spacing, and a mass at +∞. All
masses are non-negative and nothing is subtracted after the cells were split, so every rounding is a
relative one, and is answered by a factor.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.errors import PrecisionError
from accountant.pairs.base import DominatingPair

# Losses beyond are taken for infinite; knots beyond are refused.
_REACH = 64.0
_KNOTS = 1 << 20

# Products of masses in one convolution; more take minutes.
_PRODUCTS = 1 << 31


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
        law, below = _chords(pair, spacing, cells)
        narrow = law.infinite > pair.infinite_mass + lost or below > lost
        if not narrow or cells * spacing >= _REACH:
            return cut(law, lost)
        cells *= 2


def _chords(pair: DominatingPair, spacing: float, cells: int) -> tuple[Law, float]:
    """Return the law on a window around 0, and the mass that was moved up to its lower end."""
    if cells > _KNOTS:
        raise PrecisionError("the losses of a kind spread too far for the lattice of its packet")
    edges: FloatArray = np.multiply(np.arange(-cells, cells + 1), spacing, dtype=np.float64)
    found = pair.masses(edges)
    up = 1.0 + found.relative_error + 4.0 * U
    p = found.p * up + 1e-300
    q = np.maximum(found.q / up - 1e-300, 0.0)[1:-1]
    inner = p[1:-1]
    # The part at the upper knot, rounded up: a difference of two masses over 1 - e^-D.
    width = -math.expm1(-spacing)
    high = np.maximum(inner - q * np.exp(edges[:-1]) * (1.0 - 4.0 * U), 0.0) / width
    high = np.minimum(high * (1.0 + 8.0 * U) + inner * (8.0 * U / width), inner)
    masses = np.zeros(len(edges))
    masses[1:] += high
    masses[:-1] += inner - high
    masses[0] += p[0]
    return Law(spacing, -cells, masses * (1.0 + 8.0 * U), float(p[-1])), float(p[0])


def cut(law: Law, lost: float) -> Law:
    """Move at most ``lost`` from the top to +∞, and as much from the bottom up to what is kept."""
    masses = law.masses
    above = np.cumsum(masses[::-1])[::-1]
    below = np.cumsum(masses)
    last = max(int(np.count_nonzero(above > lost)), 1)
    first = min(int(np.count_nonzero(below <= lost)), last - 1)
    kept = masses[first:last].copy()
    kept[0] += total(masses[:first])
    return Law(
        law.spacing, law.first + first, kept, law.infinite * (1 + 4 * U) + total(masses[last:])
    )


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
