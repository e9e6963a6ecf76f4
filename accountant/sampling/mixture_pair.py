"""A mixture of shifted normal laws against the unshifted one.

The pair of a sampler that may draw a record several times. docs/theorems_sampling.md, Theorem S8.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from accountant._rounding import U, half_square, up
from accountant.errors import PrecisionError
from accountant.mechanisms.normal_masses import REACH, cells
from accountant.pairs.base import DominatingPair, GaussianMixture, Masses

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MixturePair"]

FloatArray: TypeAlias = "NDArray[np.float64]"

_TABLE = 4096
_STEPS = 12
# Largest order of the Rényi sums, whose length grows with it; rare repeats rule beyond anyway.
_MAX_ORDER = 64
# Exponents that stay within doubles, with a margin for products.
_LARGEST = 300.0


@dataclass(frozen=True)
class MixturePair(DominatingPair):
    """P = Σ w_k N(kμ, 1), k = 0 … K, against Q = N(0, 1); ``add`` is the reversed pair.

    Parameters
    ----------
    weights : tuple of float
        w_0, …, w_K, positive.
    distance : float
        μ > 0, in noise standard deviations.
    remainder : float
        An upper bound on the weight of k > K; it counts as infinite loss.
    add : bool
        The reversed pair.
    weight_error : float
        Relative error of the weights.
    """

    weights: tuple[float, ...]
    distance: float
    remainder: float = 0.0
    add: bool = False
    weight_error: float = 0.0

    @property
    def infinite_mass(self) -> float:
        """What was left out (in the reversed pair P is normal, and nothing is)."""
        return 0.0 if self.add else up(self.remainder, 2.0)

    @property
    def support(self) -> tuple[float, float]:
        """Bounded on the side of records that were not drawn."""
        # As the loss of w_0, off by that of the weight and of the logarithm.
        least = math.log(self.weights[0])
        least -= 8.0 * U * (1.0 + abs(least)) + 2.0 * self.weight_error
        return (-math.inf, -least) if self.add else (least, math.inf)

    @property
    def gaussian_mixture(self) -> GaussianMixture | None:
        """The mixture itself, in units of the noise."""
        shifts = tuple(k * self.distance for k in range(1, len(self.weights)))
        return GaussianMixture(
            1.0,
            shifts,
            self.weights[1:],
            self.add,
            self.weights[0],
            self.weight_error + U,
            4.0 * U,
            self.remainder,
        )

    @property
    def loss_error(self) -> float:
        """What the inversion of the loss leaves, within reach of 1e-300."""
        return self._tolerance(self._reach)

    @property
    def _reach(self) -> float:
        return REACH + (len(self.weights) - 1) * self.distance

    @property
    def mu(self) -> float:
        """The largest shift: not telling how often only hides (Theorem S2)."""
        if self.remainder > 0.0:
            return math.inf
        return up((len(self.weights) - 1) * self.distance, 2.0)

    @property
    def rho(self) -> float:
        """That of the largest shift."""
        return half_square(self.mu)

    def _tolerance(self, reach: float) -> float:
        most = (len(self.weights) - 1) * self.distance
        # A relative error of the weights is an absolute one of the loss.
        return up(64.0 * U * (2.0 + most * reach + most * most) + 2.0 * self.weight_error)

    def masses(self, edges: FloatArray) -> Masses:
        """Return the masses between edges, which are carried back to the noise."""
        edges = np.asarray(edges, dtype=np.float64)
        if self.add:
            mirrored = self._remove(-edges[::-1])
            q = mirrored.p[::-1].copy()
            q[0] += self.remainder
            return Masses(mirrored.q[::-1].copy(), q, mirrored.relative_error)
        found = self._remove(edges)
        found.p[-1] += self.infinite_mass
        return found

    def _remove(self, edges: FloatArray) -> Masses:
        below = int(np.searchsorted(edges, math.log(self.weights[0]) + 8.0 * U, side="right"))
        x = self._inverse(edges[below:])
        p = np.zeros(x.size + 1)
        q, error = cells(x, 0.0)
        for k, weight in enumerate(self.weights):
            part, part_error = cells(x, k * self.distance)
            p += weight * part
            # The shift k·μ is rounded, which moves a normal density at most by this.
            shift = 4.0 * U * k * self.distance * (self._reach + 2.0)
            error = max(error, part_error + shift)
        padding = np.zeros(below)
        error += (len(self.weights) + 8) * U + self.weight_error
        return Masses(np.concatenate([padding, p]), np.concatenate([padding, q]), error)

    def _inverse(self, losses: FloatArray) -> FloatArray:
        """Return x with L(x) within :attr:`loss_error` of each loss; ±reach where it is beyond."""
        if losses.size == 0:
            return losses
        reach = self._reach
        grid = np.linspace(-reach, reach, _TABLE)
        table = self._loss(grid)[0]
        kept = np.concatenate([[True], np.diff(np.maximum.accumulate(table)) > 0.0])
        x = np.interp(losses, table[kept], grid[kept])
        tolerance = self._tolerance(reach)
        # Newton from the table, on what has not settled yet.
        active = (losses > table[0]) & (losses < table[-1])
        for _ in range(_STEPS):
            value, slope = self._loss(x[active])
            miss = losses[active] - value
            settled = np.abs(miss) <= 0.5 * tolerance
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                step = np.where(settled, 0.0, miss / slope)
            x[active] = np.clip(x[active] + np.clip(step, -1.0, 1.0), -reach, reach)
            active[np.flatnonzero(active)[settled]] = False
            if not active.any():
                return np.maximum.accumulate(x)
        raise PrecisionError("the loss of the mixture could not be inverted")

    def _loss(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return L(x) = log Σ w_k e^{kμx - k²μ²/2} and its derivative."""
        total = np.zeros_like(x)
        slope = np.zeros_like(x)
        top = np.full_like(x, -np.inf)

        def exponent(k: int) -> FloatArray:
            at = k * self.distance
            return np.asarray(math.log(self.weights[k]) + at * (x - 0.5 * at))

        # Twice computed rather than kept: there may be many weights and many points.
        for k in range(len(self.weights)):
            top = np.maximum(top, exponent(k))
        for k in range(len(self.weights)):
            part = np.exp(exponent(k) - top)
            total += part
            slope += k * self.distance * part
        return top + np.log(total), slope / total

    def rdp(self, order: float) -> float:
        """Return the divergence, rounded up; infinite when something was left out."""
        return math.inf if self.remainder > 0.0 and not self.add else self.finite_rdp(order)

    def finite_rdp(self, order: float) -> float:
        """Return the divergence of the finite losses, rounded up.

        *Remove*: a finite sum at integer orders; (α - 1)D_α is convex in α, so the chord bounds it
        between. *Add*, and below order two: the law of the likelihood ratio on a grid, larger in
        the convex order.
        """
        if self.add:
            # Chords that leave the doubles (NaN) say nothing: infinity.
            excess = self._add_excess(order)
            return up(math.log1p(excess) / (order - 1.0), 64.0) if excess < math.inf else math.inf
        floor = math.floor(order)
        if floor + 1 > _MAX_ORDER:
            return math.inf
        low = _log_power(self, floor)
        if order == floor:
            return up(low / (order - 1.0), 32.0)
        high = _log_power(self, floor + 1)
        between = low + (order - floor) * (high - low)
        if floor == 1:
            # The chord is far off near order one, where rare repeats do not count yet.
            excess = self._remove_excess(order, high)
            between = min(between, math.log1p(excess) if excess < math.inf else math.inf)
        return up(between / (order - 1.0), 64.0)

    def _add_excess(self, order: float) -> float:
        """Return an upper bound on E_Q[S^(1-α) - 1 - (1-α)(S - 1)], S = e^L."""
        least = (1.0 - order) * math.log(self.weights[0])
        if not least < _LARGEST:
            return math.inf
        inner, q_below, p_above = self._chords(1.0 - order, _LARGEST)
        # Below the grid S >= w_0; above it the integrand is at most (α - 1)·S.
        return inner + q_below * math.exp(least) + (order - 1.0) * (p_above + self.remainder)

    def _remove_excess(self, order: float, second: float) -> float:
        """Return an upper bound on E_Q[S^α - 1 - α(S - 1)], 1 < α < 2, given log E_Q[S²]."""
        inner, q_below, p_above = self._chords(order, _LARGEST / order)
        # Above the grid, by Hölder: E_P[S^(α-1); above] <= E_P[S]^(α-1) P(above)^(2-α).
        tail = (order - 1.0) * second + (2.0 - order) * math.log(p_above + 1e-300)
        above = math.exp(tail) * (1.0 + 1e-9) if tail < 600.0 else math.inf
        return inner + order * q_below + above + (order - 1.0) * p_above

    def _chords(self, power: float, largest: float) -> tuple[float, float, float]:
        """Bound E_Q[S^s - 1 - s(S - 1)] over cells by chords; and return the masses outside.

        The masses are those of Q below the cells and of P above them, where L > ``largest``.
        """
        top = (len(self.weights) - 1) * self.distance + 12.0
        x = np.linspace(-12.0, top, _TABLE)
        loss = self._loss(x)[0]
        x, loss = x[loss < largest], loss[loss < largest]
        q_mass, error = cells(x, 0.0)
        p_mass = np.zeros_like(q_mass)
        for k, weight in enumerate(self.weights):
            part, part_error = cells(x, k * self.distance)
            p_mass += weight * part
            error = max(error, part_error)
        error += self.weight_error
        ratio = np.exp(loss)
        z = power * loss
        # The Taylor form where S is near one: there the difference would cancel.
        value = np.where(
            (np.abs(z) < 1e-3) & (np.abs(loss) < 1e-3),
            0.5 * np.abs(power * (power - 1.0)) * loss * loss
            + (np.abs(power) ** 3 + np.abs(power)) * np.abs(loss) ** 3,
            np.expm1(z) - power * np.expm1(loss),
        )
        rise = np.diff(ratio)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (p_mass[1:-1] / q_mass[1:-1] - ratio[:-1]) / rise
        share = np.where(rise > 0.0, np.clip(share, 0.0, 1.0), 0.0)
        inner = q_mass[1:-1] * ((1.0 - share) * value[:-1] + share * value[1:])
        # A relative error of a cell's mean moves its part by it times E[S |slope|; cell].
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(rise > 0.0, np.abs(np.diff(value)) / rise, 0.0)
        slack = (8.0 * error + 1e-13) * (float((p_mass[1:-1] * slope).sum()) + float(inner.sum()))
        total = float(inner.sum()) * (1.0 + 1e-9) + slack
        return total, float(q_mass[0]) * (1.0 + 1e-9), float(p_mass[-1]) * (1.0 + 1e-9)


@functools.lru_cache(maxsize=512)
def _log_power(pair: MixturePair, order: int) -> float:
    """Return log E_Q[S^order], rounded up: a sum over how often the record is drawn in all.

    S^n is the n-th power of Σ w_k e^{kμx - k²μ²/2}; the powers e^{Kμx} have mean e^{K²μ²/2}.
    """
    if order == 1:
        return 0.0
    half = 0.5 * pair.distance * pair.distance
    k = np.arange(len(pair.weights))
    one = np.log(np.array(pair.weights)) - half * k * k
    power = one
    for _ in range(order - 1):
        padded = np.full((one.size, power.size + one.size - 1), -np.inf)
        for j in range(one.size):
            padded[j, j : j + power.size] = one[j] + power
        power = np.logaddexp.reduce(padded, axis=0)
    total = power + half * np.arange(power.size, dtype=np.float64) ** 2
    highest = float(total.max())
    value = highest + math.log(float(np.exp(total - highest).sum()))
    # Every pass rounds exponents of this size a few times.
    size = float(np.abs(power).max()) + highest + 16.0
    return float(max(value, 0.0) + order * (8.0 * size + 8.0 * one.size) * U + total.size * U) + (
        2.0 * order * pair.weight_error
    )
