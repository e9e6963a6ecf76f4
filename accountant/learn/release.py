"""The release of a private sum: its sensitivity, rounding to a grid, and noise.

One record's effect on a computed sum is bounded with clipping and every rounding: Theorems T2 to T5
of docs/theorems_training.md, whose names are used here. A strategy of :mod:`accountant.matrix`
correlates the noise of the steps: every record draws a class once; step t uses records of class t
modulo the number of classes, all of them ("cyclic") or a Poisson sample ("poisson").
docs/theorems_matrix.md, Theorems X4 and X5.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant._basics.rounding import U
from accountant.errors import DomainError, UnsupportedError
from accountant.learn.clipping import AdaptiveQuantile, Clipping, Rule
from accountant.learn.models.base import BLOCK_ROWS, Model
from accountant.matrix import Strategy
from accountant.matrix.toeplitz import REACH
from accountant.noise import Grid, SecureGenerator
from accountant.noise.generator import LARGEST_DISCRETE_SCALE, LARGEST_SCALE
from accountant.noise.integer_law import LARGEST_EXACT
from accountant.search import narrow


class Release(ABC):
    """Rounds clipped sums to a grid and adds noise for their sensitivity."""

    noise_multiplier: float

    @abstractmethod
    def settings(self, rule: Rule) -> tuple[Grid, float]:
        """Return the grid and the standard deviation of the fresh noise for a rule."""

    @abstractmethod
    def add_noise(
        self, value: FloatArray, grid: Grid, deviation: float, generator: SecureGenerator
    ) -> tuple[FloatArray, float]:
        """Return the noisy sum, and the largest standard deviation of its noise."""

    def release(
        self, value: FloatArray, rule: Rule, generator: SecureGenerator
    ) -> tuple[FloatArray, float]:
        """Return the noisy sum of the next step, and the largest deviation of its noise."""
        if self.noise_multiplier == 0.0:
            return value, 0.0
        grid, deviation = self.settings(rule)
        return self.add_noise(value, grid, deviation, generator)


class Privatiser(Release):
    """Independent noise in every step.

    Parameters
    ----------
    model : Model
        Whose sums are released.
    noise : {"gaussian", "discrete_gaussian"}
        The law of the noise.
    noise_multiplier : float
        Standard deviation over the sensitivity after rounding; 0 releases the sum as it is.
    expected_batch_size : float
        For the error bound of the sum, where ``cap`` is left out.
    cap : int, optional
        The most records of a sum.

    Notes
    -----
    *Guarantee.* The Gaussian mechanism with the given noise multiplier on a function whose
    sensitivity is at most the one computed, then post-processing; for the discrete Gaussian that
    mechanism itself (docs/theorems_training.md, Theorems T5 and T7).
    """

    def __init__(
        self,
        model: Model,
        noise: str,
        noise_multiplier: float,
        expected_batch_size: float,
        *,
        cap: int | None = None,
    ) -> None:
        self.noise, self.noise_multiplier = noise, noise_multiplier
        self.size = model.size
        self.cap = batch_cap(expected_batch_size) if cap is None else cap
        self.excess = relative_excess(model, self.cap)

    def settings(self, rule: Rule) -> tuple[Grid, float]:
        """Return the grid and the noise's standard deviation for a rule."""
        limit = LARGEST_SCALE if self.noise == "gaussian" else float(LARGEST_DISCRETE_SCALE)
        grid = grid_for(rule, self.size, self.noise_multiplier, limit, self.excess)
        sensitivity = rounded_sensitivity(rule, self.excess, grid, self.size, self.cap)
        deviation = self.noise_multiplier * sensitivity * (1.0 + 1e-12)
        if self.noise == "discrete_gaussian":
            steps = math.ceil(deviation / grid.step)
            if steps > LARGEST_DISCRETE_SCALE:
                raise DomainError("the discrete Gaussian has no grid for this much noise")
            deviation = steps * grid.step
        return grid, deviation

    def add_noise(
        self, value: FloatArray, grid: Grid, deviation: float, generator: SecureGenerator
    ) -> tuple[FloatArray, float]:
        """Return the noisy sum, and the standard deviation of its noise."""
        if self.noise == "discrete_gaussian":
            scale = round(deviation / grid.step)
            return grid.release_discrete_gaussian(value, scale, generator), deviation
        return grid.release_gaussian(value, deviation, generator), deviation


def release_fraction(
    clipping: AdaptiveQuantile,
    unclipped: int,
    records: int,
    expected_batch_size: float,
    generator: SecureGenerator,
) -> float:
    """Return the noisy fraction of records that were not clipped.

    Twice the centred count is an integer that one record moves by exactly 1; its noise has standard
    deviation ``2 count_noise`` and is rounded to integers (Theorem T8).
    """
    centred = 2 * unclipped - records
    noisy = centred + float(generator.rounded_normal(1, 2.0 * clipping.count_noise)[0])
    return noisy / (2.0 * expected_batch_size) + 0.5


# A run whose number of records is a secret accepts as many as this, and pays for the rounding of
# sums of as many as may be drawn from them: it may not look at how many there are.
MOST_RECORDS = 2**24

UNIT32 = 2.0**-24  # The unit roundoff of single precision.
OUTWARD = 1.0 + 1e-12  # It covers the roundings of these few formulas themselves.
RARE = 700.0  # An event of probability below e^-700 is left out (Theorem T4).


def batch_cap(expected_batch_size: float) -> int:
    """Return a size that a Poisson sample exceeds with probability below e⁻⁷⁰⁰.

    The number of records drawn is a sum of independent trials with mean at most
    μ = 1.01 B + 2; Chernoff: P{m >= (1 + x) μ} <= exp(-μ ((1 + x) log(1 + x) - x)).
    """
    mean = 1.01 * expected_batch_size + 2.0

    def rare(x: float) -> bool:
        return mean * ((1.0 + x) * math.log1p(x) - x) >= RARE

    high = 2.0
    while not rare(high):
        high *= 2.0
    excess, _ = narrow(rare, high, 0.0, 60)
    return math.ceil(mean * (1.0 + excess)) + 1


def relative_excess(model: Model, cap: int) -> float:
    """Return r such that one record changes the computed sum by at most sensitivity · (1 + r).

    Covers the computed norms and clip factors (η), the scaled rows, and 2 γ cap for the rounding
    of the sums of all records in both runs; not the rounding to a grid. Sums are in double
    precision whatever the model's is. Where a record adds several outer products, what may cancel
    between them, within a block, is at most ``spread`` times its norm.
    """
    spread, terms = model.spread, model.terms
    unit = UNIT32 if model.dtype == np.float32 else U
    eta = (model.widest / 8.0 + 64.0) * U + 4.0 * unit * spread
    within = (BLOCK_ROWS * terms + 4) * U
    across = (cap / BLOCK_ROWS + 4.0) * U
    inside = within / (1.0 - within) * spread
    gamma = inside + across / (1.0 - across) * (1.0 + inside)
    sums = 2.0 * gamma * cap
    return (eta + sums + eta * sums) * OUTWARD  # (1 + η) (1 + 2 γ cap) - 1, without cancellation


def grid_for(
    rule: Rule, size: int, noise_multiplier: float, largest_scale: float, excess: float = 0.0
) -> Grid:
    """Return the grid: its rounding adds at most a thousandth to the sensitivity, if it can.

    With noise of at most ``largest_scale`` grid steps (the discrete Gaussian's limit) it may have
    to be coarser.
    """
    sensitivity = rule.sensitivity
    fine = sensitivity * 2.0**-10 / math.sqrt(size)
    coarse = 2.1 * sensitivity * (1.0 + excess) * noise_multiplier / largest_scale
    return Grid.at_most(max(fine, coarse))


def rounded_sensitivity(rule: Rule, excess: float, grid: Grid, size: int, cap: int) -> float:
    """Return the sensitivity of the sum after rounding to ``grid``, Δ of Theorem T5."""
    sensitivity = rule.sensitivity
    if not math.isfinite(sensitivity):
        raise DomainError("noise needs a finite clipping_norm; got inf")
    grid.require_range(sensitivity * (1.0 + excess) * (cap + 1.0))
    return (sensitivity * (1.0 + excess) + grid.step * math.sqrt(size)) * OUTWARD


KINDS = ("gaussian", "discrete_gaussian")


def noise_kind(noise: object) -> tuple[str, Strategy | None]:
    """Return the law of the fresh noise, and the strategy that correlates it."""
    if isinstance(noise, Strategy):
        return "gaussian", noise
    if isinstance(noise, str):
        return checks.choice("noise", noise, KINDS), None
    raise UnsupportedError(
        f"noise must be one of {', '.join(KINDS)}, or a strategy of accountant.matrix; got"
        f" {noise!r:.80}"
    )


def classes_for(sampler: str, strategy: Strategy | None, q: float) -> int:
    """Return the number of classes of records."""
    if strategy is None:
        if sampler == "cyclic":
            raise DomainError(
                'sampler must be "poisson" or "full" without strategy; got \'cyclic\'. Give a'
                " strategy, such as accountant.matrix.input_perturbation(steps)"
            )
        return 1
    if sampler == "full":
        return 1
    if not q > 0.0:
        raise DomainError("sampling_probability must be > 0 for correlated noise; got 0")
    if sampler == "cyclic" and q < 2.0**-40:
        raise DomainError(
            f"sampling_probability must be at least 2^-40 with the cyclic sampler; got {q!r}."
            " No record would have a class that comes round"
        )
    return strategy.bands if sampler == "poisson" else math.ceil(1.0 / q)


def require_constant(clipping: Clipping, strategy: Strategy | None) -> None:
    """Refuse a clipping norm that moves: one strategy serves contributions of one bound."""
    if strategy is not None and isinstance(clipping, AdaptiveQuantile):
        raise UnsupportedError(
            "clipping_norm must stay the same where noise is correlated; got AdaptiveQuantile."
            " Give a number"
        )


def draw_classes(records: int, classes: int, generator: SecureGenerator) -> NDArray[np.int64]:
    """Return the class of every record, drawn independently.

    Classes need not be equally likely to the last bit: Theorem X4 takes any law.
    """
    words = generator.words(records) >> np.uint64(11)
    return (words.astype(np.float64) * 2.0**-53 * classes).astype(np.int64)


class ClassBatches:
    """The rows of every step's batch.

    Parameters
    ----------
    records : int
        Number of records.
    classes : int
        Number of classes.
    rate : float
        Probability with which a record of the step's class takes part.
    """

    def __init__(self, records: int, classes: int, rate: float) -> None:
        self.classes, self.rate = classes, rate
        self.of = np.zeros(records, dtype=np.int64)
        self._drawn = False

    def draw(self, step: int, generator: SecureGenerator) -> NDArray[np.intp]:
        """Return the rows of a step; the first call draws the classes."""
        if not self._drawn:
            self.of = draw_classes(self.of.size, self.classes, generator)
            self._drawn = True
        # Coins for all records: those of other classes are not looked at.
        tossed = generator.subset(self.of.size, self.rate)
        return np.asarray(tossed[self.of[tossed] == step % self.classes], dtype=np.intp)

    @property
    def state(self) -> dict[str, Array]:
        """The classes drawn: as secret as the batches."""
        return {"classes": self.of.copy()} if self._drawn else {}

    def restore(self, state: dict[str, Array]) -> None:
        """Take the classes from a state."""
        if "classes" in state:
            found = np.asarray(state["classes"])
            inside = found.shape == self.of.shape and found.dtype == self.of.dtype
            if not (inside and bool(((found >= 0) & (found < self.classes)).all())):
                raise DomainError("classes must hold the class of every record")
            self.of, self._drawn = found.copy(), True


class CorrelatedPrivatiser(Release):
    """Adds a strategy's noise to the sums.

    Parameters
    ----------
    model : Model
        Whose sums are released.
    strategy : Strategy
        How the noise is correlated.
    noise_multiplier : float
        Standard deviation of the fresh noise over the sensitivity of the encoding: of one
        participation where ``sampled``, of all of them otherwise. 0 adds no noise.
    classes : int
        Steps from one participation to the next.
    sampled : bool
        Whether participations are coins, each with an account of its own.
    cap : int
        The most records of a sum.

    Notes
    -----
    *Guarantee.* Theorem X5: with the releases of all other steps, the Gaussian mechanism with the
    given noise multiplier, of every participation or of the whole run.
    """

    def __init__(
        self,
        model: Model,
        strategy: Strategy,
        noise_multiplier: float,
        classes: int,
        *,
        sampled: bool,
        cap: int,
    ) -> None:
        self.strategy, self.noise_multiplier = strategy, noise_multiplier
        self.size, self.cap, self.sampled, self.classes = model.size, cap, sampled, classes
        self.excess = relative_excess(model, cap)
        self.stream = strategy.stream(model.size, whole=True)
        separation = None if sampled else classes
        self.sensitivity = float(
            strategy.sensitivity_bounds(min_separation=separation, cyclic=True).upper
        )
        self.growth = strategy._noise_growth()
        self._known: dict[Rule, tuple[Grid, float]] = {}

    def settings(self, rule: Rule) -> tuple[Grid, float]:
        """Return the grid and the standard deviation of the fresh noise."""
        if rule not in self._known:
            self._known[rule] = self._settings(rule)
        return self._known[rule]

    def _settings(self, rule: Rule) -> tuple[Grid, float]:
        bound = rule.sensitivity * (1.0 + self.excess)
        amount = self.noise_multiplier * self.sensitivity
        least = max(
            2.0**-20 / math.sqrt(self.size), 4.2 * amount / LARGEST_SCALE,
            4.0 * (self.cap + 1.0) / LARGEST_EXACT,
        )  # fmt: skip
        grid = Grid.at_most(2.0 * least * bound)
        one = rounded_sensitivity(rule, self.excess, grid, self.size, self.cap)
        plain = amount * one
        # The bound on round-off holds for up to twice the noise, and for the noise that the other
        # data set needs for the same releases.
        scale = 2.0 * (plain + self.sensitivity * one) / grid.step
        shift = self.strategy.rounded_shift(
            scale, min_separation=None if self.sampled else self.classes, block=self.sampled
        )
        moved = self.sensitivity * one + grid.step * math.sqrt(self.size) * shift
        deviation = self.noise_multiplier * moved * (1.0 + 1e-12)
        # Noise and sums must be integers that doubles hold.
        steps = self.strategy.steps
        noise = self.growth * (REACH * scale + math.sqrt(steps) * shift)
        largest = noise + bound * (self.cap + 1.0) / grid.step
        if not (deviation <= 2.0 * plain and largest <= LARGEST_EXACT):
            raise DomainError(
                "noise must be a strategy whose rounding can be bounded; this one's has no bound."
                " Take fewer steps or smaller coefficients"
            )
        return grid, deviation

    def add_noise(
        self, value: FloatArray, grid: Grid, deviation: float, generator: SecureGenerator
    ) -> tuple[FloatArray, float]:
        """Return the noisy sum of the next step, and the largest deviation of its noise."""
        released = self._noisy(grid.round(value), grid, deviation / grid.step, generator)
        return released * grid.step, deviation * self.growth

    def _noisy(
        self, sums: FloatArray, grid: Grid, scale: float, generator: SecureGenerator
    ) -> FloatArray:
        """Add the next step's noise to sums in steps of the grid: integers."""
        return sums + self.stream.next(generator.rounded_normal(sums.size, scale))
