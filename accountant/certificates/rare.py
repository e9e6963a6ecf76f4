"""Lines for events that are rare: steps are labelled small, middling or large (Theorem K3)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import erfc, log_ndtr

from accountant.certificates.line import MOST_ORDERS, NoLineError, Rule, Search, rounded
from accountant.certificates.step import LARGE

if TYPE_CHECKING:
    from accountant.certificates.step import Step
    from accountant.pairs.base import FloatArray

__all__ = ["find_rare_line"]

# Losses of the thresholds: of the lower one as shares of ε, of the upper one as multiples.
LOWER = (0.45, 0.3, 0.22, 0.17, 0.13, 0.1, 0.07, 0.05, 0.03, 0.015)
UPPER = (1.3, 1.7, 2.5, 4.0, 7.0, 12.0, 25.0)
# Widths of the labels, in units of σ²/D.
WIDTHS = (0.5, 0.3, 0.2, 0.12)
FAR = 9.5
# Orders times nodes that are checked in a second.
ENOUGH = 2e7
MOST_TRIES = 12


class Labelled(Rule):
    """A rule whose steps have labels."""

    def label(self, upper: float, lower: float | None, width: float) -> None:
        """Set thresholds, and the window that they leave."""
        self.upper, self.lower, self.width = upper, lower, width
        self.high = upper + FAR * width
        step = self.step
        far = max(self.high, step.furthest + 10.0 * step.sigma)
        size = int(min(max(500, 6.0 * (far - self.low) / min(step.sigma, width)), 2500))
        self.x = np.linspace(self.low, far, size)
        self.loss, self.noise = step.loss(self.x), step.log_density(self.x)
        self.noise = self.noise + math.log(self.x[1] - self.x[0])
        self.kept, self.large = self._below(upper)
        self.small = self._below(lower)[0] if lower is not None else self.kept
        with np.errstate(divide="ignore"):
            ratio = np.exp(np.minimum(self.small - self.kept, 0.0))
            self.middling = self.kept + np.log1p(-np.where(ratio < 1.0, ratio, 1.0))

    def _below(self, cut: float) -> tuple[FloatArray, FloatArray]:
        z = (self.x - cut) / self.width
        return log_ndtr(-z), log_ndtr(z)

    @property
    def most_rise(self) -> float:
        """The height of the path that keeps its ends negligible, and one for orders below 0."""
        scale = self.step.sigma**2 / self.step.furthest
        return min(2.5 * self.step.sigma, 2.6 * self.width, 0.24 * math.pi * scale)

    def log_stretch(self, rise: float) -> float:
        """Return how much larger density and label are on the strip, by their logarithm."""
        return super().log_stretch(rise) + 2.0 * rise**2 / self.width**2

    def log_label(self, x: FloatArray) -> FloatArray:
        """Return the logarithm of the probability that a step is kept."""
        return np.asarray(log_ndtr((self.upper - x) / self.width))

    def listed(self) -> dict[str, Any]:
        """Return the rule as the document has it, with its labels."""
        labels = {"width": self.width, "upper": self.upper}
        if self.lower is not None:
            labels["lower"] = self.lower
        return super().listed() | {"labels": labels}

    def path(self, c: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return logarithms of the weights' moduli, phases and Im L, for kept or middling steps."""
        log_weight, phase, angle = super().path(c)
        z = self.low + self.spacing * (np.arange(self.nodes) + 0.5) + 1j * self.rise
        unit = self.width * math.sqrt(2.0)
        label = 0.5 * erfc((z - self.upper) / unit)
        if self.lower is not None:
            left = 0.5 * (erfc((self.lower - z) / unit) - erfc((self.upper - z) / unit))
            right = label - 0.5 * erfc((z - self.lower) / unit)
            label = np.where(z.real < self.lower, left, right)
        with np.errstate(divide="ignore"):
            return log_weight + np.log(np.abs(label)), phase + np.angle(label), angle

    def log_moment(self, c: float, log_label: FloatArray) -> float:
        """Return the logarithm of the transform of the steps with a label, at a real order."""
        exponent = c * self.loss
        if (exponent + self.noise + log_label).max() > LARGE or exponent.max() > LARGE:
            return float(np.logaddexp.reduce(self.noise + exponent + log_label))
        label, grown = np.exp(log_label), np.expm1(np.minimum(self.loss, LARGE))
        second = label * (np.expm1(exponent) - c * grown) - (1.0 - label) * (1.0 + c * grown)
        return math.log1p(max(float(np.exp(self.noise) @ second), -0.999))

    def log_integral(self, c: float, log_label: FloatArray) -> float:
        """Return the logarithm of the integral of a label's steps that hardly ever occur."""
        return float(np.logaddexp.reduce(self.noise + c * self.loss + log_label))


class RareSearch(Search):
    """A line for the events that some step is middling and none is large."""

    rule_type = Labelled
    splits: bool
    reverse: float | None

    def set_labels(self, above: float, below: float | None, width: float) -> None:
        """Label the steps by the same losses, whatever their noise."""
        self.splits, self.reverse = below is not None, None
        for rule in self.rules:
            step = rule.step
            unit = width * min(step.sigma**2 / step.furthest, step.sigma)
            lower = None if below is None else rounded(step.inverse_loss(below), 8)
            rule.label(rounded(step.inverse_loss(above), 8), lower, rounded(unit, 6))
        self.at.cache_clear()

    def _at(self, b: float) -> tuple[float, list[float]] | None:
        c = self.order(b)
        size, share = 0.5 * self.precision * c * (c - 1.0) - b * self.epsilon, -math.inf
        with np.errstate(all="ignore"):
            for rule in self.rules:
                moment = rule.log_moment(c, rule.kept)
                size += rule.step.count * moment
                part = math.log(rule.step.count) + rule.log_integral(c, rule.middling) - moment
                share = float(np.logaddexp(share, part))
            if self.splits:
                size += min(share, 0.0)
            for rule in self.rules:
                room = self.share + self.log_delta - size - math.log(rule.step.count / min(b, 1.0))
                end = int(np.searchsorted(rule.x, rule.high)) - 1
                for k in (0, end):
                    label = rule.middling if self.splits else rule.kept
                    height = rule.noise[k] + c * rule.loss[k] + label[k]
                    if not height < room - 20.0:
                        return None
        return (size, [rule.high for rule in self.rules]) if math.isfinite(size) else None

    def log_small(self) -> tuple[float, float]:
        """Return the logarithm of the bound on outcomes whose steps are all small, and its b."""
        best = (math.inf, 1.0)
        for b in np.logspace(-1.0, 3.5, 46) / self.epsilon:
            c = 1.0 + float(b)
            found = b * math.log(b / c) - math.log(c) - b * self.epsilon
            found += 0.5 * self.precision * c * (c - 1.0)
            with np.errstate(all="ignore"):
                found += sum(u.step.count * u.log_moment(c, u.small) for u in self.rules)
            if math.isfinite(found):
                best = min(best, (float(found), float(b)))
        return best

    def log_large(self) -> float:
        """Return the logarithm of what large steps cost beyond the truth; set the reverse term."""
        parts = [
            math.log(u.step.count) + u.step.widened(u.width).log_mass_above(u.upper, moved=True)
            for u in self.rules
        ]
        best = float(np.logaddexp.reduce(parts))
        if best < self.log_delta + self.share:
            return best
        for m in np.logspace(0.0, 3.0, 31) / self.epsilon:
            found = m * math.log(m / (1.0 + m)) - math.log1p(m) + (m + 1.0) * self.epsilon
            found += 0.5 * self.precision * m * (m + 1.0)
            with np.errstate(all="ignore"):
                whole = [u.step.count * u.log_moment(-m, np.zeros(u.x.size)) for u in self.rules]
                jumps = [math.log(u.step.count) + u.log_integral(-m, u.large) for u in self.rules]
            found += sum(whole) + float(np.logaddexp.reduce(jumps))
            if found < best:
                best, self.reverse = float(found), float(m)
        return best

    def orders(self, b: float, period: float, size: float) -> tuple[int, list[FloatArray]]:
        """Return the number of orders after which the rest is negligible."""
        if not self.splits:
            return super().orders(b, period, size)
        step, paths = 2.0 * math.pi / period, [rule.path(self.order(b)) for rule in self.rules]
        masses = [rule.log_integral(self.order(b), rule.middling) for rule in self.rules]

        def rest(y: float) -> float:
            falls = [
                float(np.logaddexp.reduce(weight - y * angle)) - mass
                for (weight, _, angle), mass in zip(paths, masses, strict=True)
            ]
            tail = max(falls) + math.log(step / y**2 + 1.0 / y)
            return float(size + tail - self.log_delta - self.share)

        low, high = 0.0, step
        while rest(high) > 0.0:
            low, high = high, 2.0 * high
            if high > MOST_ORDERS * step:
                raise NoLineError
        for _ in range(6):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if rest(middle) > 0.0 else (low, middle)
        return max(math.ceil(high / step), 1), []


def find_rare_line(
    steps: list[Step], epsilon: float, delta: float, share: float
) -> dict[str, Any] | None:
    """Return the evidence of a line with labels, that with the fewest orders times nodes."""
    if not epsilon > 0.0:
        return None
    search = RareSearch(steps, epsilon, delta, remove=True, share=share)
    search.grid = np.logspace(-2.0, 2.8, 49) / epsilon
    best: tuple[float, dict[str, Any] | None] = (math.inf, None)
    tried = 0
    for width in WIDTHS:
        for above in _uppers(search, width):
            for below in (*_lowers(search, above, width), None):
                tried += 1
                if tried > MOST_TRIES:
                    return best[1]
                search.set_labels(above, below, width)
                search.log_large()
                try:
                    found = search.line()
                except NoLineError:
                    continue
                if below is not None:
                    found["small"] = rounded(search.log_small()[1], 6)
                if search.reverse is not None:
                    found["reverse"] = rounded(search.reverse, 6)
                cost = found["orders"] * sum(rule.nodes for rule in search.rules)
                if cost < best[0]:
                    best = (cost, found)
                if cost < ENOUGH:
                    return found
    return best[1]


def _uppers(search: RareSearch, width: float) -> list[float]:
    """Return losses above which steps may be called large."""
    goal = search.log_delta + search.share
    found = []
    for factor in UPPER:
        search.set_labels(factor * search.epsilon, None, width)
        if search.log_large() < goal - 1.0:
            found.append(factor * search.epsilon)
            if len(found) == 2:
                break
    return found


def _lowers(search: RareSearch, above: float, width: float) -> list[float]:
    """Return the two largest losses below which steps may be called small."""
    found = []
    for factor in LOWER:
        search.set_labels(above, factor * search.epsilon, width)
        if search.log_small()[0] < search.log_delta + search.share:
            found.append(factor * search.epsilon)
            if len(found) == 2:
                break
    return found
