"""Discrete Gaussian noise on a vector of integers, described by its Rényi curve."""

from __future__ import annotations

from dataclasses import dataclass

from accountant._rounding import half_square, ratio_up
from accountant.mechanisms.concentrated import ConcentratedPair
from accountant.mechanisms.gaussian import SumNoise
from accountant.pairs.base import DominatingPair


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
