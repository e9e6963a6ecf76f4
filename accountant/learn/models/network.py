"""Feed-forward networks: losses, one backward pass, and per-example clipping."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import special

from accountant._basics.arrays import Array
from accountant._core import training
from accountant.errors import DomainError
from accountant.learn import validation
from accountant.learn.clipping import Rule
from accountant.learn.models.base import BLOCK_ROWS, Model, Totals
from accountant.learn.models.layers import Layer, LayerStack
from accountant.learn.validation import features


def float_type(dtype: DTypeLike) -> np.dtype[Any]:
    """Return float32 or float64 as a NumPy dtype."""
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise DomainError(f"dtype must be float32 or float64; got {kind}")
    return kind


class Network(LayerStack, Model):
    """Layers, then a loss.

    Parameters
    ----------
    layers : sequence of Layer
        From the inputs on.
    loss : Loss
        With as many outputs as the last layer.
    input_shape : tuple of int
        The shape of one record inside the network; features come flat.
    dtype : {float32, float64}
        Of parameters and features.
    seed : int
        Of the initial parameters, which are public.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        loss: Loss,
        input_shape: tuple[int, ...],
        *,
        dtype: DTypeLike = np.float64,
        seed: int = 0,
    ) -> None:
        self.loss = loss
        self.input_shape = input_shape
        self.columns = int(np.prod(input_shape))
        self._stack(layers, float_type(dtype), np.random.default_rng(seed))
        self.groups = tuple(s for s in self._slices if s.stop > s.start)
        self.widest = max(layer.widest for layer in self.layers)
        self._first = next(i for i, layer in enumerate(self.layers) if layer.size)

    @property
    def terms(self) -> int:  # type: ignore[override]
        """Rows of one matrix product that belong to one record, at most."""
        return max(layer.terms for layer in self.layers)

    @property
    def spread(self) -> float:  # type: ignore[override]
        """Most by which the lengths of a record's terms exceed its computed norm."""
        return max(layer.spread for layer in self.layers)

    def check(self, X: object, y: object) -> tuple[Array, Array]:
        """Return features of shape (n, d) and targets that fit the loss."""
        data = features(X, self.columns, self.dtype)
        return data, self.loss.check(y, len(data), self.dtype)

    def _forward(self, x: Array) -> Array:
        a = x.reshape(len(x), *self.input_shape)
        for layer in self.layers:
            a = layer.forward(a)
        return a

    def _backward(self, g: Array) -> None:
        for i in range(len(self.layers) - 1, self._first - 1, -1):
            below = self.layers[i].backward(g, i > self._first)
            if below is not None:
                g = below

    def add_block(self, x: Array, y: Array, filled: int, rule: Rule, totals: Totals) -> None:
        """Run both passes, then clip and add layer by layer."""
        z = self._forward(x)
        if totals.want_loss:
            totals.loss += float(np.nansum(self.loss.values(z[:filled], y[:filled])))
        self._backward(self.loss.gradient(z, y))
        own = [(la, s) for la, s in zip(self.layers, self._slices, strict=True) if la.size]
        clipped = [own] if len(rule.norms) == 1 else [[layer] for layer in own]
        norms2 = np.zeros(BLOCK_ROWS)
        factors = np.empty(BLOCK_ROWS)
        for together, norm in zip(clipped, rule.norms, strict=True):
            squares = np.zeros(BLOCK_ROWS)
            for layer, _ in together:
                layer.add_norms(squares)
            training.clip_factors(squares, filled, norm, rule.stability, factors)
            for layer, part in together:
                layer.add_gradient(factors, totals.gradient[part])
            norms2 += squares
        totals.count(norms2, filled, rule)

    def add_rows(
        self, X: Array, y: Array, rows: NDArray[np.intp] | None, rule: Rule, totals: Totals
    ) -> None:
        """Add the clipped gradients of checked data, and keep nothing of them in the layers."""
        try:
            super().add_rows(X, y, rows, rule, totals)
        finally:
            self._forget()

    def _forget(self) -> None:
        for layer in self.layers:
            layer.forget()

    def row_results(self, x: Array, y: Array) -> list[Array]:
        """Return inputs and output gradients of every layer with parameters."""
        with np.errstate(all="ignore"):
            self._backward(self.loss.gradient(self._forward(x), y))
        results = [rows.copy() for layer in self.layers for rows in layer.rows()]
        self._forget()
        return results

    def probe_targets(self, generator: np.random.Generator, like: Array) -> list[Array]:
        """Return random targets of the loss."""
        if self.loss.classes is None:
            return super().probe_targets(generator, like)
        labels = generator.integers(self.loss.classes, size=(BLOCK_ROWS, *like.shape[1:]))
        return [labels.astype(like.dtype)]

    def input_gradient(self, X: object, y: object) -> Array:
        """Return the gradient of every record's loss in its features, shape (n, features)."""
        data, targets = self.check(X, y)
        with np.errstate(all="ignore"):
            g = self.loss.gradient(self._forward(data.copy()), targets)
            for layer in reversed(self.layers):
                g = np.asarray(layer.backward(g, True))
        self._forget()
        return g.reshape(len(data), self.columns)

    def outputs(self, X: object) -> Array:
        """Return the outputs of the last layer, shape (n, outputs)."""
        data = features(X, self.columns, self.dtype)
        with np.errstate(all="ignore"):
            starts = range(0, max(1, len(data)), 1024)
            parts = [self._forward(data[i : i + 1024].copy()) for i in starts]
        self._forget()
        return np.concatenate(parts)

    def predict(self, X: object) -> Array:
        """Return predicted labels, or values for regression."""
        return self.loss.predict(self.outputs(X))

    def losses(self, X: object, y: object) -> Array:
        """Return the loss of every record: private unless the data are public."""
        data, targets = self.check(X, y)
        return self.loss.values(self.outputs(data), targets)

    def score(self, X: object, y: object) -> float:
        """Return the accuracy, or R² for regression: private unless the data are public."""
        predicted = self.predict(X)
        if predicted.dtype.kind == "i":
            return float(np.mean(predicted == np.asarray(y)))
        truth = np.asarray(y, dtype=np.float64).reshape(predicted.shape)
        spread = np.square(truth - truth.mean(axis=0)).sum()
        return float(1.0 - np.square(truth - predicted).sum() / spread)


class Loss(ABC):
    """A loss with ``outputs`` inputs per record."""

    outputs: int
    classes: int | None = None  # labels are 0 … classes - 1; None for numbers

    @abstractmethod
    def check(self, y: object, records: int, dtype: np.dtype[Any]) -> Array:
        """Return the targets in the loss's type, or raise."""

    @abstractmethod
    def values(self, z: Array, y: Array) -> Array:
        """Return one loss a record for outputs ``z`` of shape (n, outputs)."""

    @abstractmethod
    def gradient(self, z: Array, y: Array) -> Array:
        """Return the gradient in ``z``; ``z`` is overwritten."""

    @abstractmethod
    def predict(self, z: Array) -> Array:
        """Return predictions from outputs."""


class SquaredLoss(Loss):
    """Half the squared residual, summed over outputs."""

    def __init__(self, outputs: int = 1) -> None:
        self.outputs = outputs

    def check(self, y: object, records: int, dtype: np.dtype[Any]) -> Array:
        """Return targets of shape (n, outputs)."""
        return validation.targets(y, records, self.outputs, dtype)

    def values(self, z: Array, y: Array) -> Array:
        """Return half the squared residuals."""
        return np.asarray(0.5 * np.square(z - y).sum(axis=1))

    def gradient(self, z: Array, y: Array) -> Array:
        """Return the residual."""
        return np.subtract(z, y, out=z)

    def predict(self, z: Array) -> Array:
        """Return the outputs, one-dimensional for a single one."""
        return z[:, 0] if self.outputs == 1 else z


class LogisticLoss(Loss):
    """The logistic loss of labels 0 and 1."""

    outputs, classes = 1, 2

    def check(self, y: object, records: int, dtype: np.dtype[Any]) -> Array:
        """Return labels 0 and 1 as floats of shape (n, 1), and NaN for others."""
        labels = validation.class_labels(y, records, 2)
        return np.where(labels < 0, np.nan, labels).astype(dtype)[:, None]

    def values(self, z: Array, y: Array) -> Array:
        """Return log(1 + e^z) - y z."""
        return np.asarray((np.logaddexp(0.0, z) - y * z)[:, 0])

    def gradient(self, z: Array, y: Array) -> Array:
        """Return the residual of the predicted probability."""
        special.expit(z, out=z)
        z -= y
        return z

    def predict(self, z: Array) -> Array:
        """Return labels."""
        return (z[:, 0] > 0).astype(np.intp)


class SoftmaxLoss(Loss):
    """The cross-entropy of the softmax of ``classes`` outputs."""

    def __init__(self, classes: int) -> None:
        self.outputs = self.classes = classes

    def check(self, y: object, records: int, dtype: np.dtype[Any]) -> Array:
        """Return labels 0 … classes - 1, and -1 for others."""
        return validation.class_labels(y, records, self.outputs)

    def values(self, z: Array, y: Array) -> Array:
        """Return the negative log-probabilities of the labels; NaN where there is none."""
        chosen = np.where(y < 0, np.nan, z[np.arange(len(z)), y])
        return np.asarray(special.logsumexp(z, axis=1) - chosen)

    def gradient(self, z: Array, y: Array) -> Array:
        """Return probabilities minus the one-hot label; NaN for a record without a label."""
        z -= z.max(axis=1, keepdims=True)
        np.exp(z, out=z)
        z /= z.sum(axis=1, keepdims=True)
        z[np.arange(len(z)), y] -= 1
        z[y < 0] = np.nan  # such a record adds nothing
        return z

    def predict(self, z: Array) -> Array:
        """Return the most probable labels."""
        return np.asarray(z.argmax(axis=1))
