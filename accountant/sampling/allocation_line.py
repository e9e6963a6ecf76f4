"""Puts and calls on a mean of likelihood ratios, by inverting its transform with a certificate.

S - 1 is the mean of T independent copies of the excess D = Y - 1 of one step's likelihood ratio,
κ = K - 1. On the event A that every step stays below a threshold, ψ(z) = E[e^{-z(S-1)}; A] is the
T-th power of a one-dimensional integral, and both the put E[(K - S)₊; A] (Re z > 0) and the call
E[(S - K)₊; A] (Re z < 0) are (1/2πi) ∫ e^{zκ} ψ(z) / z² dz. docs/theorems_sampling.md, Theorem S15.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.sampling.allocation_plan import MOST_TERMS, Plan, log_put_outside, make_plan
from accountant.sampling.lognormal import Kind, Window, panels_for, window

ComplexArray: TypeAlias = "NDArray[np.complex128]"

# Products of a sum up to which it runs on one thread; only speed depends on it.
SMALL = 2**20


class Moments(NamedTuple):
    """log E[e^{rate·D}; A] of one step, and the error of the expectation relative to itself."""

    log: float
    error: float


def moments(part: Window, rate: float) -> Moments:
    """Return log E[e^{rate·D}; t < high]: nothing is subtracted that is larger than the result."""
    if rate < -1.0:
        return _whole(part, rate)
    x = rate * part.excess
    with np.errstate(over="ignore", invalid="ignore"):
        grown = np.expm1(x)
        terms = grown - x
        value = float(part.weights @ terms)
        relative = part.weight_error + (part.weights.size + 32.0) * U
        # expm1 and the difference are off by a few units of what they are taken of.
        rounding = relative * terms + 8.0 * U * (np.abs(grown) + np.abs(x))
        error = float(part.weights @ (rounding + abs(rate) * part.excess_error * np.abs(grown)))
    # |e^v - 1 - v| <= |v| max(|v|/2, 1) e^{max(v, 0)}, and |v| <= |rate| below the rule.
    missed = abs(rate) * part.unseen(rate)
    error += (part.quadrature_error(Kind.SQUARE, rate) + missed) * math.exp(part.log_unit(rate))
    tails = abs(rate) * (part.mass_above + part.mean_above) + part.mass_above
    value += rate * (part.mass_above - part.mean_above) - part.mass_above
    error += (part.tail_error + 8.0 * U) * tails + 4.0 * U * abs(value)
    if not -1.0 < value < math.inf:
        return Moments(math.inf, math.inf)
    return Moments(math.log1p(value), error * (1.0 + 1e-9) / (1.0 + value) + 4.0 * U)


def _whole(part: Window, rate: float) -> Moments:
    """Return the same at rate < -1, from E e^{rate·Y}."""
    least = part.least
    x = rate * ((1.0 + part.excess) - least)
    terms = part.weights * np.exp(x)
    value = float(terms.sum())
    relative = part.weight_error + (part.weights.size + 32.0 + 4.0 * np.abs(x)) * U
    moved = part.excess_error + 4.0 * U * (1.0 + part.excess)
    error = float(terms @ (relative - rate * moved))
    error += part.quadrature_error(Kind.WHOLE, rate) + part.unseen(rate)
    if not value > 1e-290:
        return Moments(math.inf, math.inf)
    unit = part.log_unit(rate)
    relative_error = error * (1.0 + 1e-9) / value + 8.0 * U * (1.0 + abs(unit))
    return Moments(math.log(value) + unit, relative_error)


class Line(NamedTuple):
    """The values of a transform at z = c + i·k·step, k = 0, 1, …, and their errors.

    Attributes
    ----------
    abscissa, step : float
        c, which may be negative, and the step.
    log_scale : float
        log ψ(c); what follows is divided by it.
    values : complex128 array
        ψ(c + iy) / ψ(c) / z², halved at y = 0.
    errors : float64 array
        Bounds on their absolute errors, apart from that of the scale.
    scale_error : float
        Relative error of ψ(c).
    beyond : float
        A bound on the sum of the moduli of all further terms, in units of ψ(c).
    """

    abscissa: float
    step: float
    log_scale: float
    values: ComplexArray
    errors: FloatArray
    scale_error: float
    beyond: float

    def at(self, kappa: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return log-scale, sum and error of the trapezoid sum at each K - 1 = ``kappa``."""
        y = self.step * np.arange(self.values.size)
        unit = self.step / math.pi
        sums = unit * _powers(self.values, self.step * kappa)
        sizes = np.abs(self.values)
        # A power is off by a few units for every factor, and so is a sum for every term of a block.
        count = np.arange(self.values.size) + 2.0 * _block(self.values.size)
        fixed = float(self.errors.sum()) + float(sizes @ (8.0 * count + 24.0)) * U
        moving = 8.0 * U * np.abs(kappa) * float(sizes @ y)
        error = (unit * (fixed + moving) + self.beyond) * (1.0 + 1e-9)
        log_scale = self.abscissa * kappa + self.log_scale
        rounding = 8.0 * U * (np.abs(self.abscissa * kappa) + abs(self.log_scale) + 4.0)
        error = error + np.abs(sums) * (self.scale_error + rounding) * 1.01
        return log_scale, sums, error


def line(part: Window, steps: int, abscissa: float, step: float, count: int) -> Line | None:
    """Evaluate ``count`` points, z = abscissa + i·k·step; None where the rule is too coarse."""
    times = float(steps)
    rate = -abscissa / times
    base = moments(part, rate)
    if not base.error < 1e-3:
        return None
    # Weights of the tilted step; moduli of e^{-ia} - 1 are at most a.
    x = rate * part.excess
    tilted = part.weights * np.exp(x - base.log)
    sums = _sums(tilted, part.excess / times, step, count)
    y = step * np.arange(count)
    # A complex sum of n products loses at most 2n units of them, whose second factors are below 2.
    units = 3.0 * part.weights.size + 160.0
    eta = part.weight_error + units * U + base.error + 4.0 * U * abs(base.log)
    first = float(
        tilted
        @ (
            np.abs(part.excess) * (eta + 4.0 * U * np.abs(x))
            + part.excess_error * (1.0 + np.abs(x))
        )
    )
    top = float(y[-1]) / times
    fixed = part.quadrature_error(Kind.LINE, rate, top) + top * part.unseen(rate)
    unit = part.log_unit(rate)
    fixed *= math.exp(min(unit - base.log, 700.0)) * (1.0 + 16.0 * U * (1.0 + abs(unit)))
    error = ((y / times) * first + np.where(y > 0.0, fixed, 0.0)) * 1.01
    real, imaginary = 1.0 + sums.real, sums.imag
    square = sums.real * (2.0 + sums.real) + imaginary * imaginary
    modulus = np.sqrt(real * real + imaginary * imaginary)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_modulus = np.where(
            square > -0.5, 0.5 * np.log1p(np.maximum(square, -0.999)), np.log(modulus)
        )
        angle = np.arctan2(imaginary, real)
        z = abscissa + 1j * y
        values = np.asarray(np.exp(times * (log_modulus + 1j * angle)) / (z * z), np.complex128)
        error += 8.0 * U * (np.abs(sums.real) + np.abs(imaginary) + np.abs(square))
        relative = times * np.log1p(error / modulus)
        relative += times * 8.0 * U * (np.abs(log_modulus) + np.abs(angle)) + 32.0 * U
        log_power = times * log_modulus
        grown = np.exp(np.minimum(log_power + relative, 700.0))
        errors = np.where(relative < 1.0, np.exp(log_power) * np.expm1(relative), grown)
        errors /= y * y + abscissa * abscissa
    errors = np.where(np.isfinite(errors), errors, math.inf)
    values[0] *= 0.5
    scale_error = math.expm1(
        times * math.log1p(base.error) + 8.0 * U * (1.0 + times * abs(base.log))
    )
    return Line(abscissa, step, times * base.log, values, errors, scale_error, 0.0)


def _sums(weights: FloatArray, points: FloatArray, step: float, count: int) -> ComplexArray:
    """Return Σ w (e^{-i·k·step·d} - 1), k < count, each term with its own digits.

    e^{-i(a+b)} - 1 = A + B + AB with A = e^{-ia} - 1, for blocks of k.
    """
    block = _block(count)
    blocks = -(-count // block)
    inner = _turned(step * points, block)
    outer = (_turned(step * block * points, blocks) * weights[:, None]).T
    product = _product(outer, inner)
    ends = np.einsum("j,jk->k", weights, inner)
    total = product + outer.sum(axis=1)[:, None] + ends[None, :]
    return np.asarray(total.ravel()[:count])


def _product(a: ComplexArray, b: ComplexArray) -> ComplexArray:
    # Threads of a matrix product cost more than a small one.
    small = a.size * b.shape[1] < SMALL
    return np.asarray(np.einsum("ij,jk->ik", a, b) if small else a @ b)


def _block(count: int) -> int:
    return max(math.isqrt(count), 1)


def _turned(a: FloatArray, count: int) -> ComplexArray:
    """Return e^{-ika} - 1 for k < count, each with its own digits.

    By doubling, (1 + A)(1 + B) - 1 = A(1 + B) + B: in all fewer than 40 units of |ka| are lost, and
    fewer than 16 in each round.
    """
    found = np.empty((a.size, count), np.complex128)
    found[:, 0] = 0.0
    done = 1
    while done < count:
        half = np.sin(0.5 * done * a)
        turn = -2.0 * half * half - 1j * np.sin(done * a)
        some = found[:, : min(done, count - done)]
        np.multiply(some, 1.0 + turn[:, None], out=found[:, done : done + some.shape[1]])
        found[:, done : done + some.shape[1]] += turn[:, None]
        done += some.shape[1]
    return found


def _powers(values: ComplexArray, angles: FloatArray) -> FloatArray:
    """Return the real part of Σ v_k e^{ikθ} at all θ: by powers in blocks, then Horner's rule."""
    block = _block(values.size)
    blocks = -(-values.size // block)
    padded = np.zeros(block * blocks, np.complex128)
    padded[: values.size] = values
    powers = 1.0 + _turned(-angles, block)
    sums = _product(powers, padded.reshape(blocks, block).T)
    turn = np.exp(1j * (block * angles))
    total = np.zeros_like(turn)
    for k in range(blocks - 1, -1, -1):
        total *= turn
        total += sums[:, k]
    return np.asarray(total.real)


# Panels of the rule are halved until each is off by no more than this over the number of steps.
LEAST_ERROR = 1e-15
# The least 1/σ: below it all ratios are one to round-off.
LEAST_SHIFT = 1e-12
# The largest 1/σ: beyond it ratios leave the doubles.
MOST_SHIFT = 20.0
# The least strike, which keeps its digits as K - 1.
LEAST_STRIKE = 1e-9


class Contour:
    """A line for values of κ near one, and every error of what it gives."""

    def __init__(self, part: Window, steps: int, plan: Plan, values: Line) -> None:
        self._part, self._steps, self._plan, self._line = part, steps, plan, values
        self._orders = {
            order: moments(part, -plan.sign * order / steps) for order in (plan.near, plan.far)
        }
        hi, times = part.high, float(steps)
        mass, mean = part.mass_above, part.mean_above
        self._q_out = -math.expm1(times * math.log1p(-mass)) if mass < 1.0 else 1.0
        first = math.log1p(-mean) if mean < 1.0 else -math.inf
        rest = (times - 1.0) * math.log1p(-mass) if mass < 1.0 else -math.inf
        self._p_out = -math.expm1(first + rest)
        self._jump = math.exp(part.mu * hi - 0.5 * part.mu**2) / times * (1.0 - 1e-12)

    @property
    def terms(self) -> int:
        """The number of terms of the line's sum."""
        return self._line.values.size

    def bounds(self, kappa: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bracket the put (or the call) at every κ, array of shape (m,)."""
        plan = self._plan
        # Errors may be infinite where a line resolves nothing.
        with np.errstate(over="ignore", invalid="ignore"):
            log_scale, value, error = self._line.at(kappa)
            scale = np.exp(np.minimum(log_scale, 700.0))
            aliases = self._aliases(kappa)
            put = self._put_outside(kappa)
            lower = np.maximum(scale * (value - error) * (1.0 - 8.0 * U) - aliases, 0.0)
            upper = scale * (value + error) * (1.0 + 8.0 * U)
        if plan.sign < 0:
            # Steps beyond the window: P{out} - K Q{out}, and the put there.
            one = self._p_out - (1.0 + kappa) * self._q_out
            size = self._p_out + (1.0 + np.abs(kappa)) * self._q_out
            doubt = (4.0 * self._part.tail_error + 64.0 * U) * size
            lower, upper = lower + np.maximum(one - doubt, 0.0), upper + one + doubt
        upper = np.where(np.isfinite(upper), upper + put, math.inf)
        lower = np.where(np.isfinite(lower), lower, 0.0)
        return lower * (1.0 - 4.0 * U), upper * (1.0 + 4.0 * U) + 1e-300

    def _aliases(self, kappa: FloatArray) -> FloatArray:
        """Bound the values at other κ that the trapezoid sum adds: all are non-negative."""
        plan, times = self._plan, float(self._steps)
        c, s = plan.abscissa, plan.sign
        period = 2.0 * math.pi / self._line.step * (1.0 - 8.0 * U)
        total = np.zeros_like(kappa)
        for order, away in ((plan.near, c - plan.near), (plan.far, plan.far - c)):
            log_mean, doubt = self._orders[order]
            # (x)₊ <= e^{order x} / (e·order)
            exponent = s * order * kappa + times * (log_mean + math.log1p(doubt))
            size = order * np.abs(kappa) + times * abs(log_mean) + away * period
            exponent = exponent - 1.0 - math.log(order) - away * period + 16.0 * U * size
            rest = -math.expm1(-away * period)
            chernoff = np.exp(np.minimum(exponent, 700.0)) / rest
            if order == plan.near:
                # a call is at most 1 + jp at K - jp, a put at most K + jp at K + jp
                r = math.exp(-c * period)
                plain = (1.0 + np.maximum(kappa, 0.0)) * r / (1.0 - r) + period * r / (1.0 - r) ** 2
                chernoff = np.minimum(chernoff, plain)
            elif s > 0:
                chernoff = np.where(period > (1.0 + kappa) * (1.0 + 1e-9), 0.0, chernoff)
            total += chernoff
        return total * (1.0 + 1e-9)

    def _put_outside(self, kappa: FloatArray) -> FloatArray:
        """Bound E[(K - S)₊; some step beyond the window]."""
        worst = np.where(1.0 + kappa > self._jump, 1.0, 0.0)
        if not worst.any():
            return worst
        log_put = log_put_outside(self._part.mu, self._part.high, self._steps, kappa)
        return worst * np.exp(np.minimum(log_put, 700.0))


def contour(
    mu: float,
    steps: int,
    kappa: float,
    put: bool,
    upto: float | None = None,
    most: int = MOST_TERMS,
    longest: float = math.inf,
) -> Contour | None:
    """Make a line for κ > -1, and up to another one; None where none, or a longer one, is found."""
    if not (LEAST_SHIFT <= mu <= MOST_SHIFT and 1.0 + kappa > LEAST_STRIKE):
        return None
    with np.errstate(all="ignore"):
        plan = make_plan(mu, steps, kappa, put, kappa if upto is None else upto, most)
        return None if plan is None or plan.terms > longest else _certified(mu, steps, plan)


def _certified(mu: float, steps: int, plan: Plan) -> Contour | None:
    times = float(steps)
    c = plan.sign * plan.abscissa
    top = plan.step * (plan.terms - 1)
    edges = panels_for(mu, plan.low, plan.high, -c / times, top / times, LEAST_ERROR / times)
    part = window(mu, edges)
    values = line(part, steps, c, plan.step, plan.terms)
    if values is None:
        return None
    beyond = min(
        _log_beyond(part, steps, c, top, angle) for angle in (plan.angle, 0.8 * plan.angle)
    )
    beyond = math.exp(min(beyond - values.log_scale, 700.0)) / math.pi
    return Contour(part, steps, plan, values._replace(beyond=beyond * (1.0 + 1e-9)))


def _log_beyond(part: Window, steps: int, c: float, y: float, angle: float) -> float:
    """Bound log of y⁻¹ sup |ψ(c + iv)| over v >= y, by turning the path of integration.

    x → x + iασ² turns Y by the angle α, which brings c + iv towards the positive numbers.
    """
    times, sigma = float(steps), 1.0 / part.mu
    jump = math.exp(part.mu * part.high - 0.5 * part.mu**2)
    turned = (y * math.sin(angle) + c * math.cos(angle)) / times
    inner = moments(part, -turned)
    bend = 0.5 * (angle * sigma) ** 2
    if not (bend < 600.0 and inner.error < 1.0):
        return math.inf
    inside = bend - turned + inner.log + math.log1p(inner.error)
    fall = min(c, c * math.cos(angle)) * jump / times
    width = min(angle * sigma, 0.5 * math.pi * sigma * times / (y * jump))
    edge = bend - fall - 0.5 * part.high**2 + math.log(width / math.sqrt(2.0 * math.pi))
    edge += 1e-12 * abs(fall)
    log_step = float(np.logaddexp(inside, edge))
    size = 1.0 + abs(log_step) + bend + abs(turned) + abs(inner.log) + abs(fall) + part.high**2
    return c + times * log_step - math.log(y) + 1e-9 + 32.0 * U * times * size
