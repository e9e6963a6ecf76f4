"""A certified bracket: two ends between which the true value lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ArgumentTypeError, DomainError

__all__ = ["Bounds"]

Ends: TypeAlias = "float | NDArray[np.float64]"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Bounds:
    """The bracket ``lower <= truth <= upper``: frozen, ordered, never NaN.

    Of an ε or a δ, the upper end holds for all neighbouring data sets, and some pair of data sets
    reaches the lower end, which is 0 where none is known to.

    Parameters
    ----------
    lower, upper : float or array of float
        The ends, of one shape: ``lower`` is at most the truth, what some pair of data sets reaches
        or 0; ``upper`` is at least the truth, and may be infinite. Arrays are copied and made
        read-only.

    Examples
    --------
    >>> bounds = Bounds(1.25, 1.5)
    >>> bounds.width
    0.25
    >>> 1.3 in bounds
    True
    >>> lower, upper = bounds
    """

    lower: Ends
    upper: Ends

    def __post_init__(self) -> None:
        low, high = self.lower, self.upper
        if type(low) is float and type(high) is float:
            ordered = low <= high
        else:
            low, high = _frozen(low), _frozen(high)
            object.__setattr__(self, "lower", low)
            object.__setattr__(self, "upper", high)
            ordered = np.shape(low) == np.shape(high) and bool(np.all(low <= high))
        # In positive form: NaN is not <= anything.
        if not ordered:
            raise DomainError(f"Bounds must have lower <= upper, of one shape; got {(low, high)}")

    @property
    def width(self) -> Ends:
        """``upper - lower``; zero where both ends are the same infinity."""
        if isinstance(self.lower, float) and isinstance(self.upper, float):
            return 0.0 if self.lower == self.upper else self.upper - self.lower
        equal = np.equal(self.lower, self.upper)
        return np.subtract(self.upper, self.lower, out=np.zeros(equal.shape), where=~equal)

    def intersection(self, other: Bounds | None) -> Bounds:
        """Return what both brackets of one number say; None says nothing.

        Two certified brackets meet. Should they be a rounding apart, the upper end is kept.
        """
        if other is None:
            return self
        upper = np.minimum(self.upper, other.upper)
        lower = np.minimum(np.maximum(self.lower, other.lower), upper)
        if np.ndim(upper):
            return Bounds(lower, upper)
        return Bounds(float(lower), float(upper))

    def __iter__(self) -> Iterator[Ends]:
        yield self.lower
        yield self.upper

    def __contains__(self, value: object) -> bool:
        """Tell whether every element of ``value`` lies between its ends."""
        return bool(np.all((self.lower <= value) & (value <= self.upper)))  # type: ignore[operator]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bounds):
            return NotImplemented
        return np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper)

    def __hash__(self) -> int:
        # + 0.0 turns -0.0, which equals 0.0, into it.
        ends = [np.asarray(end) + 0.0 for end in self]
        return hash((ends[0].shape, *(end.tobytes() for end in ends)))

    def __repr__(self) -> str:
        return f"Bounds({self.lower!r}, {self.upper!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Bounds, (self.lower, self.upper)


def _frozen(end: object) -> Ends:
    array = np.array(end, copy=True)
    if array.dtype.kind not in "fiu":
        raise ArgumentTypeError(f"Bounds must have real ends; got {end!r}")
    array = array.astype(np.float64, copy=False)
    if array.ndim == 0:
        return float(array)
    array.flags.writeable = False
    return array
