"""White-box gradient canaries: records whose whole gradient is on one coordinate of their own.

The model gets extra coordinates. A canary's gradient is a large multiple of its own coordinate
vector. It passes through the same clipping, sums, rounding and noise as every gradient, and has the
clipping norm afterwards. No other record changes this coordinate, so its released values are the
canary's noisy membership bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import Array, FloatArray
from accountant._core import training
from accountant.errors import DomainError
from accountant.learn.clipping import Rule
from accountant.learn.models.base import BLOCK_ROWS, Model, Totals
from accountant.learn.optimizers import Optimizer

# A canary's gradient over the clipping norm. Automatic clipping leaves 1 / (1 + stability / …) of
# the norm, so it should be large; its square must stay below the limit of single precision.
LOUDNESS = 1e4


class CanaryModel(Model):
    """A model with coordinates for canaries added.

    Parameters
    ----------
    model : Model
        The model to train; it sees the ordinary records only.
    canaries : int
        How many, at least 1; one coordinate for each and each of the model's parameter groups.

    Notes
    -----
    A row is an ordinary record's features and a last column that is 0 for those, and i + 1 for
    canary i.
    """

    def __init__(self, model: Model, canaries: int) -> None:
        self.model, self.canaries = model, canaries
        self.shape: tuple[int, ...] = ()
        self.parameters = np.concatenate(
            [model.parameters, np.zeros(canaries * len(model.groups), model.dtype)]
        )
        self.groups = model.groups
        self.widest = max(model.widest, len(model.groups))
        self.terms, self.spread = model.terms, model.spread
        self.rule = Rule((1.0,))

    def check(self, X: object, y: object) -> tuple[Array, Array]:
        """Pass on rows made by :meth:`join`."""
        return np.ascontiguousarray(X, dtype=self.dtype), np.ascontiguousarray(y)

    def join(self, X: object, y: object, included: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return the data set of ordinary records and the included canaries."""
        data, targets = self.model.check(X, y)
        self.shape = data.shape[1:]
        numbers = np.flatnonzero(included) + 1
        rows = np.zeros((len(data) + len(numbers), math.prod(self.shape) + 1), self.dtype)
        rows[: len(data), :-1] = data.reshape(len(data), -1)
        rows[len(data) :, -1] = numbers
        return rows, np.concatenate([targets, np.repeat(targets[:1], len(numbers), axis=0)])

    def add_rows(
        self, X: Array, y: Array, rows: NDArray[np.intp] | None, rule: Rule, totals: Totals
    ) -> None:
        """Add up ordinary records by the model, and canaries on their coordinates."""
        self.model.parameters[:] = self.parameters[: self.model.size]
        self.rule = rule
        super().add_rows(X, y, rows, rule, totals)

    def add_block(self, x: Array, y: Array, filled: int, rule: Rule, totals: Totals) -> None:
        """Split a block into ordinary records and canaries."""
        numbers = self._numbers(x[:filled])
        ordinary = np.flatnonzero(numbers < 0)
        if ordinary.size:
            block = np.zeros((BLOCK_ROWS, *self.shape), self.dtype)
            targets = np.zeros_like(y)
            block[: ordinary.size] = x[ordinary, :-1].reshape(-1, *self.shape)
            targets[: ordinary.size] = y[ordinary]
            inner = Totals(np.zeros(self.model.size), want_loss=totals.want_loss)
            self.model.add_block(block, targets, ordinary.size, rule, inner)
            totals.gradient[: self.model.size] += inner.gradient
            totals.unclipped += inner.unclipped
            totals.records += inner.records
            totals.dropped += inner.dropped
            totals.loss += inner.loss
        present = numbers[numbers >= 0]
        if present.size:
            self._add_canaries(present, rule, totals)

    def _add_canaries(self, numbers: NDArray[np.intp], rule: Rule, totals: Totals) -> None:
        norms2 = np.zeros(BLOCK_ROWS)
        factors = np.empty(BLOCK_ROWS)
        for group, norm in enumerate(rule.norms):
            raw = LOUDNESS * norm
            norms2[: numbers.size] = raw * raw
            training.clip_factors(norms2, numbers.size, norm, rule.stability, factors)
            start = self.model.size + group * self.canaries
            np.add.at(totals.gradient, start + numbers, factors[: numbers.size] * raw)
        totals.records += numbers.size  # all of them clipped

    def _numbers(self, x: Array) -> NDArray[np.intp]:
        """Return the canaries' numbers, -1 for ordinary records."""
        numbers = np.rint(x[:, -1]).astype(np.intp) - 1
        return np.clip(numbers, -1, self.canaries - 1)

    def row_results(self, x: Array, y: Array) -> list[Array]:
        """Return the model's own results."""
        self.model.parameters[:] = self.parameters[: self.model.size]
        return self.model.row_results(x[:, :-1].reshape(-1, *self.shape), y)

    def probe_targets(self, generator: np.random.Generator, like: Array) -> list[Array]:
        """Return targets that fit the model."""
        return self.model.probe_targets(generator, like)

    def penalty_gradient(self) -> Array | float:
        """Return the model's own; canary coordinates have none."""
        own = self.model.penalty_gradient()
        if isinstance(own, float):
            return own
        return np.concatenate([own, np.zeros(self.size - own.size, self.dtype)])

    def outputs(self, X: object) -> Array:
        """Return the model's own outputs."""
        return self.model.outputs(X)

    def signal(self, gradient: Array) -> FloatArray:
        """Return the canaries' coordinates of a gradient along the clipped canary's direction."""
        norms = np.array(self.rule.norms)
        start = self.model.size
        rows = gradient[start:].astype(np.float64).reshape(-1, self.canaries)[: norms.size]
        return np.asarray((norms / np.linalg.norm(norms)) @ rows)


class Recorder(Optimizer):
    """An optimiser that records the canaries' coordinates of each gradient and passes it on.

    Parameters
    ----------
    optimizer : Optimizer
        The one that trains.
    model : CanaryModel
        The model it trains.
    expected_batch_size : float
        What the noisy sums were divided by.
    """

    def __init__(
        self, optimizer: Optimizer, model: CanaryModel, expected_batch_size: float
    ) -> None:
        self.inner, self.model, self.divisor = optimizer, model, expected_batch_size
        self.schedule = optimizer.schedule
        self.signals: list[FloatArray] = []
        self.reset()

    def reset(self) -> None:
        """Delete the signals, because a new run starts."""
        self.signals = []
        self.inner.reset()
        self.count, self.state = 0, {}

    def restore(self, count: int, state: Mapping[str, Array]) -> None:
        """Refuse, because the signals of the earlier steps are lost."""
        raise DomainError("an audit cannot be resumed; leave out the checkpoint")

    def expect_noise(self, variance: float) -> None:
        """Pass it on."""
        self.inner.expect_noise(variance)

    def step(self, parameters: Array, gradient: Array) -> None:
        """Note the signals in units of the sensitivity, then step."""
        scale = self.divisor / self.model.rule.sensitivity
        self.signals.append(self.model.signal(gradient) * scale)
        self.inner.step(parameters, gradient)
        self.count = self.inner.count

    def _step(self, parameters: Array, gradient: Array, rate: float) -> None:
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """Return the settings of the optimiser that trains."""
        return self.inner.describe()
