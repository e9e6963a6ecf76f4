"""Puts on the mean of few likelihood ratios, along a parabola around the negative numbers.

S is the mean of T independent copies of Y = exp(μt - μ²/2), t ~ N(0, 1). The put E(K - S)₊ is the
integral of e^{zK} E[e^{-zS}] / z² along z = c(1 + iu)², where the first factor falls like
e^{-cKu²}: a few dozen nodes do where a line needs thousands. docs/theorems_sampling.md,
Theorem S27.
"""

from __future__ import annotations

import functools
import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U

ComplexArray: TypeAlias = "NDArray[np.complex128]"

# A larger T·σ² leaves so much to the bound of the integrand that a line is as fast.
MOST_SPREAD = 60.0
# The largest 1/σ: exponentials of scores are doubles.
MOST_SHIFT = 7.0
# Scores beyond it, of a mass below 1e-34, are left out of the sums and counted in their error.
REACH = 12.5
# The least strike: puts below it are smaller than any δ that is asked for.
LEAST = 1e-9
# The argument of zY stays this far, in radians, from those whose real part is negative.
TURN = 1.0
# The logarithm of the error, relative to the largest term, for which steps are chosen.
TARGET = -41.0
# Distances of the lines above the path on which the integrand is bounded: all below 1 are valid.
ABOVE = np.array([0.7, 0.85, 0.93])
# The same below it, where every distance is valid.
BELOW = np.array([0.4, 1.0, 1.8, 3.0])
# Ends of the cells of such a line; what is beyond the last has a bound of its own.
CELLS = np.concatenate([np.linspace(0.0, 2.0, 25), np.geomspace(2.15, 12.0, 16)])
# By how much more than it must the path of a bound turns; all of them are valid.
FARTHER = np.array([0.0, 0.15, 0.4, 0.9])
# Rates of the table of E e^{-rY}, a falling function: the next smaller one is taken.
RATES = np.concatenate([[0.0], np.geomspace(1e-9, 1e6, 240)])
# Steps that are tried, the longest first.
STEPS = np.geomspace(0.5, 0.02, 50)


def put(mu: float, steps: int, kappa: float) -> tuple[float, float] | None:
    """Bracket E(K - S)₊ at K = 1 + ``kappa`` > 0, S of ``steps`` ratios; None where a line does.

    κ may be off by 8 units of itself.
    """
    strike = 1.0 + kappa
    if not (mu <= MOST_SHIFT and steps <= MOST_SPREAD * mu * mu and strike > LEAST):
        return None
    times, table = float(steps), _table(mu)
    # Any vertex is valid: where the integrand is least on the axis, or a little farther out.
    costs = strike * times * RATES[1:] + times * table[1:] - np.log(RATES[1:])
    c = times * float(RATES[1:][int(np.argmin(costs))]) * (2.5 if kappa > 0.0 else 1.0)
    height, base = (
        strike * c,
        strike * c + times * float(log_moments(mu, np.array([c / times]))[0][0].real),
    )
    widest = times * (math.pi / mu) ** 2 / 8.0 - base
    if not height < 600.0:
        return None
    around = [
        _around(mu, times, height, c, base, vertex, widest) for vertex in (1.0 - ABOVE, 1.0 + BELOW)
    ]
    step, error = _step(around)
    count = math.ceil(math.sqrt(1.0 + max(widest - TARGET, 1.0) / height) / step)
    last = step * count
    error += math.exp(height * (1.0 - last * last) + widest) / last**2
    u = step * np.arange(count + 1)
    z = np.asarray(c * (1.0 + 1j * u) ** 2, np.complex128)
    logs, doubts = log_moments(mu, z / times)
    exponents = strike * z + times * logs
    relative = times * doubts + U * (8.0 * (1.0 + abs(kappa) / strike) * np.abs(strike * z) + 32.0)
    relative += U * 8.0 * times * np.abs(logs)
    terms = np.exp(exponents - base) * (1.0 + 1j * u) ** -3
    # A node whose value is not known is at most as large as its bound.
    known = relative < 1.0
    errors = np.abs(terms) * np.where(known, 1.01 * np.expm1(np.minimum(relative, 1.0)), 1.01)
    errors += np.abs(terms) * (count + 8.0) * U
    terms[0] *= 0.5
    total = 2.0 * step * float(terms.real[known].sum())
    error = (error + 2.0 * step * float(errors.sum())) * (1.0 + 1e-9)
    error += abs(total) * 8.0 * U * (4.0 + abs(base))
    scale = math.exp(min(base, 700.0)) / (math.pi * c)
    return max(scale * (total - error), 0.0), scale * (total + error)


def _step(around: list[FloatArray]) -> tuple[float, float]:
    """Return the longest step whose error is small enough, and the error of the rule."""
    errors = sum(
        (
            bound[:, None]
            / np.expm1(np.minimum(2.0 * math.pi * np.divide.outer(away, STEPS), 700.0))
        ).min(axis=0)
        for bound, away in zip(around, (ABOVE, BELOW), strict=True)
    )
    place = min(int(np.count_nonzero(errors > math.exp(TARGET))), STEPS.size - 1)
    return float(STEPS[place]), float(errors[place])


def _around(
    mu: float, times: float, height: float, c: float, base: float, vertex: FloatArray, widest: float
) -> FloatArray:
    """Bound the integral of |f| along lines whose z is c(vertex + iv)², v real, e^base less."""
    a, low, high = vertex[:, None, None], CELLS[:-1, None], CELLS[1:, None]
    # The argument grows along the line; a path that turns by θ has |e^{-zY}| = e^{-Re(ze^{-iθ})Y}.
    turn = np.maximum(2.0 * np.arctan2(high, a) - 0.5 * math.pi, 0.0) + FARTHER
    turn = np.minimum(turn, 0.5 * math.pi)
    rates = [(a * a - v * v) * np.cos(turn) + 2.0 * a * v * np.sin(turn) for v in (low, high)]
    rate = np.maximum(np.minimum(*rates), 0.0) * (c / times) * (1.0 - 1e-9)
    bound = _table(mu)[np.searchsorted(RATES, rate, side="right") - 1]
    least = (0.5 * (turn / mu) ** 2 + bound).min(axis=2)
    edge, far = vertex[:, None] ** 2, CELLS[:-1] ** 2
    logs = height * (edge - far) + times * least - base - 1.5 * np.log(edge + far)
    with np.errstate(over="ignore"):
        inside = np.exp(logs) @ np.diff(CELLS)
        beyond = np.exp(height * (vertex**2 - CELLS[-1] ** 2) + widest)
    return np.asarray(2.0 * (inside + beyond / CELLS[-1] ** 2) * (1.0 + 1e-9))


@functools.lru_cache(maxsize=64)
def _table(mu: float) -> FloatArray:
    """Return upper bounds on log E e^{-rY} at the rates of the table."""
    width = min(1.5 / mu, 3.0)
    step = 2.0 * math.pi * width / (25.0 + 0.5 * width * width)
    t = np.arange(-REACH, REACH, step)
    values = np.exp(-np.multiply.outer(RATES, np.exp(mu * t - 0.5 * mu * mu)))
    found = values @ np.exp(-0.5 * t * t) * (step / math.sqrt(2.0 * math.pi)) * (1.0 + 1e-12)
    strip = 2.0 * math.exp(0.5 * width * width) / math.expm1(2.0 * math.pi * width / step)
    return np.asarray(np.log(np.minimum(found + strip + 1e-33, 1.0)))


def log_moments(mu: float, z: ComplexArray | FloatArray) -> tuple[ComplexArray, FloatArray]:
    """Return log E e^{-zY} at ``z`` of an argument in [0, π), and errors.

    The path t - iv turns Y by -μv, and the trapezoid rule on it errs by what the integrand has on
    two parallel paths. The error is infinite, and the logarithm that of a bound, where it is large.
    """
    turn = np.maximum(np.angle(z) - 0.5 * math.pi + TURN, 0.0)
    v, width = turn / mu, min(TURN / mu * (1.0 - 1e-9), 3.0)
    most = float(v.max()) + width
    step = 2.0 * math.pi * width / (-TARGET + 0.5 * most * most)
    block = math.ceil(math.sqrt(2.0 * REACH / step + 2.0))
    t = step * (np.arange(block * block) - block * block // 2)
    exponent = mu * t - 0.5 * mu * mu
    y = np.exp(exponent)
    density = np.exp(0.5 * (v * v)[:, None] - 0.5 * t * t + 1j * np.multiply.outer(v, t))
    density *= step / math.sqrt(2.0 * math.pi)
    x = np.multiply.outer(-z * np.exp(-1j * turn), y)
    # Small arguments keep the digits of e^x - 1: that of a density is known, 1.
    is_small = bool(np.abs(z).max() < 1.0)
    if is_small:
        half = np.sin(0.5 * x.imag)
        real = np.expm1(x.real) * np.cos(x.imag) - 2.0 * half * half
        terms = density * (real + 1j * (np.exp(x.real) * np.sin(x.imag)))
    else:
        terms = density * np.exp(x)
    sizes = np.abs(terms)
    doubts = sizes @ (3.0 * t * t + 2.0 * block + 48.0) + v * (sizes @ (4.0 * np.abs(t)) + 4.0 * v)
    moved = np.abs(density) * np.exp(x.real) * np.abs(x)
    doubts += moved @ (24.0 + 4.0 * np.abs(exponent) + 4.0 * mu * mu)
    strip = np.exp(0.5 * (v + width) ** 2) / math.expm1(2.0 * math.pi * width / step)
    doubts = doubts * U + 4.0 * strip + np.exp(0.5 * v * v) * 1e-33
    total = terms.reshape(-1, block, block).sum(axis=2).sum(axis=1)
    a, b = (total.real, total.imag) if is_small else (total.real - 1.0, total.imag)
    sizes = np.abs(1.0 + total) if is_small else np.abs(total)
    with np.errstate(divide="ignore", invalid="ignore"):
        small = np.abs(a) < 0.5
        log_size = np.where(
            small, 0.5 * np.log1p(np.where(small, a * (2.0 + a), 0.0) + b * b), np.log(sizes)
        )
        known = sizes > 2.0 * doubts
        logs = np.where(known, log_size, np.log(sizes + doubts)) + 1j * np.arctan2(b, 1.0 + a)
        relative = np.log1p(doubts / (sizes - doubts)) + 8.0 * U * np.abs(logs)
    return logs, np.where(known, relative, math.inf)
