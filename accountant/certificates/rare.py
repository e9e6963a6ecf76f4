"""Lines for events that are rare: steps are labelled small, middling or large (Theorem K3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from accountant._typing import FloatArray
from accountant.certificates.labels import Labelled
from accountant.certificates.line import MOST_ORDERS, NoLineError, Search, rounded
from accountant.certificates.step import Step, log_sum

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
    narrow = False  # a bound may fail between two that hold
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
            lower = None if below is None else rounded(step.near_loss(below), 8)
            upper = rounded(step.near_loss(above), 8)
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
    start, end = 0, len(losses) - 1
    while start < end:
        middle = (start + end) // 2
        start, end = (start, middle) if holds(losses[middle]) else (middle + 1, end)
    return start


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
