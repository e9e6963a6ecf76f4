"""Puts and calls on a mean of likelihood ratios, by inverting its transform with a certificate.

S is the mean of T independent likelihood ratios of Gaussian steps, κ = K - 1. The put is
E(K - S)₊, the call E(S - K)₊. docs/theorems_sampling.md, Theorem S15.
"""

from __future__ import annotations

import math

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.sampling.allocation_line import Line, line, moments
from accountant.sampling.allocation_plan import MOST_TERMS, Plan, log_put_outside, make_plan
from accountant.sampling.lognormal_window import Window, panels_for, window

# What a panel of the rule may be off by, times the number of steps.
LEAST_ERROR = 1e-15
# 1/σ where ratios neither leave the doubles nor are all one; K that keeps its digits as K - 1.
LEAST_SHIFT, MOST_SHIFT, LEAST_STRIKE = 1e-12, 20.0, 1e-9


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
) -> Contour | None:
    """Make a line for κ > -1, and up to another one; None where none is found."""
    if not (LEAST_SHIFT <= mu <= MOST_SHIFT and 1.0 + kappa > LEAST_STRIKE):
        return None
    with np.errstate(all="ignore"):
        plan = make_plan(mu, steps, kappa, put, kappa if upto is None else upto, most)
        return None if plan is None else _certified(mu, steps, plan)


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
