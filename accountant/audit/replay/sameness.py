"""Whether two values are the same to the last bit, and how far apart private ones are."""

from __future__ import annotations

import math
import random
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

LONGEST = 60  # characters of a value in a message


def is_same(a: Any, b: Any) -> bool:
    """Compare numbers, arrays, containers, generators and plain objects by their contents."""
    a, b = _plain(a), _plain(b)
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return _same_arrays(a, b)
    if isinstance(a, (float, complex, np.inexact)):
        return _same_arrays(np.asarray(a), np.asarray(b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(is_same(a[name], b[name]) for name in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(is_same(x, y) for x, y in zip(a, b, strict=True))
    if _is_table(a):
        return _same_tables(a, b)
    if isinstance(a, FunctionType):
        return a is b or is_same(_function(a), _function(b))
    if isinstance(a, partial):
        return is_same((a.func, a.args, a.keywords), (b.func, b.args, b.keywords))
    if isinstance(a, random.Random):
        return is_same(a.getstate(), b.getstate())
    if isinstance(a, np.random.Generator):
        return is_same(a.bit_generator.state, b.bit_generator.state)
    compared: Any = type(a).__eq__
    if compared is object.__eq__ and hasattr(a, "__dict__"):
        return a is b or is_same(vars(a), vars(b))
    return bool(a == b)


def _same_arrays(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype == object:
        return all(is_same(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True))
    if a.dtype.kind == "c":
        return _same_arrays(a.real, b.real) and _same_arrays(a.imag, b.imag)
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    # 0 is not -0, but one NaN is as good as another.
    signs = np.isnan(a) | (np.signbit(a) == np.signbit(b))
    return bool(np.array_equal(a, b, equal_nan=True) and signs.all())


def _is_table(value: Any) -> bool:
    return hasattr(value, "iloc") and hasattr(value, "to_numpy")


def _same_tables(a: Any, b: Any) -> bool:
    """Compare tables or their columns with their labels, which may come from the data."""
    return is_same(_labels(a), _labels(b)) and is_same(a.to_numpy(), b.to_numpy())


def _labels(table: Any) -> list[Any]:
    """Return the labels of a table's rows and columns, and what these are called."""
    found: list[Any] = [getattr(table, "name", None)]
    for axis in (table.index, getattr(table, "columns", None)):
        found += [None] if axis is None else [list(axis.names), axis.to_numpy()]
    return found


def _function(value: FunctionType) -> tuple[Any, ...]:
    """Return what a function of Python computes from: its code, defaults and closed-over values."""
    cells: list[Any] = []
    for cell in value.__closure__ or ():
        try:
            # A function that calls itself is in its own closure.
            cells.append(None if cell.cell_contents is value else cell.cell_contents)
        except ValueError:  # not assigned yet
            cells.append(None)
    return value.__code__, value.__defaults__, value.__kwdefaults__, vars(value), cells


def _plain(value: Any) -> Any:
    """Return a tensor as an array, anything else as it is."""
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        return value.detach().cpu().numpy()
    return value


def distance(a: Any, b: Any, norm: float) -> tuple[float, float]:
    """Return the distance of two values in the 1-, 2- or infinity norm, and what rounding may add.

    Values that have no distance (another shape, other labels, or not finite) are infinitely far
    apart. The rounding is sixteen units in the last place of the larger value: sums in another
    order, or with another blocking, differ by that much.
    """
    if _is_table(a) and _is_table(b) and not is_same(_labels(a), _labels(b)):
        return math.inf, 0.0
    x, y = np.atleast_1d(np.asarray(_plain(a))), np.atleast_1d(np.asarray(_plain(b)))
    if x.shape != y.shape or x.dtype.kind not in "biuf" or y.dtype.kind not in "biuf":
        return math.inf, 0.0
    wide = np.longdouble
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return (0.0 if is_same(x, y) else math.inf), 0.0
    gap = (x.astype(wide) - y.astype(wide)).ravel()
    if gap.size == 0:
        return 0.0, 0.0
    kind = np.result_type(x, y)
    unit = float(np.finfo(kind).eps) if kind.kind == "f" else 0.0
    slack = 16.0 * unit * max(_size(x, norm), _size(y, norm))
    return _size(gap, norm), slack


def _size(value: np.ndarray, norm: float) -> float:
    flat = np.abs(value.ravel().astype(np.longdouble))
    largest = flat.max(initial=0.0)
    if largest == 0.0 or norm == math.inf:
        return float(largest)
    if norm == 1:
        return float(flat.sum())
    return float(largest * np.sqrt(np.square(flat / largest).sum()))


def shown(value: Any) -> str:
    """Write a value for a message: an array by its shape."""
    plain = value.to_numpy() if _is_table(value) else _plain(value)
    if isinstance(plain, np.ndarray) and plain.size > 4:
        return f"an array of shape {plain.shape} and type {plain.dtype}"
    text = repr(plain)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
