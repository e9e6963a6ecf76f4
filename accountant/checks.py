"""The only argument coercion and domain checks.

:class:`Argument` is a name, a domain and advice; those that several packages share stand at the
end. A check returns the checked value, or raises ArgumentTypeError or DomainError with the
argument's name, what it must be, the value received and what to do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ArgumentTypeError, DomainError, UnsupportedError
from accountant.relations import NeighbouringRelation

T = TypeVar("T")

# What users may write, and what a check makes of it.
ArrayLike: TypeAlias = "NDArray[Any] | Sequence[Any]"
Scalar: TypeAlias = "float | np.floating[Any] | np.integer[Any]"
Integer: TypeAlias = "int | np.integer[Any]"
Checked: TypeAlias = "float | NDArray[np.float64]"

# Every integer up to here is a double, so counts reach the native core unrounded.
MAX_COUNT = 2**53


class Argument(NamedTuple):
    """An argument's name, its domain in words and as a predicate, and advice.

    ``holds`` takes a number or an array. Its conditions are positive (``x >= 0``), so NaN fails
    every one of them. ``hint`` takes a number outside the domain and returns better advice, or
    nothing, where the value looks like another argument's.
    """

    name: str
    requirement: str
    holds: Callable[[Any], Any]
    advice: str
    hint: Callable[[Any], str] | None = None

    def renamed(self, name: str, advice: str | None = None) -> Argument:
        """Return the argument under another name, with other advice where it is given.

        The hint goes, for it names other arguments.
        """
        other = self.advice if advice is None else advice
        return Argument(name, self.requirement, self.holds, other)

    @property
    def must(self) -> str:
        """The requirement as a sentence."""
        return f"{self.name} must be {self.requirement}"

    def advise(self, value: object) -> str:
        """Return what to do about a number outside the domain, as the message's next sentence."""
        return followed((self.hint(value) if self.hint else "") or self.advice)


def positive(name: str, advice: str) -> Argument:
    """Return the argument that is a finite number > 0."""
    return Argument(name, "a finite number > 0", lambda x: (x > 0.0) & (x < np.inf), advice)


def nonnegative(name: str, advice: str) -> Argument:
    """Return the argument that is a finite number >= 0."""
    return Argument(name, "a finite number >= 0", lambda x: (x >= 0.0) & (x < np.inf), advice)


def integers(name: str, least: int, most: int, advice: str) -> Argument:
    """Return the argument that is an integer in [least, most]."""
    highest = "2**53" if most == MAX_COUNT else str(most)
    return Argument(
        name, f"an integer in [{least}, {highest}]", lambda x: (x >= least) & (x <= most), advice
    )


def wrong_type(argument: Argument, received: str, advice: str | None = None) -> ArgumentTypeError:
    """Return the error about a value of the wrong type."""
    text = argument.advice if advice is None else advice
    return ArgumentTypeError(f"{argument.must}; got {received}{followed(text)}")


def followed(advice: str) -> str:
    """Return advice as the next sentence of a message, or nothing."""
    return f". {advice}" if advice else ""


def describe(value: object) -> str:
    """Return the type of a value and the value, for a message."""
    return f"the {type(value).__name__} {shown(value)}"


def shown(value: object) -> str:
    """Return a value for a message, cut off where it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python declines to print integers of thousands of digits
        text = "a very large integer"
    return text if len(text) <= 60 else text[:57] + "..."


def real(argument: Argument, value: object) -> Checked:
    """Check a real argument: ints and floats, Python's or NumPy's, scalar or array."""
    if type(value) is float and argument.holds(value):
        return value
    if isinstance(value, (float, int, np.floating, np.integer)) and not isinstance(value, bool):
        return _scalar(argument, value, _exact_float(argument, value))
    array = _as_array(argument, value)
    if array.dtype.kind not in "fiu" or not np.can_cast(array.dtype, np.float64):
        raise wrong_type(argument, _received(value, array))
    if (
        array.dtype.kind in "iu"
        and array.size
        and not -MAX_COUNT <= array.min() <= array.max() <= MAX_COUNT
    ):
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
        raise wrong_type(argument, describe(value), hint or f"Pass an int. {argument.advice}")
    array = _as_array(argument, value)
    # An empty array has no elements whose type could be wrong (np.array([]) is float64).
    if array.dtype.kind not in ("iu" if array.size else "fiu"):
        advice = f"Pass an int. {argument.advice}" if array.dtype.kind == "f" else None
        raise wrong_type(argument, _received(value, array), advice)
    checked = _array(argument, array, array)
    return checked if isinstance(checked, float) else checked.astype(np.float64, copy=False)


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


def in_fast_lane(
    q: object, sigma: object, steps: object, delta: object, user_records: object, workers: object
) -> bool:
    """Tell whether a question is of plain Python numbers in their domains, δ > 0, one record each.

    Such a call, by far the commonest, needs no other check. A bool is an int to isinstance.
    """
    if workers is not None or type(user_records) is not int or user_records != 1:
        return False
    if not (type(q) is type(sigma) is type(delta) is float and type(steps) is int):
        return False
    return 0.0 <= q <= 1.0 and sigma > 0.0 and 0 <= steps <= MAX_COUNT and 0.0 < delta < 1.0


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
        raise DomainError(f"batch_size must be at most dataset_size = {dataset_size}; got {size}")
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
    text = f"{name} must be a function of {of}; got {describe(value)}{followed(advice)}"
    raise ArgumentTypeError(text)


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
    wanted = "a NeighbouringRelation, as in NeighbouringRelation.ADD_OR_REMOVE"
    return instance("relation", value, NeighbouringRelation, wanted)


def supported_relation(
    name: str, value: object, available: Sequence[NeighbouringRelation]
) -> NeighbouringRelation:
    """Return the relation if ``name`` has a theorem for it; never substitute another."""
    checked = relation(value)
    if checked in available:
        return checked
    names = " and ".join(map(repr, available))
    raise UnsupportedError(f"{name} has no theorem for {checked!r}; it has one for {names}")


def _one(name: str, kind: str, shape: tuple[int, ...]) -> ArgumentTypeError:
    return ArgumentTypeError(f"{name} must be one {kind}; got an array of shape {shape}")


# Arguments that several packages share.
Q = Argument(
    "q",
    "a sampling probability in [0, 1]",
    lambda x: (x >= 0.0) & (x <= 1.0),
    "It is the expected batch size over the number of records",
    lambda x: "It is at most 1; were q and sigma swapped?" * bool(x > 1.0),
)
SAMPLING_PROBABILITY = Q._replace(
    name="sampling_probability",
    hint=lambda x: "A probability is at most 1; is it the noise multiplier?" * bool(x > 1.0),
)
FINITE = Argument("value", "finite", lambda x: np.isfinite(x), "Neither NaN nor infinity")
SCALE = Argument("scale", "a number > 0", lambda x: x > 0.0, "It is the scale of the noise")
SIGMA = Argument("sigma", "a noise multiplier > 0", SCALE.holds, "It is noise over clipping norm")
NOISE_MULTIPLIER = SIGMA.renamed("noise_multiplier", "It is the deviation over the sensitivity")
STEPS = Argument(
    "steps",
    "an integer in [0, 2**53]",
    lambda x: (x >= 0) & (x <= MAX_COUNT),
    "It counts releases; round epochs / q up to an int",
    lambda x: "It counts releases; were steps and delta swapped?" * bool(0.0 < x < 1.0),
)
COUNT = STEPS.renamed("count", "It says how often the mechanism is run")
USER_RECORDS = integers("user_records", 1, 10**6, "It is the largest number of one user")
DATASET_SIZE = integers("dataset_size", 1, MAX_COUNT, "It is the number of records")
BATCH_SIZE = integers("batch_size", 1, MAX_COUNT, "It is the number of records in a batch")
EPSILON = Argument("epsilon", "a number >= 0", lambda x: x >= 0.0, "It is a privacy loss in nats")
RHO = EPSILON.renamed("rho", "It bounds the Rényi divergence by rho * order")
MU = EPSILON.renamed("mu", "It is a distance of means in standard deviations")
FINITE_EPSILON = nonnegative("epsilon", "It is in nats")
SENSITIVITY = FINITE_EPSILON.renamed("sensitivity", "It is the largest norm of a contribution")
TARGET_EPS = positive("target_eps", "It is the privacy loss to stay within, in nats")
DELTA = Argument(
    "delta",
    "a probability in [0, 1)",
    lambda x: (x >= 0.0) & (x < 1.0),
    "Choose it well below one over the number of records",
    lambda x: "A failure probability is below 1; is it another argument?" * bool(x > 1.0),
)
TARGET_DELTA = Argument(
    "delta",
    "a probability in (0, 1)",
    lambda x: (x > 0.0) & (x < 1.0),
    "At delta = 0 the ε of Gaussian noise is infinite, so no target can be reached",
    lambda x: f"{DELTA.advice}; were epsilon and delta swapped?" * bool(x >= 1.0),
)
PRIOR = TARGET_DELTA.renamed("prior", "It is the attacker's belief before the release")
STATED_DELTA = Argument("delta", "a probability in [0, 1]", Q.holds, "It bounds a probability")
FPR = Argument("fpr", "a false-positive rate in [0, 1]", Q.holds, "Of records that were not used")
ORDER = Argument("order", "a finite Rényi order > 1", lambda x: (x > 1.0) & (x < math.inf), "")
ORDERS = ORDER.renamed("orders")
OMEGA = Argument("omega", "a Rényi order > 1", lambda x: x > 1.0, "The curve is bounded below it")
