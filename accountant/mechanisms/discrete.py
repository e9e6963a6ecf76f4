"""Noise on the integers: discrete Gaussian and Laplace, Skellam, and sums of many clients."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from accountant import checks
from accountant._basics.rounding import half_square, ratio_up
from accountant.errors import UnsupportedError
from accountant.mechanisms.concentrated import ConcentratedPair
from accountant.mechanisms.fields import BoundedContribution, set_fields
from accountant.mechanisms.gaussian import SumNoise
from accountant.mechanisms.integer_laws import (
    MOST_ATOMS,
    GaussianSumLaw,
    GeometricLaw,
    IntegerLaw,
    SkellamLaw,
    atoms_within_reach,
)
from accountant.pairs.atoms import AtomicPair, Atoms
from accountant.pairs.base import DominatingPair, LineLaw
from accountant.relations import ADD_OR_REMOVE, NeighbouringRelation

CLIENTS = checks.integers("contributors", 1, 2**20, "Count those who surely add their noise")
VARIANCE = checks.positive(
    "variance", "It is that of all the noise in the sum: survivors times the variance of each"
)
# The least noise of a client in a sum: smaller noise is almost always 0.
LEAST_SIGMA = 0.2


class IntegerNoise(BoundedContribution):
    """Noise on an integer, whose probabilities fall with its modulus; subclasses say which.

    They have the fields ``sensitivity``, an integer, and ``relation``, and their own ``numbers``.
    """

    is_unimodal = True
    numbers: ClassVar[tuple[checks.Argument, ...]] = ()

    def __post_init__(self) -> None:
        moved = checks.integer("sensitivity", self.sensitivity, 0, 2**40)
        set_fields(self, *self.numbers, sensitivity=moved)


@dataclass(frozen=True)
class IntegerPair(AtomicPair):
    """One noise on the integers around ``shift`` and around 0: x ↦ shift - x exchanges the two."""

    law: IntegerLaw
    shift: int

    is_symmetric = True

    @property
    def _nothing(self) -> Atoms | None:
        """The one atom, where nothing is told apart or all is."""
        told = 1.0 if self.infinite_mass else 0.0
        if not (told or self.shift == 0 or self.law.spread == math.inf):
            return None
        mass = np.full(1, 1.0 - told)
        return Atoms(np.zeros(1), mass, mass.copy(), told, told, 0.0, 0.0)

    def atoms(self) -> Atoms:
        """Return one atom for every integer within reach of either centre."""
        return self._nothing or self.law.atoms(self.shift, 0)

    def centred(self) -> Atoms:
        """Return them on cells that x ↦ -x exchanges: as many on the left as on the right."""
        return self._nothing or self.law.atoms(self.shift, self.shift)

    @property
    def infinite_mass(self) -> float:
        """None, but for noise that hides nothing."""
        return 1.0 if self.shift and self.law.tells_all(self.shift) else 0.0

    @property
    def support(self) -> tuple[float, float]:
        """The ends of the atoms where losses are bounded, or no ends."""
        bounded = self._nothing or self.pure_epsilon < math.inf
        return super().support if bounded else (-math.inf, math.inf)

    @property
    def lattice(self) -> tuple[float, float] | None:
        """That of the law."""
        return None if self._nothing else self.law.lattice(self.shift)

    @property
    def line(self) -> LineLaw | None:
        """That of the law; the atoms elsewhere."""
        return (None if self._nothing else self.law.line(self.shift)) or super().line

    @property
    def rho(self) -> float:
        """That of the law, or of the pure ε."""
        return 0.0 if self.pure_epsilon == 0.0 else min(self.law.rho(self.shift), super().rho)

    @property
    def pure_epsilon(self) -> float:
        """That of the law."""
        if self._nothing:
            return math.inf if self.infinite_mass else 0.0
        return self.law.pure_epsilon(self.shift)

    def finite_rdp(self, order: float) -> float:
        """Return the divergence of the finite losses, rounded up."""
        found = None if self._nothing else self.law.divergence(self.shift, order)
        return super().finite_rdp(order) if found is None else found


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
        if shift and sigma < math.inf and atoms_within_reach(sigma, shift) > MOST_ATOMS:
            return (_curve_of_vectors(shift, sigma),)
        return (IntegerPair(GaussianSumLaw(sigma), shift),)


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
        return (IntegerPair(GeometricLaw(self.scale), int(self.distance)),)


@dataclass(frozen=True, repr=False)
class DiscreteGaussianSum(IntegerNoise):
    """Discrete Gaussian noises of several clients on one integer (the distributed one).

    Parameters
    ----------
    noise_multiplier : float
        The parameter σ of each client's noise, >= 0.2, in the unit of ``sensitivity``.
    contributors : int
        How many clients surely add their noise: of n clients of whom at most a share f drops out
        or looks at its own noise, (1 - f) n. More only add noise.
    sensitivity : int, optional
        How far one record (or one client) can move the integer, >= 0.
    relation : NeighbouringRelation, keyword only
        As in :class:`~accountant.mechanisms.gaussian.Gaussian`.

    Notes
    -----
    *Guarantee.* The pair of two integers ``sensitivity`` apart under the law of the sum itself,
    which is not a discrete Gaussian, attained (docs/theorems_mechanisms.md, Theorem M22). For a
    vector see :func:`~accountant.sampling.discrete_gaussian_sum_of_vectors`.

    *Source.* Kairouz, Liu, Steinke 2021, who bound its concentrated divergence.

    Examples
    --------
    >>> import accountant as ac
    >>> round_of_a_federation = ac.DiscreteGaussianSum(2.0, contributors=80)
    >>> f"{(1000 * round_of_a_federation).epsilon(1e-6):.3f}"
    '9.482'
    """

    theorems = ("M22",)
    about = "Discrete Gaussian noises of several clients on one integer (the distributed one)."

    # A convolution of symmetric log-concave laws is symmetric and log-concave (Theorem M22).
    numbers = (checks.NOISE_MULTIPLIER,)

    noise_multiplier: float
    contributors: int = field(kw_only=True)
    sensitivity: int = field(default=1, kw_only=True)
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "contributors", checks.whole(CLIENTS, self.contributors))
        if not (self.noise_multiplier >= LEAST_SIGMA):
            raise UnsupportedError(
                f"DiscreteGaussianSum must have noise_multiplier >= {LEAST_SIGMA}; got"
                f" {self.noise_multiplier!r}. Noise that is almost always 0 hides nothing: use a"
                " finer unit"
            )

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the one pair, which is its own reverse by reflection."""
        law = GaussianSumLaw(self.noise_multiplier, self.contributors)
        return (IntegerPair(law, int(self.distance)),)


@dataclass(frozen=True, repr=False)
class Skellam(IntegerNoise):
    """Skellam noise on one integer: the difference of two Poisson counts of equal means.

    Parameters
    ----------
    variance : float
        Of the noise, > 0: twice the mean of each count. Skellam noises add up to Skellam noise, so
        for a secure sum this is the sum of the variances of those who surely add theirs.
    sensitivity : int, optional
        How far one record (or one client) can move the integer, >= 0.
    relation : NeighbouringRelation, keyword only
        As in :class:`~accountant.mechanisms.gaussian.Gaussian`.

    Notes
    -----
    *Guarantee.* The pair of two integers ``sensitivity`` apart, attained
    (docs/theorems_mechanisms.md, Theorem M21).

    *Source.* Agarwal, Kairouz, Liu 2021, who bound its Rényi divergence.

    Examples
    --------
    A hundred clients of whom at least eighty stay, each with noise of variance 2.

    >>> import accountant as ac
    >>> round_of_a_federation = ac.Skellam(80 * 2.0)
    >>> f"{(1000 * round_of_a_federation).epsilon(1e-6):.3f}"
    '14.450'
    """

    theorems = ("M21",)
    about = "Skellam noise on one integer: the difference of two Poisson counts of equal means."

    # The ratios I_{k+1}/I_k of successive masses are below one: unimodal (Theorem M21).
    numbers = (VARIANCE,)

    variance: float
    sensitivity: int = field(default=1, kw_only=True)
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the one pair, which is its own reverse by reflection."""
        return (IntegerPair(SkellamLaw(self.variance), int(self.distance)),)


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
        return (_curve_of_vectors(self.distance, self.noise_multiplier),)


def _curve_of_vectors(shift: float, sigma: float) -> ConcentratedPair:
    """Return Δ²/2σ²-zCDP; reflection exchanges the two laws."""
    return ConcentratedPair(half_square(ratio_up(float(shift), sigma)), is_symmetric=True)
