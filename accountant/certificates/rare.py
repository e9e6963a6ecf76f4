"""Lines for events that are rare: steps are labelled small, middling or large (Theorem K3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import erfc, log_ndtr

from accountant._basics.arrays import FloatArray
from accountant.certificates.line import Search, least_end
from accountant.certificates.rule import LARGE, NoLineError, Rule, Step, log_sum, rounded
from accountant.search import bisect


class Labelled(Rule):
    """A rule whose steps have labels."""

    upper: float | None
    lower: float | None
    known: tuple[float | None, float | None, float] | None = None  # what the tables are of

    def label(self, upper: float, lower: float | None, width: float, high: float) -> None:
        """Set thresholds, and the window up to ``high`` that they leave."""
        if (upper, width, high) != self.known:
            self.upper, self.width, self.known = upper, width, (upper, width, high)
            self._tabulate(high, min(self.step.sigma, width))
            self.kept, self.large = self._below(upper)
        self.lower = lower
        self.small = self._below(lower)[0] if lower is not None else self.kept
        with np.errstate(divide="ignore"):
            ratio = np.exp(np.minimum(self.small - self.kept, 0.0))
            self.middling = self.kept + np.log1p(-np.where(ratio < 1.0, ratio, 1.0))

    def leave(self, high: float) -> None:
        """Set no labels: all steps are small."""
        if self.known != (None, None, high):
            self.upper, self.lower, self.known = None, None, (None, None, high)
            self._tabulate(high, self.step.sigma)
            self.kept = self.small = np.zeros(self.x.size)
            self.large = self.middling = np.full(self.x.size, -math.inf)

    def _tabulate(self, high: float, unit: float) -> None:
        self.high, step = high, self.step
        far = max(high, step.furthest + 10.0 * step.sigma)
        size = int(min(max(300, 3.0 * (far - self.low) / unit), 2500))
        self.x = np.linspace(self.low, far, size)
        self.loss, self.noise = step.loss(self.x), step.log_density(self.x)
        self.noise = self.noise + math.log(self.x[1] - self.x[0])
        self.mass, self.grown = np.exp(self.noise), np.expm1(np.minimum(self.loss, LARGE))

    def _below(self, cut: float) -> tuple[FloatArray, FloatArray]:
        z = (self.x - cut) / self.width
        return log_ndtr(-z), log_ndtr(z)

    @property
    def most_rise(self) -> float:
        """The height of the path that keeps its ends negligible, and one for orders below 0."""
        scale = self.step.sigma**2 / self.step.furthest
        most = min(super().most_rise, 0.24 * math.pi * scale)
        return most if self.upper is None else min(most, 2.6 * self.width)

    def log_stretch(self, rise: float) -> float:
        """Return how much larger density and label are on the strip, by their logarithm."""
        stretch = super().log_stretch(rise)
        return stretch if self.upper is None else stretch + 2.0 * rise**2 / self.width**2

    def log_label(self, x: FloatArray) -> FloatArray:
        """Return the logarithm of the probability that a step is kept."""
        if self.upper is None:
            return super().log_label(x)
        return np.asarray(log_ndtr((self.upper - x) / self.width))

    def listed(self) -> dict[str, Any]:
        """Return the rule as the document has it, with its labels."""
        if self.upper is None:
            return super().listed()
        labels = {"width": self.width, "upper": self.upper}
        if self.lower is not None:
            labels["lower"] = self.lower
        return super().listed() | {"labels": labels}

    def path(self, c: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return logarithms of the weights' moduli, phases and Im L, for kept or middling steps."""
        log_weight, phase, angle = super().path(c)
        if self.upper is None:
            return log_weight, phase, angle
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
            return log_sum(self.noise + exponent + log_label)
        label, first = np.exp(log_label), c * self.grown
        second = label * (np.expm1(exponent) - first) - (1.0 - label) * (1.0 + first)
        return math.log1p(max(float(self.mass @ second), -0.999))

    def log_integral(self, c: float, log_label: FloatArray) -> float:
        """Return the logarithm of the integral of a label's steps that hardly ever occur."""
        return log_sum(self.noise + c * self.loss + log_label)

    def log_excess(self, c: float) -> float:
        """Return the logarithm of what the path errs by in all small steps, cell by cell."""
        if self.lower is None:
            return -math.inf
        k = math.ceil(self.spacing / (self.x[1] - self.x[0]))
        suprema = self.noise[k:-k] + c * self.loss[2 * k :] + self.small[: -2 * k]
        alias = -2.0 * math.pi * self.rise / self.spacing
        # At the very end: between two places of the table it may grow by orders of magnitude.
        end = np.array([self.high])
        height = (
            self.step.log_density(end)
            + c * self.step.loss(end)
            + log_ndtr((self.lower - end) / self.width)
        )
        ended = float(height[0]) + math.log(self.rise)
        whole = np.logaddexp(log_sum(suprema) + alias, ended)
        return float(whole) + self.log_stretch(self.rise) + math.log(2.0 * self.step.count)


# Losses of the thresholds: of the lower one as shares of ε, of the upper one as multiples.
LOWER = (0.45, 0.3, 0.22, 0.17, 0.13, 0.1, 0.07, 0.05, 0.03, 0.015)
UPPER = (1.3, 1.7, 2.5, 4.0, 7.0, 12.0, 25.0)
# Widths of the labels, in units of σ²/D, the one that is most often enough first.
WIDTHS = (0.2, 0.1, 0.05, 0.03, 0.02, 0.4)
# Orders less 1, times the scale, of the bounds on small and on large steps.
SMALL = np.logspace(-1.0, 3.5, 46)
LARGE_ORDERS = np.logspace(0.0, 3.0, 31)


class RareSearch(Search):
    """A line for the events that some step is middling and none is large."""

    rule_type = Labelled
    splits: bool
    reverse: float | None

    def __init__(
        self, steps: list[Step], epsilon: float, delta: float, share: float, scale: float
    ) -> None:
        super().__init__(steps, epsilon, delta, remove=True, share=share)
        self.scale, self.grid = scale, np.logspace(-2.0, 2.8, 33) / scale
        self.small, self.back = 20, 10  # where the bounds were least the last time
        self.goal = self.log_delta + self.share
        # Widths of a label from its threshold, and of the noise from 0, to the window's end.
        self.far = math.sqrt(2.0 * (40.0 - self.goal))

    def set_labels(self, above: float, below: float | None, width: float) -> None:
        """Label the steps by the same losses, whatever their noise, except those of small loss."""
        self.splits, self.reverse = below is not None, None
        least = 0.01 * self.scale if below is None else 0.5 * below
        for rule in self.rules:
            step = rule.step
            high = step.furthest + step.sigma * self.far
            if float(step.loss(high)) < least:
                rule.leave(high)
                continue
            unit = rounded(width * min(step.sigma**2 / step.furthest, step.sigma), 6)
            lower = None if below is None else rounded(step.inverse_loss(below), 8)
            upper = rounded(step.inverse_loss(above), 8)
            rule.label(upper, lower, unit, upper + self.far * unit)
        self.at.cache_clear()

    def _at(self, b: float) -> tuple[float, list[float]] | None:
        c = self.order(b)
        with np.errstate(all="ignore"):
            size, shares = self._sizes(b)
            if self.splits:
                size += min(log_sum(shares), 0.0)
            for rule in self.rules:
                room = self.goal - size - math.log(rule.step.count / min(b, 1.0))
                end = int(np.searchsorted(rule.x, rule.high)) - 1
                for k in (0, end):
                    label = rule.kept if rule.lower is None else rule.middling
                    height = rule.noise[k] + c * rule.loss[k] + label[k]
                    if not height < room - 20.0:
                        return None
        return (size, [rule.high for rule in self.rules]) if math.isfinite(size) else None

    def _sizes(self, b: float) -> tuple[float, list[float]]:
        """Return the logarithms of what kept steps have, and of the share of each middling one."""
        c, shares = self.order(b), []
        size = 0.5 * self.precision * c * (c - 1.0) - b * self.epsilon
        for rule in self.rules:
            moment = rule.log_moment(c, rule.kept)
            size += rule.step.count * moment
            middling = rule.log_integral(c, rule.middling)
            shares.append(math.log(rule.step.count) + middling - moment)
        return size, shares

    def log_small(self, *, on_path: bool = False, enough: float = -math.inf) -> tuple[float, float]:
        """Return the logarithm of the bound on outcomes whose steps are all small, and its b.

        ``on_path`` leaves out orders at which the path chosen for the line is too coarse.
        """

        def bound(k: int) -> float:
            b = float(SMALL[k]) / self.scale
            c = 1.0 + b
            found = b * math.log(b / c) - math.log(c) - b * self.epsilon
            found += 0.5 * self.precision * c * (c - 1.0)
            if on_path and any(u.log_excess(c) > -12.0 for u in self.rules):
                return math.inf
            found += sum(u.step.count * u.log_moment(c, u.small) for u in self.rules)
            return float(found)

        self.small, least = _lowest(bound, self.small, SMALL.size - 1, enough)
        return least, float(SMALL[self.small]) / self.scale

    def log_large(self, enough: float = -math.inf) -> float:
        """Return the logarithm of what large steps cost beyond the truth; set the reverse term."""
        parts = [
            math.log(u.step.count) + u.step.widened(u.width).log_mass_above(u.upper, moved=True)
            for u in self.rules
            if u.upper is not None
        ]
        best = log_sum(parts) if parts else -math.inf
        if best < self.goal - 1.0:
            return best

        def bound(k: int) -> float:
            m = float(LARGE_ORDERS[k]) / self.scale
            found = m * math.log(m / (1.0 + m)) - math.log1p(m) + (m + 1.0) * self.epsilon
            found += 0.5 * self.precision * m * (m + 1.0)
            found += sum(u.step.count * u.log_moment(-m, np.zeros(u.x.size)) for u in self.rules)
            jumps = [math.log(u.step.count) + u.log_integral(-m, u.large) for u in self.rules]
            return float(found + log_sum(jumps))

        self.back, least = _lowest(bound, self.back, LARGE_ORDERS.size - 1, enough)
        if least < best:
            best, self.reverse = least, float(LARGE_ORDERS[self.back]) / self.scale
        return best

    def orders(self, b: float, period: float, size: float) -> tuple[int, list[FloatArray]]:
        """Return the number of orders after which the rest is negligible."""
        if not self.splits:
            return super().orders(b, period, size)
        step = 2.0 * math.pi / period
        whole, shares = self._sizes(b)
        parts = [
            (rule.path(self.order(b)), share - rule.log_integral(self.order(b), rule.middling))
            for rule, share in zip(self.rules, shares, strict=True)
            if rule.lower is not None
        ]

        def rest(y: float) -> float:
            falls = [log_sum(weight - y * angle) + share for (weight, _, angle), share in parts]
            tail = log_sum(falls) + math.log(step / y**2 + 1.0 / y)
            return whole + tail - self.goal

        return math.ceil(least_end(rest, step) / step), []


def find_rare_line(
    steps: list[Step], epsilon: float, delta: float, share: float
) -> dict[str, Any] | None:
    """Return the evidence of a line with labels, that with the fewest orders times nodes."""
    # Steps that stay take off the loss: at a small ε a jump may have to make up for them.
    stays = sum(-step.count * math.log(step.stays) for step in steps if step.stays > 0.0)
    for scale in (epsilon, min(stays, 5.0)):
        if scale >= epsilon and scale > 0.0:
            found = _at_scale(RareSearch(steps, epsilon, delta, share, scale))
            if found is not None:
                return found
    return None


def _at_scale(search: RareSearch) -> dict[str, Any] | None:
    """Return evidence whose thresholds are multiples of a scale of losses, the first found."""
    for above, below, width in _labels(search):
        search.set_labels(above, below, width)
        if all(rule.upper is None for rule in search.rules):
            continue
        search.log_large()
        try:
            found = search.line()
        except NoLineError:
            continue
        if below is not None:
            bound, small = search.log_small(on_path=True)
            if not bound < search.goal + 2.0:
                continue
            found["small"] = rounded(small, 6)
        if search.reverse is not None:
            found["reverse"] = rounded(search.reverse, 6)
        return found
    return None


def _labels(search: RareSearch) -> Iterator[tuple[float, float | None, float]]:
    """Return losses that are large and small, and widths, those of which most is expected first."""
    later = []
    for width in WIDTHS:
        uppers = _uppers(search, width)
        lowers = [_lower(search, above, width) for above in uppers]
        for above, below in zip(uppers, lowers, strict=True):
            if below is not None:
                yield above, below, width
        if uppers and (width == WIDTHS[0] or lowers[0] is not None):
            yield uppers[0], None, width
        elif uppers:
            later.append((uppers[0], None, width))
    yield from later


def _uppers(search: RareSearch, width: float) -> list[float]:
    """Return the two smallest losses above which steps may be called large."""
    losses = [factor * search.scale for factor in UPPER]

    def holds(loss: float) -> bool:
        search.set_labels(loss, None, width)
        return search.log_large(search.goal - 1.0) < search.goal - 1.0

    first = _first(losses, holds)
    return losses[first : first + 2]


def _lower(search: RareSearch, above: float, width: float) -> float | None:
    """Return the largest loss below which steps may be called small."""
    losses = [factor * search.scale for factor in LOWER]

    def holds(loss: float) -> bool:
        search.set_labels(above, loss, width)
        return search.log_small(enough=search.goal)[0] < search.goal

    first = _first(losses, holds)
    return losses[first] if first < len(losses) else None


def _first(losses: list[float], holds: Callable[[float], bool]) -> int:
    """Return the place of the first loss for which a condition holds, which then holds for all."""
    if not holds(losses[-1]):
        return len(losses)
    return bisect(lambda k: holds(losses[k]), len(losses) - 1, -1)


def _lowest(
    bound: Callable[[int], float], start: int, last: int, enough: float
) -> tuple[int, float]:
    """Return a place in 0 to ``last`` and a convex bound there: the least, or one below enough."""
    known: dict[int, float] = {}

    def at(k: int) -> float:
        if k not in known:
            with np.errstate(all="ignore"):
                found = float(bound(k))
            known[k] = found if math.isfinite(found) else math.inf
        return known[k]

    k, stride = start, 4
    while k > 0 and at(k) == math.inf:
        k = max(k - 4, 0)
    while stride and not at(k) < enough:
        best = min((k, max(k - stride, 0), min(k + stride, last)), key=at)
        k, stride = best, stride if best != k else stride // 2
    return k, at(k)
