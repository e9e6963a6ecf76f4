"""The one way in for data: what users pass becomes arrays record by record.

A list, a frame, an array of objects or of text is read one record at a time, so that no record
changes another's type, shape or scale. A record that cannot be read (text, None, another length, a
label that is no class) or that is not finite **adds nothing** to what is trained or released, and
nothing says so: an exception or a warning would tell of the record. What is refused is public: the
type of a container or of an array, and the shape that an array gives to every record.

A message is seen by whoever sees the release. It names the argument and what it must be, and holds
no value, no position and no number of records.
"""

from __future__ import annotations

import functools
import hashlib
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from accountant._basics.arrays import Array, FloatArray
from accountant.checks import Argument
from accountant.errors import ArgumentTypeError, DomainError

FLOAT64 = np.dtype(np.float64)
NUMBERS = "fiub"  # kinds of arrays that are read as a whole


def container(name: str, value: object, kinds: str | None = None) -> Array | list[Any]:
    """Return a list or another sequence as a list, anything else as an array of public type."""
    if _is_sequence(value):
        return list(cast("Iterable[Any]", value))
    dense: Any = value
    try:
        array = np.asarray(dense.toarray(order="C") if issparse(value) else value)
    except Exception:  # whose message has the number of records
        array = np.asarray(None)
    if array.dtype.kind == "c" and hasattr(value, "to_numpy"):
        # One complex record makes complex numbers of a frame's column.
        array = np.where(array.imag == 0.0, array.real, np.nan)
    if array.ndim == 0 and isinstance(value, np.ndarray):
        raise DomainError(f"{name} must have one dimension or more, (records, …); got 0")
    if array.ndim == 0:
        raise ArgumentTypeError(f"{name} must be an array; got a {type(value).__name__}")
    if kinds is not None and array.dtype.kind not in kinds:
        raise ArgumentTypeError(f"{name} must be an array of numbers; got one of {array.dtype}")
    return array


def _is_sequence(value: object) -> bool:
    """Whether NumPy would look at all records for one type: lists, deques, columns of data sets."""
    if isinstance(value, (list, tuple)):
        return True
    kind = type(value)
    typed = any(hasattr(kind, name) for name in ("__array__", "__array_interface__"))
    if typed or issparse(value) or isinstance(value, (str, Mapping)):
        return False
    try:
        memoryview(cast("Any", value))  # bytes, or an array of the standard library
    except TypeError:
        return hasattr(kind, "__len__") and hasattr(kind, "__getitem__")
    return False


def numbers(
    name: str, value: object, shape: tuple[int, ...] | None = None, dtype: np.dtype[Any] = FLOAT64
) -> Array:
    """Return records as a C-contiguous array of ``dtype``, NaN where one cannot be read.

    Parameters
    ----------
    name : str
        Of the argument, for messages.
    value : array_like
        A list or tuple of records, an array, a frame or a sparse matrix.
    shape : tuple of int, optional
        Of one record, where it is known without the data. Otherwise an array or a frame states it,
        and for a list it is the one that most records have: a public number.
    dtype : dtype
        float32 or float64. Every number is rounded to float64 first, whatever its type.

    Raises
    ------
    ArgumentTypeError
        The container is no array of numbers: no record is looked at.
    """
    found = container(name, value, NUMBERS + "O")
    if isinstance(found, np.ndarray):
        if found.dtype.kind in NUMBERS:
            with np.errstate(all="ignore"):  # a warning would say something about a record
                if found.dtype.itemsize >= 8 and dtype != np.float64:
                    found = found.astype(np.float64, copy=False)  # integers as floats are
                return np.ascontiguousarray(found, dtype=dtype)
        shape = found.shape[1:] or shape
    with silence():
        rows = [_read(entry) for entry in found]
        if shape is None:
            counts = Counter(row.shape for row in rows if row is not None)
            shape = min(counts, key=lambda s: (-counts[s], s), default=())
        read = np.full((len(rows), *shape), np.nan)
        known = (shape, ()) if shape == (1,) else (shape,)
        for place, row in enumerate(rows):
            if row is not None and row.shape in known:
                read[place] = row
        return read.astype(dtype, copy=False)


def _read(record: object) -> FloatArray | None:
    try:
        return np.asarray(record, dtype=np.float64)
    except Exception:  # whatever it is, it is no number
        return None


def as_records(name: str, value: object) -> Array | list[Any]:
    """Return a container for :func:`records_at`; the numbers of a frame are float64 there.

    One odd record makes objects of a column, and the type that its other entries had is lost.
    """
    found = container(name, value)
    if isinstance(found, np.ndarray) and hasattr(value, "to_numpy") and found.dtype.kind in NUMBERS:
        return found.astype(np.float64)
    return found


def records_at(found: Array | list[Any], places: NDArray[np.intp]) -> Array:
    """Return some of the records of a container as an array of a type that they alone decide.

    Numbers become an array of numbers (of float64, from an array of objects), anything else in a
    list stays as it is, in an array of objects. The type of an array of numbers or text is public,
    and stays.
    """
    if isinstance(found, np.ndarray):
        chosen = found[places]
        if found.dtype.kind != "O":
            return chosen
        natural = _natural(chosen.tolist())
        return chosen if natural is None else natural.astype(np.float64)
    listed = [found[i] for i in places.tolist()]
    natural = _natural(listed)
    return _objects(listed) if natural is None else natural


def _natural(records: list[Any]) -> Array | None:
    try:
        with silence():  # a record's own conversion may warn
            array = np.asarray(records)
        return array if array.dtype.kind in NUMBERS else None
    except Exception:  # records of several lengths, say
        return None


def _objects(records: Sequence[Any] | Array) -> Array:
    found = np.empty(len(records), object)
    for place, record in enumerate(records):
        found[place] = record
    return found


def features(X: object, columns: int | None, dtype: np.dtype[Any]) -> Array:
    """Return features as a C-contiguous array of ``dtype``, shape (n, columns)."""
    array = numbers("X", X, None if columns is None else (columns,), dtype)
    if array.ndim < 2 or (columns is not None and array.shape[1:] != (columns,)):
        wanted = f"(records, {columns})" if columns is not None else "(records, features)"
        got = f"{array.ndim} dimensions" if array.ndim < 2 else f"{array.shape[1:]} a record"
        raise DomainError(f"X must have shape {wanted}; got {got}")
    return array


def targets(y: object, records: int, outputs: int, dtype: np.dtype[Any]) -> Array:
    """Return real targets as an array of shape (records, outputs)."""
    array = numbers("y", y, (outputs,) if _is_sequence(y) else None, dtype)
    if array.shape not in ((records,), (records, outputs)) or array.size != records * outputs:
        raise DomainError(
            f"y must hold one target of {outputs} numbers for every record: shape (records,"
            f" {outputs})"
        )
    return array.reshape(records, outputs)


def class_labels(y: object, records: int | None, classes: int) -> NDArray[np.intp]:
    """Return labels 0 … classes - 1 as integers, and -1 for what is none of them."""
    array = numbers("y", y, ())
    if array.shape != (len(array) if records is None else records,):
        raise DomainError("y must hold one label for every record: shape (records,)")
    # A CSV's 3.0 is the class 3. NaN is equal to nothing.
    known = (array == np.rint(array)) & (array >= 0) & (array < classes)
    return np.where(known, array, -1.0).astype(np.intp)


def as_examples(y: object, examples: Array | None) -> Array:
    """Return targets for a function of the user's own: an array as it is, a list as the examples.

    Without examples a list, or an array of objects, is read as float64 numbers. What cannot be read
    is NaN, or the first example where the examples' type has no NaN.
    """
    found = container("y", y)
    if isinstance(found, np.ndarray) and found.dtype.kind != "O":
        return np.ascontiguousarray(found)
    if examples is None:
        return numbers("y", found)
    if examples.dtype.kind not in NUMBERS:
        return _objects(found)
    read = numbers("y", found, examples.shape[1:])
    with np.errstate(all="ignore"):
        if examples.dtype.kind != "f":
            read = np.where(np.isfinite(read), read, examples[0])
        return np.ascontiguousarray(read.astype(examples.dtype))


def labels_among(y: object, values: Sequence[Any]) -> NDArray[np.intp]:
    """Return the position of every label among some values, and -1 for any other label."""
    found = container("y", y)
    places = {value: place for place, value in enumerate(values)}
    if isinstance(found, np.ndarray):
        # Dates stay what a frame's column of objects would give: NumPy makes integers of some.
        dates = found.dtype.kind in "mM"
        found = list(cast("Iterable[Any]", y)) if dates else found.tolist()
    return np.array([_place(places, entry) for entry in found], np.intp)


def _place(places: dict[Any, int], entry: Any) -> int:
    try:
        return places.get(entry, -1)
    except Exception:  # not hashable, say
        return -1


P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def silence() -> Iterator[None]:
    """Suppress warnings of any kind while a user's function or object sees records.

    Python's filters are those of all threads: the first to come in keeps them, and the last one to
    leave puts them back.
    """
    with _Filters.lock:
        _Filters.inside += 1
        if _Filters.inside == 1:
            _Filters.kept = warnings.catch_warnings()
            _Filters.kept.__enter__()
            warnings.simplefilter("ignore")
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        with _Filters.lock:
            _Filters.inside -= 1
            if _Filters.inside == 0:
                _Filters.kept.__exit__(None, None, None)


class _Filters:
    lock = threading.Lock()
    inside = 0
    kept = warnings.catch_warnings()


def without_numpy_warnings(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function without NumPy's warnings, which would say something about a record."""

    @functools.wraps(function)
    def quiet(*args: P.args, **options: P.kwargs) -> T:
        with np.errstate(all="ignore"):
            return function(*args, **options)

    return quiet


def private(check: Callable[[Argument, object], T], argument: Argument, value: object) -> T:
    """Check numbers that are private, by a function of :mod:`accountant.checks`."""
    wrong: type[Exception] = DomainError
    try:
        return check(argument, value)
    except ArgumentTypeError:
        wrong = ArgumentTypeError
    except DomainError:
        pass
    # Raised here and not above, where the first error would come along as the context.
    raise wrong(
        f"{argument.name} must be {argument.requirement}; got something else, which is private and"
        f" not shown. {argument.advice}"
    )


def fingerprint(*arrays: Array) -> str:
    """Return a digest of the data, which recognises a run's own; it never leaves the checkpoint."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
