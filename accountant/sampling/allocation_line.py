"""The transform of a mean of independent excesses on a vertical line, with its error.

S - 1 is the mean of T independent copies of the excess D = Y - 1 of one step's likelihood ratio.
On the event A that every step stays below a threshold, ψ(z) = E[e^{-z(S-1)}; A] is the T-th power
of a one-dimensional integral, and both E[(K - S)₊; A] (Re z > 0) and E[(S - K)₊; A] (Re z < 0) are
(1/2πi) ∫ e^{z(K-1)} ψ(z) / z² dz. docs/theorems_sampling.md, Theorem S15.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from accountant._rounding import U
from accountant.sampling.lognormal_window import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from accountant.sampling.lognormal_window import Window

__all__ = ["Line", "Moments", "line", "moments"]

FloatArray: TypeAlias = "NDArray[np.float64]"
ComplexArray: TypeAlias = "NDArray[np.complex128]"

SMALL = 2**20  # products in a sum over all nodes and points


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
        # Horner's rule in e^{i·step·κ}: each power is off by a few units for every factor.
        turn = np.exp(1j * (self.step * kappa))
        total = np.zeros_like(turn)
        for value in self.values[::-1].tolist():
            total *= turn
            total += value
        unit = self.step / math.pi
        sums = unit * total.real
        sizes = np.abs(self.values)
        count = np.arange(self.values.size)
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
    eta = part.weight_error + (part.weights.size + 64.0) * U + base.error + 4.0 * U * abs(base.log)
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
    block = max(math.isqrt(count), 1)
    blocks = -(-count // block)
    inner = _turned(np.outer(points, step * np.arange(block)))
    outer = _turned(np.outer(step * (block * np.arange(blocks)), points)) * weights
    # Threads of a matrix product cost more than a small one.
    small = outer.size * block < SMALL
    product = np.einsum("ij,jk->ik", outer, inner) if small else outer @ inner
    ends = np.einsum("j,jk->k", weights, inner)
    total = product + outer.sum(axis=1)[:, None] + ends[None, :]
    return np.asarray(total.ravel()[:count])


def _turned(a: FloatArray) -> ComplexArray:
    """Return e^{-ia} - 1."""
    half = np.sin(0.5 * a)
    return np.asarray(-2.0 * half * half - 1j * np.sin(a))
