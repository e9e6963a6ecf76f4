"""Noise on the integers: discrete Gaussian and Laplace, Skellam, and sums of many clients."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from accountant import checks
from accountant._basics.rounding import U, half_square, ratio_up, up
from accountant.errors import UnsupportedError
from accountant.mechanisms.concentrated import ConcentratedPair
from accountant.mechanisms.fields import BoundedContribution, set_fields
from accountant.mechanisms.gaussian import SumNoise
from accountant.mechanisms.integer_laws import (
    MOST_ATOMS,
    GaussianSumPair,
    GeometricPair,
    IntegerPair,
    atoms_within_reach,
)
from accountant.pairs.atoms import Atoms
from accountant.pairs.base import DominatingPair
from accountant.relations import ADD_OR_REMOVE, NeighbouringRelation
from accountant.search import narrow

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
        return (GaussianSumPair(sigma, shift),)


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
        return (GeometricPair(self.scale, int(self.distance)),)


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
        return (GaussianSumPair(self.noise_multiplier, int(self.distance), self.contributors),)


# Of Skellam noise: the largest variance whose table is made.
MOST_VARIANCE = 1e9
# The largest sensitivity that is listed though the noise does not reach so far.
FARTHEST = 4096
# The least logarithm of a mass that is listed; all others together are below the doubles.
LEAST_LOG = -760.0
# Bits of the fixed-point ratios, beside those of the variance.
BITS = 128


@dataclass(frozen=True)
class SkellamPair(IntegerPair):
    """The law of the difference of two Poisson counts of equal means, of variance ``spread``."""

    def _listed(self, further: int) -> Atoms:
        """Return one atom for every integer."""
        reach, shift = self._reach(), self.shift
        if not (self.spread <= MOST_VARIANCE and shift <= max(reach, FARTHEST)):
            raise UnsupportedError(
                f"Skellam must have a variance of at most {MOST_VARIANCE:g} and a sensitivity"
                f" within reach of the noise; got variance = {self.spread!r} and sensitivity"
                f" {shift}"
            )
        log_mass, error = self._log_masses(reach + shift + further)
        x = np.arange(-reach - further, reach + shift + 1)
        log_p, log_q = log_mass[np.abs(x - shift)], log_mass[np.abs(x)]
        # The ratio of a log-concave law and its shift increases: so does its running maximum, which
        # is as close to the truth as the ratios are.
        loss = np.maximum.accumulate(log_p - log_q).astype(np.float64)
        p, q = (np.exp(log.astype(np.float64)) for log in (log_p, log_q))
        mass_error = error + (2.0 * float(np.abs(log_mass[-1])) + 8.0) * U
        loss_error = 2.0 * error + 2.0 * U * float(np.abs(loss).max())
        return Atoms(loss, p, q, 0.0, 0.0, mass_error, loss_error, 4e-323)

    def finite_rdp(self, order: float) -> float:
        """Return the divergence, or the bound by one Poisson count for high orders (M21)."""
        if self._nothing:
            return super().finite_rdp(order)
        k, shift, power = self._reach(), self.shift, (order - 1.0) * self.shift
        most = 1.0 + 2.0 * (k + shift) / self.spread  # P/Q to the power 1/Δ, k beyond the centre
        # Where outcomes that are in no atom add less than e^-100 to E[e^{αL}].
        if (
            power * (2.0 / self.spread) / most <= 0.99 * math.asinh(k / self.spread)
            and power * math.log(most) + self._log_tail(float(k)) <= -101.0
        ):
            return super().finite_rdp(order)
        return _poisson_rdp(0.5 * self.spread, shift, order)

    def _log_tail(self, k: float) -> float:
        """Bound log P{X >= k} (Chernoff)."""
        ratio = min(k / self.spread, 1e300)
        # √(1 + r²) - 1 without cancellation.
        return k * (ratio / (1.0 + math.hypot(1.0, ratio))) - k * math.asinh(ratio)

    def _reach(self) -> int:
        """Return an integer beyond which all masses are below e^LEAST_LOG."""
        high = 1.0
        while self._log_tail(high) > LEAST_LOG - 1.0:  # a unit for the rounding of the bound
            high *= 1.1
        return math.ceil(high)

    def _log_masses(self, largest: int) -> tuple[np.ndarray, float]:
        """Return log P(k) for k = 0..largest, and a bound on the errors.

        The ratios r_k = I_{k+1}/I_k of successive masses satisfy r_k = 1 / (r_{k+1} + 2(k+1)/V)
        (V the variance). Backwards the recursion forgets where it starts: an error at k + 1 is
        multiplied by at most r_k² < 1 up to second order. It runs in integers, in units of 2^-bits.
        """
        small = max(0, math.ceil(-math.log2(self.spread)))
        bits = BITS + 2 * small
        one = 1 << bits
        numerator, denominator = self.spread.as_integer_ratio()
        start = largest + 64 + math.ceil(math.sqrt(max(1600.0, 4.0 * self.spread)))
        ratio, forgotten = one >> 1, 1.0  # the true one is in (0, 1)
        ratios = np.empty(largest)  # times 2^small, so that none is below the normal doubles
        for k in range(start, -1, -1):
            ratio = (one << bits) // (ratio + 2 * (k + 1) * denominator * one // numerator)
            if k >= largest:
                forgotten *= (ratio / one) ** 2
            else:
                ratios[k] = (ratio << small) / one
        # Two quotients are cut by less than a unit each, the first times r_k² < 1: less than
        # 2·start units in all. The start is off by less than 1/2, and 1/(r + c) moves by at most
        # twice what its derivative says while r is off by so little.
        steps = np.log(ratios.astype(np.longdouble)) - small * np.log(np.longdouble(2.0))
        log = np.concatenate([np.zeros(1, np.longdouble), np.cumsum(steps)])
        total = np.longdouble(1.0) + 2.0 * np.exp(log[1:]).sum()
        log -= np.log(total)
        unit = float(np.finfo(np.longdouble).eps)
        # What is forgotten is a power of at least 64 of V/2 where V is small: over 2^-small it is
        # less than its root.
        least = float(ratios.min(initial=1.0))
        in_ratio = (math.sqrt(forgotten) + 8.0 * start * 2.0 ** (small - bits)) / least + 2.0 * U
        size = float(np.abs(log[-1])) + 1.0
        error = largest * (in_ratio + 2.0 * unit * size) + 8.0 * unit * size
        # The total's error is at most that of the masses in it.
        return log, 2.0 * error


def _poisson_rdp(mean: float, shift: int, order: float) -> float:
    """Bound the divergence by that of one of the two counts, moved by ``shift`` (Theorem M21)."""
    power = (order - 1.0) * shift
    if not power < 1e300:
        return math.inf

    def below(s: float) -> bool:
        return s * (shift + mean * math.exp(s)) < power

    s, _ = narrow(below, math.exp(-60.0), 700.0, 60, geometric=True)  # a mere choice
    # Logarithms one by one: the mean may be below all quotients.
    logs = shift * (math.log(power) - math.log(s) - math.log(mean) - 1.0)
    rest = (s * shift + mean * math.expm1(s)) / (order - 1.0)
    size = shift * (abs(math.log(power)) + abs(math.log(s)) + abs(math.log(mean)) + 1.0) + rest
    return max(up(logs + rest + 32.0 * U * size), 0.0)


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
        return (SkellamPair(self.variance, int(self.distance)),)


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
