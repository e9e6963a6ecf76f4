"""The pair of a sampled replacement: amplification under the replace-one relation.

With probability q a record is in the sample, k times with probability w_k, and replacing it moves
a Gaussian release by 2k. Replace-one is symmetric, so its profile at ε < 0 follows from the one at
ε > 0, where amplification applies. docs/theorems_sampling.md, Theorems S6 and S7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import TINY, U, lift, product_up, up
from accountant._core import answers as core
from accountant.bounds import Bounds
from accountant.pairs.base import DominatingPair, Masses
from accountant.pairs.excess import (
    REACH,
    cells,
    loss_of_sample,
    loss_of_sample_inverse,
    reflected,
)
from accountant.sampling.lognormal import lognormal_cells, normal_tail, spread

# Cells of the likelihood ratio for the Rényi curve: its excess then is about 1e-5 too large.
_CELLS = 4000
# Normal masses underflow beyond this score.
_TOP = 36.0
# The native bracket is of no use at a smaller ε.
_SMALL = 1e-9
# At smaller distances the grid of ratios would collapse into rounding.
LEAST_DISTANCE = 1e-9
_DOWN, _UP = 1.0 - 4.0 * U, 1.0 + 4.0 * U


class Draws(NamedTuple):
    """How often a record is drawn: probabilities of 0 … K times, their error, and the rest.

    ``unit`` is the bound on one contribution, in standard deviations of the noise.
    """

    weights: tuple[float, ...]
    unit: float
    error: float = 0.0
    remainder: float = 0.0

    def once(self, share: float = 0.0) -> float:
        """Return the probability of a draw where there is at most one, w_0 less a share of it."""
        never, drawn = self.weights[0] * (1.0 - share), self.weights[1]
        return drawn / (never + drawn) * (1.0 + 2.0**-48)

    def hidden(self, share: float) -> tuple[Draws, float]:
        """Return the law of two draws or more among a share of w_0, and its weight."""
        weights = share * self.weights[0], *self.weights[2:]
        total = math.fsum(weights)
        return Draws(tuple(w / total for w in weights), self.unit), total * (1.0 + 2.0**-40)


@dataclass(frozen=True)
class ReplacementPair(DominatingPair):
    """The symmetric pair with H(ε) = q Σ w_k H_k(log1p(expm1(ε)/q)) at ε >= 0.

    Parameters
    ----------
    sampling_probability : float
        q in (0, 1], at least the true one.
    weights : tuple of float
        w_1, …, w_K, positive: the probability that a sampled record was drawn k times.
    distances : tuple of float
        Distance in noise standard deviations between the two outputs, for each k.
    remainder : float
        An upper bound on the probability of more than K draws; it counts as infinite loss.
    weight_error : float
        Relative error of the weights.
    farthest : float
        The largest distance there is, listed or not; infinite if unknown.
    """

    sampling_probability: float
    weights: tuple[float, ...]
    distances: tuple[float, ...]
    remainder: float = 0.0
    weight_error: float = 0.0
    farthest: float = math.inf

    @property
    def draws(self) -> Draws | None:
        """How often the record is drawn in a batch of a fixed number of draws, else None."""
        return None

    @property
    def infinite_mass(self) -> float:
        """What was left out."""
        return product_up(self.sampling_probability, self.remainder)

    @property
    def left_out(self) -> float:
        """All of it: more draws than are listed."""
        return self.infinite_mass

    @property
    def lattice(self) -> tuple[float, float] | None:
        """The loss 0, which has mass: that of the outputs that do not depend on the record."""
        return 0.0, 1.0

    @property
    def loss_error(self) -> float:
        """A few units in the last place of the losses within reach of 1e-300."""
        most = max(self.distances)
        return up(32.0 * U * (REACH * most + most * most + 1.0))

    @property
    def variation(self) -> float:
        """Only a record that was drawn is seen."""
        return self.sampling_probability

    @property
    def mu(self) -> float:
        """The largest distance: sampling only hides (Theorem S6)."""
        return self.farthest if self.remainder > 0.0 else max(self.distances)

    def masses(self, edges: FloatArray) -> Masses:
        """Return the masses of the cells: those below zero mirror those above."""
        edges = np.asarray(edges, dtype=np.float64)
        split = int(np.searchsorted(edges, 0.0, side="left"))
        p_high, q_high, error = self._above_zero(edges[split:])
        p_low, q_low, low_error = self._above_zero(-edges[:split][::-1])
        # Below zero P and Q change places. The middle cell holds the mass at zero; when the first
        # upper edge is zero itself, the cell between them is empty.
        p = np.concatenate([q_low[::-1], p_high])
        q = np.concatenate([p_low[::-1], q_high])
        middle = split
        p[middle] = q_low[0] + p_high[0] + self._mass_at_zero()
        q[middle] = p_low[0] + q_high[0] + self._mass_at_zero()
        p = np.delete(p, middle + 1) if split < p.size - 1 else p
        q = np.delete(q, middle + 1) if split < q.size - 1 else q
        p[-1] += self.infinite_mass
        q[0] += self.infinite_mass
        return Masses(p, q, max(error, low_error) + 16.0 * U + self.weight_error)

    def _above_zero(self, edges: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Return the masses of (0, t₀], …, (t_{m-1}, ∞) for edges t >= 0."""
        q = self.sampling_probability
        plain = edges if q == 1.0 else loss_of_sample_inverse(q, edges)
        plain = np.concatenate([[0.0], plain])
        p_mass = np.zeros(edges.size + 1)
        q_mass = np.zeros(edges.size + 1)
        error = 0.0
        for weight, distance in zip(self.weights, self.distances, strict=True):
            with np.errstate(over="ignore"):  # far beyond any mass
                x = plain / distance + 0.5 * distance
            out, out_error = cells(x, 0.0)
            hit, hit_error = cells(x, distance)
            q_mass += weight * out[1:]
            p_mass += weight * ((1.0 - q) * out[1:] + q * hit[1:])
            error = max(error, out_error, hit_error)
        return p_mass, q_mass, error + (len(self.weights) + 8) * U

    def _mass_at_zero(self) -> float:
        # 1 - P{L > 0} - Q{L > 0}; with a = Q{L > 0} of one part it is (1 - q)(1 - 2a).
        return (1.0 - self.sampling_probability) * math.fsum(
            weight * math.erf(distance / math.sqrt(8.0))
            for weight, distance in zip(self.weights, self.distances, strict=True)
        )

    def profile(self, epsilon: float) -> Bounds:
        """Bracket H(ε) at any real ε."""
        if epsilon < 0.0:
            return reflected(self.profile(-epsilon), epsilon)
        q = self.sampling_probability
        inner = epsilon if q == 1.0 else float(loss_of_sample_inverse(q, np.array([epsilon]))[0])
        # The profile falls in the noise and in ε, and both were rounded. Below 1e-9 the native
        # bracket is of no use, so the nearest ε on the safe side is asked for instead.
        wide = 64.0 * U * (1.0 + inner)
        least = inner - wide if inner > _SMALL else 0.0
        most = max(inner + wide, _SMALL)
        low = high = 0.0
        for weight, distance in zip(self.weights, self.distances, strict=True):
            noise = 1.0 / distance
            high += weight * core.delta_bounds(1.0, noise * _DOWN, 1.0, least, core.REMOVE)[1]
            low += weight * core.delta_bounds(1.0, noise * _UP, 1.0, most, core.REMOVE)[0]
        slack = 1e-14 + self.weight_error
        upper = up((q * high + self.infinite_mass) * (1.0 + slack), 4.0)
        return Bounds(max(q * low * (1.0 - slack), 0.0), min(upper, 1.0))

    def finite_rdp(self, order: float) -> float:
        """Return the divergence of the finite losses, rounded up.

        With r = e^L, A - 1 = Σ w_k E_k[(r^α - 1)(1 - r^{1-α}); r > 1]: convex in the likelihood
        ratio, so moving its law to grid points, with the mean kept, bounds it from above.
        """
        # What is not sampled is a Gaussian at the largest distance, and sampling only hides.
        farthest = max(self.distances)
        plain = up(0.5 * order * farthest * farthest, 8.0)
        if min(self.distances) < LEAST_DISTANCE:
            return max(plain, TINY)
        excess = -math.inf
        for weight, distance in zip(self.weights, self.distances, strict=True):
            part = math.log(weight) + self.weight_error + self._log_excess(order, distance)
            excess = float(np.logaddexp(excess, part))
        value = excess if excess > 40.0 else math.log1p(math.exp(excess))
        return min(plain, up(lift(value / (order - 1.0) * (1.0 + 1e-12)), 32.0))

    def _log_excess(self, order: float, distance: float) -> float:
        """Return log E[(r^α - 1)(1 - r^{1-α}); Y > 1], r = 1 + q(Y - 1), rounded up."""
        q = self.sampling_probability
        # Under the tilt by Y^α the scores centre at αμ.
        top = order * distance + 12.0
        if top > _TOP:
            # r^α <= 1 - q + q·Y^α, and the other factor is at most one.
            exponent = 0.5 * order * (order - 1.0) * distance * distance
            return up(math.log(q) + exponent, 8.0) if exponent < math.inf else math.inf
        scores = np.linspace(0.5 * distance, top, _CELLS)
        table = lognormal_cells(scores, 1.0 / distance)
        law = spread(table)
        # The first cell, Y < 1, does not count; its mass at Y = 1 would add zero.
        values = np.log(law.values[1:])
        loss = values if q == 1.0 else loss_of_sample(q, values)
        loss = np.maximum(loss, 0.0) * (1.0 + 1e-13) + 4.0 * law.value_error
        with np.errstate(divide="ignore", over="ignore"):
            rising = np.where(
                order * loss < 30.0, np.log(np.expm1(np.minimum(order * loss, 30.0))), order * loss
            )
            falling = np.log(-np.expm1((1.0 - order) * loss))
            exponents = rising + falling + np.log(law.masses[1:])
        highest = float(exponents.max())
        total = highest + math.log(float(np.exp(exponents - highest).sum()))
        # Above the grid r <= Y: at most E[Y^α; score > top].
        tail, error = normal_tail(np.array([top - order * distance]))
        rest = 0.5 * order * (order - 1.0) * distance * distance + math.log(
            float((tail + error)[0])
        )
        slack = 4.0 * law.mass_error + (loss.size + 64.0 + 16.0 * order * float(loss[-1])) * U
        return float(np.logaddexp(total, rest)) + slack


@dataclass(frozen=True)
class FixedSizePair(ReplacementPair):
    """The pair of Theorem S6; of its Rényi bounds the better: its own and that of Wang et al."""

    @property
    def draws(self) -> Draws:
        """Once with the sampling probability, which is rounded."""
        q = self.sampling_probability
        return Draws((1.0 - q, q), 0.5 * self.distances[0], 4.0 * U)

    def finite_rdp(self, order: float) -> float:
        """Return the smaller bound; theirs is known at integer orders."""
        own = super().finite_rdp(order)
        if not order.is_integer() or order > 512:
            return own
        theirs = wang_balle_kasiviswanathan(
            int(order), self.sampling_probability, self.distances[0]
        )
        return min(own, theirs)


def wang_balle_kasiviswanathan(order: int, sampling_probability: float, distance: float) -> float:
    """Return the Rényi bound of Wang, Balle and Kasiviswanathan (2019, Theorem 9) for a Gaussian.

    Parameters
    ----------
    order : int
        At least 2.
    sampling_probability : float
        Batch size over number of records.
    distance : float
        Largest distance in noise standard deviations, 2/σ.

    Returns
    -------
    float
        An upper bound on the divergence of one step in nats, under replace-one.
    """
    checks.integer("order", order, 2, advice="The bound sums from 2 on")
    log_q = math.log(sampling_probability)
    unit = 0.5 * distance * distance  # ε(j) = j·unit
    two = min(math.log(4.0) + _log_expm1(2.0 * unit), 2.0 * unit + math.log(2.0))
    terms = [2.0 * log_q + math.log(math.comb(order, 2)) + two]
    terms += [
        j * log_q + math.log(math.comb(order, j)) + math.log(2.0) + (j - 1) * j * unit
        for j in range(3, order + 1)
    ]
    highest = max(terms)
    total = highest + math.log(math.fsum(math.exp(term - highest) for term in terms))
    # Exponents are off by a few units each.
    total += 2.0**-48 * (8.0 + max(abs(term) for term in terms) + abs(log_q) * order)
    value = total if total > 40.0 else math.log1p(math.exp(total))
    return lift(value / (order - 1)) * (1.0 + 2.0**-48)


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x))


@dataclass(frozen=True)
class WithReplacementPair(ReplacementPair):
    """The pair of Theorem S7, with what Theorem S20 needs.

    Parameters
    ----------
    chances : tuple of float
        Probabilities of 0 … K draws of the record.
    chance_error : float
        Their relative error.
    """

    chances: tuple[float, ...] = ()
    chance_error: float = 0.0

    @property
    def draws(self) -> Draws:
        """As many as are listed; all others are infinite loss."""
        unit = 0.5 * self.distances[0]
        return Draws(self.chances, unit, self.chance_error, self.infinite_mass)
