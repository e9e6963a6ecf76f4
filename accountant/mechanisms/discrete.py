"""Noise on the integers: discrete Gaussian and discrete Laplace (geometric)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, half_square, lift, ratio_up, up
from accountant.errors import UnsupportedError
from accountant.mechanisms.concentrated import ConcentratedPair
from accountant.mechanisms.fields import BoundedContribution, set_fields
from accountant.mechanisms.gaussian import SumNoise
from accountant.pairs.atoms import AtomicPair, Atoms
from accountant.pairs.base import DominatingPair
from accountant.pairs.excess import divergence
from accountant.pairs.line import LATTICE, LineLaw
from accountant.relations import NeighbouringRelation

ADD_OR_REMOVE = NeighbouringRelation.ADD_OR_REMOVE
MOST_ATOMS = 4_000_000
HIDES = 1e-150  # parameters below it hide nothing: a loss is 1/2σ² at least
LEAST_DAMPED = 0.3  # 2π²σ² is at least 1.7
REACH = 38.7  # standard deviations; exp(-38.7²/2) < 1e-325


class IntegerNoise(BoundedContribution):
    """Noise on an integer, whose probabilities fall with its modulus; subclasses say which.

    They have the fields ``sensitivity``, an integer, and ``relation``, and their own ``numbers``.
    """

    is_unimodal = True
    numbers: ClassVar[tuple[checks.Argument, ...]] = ()

    def __post_init__(self) -> None:
        moved = checks.integer("sensitivity", self.sensitivity, 0, 2**40)
        set_fields(self, *self.numbers, sensitivity=moved)


class IntegerPair(AtomicPair):
    """One noise on the integers around ``shift`` and around 0: x ↦ shift - x exchanges the two."""

    shift: int

    @abstractmethod
    def _from(self, further: int) -> Atoms:
        """Return the atoms of all integers within reach, and of ``further`` ones on the left."""

    @property
    def _silent(self) -> bool:
        """Whether nothing is told apart."""
        return self.shift == 0

    @property
    def _told(self) -> bool:
        """Whether all is told: the noise is nearly always 0, and losses are beyond the doubles."""
        return False

    def atoms(self) -> Atoms:
        """Return one atom for every integer within reach of either centre."""
        return SILENT if self._silent else TOLD if self._told else self._from(0)

    def centred(self) -> Atoms:
        """Return them with as many integers on the left as on the right: the noise is unimodal."""
        return self.atoms() if self._silent or self._told else self._from(self.shift)

    def _seen(
        self, further: int, span: int, mass: Callable[[FloatArray], FloatArray], least: float = 0.0
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the integers of more than the ``least`` mass, and their masses under P and Q."""
        x = np.arange(-span - further, span + self.shift + 1, dtype=np.float64)
        p, q = mass(x - self.shift), mass(x)
        keep = (p > least) | (q > least)
        if further:
            keep |= keep[::-1]
        return x[keep], p[keep], q[keep]

    @property
    def support(self) -> tuple[float, float]:
        """Unbounded."""
        return (0.0, 0.0) if self._silent or self._told else (-math.inf, math.inf)

    @property
    def is_symmetric(self) -> bool:
        """True: x ↦ shift - x exchanges the two."""
        return True


# The atoms of what tells nothing, and of what tells all.
SILENT = Atoms(np.zeros(1), np.ones(1), np.ones(1), 0.0, 0.0, 0.0, 0.0)
TOLD = Atoms(np.zeros(1), np.zeros(1), np.zeros(1), 1.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True, repr=False)
class DiscreteGaussian(IntegerNoise):
    """Discrete Gaussian noise on one integer: P(x) ∝ exp(-x²/2σ²), x an integer.

    Parameters
    ----------
    noise_multiplier : float
        The parameter σ > 0 (close to the standard deviation for σ above 1/2).
    sensitivity : int, optional
        How far one record can move the integer, >= 0.
    relation : NeighbouringRelation, keyword only
        As in :class:`~accountant.mechanisms.gaussian.Gaussian`.

    Notes
    -----
    *Guarantee.* The pair of two integers ``sensitivity`` apart, attained (Canonne, Kamath, Steinke
    2020; docs/theorems_mechanisms.md, Theorem M13). With σ above 51,000 the table of the losses
    would be too large: the noise is then known by its Rényi curve, as that on a vector is
    (:class:`~accountant.mechanisms.discrete.DiscreteGaussianVector`), and
    ``accountant.sampling.discrete_gaussian_sum_of_vectors(sigma, coordinates=1)`` is sharper.
    """

    theorems = ("M13",)
    about = "Discrete Gaussian noise on one integer: P(x) ∝ exp(-x²/2σ²), x an integer."

    numbers = (checks.NOISE_MULTIPLIER,)

    noise_multiplier: float
    sensitivity: int = field(default=1, kw_only=True)
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the one pair, which is its own reverse by reflection."""
        sigma, shift = self.noise_multiplier, int(self.distance)
        if shift and sigma < math.inf and atoms_of(sigma, shift) > MOST_ATOMS:
            return (DiscreteGaussianVectorPair(half_square(ratio_up(float(shift), sigma))),)
        return (DiscreteGaussianPair(sigma, shift),)


def atoms_of(sigma: float, shift: int) -> int:
    """Return about how many integers are within reach of either centre; no fewer than the shift."""
    return 2 * math.ceil(min(REACH * sigma, MOST_ATOMS)) + shift


@dataclass(frozen=True)
class DiscreteGaussianPair(IntegerPair):
    """Discrete Gaussians around ``shift`` and around 0."""

    sigma: float
    shift: int

    @property
    def _silent(self) -> bool:
        return self.shift == 0 or self.sigma == math.inf

    @property
    def _told(self) -> bool:
        return self.sigma < HIDES

    def _from(self, further: int) -> Atoms:
        sigma, shift = self.sigma, self.shift
        if atoms_of(sigma, shift) > MOST_ATOMS:
            raise UnsupportedError(
                f"the loss distribution of {self!r} has more than {MOST_ATOMS} atoms; account"
                " ZCDP(sensitivity**2 / (2 * sigma**2)) instead"
            )
        span = math.ceil(REACH * sigma)
        noise = np.arange(-span, span + 1, dtype=np.float64)
        total = math.fsum(np.exp(-0.5 * (noise / sigma) ** 2).tolist())
        x, p, q = self._seen(further, span, lambda x: np.exp(-0.5 * (x / sigma) ** 2) / total)
        loss = shift * (2.0 * x - shift) / (2.0 * sigma) / sigma
        most = float(np.abs(loss).max())
        # The exponent, at most 750, carries three roundings. Below the normal doubles each mass is
        # a few of the least off; those that are less than one are a hundredth of all, at most.
        faint = 4e-323 + 5e-326 * (2.0 * span + shift + further + 1.0)
        return Atoms(loss, p, q, 0.0, 0.0, 2500.0 * U, 6.0 * U * most, faint)

    @property
    def infinite_mass(self) -> float:
        """None, but for noise that hides nothing."""
        return 1.0 if self.shift and self.sigma < HIDES else 0.0

    @property
    def lattice(self) -> tuple[float, float] | None:
        """Steps of Δ/σ²."""
        spacing = self.shift / self.sigma / self.sigma
        offset = -0.5 * self.shift * spacing
        return (offset, spacing) if spacing > 0.0 and math.isfinite(offset) else None

    @property
    def line(self) -> LineLaw | None:
        """A quotient of theta functions where six terms of them do; the atoms elsewhere."""
        sigma, shift = self.sigma, float(self.shift)
        if not (shift > 0.0 and LEAST_DAMPED <= sigma < math.inf):
            return super().line
        ratio = shift / sigma
        return LineLaw(LATTICE, ratio * ratio, 2.0 * (math.pi * sigma) ** 2, shift)

    @property
    def rho(self) -> float:
        """Δ²/2σ² (Canonne, Kamath, Steinke 2020, Theorem 4)."""
        return 0.0 if self._silent else half_square(ratio_up(float(self.shift), self.sigma))

    def rdp(self, order: float) -> float:
        """Return αΔ²/2σ², exact where αΔ is an integer and close above it elsewhere."""
        return up(order * self.rho)

    def finite_rdp(self, order: float) -> float:
        """Return the divergence of the finite losses, rounded up."""
        return 0.0 if self.sigma < HIDES else self.rdp(order)


@dataclass(frozen=True, repr=False)
class DiscreteLaplace(IntegerNoise):
    """Discrete Laplace (two-sided geometric) noise on one integer: ``P(x) ∝ exp(-|x|/b)``.

    Parameters
    ----------
    scale : float
        The parameter b > 0.
    sensitivity : int, optional
        How far one record can move the integer, >= 0.
    relation : NeighbouringRelation, keyword only
        As in :class:`~accountant.mechanisms.gaussian.Gaussian`.

    Notes
    -----
    *Guarantee.* The pair of two integers ``sensitivity`` apart, attained (Ghosh, Roughgarden,
    Sundararajan 2012; docs/theorems_mechanisms.md, Theorem M13).
    """

    theorems = ("M13",)
    about = "Discrete Laplace (two-sided geometric) noise on one integer: P(x) ∝ exp(-|x|/b)."

    numbers = (checks.SCALE,)

    scale: float
    sensitivity: int = field(default=1, kw_only=True)
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the one pair, which is its own reverse by reflection."""
        return (DiscreteLaplacePair(self.scale, int(self.distance)),)


@dataclass(frozen=True)
class DiscreteLaplacePair(IntegerPair):
    """Two-sided geometric laws around ``shift`` and around 0."""

    scale: float
    shift: int

    @property
    def _silent(self) -> bool:
        return self.shift == 0 or self.scale == math.inf

    @property
    def _told(self) -> bool:
        return not self.shift / self.scale < math.inf

    def _from(self, further: int) -> Atoms:
        """Return the integers from 0, or from -Δ, to Δ, the ends with their tails."""
        b, shift = self.scale, self.shift
        if not (shift < MOST_ATOMS):
            raise UnsupportedError(
                f"the loss distribution of {self!r} has more than {MOST_ATOMS} atoms; account"
                " Laplace(scale), which is close to it, only if that is what ran, or"
                " PureDP(sensitivity / scale)"
            )
        most = shift / b
        x = np.arange(shift + 1, dtype=np.float64)
        rate = 1.0 / b
        # q(x) = tanh(1/2b)·e^{-x/b}; the end at 0 has all x <= 0, the end at Δ all x >= Δ.
        q = math.tanh(0.5 * rate) * np.exp(-x / b)
        q[0] = 1.0 / (1.0 + math.exp(-rate))
        q[-1] = math.exp(-shift / b) / (1.0 + math.exp(-rate))
        loss = (2.0 * x - shift) / b
        error = (32.0 + 4.0 * min(most, 700.0)) * U
        p = q[::-1].copy()
        if further:
            # To the left of 0 the ratio is e^{-Δ/b}; to the right of Δ it is its inverse.
            loss = np.concatenate([np.full(shift, loss[0]), loss])
            q = np.concatenate([q[:0:-1], [math.tanh(0.5 * rate)], q[1:]])
            p = np.concatenate([q[: shift + 1] * math.exp(-shift / b), p[1:]])
        return Atoms(loss, p, q, 0.0, 0.0, error, 4.0 * U * most)

    @property
    def support(self) -> tuple[float, float]:
        """The least and the largest loss, with their errors."""
        return super(IntegerPair, self).support

    @property
    def lattice(self) -> tuple[float, float] | None:
        """Steps of 2/b from -Δ/b."""
        if self.shift == 0 or self.scale == math.inf or not (2.0 / self.scale < math.inf):
            return None
        return -self.shift / self.scale, 2.0 / self.scale

    @property
    def pure_epsilon(self) -> float:
        """Δ/b."""
        return ratio_up(float(self.shift), self.scale) if self.shift else 0.0

    def finite_rdp(self, order: float) -> float:
        """Return the divergence, rounded up; by the pure ε where there are too many atoms."""
        if self.shift < 20_000:
            return super().finite_rdp(order)
        e = self.pure_epsilon
        small = (order - 1.0) * e
        if small > 600.0:
            return up(e)
        excess = math.expm1(small) * -math.expm1(-order * e) / (1.0 + math.exp(-e))
        return divergence(lift(excess) * (1.0 + 64.0 * U), order)


@dataclass(frozen=True, repr=False)
class DiscreteGaussianVector(SumNoise):
    """Discrete Gaussian noise on every coordinate of a vector of integers.

    Parameters
    ----------
    noise_multiplier : float
        The parameter σ of the noise, > 0 (``inf`` allowed), in the unit in which ``sensitivity``
        is given.
    sensitivity : float, optional
        The largest ℓ2 norm of one record's contribution to the vector, >= 0.
    relation : NeighbouringRelation, keyword only
        As in :class:`~accountant.mechanisms.gaussian.Gaussian`.

    Notes
    -----
    *Guarantee.* Δ²/2σ²-zCDP (Canonne, Kamath, Steinke 2020, Theorem 4). On a Poisson sample the
    Rényi bound of the Poisson-sampled Gaussian at integer orders, in both directions
    (docs/theorems_training.md, Theorem T7). The (ε, δ) curve of a vector is known no better: that
    of one integer is :class:`~accountant.mechanisms.discrete.DiscreteGaussian`.

    Examples
    --------
    >>> import accountant as ac
    >>> step = ac.PoissonSampled(ac.DiscreteGaussianVector(1.0), 0.01)
    >>> 2.0 < (1000 * step).epsilon(1e-5) < 2.11
    True
    """

    theorems = ("T7",)
    about = "Discrete Gaussian noise on every coordinate of a vector of integers."

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the one curve, which serves both directions by reflection."""
        shift = ratio_up(self.distance, self.noise_multiplier)
        return (DiscreteGaussianVectorPair(half_square(shift)),)


@dataclass(frozen=True)
class DiscreteGaussianVectorPair(ConcentratedPair):
    """Discrete Gaussians around a vector of integers and around 0: x ↦ shift - x exchanges them."""

    @property
    def is_symmetric(self) -> bool:
        """True: the reflection is a bijection of the integer vectors."""
        return True
