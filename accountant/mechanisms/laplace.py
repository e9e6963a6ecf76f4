"""Laplace noise, and the pair whose loss has exponential densities between two ends."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, lift, ratio_up, up
from accountant.bounds import Bounds
from accountant.mechanisms.fields import BoundedContribution, set_fields
from accountant.pairs.base import LAPLACE, DominatingPair, LineLaw, Masses
from accountant.pairs.excess import divergence, exp_minus_linear
from accountant.relations import ADD_OR_REMOVE, NeighbouringRelation

LEAST = 1e-290  # losses below it count as 0, within the error of the loss


@dataclass(frozen=True, repr=False)
class Laplace(BoundedContribution):
    """Laplace noise in every coordinate of a sum of contributions.

    Parameters
    ----------
    scale : float
        Scale b of the noise, > 0 (``inf`` allowed): density ``exp(-|x|/b)/2b``.
    sensitivity : float, optional
        The largest ℓ1 norm of one record's contribution, >= 0.
    relation : NeighbouringRelation, keyword only
        As in :class:`~accountant.mechanisms.gaussian.Gaussian`.

    Notes
    -----
    *Guarantee.* Dominated by one coordinate that takes the whole ℓ1 norm
    (docs/theorems_mechanisms.md, Theorem M5).

    Examples
    --------
    >>> import accountant as ac
    >>> ac.Laplace(2.0).epsilon(0.0)
    0.5
    """

    theorems = ("M5",)
    about = "Laplace noise in every coordinate of a sum of contributions."

    # The logarithm of the density has slopes of at most 1/b: in any number of coordinates.
    is_unimodal = True

    scale: float
    sensitivity: float = field(default=1.0, kw_only=True)
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        set_fields(self, checks.SCALE, checks.SENSITIVITY)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the one pair, which is its own reverse by reflection."""
        distance = self.distance
        reach = 0.0 if distance == 0.0 else ratio_up(distance, self.scale)
        return (LaplacePair(reach),)


@dataclass(frozen=True)
class ExponentialLossPair(DominatingPair):
    """Loss on [-a, a] with P-density ∝ e^{t/2} and Q-density ∝ e^{-t/2}, no atoms (M8).

    Parameters
    ----------
    reach : float
        The largest loss a >= 0, in nats.
    """

    reach: float

    @property
    def support(self) -> tuple[float, float]:
        """From -a to a."""
        return -self.reach, self.reach

    @property
    def has_negative_infinite_loss(self) -> bool:
        """None: P has a density wherever Q has."""
        return False

    @property
    def loss_error(self) -> float:
        """The reach is rounded up by at most one unit, which moves a loss by as much."""
        # A tiny loss counts as 0.
        return self.reach if self.reach < LEAST else 4.0 * U * self.reach

    @property
    def _least(self) -> float:
        """The least the reach may have been before it was rounded up."""
        return math.nextafter(self.reach * (1.0 - 4.0 * U), 0.0)

    @property
    def _ends(self) -> tuple[float, float, float]:
        """Masses under P of the loss a and the loss -a, and of all that lies between."""
        return 0.0, 0.0, 1.0

    def masses(self, edges: FloatArray) -> Masses:
        """Return the masses in closed form."""
        edges = np.asarray(edges, dtype=np.float64)
        a = self.reach
        if a < LEAST:
            return Masses.at(0.0, edges)
        if a == math.inf:  # a quotient beyond the doubles: so are nearly all losses
            p = np.zeros(edges.size + 1)
            p[-1] = 1.0
            return Masses(p, p[::-1].copy(), 0.0)
        high, low, between = self._ends
        marks = np.concatenate([[-a], np.clip(edges, -a, a), [a]])
        # The widths of clipped cells are exact to one rounding, and so is their ratio to a.
        # Measured from the end of a cell where it is heaviest, nothing overflows.
        scale = between / -math.expm1(-a)
        with np.errstate(over="ignore"):  # differences beyond the largest double
            shrink = -np.expm1(-0.5 * np.diff(marks))
            p = scale * np.exp(0.5 * (marks[1:] - a)) * shrink
            q = scale * np.exp(-0.5 * (marks[:-1] + a)) * shrink
        first = int(np.searchsorted(edges, -a, side="left"))
        last = int(np.searchsorted(edges, a, side="left"))
        p[first] += low
        p[last] += high
        q[first] += high
        q[last] += low
        return Masses(p, q, (64.0 + 4.0 * a) * U)

    def rdp(self, order: float) -> float:
        """Return the divergence of sinh((α-½)a)/((2α-1)·sinh(a/2)), rounded up."""
        a = self.reach
        if a < 1e-300:
            return a  # no divergence exceeds the largest loss
        z = (order - 0.5) * a
        if z < 0.5:
            # A - 1 = (S(z) - S(a/2))/S(a/2) with S(x) = sinh(x)/x, term by term.
            h = 0.5 * a
            excess = math.fsum(
                _power_gap(z, h, 2 * k) / math.factorial(2 * k + 1) for k in range(1, 12)
            ) / (math.sinh(h) / h)
            return divergence(up(lift(excess), 256.0), order)
        # log of the ratio, written with e^{-2z} so that nothing overflows.
        log_a = (
            (z - 0.5 * a)
            + math.log1p(-math.exp(-2.0 * z))
            - math.log(-math.expm1(-a))
            - math.log(2.0 * order - 1.0)
        )
        return _over(log_a, z + a + math.log(2.0 * order) + 8.0, order)

    def profile(self, epsilon: float) -> Bounds:
        """Bracket (1 - e^{(ε-a)/2})²/(1 - e^{-a}) on [-a, a]."""
        a = self.reach
        if epsilon >= a:
            return Bounds(0.0, 0.0)
        if epsilon <= -a:
            return _around(-math.expm1(epsilon), 16.0)
        root, less = math.expm1(0.5 * (epsilon - a)), math.expm1(0.5 * (epsilon - self._least))
        scale = -math.expm1(-a)
        return _around(root * (root / scale), 64.0, min(less, 0.0) ** 2 / scale)

    def inverse_profile(self, delta: float) -> Bounds | None:
        """Bracket a + 2·log(1 - √(δ(1 - e^{-a})))."""
        # The product may underflow.
        return self._inverse(math.sqrt(delta) * math.sqrt(-math.expm1(-self.reach)))

    def _inverse(self, root: float) -> Bounds | None:
        """Bracket a + 2·log(1 - root), root within 16 U; None where it is near 1."""
        if not (root < 0.9 and self.reach < math.inf):
            return None
        # The error of the root is at most ten times as large in the logarithm.
        rest = 2.0 * math.log1p(-root)
        error = 512.0 * U * abs(rest) + 4.0 * U * self.reach + 5e-324
        high = min(math.nextafter(self.reach + rest + error, math.inf), self.reach)
        low = math.nextafter(self._least + rest - error, -math.inf)
        return Bounds(max(low, 0.0), max(high, 0.0))


class LaplacePair(ExponentialLossPair):
    """Laplace noise: half of the mass of P at the loss a, e^{-a}/2 at -a, the rest between."""

    @property
    def _ends(self) -> tuple[float, float, float]:
        return 0.5, 0.5 * math.exp(-self.reach), -0.5 * math.expm1(-self.reach)

    @property
    def line(self) -> LineLaw | None:
        """Two atoms and two exponential densities."""
        if not LEAST < self.reach < math.inf:
            return None
        return LineLaw(LAPLACE, self.reach, loss_error=self.loss_error)

    @property
    def lattice(self) -> tuple[float, float] | None:
        """The two atoms."""
        return (-self.reach, 2.0 * self.reach) if self.reach > 0.0 else None

    def rdp(self, order: float) -> float:
        """Return the divergence of [α e^{(α-1)a} + (α-1) e^{-αa}]/(2α-1), rounded up."""
        a = self.reach
        small = (order - 1.0) * a
        if small < 600.0:
            # α·E(x) + (α-1)·E(-y) with E(x) = e^x - 1 - x: the first order cancels exactly.
            excess = order * exp_minus_linear(small) + (order - 1.0) * exp_minus_linear(-order * a)
            return divergence(up(lift(excess / (2.0 * order - 1.0)), 256.0), order)
        log_a = (
            small
            + math.log(order / (2.0 * order - 1.0))
            + math.log1p((order - 1.0) / order * math.exp(-small - order * a))
        )
        return _over(log_a, small + 8.0, order)

    def profile(self, epsilon: float) -> Bounds:
        """Bracket 1 - e^{(ε-a)/2} on [-a, a]."""
        a = self.reach
        if epsilon >= a:
            return Bounds(0.0, 0.0)
        if epsilon <= -a:
            return _around(-math.expm1(epsilon), 32.0)
        return _around(
            -math.expm1(0.5 * (epsilon - a)), 32.0, -math.expm1(0.5 * (epsilon - self._least))
        )

    def inverse_profile(self, delta: float) -> Bounds | None:
        """Bracket a + 2·log(1 - δ)."""
        return self._inverse(delta)


def _over(log_moment: float, size: float, order: float) -> float:
    # Each summand is off by a few units of the largest of them.
    return up((max(log_moment, 0.0) + 64.0 * U * size) / (order - 1.0))


def _power_gap(z: float, h: float, power: int) -> float:
    """Return z^power - h^power > 0 without cancellation, z > h."""
    ratio = math.log1p((z - h) / h)
    return float(z**power * -math.expm1(-power * ratio))


def _around(value: float, units: float, least: float | None = None) -> Bounds:
    low = value if least is None else min(least, value)
    return Bounds(max(low * (1.0 - units * U), 0.0), min(up(lift(value), units), 1.0))
