"""Chooses knots on which the checker composes laws (Theorem K5), and the ε that they show.

A search in floating point: it composes upper laws on knots as the checker will do it in integers,
and proves nothing.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.fft import next_fast_len

from accountant._basics.arrays import FloatArray
from accountant.analyses.pld.loss_grid import common_spacing
from accountant.pairs.base import DominatingPair, Parts, has_pld
from accountant.search import narrow

# What a transform leaves where there is no mass, relative to the largest one.
NOISE = 1e-14
# What of the largest mass is large.
SMALL = 1e-7


@dataclass(frozen=True)
class Knots:
    """The losses k·spacing, low <= k <= high."""

    spacing: float
    low: int
    high: int

    @property
    def losses(self) -> FloatArray:
        """The losses of all knots."""
        return np.asarray(self.spacing * np.arange(self.low, self.high + 1), dtype=np.float64)

    def listed(self, log_delta: float, count: int) -> dict[str, Any]:
        """Return the evidence; its bits leave rounding up far below δ."""
        size = math.log2((self.high - self.low + 1.0) * count) - log_delta / math.log(2.0)
        bits = 64 * math.ceil((size + 50.0) / 64.0)
        ends = {"low": self.low, "high": self.high, "bits": bits}
        return {"kind": "grid", "spacing": self.spacing, **ends}


class Tilted(NamedTuple):
    """Masses ``tilted * e^(log_scale - tilt * loss)`` on the knots, and that at infinity."""

    tilted: FloatArray
    log_scale: float
    infinite: float


def composed(parts: Parts, knots: Knots, tilt: float) -> Tilted:
    """Return the law of all parts, multiplied as the checker does it."""
    whole = None
    for pair, count in parts:
        one = power = _tilted(*_upper_law(pair, knots.losses), knots.losses, tilt)
        for bit in bin(count)[3:]:
            power = _product(power, power, knots, tilt)
            power = _product(power, one, knots, tilt) if bit == "1" else power
        whole = power if whole is None else _product(whole, power, knots, tilt)
    assert whole is not None
    return whole


def profile(law: Tilted, knots: Knots, tilt: float, epsilon: float) -> float:
    """Return the profile at ε."""
    beyond = knots.losses - epsilon
    kept = beyond > 0.0
    weight = np.exp(-tilt * beyond[kept]) * -np.expm1(-beyond[kept])
    scale = math.exp(min(law.log_scale - tilt * epsilon, 700.0))
    return law.infinite + scale * float((law.tilted[kept] * weight).sum())


def _upper_law(pair: DominatingPair, losses: FloatArray) -> tuple[FloatArray, float]:
    """Return masses at the knots by chords (Theorem G2), and at infinity by the last one."""
    found = pair.masses(losses)
    p, q = found.p, found.q
    beyond = p - q
    if abs(beyond.sum()) < 1e-12:  # both are whole: the largest difference, of masses near 1, is
        k = int(p.argmax())  # known from the others, and counts in all steps together
        beyond[k] -= beyond.sum()
    with np.errstate(over="ignore", invalid="ignore"):
        rise = (q[1:-1] * np.expm1(losses[:-1]) - beyond[1:-1]) / np.expm1(losses[0] - losses[1])
    rise = np.clip(np.nan_to_num(rise), 0.0, p[1:-1])
    mass = np.append(0.0, rise)
    mass[:-1] += p[1:-1] - rise
    mass[0] += p[0]
    last = min(q[-1] * math.exp(min(losses[-1], 700.0)), p[-1])
    mass[-1] += last
    return mass, float(p[-1] - last)


def _tilted(mass: FloatArray, infinite: float, losses: FloatArray, tilt: float) -> Tilted:
    with np.errstate(divide="ignore"):
        log_mass = np.log(mass) + tilt * losses
    top = float(log_mass.max())
    return Tilted(np.exp(log_mass - top), top, infinite)


def _product(one: Tilted, other: Tilted, knots: Knots, tilt: float) -> Tilted:
    full = _convolved(one.tilted, other.tilted)
    scale = one.log_scale + other.log_scale
    start, end = -knots.low, knots.high - 2 * knots.low + 1
    outside = _weights(knots, tilt)
    kept = full[start:end].copy()
    kept[0] += float((full[:start] * outside.below).sum())  # no BLAS, whose threads wait
    # A loss above the knots is the last knot's and an infinite one, with the same profile below it.
    kept[-1] += float((full[end:] * outside.last).sum())
    beyond = float((full[end:] * outside.beyond).sum()) * _exp(
        scale - tilt * knots.spacing * knots.high
    )
    infinite = one.infinite + other.infinite - one.infinite * other.infinite + beyond
    top = float(kept.max())
    if not top > 0.0:  # all of it is beyond the knots: they show nothing
        return Tilted(kept, -math.inf, 1.0)
    return Tilted(kept / top, scale + math.log(top), infinite)


class _Weights(NamedTuple):
    """What tilted masses outside the knots are at the first and the last knot, and at infinity."""

    below: FloatArray
    last: FloatArray
    beyond: FloatArray


@functools.lru_cache(maxsize=2)
def _weights(knots: Knots, tilt: float) -> _Weights:
    """Return the weights of the sums of two losses that are outside the knots."""
    below = knots.spacing * np.arange(-knots.low, 0, -1)
    above = knots.spacing * np.arange(1, knots.high + 1)
    untilted = np.exp(-tilt * above)
    return _Weights(
        np.exp(np.minimum(tilt * below, 600.0)),
        untilted * np.exp(-above),
        untilted * -np.expm1(-above),
    )


def _convolved(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return all sums' masses: those of large and of small masses apart, for their own noise.

    Jumps that are rare in a step, and are not in all of them, would be lost in the noise of others.
    """
    length = one.size + other.size - 1
    size, full = next_fast_len(length, real=True), np.zeros(length)
    firsts, others = (
        [(start, part.size, np.fft.rfft(part, size)) for start, part in _by_size(each)]
        for each in (one, other)
    )
    for start, first, one_line in firsts:
        for begin, second, other_line in others:
            part = np.fft.irfft(one_line * other_line, size)[: first + second - 1]
            part[part < NOISE * part.max()] = 0.0
            full[start + begin : start + begin + part.size] += part
    return full


def _by_size(mass: FloatArray) -> list[tuple[int, FloatArray]]:
    """Return the large masses and the small ones, each with the place of its first."""
    large = np.where(mass >= SMALL * mass.max(), mass, 0.0)
    found = []
    for part in (large, mass - large):
        used = part.nonzero()[0]
        if used.size:
            found.append((int(used[0]), part[used[0] : used[-1] + 1]))
    return found


def _exp(x: float) -> float:
    return math.exp(min(x, 700.0))


# The most knots.
MOST_KNOTS = 100_000
# The most knots times products: the checker takes some seconds for them.
MOST_WORK = 1_200_000
# The knots that are tried first.
FEWEST = 1000
# The logarithm of what may be outside the knots, as a share of δ.
OUTSIDE = -28.0
# What rounding of each step may take of δ here, several times of what was seen.
ROUNDING = 2e-13
# A relative excess of ε that needs no finer grid, and the least ones that are tried for.
ENOUGH = 1e-6
# The largest tilt, in units of 1/spacing.
STEEPEST = 4.0
# Sizes of losses from which moments are computed, and their orders.
SIZES = np.logspace(-14.0, 3.0, 680)
ORDERS = np.logspace(-4.0, 12.0, 161)


class Found(NamedTuple):
    """The ε of the knots in one direction, and the evidence."""

    epsilon: float
    evidence: dict[str, Any]


def find_grid(parts: Parts, epsilon: float, delta: float) -> Found | None:
    """Return an ε slightly above ``epsilon`` that a grid shows, None if there is no such grid."""
    if not all(has_pld(pair) for pair, _ in parts):
        return None
    tilt, low, high = _window(parts, epsilon, math.log(delta))
    if not low <= 0.0 <= high or not math.isfinite(tilt):
        return None
    products = sum(2 * count.bit_length() for _, count in parts)
    most = min(MOST_KNOTS, MOST_WORK // products)
    unit, size, best = _lattice(parts), FEWEST, None
    for _ in range(4):
        spacing = (high - low) / size
        if unit is not None and unit / spacing > 0.5:
            spacing = unit / math.ceil(unit / spacing)
        knots = Knots(spacing, math.floor(low / spacing), math.ceil(high / spacing))
        if not 0 < knots.high - knots.low <= 1.5 * most:
            break
        # Next to the largest loss the best tilt is infinite: only losses rounded up would be left.
        least = _epsilon(parts, knots, min(tilt, STEEPEST / spacing), epsilon, delta)
        if least is not None and (best is None or least < best.epsilon):
            best = Found(least, knots.listed(math.log(delta), sum(n for _, n in parts)))
        excess = math.inf if least is None else (least - epsilon) / (epsilon or 1.0)
        if excess <= ENOUGH or size == most:
            break
        finer = min(1.3 * math.sqrt(excess / ENOUGH), 16.0)
        size = min(math.ceil(size * max(finer, 2.0)), most)
    return best


def _lattice(parts: Parts) -> float | None:
    """Return a spacing whose multiples are all losses, None if there is none."""
    spacings = []
    for pair, _ in parts:
        if pair.lattice is None:
            continue
        offset, spacing = pair.lattice
        spacings += [each for each in (abs(offset), spacing) if each > 0.0]
    return common_spacing(spacings) if spacings else None


def _window(parts: Parts, epsilon: float, log_delta: float) -> tuple[float, float, float]:
    """Return the tilt that is best at ε, and losses below and above which hardly any sum is."""
    up, down = np.zeros(ORDERS.size), np.zeros(ORDERS.size)
    bottom = sum(count * pair.support[0] for pair, count in parts)
    top = sum(count * pair.support[1] for pair, count in parts)
    # No other steps bring a loss above this back to ε, and the profile beyond it needs no knots.
    most = 1.001 * (epsilon - bottom)
    for pair, count in parts:
        loss, mass = _coarse(pair)
        loss, mass = loss[loss <= most], mass[loss <= most]
        up += count * _log_moments(loss, mass, ORDERS)
        down += count * np.maximum(_log_moments(loss, mass, -ORDERS), 0.0)
    with np.errstate(invalid="ignore"):
        k = int(np.nanargmin(np.where(np.isfinite(up), up - ORDERS * epsilon, np.inf)))
        tilt, size = float(ORDERS[k]), float(up[k] - ORDERS[k] * epsilon)
        high = float(
            np.nanmin(np.where(np.isfinite(up), (up - log_delta - OUTSIDE) / ORDERS, np.inf))
        )
        below = down + size - log_delta - OUTSIDE
        low = float(np.nanmax(np.where(np.isfinite(below), -below / (ORDERS + tilt), -np.inf)))
    high = max(min(high, top, most), 1.001 * epsilon)
    return tilt, min(max(low, bottom), 0.0), high


def _coarse(pair: DominatingPair) -> tuple[FloatArray, FloatArray]:
    """Return finite losses, or ones of all magnitudes, and their masses."""
    table = pair.loss_atoms
    if table is not None:
        return table.loss, table.p
    edges = np.concatenate([-SIZES[::-1], [0.0], SIZES])
    low, high = pair.support
    edges = edges[(edges > low) & (edges < high)]
    ends = [end for end in (low, high * (1.0 + 1e-12)) if math.isfinite(end)]
    edges = np.unique(np.append(edges, ends))
    middles = np.append(edges[0], 0.5 * (edges[1:] + edges[:-1]))
    return middles, pair.masses(edges).p[:-1]


def _log_moments(loss: FloatArray, mass: FloatArray, orders: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", over="ignore"):
        log_mass = np.log(mass)
        return np.asarray(np.logaddexp.reduce(log_mass + orders[:, None] * loss, axis=1))


def _epsilon(parts: Parts, knots: Knots, tilt: float, epsilon: float, delta: float) -> float | None:
    """Return the least ε of the composed law on the knots, rounded up; None if it is far off."""
    law = composed(parts, knots, tilt)
    target = delta * (1.0 - 1e-7 - min(ROUNDING * sum(n for _, n in parts), 0.1))
    low, high = epsilon, epsilon + max(0.01 * epsilon, 1e-3 if epsilon == 0.0 else 0.0)

    def holds(at: float) -> bool:
        return profile(law, knots, tilt, at) <= target

    return narrow(holds, high, low, 60)[0] if holds(high) else None
