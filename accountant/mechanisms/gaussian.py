"""Gaussian noise: the plain mechanism, GDP, and the Poisson-subsampled pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import (
    LEAST,
    U,
    lift,
    ratio_down,
    ratio_up,
    up,
)
from accountant._core import answers as core
from accountant.bounds import Bounds
from accountant.errors import PrecisionError
from accountant.mechanisms.fields import BoundedContribution, Stated, set_fields
from accountant.pairs.base import GAUSSIAN, SAMPLED, DominatingPair, GaussianPart, LineLaw, Masses
from accountant.pairs.excess import REACH, cells, loss_of_sample_inverse, reflected
from accountant.relations import ADD_OR_REMOVE, NeighbouringRelation

_ROOT_8 = math.sqrt(8.0)
# Finite, unlike the μ of an analysis.
MU = checks.FINITE_EPSILON.renamed("mu", checks.MU.advice)


@dataclass(frozen=True, repr=False)
class SumNoise(BoundedContribution):
    """Noise on a sum of contributions of bounded ℓ2 norm; subclasses say which, and what it hides.

    Parameters
    ----------
    noise_multiplier, sensitivity, relation
        As in :class:`Gaussian`.
    """

    noise_multiplier: float
    sensitivity: float = field(default=1.0, kw_only=True)
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        set_fields(self, checks.NOISE_MULTIPLIER, checks.SENSITIVITY)


@dataclass(frozen=True, repr=False)
class Gaussian(SumNoise):
    """Gaussian noise on a sum of contributions, of any dimension.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise in every coordinate, > 0 (``inf`` allowed), in the unit in
        which ``sensitivity`` is given: with the default unit it is the noise multiplier.
    sensitivity : float, optional
        The largest ℓ2 norm of one record's contribution to the sum, >= 0.
    relation : NeighbouringRelation, keyword only
        Adding, removing or blanking a record moves the sum by ``sensitivity``; replacing one by
        twice as much, and the same statement then serves.

    Notes
    -----
    *Guarantee.* Dominated by N(Δ/σ, 1) against N(0, 1), attained, Δ doubled under replace-one
    (docs/theorems_mechanisms.md, Theorem M3).

    Examples
    --------
    >>> import accountant as ac
    >>> 4.37 < ac.Gaussian(1.0).epsilon(1e-5) < 4.38
    True
    """

    theorems = ("M3",)
    about = "Gaussian noise on a sum of contributions, of any dimension."

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the one pair, which is its own reverse by reflection."""
        return (_pair(self.noise_multiplier, self.distance),)


@dataclass(frozen=True, repr=False, init=False)
class GDP(Stated):
    """Any mechanism that is μ-Gaussian differentially private.

    Parameters
    ----------
    mu : float
        The parameter μ >= 0: no test tells neighbours apart better than N(μ, 1) from N(0, 1).
    relation : NeighbouringRelation, keyword only
        The relation under which the bound was derived.

    Notes
    -----
    *Guarantee.* Dominated by N(μ, 1) against N(0, 1), by definition (Dong, Roth, Su 2022; Theorem
    M11).
    """

    theorems = ("M11",)
    about = "Any mechanism that is μ-Gaussian differentially private."
    claim = "a μ"

    mu0: float = field(metadata={"argument": "mu"})
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __init__(self, mu: float, *, relation: NeighbouringRelation = ADD_OR_REMOVE) -> None:
        mu0 = checks.number(MU, mu)
        set_fields(self, mu0=mu0, relation=relation)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the Gaussian pair."""
        return (_pair(1.0, self.mu0),)


def _pair(noise: float, distance: float) -> GaussianPair:
    """Return the pair of normal laws ``distance`` apart."""
    if distance == 0.0:
        return GaussianPair(math.inf)
    if distance == 1.0:
        return GaussianPair(noise)
    least, most = ratio_down(noise, distance), ratio_up(noise, distance)
    return GaussianPair(least, exact=least == most)


@dataclass(frozen=True)
class GaussianPair(DominatingPair):
    """N(1, σ²) against N(0, σ²), Poisson-subsampled; q = 1 is plain.

    Parameters
    ----------
    noise_multiplier : float
        σ > 0, at most the true one when not ``exact``, which then is within the next three doubles.
    sampling_probability : float
        q in (0, 1].
    add : bool
        The reversed pair, N(0, σ²) against the mixture.
    exact : bool
        Whether σ is the true noise multiplier.
    """

    noise_multiplier: float
    sampling_probability: float = 1.0
    add: bool = False
    exact: bool = True

    @property
    def line(self) -> LineLaw | None:
        """The transform e^{z(z-1)/2σ²}, or what the native core makes of a sampled step."""
        sigma, q = self.noise_multiplier, self.sampling_probability
        if not (1e-100 < sigma < 1e100 and q >= 1e-280):
            return None
        return LineLaw(GAUSSIAN, 1.0 / sigma / sigma) if q == 1.0 else LineLaw(SAMPLED)

    @property
    def gaussian_part(self) -> GaussianPart:
        """The parameters."""
        return GaussianPart(self.sampling_probability, self.noise_multiplier, self.add, self.exact)

    @property
    def support(self) -> tuple[float, float]:
        """Bounded on the side where the record was not sampled."""
        if self.noise_multiplier == math.inf:
            return 0.0, 0.0
        if self.sampling_probability == 1.0:
            return -math.inf, math.inf
        unsampled = math.log1p(-self.sampling_probability) * (1.0 + 8.0 * U)
        return (-math.inf, -unsampled) if self.add else (unsampled, math.inf)

    @property
    def pure_epsilon(self) -> float:
        """Infinite: sampled or not, one end of the losses is. 0 without any."""
        return 0.0 if self.noise_multiplier == math.inf else math.inf

    @property
    def loss_error(self) -> float:
        """A few units in the last place of the losses within reach of 1e-300."""
        if self.noise_multiplier == math.inf:
            return 0.0
        mu = 1.0 / self.noise_multiplier
        # x = tσ + 1/2σ carries three roundings; an inexact σ moves the loss as much again.
        reach = REACH * mu + mu * mu
        if self.sampling_probability < 1.0:
            # The edges are carried back through the sampling too (Theorem M6).
            reach = 2.0 * reach + 1.0
        return up(16.0 * U * reach)

    @property
    def variation(self) -> float:
        """q·(2Φ(1/2σ) - 1)."""
        return _variation(self.sampling_probability, self.noise_multiplier)

    @property
    def mu(self) -> float:
        """1/σ, sampled or not (Theorem M11)."""
        return ratio_up(1.0, self.noise_multiplier)

    def rdp(self, order: float) -> float:
        """Return the divergence, rounded up."""
        if self.noise_multiplier == math.inf:
            return 0.0
        if self.sampling_probability == 1.0:
            return up(lift(0.5 * order / self.noise_multiplier / self.noise_multiplier))
        direction = core.ADD if self.add else core.REMOVE
        q, sigma = self.sampling_probability, self.noise_multiplier
        return lift(core.renyi_bounds(q, sigma, order, direction)[1])

    def masses(self, edges: FloatArray) -> Masses:
        """Return the masses between edges, which are carried back to the noise."""
        edges = np.asarray(edges, dtype=np.float64)
        if self.noise_multiplier == math.inf:
            return Masses.at(0.0, edges)
        if self.add:
            return self._remove(-edges[::-1]).reverse()
        return self._remove(edges)

    def _remove(self, edges: FloatArray) -> Masses:
        sigma, q = self.noise_multiplier, self.sampling_probability
        if 1.0 / sigma == math.inf:
            raise PrecisionError(f"a noise multiplier of {sigma:g} has no table of losses")
        below = 0
        if q < 1.0:
            below = int(np.searchsorted(edges, math.log1p(-q), side="right"))
            edges = loss_of_sample_inverse(q, edges[below:])
        # Round-off must not turn neighbouring edges round.
        with np.errstate(over="ignore"):  # far beyond any mass
            x = np.maximum.accumulate(edges * sigma + 0.5 / sigma)
        unsampled, error = cells(x, 0.0)
        sampled, sampled_error = cells(x, 1.0 / sigma)
        error = max(error, sampled_error) + 4.0 * U
        if not self.exact:
            error += 16.0 * U * (REACH / sigma + 1.0 / sigma / sigma)
        mixed = sampled if q == 1.0 else (1.0 - q) * unsampled + q * sampled
        padding = np.zeros(below)
        return Masses(np.concatenate([padding, mixed]), np.concatenate([padding, unsampled]), error)

    def profile(self, epsilon: float) -> Bounds:
        """Bracket H(ε) of one release at any real ε."""
        if epsilon >= 0.0:
            return self._profile(epsilon, self.add)
        return reflected(self._profile(-epsilon, not self.add), epsilon)

    def _profile(self, epsilon: float, add: bool) -> Bounds:
        if self.noise_multiplier == math.inf:
            return Bounds(0.0, 0.0)
        direction = core.ADD if add else core.REMOVE
        q, sigma = self.sampling_probability, self.noise_multiplier
        lower, upper = core.delta_bounds(q, sigma, 1, epsilon, direction)
        if not self.exact:
            lower = min(
                lower, core.delta_bounds(q, self.gaussian_part.most_noise, 1, epsilon, direction)[0]
            )
        return Bounds(lower, upper)


def merged(parts: Sequence[tuple[GaussianPair, int]]) -> GaussianPair:
    """Return the one pair that n of each unsampled one compose to: 1/σ² = Σ n/σᵢ² (Theorem E1)."""
    noisy = [(Fraction(one.noise_multiplier), n) for one, n in parts if n and one.mu > 0.0]
    if not noisy:
        return GaussianPair(math.inf)
    variance = 1 / sum((n / sigma**2 for sigma, n in noisy), Fraction())
    # An integer root in units so small that only the last step, to a double, rounds: down.
    shift = 64 + max(variance.denominator.bit_length() - variance.numerator.bit_length(), 0)
    root = math.isqrt((variance.numerator << 2 * shift) // variance.denominator)
    sigma, unit = float(Fraction(root, 1 << shift)), Fraction(1, 1 << shift)
    if Fraction(sigma) > root * unit:
        sigma = math.nextafter(sigma, 0.0)
    sigma = max(sigma, LEAST)  # which costs infinitely much already, as in ratio_down
    exact = Fraction(sigma) ** 2 == variance and all(one.exact for one, _ in parts)
    return GaussianPair(sigma, exact=exact)


# Both directions of a pair have one, and a composition asks for it more than once.
@lru_cache(maxsize=2**14)
def _variation(q: float, sigma: float) -> float:
    """Return q·(2Φ(1/2σ) - 1), rounded up."""
    if sigma == math.inf:
        return 0.0
    # The quotients are rounded; 64 units cover that, too.
    plain = up(lift(math.erf(1.0 / sigma / _ROOT_8)), 64.0)
    return min(up(lift(q * plain)), 1.0)
