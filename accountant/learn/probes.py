"""Functions of records that are the user's own: tried on public inputs, then called with care.

No public input depends on the data but for their shape and type, which are public: what a trial
finds out, and whether it raises, says nothing about a record. With records nothing is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import Array
from accountant.learn.validation import silence

REPLACED = -1  # Marks a row that gave way to another.
PADDING = -2  # Marks a row that gave way to zeros at the end of a batch.


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


def public_targets(generator: np.random.Generator, n: int, like: Array) -> list[Array]:
    """Return arrays of ``n`` random targets of the type and shape of those at hand.

    Labels 0 and 1, labels -1 and 1, and more of them; for real targets normal numbers too.
    """
    full = (n, *like.shape[1:])
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
