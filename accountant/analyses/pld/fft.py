"""Composition of tilted distributions by FFT, with bounds on every error (Theorems G4-G6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np
import scipy.fft

from accountant._core import discretise as core
from accountant._rounding import U
from accountant.errors import PrecisionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Tilted", "Total", "compose", "fft_error", "fft_size", "total_sums"]

FloatArray: TypeAlias = "NDArray[np.float64]"

# Larger sums of weights (log; nearly 0 without round-off) are not transformed.
MOST_GROWTH = 300.0
# Weights whose squares stay in the doubles.
LARGEST = 1e150


class Tilted(NamedTuple):
    """Weights a_i with masses a_i * exp(log_scale - tilt * (t_i - centre)), t_i the knots."""

    weights: FloatArray
    first: int
    times: int


class Window(Protocol):
    """A composed law on cyclic knots."""

    @property
    def first(self) -> int:
        """The first knot."""

    @property
    def whole(self) -> bool:
        """Whether no knot below carries mass."""


class Total(NamedTuple):
    """The composed weights: knot ``first + j`` of the total loss has ``weights[j]``.

    They are within ``error`` in ℓ2 of the exact ones, to which those outside the window, at most
    ``outside`` together, have been added at other knots.
    """

    weights: FloatArray
    first: int
    error: float
    outside: float
    whole: bool  # no knot below the window carries mass

    @property
    def size(self) -> int:
        """The number of knots."""
        return int(self.weights.size)

    @property
    def held(self) -> int:
        """Bytes."""
        return int(self.weights.nbytes)


def fft_size(least: int) -> int:
    """Return the smallest 2^a or 3·2^a that is at least ``least``."""
    power = 1 << max(least - 1, 1).bit_length()
    return 3 * power // 4 if 3 * power // 4 >= least else power


def fft_error(size: int) -> float:
    """Bound the relative ℓ2 error of one real transform of ``size`` = 2^a or 3·2^a points.

    Theorem G4 derives it from the accuracy of the twiddle factors; the tests measure it.
    """
    return 8.0 * U * (math.log2(size) + 1.0)


def compose(parts: Sequence[Tilted], first: int, size: int, outside: float) -> Total:
    """Convolve the parts, each to its power, onto ``size`` cyclic knots from ``first``.

    Raises
    ------
    PrecisionError
        The round-off of so many repetitions exceeds every weight.
    """
    start = sum(part.first * part.times for part in parts)
    if len(parts) == 1 and parts[0].times == 1:
        return Total(parts[0].weights, start, 0.0, 0.0, True)
    relative = fft_error(size)
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    growth = lipschitz = 0.0
    for part in parts:
        heavy = float(part.weights.sum())
        if not heavy < LARGEST:
            raise PrecisionError("the exponential tilt of the losses overflows on this grid")
        # ℓ2 error of the transform, and therefore of each of its values
        error = relative * math.sqrt(size) * float(np.linalg.norm(part.weights)) * (1.0 + 1e-9)
        growth += part.times * math.log(max(heavy, 1.0) * (1.0 + 1e-12) + error)
        lipschitz += part.times * error
        if growth > MOST_GROWTH:
            raise PrecisionError(
                f"{part.times} repetitions add up round-off beyond what a grid can bracket; state"
                " a bound on all of them, such as PureDP or ZCDP"
            )
        core.multiply_power(scipy.fft.rfft(part.weights, size), part.times, spectrum)
    roundings = sum(part.times for part in parts) + len(parts)
    norm = math.sqrt(2.0) * float(np.linalg.norm(spectrum.view(np.float64)))
    product = 1.01 * math.expm1(3.1 * U * roundings) * norm + math.exp(growth - 89.0) * size
    weights = scipy.fft.irfft(spectrum, size, overwrite_x=True)
    inverse = 1.01 * relative * float(np.linalg.norm(weights))
    error = (math.exp(growth) * lipschitz + product) / math.sqrt(size) + inverse
    # position r holds the knots start + r + multiples of size
    weights = np.roll(weights, -((first - start) % size))
    return Total(weights, first, 1.01 * error, outside, first <= start)


def knot_above(total: Window, offset: float, spacing: float, epsilon: float) -> tuple[int, float]:
    """Return the index of the first knot above ``epsilon``, and its distance."""
    index = math.floor((epsilon - offset) / spacing)
    if total.whole:
        index = max(index, total.first)
    while not (offset + index * spacing - epsilon > 0.0):
        index += 1
    return index, offset + index * spacing - epsilon


def total_sums(
    total: Total, offset: float, spacing: float, tilt: float, epsilon: float, last: int
) -> tuple[float, float, float, float]:
    """Return ``(value, error, slope, nearest)``: sums of weights times e^{-tilt (v - nearest)}.

    v > 0 is the distance of a knot from ``epsilon``, the least is ``nearest``; knots beyond index
    ``last`` carry nothing. ``epsilon`` must lie in the window, or below it where that is the whole
    law. The value is the sum with the factor 1 - e^{-v}, the slope, which is ``-d/d epsilon`` of
    the profile, that with e^{-v}.
    """
    index, nearest = knot_above(total, offset, spacing, epsilon)
    start = index - total.first
    stop = min(total.weights.size, last - total.first + 1)
    weights = total.weights[start : max(stop, start)]
    value, slope, gross, square, most = core.profile_sums(weights, nearest, spacing, tilt)
    error = 4e-13 * gross + total.error * math.sqrt(square) + 1e-290  # what lies too far above
    if total.outside > 0.0:
        end = offset + (total.first + total.weights.size) * spacing - epsilon
        above = tilt * (nearest - end)
        error += total.outside * (most + (math.exp(above) if above < 700.0 else math.inf))
    return value, 1.0001 * error, slope, nearest
