"""Checks of the data before any gradient is computed.

Messages say what is wanted and what kind of data came, never how many records there are, nor what
is in one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from accountant.errors import ArgumentTypeError, DomainError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["as_array", "class_labels", "features", "row_indices", "targets"]


def as_array(name: str, value: object) -> NDArray[Any]:
    """Return an array, or raise without the number of records."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError):  # whose message has the number of records
        pass
    # Raised here and not above, where that message would come along as the context.
    raise ArgumentTypeError(f"{name} must be an array")


def _rounded(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a C-contiguous array of ``dtype``, rounded the same way from every type.

    A list's type depends on all its entries: one record with a fraction makes floats of the whole
    numbers of all others, and those would be rounded twice, where integers are rounded once.
    """
    if array.dtype.itemsize >= 8 and dtype != np.float64:
        array = array.astype(np.float64, copy=False)
    return np.ascontiguousarray(array, dtype=dtype)


def features(X: object, columns: int | None, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return features as a C-contiguous array of ``dtype``, shape (n, columns)."""
    array = as_array("X", X)
    if array.dtype.kind not in "fiub":
        raise ArgumentTypeError(f"X must be an array of numbers; got an array of {array.dtype}")
    if array.ndim < 2 or (columns is not None and array.shape[1:] != (columns,)):
        wanted = f"(records, {columns})" if columns is not None else "(records, features)"
        got = f"{array.ndim} dimensions" if array.ndim < 2 else f"{array.shape[1:]} a record"
        raise DomainError(f"X must have shape {wanted}; got {got}")
    with np.errstate(over="ignore"):  # what overflows the dtype is refused below
        data = _rounded(array, dtype)
    if not np.isfinite(data).all():
        raise DomainError(
            f"X must be finite in {dtype}; it holds infinities, NaN or numbers beyond its range."
            " Replace missing values before training, by a rule that does not look at the data"
        )
    return data


def targets(y: object, records: int, outputs: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return real targets as an array of shape (records, outputs)."""
    array = as_array("y", y)
    if array.dtype.kind not in "fiub":
        raise ArgumentTypeError(f"y must be an array of numbers; got an array of {array.dtype}")
    if array.shape not in ((records,), (records, outputs)) or array.size != records * outputs:
        raise DomainError(
            f"y must hold one target of {outputs} numbers for every record: shape (records,"
            f" {outputs})"
        )
    with np.errstate(over="ignore"):
        values = _rounded(array, dtype).reshape(records, outputs)
    if not np.isfinite(values).all():
        raise DomainError(f"y must be finite in {dtype}; it holds infinities or NaN")
    return values


def class_labels(y: object, records: int, classes: int) -> NDArray[np.intp]:
    """Return labels 0 … classes - 1 as integers."""
    array = as_array("y", y)
    if array.size == 0:
        array = array.astype(np.intp)
    if array.dtype.kind == "f" and np.array_equal(array, np.rint(array)):
        # A CSV's 3.0 is the class 3; what no integer type holds is no class either.
        array = np.clip(array, -1, classes).astype(np.intp)
    if array.dtype.kind not in "iub":
        raise ArgumentTypeError(f"y must hold integer class labels; got an array of {array.dtype}")
    if array.shape != (records,):
        raise DomainError("y must hold one label for every record: shape (records,)")
    if not ((array >= 0) & (array < classes)).all():
        raise DomainError(f"y must hold classes 0 … {classes - 1}; it holds others")
    return np.ascontiguousarray(array, dtype=np.intp)


def row_indices(rows: object, records: int) -> NDArray[np.intp]:
    """Return row numbers of a data set as integers in range."""
    array = np.asarray(rows)
    if array.size == 0:
        return np.empty(0, np.intp)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ArgumentTypeError("rows must be a one-dimensional array of integers")
    if not ((array >= 0) & (array < records)).all():
        raise DomainError("rows must lie in 0 … n - 1 for n records")
    return array.astype(np.intp, copy=False)
