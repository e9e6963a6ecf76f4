"""The local model: every user adds noise to the own report, of a number or of one of k values."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant.checks import Argument
from accountant.errors import DomainError
from accountant.learn.blocks import interval
from accountant.learn.selection.noisy_max import EPSILON, Generator, generator_of
from accountant.learn.validation import class_labels, numbers, private
from accountant.mechanisms import Gaussian, Laplace, PureDP, RandomizedResponse, ShuffledResponses
from accountant.mechanisms.base import Described, Mechanism
from accountant.noise import SecureGenerator
from accountant.noise.exact_samplers import rounded_laplace, uniform_index
from accountant.relations import NeighbouringRelation

__all__ = [
    "FrequencyEstimate",
    "KaryResponse",
    "MeanEstimate",
    "Rappor",
    "ShuffledResponses",
    "estimate_mean",
    "randomize_gaussian",
    "randomize_laplace",
    "shuffled_epsilon",
]

REPLACE_ONE = NeighbouringRelation.REPLACE_ONE
UP = 1.0 + 2.0**-48  # It covers the roundings of a logarithm and of what it is of.
STEPS = 2.0**20  # A grid of this many steps lies between the bounds (Theorem P3).


@dataclass(frozen=True, eq=False)
class Reports:
    """Noisy values, one for each user.

    Attributes
    ----------
    values : ndarray of shape (n,)
        Unbiased for the clipped true ones.
    noise_variance : float
        Of each.
    mechanism : Mechanism
        One user's cost, under replace-one.
    private : bool
        False for seeded noise.
    """

    values: FloatArray
    noise_variance: float
    mechanism: Mechanism
    private: bool


@dataclass(frozen=True)
class MeanEstimate:
    """The mean of the reports, and the variance that the noise gives it."""

    mean: float
    variance: float


def randomize_laplace(
    values: object, bounds: tuple[float, float], epsilon: float, *, rng: Generator = None
) -> Reports:
    """Add Laplace noise of scale (high - low)/ε to every value, clipped to the bounds.

    What is no number counts as the lower bound.

    Notes
    -----
    *Guarantee.* ε-differential privacy of each report, in the local model: under replacing its
    value. Values are rounded to a grid of (high - low)/2^20, noise is exact on it (Theorem P3 of
    docs/theorems_selection.md).
    """
    ends = interval(bounds)
    # Rounded up, so that the loss is not above ε.
    scale = 1.0 / checks.number(EPSILON, epsilon) * (1.0 + 2.0**-50)
    half = Laplace(scale, sensitivity=0.5, relation=REPLACE_ONE)
    return _reports(values, ends, scale, half, generator_of(rng))


def randomize_gaussian(
    values: object, bounds: tuple[float, float], noise_multiplier: float, *, rng: Generator = None
) -> Reports:
    """Add normal noise of ``noise_multiplier``·(high - low) to every value, clipped to the bounds.

    What is no number counts as the lower bound.

    Notes
    -----
    *Guarantee.* The Gaussian mechanism, of each report, under replacing its value.
    """
    ends = interval(bounds)
    sigma = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
    half = Gaussian(sigma, sensitivity=0.5, relation=REPLACE_ONE)
    return _reports(values, ends, sigma, half, generator_of(rng))


def _reports(
    values: object,
    ends: tuple[float, float],
    scale: float,
    mechanism: Mechanism,
    generator: SecureGenerator,
) -> Reports:
    """Return values with the mechanism's noise, of ``scale`` widths, drawn on a grid."""
    low, width = ends[0], ends[1] - ends[0]
    laplace = isinstance(mechanism, Laplace)
    draw = rounded_laplace if laplace else SecureGenerator.rounded_normal
    on_grid = _on_grid(values, *ends)
    noisy = low + width * ((on_grid + draw(generator, on_grid.size, scale * STEPS)) / STEPS)
    variance = (2.0 if laplace else 1.0) * (width * scale) ** 2
    return Reports(noisy, variance, mechanism, not generator.seeded)


def estimate_mean(reports: Reports) -> MeanEstimate:
    """Return the mean of the reports; unbiased for the mean of the clipped values."""
    n = reports.values.size
    return MeanEstimate(math.fsum(reports.values.tolist()) / n, reports.noise_variance / n)


def _on_grid(values: object, low: float, high: float) -> FloatArray:
    found = numbers("values", [values] if np.isscalar(values) else values, ())
    if found.ndim != 1 or found.size == 0:
        raise DomainError("values must have one dimension, (users,), and at least one entry")
    share = (np.clip(np.where(np.isnan(found), low, found), low, high) - low) / (high - low)
    return np.asarray(np.rint(share * STEPS).clip(0.0, STEPS))


FLIP = Argument(
    "f", "a probability in [1e-15, 1)", lambda x: (x >= 1e-15) & (x < 1.0), "More is more noise"
)
ADVICE = "Below it the digits of a coin are coarser than the guarantee"
RESPONSE = Argument(
    "epsilon", "a finite number >= 1e-9", lambda x: (x >= 1e-9) & (x < math.inf), ADVICE
)
CHANCE = checks.STATED_DELTA.renamed("p", "Of a one")


@dataclass(frozen=True, eq=False)
class FrequencyEstimate:
    """Unbiased estimates of how many users have each value.

    Attributes
    ----------
    counts : ndarray of shape (k,)
        They may be negative.
    variance : ndarray of shape (k,)
        Of the reports' noise, with the counts put in for the true ones.
    """

    counts: FloatArray
    variance: FloatArray


@dataclass(frozen=True, repr=False)
class KaryResponse(Described):
    """The true one of k values with probability e^ε/(e^ε + k - 1), else another one, uniformly.

    Parameters
    ----------
    epsilon : float
        At least 1e-9.
    k : int
        The number of values, >= 2.

    Notes
    -----
    *Guarantee.* ε-differential privacy of every user's report, in the local model: under replacing
    the user's value. Reports are drawn with the probability of the truth rounded down to 63 bits.
    """

    epsilon: float
    k: int

    def __post_init__(self) -> None:
        checks.number(RESPONSE, self.epsilon)
        checks.integer("k", self.k, 2, 10**6)

    @property
    def mechanism(self) -> Mechanism:
        """One user's cost, under replace-one."""
        return RandomizedResponse(self.epsilon, k=self.k, relation=REPLACE_ONE)

    @property
    def truth(self) -> float:
        """The probability of the true value."""
        return 1.0 / (1.0 + (self.k - 1) * math.exp(-self.epsilon))

    def randomize(self, values: object, *, rng: Generator = None) -> NDArray[np.int64]:
        """Return every user's report, shape (n,), from true values in [0, k); any other is 0."""
        true = _private_categories(values, self.k)
        generator = _generator_of(rng)
        keep = _coins(generator, true.size, self.truth * (1.0 - 2.0**-50))
        # Another value, uniformly: skip the true one.
        other = (true + 1 + uniform_index(generator, self.k - 1, true.size)) % self.k
        return np.where(keep, true, other)

    def estimate(self, reports: object) -> FrequencyEstimate:
        """Estimate how many users have each value.

        Notes
        -----
        (count - n·r)/(p - r) with p the probability of the truth, r = (1-p)/(k-1), of variance
        [c·p(1-p) + (n-c)·r(1-r)]/(p - r)² for a true count c (Wang, Blocki, Li, Jha 2017).
        """
        seen = _categories(reports, self.k)
        p = self.truth
        r = (1.0 - p) / (self.k - 1)
        counts = np.bincount(seen, minlength=self.k).astype(np.float64)
        return _debias(counts, seen.size, p, r)


@dataclass(frozen=True, repr=False)
class Rappor(Described):
    """Basic RAPPOR: one bit for each value; a permanent response, and instantaneous reports of it.

    Parameters
    ----------
    k : int
        The number of values, >= 2.
    f : float
        In [1e-15, 1): each bit of the permanent response is 0 or 1 with probability f/2 each, else
        true. It is drawn once and kept.
    p, q : float, optional
        The probability of reporting 1 where the permanent bit is 0, and where it is 1. The default
        (0, 1) is the one-time variant, which reports the permanent response itself.

    Notes
    -----
    *Guarantee.* Erlingsson, Pihur, Korolova 2014: any number of reports of one permanent response
    is 2·log((1 - f/2)/(f/2))-private (Theorem 1, one bit set), a single report moreover
    log(q*(1-p*)/(p*(1-q*))) with p* = f(p+q)/2 + (1-f)p and q* = f(p+q)/2 + (1-f)q
    (docs/theorems_selection.md, Theorem P13). The lesser applies to one report.
    """

    k: int
    f: float
    p: float = 0.0
    q: float = 1.0

    def __post_init__(self) -> None:
        checks.integer("k", self.k, 2, 10**6)
        checks.number(FLIP, self.f)
        low = checks.number(CHANCE, self.p)
        high = checks.number(CHANCE.renamed("q"), self.q)
        if not (low < high):
            raise DomainError(f"p must be below q; got p={low!r}, q={high!r}")

    @property
    def permanent_epsilon(self) -> float:
        """2·log((1 - f/2)/(f/2)), the ε of all reports together."""
        return 2.0 * math.log((2.0 - self.f) / self.f) * UP

    @property
    def report_epsilon(self) -> float:
        """The ε of a single report."""
        f, low, high = Fraction(self.f), Fraction(self.p), Fraction(self.q)
        shared = f * (low + high) / 2
        p, q = shared + (1 - f) * low, shared + (1 - f) * high
        # Rational numbers are needed: 1 - q* may be far below a unit of roundoff.
        ratio = q * (1 - p) / (p * (1 - q))
        loss = math.log(float(ratio)) if ratio > 2 else math.log1p(float(ratio - 1))
        return min(loss * UP, self.permanent_epsilon)

    @property
    def permanent_mechanism(self) -> Mechanism:
        """One user's cost of any number of reports, under replace-one."""
        return PureDP(self.permanent_epsilon, relation=REPLACE_ONE)

    @property
    def report_mechanism(self) -> Mechanism:
        """One user's cost of a single report, under replace-one."""
        return PureDP(self.report_epsilon, relation=REPLACE_ONE)

    def permanent(self, values: object, *, rng: Generator = None) -> NDArray[np.bool_]:
        """Draw every user's permanent response, shape (n, k); a value outside [0, k) is 0."""
        true = _private_categories(values, self.k)
        generator = _generator_of(rng)
        size = true.size * self.k
        bits = np.zeros((true.size, self.k), bool)
        bits[np.arange(true.size), true] = True
        noisy = _coins(generator, size, self.f, up=True).reshape(bits.shape)
        fair = (generator.words(size) >> np.uint64(63)).astype(bool).reshape(bits.shape)
        return np.where(noisy, fair, bits)

    def report(self, permanent: NDArray[np.bool_], *, rng: Generator = None) -> NDArray[np.bool_]:
        """Draw reports from permanent responses."""
        kept = np.asarray(permanent, dtype=bool)
        if (self.p, self.q) == (0.0, 1.0):
            return kept
        generator = _generator_of(rng)
        zero = _limit(self.p, up=True)
        limits = np.where(kept, np.uint64(max(_limit(self.q), zero)), np.uint64(zero))
        words = generator.words(kept.size).reshape(kept.shape)
        return np.asarray((words >> np.uint64(1)) < limits)

    def estimate(self, reports: NDArray[np.bool_]) -> FrequencyEstimate:
        """Estimate how many users have each value, from one report each."""
        seen = np.asarray(reports, dtype=bool)
        if seen.ndim != 2 or seen.shape[1] != self.k:
            raise DomainError(f"reports must have shape (n, {self.k}); got {seen.shape}")
        p, q = self._chances
        return _debias(seen.sum(axis=0).astype(np.float64), len(seen), q, p)

    @property
    def _chances(self) -> tuple[float, float]:
        shared = 0.5 * self.f * (self.p + self.q)
        return shared + (1.0 - self.f) * self.p, shared + (1.0 - self.f) * self.q


def _debias(counts: FloatArray, n: int, p: float, r: float) -> FrequencyEstimate:
    found = (counts - n * r) / (p - r)
    true = np.clip(found, 0.0, n)
    variance = (true * p * (1.0 - p) + (n - true) * r * (1.0 - r)) / (p - r) ** 2
    return FrequencyEstimate(found, variance)


def _coins(
    generator: SecureGenerator, n: int, chance: float, *, up: bool = False
) -> NDArray[np.bool_]:
    """Return coins of probability ``chance``, to within 2^-63 on the side asked for."""
    return np.asarray((generator.words(n) >> np.uint64(1)) < np.uint64(_limit(chance, up=up)))


def _limit(chance: float, *, up: bool = False) -> int:
    """Return how many of 2^63 equally likely words make a coin come up."""
    scaled = Fraction(chance) * 2**63
    return -int((-scaled) // 1) if up else int(scaled // 1)


def _categories(values: object, k: int) -> NDArray[np.int64]:
    argument = Argument(
        "values", f"integers in [0, {k})", lambda x: (x >= 0) & (x < k), "They are categories"
    )
    found = np.atleast_1d(np.asarray(private(checks.count, argument, values)))
    if found.ndim != 1:
        raise DomainError("values must have one dimension, (users,)")
    return found.astype(np.int64)


def _generator_of(rng: Generator) -> SecureGenerator:
    """Return the generator; reports are bare arrays, so a warning says that they are seeded."""
    generator = generator_of(rng)
    if generator.seeded:
        warnings.warn(
            "rng makes these reports not private: whoever knows it can undo them. Leave it out"
            " except in tests",
            UserWarning,
            stacklevel=3,
        )
    return generator


def _private_categories(values: object, k: int) -> NDArray[np.int64]:
    found = class_labels([values] if np.isscalar(values) else values, None, k)
    return np.maximum(found, 0).astype(np.int64)


def shuffled_epsilon(
    epsilon: float, *, dataset_size: int, delta: float, k: int | None = None
) -> float:
    """Return the central ε at ``delta`` of shuffled reports, all made by one ε-private randomiser.

    Parameters
    ----------
    epsilon : float
        Of the randomiser that all users share, in the local model.
    dataset_size : int
        Number of users, each with one report.
    delta : float
        In (0, 1).
    k : int, optional
        When the randomiser is k-ary randomised response.

    Notes
    -----
    *Guarantee.* That of :class:`ShuffledResponses`, and under its assumptions (Theorem P14 of
    docs/theorems_selection.md): randomisers of the users' own, each ε-private, are not covered.

    Examples
    --------
    >>> shuffled_epsilon(1.0, dataset_size=10_000, delta=1e-6) < 0.1
    True
    """
    return ShuffledResponses(epsilon, dataset_size=dataset_size, k=k).epsilon(delta)
