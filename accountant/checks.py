"""The only argument coercion and domain checks.

Each check returns a Python float, or a float64 array for array-like input, and raises
:class:`~accountant.errors.ArgumentTypeError` or :class:`~accountant.errors.DomainError` with the
argument's name, what it must be, the value received and what to do. Conditions are positive
(``not (x >= 0)`` refuses), so NaN fails every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from accountant.errors import ArgumentTypeError, DomainError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "DELTA",
    "EPSILON",
    "MAX_COUNT",
    "ORDERS",
    "SIGMA",
    "STEPS",
    "TARGET_DELTA",
    "TARGET_EPS",
    "Argument",
    "ArrayLike",
    "Checked",
    "Q",
    "choice",
    "common_shape",
    "count",
    "in_fast_lane",
    "positive",
    "real",
    "workers",
]

# What users may write, and what a check makes of it.
ArrayLike: TypeAlias = "NDArray[Any] | Sequence[Any]"
Scalar: TypeAlias = "float | np.floating[Any] | np.integer[Any]"
Integer: TypeAlias = "int | np.integer[Any]"
Checked: TypeAlias = "float | NDArray[np.float64]"

# Every integer up to here is a double, so counts reach the native core unrounded.
MAX_COUNT = 2**53


class Argument(NamedTuple):
    """An argument's name, its domain in words and as a predicate, and advice."""

    name: str
    requirement: str
    holds: Callable[[Any], Any]  # on a float or a float64 array
    advice: str


def positive(name: str, advice: str) -> Argument:
    """Return the argument that is a finite number > 0."""
    return Argument(name, "a finite number > 0", lambda x: (x > 0.0) & (x < np.inf), advice)


Q = Argument(
    "q",
    "a sampling probability in [0, 1]",
    lambda x: (x >= 0.0) & (x <= 1.0),
    "It is the expected batch size over the number of records",
)
SIGMA = Argument(
    "sigma",
    "a noise multiplier > 0",
    lambda x: x > 0.0,
    "It is the noise standard deviation over the clipping norm",
)
STEPS = Argument(
    "steps",
    "an integer in [0, 2**53]",
    lambda x: (x >= 0) & (x <= MAX_COUNT),
    "It counts releases; round epochs / q up to an int",
)
DELTA = Argument(
    "delta",
    "a probability in [0, 1)",
    lambda x: (x >= 0.0) & (x < 1.0),
    "Choose it well below one over the number of records",
)
TARGET_DELTA = Argument(
    "delta",
    "a probability in (0, 1)",
    lambda x: (x > 0.0) & (x < 1.0),
    "At delta = 0 the ε of Gaussian noise is infinite, so no target can be reached",
)
EPSILON = Argument("epsilon", "a number >= 0", lambda x: x >= 0.0, "It is a privacy loss in nats")
TARGET_EPS = Argument(
    "target_eps",
    "a finite number > 0",
    lambda x: (x > 0.0) & (x < np.inf),
    "It is the privacy loss to stay within, in nats",
)
ORDERS = Argument(
    "orders",
    "a finite Rényi order > 1",
    lambda x: (x > 1.0) & (x < np.inf),
    "At order 1 the divergence is Kullback-Leibler's, at infinity it is unbounded",
)


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


def real(argument: Argument, value: object) -> Checked:
    """Check a real argument: ints and floats, Python's or NumPy's, scalar or array."""
    if isinstance(value, (float, int, np.floating, np.integer)) and not isinstance(value, bool):
        return _scalar(argument, value, _exact_float(argument, value))
    array = _as_array(argument, value)
    if array.dtype.kind not in "fiu" or not np.can_cast(array.dtype, np.float64):
        raise _wrong_type(argument, f"an array of {array.dtype}")
    if array.dtype.kind in "iu" and array.size and not _counts_are_exact(array):
        raise DomainError(f"{_must(argument)}; got integers that are no float64")
    return _array(argument, array.astype(np.float64, order="C", copy=False), array)


def count(argument: Argument, value: object) -> Checked:
    """Check a count: true integers, Python's or NumPy's, scalar or array.

    ``10.0`` and ``True`` are refused: a float count is a sign that a division was not rounded,
    and which way to round is the caller's decision.
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        # Compared as an integer: 2**53 + 1 would round into the domain.
        return _scalar(argument, value, int(value))
    array = _as_array(argument, value)
    # An empty array has no elements whose type could be wrong (np.array([]) is float64).
    if array.dtype.kind not in ("iu" if array.size else "fiu"):
        raise _wrong_type(argument, f"an array of {array.dtype}")
    checked = _array(argument, array, array)
    return checked if isinstance(checked, float) else checked.astype(np.float64, copy=False)


def choice(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """Check that ``value`` is one of a few words."""
    if isinstance(value, str) and value in allowed:
        return value
    raise DomainError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}")


def workers(value: object) -> int:
    """Check a number of threads; None means one, the calling thread."""
    if value is None:
        return 1
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        if value >= 1:
            return int(value)
        raise DomainError(f"workers must be None or an integer >= 1; got {value!r}")
    raise ArgumentTypeError(f"workers must be None or an integer >= 1; got {_describe(value)}")


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


def _scalar(argument: Argument, value: object, number: float) -> float:
    if argument.holds(number):
        return float(number)
    raise DomainError(f"{_must(argument)}; got {_shown(value)}. {argument.advice}")


def _array(argument: Argument, array: NDArray[Any], original: NDArray[Any]) -> Checked:
    good = np.asarray(argument.holds(array))
    if not good.all():
        bad = np.argwhere(~good)
        where = tuple(map(int, bad[0]))
        place = f" at index {where} ({len(bad)} of {array.size} elements)" if array.ndim else ""
        raise DomainError(
            f"{_must(argument)}; got {original[where].item()!r}{place}. {argument.advice}"
        )
    return float(array) if array.ndim == 0 else array


def _as_array(argument: Argument, value: object) -> NDArray[Any]:
    if isinstance(value, (str, bytes, complex)) or value is None:
        raise _wrong_type(argument, _describe(value))
    if isinstance(value, np.ndarray):
        return cast("NDArray[Any]", value)
    # NumPy would turn [10, True] into integers, so look at the elements of a list first.
    if isinstance(value, (list, tuple)):
        _refuse_bools(argument, value)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        raise _wrong_type(argument, f"a {type(value).__name__} that is no array") from None
    if array.dtype.kind == "O" and array.ndim == 0:
        raise _wrong_type(argument, _describe(value))
    return array


def _refuse_bools(argument: Argument, value: Sequence[Any]) -> None:
    for item in value:
        if isinstance(item, (bool, np.bool_)):
            raise _wrong_type(argument, f"a sequence containing {_describe(item)}")
        if isinstance(item, (list, tuple)):
            _refuse_bools(argument, item)


def _exact_float(argument: Argument, value: Any) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = np.nan
    # Rounding could move the argument to the unsafe side; NaN goes on to its domain's message.
    if number != value and value == value:
        raise DomainError(f"{_must(argument)}, representable as a float64; got {_shown(value)}")
    return number


def _counts_are_exact(array: NDArray[Any]) -> bool:
    return bool(array.max() <= MAX_COUNT and array.min() >= -MAX_COUNT)


def _must(argument: Argument) -> str:
    return f"{argument.name} must be {argument.requirement}"


def _describe(value: object) -> str:
    return f"the {type(value).__name__} {_shown(value)}"


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python declines to print integers of thousands of digits
        text = "a very large integer"
    return text if len(text) <= 60 else text[:57] + "..."


def _wrong_type(argument: Argument, received: str) -> ArgumentTypeError:
    return ArgumentTypeError(f"{_must(argument)}; got {received}. {argument.advice}")
