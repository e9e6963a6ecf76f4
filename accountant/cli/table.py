"""The data of ``accountant train``: a CSV or an NPZ, read whole or refused in one line.

What is refused is named by its place in the file, never by its contents: records are secret.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

from accountant.errors import DomainError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["read"]


def read(path: Path, target: str | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return features and targets of a CSV or NPZ file.

    Parameters
    ----------
    path : Path
        An NPZ if its name ends in .npz, else a CSV.
    target : str, optional
        The name or the number of a CSV's column of targets; the last when left out.
    """
    import numpy as np

    if path.suffix.lower() == ".npz":
        return _arrays(path)
    rows = _rows(path)
    names = _names(path, rows)
    if names is not None:
        rows = rows[1:]
    table = [_numbers(row) for row in rows]
    columns = len(rows[0] if names is None else names)
    for number, row in enumerate(table, 1):
        if row is None or len(row) != columns:
            raise DomainError(
                f"record {number} of {path} is not a row of {columns} numbers, as many as its first"
                " line has; encode words as numbers first"
            )
    column = _column(target, names, columns)
    values = np.array(table, dtype=np.float64).reshape(len(table), columns)
    return np.delete(values, column, axis=1), values[:, column]


def _arrays(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Read X and y of an NPZ."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as arrays:
            names = list(arrays.files)
            found = [np.asarray(arrays[name]) for name in ("X", "y") if name in names]
    except (OSError, MemoryError):
        raise
    except Exception as error:
        # zipfile, zlib, struct and NumPy each complain in their own way.
        raise DomainError(
            f"{path} must be an NPZ file of NumPy arrays; it is damaged or something else"
        ) from error
    if len(found) != 2:
        raise DomainError(f"{path} must hold arrays X and y; it holds {names}")
    if any(array.dtype.kind not in "biuf" for array in found):
        raise DomainError(f"{path} must hold X and y as real numbers")
    if [array.ndim for array in found] != [2, 1]:
        raise DomainError(f"{path} must hold X of shape (records, features) and y of (records,)")
    return found[0], found[1]


def _rows(path: Path) -> list[list[str]]:
    """Return the lines of a CSV that are not empty; a mark of its encoding is no part of them."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except UnicodeDecodeError:
        raise DomainError(f"{path} must be text in UTF-8; save it in that encoding") from None
    except csv.Error as error:
        # Of a cell beyond csv's limit, or an odd byte: its words quote nothing.
        raise DomainError(f"{path} is no CSV of numbers: {error}") from None
    if not rows:
        raise DomainError(f"{path} is empty")
    return rows


def _names(path: Path, rows: list[list[str]]) -> list[str] | None:
    """Return the line of names, if the first is one: none of its cells is a number."""
    numbers = [_numbers([cell]) is not None for cell in rows[0]]
    if all(numbers):
        return None
    if any(numbers):
        # Taken for names, a bad first record would be dropped in silence.
        raise DomainError(
            f"the first line of {path} must be names or numbers; cell {numbers.index(False) + 1} is"
            f" no number, and cell {numbers.index(True) + 1} is one. Name all columns, or none"
        )
    names = [cell.strip() for cell in rows[0]]
    if len(set(names)) != len(names):
        raise DomainError(f"the names in the first line of {path} must be different")
    return names


def _numbers(row: list[str]) -> list[float] | None:
    try:
        return [float(cell) for cell in row]
    except ValueError:
        return None


def _column(target: str | None, names: list[str] | None, columns: int) -> int:
    if columns < 2:
        raise DomainError("the data must have a target column and at least one feature")
    if target is None:
        return columns - 1
    if names is not None and target in names:
        return names.index(target)
    if re.fullmatch("-?[0-9]{1,9}", target) and -columns <= int(target) < columns:
        return int(target) % columns
    raise DomainError(f"--target {target!r} is neither a column's name nor its number")
