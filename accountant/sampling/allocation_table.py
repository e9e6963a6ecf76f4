"""Puts and calls on the mean of likelihood ratios at the knots of a lattice of losses.

A few lines of the transform serve all knots (Theorem S15); what no line resolves is bounded by its
neighbours, because calls fall and puts rise with the strike.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._typing import FloatArray
from accountant.sampling.allocation_contour import contour
from accountant.sampling.allocation_profile import profile_of

IntArray: TypeAlias = "NDArray[np.int64]"

# Widths of the law within which every knot is used, and the most of them on either side.
DENSE, MOST_WIDTHS = 7.0, 120.0
# Values below it are not looked for: they go to infinity, or to zero.
FLOOR = 1e-15
# Tables that end at larger values are of no use.
ENOUGH = 1e-11
# Relative widths of brackets that are taken, also of small values, and lines of a side.
FINE, ROUGH, SMALL, RARE, MOST_LINES = 1e-7, 1e-4, 1e-12, 0.05, 12
# A side of which so many lines resolve next to nothing is given up.
PATIENCE = 2
# Terms of a line, and places that one is asked for.
MOST_TERMS = 2**12
BLOCK = 1500


class Table(NamedTuple):
    """Brackets of options out of the money, at strikes K = exp(index·spacing/2).

    Attributes
    ----------
    spacing : float
        Distance of neighbouring losses of the lattice.
    places : int64 array
        Twice the place on the lattice: even at knots, odd or even between them.
    lower, upper : float64 arrays
        The put where K < 1, the call where K >= 1.
    """

    spacing: float
    places: IntArray
    lower: FloatArray
    upper: FloatArray


def make_table(
    noise_multiplier: float, steps: int, points: int, missed: float = 0.0
) -> Table | None:
    """Return the table with ``points`` / 6 knots in a width of the law; None where lines fail.

    Brackets need be no narrower than ``missed``, and values below it are not looked for.
    """
    found = profile_of(noise_multiplier, steps).delta_bounds(0.0, False)
    # E(1 - S)₊ is 0.4 standard deviations of a normal law, and at most one of any.
    width = max(2.5 * float(found.upper), 1e-13)
    spacing = shared_spacing(6.0 * width / points)
    sides = []
    for sign in (-1, 1):
        index = sign * places(round(DENSE * width / spacing), MOST_WIDTHS * width / spacing)
        index = index if sign > 0 else index[1:]
        lower, upper = _side(noise_multiplier, steps, spacing, index, missed)
        # Up to the last knot that a line resolves, and has a middle before it.
        first = 1 if sign < 0 else 0
        last = (int(np.count_nonzero(lower)) - 1 - first) // 2 * 2 + first
        if last < 8:
            return None
        sides.append((index[: last + 1], lower[: last + 1], upper[: last + 1]))
    (left, low_put, high_put), (right, low_call, high_call) = sides
    if not max(low_put[-1], low_call[-1]) < max(ENOUGH, missed):
        return None
    return Table(
        spacing,
        np.concatenate([left[::-1], right]),
        np.concatenate([low_put[::-1], low_call]),
        np.concatenate([high_put[::-1], high_call]),
    )


def shared_spacing(most: float) -> float:
    """Return the largest spacing up to ``most`` of three binary digits.

    Any two of such spacings are whole multiples of a third that is hardly finer. So one grid has
    the losses of all tables, and none is moved to the next knot.
    """
    fraction, exponent = math.frexp(most)
    return math.ldexp(math.floor(math.ldexp(fraction, 3)), exponent - 3)


def places(dense: int, most: float) -> IntArray:
    """Return places 0, 1, …, ever sparser: a stride of 2, 4, … knots, with a place between."""
    parts, first, stride = [np.arange(0, 2 * dense)], dense, 2
    while first < most:
        last = first + stride * -(-first // stride)
        parts.append(np.arange(2 * first, 2 * last, stride))
        first, stride = last, 2 * stride
    return np.concatenate([*parts, [2 * first]]).astype(np.int64)


def _side(
    noise: float, steps: int, spacing: float, index: IntArray, missed: float
) -> tuple[FloatArray, FloatArray]:
    """Bracket the options of one side, from the centre outwards."""
    put = bool(index[-1] < 0)
    kappa = np.expm1(0.5 * spacing * index)
    lower, upper = np.zeros(index.size), np.full(index.size, math.inf)
    start, reach = 0, 8
    for tried in range(MOST_LINES):
        at = min(start + reach, index.size - 1)
        upto = float(kappa[start if put else min(start + 2 * reach, index.size - 1)])
        made = contour(1.0 / noise, steps, float(kappa[at]), put, upto, MOST_TERMS)
        stop = start
        if made is not None:
            low, high = made.bounds(kappa[start : start + BLOCK])
            width = np.where(low > SMALL, FINE if reach > 1 else ROUGH, RARE)
            narrow = high <= low + np.maximum(low * width, missed)
            count = int(np.argmin(narrow)) if not narrow.all() else narrow.size
            stop = start + count
            lower[start:stop], upper[start:stop] = low[:count], high[:count]
        if stop == start:
            if reach > 1:
                reach = max(reach // 8, 1)
                continue
            break
        if stop >= index.size or lower[stop - 1] < max(FLOOR, missed):
            break
        reach, start = max((stop - start) // 2, 2), stop
        if tried == PATIENCE and stop < index.size // MOST_LINES:
            break  # as slow as this, the side is not finished
    # Options fall away from the money.
    return lower, np.minimum.accumulate(np.minimum(upper, 1.0))
