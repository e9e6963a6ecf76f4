"""Composition of tilted distributions by FFT, with bounds on every error (Theorems G4-G6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant._core import tools as core
from accountant.errors import PrecisionError

ComplexArray: TypeAlias = "NDArray[np.complex128]"

# The logarithm of the largest product of weights that is transformed: it is nearly 0 without
# round-off, and beyond this nothing is left of a bracket.
MOST_GROWTH = 300.0
# Sums of weights beyond it are refused: their squares leave the doubles, and with them the proof.
LARGEST = 1e150


class Tilted(NamedTuple):
    """Weights a_i with masses a_i * exp(log_scale - tilt * (t_i - centre)), t_i the knots."""

    weights: FloatArray
    first: int
    times: int


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
    # In ℓ2, but for errors of the transform, which are at most ``uniform`` at every frequency.
    inverse: float = 0.0
    uniform: float = math.inf

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


def norm(x: FloatArray) -> float:
    """Return the ℓ2 norm; not by BLAS, whose threads take longer to wake than the sum takes."""
    return math.sqrt(float(np.add.reduce(x * x)))


class Product(NamedTuple):
    """The transform of a composition, and bounds on the errors of its values."""

    values: ComplexArray
    start: int  # the knot of the first weight
    squared: float  # in ℓ2 over all frequencies of either sign, divided by the root of the size
    uniform: float  # at every frequency


def product_of(parts: Sequence[Tilted], size: int) -> Product:
    """Multiply the powers of the parts' transforms of length ``size``.

    Raises
    ------
    PrecisionError
        The round-off of the repetitions exceeds every weight.
    """
    relative = fft_error(size)
    values = np.ones(size // 2 + 1, dtype=np.complex128)
    growth = lipschitz = uniform = most = 0.0
    for part in parts:
        heavy = float(part.weights.sum())
        if not heavy < LARGEST:
            raise PrecisionError("the exponential tilt of the losses overflows on this grid")
        # ℓ2 error of the transform, and therefore of each of its values; and one of each
        error = relative * math.sqrt(size) * norm(part.weights) * (1.0 + 1e-9)
        mass = max(heavy, 1.0) * (1.0 + 1e-12)
        each = min(relative * mass, error)
        growth += part.times * math.log(mass + error)
        most += part.times * math.log(mass + each)
        lipschitz += part.times * error
        uniform += part.times * each
        if growth > MOST_GROWTH:
            raise PrecisionError(
                f"{part.times} repetitions add up round-off beyond what a grid can bracket; state"
                " a bound on all of them, such as PureDP or ZCDP"
            )
        core.multiply_power(np.fft.rfft(part.weights, size), part.times, values)
    roundings = 1.01 * math.expm1(3.1 * U * (sum(part.times for part in parts) + len(parts)))
    whole = math.sqrt(2.0) * norm(values.view(np.float64))
    squared = math.exp(growth) * lipschitz + roundings * whole + math.exp(growth - 89.0) * size
    uniform = math.exp(most) * (uniform + roundings) + math.exp(growth - 89.0)
    start = sum(part.first * part.times for part in parts)
    return Product(values, start, squared / math.sqrt(size), 1.01 * uniform)


def compose(parts: Sequence[Tilted], first: int, size: int, outside: float) -> Total:
    """Convolve the parts, each to its power, onto ``size`` cyclic knots from ``first``.

    Raises
    ------
    PrecisionError
        The round-off of the repetitions exceeds every weight.
    """
    if len(parts) == 1 and parts[0].times == 1:
        return Total(parts[0].weights, parts[0].first, 0.0, 0.0, True)
    return inverse(product_of(parts, size), first, size, outside)


def inverse(product: Product, first: int, size: int, outside: float) -> Total:
    """Return the composed law on ``size`` cyclic knots from ``first``."""
    weights = np.fft.irfft(product.values, size)
    back = 1.01 * fft_error(size) * norm(weights)
    # position r holds the knots start + r + multiples of size
    weights = np.roll(weights, -((first - product.start) % size))
    error, whole = 1.01 * (product.squared + back), first <= product.start
    return Total(weights, first, error, outside, whole, 1.01 * back, product.uniform)


def reading(tilt: float, spacing: float, size: int, nearest: float, count: int) -> float:
    """Bound what an error of one at every frequency does to :func:`total_sums` (Theorem G11)."""

    def power(decay: float) -> float:
        lost = -math.expm1(-decay * size)
        return (2.0 - lost) / (-math.expm1(-2.0 * decay) * lost)

    step = -math.expm1(-spacing)
    if nearest > spacing:
        step = max(step, -2.0 * math.expm1(-nearest))
    beyond = -2.0 * math.expm1(-nearest - spacing * count) * math.exp(-tilt * spacing * count)
    root = math.sqrt(power(tilt * spacing) * power((tilt + 1.0) * spacing))
    return (step + beyond) * root * (1.0 + 1e-9)


def knot_above(total: Total, offset: float, spacing: float, epsilon: float) -> tuple[int, float]:
    """Return the index of the first knot above ``epsilon``, and its distance."""
    index = math.floor((epsilon - offset) / spacing)
    if total.whole:
        index = max(index, total.first)
    while not (offset + index * spacing - epsilon > 0.0):
        index += 1
    return index, offset + index * spacing - epsilon


def weighed(outside: float, most: float, above: float) -> float:
    """Return ``outside * (most + e^above)``; infinitely much times nothing is no number."""
    if not (outside < math.inf and above < 700.0):
        return math.inf
    return outside * (most + math.exp(above))


def total_sums(
    total: Total, offset: float, spacing: float, tilt: float, epsilon: float, last: int
) -> tuple[float, float, float]:
    """Return ``(value, error, nearest)``: Σ weight · e^{-tilt (v - nearest)} (1 - e^{-v}).

    v > 0 is the distance of a knot from ``epsilon``, the least is ``nearest``; knots beyond index
    ``last`` carry nothing. ``epsilon`` must lie in the window, or below it where that is the whole
    law.
    """
    index, nearest = knot_above(total, offset, spacing, epsilon)
    start = index - total.first
    stop = min(total.weights.size, last - total.first + 1)
    weights = total.weights[start : max(stop, start)]
    value, gross, square, most = core.profile_sums(weights, nearest, spacing, tilt)
    round_off = total.error * math.sqrt(square)
    if total.uniform < math.inf and weights.size:
        apart = reading(tilt, spacing, total.weights.size, nearest, weights.size)
        round_off = min(round_off, total.inverse * math.sqrt(square) + total.uniform * apart)
    error = 4e-13 * gross + round_off + 1e-290  # what lies too far above
    if total.outside > 0.0:
        end = offset + (total.first + total.weights.size) * spacing - epsilon
        error += weighed(total.outside, most, tilt * (nearest - end))
    return value, 1.0001 * error, nearest
