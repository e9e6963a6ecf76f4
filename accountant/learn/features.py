"""Frozen feature extractors in front of a private head: only the head's cost is accounted.

An extractor must be *public*: fixed, or fitted on public data. It maps every record by itself, so
the neighbouring relation carries over to its outputs. Fitting one on the private data would be a
release of its own, which nothing here accounts for.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant._core import training
from accountant.errors import DomainError, UnsupportedError
from accountant.learn.models.base import each_row, public_rows, rearranged, same_bits
from accountant.learn.models.layers import row_products
from accountant.learn.validation import features
from accountant.noise.generator import THREADS

FLOAT64 = np.dtype(np.float64)
BANDWIDTH = checks.SCALE.renamed("bandwidth", "It is the width of the Gaussian kernel")
POWER = checks.SCALE.renamed("power", "1 keeps the entries")
PIECE = 1024  # Rows worked on at a time: affects speed only.
# A function of the user's sees this many rows at a time, always: Theorem T11 depends on it.
FROZEN_ROWS = 256


class Extractor(ABC):
    """Maps rows to rows, each by itself.

    Notes
    -----
    *Guarantee.* The features of a record are finite, and are the same bits whatever the
    other records are, however many, and in which order they come
    (docs/theorems_training.md, Theorem T11). Features that overflow are 0.
    """

    columns: int | None = None  # of a record; any number where None

    def __call__(self, X: object) -> FloatArray:
        """Return the features of records of shape (n, d): 0 where they cannot be computed."""
        data = features(X, self.columns, FLOAT64)
        if data.ndim != 2:
            raise DomainError(
                f"X must have shape (records, features); got {data.shape[1:]} a record"
            )
        return self.transform(data)

    def transform(self, X: FloatArray) -> FloatArray:
        """Return the features of checked records."""
        # Rows are independent of one another, so pieces can be made in any order, by any thread.
        pieces = [X[i : i + PIECE] for i in range(0, len(X), PIECE)] or [X]
        if len(pieces) > 1 and THREADS > 1:
            with ThreadPoolExecutor(THREADS) as pool:
                return np.concatenate(list(pool.map(self._finite, pieces)))
        return np.concatenate([self._finite(piece) for piece in pieces])

    def _finite(self, X: Array) -> FloatArray:
        with np.errstate(all="ignore"):  # a warning would say something about a record
            out = np.ascontiguousarray(self._rows(X), dtype=np.float64)
        if not np.isfinite(out).all():
            out = np.where(np.isfinite(out), out, 0.0)
        return out

    @abstractmethod
    def _rows(self, X: Array) -> Array:
        """Return the features of some contiguous rows, none of which may depend on another."""


class PrincipalComponents(Extractor):
    """Projection onto the leading principal components of *public* data.

    Parameters
    ----------
    public : array_like, shape (n, d)
        Public records; never the private ones.
    components : int
        How many.
    whiten : bool
        Divide by the public standard deviations.
    """

    def __init__(self, public: object, components: int, *, whiten: bool = False) -> None:
        data = features(public, None, FLOAT64)
        if not np.isfinite(data).all():
            raise DomainError("public must be finite; it holds NaN, infinity or what is no number")
        components = checks.integer(
            "components", components, 1, min(data.shape), advice=f"The data are {data.shape}"
        )
        self.mean = data.mean(axis=0)
        self.columns = data.shape[1]
        _, values, axes = np.linalg.svd(data - self.mean, full_matrices=False)
        scale = np.sqrt(len(data)) / np.maximum(values[:components], 1e-12) if whiten else 1.0
        self.axes = axes[:components].T * scale

    def _rows(self, X: Array) -> Array:
        """Return the coordinates along the components."""
        return row_products(X - self.mean, self.axes)


class RandomFourierFeatures(Extractor):
    """Random features of the Gaussian kernel of a bandwidth (Rahimi, Recht 2007).

    Every row has norm at most 1. The seed is public.
    """

    def __init__(self, inputs: int, outputs: int, bandwidth: float, *, seed: int = 0) -> None:
        checks.number(BANDWIDTH, bandwidth)
        generator = np.random.default_rng(seed)
        self.frequencies = generator.standard_normal((inputs, -(-outputs // 2))) / bandwidth
        self.columns, self.outputs = inputs, outputs

    def _rows(self, X: Array) -> Array:
        """Return cosines and sines of random projections."""
        angles = row_products(X, self.frequencies)
        waves = np.empty((len(X), self.outputs))
        training.waves(angles, 1.0 / math.sqrt(self.frequencies.shape[1]), waves)
        return waves


class OrientedGradients(Extractor):
    """Histograms of oriented gradients of grey images (Dalal, Triggs 2005): nothing is fitted.

    Parameters
    ----------
    height, width : int
        Of the images; records come flat.
    cell : int
        Spacing of the pooling windows, which overlap by half.
    orientations : int
        Bins of the gradient's direction.
    """

    def __init__(self, height: int, width: int, cell: int = 4, orientations: int = 8) -> None:
        if not (height >= cell >= 1 and width >= cell and orientations >= 2):
            raise DomainError("images must be at least one cell high and wide, with 2 orientations")
        self.height, self.width, self.cell, self.orientations = height, width, cell, orientations
        self.columns = height * width

    def _rows(self, X: Array) -> Array:
        # Sums, products and quotients of arrays are rounded correctly, each element by itself.
        images = np.pad(X.reshape(-1, self.height, self.width), ((0, 0), (1, 1), (1, 1)))
        across = images[:, 1:-1, 2:] - images[:, 1:-1, :-2]
        down = images[:, 2:, 1:-1] - images[:, :-2, 1:-1]
        size, angle = np.empty(across.size), np.empty(across.size)
        training.polar(across.ravel(), down.ravel(), size, angle)
        size, angle = size.reshape(across.shape), angle.reshape(across.shape)
        bins = self.orientations
        angle = angle / (2 * np.pi) * bins % bins
        below = np.floor(angle)
        share = angle - below
        maps = [
            size * ((1 - share) * (below % bins == b) + share * ((below + 1) % bins == b))
            for b in range(bins)
        ]
        pooled = [self._pool(m) for m in maps]
        stacked = np.stack(pooled, axis=-1)
        return stacked.reshape(len(X), math.prod(stacked.shape[1:]))

    def _pool(self, image: Array) -> Array:
        """Add up with triangular windows two cells wide, one cell apart."""
        cell, width = self.cell, 2 * self.cell
        window = 1.0 - np.abs(np.arange(width) - (width - 1) / 2) / cell
        margin = cell // 2
        padded = np.pad(image, ((0, 0), (margin, margin), (margin, margin)))
        high = (padded.shape[1] - width) // cell + 1
        wide = (padded.shape[2] - width) // cell + 1
        # Element by element in a fixed order; a library's sum would choose one by the shape.
        strips = np.zeros((len(image), high, padded.shape[2]))
        for k, weight in enumerate(window):
            strips += weight * padded[:, k : k + (high - 1) * cell + 1 : cell]
        out = np.zeros((len(image), high, wide))
        for k, weight in enumerate(window):
            out += weight * strips[:, :, k : k + (wide - 1) * cell + 1 : cell]
        return out


class UnitNorm(Extractor):
    """Take every entry to a power, keeping its sign, then scale every row to norm 1.

    A row of zeros stays. Power 1/2 evens out histograms.
    """

    def __init__(self, power: float = 1.0) -> None:
        checks.number(POWER, power)
        self.power = power

    def _rows(self, X: Array) -> Array:
        """Return rows of norm 1."""
        shaped = np.array(X)
        if self.power != 1.0:
            training.powers(shaped.reshape(-1), self.power, shaped.reshape(-1))
        training.units(shaped)
        return shaped


class Frozen(Extractor):
    """An extractor of the user's own: a public function of rows.

    Parameters
    ----------
    function : callable
        Maps an array of shape (n, d) to one of shape (n, k). It is called on 256 rows at a time,
        the last of them padded with zeros, and is tried on random rows first: one whose values for
        a row change, by a single bit, with the other rows or with the row's place is refused. The
        features of a row on which it raises are 0.
    """

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self.function = function
        self._tried: set[int] = set()

    def transform(self, X: FloatArray) -> FloatArray:
        """Return the function's values."""
        columns = X.shape[1]
        if columns not in self._tried:
            # On public rows, so that an exception says nothing about a record.
            _require_rows(self._block, columns)
            self._tried.add(columns)
        block = np.zeros((FROZEN_ROWS, columns))
        with np.errstate(all="ignore"):
            width = self._block(block).shape[1]
            out = np.empty((len(X), width))
            for start in range(0, len(X), FROZEN_ROWS):
                filled = min(FROZEN_ROWS, len(X) - start)
                block[:filled] = X[start : start + filled]
                block[filled:] = 0
                found = each_row(self._block, (block,), (width,), FLOAT64)
                out[start : start + filled] = found[:filled]
        if not np.isfinite(out).all():
            out[~np.isfinite(out)] = 0.0
        return out

    def _rows(self, X: Array) -> Array:
        return self._block(X)

    def _block(self, block: Array) -> Array:
        values = np.asarray(self.function(block), dtype=np.float64)
        if values.ndim != 2 or len(values) != len(block):
            raise DomainError(
                "the function must return one row a record, shape (n, k); for"
                f" {len(block)} records it returned {values.shape}"
            )
        return values


def _require_rows(function: Callable[[Array], Array], columns: int) -> None:
    """Raise unless a function's values for a row are the same bits among other rows."""
    generator = np.random.default_rng(0)
    for x in public_rows(generator, FROZEN_ROWS, columns, FLOAT64):
        with np.errstate(all="ignore"):
            here = function(x.copy()).copy()
            for order, other in rearranged(generator, x):
                stay = order >= 0
                there = function(other)[stay]
                if not same_bits(here[order[stay]], there):
                    raise UnsupportedError(
                        "the function's value for a record depends on other records, or on its"
                        " place among them, if only in the last bit. Compute every row by itself;"
                        " with a matrix library, one thread may help"
                    )


class Chain(Extractor):
    """Extractors one after the other."""

    def __init__(self, *extractors: Extractor) -> None:
        self.extractors = extractors

    def transform(self, X: FloatArray) -> FloatArray:
        """Return the last extractor's features."""
        for extractor in self.extractors:
            X = extractor(X)
        return X

    def _rows(self, X: Array) -> Array:
        return self.transform(X)
