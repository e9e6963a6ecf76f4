"""The window and path of one step on a line, and how fast its transform falls there.

All of it is plain floating point: for searches, never for claims.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant.certificates.step import Step, log_sum

# Heights of the path, as shares of the largest.
RISES = (1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.004)
# Widths of the knots' intervals of the loss, in units of 1/y.
WIDTHS = (1.5, 2.5, 4.0, 6.0, 10.0)
FIRST = (1, 3, 5, 6)  # of these, and of twice and three times the deviation of the loss


class NoLineError(Exception):
    """No line of the size allowed was found."""


@dataclass
class Rule:
    """A step's window and path in double precision."""

    step: Step
    low: float
    high: float
    rise: float = 0.0
    spacing: float = 0.0
    nodes: int = 0

    @property
    def is_labelled(self) -> bool:
        """Whether steps are kept with a probability only."""
        return False

    @property
    def most_rise(self) -> float:
        """The height of the path that keeps its ends negligible."""
        return 2.5 * self.step.sigma

    def log_stretch(self, rise: float) -> float:
        """Return how much larger the noise's density is on the strip, by its logarithm."""
        return 2.0 * rise**2 / self.step.sigma**2

    def listed(self) -> dict[str, Any]:
        """Return the rule as the document has it."""
        return {
            "rise": rounded(self.rise, 6),
            "spacing": self.spacing,
            "first": self.low + 0.5 * self.spacing,
            "nodes": self.nodes,
        }

    def log_label(self, x: FloatArray) -> FloatArray:
        """Return the logarithm of the probability that a step is kept."""
        return np.zeros_like(x)

    def set_path(self, c: float, needed: float) -> None:
        """Choose rise and spacing for an aliasing error of e^-needed of the transform."""
        step = self.step
        scale = step.sigma**2 / step.furthest
        most = min(0.48 * math.pi * scale, self.most_rise)
        if c < 0.0:
            most = min(most, 0.24 * math.pi * scale)
        best, growth = math.inf, self._growth(c)
        for share in RISES:
            rise = most * share
            cost = needed + self.log_stretch(rise) + growth(rise) + 2.0
            spacing = 2.0 * math.pi * rise / cost
            if (self.high - self.low) / spacing > 1.2 * best:
                break
            if (self.high - self.low) / spacing < best:
                best = (self.high - self.low) / spacing
                self.rise, self.spacing = rise, spacing
        self.nodes = math.ceil(best)
        if self.nodes > 8000:
            raise NoLineError
        self.spacing = (self.high - self.low) / self.nodes

    def _growth(self, c: float) -> Callable[[float], float]:
        """Return how much larger the integrals on the strip are than A(c), by their logarithm."""
        if c >= 0.0:
            return lambda rise: 0.0
        step, x = self.step, np.linspace(self.low, self.high, 200)
        noise, scale = step.log_density(x), step.sigma**2 / step.furthest
        whole = log_sum(noise + c * step.loss(x))

        def growth(rise: float) -> float:
            moved = step.loss(x + scale * math.log(math.cos(2.0 * rise / scale)))
            return log_sum(noise + c * moved) - whole

        return growth

    def path(self, c: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the logarithms of the weights' moduli, their phases and Im L at the nodes."""
        z = self.low + self.spacing * (np.arange(self.nodes) + 0.5) + 1j * self.rise
        loss = self.step.loss(z)
        log_weight = self.step.log_density(z) + c * loss + math.log(self.spacing)
        return log_weight.real, log_weight.imag, loss.imag


class Decay:
    """How fast the transform of one step falls off on a line, by both ways of Theorem K2."""

    def __init__(self, rule: Rule, c: float) -> None:
        self.rule, self.c = rule, c
        log_weight, phase, self.angle = rule.path(c)
        top = log_weight.max()
        self.weight = np.exp(log_weight - top)
        self.mass = float((self.weight * np.cos(phase)).sum())
        step = rule.step
        self.x = np.linspace(rule.low, rule.high, 800)
        self.loss = step.loss(self.x)
        tilted = step.log_density(self.x) + c * self.loss + rule.log_label(self.x)
        self.log_mass = top + math.log(self.mass)
        mass = np.exp(tilted - tilted.max())
        mean = float(mass @ self.loss / mass.sum())
        self.spread = math.sqrt(float(mass @ (self.loss - mean) ** 2 / mass.sum()))
        self.mode = float(self.loss[np.argmax(tilted)])
        rises = np.maximum.accumulate(self.loss)
        kept = np.concatenate([[True], rises[1:] > rises[:-1]])
        self.rising = self.loss[kept], self.x[kept]
        self.ends = float(self.loss[0] - self.mode), float(self.loss[-1] - self.mode)
        self.best: int | None = None

    def log_bound(self, y: float) -> tuple[float, FloatArray]:
        """Return the logarithm of a bound on |A(c + iy')| / A(c) for y' >= y, and knots.

        A call tries the best width of the last call and one next to it, some at first.
        """
        by_path = math.log(float((self.weight * np.exp(-y * self.angle)).sum()) / self.mass)
        best, knots = min(by_path, 0.0), np.array([])
        if by_path < -5.0:
            return best, knots
        widths = [each / y for each in WIDTHS] + [2.0 * self.spread, 3.0 * self.spread]
        last, self.best = self.best, None
        tried = FIRST if last is None else (last, last - 1 if last else 1)
        for k in tried:
            found, at = self._drop(y, widths[k])
            if found > 0.0 and (below := math.log1p(-min(found, 1.0 - 1e-12))) < best:
                best, knots, self.best = below, at, k
        return best, knots

    def _drop(self, y: float, width: float) -> tuple[float, FloatArray]:
        """Return what intervals of one width of the loss take off, and their ends."""
        low, high = self.ends[0] / width - 0.5, self.ends[1] / width - 0.5
        first, last = max(-40, math.floor(low) + 1), min(40, math.ceil(high) - 1)
        x = np.interp(self.mode + width * (np.arange(first, last + 1) + 0.5), *self.rising)
        if x.size < 2:
            return 0.0, x
        step, c, n = self.rule.step, self.c, x.size
        middle = 0.5 * (x[:-1] + x[1:])
        places = np.concatenate([x, middle]) if c >= 0.0 else x
        losses, slopes = step.loss(places), step.mean_shift(places) / step.sigma**2
        loss, noise, left, right = losses[:n], step.log_density(x), losses[: n - 1], losses[1:n]
        if c >= 0.0:
            rise = slopes[n:] * (x[1:] - middle)
            left, right = losses[n:] - rise, losses[n:] + rise
        least = np.minimum(noise[:-1] + c * left, noise[1:] + c * right)
        if self.rule.is_labelled:
            least += self.rule.log_label(x[1:])
        height = np.exp(least - self.log_mass) / slopes[1:n]
        length = loss[1:] - loss[:-1]
        t = 0.5 * y * length
        sinc = np.where(t < 3.0, np.maximum(np.sin(t) / t, 0.2173), 1.0 / t)
        gains = np.maximum(height * length * (1.0 - sinc), 0.0)
        used = (gains > 1e-4 * gains.sum()).nonzero()[0]
        if used.size == 0:
            return 0.0, x[:0]
        start, stop = used[0], used[-1] + 1
        return float(gains[start:stop].sum()) * (1.0 - 1e-6), x[start : stop + 1]


def rounded(value: float, digits: int) -> float:
    """Return a number of few digits, which keeps the document short."""
    return float(f"{value:.{digits}g}")
