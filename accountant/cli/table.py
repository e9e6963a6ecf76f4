"""The data of ``accountant train``: a CSV, a Parquet or an NPZ, read whole or refused in one line.

What is refused is named by its place in the file, never by its contents: records are secret.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accountant._basics import files
from accountant.errors import AccountantError, DomainError, UnsupportedError

# How files begin that gzip, bzip2, xz, zip and zstd made.
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"PK\x03\x04", b"\x28\xb5\x2f\xfd")


class Data(NamedTuple):
    """Features, targets, and the names of the columns of features where the file has names."""

    features: NDArray[np.float64]
    target: NDArray[np.float64]
    names: tuple[str, ...] | None


def read(path: Path, target: str | None, features: str | None = None) -> Data:
    """Return features and targets of a file.

    Parameters
    ----------
    path : Path
        A Parquet or an NPZ by the end of its name, else a CSV.
    target : str, optional
        The name or the number of the column of targets; the last when left out.
    features : str, optional
        Names or numbers of the columns of features, as "age,dose"; all others when left out.
    """
    table: tuple[list[str] | None, NDArray[np.float64]]
    suffix = path.suffix.lower()
    if suffix == ".npz":
        found = _arrays(path)
        if isinstance(found, Data):
            for option, words in (("--target", target), ("--features", features)):
                if words is not None:
                    raise DomainError(f"{option} needs columns; {path} holds the arrays X and y")
            return found
        table = found
    else:
        table = _parquet(path) if suffix == ".parquet" else _csv(path)
    names, values = table
    columns = values.shape[1]
    if columns < 2:
        raise DomainError("the data must have a target column and at least one feature")
    goal = columns - 1 if target is None else _column("--target", target, names, columns)
    if features is None:
        chosen = [k for k in range(columns) if k != goal]
        _refuse_index(path, names, chosen)
    else:
        chosen = [_column("--features", one, names, columns) for one in _words(features)]
        if goal in chosen or len(set(chosen)) != len(chosen):
            raise DomainError(
                f"--features must be different columns, without the target's; got {features!r:.200}"
            )
    used = None if names is None else tuple(names[k] for k in chosen)
    return Data(np.ascontiguousarray(values[:, chosen]), values[:, goal], used)


def _refuse_index(path: Path, names: list[str] | None, chosen: list[int]) -> None:
    """Refuse the index of a frame, which numbers the records, as a feature."""
    for place in chosen:
        name = "0" if names is None else names[place]
        if not name or name.startswith(("Unnamed:", "__index_level_")):
            called = f"is called {name!r:.60}" if name else "has no name"
            raise DomainError(
                f"column {place + 1} of {path} {called}: it is the index of a frame. Write the file"
                " without it (index=False), or name the columns by --features"
            )


def _words(text: str) -> list[str]:
    words = next(csv.reader([text]), [])
    if not words:
        raise DomainError("--features must name at least one column")
    return [word.strip() for word in words]


def _csv(path: Path) -> tuple[list[str] | None, NDArray[np.float64]]:
    """Read numbers, and the line of names if there is one."""
    rows = _rows(path)
    names = _names(path, rows)
    if names is not None:
        rows = rows[1:]
    table = [_numbers(row) for row in rows]
    columns = len(rows[0] if names is None else names)
    for number, (row, cells) in enumerate(zip(table, rows, strict=True), 1):
        if row is None or len(row) != columns:
            raise DomainError(
                f"record {number} of {path} is not a row of {columns} numbers, as many as its first"
                f" line has; {_cause(cells, columns)}"
            )
    return names, np.array(table, dtype=np.float64).reshape(len(table), columns)


def _cause(cells: list[str], columns: int) -> str:
    """Say why a row is none of numbers, without a word of what it holds."""
    if len(cells) != columns:
        return f"it has {len(cells)} cells"
    place = next(k for k, cell in enumerate(cells, 1) if _numbers([cell]) is None)
    cell = cells[place - 1].strip()
    if not cell:
        return f"cell {place} is empty. Fill empty cells in first, by a public value"
    if cell.lower() in ("true", "false"):
        return f"cell {place} is true or false. Write 1 and 0"
    return f"cell {place} is no number. Encode words as numbers first"


def _parquet(path: Path) -> tuple[list[str], NDArray[np.float64]]:
    """Read columns of numbers, without gaps."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise UnsupportedError("it needs pip install 'dp-accountant[parquet]'") from None
    try:
        with files.stream(path) as stream:
            table: Any = parquet.read_table(stream)
    except (OSError, MemoryError, AccountantError):
        raise
    except Exception as error:
        raise DomainError(f"{path} must be a Parquet file; it is damaged or another") from error
    names = [str(name) for name in table.column_names]
    for name, column in zip(names, table.columns, strict=True):
        if column.null_count:
            raise DomainError(f"column {name!r:.60} of {path} must have no gaps; fill them in")
    return _columns(path, names, [column.to_numpy() for column in table.columns])


def _columns(
    path: Path, names: list[str], arrays: Sequence[NDArray[Any]]
) -> tuple[list[str], NDArray[np.float64]]:
    """Join named columns of real numbers."""
    if len(set(names)) != len(names):
        raise DomainError(f"the names of the columns of {path} must be different")
    for name, array in zip(names, arrays, strict=True):
        if array.dtype.kind not in "biuf":
            raise DomainError(f"column {name!r:.60} of {path} must hold real numbers, no words")
    if not arrays:
        raise DomainError(f"{path} has no columns")
    return names, np.column_stack([np.asarray(array, dtype=np.float64) for array in arrays])


def _arrays(path: Path) -> Data | tuple[list[str], NDArray[np.float64]]:
    """Read X and y of an NPZ, or its columns where all arrays are."""
    try:
        with files.stream(path) as stream:
            files.require_unpacked(stream, path, files.MOST_BYTES)
            arrays = np.load(stream, allow_pickle=False)
            names = list(arrays.files)
            found = {name: np.asarray(arrays[name]) for name in names}
    except (OSError, MemoryError, AccountantError):
        raise
    except Exception as error:
        if "Object arrays" in str(error):
            raise DomainError(f"{path} is an NPZ of Python objects. Save numbers") from None
        # zipfile, zlib, struct and NumPy each complain in their own way.
        raise DomainError(f"{path} must be an NPZ file of NumPy arrays, and whole") from error
    if not {"X", "y"} <= set(names):
        lengths = {array.shape for array in found.values()}
        if len(lengths) == 1 and len(next(iter(lengths))) == 1:
            return _columns(path, names, list(found.values()))
        raise DomainError(f"{path} must hold X and y, or columns of one length; it holds {names}")
    both = found["X"], found["y"]
    if any(array.dtype.kind not in "biuf" for array in both):
        raise DomainError(f"{path} must hold X and y as real numbers")
    if [array.ndim for array in both] != [2, 1]:
        raise DomainError(f"{path} must hold X of shape (records, features) and y of (records,)")
    return Data(both[0], both[1], None)


def _rows(path: Path) -> list[list[str]]:
    """Return the lines of a CSV that are not empty; a mark of its encoding is no part of them."""
    try:
        content = files.content(path)
        if content.startswith(_PACKED):
            raise DomainError(f"{path} is compressed; unpack it first")
        text = content.decode("utf-8-sig")
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    except UnicodeDecodeError:
        raise DomainError(f"{path} must be text in UTF-8; save it in that encoding") from None
    except csv.Error as error:
        # Of a cell beyond csv's limit, or an odd byte: its words quote nothing.
        raise DomainError(f"{path} is no CSV of numbers: {error}") from None
    if not rows:
        raise DomainError(f"{path} is empty")
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if len(rows[0]) == 1 and mark in rows[0][0]:
            raise DomainError(f"the cells of {path} are separated by {name}; save it with commas")
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


def _column(option: str, wanted: str, names: list[str] | None, columns: int) -> int:
    if names is not None and wanted in names:
        return names.index(wanted)
    if re.fullmatch("-?[0-9]{1,9}", wanted) and -columns <= int(wanted) < columns:
        return int(wanted) % columns
    raise DomainError(f"{option} {wanted!r:.200} is neither a column's name nor its number")
