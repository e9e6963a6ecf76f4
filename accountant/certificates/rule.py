"""The window and path of one step on a line, and how fast its transform falls there.

All of it is plain floating point: for searches, never for claims.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtri_exp

from accountant._basics.arrays import FloatArray
from accountant.search import narrow

# Exponents beyond which sums of exponentials are taken by their logarithms.
LARGE = 500.0
# Orders above which no window goes as far as the tilted noise.
FARTHEST = 300.0
ROOM = 45.0
# Of a bracket on a point with a given loss: enough for the last digits of a double.
HALVINGS = 100


class Reach(NamedTuple):
    """Equally spaced points, the loss and the noise there, and what moments are made of."""

    x: FloatArray
    loss: FloatArray
    noise: FloatArray  # log N
    log_spacing: float
    mass: FloatArray  # N times the spacing
    grown: FloatArray  # e^L - 1
    least: float  # loss
    most: float


@dataclass(frozen=True, eq=False)
class Step:
    """N(0, σ²) whose mean moves by d_j with probability w_j; ``count`` such steps.

    ``lost`` is an upper bound on the weight of further shifts that are not listed.
    """

    sigma: float
    shifts: FloatArray
    weights: FloatArray
    count: int
    lost: float = 0.0

    def listed(self) -> dict[str, Any]:
        """Return the part as the document has it."""
        given: dict[str, Any] = {
            "sigma": self.sigma,
            "shifts": self.shifts.tolist(),
            "weights": self.weights.tolist(),
            "count": self.count,
        }
        return given | ({"lost": self.lost} if self.lost else {})

    @property
    def is_plain(self) -> bool:
        """Whether the mean always moves by the same amount."""
        return self.weights.size == 1 and self.weights[0] == 1.0

    @cached_property
    def stays(self) -> float:
        """The probability of no shift."""
        return max(1.0 - self.moves, 0.0)

    @cached_property
    def moves(self) -> float:
        """The probability of some shift."""
        return math.fsum(self.weights)

    @property
    def lost_delta(self) -> float:
        """What shifts that are not listed add to δ (Theorem D9)."""
        return self.count * self.lost / (self.stays - self.lost) if self.lost else 0.0

    @cached_property
    def furthest(self) -> float:
        """The largest shift."""
        return float(self.shifts.max())

    def loss(self, x: Any) -> Any:
        """Return L at real or complex points, of the branch that is real on the real line."""
        x = np.asarray(x)[..., None]
        u = self.shifts * (2.0 * x - self.shifts) / (2.0 * self.sigma**2)
        highest = u.real.max()
        if highest < LARGE:
            return np.log1p((self.weights * np.expm1(u)).sum(axis=-1))
        top = np.maximum(u.real.max(axis=-1), 0.0)
        small = top < LARGE
        lifted = np.where(small[..., None], u, 0.0)
        moved = (self.weights * np.expm1(lifted)).sum(axis=-1)
        with np.errstate(divide="ignore"):
            near = np.log1p(moved)
        scaled = (self.weights * np.exp(u - top[..., None])).sum(axis=-1)
        far = top + np.log(scaled + self.stays * np.exp(-top))
        return np.where(small, near, far)

    def mean_shift(self, x: FloatArray) -> FloatArray:
        """Return the posterior mean of the shift, σ² times the slope of the loss."""
        u = self.shifts * (2.0 * x[..., None] - self.shifts) / (2.0 * self.sigma**2)
        top = np.maximum(u.max(axis=-1), 0.0)
        masses = self.weights * np.exp(u - top[..., None])
        total = masses.sum(axis=-1) + self.stays * np.exp(-top)
        return np.asarray((self.shifts * masses).sum(axis=-1) / total)

    def log_density(self, x: Any) -> Any:
        """Return log N at real or complex points."""
        return -(x**2) / (2.0 * self.sigma**2) - self._log_unit

    @cached_property
    def _log_unit(self) -> float:
        return math.log(self.sigma * math.sqrt(2.0 * math.pi))

    def log_mass_above(self, x: float, *, moved: bool) -> float:
        """Return the logarithm of P{X > x} (moved) or Q{X > x}."""
        still = float(log_ndtr(-x / self.sigma))
        if not moved:
            return still
        parts = np.log(self.weights) + log_ndtr((self.shifts - x) / self.sigma)
        kept = math.log(self.stays) + still if self.stays > 0.0 else -math.inf
        return float(np.logaddexp.reduce(np.append(parts, kept)))

    def window(self, log_share: float, *, moved: bool) -> tuple[float, float]:
        """Return the ends beyond which the noise has at most a share, of which the logarithm."""
        low = -self.sigma * quantile(log_share - ROOM)  # the path's ends must be smaller still
        half = log_share - math.log(2.0)
        high = self.sigma * quantile(half if moved else log_share)
        if moved and half < math.log(self.moves):
            high = max(high, self.furthest + self.sigma * quantile(half - math.log(self.moves)))
        return low, high

    def inverse_loss(self, loss: float) -> float:
        """Return a point with about this loss, which must be one that there is."""
        reach = 60.0 * self.sigma + 2.0 * self.furthest + abs(loss) * self.sigma**2
        end = reach / float(self.shifts.min())
        return narrow(lambda x: float(self.loss(x)) <= loss, -end, end, HALVINGS)[0]

    def widened(self, width: float) -> Step:
        """Return the step with further noise."""
        return replace(self, sigma=math.hypot(self.sigma, width))

    def reach(self, c: float, low: float, high: float) -> Reach:
        """Return points from low to high or beyond the tilted noise, and what is known there."""
        order = 2.0 ** math.ceil(math.log2(c)) if c > 0.0 else 0.0
        far = 1.5 * high
        if order < FARTHEST:
            far = max(high, self.furthest * order + 0.9 * (high + self.furthest - low))
        size = int(min(max(400, 8.0 * (far - low) / self.sigma), 6000))
        x = np.linspace(low, far, size)
        loss, noise, spacing = self.loss(x), self.log_density(x), math.log(x[1] - x[0])
        ends = float(loss.min()), float(loss.max())
        return Reach(x, loss, noise, spacing, np.exp(noise + spacing), np.expm1(loss), *ends)

    @staticmethod
    def log_moments(c: float, at: Reach, start: int) -> FloatArray:
        """Return log A(c) on the windows that end at each point from one on."""
        exponent = c * at.loss
        if c * (at.most if c >= 0.0 else at.least) > LARGE or at.most > LARGE:
            whole = np.logaddexp.accumulate(at.noise + exponent + at.log_spacing)
            return np.asarray(whole[start:])
        second = (at.mass * (np.expm1(exponent) - c * at.grown)).cumsum()
        return np.asarray(np.log1p(np.maximum(second[start:], -0.9)))


def log_sum(exponents: ArrayLike) -> float:
    """Return the logarithm of the sum of exponentials."""
    exponents = np.asarray(exponents)
    top = float(exponents.max())
    return top + math.log(float(np.exp(exponents - top).sum())) if math.isfinite(top) else top


def quantile(log_share: float) -> float:
    """Return about the least z >= 0 with log Φ(-z) at most a given negative number."""
    return max(1e-9 - float(ndtri_exp(log_share)), 0.0)


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
