"""Chooses line, step and number of orders, and each step's rule: a search, which proves nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from accountant.certificates.decay import Decay

if TYPE_CHECKING:
    from accountant.certificates.step import Step
    from accountant.pairs.base import FloatArray

__all__ = ["NoLineError", "Search"]

# What is outside the windows, as a share of delta.
OUTSIDE = math.log(1e-12)
MOST_ORDERS = 60_000
MOST_PRODUCTS = 4e7  # the checker takes ten seconds
GRID = np.logspace(-7.0, 9.0, 161)
COARSE = [float(b) for b in GRID[::4]]


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
        best = math.inf
        for rise in most * np.array([1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.004]):
            cost = needed + self.log_stretch(rise) + self._growth(c, rise)
            spacing = 2.0 * math.pi * rise / cost
            if (self.high - self.low) / spacing < best:
                best = (self.high - self.low) / spacing
                self.rise, self.spacing = float(rise), float(spacing)
        self.nodes = math.ceil(best)
        if self.nodes > 8000:
            raise NoLineError
        self.spacing = (self.high - self.low) / self.nodes

    def _growth(self, c: float, rise: float) -> float:
        """Return how much larger the integrals on the strip are than A(c), by their logarithm."""
        step, x = self.step, np.linspace(self.low, self.high, 200)
        noise, loss, moved = step.log_density(x), step.loss(x), step.loss(x)
        if c < 0.0:
            angle = 2.0 * rise * step.furthest / step.sigma**2
            moved = step.loss(x + step.sigma**2 / step.furthest * math.log(math.cos(angle)))
        above = np.logaddexp.reduce(noise + c * moved)
        return float(above - np.logaddexp.reduce(noise + c * loss)) + 2.0

    def path(self, c: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the logarithms of the weights' moduli, their phases and Im L at the nodes."""
        z = self.low + self.spacing * (np.arange(self.nodes) + 0.5) + 1j * self.rise
        loss = self.step.loss(z)
        log_weight = self.step.log_density(z) + c * loss + math.log(self.spacing)
        return log_weight.real, log_weight.imag, loss.imag


class Search:
    """Everything about one direction at one ε."""

    rule_type: type[Rule] = Rule

    def __init__(
        self, steps: list[Step], epsilon: float, delta: float, *, remove: bool, share: float
    ) -> None:
        self.share, self.grid = math.log(share), GRID
        self.steps, self.remove, self.epsilon, self.log_delta = (
            steps,
            remove,
            epsilon,
            math.log(delta),
        )
        self.plain = [step for step in steps if step.is_plain]
        self.precision = sum(step.count / step.sigma**2 * step.furthest**2 for step in self.plain)
        self.rules: list[Any] = []
        for step in steps:
            if not step.is_plain:
                outside = OUTSIDE + self.log_delta - math.log(step.count * len(steps))
                self.rules.append(self.rule_type(step, *step.window(outside, moved=remove)))
        self.at = lru_cache(maxsize=None)(self._at)

    def order(self, b: float) -> float:
        """Return the real part of the line at a distance."""
        return 1.0 + b if self.remove else -b

    def _at(self, b: float) -> tuple[float, list[float]] | None:
        """Return the logarithm of F(c) e^(-b ε), and windows' ends that are negligible there."""
        c = self.order(b)
        size = 0.5 * self.precision * c * (c - 1.0) - b * self.epsilon
        ends, tables = [], []
        with np.errstate(all="ignore"):
            for rule in self.rules:
                x, loss, noise = rule.step.reach(c, rule.low, rule.high)
                moments = rule.step.count * rule.step.log_moments(c, x, loss, noise)
                start = int(np.searchsorted(x, rule.high))
                tables.append((x, moments, noise + c * loss + math.log(rule.step.sigma), start))
                size += float(moments[min(start, x.size - 1)])
            for rule, (x, moments, height, start) in zip(self.rules, tables, strict=True):
                base = size - moments[min(start, x.size - 1)]
                room = self.share + self.log_delta - math.log(rule.step.count / min(b, 1.0)) - 20.0
                fits = np.flatnonzero(height[start:] < room - base - moments[start:])
                if fits.size == 0 or not height[0] < room - size:
                    return None
                size = float(base + moments[start + fits[0]])
                ends.append(max(float(x[start + fits[0]]), rule.high))
        return (size, ends) if math.isfinite(size) else None

    def bound(self, b: float) -> float:
        """Return the logarithm of Theorem 5's bound."""
        found = self.at(b)
        return math.inf if found is None else found[0] + b * math.log(b / (1.0 + b)) - math.log1p(b)

    def distance(self) -> tuple[float, float]:
        """Choose the line's distance and the period, for the fewest orders."""
        grid = self.grid
        target = self.log_delta + self.share
        sizes = np.full(grid.size, np.inf)
        for k, b in enumerate(grid):
            found = self.at(float(b))
            if found is not None:
                sizes[k] = found[0]
        with np.errstate(all="ignore"):
            bound = grid * np.log(grid / (1.0 + grid)) - np.log1p(grid) + sizes
        best = (math.inf, 0.0, 0.0)
        for k in range(2, grid.size - 2):
            b, size = grid[k], sizes[k]
            if not size < self.log_delta + 400.0:
                continue
            gaps = np.where(np.arange(grid.size) == k, 1.0, grid - b)
            with np.errstate(all="ignore"):
                below = (np.minimum(bound[:k], 0.0) - target) / -gaps[:k]
                above = (bound[k + 1 :] - target) / gaps[k + 1 :]
            below = np.append(below, -target / b)
            period = max(float(below.min()), float(above.min()), 0.0) * 1.02
            cost = period * math.sqrt(max(size - target, 1.0))
            best = min(best, (cost, float(b), period))
        if not 0.0 < best[2] < math.inf:
            raise NoLineError
        return best[1], best[2]

    def paths(self, b: float, size: float) -> None:
        """Choose every rule's path."""
        for rule in self.rules:
            needed = (
                size - self.log_delta - self.share + math.log(2.0 * len(self.rules) / min(b, 1.0))
            )
            rule.set_path(self.order(b), needed + math.log(rule.step.count))

    def orders(self, b: float, period: float, size: float) -> tuple[int, list[FloatArray]]:
        """Return the number of orders after which the rest is negligible, and the knots."""
        step = 2.0 * math.pi / period
        decays = [Decay(rule, self.order(b)) for rule in self.rules]

        def rest(y: float) -> float:
            found = size - 0.5 * self.precision * y * y
            found += sum(each.rule.step.count * each.log_bound(y)[0] for each in decays)
            return found + math.log(step / y**2 + 1.0 / y) - self.log_delta - self.share

        low, high = 0.0, step
        while rest(high) > 0.0:
            low, high = high, 2.0 * high
            if high > MOST_ORDERS * step:
                raise NoLineError
        for _ in range(6):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if rest(middle) > 0.0 else (low, middle)
        count = math.ceil(high / step)
        return max(count, 1), [each.log_bound(count * step)[1] for each in decays]

    def chernoff(self) -> dict[str, Any] | None:
        """Return the evidence of one moment, where that is enough."""
        enough = (b for b in COARSE if self.bound(b) < self.log_delta - 1.0)
        best = next(enough, None) or min(COARSE, key=self.bound)
        if not self.bound(best) < self.log_delta - 0.02:
            return None
        self._settle(best, 12.0)
        return {"kind": "chernoff", "distance": rounded(best, 6), "rules": self._listed([])}

    def line(self) -> dict[str, Any]:
        """Return the evidence of a line without labels."""
        b, period = self.distance()
        b = rounded(b, 6)
        size = self._settle(b, None)
        count, knots = self.orders(b, period, size)
        if count * sum(rule.nodes for rule in self.rules) > MOST_PRODUCTS:
            raise NoLineError
        return {
            "kind": "line",
            "distance": b,
            "step": 2.0 * math.pi / period,
            "orders": count,
            "rules": self._listed(knots),
        }

    def _settle(self, b: float, needed: float | None) -> float:
        """Fix the windows and paths for a distance; return the logarithm of F(c) e^(-b ε)."""
        found = self.at(b)
        if found is None:
            raise NoLineError
        size, ends = found
        for rule, end in zip(self.rules, ends, strict=True):
            rule.high = end
        self.paths(b, size if needed is None else self.log_delta + self.share + needed)
        return size

    def _listed(self, knots: list[FloatArray]) -> list[Any]:
        """Return the rules as the document has them: none for plain noise."""
        rules = {}
        for k, rule in enumerate(self.rules):
            given = rule.listed()
            if knots and knots[k].size:
                given["decay"] = [rounded(float(x), 9) for x in knots[k]]
            rules[rule.step] = given
        return [rules.get(step) for step in self.steps]


def rounded(value: float, digits: int) -> float:
    """Return a number of few digits, which keeps the document short."""
    return float(f"{value:.{digits}g}")
