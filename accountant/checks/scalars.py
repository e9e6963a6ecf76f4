"""Single values: numbers, integers, words, flags, functions, relations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast, overload

import numpy as np

from accountant.checks.argument import MAX_COUNT, Argument, describe, followed, integers, shown
from accountant.checks.arrays import count, real
from accountant.checks.domains import BATCH_SIZE
from accountant.errors import ArgumentTypeError, DomainError, UnsupportedError
from accountant.relations import NeighbouringRelation

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
