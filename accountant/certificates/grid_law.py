"""Upper laws on knots and their composition in floating point, as the checker does in integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import fft

from accountant._typing import FloatArray
from accountant.pairs.base import DominatingPair, Parts

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
    return law.infinite + scale * float(law.tilted[kept] @ weight)


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
    kept = full[start:end].copy()
    below = knots.spacing * np.arange(start, 0, -1)
    kept[0] += float(full[:start] @ np.exp(np.minimum(tilt * below, 600.0)))
    # A loss above the knots is the last knot's and an infinite one, with the same profile below it.
    above = knots.spacing * np.arange(1, full.size - end + 1)
    rest = full[end:] * np.exp(-tilt * above)
    kept[-1] += float(rest @ np.exp(-above))
    beyond = float(rest @ -np.expm1(-above)) * _exp(scale - tilt * knots.spacing * knots.high)
    infinite = one.infinite + other.infinite - one.infinite * other.infinite + beyond
    top = float(kept.max())
    if not top > 0.0:  # all of it is beyond the knots: they show nothing
        return Tilted(kept, -math.inf, 1.0)
    return Tilted(kept / top, scale + math.log(top), infinite)


def _convolved(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return all sums' masses: those of large and of small masses apart, for their own noise.

    Jumps that are rare in a step, and are not in all of them, would be lost in the noise of others.
    """
    full = np.zeros(one.size + other.size - 1)
    for start, first in _by_size(one):
        for begin, second in _by_size(other):
            length = first.size + second.size - 1
            size = fft.next_fast_len(length, real=True)
            part = fft.irfft(fft.rfft(first, size) * fft.rfft(second, size), size)[:length]
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
