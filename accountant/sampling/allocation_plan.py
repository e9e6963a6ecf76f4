"""Where to invert the transform of random allocation: searched in plain floating point.

Nothing here is certified, and nothing here affects validity: a bad plan only widens a bracket.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray

# The most terms of a line: a longer sum is cut off, at the cost of a wide bracket.
MOST_TERMS = 2**14
# Each error may be this share of the value.
SHARE = 1e-11
# Masses beyond this normal score are below the doubles.
FARTHEST = 38.0
# The spacing of the plain grid of normal scores.
_SPACING = 0.08
# Angles by which the path may turn.
_ANGLES = np.array([0.5, 0.8, 1.0, 1.3, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.9, 1.2, 1.5])
# The first of them are times y/σ², the best for a nearly normal ratio.
_RELATIVE = 4
# Rates of the bound on what a step beyond the threshold leaves, in units of mean over square.
_RATES = np.geomspace(1e-3, 1.0, 40)
# Orders that are looked at first, in units of 1/spread.
_COARSE = np.geomspace(1e-2, 1e3, 40)
# Orders that are looked at then, in units of the best of these.
_FINE = np.unique(np.concatenate([np.geomspace(0.02, 12.0, 40), np.linspace(0.85, 1.2, 9)]))


class Plan(NamedTuple):
    """A line, its step and length, and the window of the noise."""

    sign: int  # 1: put, -1: call
    abscissa: float  # > 0
    near: float  # orders of the bounds on the aliases
    far: float
    step: float
    terms: int
    low: float
    high: float
    angle: float  # by which the path turns to bound what is beyond
    log_value: float


class _Rough:
    """Values and weights of one step below a threshold, on a plain grid."""

    def __init__(self, mu: float, low: float, high: float) -> None:
        count = max(int((high - low) / _SPACING), 8)
        t = np.linspace(low, high, count + 1)
        self.weights = np.exp(-0.5 * t * t) * ((t[1] - t[0]) / math.sqrt(2.0 * math.pi))
        self.weights[[0, -1]] *= 0.5
        self.excess = np.expm1(mu * t - 0.5 * mu * mu)
        root = math.sqrt(0.5)
        self.mass = 0.5 * math.erfc(high * root)
        self.mean = 0.5 * math.erfc((high - mu) * root)

    def log_moment(self, rates: FloatArray) -> FloatArray:
        """Return log E[e^{rate·D}; t < high]."""
        flat: FloatArray = rates.ravel()
        found: FloatArray = np.empty_like(flat)
        small = np.abs(flat) < 1.0
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if small.any():
                x = np.multiply.outer(flat[small], self.excess)
                terms = np.einsum("ij,j->i", np.expm1(x) - x, self.weights)
                found[small] = np.log1p(terms + flat[small] * (self.mass - self.mean) - self.mass)
            if not small.all():
                large = flat[~small]
                unit = np.minimum(large, 0.0) * (1.0 + float(self.excess[0]))
                x = np.multiply.outer(large, self.excess)
                x += (np.minimum(large, 0.0) - unit)[:, None]
                far = np.log(np.einsum("ij,j->i", np.exp(x, out=x), self.weights))
                found[~small] = far - np.minimum(large, 0.0) + unit
        found = found.reshape(rates.shape)
        return np.where(np.isfinite(found), found, math.inf)


def make_plan(
    mu: float, steps: int, kappa: float, put: bool, upto: float, most: int = MOST_TERMS
) -> Plan | None:
    """Return a line for κ whose window serves up to another one; None where none is found."""
    log_value: float | None = None
    found: Plan | None = None
    for _ in range(3):
        high = _threshold(mu, steps, kappa, put, log_value, upto)
        found = _plan(mu, high, steps, kappa, put, most)
        if found is None:
            return None
        if log_value is not None and found.log_value > log_value - 2.0:
            break
        log_value = found.log_value
    return found


def log_put_outside(mu: float, high: float, steps: int, kappa: FloatArray) -> FloatArray:
    """Bound log E[(K - S)₊; some t > high]: the others must stay low (Theorem S15)."""
    times = float(steps)
    root = math.sqrt(0.5)
    mass = 0.5 * math.erfc(high * root) + 1e-300
    # Means below the threshold, a little smaller, and second moments, a little larger.
    mean = (0.5 * math.erfc((mu - high) * root)) * (1.0 - 1e-9)
    square = math.exp(min(mu * mu, 700.0)) * 0.5 * math.erfc((2.0 * mu - high) * root)
    square = square * (1.0 + 1e-9) + 1e-300
    jump = math.exp(mu * high - 0.5 * mu * mu) / times * (1.0 - 1e-9)
    # (x)₊ <= e^{cx}/(ec), E e^{-wY} <= 1 - w E[Y; A] + w² E[Y²; A]/2, c = wT
    rates = _RATES * (mean / square)
    others = (times - 1.0) * np.log1p(-rates * mean + 0.5 * rates * rates * square)
    c = rates * times
    short = np.multiply.outer(1.0 + kappa - jump, c) + others - 1.0 - np.log(c)
    return math.log(times) + math.log(mass) + np.asarray(short.min(axis=-1)) + 1e-9


def _threshold(
    mu: float, steps: int, kappa: float, put: bool, log_value: float | None, upto: float
) -> float:
    """Return the least threshold beyond which a step leaves next to no put."""
    exact = (math.log(steps) + math.log1p(upto)) / mu + 0.5 * mu + 1e-9
    exact = min(exact, FARTHEST)
    least = min(3.0 if put else mu + 1.0, exact)
    if exact <= least:
        return max(least, 3.0) if put else least
    if log_value is None:
        spread = math.sqrt(math.expm1(min(mu * mu, 2.0)) / steps)
        log_value = math.log(spread) - 0.5 * (kappa / spread) ** 2 - 2.0
    at, target = np.array([upto]), log_value + math.log(SHARE)
    low, high = least, exact
    for _ in range(7):
        middle = 0.5 * (low + high)
        if float(log_put_outside(mu, middle, steps, at)[0]) < target:
            high = middle
        else:
            low = middle
    return high


def _plan(mu: float, high: float, steps: int, kappa: float, put: bool, most: int) -> Plan | None:
    """Search for the saddle point, the period and the length."""
    low = max(-10.0 - (max(0.0, -math.log1p(kappa) / mu) if put else 0.0), -FARTHEST)
    rough = _Rough(mu, low, high)
    sign, times = (1 if put else -1), float(steps)
    spread = math.sqrt(float(rough.weights @ rough.excess**2) / times)

    def cost(orders: FloatArray) -> FloatArray:
        """Log of (x)₊ <= e^{cx}/(ec) in expectation."""
        inside = times * rough.log_moment(-sign * orders / times)
        return np.asarray(sign * orders * kappa + inside - 1.0 - np.log(orders))

    orders = _COARSE / spread
    if put and kappa < -0.5:
        orders = np.concatenate([orders, orders[-1] * np.geomspace(1.5, 1e6, 40)])
    costs = cost(orders)
    orders = float(orders[int(np.argmin(costs - np.log(orders)))]) * _FINE
    costs = cost(orders)
    usable = np.isfinite(costs)
    orders, costs = orders[usable], costs[usable]
    if orders.size < 8:
        return None
    smooth = costs - np.log(orders)
    place = min(max(int(np.argmin(smooth)), 2), orders.size - 3)
    c = float(orders[place])
    curve = 2.0 * float(
        np.polyfit(orders[place - 2 : place + 3] - c, smooth[place - 2 : place + 3], 2)[0]
    )
    deviation = math.sqrt(max(curve, 1.0 / c**2))
    log_value = float(smooth[place]) - math.log(deviation)
    target = log_value + math.log(SHARE)
    above, below = orders > 1.02 * c, orders < 0.98 * c
    far_periods = (costs[above] - target) / (orders[above] - c)
    near_periods = (costs[below] - target) / (c - orders[below])
    far, near = int(np.argmin(far_periods)), int(np.argmin(near_periods))
    period = max(float(far_periods[far]), float(near_periods[near]))
    if not 0.0 < period < math.inf:
        return None
    step = _short(2.0 * math.pi / period)
    base = sign * c * kappa + times * float(rough.log_moment(np.array([-sign * c / times]))[0])
    reach, angle = _reach(rough, mu, steps, sign * c, step, target - base, most)
    count = int(min(reach / step, most)) + 2
    return Plan(
        sign,
        c,
        float(orders[below][near]),
        float(orders[above][far]),
        step,
        count,
        low,
        high,
        angle,
        log_value,
    )


def _short(step: float) -> float:
    """Round down to twenty binary digits, so that multiples are exact."""
    fraction, exponent = math.frexp(step)
    return math.ldexp(math.floor(math.ldexp(fraction, 20)), exponent - 20)


def _reach(
    rough: _Rough, mu: float, steps: int, c: float, step: float, wanted: float, most: int
) -> tuple[float, float]:
    """Return where the rest of a line is negligible, and the angle that shows it."""
    times, sigma = float(steps), 1.0 / mu
    base = times * float(rough.log_moment(np.array([-c / times]))[0])
    ys = step * np.geomspace(2.0, float(most), 28)
    angles = np.repeat(_ANGLES[None, :], ys.size, axis=0)
    angles[:, :_RELATIVE] *= ys[:, None] / times / (sigma * sigma)
    angles = np.minimum(angles, 1.57)
    turned = (ys[:, None] * np.sin(angles) + c * np.cos(angles)) / times
    inner = rough.log_moment(-turned)
    bend = np.minimum(0.5 * (angles * sigma) ** 2, 600.0)
    jump = 1.0 + float(rough.excess[-1])
    fall = np.minimum(c, c * np.cos(angles)) * jump / times
    width = np.minimum(angles * sigma, 0.5 * math.pi * sigma * times / (ys[:, None] * jump))
    with np.errstate(invalid="ignore", divide="ignore"):
        edge = bend - fall + np.log(width * (float(rough.weights[-1]) * 2.0 / _SPACING))
        total = np.logaddexp(bend - turned + inner, edge)
    found = c + times * total - np.log(ys)[:, None] - base
    found = np.where(np.isfinite(found), found, math.inf)
    angle = np.argmin(found, axis=1)
    enough = np.flatnonzero(found.min(axis=1) < wanted)
    place = int(enough[0]) if enough.size else ys.size - 1
    return float(ys[place]), float(angles[place, angle[place]])
