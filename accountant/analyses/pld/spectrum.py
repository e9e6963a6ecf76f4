"""A composition by the few frequencies that matter: no inverse transform, no window of weights.

Where many releases are composed, the characteristic function of the sum is negligible but at a few
frequencies. A transform of one release shows where it is not; there it is summed directly, raised
to its power, and set against the transform of the weights, a geometric sum (Theorem G11).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.analyses.pld.fft import (
    Product,
    Tilted,
    fft_error,
    fft_size,
    knot_above,
    reading,
    weighed,
)
from accountant.analyses.pld.phases import matrix_product, phases_of_turns

ComplexArray: TypeAlias = "NDArray[np.complex128]"
IntArray: TypeAlias = "NDArray[np.int64]"

# Moduli whose squares are below the doubles, or have lost digits there.
UNDERFLOW = 1e-150
# Smaller laws are composed as quickly by a transform and its inverse.
LEAST = 2**13
# log of moduli that count as errors.
QUIET = -65.0
# Frequencies that are kept at most, also for each knot, and the terms of direct sums that cost less
# than transforms, also for each knot.
MOST, SHARE, DIRECT, DIRECT_SHARE = 2**13, 1 / 16, 3e7, 32.0
# Points of the coarse transform, for each knot of the longest law, or of its core: at least CORE
# knots, or a share of those of the sum. A rougher one, of fewer points, is tried first.
FINER, NARROW, CORE = 16, 512, 2**10
ROUGHER = 4
# And at least one for so many knots of the sum, up to so many, which take two milliseconds: the
# bound between nodes has to tell moduli next to one from one where they are raised to high powers.
KNOTS, DENSEST = 64, 2**16
# Frequencies, knots and chunks of knots that are summed together.
BLOCK, CHUNK, GROUP = 256, 128, 64
# So few knots that carry mass are summed one by one, or so few of all: a term then costs as much as
# so many in a chunk.
SPARSE, SPARSE_SHARE = 32, 50


class Spectrum(NamedTuple):
    """The characteristic function of a composed law, at frequencies 2π·frequency/size a knot.

    The values have the weight of their frequency in them; all others are at most ``quiet``. All,
    listed or not, are off by at most ``uniform`` beside the ``errors``.
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
    uniform: float = 0.0

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
            # Weights e^{-tilt (v - nearest)}(1 - e^{-v}) are largest at e^{-v} = tilt/(1 + tilt).
            most = min(1.0, math.exp(min(tilt * nearest, 700.0)) / (1.0 + tilt))
            error += weighed(self.outside, most, tilt * (nearest - end))
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
        if self.uniform > 0.0:
            error += self.uniform * reading(tilt, spacing, self.size, nearest, count)
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
    # the turn next to none: the sine of nearly π has no digits
    angle = (math.pi / size) * np.where(2 * turns > size, turns - size, turns)
    sine, shrunk = np.sin(angle), math.exp(-decay)
    real = -math.expm1(-decay) + 2.0 * shrunk * sine * sine
    return np.asarray(real - 1j * (shrunk * 2.0 * sine * np.cos(angle)))


def few_frequencies(
    parts: Sequence[Tilted], first: int, size: int, outside: float
) -> Spectrum | None:
    """Compose parts that are much narrower than their sum, each to its power.

    ``size`` is the number of the sum's cyclic knots. None where many frequencies may matter.
    """
    nodes = node_count(max(part.weights.size for part in parts), size)
    if nodes is None:
        return None
    terms = sum(direct_terms(part.weights) for part in parts)
    for finer in (FINER // ROUGHER, FINER):
        loud = _loud(parts, nodes * finer // FINER, size, finer)
        if loud is not None and loud.size * terms <= max(DIRECT, DIRECT_SHARE * size):
            break
    else:
        return None
    values, origin = np.ones(loud.size, dtype=np.complex128), 0
    log_gross, relative = np.zeros(loud.size), np.zeros(loud.size)
    for part in parts:
        centre = int(part.weights.argmax())
        origin += part.times * (part.first + centre)
        found, error = direct_sums(part.weights, centre, loud, size)
        values *= _power(found, part.times)
        modulus = np.abs(found) * (1.0 + 8.0 * U) + error
        log_gross += part.times * np.log(modulus)
        relative += part.times * (error / modulus)
    relative += 32.0 * U * (sum(part.times for part in parts) + len(parts))
    kept = log_gross > QUIET  # the bound between nodes is a rough one
    loud, values, log_gross, relative = loud[kept], values[kept], log_gross[kept], relative[kept]
    share = _share(loud, size)
    with np.errstate(over="ignore"):  # beyond the doubles there is no bound
        gross = np.exp(np.minimum(log_gross, 700.0))
        errors = gross * np.expm1(np.minimum(relative, 60.0)) + 1e-290
    start = sum(part.first * part.times for part in parts)
    quiet = 1.01 * math.exp(QUIET)
    return Spectrum(
        loud, values * share, errors * share, quiet, origin, first, size, outside, first <= start
    )


def _loud(parts: Sequence[Tilted], nodes: int, size: int, finer: int) -> IntArray | None:
    """Return the frequencies where the sum is not negligible, as so many nodes tell."""
    envelope: FloatArray = np.zeros(nodes // 2)
    for part in parts:
        envelope += part.times * log_moduli(part.weights, nodes, finer)
    return loud_between(envelope > QUIET, nodes, size)


def loud_frequencies(product: Product, first: int, size: int, outside: float) -> Spectrum | None:
    """Return the frequencies of a transform that are above its error; None if they are many."""
    if size < LEAST:
        return None
    faint = 1e-3 * product.uniform
    loud = np.flatnonzero(np.abs(product.values) > faint)
    if loud.size > min(MOST, SHARE * size):
        return None
    whole, uniform = first <= product.start, product.uniform + 1.01 * faint
    values, errors = product.values[loud] * _share(loud, size), np.zeros(loud.size)
    return Spectrum(loud, values, errors, 0.0, product.start, first, size, outside, whole, uniform)


def _share(loud: IntArray, size: int) -> FloatArray:
    return np.asarray(np.where((loud == 0) | (2 * loud == size), 1.0, 2.0) / size)


def node_count(longest: int, size: int) -> int | None:
    """Return the number of nodes between which moduli are bounded; None for small problems."""
    resolved = FINER * min(longest, max(size // NARROW, CORE))
    nodes = fft_size(max(resolved, min(size // KNOTS, DENSEST)))
    return nodes if size >= LEAST and 2 * nodes <= size else None


def near(weights: FloatArray, nodes: int, finer: int = FINER) -> slice:
    """Return the knots around the heaviest one for each of which there are ``finer`` nodes."""
    width = min(nodes // finer, weights.size)
    start = min(max(int(weights.argmax()) - width // 2, 0), weights.size - width)
    return slice(start, start + width)


def log_moduli(weights: FloatArray, nodes: int, finer: int = FINER) -> FloatArray:
    """Bound the logarithm of the modulus on the intervals between the nodes."""
    mass, core = float(weights.sum()) * (1.0 + 1e-12), near(weights, nodes, finer)
    inner = weights[core]
    far = float(weights[: core.start].sum() + weights[core.stop :].sum()) * (1.0 + 1e-12)
    modulus = np.abs(np.fft.rfft(inner, nodes)) * (1.0 + 8.0 * U) + fft_error(nodes) * mass
    return between(modulus, mass, second_moment(inner, np.arange(inner.size)), far, nodes)


def second_moment(weights: FloatArray, place: NDArray[Any], doubt: float = 0.0) -> float:
    """Return Σ w (place - c)² for the mean c, where it is least; places are off by ``doubt``."""
    total = float(weights.sum())
    offset = np.abs(place - (float(weights @ place) / total if total > 0.0 else 0.0)) + doubt
    return float(weights @ (offset * offset))


def between(modulus: FloatArray, mass: float, moment: float, far: float, nodes: int) -> FloatArray:
    """Bound logarithms between nodes by the moduli there, a second moment and what is left out.

    |φ|² has a second derivative of at most 2·mass·moment, over the nodes' spacing 2π/n.
    """
    square = modulus * modulus
    spread = mass * moment * (1.0 + 1e-9)
    square = np.maximum(square[:-1], square[1:]) + (math.pi / nodes) ** 2 * spread
    with np.errstate(divide="ignore"):  # of no mass at all
        return np.asarray(np.log(np.minimum(np.sqrt(square) + (far + UNDERFLOW), mass)) + 1e-14)


def loud_between(loud: NDArray[np.bool_], nodes: int, size: int) -> IntArray | None:
    """Return the frequencies of the loud intervals; None where they are too many, or none."""
    ends = np.flatnonzero(np.diff(np.concatenate([[False], loud, [False]]).astype(np.int8)))
    runs = [
        (-(-int(low) * size // nodes), min(int(high) * size // nodes, size // 2))
        for low, high in ends.reshape(-1, 2)
    ]
    if not runs or sum(high - low + 1 for low, high in runs) > min(MOST, SHARE * size):
        return None
    if runs[-1][1] * size >= 2**63:  # turns are counted in integers of 64 bits
        return None
    return np.unique(np.concatenate([np.arange(low, high + 1) for low, high in runs]))


def direct_sums(
    weights: FloatArray, centre: int, loud: IntArray, size: int
) -> tuple[ComplexArray, float]:
    """Return Σ w_i e^{-iθ(i - centre)} at the loud frequencies, and a bound on its error.

    Chunks of knots share the phases of a chunk: a product of matrices, and one phase a chunk.
    """
    mass = float(weights.sum()) * (1.0 + 1e-12)
    used = np.flatnonzero(weights)
    if used.size <= SPARSE or not _is_dense(used):
        return _few_knots(weights[used], used - centre, loud, size), (used.size + 128.0) * U * mass
    first, last = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 1)
    # Half of the phases are those of a chunk's knots, and half those of the chunks.
    chunk = min(CHUNK, math.isqrt(last - first) + 1)
    group = min(GROUP, -(-(last - first) // chunk))
    groups = -(-(last - first) // (chunk * group))
    rows = np.zeros((groups * group, chunk))
    rows.ravel()[: last - first] = weights[first:last]
    starts = (first - centre + chunk * np.arange(groups * group)) % size
    total = np.empty(loud.size, dtype=np.complex128)
    for start in range(0, loud.size, BLOCK):
        block = loud[start : start + BLOCK]
        inner = phases_of_turns(np.outer(np.arange(chunk), block), size)
        sums = matrix_product(rows, inner.real) + 1j * matrix_product(rows, inner.imag)
        sums *= phases_of_turns(np.outer(starts, block), size)
        total[start : start + BLOCK] = sums.reshape(groups, group, -1).sum(axis=1).sum(axis=0)
    return total, (chunk + group + groups + 64.0) * U * mass


def _is_dense(used: NDArray[np.int64]) -> bool:
    return SPARSE_SHARE * used.size > int(used[-1]) - int(used[0])


def direct_terms(weights: FloatArray) -> int:
    """Return how many terms of a chunk cost as much as a sum at one frequency."""
    used = np.flatnonzero(weights)
    return min(SPARSE_SHARE * used.size, int(used[-1] - used[0]) + 1) if used.size else 0


def _few_knots(
    weights: FloatArray, places: NDArray[np.int64], loud: IntArray, size: int
) -> ComplexArray:
    """Return Σ w_i e^{-iθ i} over a few knots alone, one after the other."""
    total = np.zeros(loud.size, dtype=np.complex128)
    for weight, place in zip(weights.tolist(), (places % size).tolist(), strict=True):
        total += weight * phases_of_turns(place * loud, size)
    return total


def _power(base: ComplexArray, count: int) -> ComplexArray:
    found = base
    for bit in bin(count)[3:]:
        found = found * found
        if bit == "1":
            found = found * base
    return found
