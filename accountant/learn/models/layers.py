"""Layers of feed-forward networks with per-example gradient norms.

A layer with parameters offers, after a forward and a backward pass, the squared norms of its
per-example gradients and the sum of those gradients weighted by clip factors. Dense layers never
form a gradient of one record: its squared norm is ``|g|² (|a|² + 1)`` for inputs a and output
gradients g (Goodfellow 2015), and the weighted sum is one matrix product.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import special

from accountant._basics.arrays import Array, FloatArray
from accountant._core import training
from accountant.learn.models.base import norm_limit


def row_products(a: Array, weights: Array) -> Array:
    """Return ``a @ weights``, every row of which depends on its own row of ``a`` alone.

    That of a matrix library depends, in its last digits, on how many rows there are and where a
    row stands (docs/theorems_training.md, Theorem T11).
    """
    out = np.empty((len(a), weights.shape[1]), a.dtype)
    training.products(a, weights, out)
    return out


def wide(a: Array) -> FloatArray:
    """Return rows in double precision."""
    return a.astype(np.float64, copy=False)


class Layer(ABC):
    """One layer; ``bind`` hands it its part of the flat parameters."""

    size = 0  # number of parameters
    widest = 0  # the largest number of squares in one norm
    terms = 1  # rows of one matrix product that belong to one record
    spread = 1.0  # most by which their lengths, added up, exceed the record's computed norm
    scratch: tuple[str, ...] = ()  # what forward and backward remember of the records

    def bind(self, parameters: Array) -> None:  # noqa: B027 (only layers with parameters)
        """Use ``parameters``, a view of the model's flat array, from now on."""

    def initialise(self, generator: np.random.Generator) -> None:  # noqa: B027
        """Draw initial parameters; they do not depend on data."""

    @abstractmethod
    def forward(self, a: Array) -> Array:
        """Return the outputs for a block of inputs, and remember what backward needs."""

    @abstractmethod
    def backward(self, g: Array, need_input: bool) -> Array | None:
        """Return the gradient in the inputs (None when not needed) from that in the outputs."""

    def add_norms(self, norms2: FloatArray) -> None:  # noqa: B027
        """Add the squared norms of the per-example gradients."""

    def add_gradient(  # noqa: B027
        self, factors: FloatArray, total: FloatArray
    ) -> None:
        """Add the factor-weighted sum of the gradients; the remembered rows are overwritten."""

    def rows(self) -> list[Array]:
        """Return what the layer remembers, one row a record."""
        return []

    def forget(self) -> None:
        """Drop what the last block left: a saved model must not hold records."""
        for name in self.scratch:
            self.__dict__.pop(name, None)


class Dense(Layer):
    """a W + b, with W of shape (inputs, outputs)."""

    scratch = ("_a", "_g")

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        self.inputs, self.outputs, self.bias = inputs, outputs, bias
        self.size = (inputs + bias) * outputs
        self.widest = max(inputs, outputs)

    def bind(self, parameters: Array) -> None:
        """Split the parameters into weights and bias."""
        self.weights = parameters[: self.inputs * self.outputs].reshape(self.inputs, self.outputs)
        self.offset = parameters[self.inputs * self.outputs :]
        self._product = np.empty(self.weights.shape)

    def initialise(self, generator: np.random.Generator) -> None:
        """Draw Glorot's uniform weights; the bias is zero."""
        reach = np.sqrt(6.0 / (self.inputs + self.outputs))
        self.weights[...] = generator.uniform(-reach, reach, self.weights.shape)
        self.offset[...] = 0

    def forward(self, a: Array) -> Array:
        """Return a W + b."""
        self._a = np.ascontiguousarray(a.reshape(len(a), -1))
        z = row_products(self._a, self.weights)
        if self.bias:
            z += self.offset
        return z

    def backward(self, g: Array, need_input: bool) -> Array | None:
        """Return g Wᵀ."""
        self._g = np.ascontiguousarray(g)
        return row_products(self._g, self.weights.T) if need_input else None

    def add_norms(self, norms2: FloatArray) -> None:
        """Add |g|² (|a|² + 1)."""
        limit = norm_limit(self._a.dtype)
        training.add_ghost_norms(self._a, self._g, float(self.bias), limit, norms2)

    def add_gradient(self, factors: FloatArray, total: FloatArray) -> None:
        """Add aᵀ (c g), one matrix product, and the column sums of c g."""
        training.scale_rows(self._g, factors)
        if not factors.all():  # a row that is not finite would spoil the product even times zero
            training.zero_rows(self._a, factors)
        # The product is in double precision always: its error is charged for every record.
        np.matmul(wide(self._a).T, wide(self._g), out=self._product)
        training.accumulate(self._product.ravel(), total[: self.weights.size])
        if self.bias:
            total[self.weights.size :] += self._g.sum(axis=0, dtype=np.float64)

    def rows(self) -> list[Array]:
        """Return inputs and output gradients."""
        return [self._a, self._g]

    def forget(self) -> None:
        """Drop the rows, and the sum of the last block, which has no noise."""
        super().forget()
        self._product = np.zeros(self.weights.shape)


class Activation(Layer):
    """An elementwise function: tanh, relu, sigmoid or leaky_relu."""

    NAMES = ("tanh", "relu", "sigmoid", "leaky_relu")
    SLOPE = 0.01
    scratch = ("_out",)

    def __init__(self, name: str) -> None:
        self.name = name

    def forward(self, a: Array) -> Array:
        """Return f(a), written over ``a``, which is the layer's below own output."""
        if self.name == "tanh":
            np.tanh(a, out=a)
        elif self.name == "relu":
            np.maximum(a, 0, out=a)
        elif self.name == "sigmoid":
            special.expit(a, out=a)
        else:
            np.maximum(a, self.SLOPE * a, out=a)
        self._out = a
        return a

    def backward(self, g: Array, need_input: bool) -> Array | None:
        """Multiply g, in place, by the derivative, which the output determines."""
        f = self._out.reshape(g.shape)
        if self.name == "tanh":
            derivative = np.square(f)
            np.subtract(1, derivative, out=derivative)
            g *= derivative
        elif self.name == "relu":
            g *= f > 0
        elif self.name == "sigmoid":
            g *= f * (1 - f)
        else:
            g[f <= 0] *= self.SLOPE
        return g


class AveragePool(Layer):
    """Means over squares of ``width`` pixels; what does not fill a square is left out."""

    scratch = ("_shape",)

    def __init__(self, width: int) -> None:
        self.width = width

    def forward(self, a: Array) -> Array:
        """Return the means of images of shape (rows, height, width, channels)."""
        k = self.width
        n, height, width, channels = self._shape = a.shape
        a = a[:, : height // k * k, : width // k * k]
        return np.asarray(a.reshape(n, height // k, k, width // k, k, channels).mean(axis=(2, 4)))

    def backward(self, g: Array, need_input: bool) -> Array | None:
        """Spread the gradient evenly."""
        k = self.width
        n, height, width, channels = self._shape
        g = g.reshape(n, height // k, width // k, channels) / (k * k)
        out = np.zeros(self._shape, g.dtype)
        out[:, : height // k * k, : width // k * k] = g.repeat(k, axis=1).repeat(k, axis=2)
        return out


class LayerStack:
    """What networks share: layers, and the parameters that the layers' weights are views of."""

    layers: list[Layer]
    parameters: Array
    _slices: list[slice]

    def _stack(
        self, layers: Sequence[Layer], dtype: DTypeLike, generator: np.random.Generator
    ) -> None:
        """Lay out the parameters of the layers one after another, and draw them."""
        self.layers = list(layers)
        ends = np.cumsum([0, *(layer.size for layer in self.layers)])
        self._slices = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self.parameters = np.zeros(int(ends[-1]), dtype)
        self._bind()
        for layer in self.layers:
            layer.initialise(generator)

    def _bind(self) -> None:
        for layer, part in zip(self.layers, self._slices, strict=True):
            layer.bind(self.parameters[part])

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the layers' weights views of the parameters again: a pickle holds two copies."""
        self.__dict__.update(state)
        self._bind()
