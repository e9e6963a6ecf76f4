"""Convolutions with per-example gradient norms, by ghost norms or instantiated gradients.

A record's gradient is Σ_t a_t g_tᵀ over T positions, with patches a_t and output gradients g_t. Its
squared norm is <A Aᵀ, G Gᵀ>, two matrices of T × T numbers (Bu, Mao, Xu 2022): the gradient itself
is never formed. Where T is large, or in single precision, it is cheaper or safer to form it.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from accountant._basics.arrays import Array, FloatArray
from accountant._core import training
from accountant.learn.models.base import norm_limit
from accountant.learn.models.layers import Layer, row_products, wide

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
