"""Losses of one record: their value, and their gradient in the outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from accountant.learn import probes, validation

Array: TypeAlias = "NDArray[Any]"


class Loss(ABC):
    """A loss with ``outputs`` inputs per record."""

    outputs: int

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

    def probe_targets(self, generator: np.random.Generator, n: int, like: Array) -> list[Array]:
        """Return arrays of ``n`` random targets of the kind of checked ones."""
        return probes.public_targets(generator, n, like)


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

    outputs = 1

    def check(self, y: object, records: int, dtype: np.dtype[Any]) -> Array:
        """Return labels 0 and 1 as floats of shape (n, 1), and NaN for others."""
        labels = validation.class_labels(y, records, 2)
        return np.where(labels < 0, np.nan, labels).astype(dtype)[:, None]

    def values(self, z: Array, y: Array) -> Array:
        """Return log(1 + e^z) - y z."""
        return np.asarray((np.logaddexp(0.0, z) - y * z)[:, 0])

    def probe_targets(self, generator: np.random.Generator, n: int, like: Array) -> list[Array]:
        """Return random labels."""
        return [generator.integers(2, size=(n, 1)).astype(like.dtype)]

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
        self.outputs = classes

    def check(self, y: object, records: int, dtype: np.dtype[Any]) -> Array:
        """Return labels 0 … classes - 1, and -1 for others."""
        return validation.class_labels(y, records, self.outputs)

    def values(self, z: Array, y: Array) -> Array:
        """Return the negative log-probabilities of the labels; NaN where there is none."""
        chosen = np.where(y < 0, np.nan, z[np.arange(len(z)), y])
        return np.asarray(special.logsumexp(z, axis=1) - chosen)

    def probe_targets(self, generator: np.random.Generator, n: int, like: Array) -> list[Array]:
        """Return random labels."""
        return [generator.integers(self.outputs, size=n).astype(like.dtype)]

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
