"""What every fit here has in common: public bounds, noise, the charge, and the result."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant._basics.rounding import U
from accountant.checks import Argument, positive
from accountant.errors import DomainError
from accountant.learn.account import Released, charged
from accountant.learn.convex.losses import Logistic, Loss
from accountant.learn.convex.rows import PublicRisk, RegularizedRisk, clip_rows, paired, table
from accountant.learn.convex.solvers import least_tolerance
from accountant.ledger import Accountant
from accountant.mechanisms.base import Mechanism
from accountant.noise import Grid, SecureGenerator
from accountant.noise.exact_samplers import (
    bernoulli_exp,
    discrete_laplace,
    uniform_below,
    weighted_index,
)
from accountant.relations import NeighbouringRelation

# Noise that is not itself released lies on a grid of sigma / 2**36: whoever uses it pays for the
# rounding as a shift of at most half a step a coordinate.
FINE_BITS = 36
# A released value's Gaussian noise has a grid of sigma / 2**30: its rounding costs next to nothing.
GRID_BITS = 30
# The finest grid of a pure release, and of a Gaussian one: normal variables are rounded exactly
# below 2**40 steps.
MOST_PURE_BITS = 40
MOST_BITS = 39
# Values are cut to this many steps of a grid: with noise they stay integers that doubles hold.
LARGEST_INTEGER = 2.0**51
# The share of (ε, δ) that pays for releasing an approximate minimum, or the rounding of pure noise.
RELEASE_SHARE = 1e-3
# The share of that for the grid of a pure release: its own noise is tiny, and its values are not.
COARSE = 0.25


class NoiseSource:
    """Noise for releases, keyed from the operating system unless told otherwise.

    Parameters
    ----------
    rng : None or int
        None draws a fresh key and forgets it. An integer makes the noise repeatable, for tests:
        whoever knows it can subtract the noise, so :attr:`private` is False.
    """

    def __init__(self, rng: int | None = None) -> None:
        self.generator = SecureGenerator(rng)
        self.private = not self.generator.seeded

    def normal(
        self, shape: tuple[int, ...], sigma: float = 1.0, bits: int = FINE_BITS
    ) -> FloatArray:
        """Return N(0, sigma²) variables, each rounded to a grid of at least sigma / 2**bits."""
        step = Grid.at_most(sigma * 2.0**-bits).step
        integers = self.generator.rounded_normal(math.prod(shape), sigma / step)
        return (integers * step).reshape(shape)

    def coins(self, exponents: FloatArray) -> NDArray[np.bool_]:
        """Return independent coins of probability exp(-exponents[i]), exactly."""
        return bernoulli_exp(self.generator, [Fraction(x) for x in exponents.tolist()])

    def weighted_index(
        self, scores: NDArray[np.int64], rate: Fraction, widths: NDArray[np.int64] | None = None
    ) -> int:
        """Return i with probability proportional to widths[i] exp(-rate scores[i]), exactly."""
        return weighted_index(self.generator, scores, rate, widths)

    def multivariate_laplace(self, shape: tuple[int, ...]) -> tuple[FloatArray, float]:
        """Return a vector near one of density proportional to exp(-|b|), and how near.

        Notes
        -----
        *Guarantee.* b = |g| z with g, z standard normal in d + 1 and d dimensions has that density;
        the vector returned is within the second result of it, but for an event of probability below
        e^-2000 (docs/theorems_convex.md, Theorem V6).
        """
        d = math.prod(shape)
        z, g = self.normal((d,)), self.normal((d + 1,))
        # Norms beyond √d + 64 are the event left out; each coordinate is off by half a grid step.
        longest = (math.sqrt(d) + 64.0, math.sqrt(d + 1) + 64.0)
        apart = longest[1] * rounded_shift(d, FINE_BITS) + longest[0] * rounded_shift(
            d + 1, FINE_BITS
        )
        computed = longest[0] * longest[1] * (d + 16) * U
        b = z * math.sqrt(float(np.vdot(g, g)))
        return b.reshape(shape), (apart + computed) * (1.0 + 1e-6)

    def below(self, n: int) -> int:
        """Return a uniform integer in [0, n), 1 <= n <= 2**63."""
        return uniform_below(self.generator, n)

    def permutation(self, n: int) -> NDArray[np.intp]:
        """Return a uniform permutation of n items."""
        return np.argsort(self.generator.words(n), kind="stable")

    def release_pure(
        self, values: FloatArray, distance: float, epsilon: float, lost: float = 2.0**-12
    ) -> FloatArray:
        """Return values plus exact discrete Laplace noise on a grid: ``epsilon``-private.

        ``distance`` bounds how far neighbours' values lie apart in absolute sum. Rounding to the
        grid adds a step a coordinate to it, and the last operation that made a value another half
        (values within 2**51 steps are off by a quarter), which the noise includes; neither value
        nor noise has a digit below the grid, so nothing of floating point is outside the guarantee.
        ``lost`` is the share of ``epsilon`` for that: a larger one gives a coarser grid, on which
        larger values fit.
        """
        bits = pure_bits(values.size, epsilon, lost)
        remaining = epsilon - 2.0 * values.size * 2.0**-bits
        scale = distance / remaining * (1.0 + 1e-12)
        step = Grid.at_most(scale * 2.0**-bits).step
        limit = LARGEST_INTEGER * step
        kept = np.rint(np.clip(values.ravel(), -limit, limit) / step)
        integer = math.ceil(scale / step)
        noise = [discrete_laplace(integer, self.below) for _ in range(kept.size)]
        return np.asarray((kept + np.array(noise, dtype=np.float64)) * step).reshape(values.shape)

    def release(self, values: FloatArray, sigma: float, bits: int = GRID_BITS) -> FloatArray:
        """Return values + N(0, sigma²) noise on a grid of at least sigma / 2**bits.

        The Gaussian mechanism on the *rounded* values, exactly in law; rounding moves them by at
        most half a step a coordinate, which the caller's account pays for.
        """
        grid = Grid.at_most(sigma * 2.0**-bits)
        # Clipping moves no two values apart, and keeps every sum below exact.
        limit = LARGEST_INTEGER * grid.step
        kept = np.clip(values.ravel(), -limit, limit)
        return grid.release_gaussian(kept, sigma, self.generator).reshape(values.shape)


def pure_bits(size: int, epsilon: float, lost: float) -> int:
    """Return how fine the grid of a pure release is, or refuse these public numbers."""
    share = lost * epsilon
    bits = math.ceil(math.log2(2.0 * size / share)) if share > 0.0 else MOST_PURE_BITS + 1
    if not (bits <= MOST_PURE_BITS):
        raise DomainError(f"epsilon = {epsilon!r} is too small for {size} coordinates on one grid")
    return max(bits, 10)


def gaussian_bits(size: int, mu: float) -> int:
    """Return how fine the grid of a ``mu``-GDP release is, or refuse these public numbers."""
    bits = max(20, math.ceil(math.log2(8.0 * math.sqrt(size) / mu)))
    if not (bits <= MOST_BITS):
        raise DomainError(
            f"epsilon and delta are too small for {size} coordinates on one grid: a thousandth of"
            f" them allows {mu:.6g}-GDP"
        )
    return bits


def remaining_after_rounding(dimension: int, multiplier: float) -> float:
    """Return the share of a Gaussian's sensitivity that rounding to its grid leaves to the data."""
    remaining = 1.0 - 2.0 * multiplier * rounded_shift(dimension, GRID_BITS)
    if not (remaining > 0.25):
        raise DomainError(
            f"epsilon and delta are too small for {dimension} coordinates on one grid: they ask for"
            f" noise of {multiplier:.6g} sensitivities"
        )
    return remaining


def rounded_shift(dimension: int, bits: int) -> float:
    """Return a bound on how far rounding to the grid moves a vector, in units of sigma."""
    return 0.5 * math.sqrt(dimension) * 2.0**-bits


def _length(name: str, advice: str) -> Argument:
    """Return the argument that bounds a Euclidean norm: its square is neither lost nor infinite."""
    return Argument(name, "a number in [1e-50, 1e50]", lambda x: (x >= 1e-50) & (x <= 1e50), advice)


DATA_NORM = _length(
    "data_norm", "It bounds the rows' Euclidean norm and must be known without looking at the data"
)
REGULARIZATION = positive(
    "regularization",
    "It multiplies |theta|²/2 in the sum over records; data_norm**2 / epsilon is a good start",
)
STEP_SIZE = positive("step_size", "It multiplies the gradient of the sum")
TOLERANCE = positive("tolerance", "It bounds the certified gradient at the minimum")
# The accounts of V12, V16 and V17 cover the rounding of sums of up to this many records.
MOST_RECORDS = 10**7
# Sums of integers below 2^30 over up to this many records fit 64 bits (V14, V18).
MOST_COUNTED = 2**31
# The largest max_records where the rounding of sums grows with it, and is paid for (V10).
MOST_EXACT = 10**9
BOUND = _length("bound", "It must be known without looking at the data")


def certified_tolerance(value: object, default: float, public: PublicRisk) -> float:
    """Return the tolerance: the one asked for, or the default if public numbers allow it.

    It is reached on every data set that public numbers admit (docs/theorems_convex.md, V10).
    """
    least = least_tolerance(public)
    if value is None:
        return max(default, least)
    found = checks.number(TOLERANCE, value)
    if not (found >= least):
        raise DomainError(
            f"tolerance must be at least {least:.6g}, which double precision certifies for any data"
            f" of up to max_records rows; got {found!r}"
        )
    return found


def record_limit(value: object, most: int) -> int:
    """Return the public bound on the number of records."""
    advice = "It bounds the number of records and must be known without looking at the data"
    return checks.integer("max_records", value, 1, most, advice=advice)


def require_few(rows: FloatArray, limit: int) -> None:
    """Refuse more records than a public bound, without saying how many there are."""
    if not (len(rows) <= limit):
        raise DomainError(
            f"x must have at most {limit} rows: rounding is paid for up to this public bound on the"
            " number of records (max_records, where a function has it), and not beyond"
        )


def relation_factor(relation: NeighbouringRelation) -> float:
    """Return how many records' contributions one step of the relation moves a sum by."""
    return 2.0 if checks.relation(relation) is NeighbouringRelation.REPLACE_ONE else 1.0


@dataclass(frozen=True, eq=False)
class PrivateResult(Released):
    """A released value, what it cost, and the ledger that was charged for it.

    Attributes
    ----------
    value : ndarray
        The release. Anything computed from it is private as well.
    mechanisms : tuple of Mechanism
        What was released, to be composed.
    ledger : Accountant
        The ledger given, or the fit's own, with the mechanisms charged.
    run_epsilon, delta : float
        The guarantee this fit was calibrated to, under the mechanisms' relation.
    private : bool
        False when the noise came from a known seed; then there is no guarantee at all.
    epsilon : float
        The ε at ``delta`` of everything in the ledger when the fit ended.
    """

    value: FloatArray
    mechanisms: tuple[Mechanism, ...]
    details: dict[str, float] = field(default_factory=dict)

    def _charged(self) -> int:
        return len(self.mechanisms)


class Fit:
    """One fit: its guarantee, its noise, the charge before the noise, and the result after it.

    Parameters
    ----------
    label : str
        Of the charge.
    epsilon, delta : float
        The guarantee, in nats; δ = 0 for a pure one.
    ledger : Accountant or None
        The ledger given; a new one is made where there is none.
    rng : int or None
        A seed, for tests only: the charge is marked and the result is not private.
    """

    def __init__(
        self, label: str, epsilon: float, delta: float, ledger: Accountant | None, rng: int | None
    ) -> None:
        self.label, self.ledger = label, ledger
        self.epsilon = checks.number(checks.TARGET_EPS, epsilon)
        self.delta = checks.number(checks.DELTA, delta)
        self.source = NoiseSource(rng)
        self.mechanisms: tuple[Mechanism, ...] = ()

    def charge(self, *mechanisms: Mechanism) -> None:
        """Charge the ledger for the whole fit: before noise is drawn, and once."""
        self.mechanisms = mechanisms
        self.ledger = charged(self.ledger, mechanisms, self.label, self.source.generator)

    def gaussian(
        self, values: FloatArray, multiplier: float, sensitivity: float
    ) -> tuple[FloatArray, float]:
        """Return values with Gaussian noise, which pays for the rounding to its grid, and its σ."""
        sigma = multiplier * sensitivity / remaining_after_rounding(values.size, multiplier)
        return self.source.release(values, sigma), sigma

    def result(self, value: FloatArray, **details: float) -> PrivateResult:
        """Return what was released, with what was charged for it."""
        assert self.ledger is not None
        return PrivateResult(
            value, self.mechanisms, details, ledger=self.ledger, delta=self.delta,
            run_epsilon=self.epsilon, private=self.source.private,
        )  # fmt: skip


class LinearFit(Fit):
    """One fit of a linear model: its rows, their public bound, and its loss.

    Parameters
    ----------
    x : array of shape (n, d)
        Records.
    data_norm : float
        Public bound on the rows' norm.
    loss : Loss or None
        Logistic where it is left out.
    label, epsilon, delta, ledger, rng
        As of :class:`Fit`.
    """

    def __init__(self, x: Array, data_norm: float, loss: Loss | None, *of_the_fit: Any) -> None:
        super().__init__(*of_the_fit)
        self.rows = table(x)
        self.norm = checks.number(DATA_NORM, data_norm)
        self.loss = Logistic() if loss is None else loss
        self.shape = self.loss.weight_shape(self.rows.shape[1])
        self.size = int(np.prod(self.shape))
        self.slope = self.norm * self.loss.slope_bound

    def data(self, y: Array, limit: int | None = None) -> tuple[FloatArray, FloatArray]:
        """Return clipped rows and encoded labels, of at most ``limit`` records.

        It is asked when all public numbers have been: whatever they are refused for says nothing
        about a record.
        """
        if limit is not None:
            require_few(self.rows, limit)
        labels, rows = paired(self.loss.encode(y), self.rows)
        return clip_rows(rows, self.norm), labels

    def public(
        self, max_records: object, lam: float, drawn: float = 0.0, most: int = MOST_EXACT
    ) -> PublicRisk:
        """Return what is public of a risk of up to ``max_records`` rows, themselves ``most``."""
        records = record_limit(max_records, most)
        return PublicRisk(self.loss, records, self.shape, self.norm, lam, drawn)

    def risk(
        self,
        y: Array,
        public: PublicRisk,
        linear: FloatArray | None = None,
        largest_target: float | None = None,
    ) -> RegularizedRisk:
        """Return the risk of the records, whose labels are cut where their size does not matter."""
        rows, labels = self.data(y, public.records)
        far = public.largest_target if largest_target is None else largest_target
        b = np.zeros(self.shape) if linear is None else linear
        labels = self.loss.cut(labels, far)
        return RegularizedRisk(rows, labels, self.loss, public.regularization, b, self.norm)
