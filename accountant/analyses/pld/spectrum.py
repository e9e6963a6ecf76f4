"""A composition by the few frequencies that matter: no inverse transform, no window of weights.

Where many releases are composed, the characteristic function of the sum is negligible but at a few
frequencies. A transform of one release shows where it is not; there it is summed directly, raised
to its power, and set against the transform of the weights, a geometric sum (Theorem G11).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import scipy.fft

from accountant._rounding import U
from accountant.analyses.pld.fft import Tilted, fft_error, fft_size, knot_above

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Spectrum", "few_frequencies"]

FloatArray: TypeAlias = "NDArray[np.float64]"
ComplexArray: TypeAlias = "NDArray[np.complex128]"
IntArray: TypeAlias = "NDArray[np.int64]"

# Smaller laws are composed as quickly by a transform and its inverse.
LEAST = 2**13
# log of moduli that count as errors.
QUIET = -65.0
# Frequencies that are kept at most, and direct sums of at most so many terms.
MOST, DIRECT = 2**14, 3e7
# Points of the coarse transform, for each knot of the longest law.
FINER = 16
# Frequencies and knots that are summed together.
BLOCK, CHUNK = 32, 128


class Spectrum(NamedTuple):
    """The characteristic function of a composed law, at frequencies 2π·frequency/size a knot.

    The values have the weight of their frequency in them; all others are at most ``quiet``.
    """

    frequencies: IntArray
    values: ComplexArray
    errors: FloatArray
    quiet: float
    origin: int  # the knot from which distances are taken
    first: int  # of the window's knots
    size: int
    outside: float
    whole: bool

    @property
    def held(self) -> int:
        """Bytes."""
        return int(self.frequencies.nbytes + self.values.nbytes + self.errors.nbytes)

    def sums(
        self, offset: float, spacing: float, tilt: float, epsilon: float, last: int
    ) -> tuple[float, float, float, float]:
        """Return what :func:`accountant.analyses.pld.fft.total_sums` does."""
        index, nearest = knot_above(self, offset, spacing, epsilon)
        count = min(self.first + self.size, last + 1) - index
        value = slope = error = 0.0
        if count > 0:
            value, slope, error = self._above(index, count, nearest, spacing, tilt)
        error += 4e-13 * (abs(value) + abs(slope)) + 1e-290
        if self.outside > 0.0:
            end = offset + (self.first + self.size) * spacing - epsilon
            most = min(1.0, math.exp(min(tilt * nearest, 1.0)) / (1.0 + tilt))
            error += self.outside * (most + math.exp(tilt * (nearest - end)))
        return value, 1.0001 * error, slope, nearest

    def _above(
        self, index: int, count: int, nearest: float, spacing: float, tilt: float
    ) -> tuple[float, float, float]:
        """Return the sums over ``count`` knots from ``index`` on, and the error of the first."""
        turned = self.values * self._turn(index - self.origin)
        plain = self._geometric(tilt * spacing, count)
        steeper = math.exp(-nearest) * self._geometric((tilt + 1.0) * spacing, count)
        terms = turned * (plain - steeper)
        error = float(self.errors @ np.abs(plain - steeper))
        error += 64.0 * U * float(np.abs(self.values) @ (np.abs(plain) + np.abs(steeper)))
        error += (terms.size + 16) * U * float(np.abs(terms).sum())
        error += self.quiet * min(float(count), -1.0 / math.expm1(-tilt * spacing))
        return float(terms.real.sum()), float((turned * steeper).real.sum()), error

    def _turn(self, knots: int) -> ComplexArray:
        turns = (self.frequencies * (knots % self.size)) % self.size
        return np.asarray(np.exp((2j * math.pi / self.size) * turns))

    def _geometric(self, decay: float, count: int) -> ComplexArray:
        """Return Σ_{m < count} e^{-decay m + iθm}, without cancellation in either factor."""
        last = (self.frequencies * (count % self.size)) % self.size
        return _complement(decay * count, last, self.size) / _complement(
            decay, self.frequencies, self.size
        )


def _complement(decay: float, turns: IntArray, size: int) -> ComplexArray:
    """Return 1 - e^{-decay + iθ}, θ = 2π·turns/size: two positive terms and the sine."""
    angle = (math.pi / size) * turns
    sine, shrunk = np.sin(angle), math.exp(-decay)
    real = -math.expm1(-decay) + 2.0 * shrunk * sine * sine
    return np.asarray(real - 1j * (shrunk * 2.0 * sine * np.cos(angle)))


def few_frequencies(
    parts: Sequence[Tilted], first: int, size: int, outside: float, *, whole: bool
) -> Spectrum | None:
    """Compose the parts, each to its power, on ``size`` cyclic knots; None where most matter.

    ``whole`` allows arrays of that size.
    """
    releases = sum(part.times for part in parts)
    if size < LEAST or releases == 1:
        return None
    nodes = fft_size(FINER * max(part.weights.size for part in parts))
    if 2 * nodes > size:
        if not whole:
            return None
        nodes = size
    envelope: FloatArray = np.zeros(nodes // 2 + (nodes == size))
    kept: list[ComplexArray | None] = []
    for part in parts:
        transform = scipy.fft.rfft(part.weights, nodes)
        envelope += part.times * _log_modulus(part.weights, transform, nodes, nodes == size)
        kept.append(transform if nodes == size and len(parts) <= 2 else None)
    loud = _loud(envelope > QUIET, nodes, size)
    if loud is None:
        return None
    values, origin = np.ones(loud.size, dtype=np.complex128), 0
    log_gross, relative = np.zeros(loud.size), np.zeros(loud.size)
    for part, seen in zip(parts, kept, strict=True):
        centre = int(part.weights.argmax())
        origin += part.times * (part.first + centre)
        found, error = _values(part.weights, centre, loud, size, seen)
        values *= _power(found, part.times)
        modulus = np.abs(found) * (1.0 + 8.0 * U) + error
        log_gross += part.times * np.log(modulus)
        relative += part.times * (error / modulus)
    relative += 32.0 * U * (releases + len(parts))
    share = np.where((loud == 0) | (2 * loud == size), 1.0, 2.0) / size
    errors = np.exp(np.minimum(log_gross, 700.0)) * np.expm1(np.minimum(relative, 60.0)) + 1e-290
    start = sum(part.first * part.times for part in parts)
    quiet = 1.01 * math.exp(QUIET)
    return Spectrum(
        loud, values * share, errors * share, quiet, origin, first, size, outside, first <= start
    )


def _log_modulus(
    weights: FloatArray, transform: ComplexArray, nodes: int, exact: bool
) -> FloatArray:
    """Bound the logarithm of the modulus, at the nodes or on the intervals between them."""
    mass = float(weights.sum()) * (1.0 + 1e-12)
    modulus = np.abs(transform) * (1.0 + 8.0 * U) + fft_error(nodes) * mass
    square = modulus * modulus
    if not exact:
        # |φ|² has a second derivative of at most 2·mass²·variance, over the nodes' spacing 2π/n.
        place = np.arange(weights.size) - float(weights.argmax())
        spread = mass * float(weights @ (place * place)) * (1.0 + 1e-9)
        square = np.maximum(square[:-1], square[1:]) + (math.pi / nodes) ** 2 * spread
    return np.asarray(0.5 * np.log(np.minimum(square, mass * mass)) + 1e-14)


def _loud(loud: NDArray[np.bool_], nodes: int, size: int) -> IntArray | None:
    """Return the frequencies of the loud nodes or intervals; None where they are too many."""
    if nodes == size:
        found = np.flatnonzero(loud)
        return found if found.size <= MOST else None
    ends = np.flatnonzero(np.diff(np.concatenate([[False], loud, [False]]).astype(np.int8)))
    runs = [
        (-(-int(low) * size // nodes), min(int(high) * size // nodes, size // 2))
        for low, high in ends.reshape(-1, 2)
    ]
    if sum(high - low + 1 for low, high in runs) > MOST:
        return None
    return np.unique(np.concatenate([np.arange(low, high + 1) for low, high in runs]))


def _values(
    weights: FloatArray, centre: int, loud: IntArray, size: int, transform: ComplexArray | None
) -> tuple[ComplexArray, float]:
    """Return Σ w_i e^{-iθ(i - centre)} at the loud frequencies, and a bound on its error."""
    mass = float(weights.sum()) * (1.0 + 1e-12)
    used = np.flatnonzero(weights)
    if loud.size * used.size > DIRECT or transform is not None:
        if transform is None:
            transform = scipy.fft.rfft(weights, size)
        turns = (loud * (centre % size)) % size
        turned = transform[loud] * np.exp((2j * math.pi / size) * turns)
        return turned, (fft_error(size) + 32.0 * U) * mass
    blocks, place = np.unique(loud // BLOCK, return_inverse=True)
    total = np.zeros((blocks.size, BLOCK), dtype=np.complex128)
    turn = -2j * math.pi / size
    for start in range(0, used.size, CHUNK):
        chunk = used[start : start + CHUNK]
        distance = chunk - centre
        inner = np.exp(turn * (np.outer(distance, np.arange(BLOCK)) % size))
        outer = np.exp(turn * (np.outer(BLOCK * blocks, distance) % size)) * weights[chunk]
        total += outer @ inner
    roundings = 2.0 * CHUNK + used.size / CHUNK + 128.0
    return total[place, loud % BLOCK], roundings * U * mass


def _power(base: ComplexArray, count: int) -> ComplexArray:
    found = base
    for bit in bin(count)[3:]:
        found = found * found
        if bit == "1":
            found = found * base
    return found
