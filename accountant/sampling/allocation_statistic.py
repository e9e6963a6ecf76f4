"""Several participations in an epoch, from below: the law of a sum over the steps.

A record takes part in k of T steps. For any function g of one release, the sum of g over the steps
is that of k values under the shifted noise and T - k under the other, whichever steps it picked: a
convolution under both data sets, and so a pair that is reached. g is the loss of Poisson sampling
at rate k/T, rounded to a lattice. docs/theorems_sampling.md, Theorem S16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from accountant._rounding import U
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.normal_masses import cells
from accountant.pairs.atoms import AtomicPair, Atoms
from accountant.relations import NeighbouringRelation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from accountant.pairs.base import DominatingPair

__all__ = ["SumOverSteps"]

FloatArray: TypeAlias = "NDArray[np.float64]"

# Lattice points in a standard deviation of the sum, times the root of the number of steps.
FINE = 24.0
# Standard deviations in the window of the sum, and points of the largest lattice.
WINDOW, LARGEST = 30.0, 2**17
# How far beyond the shifted noise one release is looked at, in standard deviations.
REACH = 10.0
# Tilts of the first and of the second law: their losses keep their digits where they matter.
TILTS = {False: (0.4, 1.4), True: (-1.4, -0.4)}


@dataclass(frozen=True, repr=False)
class SumOverSteps(Mechanism):
    """The sum of a function of every release of one epoch: less than all of them reveal.

    Parameters
    ----------
    noise_multiplier : float
        σ.
    steps, participations : int
        T and k, 1 <= k < T.
    relation : NeighbouringRelation
        Add-or-remove or zero-out.
    """

    noise_multiplier: float
    steps: int
    participations: int
    relation: NeighbouringRelation = NeighbouringRelation.ADD_OR_REMOVE

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return (remove, add)."""
        return tuple(
            SumPair(self.noise_multiplier, self.steps, self.participations, add)
            for add in (False, True)
        )


class _Cells(NamedTuple):
    """Masses of one value of g, at ``spacing`` times 0, 1, … from ``first``."""

    shifted: FloatArray
    plain: FloatArray
    spacing: float
    first: int
    error: float  # relative, of every mass


class _Law(NamedTuple):
    """Masses e^{log_scale - tilt·spacing·place}·(mass ± error) of sums at consecutive places."""

    mass: FloatArray
    error: float
    outside: float  # at most this much of what lies outside was added to the masses
    log_scale: float


@dataclass(frozen=True)
class SumPair(AtomicPair):
    """The laws of the sum: masses a little too small under P, and too large under Q."""

    noise_multiplier: float
    steps: int
    participations: int
    add: bool

    def atoms(self) -> Atoms:
        """Return the losses of the values of the sum."""
        k, rest = self.participations, self.steps - self.participations
        one = _one_step(self.noise_multiplier, k, rest)
        tilts = TILTS[self.add]
        counts = [(k, rest), (0, self.steps)]
        if self.add:
            counts.reverse()
        size, begin = _window(one, counts[0], tilts[0])
        place = begin + np.arange(size)
        logs = []
        for sign, count, tilt in zip((-1.0, 1.0), counts, tilts, strict=True):
            law = _convolved(one, count, tilt, size, begin)
            mass = law.mass + sign * law.error - (law.outside if sign < 0.0 else 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                log_mass = np.log(mass) + law.log_scale - tilt * one.spacing * place
            logs.append(np.where(mass > 0.0, log_mass, -math.inf))
        low, high = logs[0], np.minimum(logs[1], 0.0)
        kept = (low > -600.0) & (high > -600.0)
        # What is left out only makes the profile smaller.
        low, loss = low[kept], (low - high)[kept]
        order = np.argsort(loss)
        p, loss = np.exp(low[order]), loss[order]
        reach = abs(self.steps * one.spacing * one.first) + one.spacing * float(np.abs(place).max())
        rounding = 32.0 * U * (1000.0 + reach) + self.steps * (2.0 * one.error + 16.0 * U)
        return Atoms(loss, p, p * np.exp(-loss), 0.0, 0.0, rounding, 2.0 * rounding)


def _one_step(noise: float, k: int, rest: int) -> _Cells:
    """Return the masses of the rounded loss of one step under both laws."""
    mu, q = 1.0 / noise, k / (k + rest)
    t = np.linspace(-REACH, REACH + mu, 4001)
    loss = np.logaddexp(math.log1p(-q), math.log(q) + mu * t - 0.5 * mu * mu)
    variance = 0.0
    for count, mean in ((k, mu), (rest, 0.0)):
        w = np.exp(-0.5 * (t - mean) ** 2)
        w /= w.sum()
        middle = float(w @ loss)
        variance += count * float(w @ (loss - middle) ** 2)
    deviation = math.sqrt(variance)
    spacing = deviation / min(FINE * math.sqrt(k + rest), LARGEST / WINDOW / 2.0)
    spacing = max(spacing, float(loss[-1] - loss[0]) / (LARGEST / 4.0))
    first, last = round(float(loss[0]) / spacing), round(float(loss[-1]) / spacing)
    values = spacing * (np.arange(first, last) + 0.5)
    # Where the loss has these values; any increasing edges would do.
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = (np.log((np.expm1(values) + q) / q) + 0.5 * mu * mu) / mu
    edges: FloatArray = np.maximum.accumulate(
        np.nan_to_num(inverse, nan=-40.0, neginf=-40.0, posinf=40.0)
    )
    shifted, error = cells(edges, mu)
    plain, other = cells(edges, 0.0)
    # The shift 1/σ is rounded.
    moved = 64.0 * U * (1.0 + mu) * (mu + REACH)
    return _Cells(shifted, plain, spacing, first, max(error, other) + moved)


def _tilted(one: _Cells, tilt: float, shifted: bool) -> tuple[FloatArray, float]:
    """Return the tilted masses of one step, with sum one, and the logarithm of the scale."""
    mass = one.shifted if shifted else one.plain
    place = one.first + np.arange(mass.size)
    exponent = np.log(np.maximum(mass, 1e-300)) + tilt * one.spacing * place
    top = float(exponent.max())
    weights = np.exp(exponent - top)
    total = float(weights.sum())
    return weights / total, top + math.log(total)


def _window(one: _Cells, counts: tuple[int, int], tilt: float) -> tuple[int, int]:
    """Return the size of the lattice of the sum, and its first place."""
    place = one.first + np.arange(one.plain.size)
    mean = variance = 0.0
    for count, shifted in zip(counts, (True, False), strict=True):
        weights, _ = _tilted(one, tilt, shifted)
        middle = float(weights @ place)
        mean += count * middle
        variance += count * float(weights @ (place - middle) ** 2)
    needed = max(WINDOW * math.sqrt(variance), 2.0 * place.size)
    size = min(2 ** math.ceil(math.log2(max(needed, 1024.0))), 2 * LARGEST)
    return size, round(mean) - size // 2


def _convolved(one: _Cells, counts: tuple[int, int], tilt: float, size: int, begin: int) -> _Law:
    """Return the law of the sum, by the transform of its tilted steps (Theorem G4)."""
    eta = 8.0 * U * (math.log2(size) + 1.0)
    half = size // 2 + 1
    spectrum, log_modulus = np.ones(half, np.complex128), np.zeros(half)
    relative, scale = np.full(half, 8.0 * U * sum(counts)), 0.0
    reach = np.zeros(2)  # logarithms of bounds on what is beyond either end
    place = one.first + np.arange(one.plain.size)
    rate = 40.0 / (0.5 * size) * np.array([-1.0, 1.0])
    for count, shifted in zip(counts, (True, False), strict=True):
        if not count:
            continue
        weights, log_scale = _tilted(one, tilt, shifted)
        scale += count * log_scale
        around = np.zeros(size)
        np.add.at(around, place % size, weights)
        values = np.fft.rfft(around)
        # Each value is off by at most the l2 error of all.
        error = eta * math.sqrt(size) * float(np.linalg.norm(around)) + 4.0 * U
        modulus = np.abs(values) * (1.0 + 4.0 * U) + error
        log_modulus += count * np.log(modulus)
        relative += count * error / modulus
        spectrum *= _power(values, count)
        reach += [count * math.log(float(weights @ np.exp(r * place))) for r in rate]
    sizes = np.exp(log_modulus + 64.0 * U * sum(counts))
    mass = np.roll(np.fft.irfft(spectrum, size), -(begin % size))
    error = 2.0 * float((sizes * np.minimum(relative, 2.0)).sum()) / size
    error += 2.0 * eta * float(np.linalg.norm(mass)) + 1e-250
    ends = np.array([begin, begin + size])
    outside = float(np.exp(np.minimum(reach - rate * ends, 0.0)).sum()) * (1.0 + 1e-9)
    return _Law(mass, error * (1.0 + 1e-6), outside, scale)


def _power(base: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    found = base
    for bit in bin(count)[3:]:
        found = found * found
        if bit == "1":
            found = found * base
    return found
