"""Neighbouring data sets: one record less, or another in its place."""

from __future__ import annotations

from typing import Any

import numpy as np

from accountant.errors import ArgumentTypeError, DomainError


def count_records(data: object) -> int:
    """Return the number of records of an array, a list, or a tuple of aligned arrays or lists."""
    if isinstance(data, tuple):
        counts = {count_records(part) for part in data}
        if len(counts) != 1:
            raise DomainError(
                f"data must be aligned arrays of one length; got lengths {sorted(counts)}"
            )
        return counts.pop()
    try:
        return len(data)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(
            "data must be an array, a list, or a tuple of aligned arrays or lists;"
            f" got {type(data).__name__}"
        ) from None


def without_record(data: Any, index: int) -> Any:
    """Return the data set without one record."""
    if isinstance(data, tuple):
        return tuple(without_record(part, index) for part in data)
    if isinstance(data, list):
        return data[:index] + data[index + 1 :]
    if hasattr(data, "iloc"):  # a table of pandas
        return data.iloc[np.arange(len(data)) != index]  # labels may occur twice
    keep = np.arange(len(data)) != index
    return data[keep]


def with_record(data: Any, index: int, record: Any) -> Any:
    """Return the data set with another record at ``index``: a tuple for a tuple of arrays."""
    if isinstance(data, tuple):
        if not isinstance(record, tuple) or len(record) != len(data):
            raise ArgumentTypeError(
                f"replace must give a tuple of {len(data)} values for a record of data that is a"
                f" tuple of {len(data)} arrays; got {type(record).__name__}"
            )
        return tuple(with_record(part, index, own) for part, own in zip(data, record, strict=True))
    if isinstance(data, list):
        return [*data[:index], record, *data[index + 1 :]]
    changed = data.copy() if hasattr(data, "copy") else data.clone()
    if hasattr(changed, "iloc"):
        changed.iloc[index] = record
    else:
        changed[index] = record
    return changed
