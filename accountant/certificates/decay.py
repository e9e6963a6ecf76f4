"""Bounds on the tail of a line, in plain floating point: for searches, never for claims."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from accountant.certificates.line import Rule
    from accountant.pairs.base import FloatArray

__all__ = ["Decay"]


class Decay:
    """How fast the transform of one step falls off on a line, by both ways of Theorem K2."""

    def __init__(self, rule: Rule, c: float) -> None:
        self.rule, self.c = rule, c
        log_weight, phase, self.angle = rule.path(c)
        top = log_weight.max()
        self.weight = np.exp(log_weight - top)
        self.mass = float((self.weight * np.cos(phase)).sum())
        step = rule.step
        self.x = np.linspace(rule.low, rule.high, 1500)
        self.loss = step.loss(self.x)
        self.slope = step.mean_shift(self.x) / step.sigma**2
        tilted = step.log_density(self.x) + c * self.loss + rule.log_label(self.x)
        self.log_mass = top + math.log(self.mass)
        mass = np.exp(tilted - tilted.max())
        mean = float(mass @ self.loss / mass.sum())
        self.spread = math.sqrt(float(mass @ (self.loss - mean) ** 2 / mass.sum()))
        self.mode = float(np.interp(self.x[np.argmax(tilted)], self.x, self.loss))

    def log_bound(self, y: float) -> tuple[float, FloatArray]:
        """Return the logarithm of a bound on |A(c + iy')| / A(c) for y' >= y, and knots."""
        by_path = math.log(float((self.weight * np.exp(-y * self.angle)).sum()) / self.mass)
        best, knots = min(by_path, 0.0), np.array([])
        if by_path < -5.0:
            return best, knots
        for width in (
            *(np.array([1.5, 2.5, 4.0, 6.0, 10.0]) / y),
            2.0 * self.spread,
            3.0 * self.spread,
        ):
            found, at = self._drop(y, float(width))
            if found > 0.0 and (below := math.log1p(-min(found, 1.0 - 1e-12))) < best:
                best, knots = below, at
        return best, knots

    def _drop(self, y: float, width: float) -> tuple[float, FloatArray]:
        """Return what intervals of one width of the loss take off, and their ends."""
        kept = np.concatenate([[True], np.diff(np.maximum.accumulate(self.loss)) > 0.0])
        losses = self.mode + width * (np.arange(-40, 41) + 0.5)
        inside = (losses > self.loss[0]) & (losses < self.loss[-1])
        x = np.interp(losses[inside], self.loss[kept], self.x[kept])
        if x.size < 2:
            return 0.0, x
        step, c = self.rule.step, self.c
        loss, left, right = step.loss(x), x[:-1], x[1:]
        ends = [loss[:-1], loss[1:]]
        if c >= 0.0:
            middle = 0.5 * (left + right)
            tangent, slope = step.loss(middle), step.mean_shift(middle) / step.sigma**2
            ends = [tangent + slope * (left - middle), tangent + slope * (right - middle)]
        least = np.minimum(
            step.log_density(left) + c * ends[0], step.log_density(right) + c * ends[1]
        )
        least = least + self.rule.log_label(right)
        height = np.exp(least - self.log_mass) * step.sigma**2 / step.mean_shift(right)
        length = np.diff(loss)
        t = 0.5 * y * length
        sinc = np.where(t < 3.0, np.maximum(np.sin(t) / t, 0.2173), 1.0 / t)
        gains = np.maximum(height * length * (1.0 - sinc), 0.0)
        used = np.flatnonzero(gains > 1e-4 * gains.sum())
        if used.size == 0:
            return 0.0, x[:0]
        first, last = used[0], used[-1] + 1
        return float(gains[first:last].sum()) * (1.0 - 1e-6), x[first : last + 1]
