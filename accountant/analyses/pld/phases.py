"""Phases e^{-iθ} in bulk, and products of matrices of them on one thread.

Real sines and cosines take two thirds of the time of complex exponentials. A library of linear
algebra that starts threads for a product of a millisecond loses more than it gains: where other
processes are at work, the product waits for all of them.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

ComplexArray: TypeAlias = "NDArray[np.complex128]"
Entry = TypeVar("Entry", np.float64, np.complex128)

# Real multiplications up to which a product is left to one thread (OpenBLAS begins above that).
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
    nearer = np.where(2 * turns > size, turns - size, turns).astype(np.float64)
    return phases(nearer * (2.0 * math.pi / size))


def matrix_product(left: NDArray[Any], right: NDArray[Entry]) -> NDArray[Entry]:
    """Return left @ right, square after square of it."""
    right = np.ascontiguousarray(right)
    rows, columns = left.shape[0], right.shape[1]
    each = max(left.shape[1], 1) * (4 if np.iscomplexobj(right) or np.iscomplexobj(left) else 1)
    most = max(ONE_THREAD // each, 1)  # entries of a square
    wide = max(min(columns, max(math.isqrt(most), most // max(rows, 1))), 1)
    tall = max(most // wide, 1)
    found = np.empty((rows, columns), dtype=np.result_type(left, right))
    for top in range(0, rows, tall):
        for first in range(0, columns, wide):
            piece = np.s_[first : first + wide]
            found[top : top + tall, piece] = left[top : top + tall] @ right[:, piece]
    return found
