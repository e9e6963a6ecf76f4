"""Chooses line, step and number of orders, and each step's rule: a search, which proves nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant.certificates.rule import Decay, NoLineError, Rule, Step, rounded
from accountant.search import narrow

# What is outside the windows, as a share of delta.
OUTSIDE = math.log(1e-12)
# The most orders of a line.
MOST_ORDERS = 60_000
# The most orders times nodes: the checker takes ten seconds for them.
MOST_PRODUCTS = 4e7
# Distances of the line that are tried.
GRID = np.logspace(-7.0, 9.0, 65)
# The number of orders is found to a part in 64; only a certificate's size depends on it.
HALVINGS = 6


def least_end(rest: Callable[[float], float], step: float) -> float:
    """Return about the least end, at least a step, beyond which the logarithm of a rest is <= 0."""
    low, high = 0.0, step
    while rest(high) > 0.0:
        if high >= MOST_ORDERS * step:
            raise NoLineError
        low, high = high, min(2.0 * high, MOST_ORDERS * step)
    return narrow(lambda y: not rest(y) > 0.0, high, low, HALVINGS if low else 0)[0]


class Search:
    """Everything about one direction at one ε."""

    rule_type: type[Rule] = Rule

    def __init__(
        self, steps: list[Step], epsilon: float, delta: float, *, remove: bool, share: float
    ) -> None:
        self.share, self.grid = math.log(share), GRID
        self.steps, self.remove = steps, remove
        self.epsilon, self.log_delta = epsilon, math.log(delta)
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
                at = rule.step.reach(c, rule.low, rule.high)
                start = min(int(at.x.searchsorted(rule.high)), at.x.size - 1)
                moments = rule.step.count * rule.step.log_moments(c, at, start)
                tables.append((at, moments, start))
                size += float(moments[0])
            for rule, (at, moments, start) in zip(self.rules, tables, strict=True):
                base, unit = size - moments[0], math.log(rule.step.sigma)
                room = self.share + self.log_delta - math.log(rule.step.count / min(b, 1.0)) - 20.0
                if not at.noise[0] + c * at.loss[0] + unit < room - size:
                    return None
                height = at.noise[start:] + c * at.loss[start:] + unit
                fits = height < room - base - moments
                first = int(fits.argmax())
                if not fits[first]:
                    return None
                size = float(base + moments[first])
                ends.append(max(float(at.x[start + first]), rule.high))
        return (size, ends) if math.isfinite(size) else None

    def bound(self, b: float) -> float:
        """Return the logarithm of Theorem 5's bound."""
        found = self.at(b)
        return math.inf if found is None else found[0] + b * math.log(b / (1.0 + b)) - math.log1p(b)

    def distance(self) -> tuple[float, float]:
        """Choose the line's distance and the period for the fewest orders."""
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
        for k in range(1, grid.size - 1):
            b, size = grid[k], sizes[k]
            if not size < self.log_delta + 400.0:
                continue
            with np.errstate(all="ignore"):
                below = (np.minimum(bound[:k], 0.0) - target) / (b - grid[:k])
                above = (bound[k + 1 :] - target) / (grid[k + 1 :] - b)
            period = min(float(below.min()), -target / b)
            period = max(period, float(above.min()), 0.0) * 1.02
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
        knots: dict[float, list[FloatArray]] = {}

        def rest(y: float) -> float:
            bounds = [each.log_bound(y) for each in decays]
            knots[y] = [each for _, each in bounds]
            fall = 0.5 * self.precision * y * y
            fall -= sum(u.rule.step.count * v for u, (v, _) in zip(decays, bounds, strict=True))
            tail = math.log(step / y**2 + 1.0 / y)
            return size + tail - self.log_delta - self.share - fall

        end = least_end(rest, step)
        return math.ceil(end / step), knots[end]

    def chernoff(self) -> dict[str, Any] | None:
        """Return the evidence of one moment, where that is enough."""
        best = min((float(b) for b in self.grid), key=self.bound)
        if not self.bound(best) < self.log_delta - 0.02:
            return None
        self._settle(best, 12.0)
        return {"kind": "chernoff", "distance": rounded(best, 6), "rules": self._listed([])}

    def line(self) -> dict[str, Any]:
        """Return the evidence of a line."""
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
