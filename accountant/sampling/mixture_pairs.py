"""Mixtures of pairs: by a public coin, and of shifted normal laws against the unshifted one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, half_square, lift, up
from accountant.bounds import Bounds
from accountant.errors import PrecisionError
from accountant.mechanisms.normal_masses import REACH, cells
from accountant.pairs.base import DominatingPair, GaussianMixture, Masses
from accountant.pairs.mixture_curve import mixture_rdp


@dataclass(frozen=True)
class BlendPair(DominatingPair):
    """``worse`` with probability ``weight``, else ``usual``; the coin is seen.

    The profile of ``worse`` must be nowhere below that of ``usual``, so that rounding ``weight`` up
    is safe.
    """

    weight: float
    worse: DominatingPair
    usual: DominatingPair

    @property
    def support(self) -> tuple[float, float]:
        """The union of both."""
        (a, b), (c, d) = self.worse.support, self.usual.support
        return min(a, c), max(b, d)

    @property
    def infinite_mass(self) -> float:
        """The blended mass."""
        return up(self._blend(self.worse.infinite_mass, self.usual.infinite_mass))

    @property
    def loss_error(self) -> float:
        """The larger of both."""
        return max(self.worse.loss_error, self.usual.loss_error)

    @property
    def variation(self) -> float:
        """The blended one."""
        worse, usual = self.worse.variation, self.usual.variation
        return min(up(lift(self._blend(worse, usual))), 1.0) if worse or usual else 0.0

    @property
    def mu(self) -> float:
        """The larger of both."""
        return max(self.worse.mu, self.usual.mu)

    @property
    def rho(self) -> float:
        """The larger of both."""
        return max(self.worse.rho, self.usual.rho)

    def _blend(self, worse: float, usual: float) -> float:
        return self.weight * worse + (1.0 - self.weight) * usual

    def masses(self, edges: FloatArray) -> Masses:
        """Blend the masses."""
        worse, usual = self.worse.masses(edges), self.usual.masses(edges)
        rest = 1.0 - self.weight
        return Masses(
            self.weight * worse.p + rest * usual.p,
            self.weight * worse.q + rest * usual.q,
            max(worse.relative_error, usual.relative_error) + 4.0 * U,
        )

    def rdp(self, order: float) -> float:
        """Return the divergence, rounded up: e^{(α-1)D} is blended."""
        worse, usual = self.worse.rdp(order) * (order - 1.0), self.usual.rdp(order) * (order - 1.0)
        # The usual divergence is no larger; a bound on it may be, by any factor.
        usual = min(worse, usual)
        if worse < 1.0:
            excess = self.weight * math.expm1(worse) + (1.0 - self.weight) * math.expm1(usual)
            return up(math.log1p(excess) / (order - 1.0), 64.0)
        if not worse < math.inf or self.weight == 0.0:
            return worse / (order - 1.0)
        if worse - usual > 690.0:
            return up(worse / (order - 1.0), 8.0)
        total = self.weight * math.exp(worse - usual) + (1.0 - self.weight)
        return up((usual + math.log(total)) / (order - 1.0) * (1.0 + 1e-14), 64.0)

    def profile(self, epsilon: float) -> Bounds:
        """Blend the profiles."""
        worse, usual = self.worse.profile(epsilon), self.usual.profile(epsilon)
        low = self._blend(float(worse.lower), float(usual.lower)) * (1.0 - 4.0 * U)
        high = self._blend(float(worse.upper), float(usual.upper)) * (1.0 + 4.0 * U)
        return Bounds(low, min(max(high, low), 1.0))


# Points of the table from which the inversion of a loss begins.
_TABLE = 4096
# Steps of Newton's method that follow: they end at round-off.
_STEPS = 12


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
    farthest : float
        The largest shift there is, listed or not, in standard deviations; infinite if unknown.
    """

    weights: tuple[float, ...]
    distance: float
    remainder: float = 0.0
    add: bool = False
    weight_error: float = 0.0
    farthest: float = math.inf

    @property
    def infinite_mass(self) -> float:
        """What was left out (in the reversed pair P is normal, and nothing is)."""
        return 0.0 if self.add else up(self.remainder, 2.0)

    @property
    def left_out(self) -> float:
        """All of it: more shifts than are listed."""
        return self.infinite_mass

    @property
    def support(self) -> tuple[float, float]:
        """Bounded on the side of records that were not drawn."""
        # As the loss of w_0, off by that of the weight and of the logarithm.
        least = math.log(self.weights[0])
        least -= 8.0 * U * (1.0 + abs(least)) + 2.0 * self.weight_error
        return (-math.inf, -least) if self.add else (least, math.inf)

    @property
    def gaussian_mixture(self) -> GaussianMixture:
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
            return self.farthest
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
        # Where rounding hides the slope, the last kept point is not the end of the grid.
        x = np.interp(losses, table[kept], grid[kept], right=reach)
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
        """Return the divergence of the finite losses, rounded up."""
        return mixture_rdp(self.gaussian_mixture, order)
