"""One step of noise with random shifts, in plain floating point: for searches, never for claims."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtri_exp

from accountant._basics.arrays import FloatArray

# Exponents beyond which sums of exponentials are taken by their logarithms.
LARGE = 500.0
# Orders above which no window goes as far as the tilted noise.
FARTHEST = 300.0
ROOM = 45.0


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
        low, high = -reach / float(self.shifts.min()), reach / float(self.shifts.min())
        for _ in range(200):
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            inside = float(self.loss(middle)) <= loss
            low, high = (middle, high) if inside else (low, middle)
        return low

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
