"""The standard models."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from accountant import checks
from accountant._basics.arrays import Array
from accountant.errors import DomainError
from accountant.learn.models.layers import Activation, AveragePool, Convolution, Dense, Layer
from accountant.learn.models.network import LogisticLoss, Loss, Network, SoftmaxLoss, SquaredLoss

PENALTY = checks.nonnegative("penalty", "It weighs half the squared weights in the mean loss")


def _positive(name: str, value: object) -> int:
    return checks.integer(name, value, 1, advice="It counts units")


class _Linear(Network):
    """One dense layer, starting at zero."""

    def __init__(
        self,
        features: int,
        loss: Loss,
        *,
        penalty: float = 0.0,
        bias: bool = True,
        dtype: DTypeLike = np.float64,
    ) -> None:
        columns = _positive("features", features)
        self.penalty = checks.number(PENALTY, penalty)
        self._layer = Dense(columns, loss.outputs, bias)
        super().__init__([self._layer], loss, (columns,), dtype=dtype)
        self.parameters[:] = 0

    @property
    def coefficients(self) -> Array:
        """The weights, shape (features, outputs); a view."""
        return self._layer.weights

    @property
    def intercept(self) -> Array:
        """The bias, shape (outputs,), or empty without one; a view."""
        return self._layer.offset

    def penalty_gradient(self) -> Array | float:
        """Return the gradient of ``penalty / 2`` times the squared weights; the bias is free."""
        if self.penalty == 0.0:
            return 0.0
        gradient = np.zeros(self.size, self.dtype)
        count = self.coefficients.size
        gradient[:count] = self.penalty * self.parameters[:count]
        return gradient


class LinearRegression(_Linear):
    """Least squares; clipping a record's gradient clips its residual (a Huber loss).

    Parameters
    ----------
    features, outputs : int
        Numbers of columns of X and y.
    penalty : float
        Adds ``penalty / 2`` times the squared weights to the mean loss; 0 when left out.
    bias : bool
        Whether to fit an intercept; True when left out.
    dtype : {float32, float64}
        Of parameters and features; float64 when left out.
    """

    def __init__(self, features: int, outputs: int = 1, **given: Any) -> None:
        super().__init__(features, SquaredLoss(_positive("outputs", outputs)), **given)


class RidgeRegression(LinearRegression):
    """:class:`LinearRegression` with a penalty that must be given."""

    def __init__(self, features: int, outputs: int = 1, *, penalty: float, **given: Any) -> None:
        super().__init__(features, outputs, penalty=penalty, **given)


class LogisticRegression(_Linear):
    """The logistic model of labels 0 and 1; options as of :class:`LinearRegression`."""

    def __init__(self, features: int, **given: Any) -> None:
        super().__init__(features, LogisticLoss(), **given)


class SoftmaxRegression(_Linear):
    """The multinomial logistic model of labels 0 … classes - 1; options as there."""

    def __init__(self, features: int, classes: int, **given: Any) -> None:
        super().__init__(features, SoftmaxLoss(_positive("classes", classes)), **given)


HEADS = {"classification": SoftmaxLoss, "regression": SquaredLoss}


class MultilayerPerceptron(Network):
    """Dense layers with an activation between them.

    Parameters
    ----------
    widths : sequence of int
        Inputs, hidden layers, outputs: ``(784, 256, 10)``; any depth.
    activation : {"tanh", "relu", "sigmoid", "leaky_relu"}
        Between layers. Bounded activations suit clipping best.
    task : {"classification", "regression"}
        Softmax or squared loss.
    dtype : {float32, float64}
        Of parameters and features.
    seed : int
        Of the initial parameters, which are public.
    """

    def __init__(
        self,
        widths: Sequence[int],
        *,
        activation: str = "tanh",
        task: str = "classification",
        dtype: DTypeLike = np.float64,
        seed: int = 0,
    ) -> None:
        sizes = [_positive("widths", width) for width in widths]
        if len(sizes) < 2:
            raise DomainError(f"widths must name inputs and outputs at least; got {widths!r}")
        checks.choice("activation", activation, tuple(Activation.FORWARD))
        layers: list[Layer] = []
        for inputs, outputs in pairwise(sizes):
            layers += [Dense(inputs, outputs), Activation(activation)]
        loss = HEADS[checks.choice("task", task, tuple(HEADS))](sizes[-1])
        super().__init__(layers[:-1], loss, (sizes[0],), dtype=dtype, seed=seed)


class ConvolutionalNetwork(Network):
    """Convolutions with average pooling, then dense layers.

    Parameters
    ----------
    image_shape : tuple of int
        (height, width) or (height, width, channels); features come flat, channels last.
    classes : int
        Number of classes.
    kernels : sequence of int
        Kernels of each convolution.
    kernel_width, pool : int
        Width of the kernels and of the pooling squares.
    hidden : int
        Width of the dense layer before the output; 0 for none.
    activation, dtype, seed
        As in :class:`MultilayerPerceptron`.
    """

    def __init__(
        self,
        image_shape: Sequence[int],
        classes: int,
        *,
        kernels: Sequence[int] = (8, 16),
        kernel_width: int = 3,
        pool: int = 2,
        hidden: int = 32,
        activation: str = "tanh",
        dtype: DTypeLike = np.float64,
        seed: int = 0,
    ) -> None:
        checks.choice("activation", activation, tuple(Activation.FORWARD))
        height, width, channels = [*image_shape, 1][:3]
        layers: list[Layer] = []
        shape, deep = (height, width), channels
        for count in kernels:
            inside = tuple(max(side - kernel_width + 1, 0) for side in shape)
            convolution = Convolution(deep, count, kernel_width, inside[0] * inside[1])
            layers += [convolution, Activation(activation), AveragePool(pool)]
            shape = (inside[0] // pool, inside[1] // pool)
            deep = count
            if min(shape) < 1:
                raise DomainError(f"images of shape {tuple(image_shape)} are too small")
        flat = shape[0] * shape[1] * deep
        if hidden:
            layers += [Dense(flat, hidden), Activation(activation)]
            flat = hidden
        layers.append(Dense(flat, classes))
        super().__init__(
            layers, SoftmaxLoss(classes), (height, width, channels), dtype=dtype, seed=seed
        )
