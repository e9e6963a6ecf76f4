"""The interface of models: flat parameters and sums of clipped per-example gradients.

Functions of records that are the user's own are tried on public inputs, then called with care. No
public input depends on the data but for their shape and type, which are public: what a trial finds
out, and whether it raises, says nothing about a record. With records nothing is raised.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import Array, FloatArray
from accountant._core import training
from accountant.errors import DomainError
from accountant.learn.clipping import UNCLIPPED, ClippingLike, Rule, as_clipping
from accountant.learn.validation import as_examples, features, silence

# Every forward or backward pass has this many rows, padded with zeros. The layers' products are
# computed row by row; what a model of the user's own, or an elementwise function of a library,
# does with a block of fixed shape the trainer tries on public rows. So one record's contribution
# does not depend on who else is in the batch.
BLOCK_ROWS = 128
REPLACED = -1  # Marks a row that gave way to another.
PADDING = -2  # Marks a row that gave way to zeros at the end of a batch.


def norm_limit(dtype: np.dtype[Any]) -> float:
    """Return the squared norm beyond which a record is dropped as if not finite."""
    return 1e200 if dtype == np.float64 else 1e20


@dataclass
class Totals:
    """What a pass over a batch adds up; everything here is private until noise is added."""

    gradient: FloatArray
    unclipped: int = 0  # records whose norm was within the bound
    records: int = 0
    dropped: int = 0  # records whose gradient was not finite
    loss: float = 0.0
    want_loss: bool = False

    def count(self, norms2: FloatArray, filled: int, rule: Rule) -> None:
        """Count the records of one block."""
        within = norms2[:filled]
        self.records += filled
        self.dropped += int(filled - np.count_nonzero(np.isfinite(within)))
        if len(rule.norms) == 1:
            self.unclipped += int(np.count_nonzero(within <= rule.norms[0] ** 2))


def blocks(X: Array, y: Array, rows: NDArray[np.intp] | None) -> Iterator[tuple[Array, Array, int]]:
    """Cut selected rows into blocks of a fixed shape, in buffers that are used again."""
    x = np.zeros((BLOCK_ROWS, *X.shape[1:]), X.dtype)
    targets = np.zeros((BLOCK_ROWS, *y.shape[1:]), y.dtype)
    count = len(X) if rows is None else len(rows)
    for start in range(0, count, BLOCK_ROWS):
        filled = min(BLOCK_ROWS, count - start)
        for whole, part in ((X, x), (y, targets)):
            if rows is None:
                part[:filled] = whole[start : start + filled]
            else:
                # "clip" lets NumPy write straight into the buffer; the indices are in range.
                chosen = rows[start : start + filled]
                np.take(whole, chosen, axis=0, out=part[:filled], mode="clip")
            part[filled:] = 0
        yield x, targets, filled


class Model(ABC):
    """A model with flat parameters.

    Attributes
    ----------
    parameters : ndarray of shape (size,)
        All parameters; trainers write into it.
    groups : tuple of slice
        The parts of ``parameters`` that per-layer clipping treats separately.
    """

    parameters: Array
    groups: tuple[slice, ...]
    widest: int  # the largest number of squares in one norm, for the error bound
    terms: int = 1  # outer products that one record adds to a sum, at most
    spread: float = 1.0  # most by which their norms, added up, exceed the record's computed norm

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64, of parameters and features."""
        return self.parameters.dtype

    @property
    def size(self) -> int:
        """The number of parameters."""
        return self.parameters.size

    @abstractmethod
    def check(self, X: object, y: object) -> tuple[Array, Array]:
        """Return features and targets in the model's types, or raise before anything is computed.

        Features become a C-contiguous array of the model's dtype; targets become integers or floats
        of the right shape. What cannot be read is NaN or no class: its gradient is not finite, so
        such a record adds nothing. What is refused is the same for every record.
        """

    @abstractmethod
    def add_block(self, x: Array, y: Array, filled: int, rule: Rule, totals: Totals) -> None:
        """Add the clipped gradients of the first ``filled`` rows of a block to ``totals``."""

    @abstractmethod
    def outputs(self, X: object) -> Array:
        """Return the model's outputs for features of shape (n, d)."""

    def penalty_gradient(self) -> Array | float:
        """Return the gradient of a penalty on the parameters; it costs no privacy."""
        return 0.0

    def row_results(self, x: Array, y: Array) -> list[Array]:
        """Return per-row intermediate results, for the trainer's test of row independence."""
        return []

    def probe_targets(self, generator: np.random.Generator, like: Array) -> list[Array]:
        """Return arrays of random targets for one block, of the kind of checked ones.

        On these, and on random features, the trainer tries the model before it looks at a record:
        labels 0 and 1, labels -1 and 1, and more of them; for real targets normal numbers too.
        """
        full = (BLOCK_ROWS, *like.shape[1:])
        kind = like.dtype.kind
        coins = generator.integers(2, size=full)
        if kind not in "iuf":
            return [coins.astype(like.dtype)]
        made: list[Array] = [coins, generator.integers(10, size=full)]
        if kind != "u":
            made.append(2 * coins - 1)
        if kind == "f":
            made.append(generator.standard_normal(full))
        return [values.astype(like.dtype) for values in made]

    def add_rows(
        self, X: Array, y: Array, rows: NDArray[np.intp] | None, rule: Rule, totals: Totals
    ) -> None:
        """Add the clipped gradients of checked data; ``rows`` selects, None means all."""
        with np.errstate(all="ignore"):  # a warning would say something about a record
            for x, targets, filled in blocks(X, y, rows):
                self.add_block(x, targets, filled, rule, totals)

    def clipped_gradient_sum(self, X: object, y: object, clipping_norm: ClippingLike) -> FloatArray:
        """Return the sum over records of clipped gradients of their losses.

        Parameters
        ----------
        X, y : array_like
            Features of shape (n, d) and n targets.
        clipping_norm : float or Clipping
            The bound C on each record's gradient, in Euclidean norm; ``inf`` does not clip.

        Returns
        -------
        ndarray of float64, shape (size,)
            Records whose gradient is not finite add nothing.

        Notes
        -----
        *Guarantee.* Adding or removing a record changes the exact sum by at most C; the computed
        one by at most the bound of docs/theorems_training.md, Theorem T4.
        """
        data, targets = self.check(X, y)
        totals = Totals(np.zeros(self.size))
        rule = as_clipping(clipping_norm).rule(len(self.groups))
        self.add_rows(data, targets, None, rule, totals)
        return totals.gradient

    def gradient_sum(self, X: object, y: object) -> FloatArray:
        """Return the sum of the gradients, not clipped: what a non-private optimiser uses."""
        data, targets = self.check(X, y)
        totals = Totals(np.zeros(self.size))
        self.add_rows(data, targets, None, UNCLIPPED, totals)
        return totals.gradient


class PerExampleModel(Model):
    """A model of the user's own, known only by its per-example gradients.

    Parameters
    ----------
    parameters : ndarray of shape (size,)
        Initial parameters, float32 or float64; they are copied.
    gradients : callable
        ``gradients(parameters, X, y)`` returns one row per record, shape (n, size). A row must
        depend on its own record alone: no batch normalisation. A record on which the function
        raises adds nothing, and nothing says so; on zeros it must not raise.
    outputs : callable, optional
        ``outputs(parameters, X)``, for predictions.
    targets : array_like, optional
        Public examples of targets, shape (m,) or (m, …). The function is tried on random features
        and on targets drawn from these, before any record is looked at; without them on labels 0
        and 1, -1 and 1, and 0 to 9, and on normal numbers where the targets are floating-point.
        Targets in a list take the examples' type; without examples they are floating-point.
    """

    def __init__(
        self,
        parameters: Array,
        gradients: Callable[[Array, Array, Array], Array],
        outputs: Callable[[Array, Array], Array] | None = None,
        *,
        targets: object = None,
    ) -> None:
        self.parameters = np.array(parameters).ravel()
        if self.parameters.dtype not in (np.float32, np.float64):
            self.parameters = self.parameters.astype(np.float64)
        self.groups = (slice(0, self.size),)
        self.widest = self.size
        self._gradients = gradients
        self._outputs = outputs
        self._examples = None if targets is None else np.ascontiguousarray(targets)
        if self._examples is not None and not self._examples.size:
            raise DomainError("targets must hold at least one public example; got none")

    def probe_targets(self, generator: np.random.Generator, like: Array) -> list[Array]:
        """Draw from the public examples, if there are any."""
        if self._examples is None:
            return super().probe_targets(generator, like)
        drawn = generator.integers(len(self._examples), size=BLOCK_ROWS)
        return [self._examples[drawn].astype(like.dtype)]

    def check(self, X: object, y: object) -> tuple[Array, Array]:
        """Check the features; an array of targets is passed on as it is."""
        data = features(X, None, self.dtype)
        targets = as_examples(y, self._examples)
        if len(targets) != len(data):
            raise DomainError("y must have one target for each record")
        return data, targets

    def add_block(self, x: Array, y: Array, filled: int, rule: Rule, totals: Totals) -> None:
        """Clip the rows of the materialised gradients and add them."""
        rows = each_row(self._rows, (x, y), (self.size,), self.dtype)
        norms2 = np.zeros(BLOCK_ROWS)
        training.add_row_norms(rows, norm_limit(self.dtype), norms2)
        factors = np.empty(BLOCK_ROWS)
        training.clip_factors(norms2, filled, rule.norms[0], rule.stability, factors)
        training.scale_rows(rows, factors)
        totals.gradient += rows.sum(axis=0, dtype=np.float64)
        totals.count(norms2, filled, rule)

    def _rows(self, x: Array, y: Array) -> Array:
        # A copy: what a function writes into the parameters, and how often, has no noise.
        found = self._gradients(self.parameters.copy(), x, y)
        rows = np.array(found, dtype=self.dtype, order="C")
        return rows.reshape(BLOCK_ROWS, self.size)

    def row_results(self, x: Array, y: Array) -> list[Array]:
        """Return the gradients themselves."""
        return [np.array(self._gradients(self.parameters.copy(), x, y), dtype=self.dtype)]

    def outputs(self, X: object) -> Array:
        """Return the user's outputs."""
        if self._outputs is None:
            raise NotImplementedError("this PerExampleModel was given no outputs function")
        return np.asarray(self._outputs(self.parameters, features(X, None, self.dtype)))


def public_rows(
    generator: np.random.Generator, n: int, shape: int | tuple[int, ...], dtype: np.dtype[Any]
) -> list[Array]:
    """Return arrays of ``n`` random rows: of both signs, positive, and of zeros and ones.

    A function may be constant, or not finite, on one of these kinds.
    """
    full = (n, *((shape,) if isinstance(shape, int) else shape))
    return [
        generator.standard_normal(full).astype(dtype),
        generator.random(full).astype(dtype),
        (generator.random(full) < 0.5).astype(dtype),
    ]


def rearranged(
    generator: np.random.Generator, x: Array
) -> Iterator[tuple[NDArray[np.intp], Array]]:
    """Yield other surroundings for the rows of ``x``: (which row is where, or < 0; the rows).

    Rows change places, some give way to zeros, to other numbers, and to numbers that overflow.
    """
    n = len(x)
    moderate = [0.0, 1.0, -3.0]
    for values in (moderate, [*moderate, np.finfo(x.dtype).max]):
        others = np.array(values).astype(x.dtype)
        order = generator.permutation(n)
        gone = generator.random(n) < 1 / 3
        other = x[order]
        fill = others[generator.integers(len(others), size=int(gone.sum()))]
        other[gone] = fill.reshape(-1, *(1,) * (x.ndim - 1))
        yield np.where(gone, REPLACED, order), other
    # The first rows, and nothing after them: how a batch ends.
    order = np.concatenate([np.arange(1, n // 2), np.full(n - n // 2 + 1, PADDING)])
    other = np.zeros_like(x)
    other[: n // 2 - 1] = x[1 : n // 2]
    yield order, other


def same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays agree bit by bit: 0 is not -0, but one NaN is as good as another."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    bits = [
        np.where(np.isnan(a), np.nan, a).astype(a.dtype).tobytes() if a.dtype.kind == "f" else
        np.ascontiguousarray(a).tobytes()
        for a in (one, other)
    ]  # fmt: skip
    return bits[0] == bits[1]


def each_row(
    function: Callable[..., Array],
    blocks: tuple[Array, ...],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Array:
    """Return a function's rows for the records of a block; NaN for one that it raises on.

    Where it raises on the block it is called on every record by itself, among zeros. By assumption
    A1 (docs/theorems_training.md) the rows of the other records are the same bits.
    """
    found = _rows_or_none(function, blocks, shape)
    if found is not None:
        return found.astype(dtype, copy=False)
    with silence():  # only this call can be heard, and whether it is made says something
        function(*map(np.zeros_like, blocks))  # raises where no record is to blame for it
    rows = np.full((len(blocks[0]), *shape), np.nan, dtype)
    for place in range(len(rows)):
        alone = tuple(np.zeros_like(block) for block in blocks)
        for block, other in zip(alone, blocks, strict=True):
            block[place] = other[place]
        found = _rows_or_none(function, alone, shape)
        if found is not None:
            rows[place] = found[place]
    return rows


def _rows_or_none(
    function: Callable[..., Array], blocks: tuple[Array, ...], shape: tuple[int, ...]
) -> Array | None:
    try:
        with silence():
            # A copy: the function may write into its arguments before it raises.
            found = function(*(block.copy() for block in blocks))
    except Exception:
        return None
    return found if found.shape == (len(blocks[0]), *shape) else None
