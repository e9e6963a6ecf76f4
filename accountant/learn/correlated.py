"""DP-SGD with correlated noise: classes of records, and the release of a noisy sum.

A strategy of :mod:`accountant.matrix` correlates the noise of the steps. Every record draws a class
once; step t uses records of class t modulo the number of classes, all of them ("cyclic") or a
Poisson sample ("poisson"). docs/theorems_matrix.md, Theorems X4 and X5.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant.errors import DomainError, UnsupportedError
from accountant.learn.clipping import AdaptiveQuantile, Clipping, Rule
from accountant.learn.models.base import Model
from accountant.learn.release import relative_excess, rounded_sensitivity
from accountant.matrix import Strategy
from accountant.matrix.toeplitz import REACH
from accountant.noise import SecureGenerator
from accountant.noise.generator import LARGEST_SCALE
from accountant.noise.integer_law import LARGEST_EXACT, Grid

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


class CorrelatedPrivatiser:
    """Rounds clipped sums to a grid and adds a strategy's noise to them.

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

    def release(
        self, value: FloatArray, rule: Rule, generator: SecureGenerator
    ) -> tuple[FloatArray, float]:
        """Return the noisy sum of the next step, and the largest deviation of its noise.

        Notes
        -----
        *Guarantee.* Theorem X5: with the releases of all other steps, the Gaussian mechanism with
        the given noise multiplier, of every participation or of the whole run.
        """
        if self.noise_multiplier == 0.0:
            return value, 0.0
        grid, deviation = self.settings(rule)
        released = self._noisy(grid.round(value), grid, deviation / grid.step, generator)
        return released * grid.step, deviation * self.growth

    def _noisy(
        self, sums: FloatArray, grid: Grid, scale: float, generator: SecureGenerator
    ) -> FloatArray:
        """Add the next step's noise to sums in steps of the grid: integers."""
        return sums + self.stream.next(generator.rounded_normal(sums.size, scale))
