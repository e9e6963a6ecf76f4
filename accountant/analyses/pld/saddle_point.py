"""The plan of a grid: a coarse distribution of the loss, its saddle point, and the range.

Nothing here is certified. It does not affect validity: a bad plan only widens a bracket.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant.pairs.atoms import Atoms
from accountant.pairs.base import DominatingPair, Masses, has_rdp

_POSITIVE = np.geomspace(1e-12, 1e3, 1200)
_EDGES = np.concatenate([-_POSITIVE[::-1], [0.0], _POSITIVE])
# Losses are looked for up to here, a decade at a time beyond those edges.
_FARTHEST = 1e15
# Masses under P below this count as zero.
_LEAST = 1e-290
# Losses beyond it, in nats, leave the range of the grid's exponentials in a few releases.
FAR = 300.0
# Cells of a density with more mass than this are heavy. This and the next three affect the plan of
# a grid, and no proof.
HEAVY = 1e-6
# Heavy cells are divided where they are wider than this share of the standard deviation.
WIDE = 0.1
# The edges that divide them.
DIVIDED = 801
# The edges reach this many standard deviations from the mean, to either side.
DEVIATIONS = 10.0
# Half widths below which log(sinh(a)/a) is a²/6.
NARROW = 1e-3
# How near to its best the logarithm of a tilt is.
CLOSE = 1e-6


class CoarseLaw(NamedTuple):
    """Atoms of a rough law of one finite loss, with the cells they came from."""

    times: int
    loss: FloatArray
    log_mass: FloatArray
    low: FloatArray  # ends of the cells
    high: FloatArray
    infinite: float

    def cumulants(self, tilt: float) -> tuple[float, float, float]:
        """Return log E[e^{tilt L}] under P and its first two derivatives in ``tilt``."""
        exponent = tilt * self.loss + self.log_mass
        top = float(exponent.max())
        w = np.exp(exponent - top)
        total = float(w.sum())
        # Sums of products without BLAS, whose threads wait for each other longer than they add up.
        mean = float((w * self.loss).sum()) / total
        return top + math.log(total), mean, float((w * (self.loss - mean) ** 2).sum()) / total


class Saddle(NamedTuple):
    """The tilt that makes the answer typical, and the answer it suggests."""

    tilt: float
    epsilon: float
    log_delta: float
    deviation: float  # standard deviation of the tilted total loss
    spread: float  # the same without the tilt


def coarse_law(pair: DominatingPair, count: int) -> CoarseLaw:
    """Return the law of ``pair`` on cells a few per cent wide."""
    table = pair.loss_atoms
    if table is not None and float(np.abs(table.loss).max()) > FAR and table.p.max() > _LEAST:
        return _law_of_atoms(table, count)
    low, high = pair.support
    edges = _EDGES
    if math.isfinite(high):
        top = high + 1e-9 * abs(high) + 1e-15
        edges = np.append(edges[edges < top], top)
    if math.isfinite(low):
        bottom = low - 1e-9 * abs(low) - 1e-15
        edges = np.insert(edges[edges > bottom], 0, bottom)
    masses = pair.masses(edges)
    if not math.isfinite(high) and masses.p[-1] > pair.infinite_mass * (1.0 + 1e-6) + _LEAST:
        edges, masses = _extended(pair, edges)
    if table is None:
        edges, masses = _divided(pair, edges, masses)
    p, q, _ = masses
    inner = np.maximum(np.asarray(p[1:-1]), 0.0)
    other = np.maximum(np.asarray(q[1:-1]), 0.0)
    least = _LEAST if table is None else min(table.doubtful, _LEAST)
    keep = inner > least
    if not keep.any():  # all mass at infinity: one cell that weighs nothing
        keep[keep.size // 2], inner, other = True, inner + _LEAST, other + _LEAST
    ends = edges[:-1][keep], edges[1:][keep]
    loss = _losses(inner[keep], other[keep], *ends, dense=table is None)
    return CoarseLaw(count, loss, np.log(inner[keep]), *ends, float(p[-1]))


def _losses(
    p: FloatArray, q: FloatArray, low: FloatArray, high: FloatArray, *, dense: bool
) -> FloatArray:
    """Return the losses of cells: of one atom in each, or about the mean of a density.

    Of a uniform density on a cell of half width a, the quotient of the masses is that of a loss
    log(sinh(a)/a) below its middle.
    """
    with np.errstate(divide="ignore"):
        loss = np.log(p) - np.log(q)
    if dense:
        half = 0.5 * (high - low)
        wide = np.maximum(half, NARROW)
        less = wide + np.log1p(-np.exp(-2.0 * wide)) - np.log(2.0 * wide)
        loss = loss + np.where(half > NARROW, less, half * half / 6.0)
        loss = np.where(q > 0.0, loss, low + half)  # masses under Q that are below the doubles
    return np.asarray(np.clip(loss, low, high))


def _divided(pair: DominatingPair, edges: FloatArray, masses: Masses) -> tuple[FloatArray, Masses]:
    """Return edges with narrower cells where most of the mass is in wide ones, and their masses."""
    mass = np.asarray(masses.p[1:-1])
    heavy = np.flatnonzero(mass > HEAVY)
    if not heavy.size:
        return edges, masses
    low, high, mass = edges[:-1][heavy], edges[1:][heavy], mass[heavy]
    middle, total = 0.5 * (low + high), float(mass.sum())
    mean = float((mass * middle).sum()) / total
    deviation = math.sqrt(float((mass * (middle - mean) ** 2).sum()) / total)
    if not float((high - low).max()) > WIDE * deviation > 0.0:
        return edges, masses
    reach = DEVIATIONS * deviation
    inside = np.linspace(max(mean - reach, low[0]), min(mean + reach, high[-1]), DIVIDED)
    edges = np.union1d(edges, inside)
    return edges, pair.masses(edges)


def _law_of_atoms(table: Atoms, count: int) -> CoarseLaw:
    """Return atoms themselves: masses of huge losses under Q are below the doubles."""
    heavy = table.p > _LEAST
    loss = table.loss[heavy]
    # A loss may be infinite where a quotient of doubles overflows.
    margin = 1e-9 * np.minimum(np.abs(loss), 1e300) + 1e-15
    log_mass = np.log(table.p[heavy])
    return CoarseLaw(count, loss, log_mass, loss - margin, loss + margin, float(table.infinite_p))


def _extended(pair: DominatingPair, edges: FloatArray) -> tuple[FloatArray, Masses]:
    """Return edges that go as far as the losses do, many where the mass is, and their masses."""
    masses = pair.masses(edges)
    least = pair.infinite_mass * (1.0 + 1e-6) + _LEAST
    while masses.p[-1] > least and edges[-1] < _FARTHEST:
        edges = np.concatenate([edges, np.geomspace(edges[-1], 10.0 * edges[-1], 101)[1:]])
        masses = pair.masses(edges)
    heavy = np.flatnonzero(np.asarray(masses.p[1:-1]) > _LEAST)
    if heavy.size:
        # Losses so large are concentrated: a few per cent may be many standard deviations.
        inside = np.linspace(edges[heavy[0]], edges[heavy[-1] + 1], _POSITIVE.size)
        edges = np.union1d(edges, inside)
        masses = pair.masses(edges)
    return edges, masses


def saddle_at_epsilon(laws: Sequence[CoarseLaw], epsilon: float) -> Saddle:
    """Return the saddle point of the profile at ``epsilon``."""
    return _search(laws, lambda s: (s.epsilon - epsilon, s.tilt))


def saddle_at_delta(laws: Sequence[CoarseLaw], delta: float) -> Saddle:
    """Return the saddle point where the profile is about ``delta``."""
    target = math.log(delta)
    return _search(laws, lambda s: (target - s.log_delta, s.tilt * s.tilt))


def _search(laws: Sequence[CoarseLaw], beyond: Callable[[Saddle], tuple[float, float]]) -> Saddle:
    """Return the saddle point that is neither before nor beyond its aim.

    ``beyond`` tells how far it is beyond, and how fast that grows with the logarithm of the tilt,
    over the slope of ε: the steps are Newton's, and halves where those do not shrink.
    """
    deviations = [math.sqrt(law.cumulants(0.0)[2]) for law in laws]
    spread = math.sqrt(sum(law.times * d * d for law, d in zip(laws, deviations, strict=True)))
    narrowest = min((d for d in deviations if d > 1e-14), default=1.0)
    # Steps between atoms of huge losses are felt at small tilts, however small their spread.
    largest = max(float(np.abs(law.loss).max()) for law in laws)
    least = 1e-3 / max(spread, 1e-3) if largest < FAR else 1e-3 / max(spread, largest)
    low, high = math.log(least), math.log(300.0 / narrowest)

    at, moved = 0.5 * (low + high), math.inf
    for _ in range(64):
        found = _saddle(laws, math.exp(at), spread)
        excess, factor = beyond(found)
        low, high = (at, high) if excess < 0.0 else (low, at)
        tilt = found.tilt
        slope = factor * (found.deviation**2 + tilt**-2 + (1.0 + tilt) ** -2)
        following = at - excess / slope
        if not low < following < high or abs(following - at) > 0.5 * moved:
            following = 0.5 * (low + high)
        moved = abs(following - at)
        if moved <= CLOSE:
            break
        at = following
    return found


def _saddle(laws: Sequence[CoarseLaw], tilt: float, spread: float) -> Saddle:
    k = mean = variance = 0.0
    for law in laws:
        value, first, second = law.cumulants(tilt)
        k += law.times * value
        mean += law.times * first
        variance += law.times * second
    epsilon = mean - 1.0 / tilt - 1.0 / (1.0 + tilt)
    smooth = variance + tilt**-2 + (1.0 + tilt) ** -2
    log_delta = (
        k - tilt * epsilon - math.log(tilt * (1.0 + tilt)) - 0.5 * math.log(2.0 * math.pi * smooth)
    )
    return Saddle(tilt, epsilon, log_delta, math.sqrt(max(variance, 0.0)), spread)


def reach(
    laws: Sequence[CoarseLaw], tilt: float, log_mass: float
) -> tuple[float, float, float, float]:
    """Return an interval outside which the tilted total loss has about ``exp(log_mass)``.

    Gives ``(low, high, s, t)`` with the Chernoff orders s < 0 < t of the two ends.
    """
    base = sum(law.times * law.cumulants(tilt)[0] for law in laws)
    deviation = math.sqrt(sum(law.times * law.cumulants(tilt)[2] for law in laws)) + 1e-15
    # A law of one far loss does not deviate; orders of 1e15 would leave the doubles with it.
    deviation = max(deviation, 1e-15 * max(float(np.abs(law.loss).max()) for law in laws))
    ends, orders = [], []
    for sign in (-1.0, 1.0):
        best, order = math.inf, sign / deviation
        # orders below the Gaussian one, far below where few large losses make the deviation
        unit, ratio = 4.0 * math.sqrt(-2.0 * log_mass) / deviation, 2.0
        tried = [unit * ratio**-k for k in range(14)]
        for _ in range(3):
            for s in tried:
                k = sum(law.times * law.cumulants(tilt + sign * s)[0] for law in laws)
                end = (k - base - log_mass) / s
                if end < best:
                    best, order = end, sign * s
            ratio = math.sqrt(ratio)
            tried = [abs(order) * ratio, abs(order) / ratio]
        ends.append(sign * best)
        orders.append(order)
    return ends[0], ends[1], orders[0], orders[1]


def log_share(laws: Sequence[CoarseLaw], saddle: Saddle) -> float:
    """Return the logarithm of about what share of the tilted law the profile at ε is."""
    whole = sum(law.times * law.cumulants(saddle.tilt)[0] for law in laws)
    return saddle.log_delta + saddle.tilt * saddle.epsilon - whole


def is_far(pair: DominatingPair) -> bool:
    """Tell whether a single loss exceeds the range of the grid's exponentials."""
    return has_rdp(pair) and pair.loss_atoms is None and pair.finite_rdp(1.0001) > FAR
