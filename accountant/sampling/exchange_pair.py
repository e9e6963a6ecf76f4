"""The attained pairs of noise on a Poisson sample under replace-one (Theorems E7 and E15)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, lift, product_up, ratio_up, up
from accountant._core import answers as core
from accountant.mechanisms.gaussian import Gaussian, GaussianPair
from accountant.mechanisms.integer_laws import IntegerPair
from accountant.mechanisms.laplace import LaplacePair
from accountant.pairs.atoms import AtomicPair, Atoms
from accountant.pairs.base import DominatingPair, Masses
from accountant.pairs.excess import (
    REACH,
    cells,
    chord_excess,
    divergence,
    loss_of_sample,
    loss_of_sample_inverse,
)
from accountant.pairs.product import BlendPair
from accountant.relations import REPLACE_ONE
from accountant.sampling.replacement_pair import LEAST_DISTANCE
from accountant.sampling.sampled_atoms import SampledAtoms
from accountant.sampling.sampled_pairs import divergence_of_masses

# Cells of the chords of a Rényi divergence: fewer make it larger.
_CELLS = 4096
# A normal law has a mass below 1e-32 beyond this score.
_MARGIN = 12.0
# Normal masses underflow beyond this score.
_TOP = 36.0
# The largest loss whose exponential is a double, with a margin.
_FARTHEST = 600.0
# A larger squared distance hides nothing.
MOST_SQUARED_DISTANCE = 1e3
# Noise that hides more than any whose pair is that of the noise unsampled.
_LEAST_NOISE = 0.032
# The least rate: products with losses are doubles.
_LEAST_RATE = 1e-280
# Distances of Laplace noise in scales between which exponentials are doubles.
_LEAST_REACH, _MOST_REACH = 1e-200, 1200.0


def exchange_pair(noise: float, q: float) -> DominatingPair:
    """Return the pair of Theorem E7, its own reverse, or one that is nowhere below.

    Where the noise hides next to nothing that is the pair whose draws are seen, where it hides all
    but nothing that of the noise unsampled.

    Parameters
    ----------
    noise : float
        Standard deviation of the noise over the bound on one contribution, > 0.
    q : float
        The sampling probability, in [0, 1].
    """
    if noise == math.inf or q == 0.0:
        return GaussianPair(math.inf)
    distance = ratio_up(1.0, noise)
    if q < 1.0 and distance >= LEAST_DISTANCE and distance * distance <= MOST_SQUARED_DISTANCE:
        return ExchangePair(distance, q)
    # Sampling only hides.
    plain = Gaussian(noise, relation=REPLACE_ONE).pairs()[0]
    if q == 1.0 or distance < LEAST_DISTANCE:
        return plain
    # The draw is seen in any case (Theorem D25).
    return BlendPair(q, plain, GaussianPair(math.inf))


def noise_below(noise: float) -> float | None:
    """Return a noise whose pair is nowhere above; None where :func:`exchange_pair` is attained."""
    distance = ratio_up(1.0, noise)
    if distance < LEAST_DISTANCE:
        return math.inf
    return _LEAST_NOISE if distance * distance > MOST_SQUARED_DISTANCE else None


@dataclass(frozen=True)
class ExchangePair(DominatingPair):
    """(1-q)·N(0, 1) + q·N(μ, 1) against (1-q)·N(0, 1) + q·N(-μ, 1).

    Parameters
    ----------
    distance : float
        μ, in [1e-9, 32].
    q : float
        In (0, 1).
    """

    distance: float
    q: float

    @property
    def _odds(self) -> float:
        """The logarithm of (1-q)/(q·e^{-μ²/2})."""
        return math.log1p(-self.q) - math.log(self.q) + 0.5 * self.distance**2

    @property
    def loss_error(self) -> float:
        """The errors of the edges carried back to the noise, where the loss has slope 2μ at most.

        A score times μ is off by a few units of itself, and of the logarithms it is made of.
        """
        mu = self.distance
        return up(64.0 * U * (2.0 + REACH * mu + 2.0 * mu * mu + abs(self._odds)))

    @property
    def variation(self) -> float:
        """Only a record that was drawn is seen."""
        return self.q

    @property
    def mu(self) -> float:
        """2μ, as of the noise without sampling: the coin may be revealed."""
        return 2.0 * self.distance

    def loss(self, x: FloatArray) -> FloatArray:
        """Return the loss at ``x`` standard deviations: odd and increasing."""
        mu = self.distance
        up_, down = mu * (x - 0.5 * mu), mu * (-x - 0.5 * mu)
        least, q = math.log1p(-self.q), math.log(self.q)
        return np.asarray(np.logaddexp(least, q + up_) - np.logaddexp(least, q + down))

    def scores(self, loss: FloatArray) -> FloatArray:
        """Return the inverse of :meth:`loss`: (t/2 + asinh(e^c·sinh(t/2)))/μ, c the odds."""
        half = 0.5 * np.abs(loss)
        with np.errstate(divide="ignore", over="ignore"):
            log_b = self._odds + half + np.log(-np.expm1(-2.0 * half)) - math.log(2.0)
            bent = np.where(log_b > 30.0, log_b + math.log(2.0), np.arcsinh(np.exp(log_b)))
        return np.asarray(np.copysign((half + bent) / self.distance, loss))

    def masses(self, edges: FloatArray) -> Masses:
        """Return the masses between edges, which are carried back to the noise."""
        edges = np.asarray(edges, dtype=np.float64)
        x = np.maximum.accumulate(self.scores(edges)) if edges.size else edges
        still, error = cells(x, 0.0)
        q, rest = self.q, 1.0 - self.q
        mixed = []
        for mean in (self.distance, -self.distance):
            moved, moved_error = cells(x, mean)
            mixed.append(rest * still + q * moved)
            error = max(error, moved_error)
        return Masses(mixed[0], mixed[1], error + 8.0 * U)

    def rdp(self, order: float) -> float:
        """Return the divergence, rounded up: the least of a certified sum and two bounds.

        The sum has absolute errors (Theorem D21). Chords between cells' ends have relative ones
        (Theorem M17). At high orders the second law is taken as (1 - q) times the noise's.
        """
        lower, upper = core.exchange_renyi_bounds(self.distance, self.q, order)
        if upper - lower <= 1e-9 * upper < math.inf:
            return float(upper)
        _, removal = core.renyi_bounds(
            self.q, 1.0 / self.distance * (1.0 - 2.0 * U), order, core.REMOVE
        )
        high = up(removal - math.log1p(-self.q), 8.0)
        return min(float(upper), high, self._by_chords(order))

    def _by_chords(self, order: float) -> float:
        mu, q = self.distance, self.q
        plain = up(2.0 * order * mu * mu, 8.0)
        top = order * mu + _MARGIN
        if top > _TOP:
            return plain
        loss = self.loss(np.linspace(-_MARGIN - mu, top, _CELLS))
        if float(np.abs(loss).max()) > _FARTHEST:
            return plain
        shift = self.loss_error + 32.0 * U * float(np.abs(loss).max())
        found = self.masses(loss)
        p_mass, q_mass = found.p[1:-1], found.q[1:-1]
        excess = chord_excess(order, loss, p_mass, q_mass, shift, found.relative_error)
        # Below, the function is at most α - 1. Above, the first law is at most e^{μx - μ²/2} times
        # the noise's, the second at least 1 - q times.
        excess += float(found.q[0]) * (order - 1.0)
        tail = 0.5 * order * (order - 1.0) * mu * mu - (order - 1.0) * math.log1p(-q)
        excess += math.exp(min(tail - 0.5 * _MARGIN**2, 700.0))
        slack = found.relative_error + 1e-11
        return min(plain, divergence(lift(excess) * (1.0 + slack), order))


def exchanged(plain: DominatingPair, q: float) -> DominatingPair | None:
    """Return the pair of Theorem E15 for noise whose pair of two contributions is ``plain``.

    None where its losses would leave the doubles. The mechanism knows that the theorem holds.
    """
    if q < _LEAST_RATE:
        return None
    if isinstance(plain, LaplacePair):
        if not _LEAST_REACH < plain.reach < _MOST_REACH:
            return None
        return ExchangedLaplace(plain, q)
    if not isinstance(plain, IntegerPair):
        return None
    return ExchangedAtoms(plain, replace(plain, shift=plain.shift // 2), q)


@dataclass(frozen=True)
class ExchangedAtoms(AtomicPair):
    """(1-q)·f + q·f(· - Δ) against (1-q)·f + q·f(· + Δ), f symmetric and unimodal on the integers.

    Parameters
    ----------
    plain, one : IntegerPair
        The pairs of noise at distance 2Δ and at distance Δ.
    q : float
        In (0, 1).
    """

    plain: IntegerPair
    one: IntegerPair
    q: float

    def atoms(self) -> Atoms:
        """Return one atom for every cell; the second law is the reflection of the first."""
        q, table = self.q, self.one.centred()
        if table.infinite_p > 0.0:  # no noise: a record that was drawn is seen
            rest = np.array([1.0 - q])
            return Atoms(np.zeros(1), rest, rest, q, q, 8.0 * U, 0.0)
        moved = loss_of_sample(q, table.loss)
        loss = np.maximum.accumulate(moved - moved[::-1])
        p = (1.0 - q) * table.q + q * table.p
        error = 2.0 * table.loss_error + 64.0 * U * float(np.abs(moved).max())
        return Atoms(
            loss, p, p[::-1].copy(), 0.0, 0.0, table.relative_error + 8.0 * U, error,
            table.absolute_error + 1e-323,
        )  # fmt: skip

    @property
    def support(self) -> tuple[float, float]:
        """The ends of the atoms, or no ends where the noise has none."""
        ends = self.plain.support
        return ends if math.isinf(ends[1]) else super().support

    @property
    def is_symmetric(self) -> bool:
        """True: a reflection exchanges the two."""
        return True

    @property
    def _unhidden(self) -> DominatingPair:
        """The pair of the noise without sampling."""
        return self.plain

    @property
    def variation(self) -> float:
        """Only a record that was drawn is seen."""
        return product_up(self.q, self.plain.variation)

    def finite_rdp(self, order: float) -> float:
        """Return the divergence, rounded up; where there are outcomes beyond the atoms, a bound.

        That of the noise without sampling, or of a removal: the second law is at least (1-q)·f.
        """
        plain = self.plain.finite_rdp(order)
        if math.isfinite(self.support[1]):
            return min(plain, super().finite_rdp(order))
        removal = SampledAtoms(self.one, self.q, False).finite_rdp(order)
        return min(plain, up(removal - math.log1p(-self.q), 8.0))


@dataclass(frozen=True)
class ExchangedLaplace(DominatingPair):
    """The same for Laplace noise; contributions may be vectors of ℓ1 norm Δ.

    To the right of 0 the noise moved left is e^-a times the noise, a the distance in scales, so
    that the loss is g(L) - g(-a), L that of the noise moved right and g that of a sample.

    Parameters
    ----------
    plain : LaplacePair
        The pair of noise at distance 2Δ.
    q : float
        In (0, 1).
    """

    plain: LaplacePair
    q: float

    @property
    def _one(self) -> LaplacePair:
        return LaplacePair(0.5 * self.plain.reach)

    @property
    def _ends(self) -> tuple[float, float]:
        """The loss of a sample at the ends of the noise's, -a and a."""
        a = self._one.reach
        low, high = loss_of_sample(self.q, np.array([-a, a])).tolist()
        return low, high

    @property
    def support(self) -> tuple[float, float]:
        """From the loss of all that is to the left of -Δ to that of all to the right of Δ."""
        low, high = self._ends
        most = up(high - low, 40.0)
        return -most, most

    @property
    def lattice(self) -> tuple[float, float]:
        """The two ends, where the atoms are."""
        low, high = self._ends
        return low - high, 2.0 * (high - low)

    @property
    def loss_error(self) -> float:
        """The error of the noise's, which a sample does not enlarge, and of the edges carried."""
        return up(2.0 * self._one.loss_error + 64.0 * U * (self._one.reach + self.support[1]))

    @property
    def _unhidden(self) -> DominatingPair:
        """The pair of the noise without sampling."""
        return self.plain

    @property
    def variation(self) -> float:
        """Only a record that was drawn is seen."""
        return product_up(self.q, float(self.plain.profile(0.0).upper))

    def masses(self, edges: FloatArray) -> Masses:
        """Return the masses right of 0, and left of it their reflection."""
        edges = np.asarray(edges, dtype=np.float64)
        right, error = self._right(edges[edges >= 0.0])
        left, _ = self._right(-edges[edges < 0.0][::-1])
        p, q = (
            np.concatenate([left[1 - i][:0:-1], [left[1 - i][0] + right[i][0]], right[i][1:]])
            for i in (0, 1)
        )
        return Masses(p, q, error)

    def _right(self, edges: FloatArray) -> tuple[FloatArray, float]:
        """Return both masses of the cells above 0 between 0 and ``edges`` >= 0, and their error."""
        q, a, least = self.q, self._one.reach, self._ends[0]
        inner = np.maximum(loss_of_sample_inverse(q, edges + least), -a)
        found = self._one.masses(np.maximum.accumulate(np.concatenate([[-a], inner])))
        right, noise = found.p[1:], found.q[1:]
        first = q * right + (1.0 - q) * noise
        second = ((1.0 - q) + q * math.exp(-a)) * noise
        return np.array([first, second]), found.relative_error + 16.0 * U

    def rdp(self, order: float) -> float:
        """Return the divergence, rounded up: by chords, or that without sampling."""
        return min(self.plain.rdp(order), divergence_of_masses(self, order))


ATTAINED = (ExchangedAtoms, ExchangedLaplace)  # by opposite contributions
