"""Puts and calls on a sum of independent likelihood ratios on a lattice, by one transform.

Ratios of a cell of an even lattice of their values go to the two ends of the cell, with their mean
kept: a law that is larger in the convex order (docs/theorems_sampling.md, Theorems S5 and S23). The
sum's law is the T-th power of a transform of tilted masses. From below what the lattice can have
added is subtracted: T times a quarter of a spacing, where the sum is within a spacing of the
strike, whose probability Esseen's inequality bounds by an integral of the same transform.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant._core import tools as core
from accountant.pairs.base import DominatingPair, has_pld

# Any lattice is valid: the numbers move widths and times, and were chosen by trial.
# Losses that are looked at first.
_LOSSES = np.linspace(-40.0, 40.0, 16001)
# Larger losses of this probability are cut off.
_RARE = 1e-12
# Widths of a sum of ratios in the window of its transform.
WIDTHS = 30.0
# Points of that window.
_POINTS = 2.0**19
# The most knots in a deviation of one ratio.
_FINEST = 4000.0
# The most knots of one ratio.
_MOST = 2**19
# The least knots in a deviation of one ratio: with fewer the brackets would be wide.
_COARSEST = 0.05


class RatioLattice(NamedTuple):
    """Masses without the record of the ratios 0, h, 2h, …

    Attributes
    ----------
    masses : float64 array of shape (m,)
        Each within ``mass_error`` of itself.
    spacing : float
        h.
    bumps : float64 array of shape (m - 1,)
        For every cell, mass · share · (1 - share): what spreading adds to a call, over h.
    escaped : float
        The mean of what exceeds the last knot: infinite loss of as much mass under P.
    mass_error, value_error : float
        Relative errors of masses and of ratios.
    variance : float
        About that of the ratio.
    """

    masses: FloatArray
    spacing: float
    bumps: FloatArray
    escaped: float
    mass_error: float
    value_error: float
    variance: float


def ratio_lattice(pair: DominatingPair, steps: int) -> RatioLattice | None:
    """Return the lattice that suits sums of ``steps`` ratios; None where none is fine enough."""
    if not has_pld(pair):
        return None
    p, _q, _ = pair.masses(_LOSSES)
    # With the record the last masses are those of the largest losses.
    above = np.cumsum(p[::-1])[::-1]
    top = int(np.argmax(above <= max(_RARE, 2.0 * float(p[-1])))) - 1
    if top < 1:
        return None
    largest = math.exp(float(_LOSSES[min(top + 1, _LOSSES.size - 1)]))
    middle = np.exp(_LOSSES[: top + 1])
    variance = float(p[1 : top + 2] @ middle) - 1.0
    if not variance > 1e-12:
        return None
    deviation = math.sqrt(variance)
    spacing = deviation * max(WIDTHS * math.sqrt(steps) / _POINTS, 1.0 / _FINEST)
    spacing = max(spacing, largest / _MOST)
    count = math.ceil(largest / spacing)
    if count < 2 or spacing > _COARSEST * deviation:
        return None
    return _spread(pair, spacing, count, variance)


def _spread(pair: DominatingPair, spacing: float, count: int, variance: float) -> RatioLattice:
    knots = spacing * np.arange(count + 1)
    assert has_pld(pair)
    p, q, relative = pair.masses(np.log(knots[1:]))
    masses = np.zeros(count + 1)
    # The share that keeps the mean, p/q; rounding moves the mean by a few units of itself.
    high = np.clip((p[:-1] - knots[:-1] * q[:-1]) / spacing, 0.0, q[:-1])
    masses[1:] += high
    masses[:-1] += q[:-1] - high
    masses[-1] += q[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        bumps = np.where(q[:-1] > 0.0, high * (1.0 - high / q[:-1]), 0.0)
    # Shares have the rounding of the ratio, many spacings large.
    bumps += 8.0 * (relative + U) * q[:-1] * np.arange(1, count + 1)
    escaped = max(float(p[-1]) - float(knots[-1]) * float(q[-1]), 0.0)
    escaped += 4.0 * (relative + U) * float(p[-1])
    values = float(pair.loss_error) + 4.0 * relative + 64.0 * U
    return RatioLattice(masses, spacing, bumps, escaped, relative + 16.0 * U, values, variance)


Ends: TypeAlias = "tuple[FloatArray, FloatArray]"

# The most of the largest ratio's exponent: more would give rare ratios all the weight.
_MOST_TILT = 24.0
# Points of the largest transform.
_LARGEST = 2**22
# Values this far below the centre, in exponents of the tilt, are all round-off.
_FAR_BELOW = 60.0
# The constant of Esseen's inequality (Theorem S23).
_ESSEEN = (96.0 / 95.0) ** 2
# Groups of neighbouring ratios in the search for a tilt, of which there are more for fine lattices.
_GROUPS = 2**12
# Tilts for the mass outside the window, in standard deviations of the sum.
_RATES = np.geomspace(1e-3, 16.0, 24)


class Options(Protocol):
    """Bounds E(X - K)₊ at strikes K, from one side."""

    def __call__(self, strikes: FloatArray, *, upper: bool) -> FloatArray:
        """Return the bounds."""


class RatioSums:
    """E(X - K)₊ for the sum X of ``steps`` ratios, or for its negative (``put``)."""

    def __init__(self, one: RatioLattice, steps: int, put: bool, log_target: float) -> None:
        self._one, self._steps, self._put = one, steps, put
        masses = one.masses[::-1] if put else one.masses
        first = 1 - masses.size if put else 0
        some = np.flatnonzero(masses > 0.0)
        values: FloatArray = np.asarray(one.spacing * (first + some), np.float64)
        self._tilt = _tilt(masses[some], values, steps, log_target)
        x = np.log(masses[some]) + self._tilt * values
        top = float(x.max())
        tilted = np.zeros(masses.size)
        tilted[some] = np.exp(x - top)
        total = float(tilted.sum())
        tilted /= total
        # What spreading adds, at the end of the cell that has the larger tilt.
        ends = one.spacing * np.arange(one.bumps.size) * (-1.0 if put else 1.0)
        ends += 0.0 if put else one.spacing
        bumped = one.bumps > 0.0
        logs = np.log(one.bumps[bumped]) + self._tilt * ends[bumped] - top
        self._bumps = float(np.exp(logs).sum()) * (1.0 + 1e-9) / total
        # Tilted masses carry the rounding of their exponents, and their sum, T times over.
        self._rounding = steps * U * (6400.0 + 8.0 * abs(top))
        self._log_scale = steps * (top + math.log(total))
        place = np.arange(masses.size)
        mean = float(tilted @ place)
        self._variance = float(tilted @ (place - mean) ** 2)
        deviation = math.sqrt(steps * self._variance) + 1.0
        self._begin, self._size = _window(masses, tilted, mean, deviation, steps)
        self._law(tilted)
        self._outside = self._mass_outside(tilted, mean, deviation)
        index = steps * first + self._begin + np.arange(self._size)
        self._values = np.asarray(one.spacing * index, dtype=np.float64)
        self._centre = one.spacing * steps * (first + mean)
        # Masses and calls, but for a common factor; far below its centre the law is all round-off.
        x = self._tilt * (self._values - self._centre)
        kept = x > -_FAR_BELOW
        self._values = self._values[kept]
        weights: FloatArray = np.maximum(self._mass[kept], 0.0) * np.exp(-x[kept])
        above = np.cumsum(weights[::-1])[::-1]
        calls = np.cumsum(above[:0:-1])[::-1] * one.spacing
        self._calls = np.append(calls, 0.0)

    def _law(self, tilted: FloatArray) -> None:
        """Set the tilted masses of the sum, a bound on their errors, and Esseen's integral."""
        size, times = self._size, self._steps
        around = np.zeros(-(-tilted.size // size) * size)
        around[: tilted.size] = tilted
        values = np.fft.rfft(around.reshape(-1, size).sum(axis=0))
        eta = 8.0 * U * (math.log2(size) + 1.0) * 1.01
        modulus = np.abs(values) * (1.0 + 4.0 * U)
        spectrum = np.ones(values.size, np.complex128)
        core.multiply_power(values, times, spectrum)
        power = np.exp(times * np.log(modulus + eta))
        error = power * np.minimum(times * eta / (modulus + eta) + 4.0 * U * times, 2.0)
        mass = np.fft.irfft(spectrum, size)
        self._mass = np.roll(mass, -(self._begin % size))
        self._error = 2.0 * float(error.sum()) / size + 2.0 * eta * float(np.linalg.norm(mass))
        self._near = self._esseen(modulus + eta)

    def _esseen(self, modulus: FloatArray) -> float:
        """Bound the tilted probability that the other terms are in an interval of a spacing.

        Whatever terms are not on the lattice: the larger of 1/a and h times an integral over
        |t| <= a, for the best a.
        """
        delta = 2.0 * math.pi / self._size  # in units of 1/h, as all frequencies here
        t = delta * np.arange(int(1.0 / delta))
        squared = np.minimum(modulus[: t.size], 1.0 + 1e-9) ** 2
        # Between the nodes: d/dt E cos(tD), D of variance 2V.
        squared += (
            0.5
            * delta
            * np.minimum((t + 0.5 * delta) * 2.0 * self._variance, math.sqrt(2.0 * self._variance))
        )
        tilt = self._tilt * self._one.spacing
        moved = 0.5 * (tilt * tilt + (t + 0.5 * delta) ** 2) * self._bumps * math.exp(tilt)
        logs = (self._steps - 1.0) * np.log(np.sqrt(squared) + moved)
        # Also for negative frequencies; up to half a node less far than it is summed.
        total = 2.0 * delta * np.cumsum(np.exp(np.minimum(logs, 600.0)))
        bound = _ESSEEN * total / np.maximum(t + 0.5 * delta - 1e-12, 1e-300)
        return min(float(bound.min()) * (1.0 + 1e-9), 1.0)

    def _mass_outside(self, tilted: FloatArray, mean: float, deviation: float) -> float:
        """Bound the tilted mass of sums outside the window, which the transform adds inside."""
        if self._begin == 0 and self._size > self._steps * (tilted.size - 1):
            return 0.0
        some = np.flatnonzero(tilted > 0.0)
        place, weights = some - mean, tilted[some]
        total = 0.0
        start = self._begin - self._steps * mean
        for sign, end in ((1.0, start + self._size), (-1.0, -start)):
            logs = [
                self._steps * math.log(float(weights @ np.exp(np.minimum(sign * r * place, 600.0))))
                - r * end
                for r in _RATES / deviation
            ]
            total += math.exp(min(min(logs), 0.0))
        return total * (1.0 + 1e-9)

    @property
    def first(self) -> float:
        """The least strike with a bound; below it a call is at most what its strike adds."""
        return float(self._values[0]) if self._values.size else -math.inf

    def bounds(self, strikes: FloatArray) -> Ends:
        """Bracket E(S - K)₊, or E(K - S)₊, for the mean S and strikes K of shape (m,)."""
        return mean_bounds(self._one, self._steps, self._put, strikes, self.options)

    def options(self, strikes: FloatArray, *, upper: bool) -> FloatArray:
        """Bound E(X - K)₊ as if ratios had no errors; a put is a call on -X at -K."""
        grown = self._steps * self._one.mass_error * 1.01 + 8.0 * self._size * U + self._rounding
        return self._at(strikes, upper) * (1.0 + grown if upper else max(1.0 - grown, 0.0))

    def _at(self, strikes: FloatArray, upper: bool) -> FloatArray:
        spacing, tilt = self._one.spacing, self._tilt
        if not self._values.size:  # the largest transform is too far from the tilted sum
            return np.full(strikes.size, math.inf if upper else 0.0)
        # Calls fall: beyond the window they are at most those at its end.
        beyond = strikes > self._values[-1]
        strikes = np.minimum(strikes, self._values[-1])
        with np.errstate(over="ignore"):
            factor = np.exp(self._log_scale - tilt * self._centre)
            value = np.interp(strikes, self._values, self._calls) * factor
            # Σ (v - K)₊ e^{-tilt·v} over the lattice, in units of e^{-tilt·K}.
            scale = np.exp(self._log_scale - tilt * strikes)
            width = tilt * spacing
            each = self._error * spacing * (1.0 / math.expm1(width) + 1.0) ** 2
            noise = scale * (each + self._outside / (math.e * tilt))
            rounding = 64.0 * U * (1.0 + abs(self._log_scale) + tilt * np.abs(strikes)) * value
            inside = strikes >= self._values[0]
            if upper:
                return np.where(inside, value + noise + rounding, math.inf)
            excess = self._steps * spacing * self._bumps * (1.0 + 1e-9) * scale * self._near
            lower = np.where(inside & ~beyond, value - noise - rounding - excess, 0.0)
            return np.maximum(lower, 0.0)


def mean_bounds(
    one: RatioLattice, steps: int, put: bool, strikes: FloatArray, options: Options
) -> Ends:
    """Bracket E(S - K)₊, or E(K - S)₊, for the mean S, by ``options`` on the sum of ratios."""
    times, sign = float(steps), -1.0 if put else 1.0
    moved = times * strikes * (2.0 * one.value_error + 16.0 * U)
    low = options(sign * times * strikes + moved, upper=False)
    high = options(sign * times * strikes - moved, upper=True)
    lower = np.maximum(low * (1.0 - 2.0 * one.value_error), 0.0)
    upper = high * (1.0 + 2.0 * one.value_error)
    if put:
        lower = np.maximum(lower - times * one.escaped, 0.0)
    else:
        upper = upper + times * one.escaped
    return lower / times * (1.0 - 8.0 * U), upper / times * (1.0 + 8.0 * U) + 1e-300


def tilt_room(largest: float) -> float:
    """Return the largest tilt of ratios that are at most ``largest`` above their mean."""
    return _MOST_TILT / largest


def _window(
    masses: FloatArray, tilted: FloatArray, mean: float, deviation: float, steps: int
) -> tuple[int, int]:
    """Return where the window of the sum begins, and its size: from its own mean to the tilted."""
    place = np.arange(masses.size)
    total = float(masses.sum())
    own = float(masses @ place) / total
    spread = math.sqrt(steps * float(masses @ (place - own) ** 2) / total) + 1.0
    half = 0.5 * WIDTHS
    low = min(steps * mean - half * deviation, steps * own - 6.0 * spread)
    # Beyond the bulk there is room for the largest ratio.
    high = steps * mean + half * deviation + (tilted.size - mean)
    low, high = max(low, 0.0), min(high, steps * (tilted.size - 1.0) + 1.0)
    size = 2 ** math.ceil(math.log2(high - low + 2.0))
    return math.floor(low), min(size, _LARGEST)


def _tilt(masses: FloatArray, values: FloatArray, steps: int, log_target: float) -> float:
    """Return about the tilt at which the sum exceeds its mean with this probability."""
    mean = float(masses @ values) / float(masses.sum())
    deviation = math.sqrt(max(float(masses @ (values - mean) ** 2), 1e-300))
    least = 0.3 / (deviation * math.sqrt(steps))
    room = tilt_room(float(values.max()) - mean)
    logs, values = _gathered(masses, values)
    low, high = 0.0, room
    for _ in range(30):
        middle = 0.5 * (low + high)
        x = logs + middle * (values - mean)
        top = float(x.max())
        weights = np.exp(x - top)
        total = float(weights.sum())
        slope = float(weights @ (values - mean)) / total
        rate = steps * (top + math.log(total) - middle * slope)
        low, high = (middle, high) if rate > log_target else (low, middle)
    return max(high, min(least, room))


def _gathered(masses: FloatArray, values: FloatArray) -> Ends:
    """Return logarithms of masses, and values, of a few thousand groups of neighbours at most."""
    starts = np.arange(0, masses.size, -(-masses.size // _GROUPS))
    together = np.add.reduceat(masses, starts)
    means = np.add.reduceat(masses * values, starts) / together
    return np.log(together), np.asarray(means, dtype=np.float64)
