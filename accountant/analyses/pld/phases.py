"""Phases e^{-iθ} in bulk, and products of matrices of them on one thread.

Complex exponentials are taken one by one; real sines and cosines are vector code, ten times as
fast. A library of linear algebra that starts threads for a product of a millisecond loses more
than it gains: where other processes are at work, the product waits for all of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["phases", "phases_of_turns", "product"]

ComplexArray: TypeAlias = "NDArray[np.complex128]"
Entry = TypeVar("Entry", np.float64, np.complex128)

# Multiplications up to which a product is left to one thread (OpenBLAS begins above that).
ONE_THREAD = 2**18


def phases(angle: NDArray[np.float64]) -> ComplexArray:
    """Return e^{-i·angle}, each within 8 roundings of that of the angle as it is."""
    found = np.empty(angle.shape, dtype=np.complex128)
    np.cos(angle, out=found.real)
    np.sin(angle, out=found.imag)
    np.negative(found.imag, out=found.imag)
    return found


def phases_of_turns(turns: NDArray[np.int64], size: int) -> ComplexArray:
    """Return e^{-2πi·turns/size}, each within 18 roundings."""
    turns = turns % size
    # the shorter way round: half the angle, half its rounding
    turns = np.where(2 * turns > size, turns - size, turns)
    return phases(turns * (2.0 * math.pi / size))


def product(left: NDArray[Any], right: NDArray[Entry]) -> NDArray[Entry]:
    """Return left @ right, some rows at a time."""
    right = np.ascontiguousarray(right)
    rows = max(ONE_THREAD // max(right.size, 1), 1)
    found = np.empty((left.shape[0], right.shape[1]), dtype=np.result_type(left, right))
    for first in range(0, left.shape[0], rows):
        np.matmul(left[first : first + rows], right, out=found[first : first + rows])
    return found
