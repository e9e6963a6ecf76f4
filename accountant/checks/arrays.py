"""Checks of values: numbers and arrays of numbers, integers, words, flags, functions, relations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from accountant.checks.domains import (
    BATCH_SIZE,
    MAX_COUNT,
    Argument,
    describe,
    followed,
    integers,
    shown,
    wrong_type,
)
from accountant.errors import ArgumentTypeError, DomainError, UnsupportedError
from accountant.relations import NeighbouringRelation

# What users may write, and what a check makes of it.
ArrayLike: TypeAlias = "NDArray[Any] | Sequence[Any]"
Scalar: TypeAlias = "float | np.floating[Any] | np.integer[Any]"
Integer: TypeAlias = "int | np.integer[Any]"
Checked: TypeAlias = "float | NDArray[np.float64]"


def real(argument: Argument, value: object) -> Checked:
    """Check a real argument: ints and floats, Python's or NumPy's, scalar or array."""
    if type(value) is float and argument.holds(value):
        return value
    if isinstance(value, (float, int, np.floating, np.integer)) and not isinstance(value, bool):
        return _scalar(argument, value, _exact_float(argument, value))
    array = _as_array(argument, value)
    if array.dtype.kind not in "fiu" or not np.can_cast(array.dtype, np.float64):
        raise wrong_type(argument, _received(value, array))
    if array.dtype.kind in "iu" and array.size and not _counts_are_exact(array):
        raise DomainError(f"{argument.must}; got integers that are no float64")
    return _array(argument, array.astype(np.float64, order="C", copy=False), array)


def count(argument: Argument, value: object) -> Checked:
    """Check a count: true integers, Python's or NumPy's, scalar or array.

    ``10.0`` and ``True`` are refused: a float count is a sign that a division was not rounded,
    and the caller decides which way to round it.
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        # Compared as an integer: 2**53 + 1 would round into the domain.
        return _scalar(argument, value, int(value))
    if isinstance(value, (float, np.floating)):
        hint = argument.hint(value) if argument.hint else ""
        raise wrong_type(argument, describe(value), hint or _pass_an_int(argument))
    array = _as_array(argument, value)
    # An empty array has no elements whose type could be wrong (np.array([]) is float64).
    if array.dtype.kind not in ("iu" if array.size else "fiu"):
        advice = _pass_an_int(argument) if array.dtype.kind == "f" else None
        raise wrong_type(argument, _received(value, array), advice)
    checked = _array(argument, array, array)
    return checked if isinstance(checked, float) else checked.astype(np.float64, copy=False)


def common_shape(names: Sequence[str], values: Sequence[Checked]) -> tuple[int, ...]:
    """Return the shape to which the values broadcast; ``()`` when all are scalars."""
    shapes = [np.shape(value) for value in values]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listing = ", ".join(f"{name} {shape}" for name, shape in zip(names, shapes, strict=True))
        raise DomainError(
            f"array arguments must broadcast to one shape; got shapes {listing}."
            " Insert axes of length 1, as in x[:, None]"
        ) from None


def _pass_an_int(argument: Argument) -> str:
    return f"Pass an int. {argument.advice}"


def _scalar(argument: Argument, value: object, number: float) -> float:
    if argument.holds(number):
        return float(number)
    raise DomainError(f"{argument.must}; got {shown(value)}{argument.advise(number)}")


def _array(argument: Argument, array: NDArray[Any], original: NDArray[Any]) -> Checked:
    good = np.asarray(argument.holds(array))
    if not good.all():
        bad = np.argwhere(~good)
        where = tuple(map(int, bad[0]))
        place = f" at index {where} ({len(bad)} of {array.size} elements)" if array.ndim else ""
        value = original[where].item()
        raise DomainError(f"{argument.must}; got {value!r}{place}{argument.advise(value)}")
    return float(array) if array.ndim == 0 else array


def _as_array(argument: Argument, value: object) -> NDArray[Any]:
    if isinstance(value, (str, bytes, complex)) or value is None:
        raise wrong_type(argument, describe(value))
    if isinstance(value, np.ndarray):
        return cast("NDArray[Any]", value)
    # NumPy would turn [10, True] into integers, so look at the elements of a list first.
    if isinstance(value, (list, tuple)):
        _refuse_bools(argument, value)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        raise wrong_type(argument, f"a {type(value).__name__} that is no array") from None
    if array.dtype.kind == "O" and array.ndim == 0:
        raise wrong_type(argument, describe(value))
    return array


def _received(value: object, array: NDArray[Any]) -> str:
    """Return what a value of the wrong type is, which became ``array`` only here."""
    if isinstance(value, np.ndarray):
        return f"an array of {array.dtype}"
    return f"a {type(value).__name__} of {array.dtype} values" if array.ndim else describe(value)


def _refuse_bools(argument: Argument, value: Sequence[Any]) -> None:
    for item in value:
        if isinstance(item, (bool, np.bool_)):
            raise wrong_type(argument, f"a sequence containing {describe(item)}")
        if isinstance(item, (list, tuple)):
            _refuse_bools(argument, item)


def _exact_float(argument: Argument, value: Any) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = np.nan
    # Rounding could move the argument to the unsafe side; NaN goes on to its domain's message.
    if number != value and value == value:
        raise DomainError(f"{argument.must}, representable as a float64; got {shown(value)}")
    return number


def _counts_are_exact(array: NDArray[Any]) -> bool:
    return bool(array.max() <= MAX_COUNT and array.min() >= -MAX_COUNT)


T = TypeVar("T")


def in_fast_lane(q: object, sigma: object, steps: object, delta: object) -> bool:
    """Tell whether all four are plain Python numbers inside their domains, with delta > 0.

    Such a call, by far the commonest, then needs no other check. The types are compared exactly:
    a bool is an int to isinstance.
    """
    return (
        type(q) is float
        and type(sigma) is float
        and type(steps) is int
        and type(delta) is float
        and 0.0 <= q <= 1.0
        and sigma > 0.0
        and 0 <= steps <= MAX_COUNT
        and 0.0 < delta < 1.0
    )


def number(argument: Argument, value: object) -> float:
    """Check one real number; arrays are refused."""
    if type(value) is float and argument.holds(value):
        return value  # by far the commonest
    checked = real(argument, value)
    if isinstance(checked, float):
        return checked
    raise _one(argument.name, "number", checked.shape)


def whole(argument: Argument, value: object) -> int:
    """Check one integer; floats, bools and arrays are refused."""
    checked = count(argument, value)
    if isinstance(checked, float):
        return int(checked)
    raise _one(argument.name, "integer", checked.shape)


def integer(
    name: str, value: object, least: int, most: int = MAX_COUNT, *, advice: str = ""
) -> int:
    """Check one integer in [least, most]."""
    if type(value) is int and least <= value <= most:
        return value  # by far the commonest
    return whole(integers(name, least, most, advice), value)


def batch_size(value: object, dataset_size: int) -> int:
    """Check a batch size against the data."""
    size = whole(BATCH_SIZE, value)
    if size > dataset_size:
        raise DomainError(
            f"batch_size must be at most dataset_size = {dataset_size}; got {size}."
            " A batch cannot hold more records than there are"
        )
    return size


def choice(name: str, value: object, allowed: Sequence[str]) -> str:
    """Check that ``value`` is one of a few words."""
    if isinstance(value, str) and value in allowed:
        return value
    raise DomainError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {shown(value)}")


def flag(name: str, value: object) -> bool:
    """Check that ``value`` is True or False."""
    return instance(name, value, bool, "True or False")


def function(name: str, value: T, of: str, advice: str = "") -> T:
    """Check that ``value`` can be called; ``of`` says with what."""
    if callable(value):
        return value
    raise ArgumentTypeError(
        f"{name} must be a function of {of}; got {describe(value)}{followed(advice)}"
    )


@overload
def instance(name: str, value: object, kind: type[T], wanted: str, advice: str = ...) -> T: ...
@overload
def instance(
    name: str, value: object, kind: tuple[type[Any], ...], wanted: str, advice: str = ...
) -> Any: ...
def instance(name: str, value: object, kind: Any, wanted: str, advice: str = "") -> Any:
    """Check that ``value`` is a ``kind``, or one of several, which the message calls ``wanted``."""
    if isinstance(value, kind):
        return value
    raise ArgumentTypeError(f"{name} must be {wanted}; got {describe(value)}{followed(advice)}")


def sequence(name: str, value: object) -> Sequence[Any]:
    """Check a list, a tuple or a one-dimensional array; its items are checked by the caller."""
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return cast("Sequence[Any]", value)
    raise ArgumentTypeError(f"{name} must be a list, a tuple or a 1-D array; got {shown(value)}")


def relation(value: object) -> NeighbouringRelation:
    """Check a neighbouring relation."""
    if type(value) is NeighbouringRelation:
        return value
    return instance(
        "relation",
        value,
        NeighbouringRelation,
        "a NeighbouringRelation, as in NeighbouringRelation.ADD_OR_REMOVE",
    )


def supported_relation(
    name: str, value: object, available: Sequence[NeighbouringRelation]
) -> NeighbouringRelation:
    """Return the relation if ``name`` has a theorem for it; never substitute another."""
    checked = relation(value)
    if checked in available:
        return checked
    names = " and ".join(map(repr, available))
    raise UnsupportedError(
        f"{name} has no theorem for {checked!r}; it has one for {names}."
        " A guarantee under one relation says nothing about another"
    )


def workers(value: object) -> int:
    """Check a number of threads; None means one, the calling thread."""
    if value is None:
        return 1
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        if value >= 1:
            return int(value)
        raise DomainError(f"workers must be None or an integer >= 1; got {shown(value)}")
    raise ArgumentTypeError(f"workers must be None or an integer >= 1; got {describe(value)}")


def _one(name: str, kind: str, shape: tuple[int, ...]) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"{name} must be one {kind}; got an array of shape {shape}. Call once for each element"
    )
