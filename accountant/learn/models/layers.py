"""Layers of feed-forward networks with per-example gradient norms.

A layer with parameters offers, after a forward and a backward pass, the squared norms of its
per-example gradients and the sum of those gradients weighted by clip factors. Dense layers never
form a gradient of one record: its squared norm is ``|g|² (|a|² + 1)`` for inputs a and output
gradients g (Goodfellow 2015), and the weighted sum is one matrix product.

A record's gradient of a convolution is Σ_t a_t g_tᵀ over T positions, with patches a_t and output
gradients g_t. Its squared norm is <A Aᵀ, G Gᵀ>, two matrices of T × T numbers (Bu, Mao, Xu 2022):
the gradient itself is never formed. Where T is large, or in single precision, it is cheaper or
safer to form it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
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

    SLOPE = 0.01
    FORWARD: ClassVar[dict[str, Callable[[Array], Array]]] = {
        "tanh": lambda a: np.tanh(a, out=a),
        "relu": lambda a: np.maximum(a, 0, out=a),
        "sigmoid": lambda a: special.expit(a, out=a),
        "leaky_relu": lambda a: np.maximum(a, Activation.SLOPE * a, out=a),
    }
    # Of the output, which determines it.
    DERIVATIVE: ClassVar[dict[str, Callable[[Array], Array]]] = {
        "tanh": lambda f: 1 - np.square(f),
        "relu": lambda f: f > 0,
        "sigmoid": lambda f: f * (1 - f),
        "leaky_relu": lambda f: np.where(f <= 0, f.dtype.type(Activation.SLOPE), f.dtype.type(1)),
    }
    scratch = ("_out",)

    def __init__(self, name: str) -> None:
        self.name = name

    def forward(self, a: Array) -> Array:
        """Return f(a), written over ``a``, which is the layer's below own output."""
        self._out = self.FORWARD[self.name](a)
        return self._out

    def backward(self, g: Array, need_input: bool) -> Array | None:
        """Multiply g, in place, by the derivative."""
        g *= self.DERIVATIVE[self.name](self._out.reshape(g.shape))
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


# Ghost norms cost T² (patch + kernels) multiplications, instantiation passes over patch · kernels
# numbers of memory, one of which was measured to cost this many multiplications. It affects speed.
COST_OF_MEMORY = 12.0
# Cancellation within a record is bounded by clipping harder what cancels more (Theorem T3).
SPREAD = 1024.0


class Convolution(Layer):
    """A square convolution without padding, as a matrix product of image patches.

    The bias counts once, summed over positions, and not position by position.

    Parameters
    ----------
    channels, kernels, width : int
        Channels of the images, number of kernels, and their width.
    positions : int
        T, of the images that will come: it decides how norms are computed.
    """

    scratch = ("_shape", "_patches", "_g", "_gradients", "_offsets")

    def __init__(self, channels: int, kernels: int, width: int, positions: int) -> None:
        self.channels, self.kernels, self.width = channels, kernels, width
        self.positions = positions
        self.patch = width * width * channels
        self.size = (self.patch + 1) * kernels
        self.widest = self.size
        cost = positions**2 * (self.patch + kernels)
        self.cheaper_as_ghost = cost <= COST_OF_MEMORY * self.patch * kernels

    def bind(self, parameters: Array) -> None:
        """Split the parameters into kernels and bias, and choose how norms are computed."""
        split = self.patch * self.kernels
        self.weights = parameters[:split].reshape(self.patch, self.kernels)
        self.offset = parameters[split:]
        self.choose(self.cheaper_as_ghost and parameters.dtype == np.float64)

    def choose(self, ghost: bool) -> None:
        """Compute norms as ghosts, or from instantiated gradients."""
        self.ghost = ghost
        self.terms = self.positions if ghost else 1
        self.spread = SPREAD if ghost else 1.0

    def initialise(self, generator: np.random.Generator) -> None:
        """Draw Glorot's uniform kernels; the bias is zero."""
        reach = np.sqrt(6.0 / (self.patch + self.kernels * self.width**2))
        self.weights[...] = generator.uniform(-reach, reach, self.weights.shape)
        self.offset[...] = 0

    def forward(self, a: Array) -> Array:
        """Return images of shape (rows, height', width', kernels)."""
        self._shape = a.shape
        windows = sliding_window_view(a, (self.width, self.width), axis=(1, 2))
        n, height, width = windows.shape[:3]
        # (…, channel, row, column) of a window becomes (row, column, channel); always a copy, for
        # clipping may write into it.
        self._patches = np.array(windows.transpose(0, 1, 2, 4, 5, 3), order="C").reshape(
            n, height * width, self.patch
        )
        z = row_products(self._patches.reshape(-1, self.patch), self.weights)
        z += self.offset
        return z.reshape(n, height, width, self.kernels)

    def backward(self, g: Array, need_input: bool) -> Array | None:
        """Keep g, or instantiate the records' gradients; fold g Wᵀ back onto the images."""
        n, height, width = g.shape[:3]
        g = np.ascontiguousarray(g).reshape(n, height * width, self.kernels)
        offsets = g.sum(axis=1)
        if self.ghost:
            # Its own memory: clipping writes over it, and the layer above may still own g.
            self._g, self._offsets = g.copy(), offsets
        else:
            weights = np.matmul(self._patches.transpose(0, 2, 1), g).reshape(n, -1)
            self._gradients = np.concatenate([weights, offsets], axis=1)
        if not need_input:
            return None
        k = self.width
        back = row_products(g.reshape(-1, self.kernels), self.weights.T).reshape(
            n, height, width, k, k, self.channels
        )
        out = np.zeros(self._shape, g.dtype)
        for i in range(k):
            for j in range(k):
                out[:, i : i + height, j : j + width] += back[:, :, :, i, j]
        return out

    def add_norms(self, norms2: FloatArray) -> None:
        """Add the squared norms, those of ghosts rounded up."""
        if self.ghost:
            training.add_row_norms(self._offsets, norm_limit(self._offsets.dtype), norms2)
            norms2 += self._squares()
        else:
            training.add_row_norms(self._gradients, norm_limit(self._gradients.dtype), norms2)

    def _squares(self) -> FloatArray:
        """Return bounds on the squared norms of Σ_t a_t g_tᵀ, above (Σ_t |a_t| |g_t| / SPREAD)²."""
        patches, g = self._patches, self._g
        inner = np.matmul(patches, patches.transpose(0, 2, 1))
        outer = np.matmul(g, g.transpose(0, 2, 1))
        diagonal = np.einsum("ntt,ntt->nt", inner, outer)
        # Where one factor is huge the square of the other, a small one, may have vanished.
        limit = norm_limit(g.dtype)
        largest = np.maximum(
            np.einsum("ntt->nt", inner).max(axis=1), np.einsum("ntt->nt", outer).max(axis=1)
        )
        length = np.sqrt(diagonal).sum(axis=1)
        inner *= outer
        squares = inner.sum(axis=(1, 2))
        # Every entry and their sum are off by less than this share of the lengths (Theorem T3).
        terms = self.patch + self.kernels + self.positions**2 + 8
        squares += 2.0**-52 * terms * length**2
        squares = np.maximum(squares, (length / SPREAD) ** 2)
        return np.where((squares <= limit) & (largest <= limit), squares, np.inf)

    def add_gradient(self, factors: FloatArray, total: FloatArray) -> None:
        """Add the scaled rows: one product over all positions, or the instantiated gradients."""
        if not self.ghost:
            training.scale_rows(self._gradients, factors)
            total += self._gradients.sum(axis=0, dtype=np.float64)
            return
        repeated = np.repeat(factors, self.positions)
        g = self._g.reshape(-1, self.kernels)
        patches = self._patches.reshape(-1, self.patch)
        training.scale_rows(g, repeated)
        training.scale_rows(self._offsets, factors)
        if not factors.all():  # a row that is not finite would spoil the product even times zero
            training.zero_rows(patches, repeated)
        split = self.weights.size
        training.accumulate((wide(patches).T @ wide(g)).ravel(), total[:split])
        total[split:] += self._offsets.sum(axis=0, dtype=np.float64)

    def rows(self) -> list[Array]:
        """Return what a record's norm and contribution are computed from."""
        if not self.ghost:
            return [self._gradients]
        return [self._patches, self._g, self._offsets, self._squares()]
