"""Several participations in an epoch, from below: the law of a sum over the steps.

A record takes part in k of T steps. For any function g of one release, the sum of g over the steps
is that of k values under the shifted noise and T - k under the other, whichever steps it picked: a
convolution under both data sets, and so a pair that is reached. g is the loss of Poisson sampling
at rate k/T, rounded to a lattice. docs/theorems_sampling.md, Theorem S16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.normal_masses import cells
from accountant.pairs.atoms import AtomicPair, Atoms
from accountant.pairs.base import DominatingPair
from accountant.relations import NeighbouringRelation

_Array: TypeAlias = "NDArray[Any]"

# Lattice points in a standard deviation of the sum, times the root of the number of steps.
FINE = 24.0
# Standard deviations in the window of the sum, and points of the largest lattice.
WINDOW, LARGEST = 30.0, 2**17
# How far beyond the shifted noise one release is looked at, in standard deviations.
REACH = 10.0
# Tilted probabilities of numbers of participations that are not worth a power.
_RARE = 1e-24
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
            SumPair(self.noise_multiplier, self.steps, Chances(self.participations, (1.0,)), add)
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
class Chances:
    """The law of the number of participations.

    Parameters
    ----------
    first : int
        The least number.
    masses : tuple of float
        Probabilities of this number and those after it, positive.
    error : float
        Their relative error.
    """

    first: int
    masses: tuple[float, ...]
    error: float = 0.0

    @property
    def numbers(self) -> FloatArray:
        """The numbers of participations."""
        return self.first + np.arange(len(self.masses), dtype=np.float64)

    @property
    def mean(self) -> float:
        """About how many participations there are."""
        return float(self.numbers @ np.array(self.masses))


@dataclass(frozen=True)
class SumPair(AtomicPair):
    """The laws of the sum: masses a little too small under P, and too large under Q."""

    noise_multiplier: float
    steps: int
    chances: Chances
    add: bool

    def atoms(self) -> Atoms:
        """Return the losses of the values of the sum."""
        one = _one_step(self.noise_multiplier, self.chances.mean, self.steps)
        tilts = TILTS[self.add]
        laws = [self.chances, Chances(0, (1.0,))]
        if self.add:
            laws.reverse()
        size, begin = _window(one, laws[0], self.steps, tilts[0])
        place = begin + np.arange(size)
        logs = []
        for sign, counts, tilt in zip((-1.0, 1.0), laws, tilts, strict=True):
            law = _convolved(one, counts, self.steps, tilt, (size, begin))
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
        rounding += 2.0 * self.chances.error
        return Atoms(loss, p, p * np.exp(-loss), 0.0, 0.0, rounding, 2.0 * rounding)


def _one_step(noise: float, k: float, steps: int) -> _Cells:
    """Return the masses of the rounded loss of one step under both laws."""
    mu, q, rest = 1.0 / noise, k / steps, steps - k
    t = np.linspace(-REACH, REACH + mu, 4001)
    loss = np.logaddexp(math.log1p(-q), math.log(q) + mu * t - 0.5 * mu * mu)
    variance = 0.0
    for count, mean in ((k, mu), (rest, 0.0)):
        w = np.exp(-0.5 * (t - mean) ** 2)
        w /= w.sum()
        middle = float(w @ loss)
        variance += count * float(w @ (loss - middle) ** 2)
    deviation = math.sqrt(variance)
    spacing = deviation / min(FINE * math.sqrt(steps), LARGEST / WINDOW / 2.0)
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


def _weights(
    one: _Cells, counts: Chances, steps: int, tilt: float
) -> tuple[FloatArray, tuple[FloatArray, FloatArray], float]:
    """Return tilted probabilities of the numbers, both tilted laws of a step, and the scale."""
    shifted, log_shifted = _tilted(one, tilt, True)
    plain, log_plain = _tilted(one, tilt, False)
    numbers = counts.numbers
    logs = np.log(counts.masses) + numbers * log_shifted + (steps - numbers) * log_plain
    top = float(logs.max())
    weights = np.exp(logs - top)
    total = float(weights.sum())
    return weights / total, (shifted, plain), top + math.log(total)


def _window(one: _Cells, counts: Chances, steps: int, tilt: float) -> tuple[int, int]:
    """Return the size of the lattice of the sum, and its first place."""
    place = one.first + np.arange(one.plain.size)
    weights, laws, _ = _weights(one, counts, steps, tilt)
    means = [float(law @ place) for law in laws]
    spreads = [float(law @ (place - m) ** 2) for law, m in zip(laws, means, strict=True)]
    numbers = counts.numbers
    often = float(weights @ numbers)
    mean = often * means[0] + (steps - often) * means[1]
    variance = often * spreads[0] + (steps - often) * spreads[1]
    variance += float(weights @ (numbers - often) ** 2) * (means[0] - means[1]) ** 2
    needed = max(WINDOW * math.sqrt(variance), 2.0 * place.size)
    size = min(2 ** math.ceil(math.log2(max(needed, 1024.0))), 2 * LARGEST)
    return size, round(mean) - size // 2


def _convolved(
    one: _Cells, counts: Chances, steps: int, tilt: float, window: tuple[int, int]
) -> _Law:
    """Return the law of the sum, by the transform of its tilted steps (Theorem G4)."""
    size, begin = window
    eta = 8.0 * U * (math.log2(size) + 1.0)
    chances, laws, scale = _weights(one, counts, steps, tilt)
    likely = np.flatnonzero(chances > _RARE)
    left = float(chances[chances <= _RARE].sum())
    first, last = int(likely[0]), int(likely[-1]) + 1
    chances, numbers = chances[first:last], counts.numbers[first:last]
    first += counts.first
    place = one.first + np.arange(one.plain.size)
    rate = 40.0 / (0.5 * size) * np.array([-1.0, 1.0])
    values, moduli, off = [], [], np.full(size // 2 + 1, 16.0 * U * steps)
    # Logarithms of bounds on what is beyond either end, for every number.
    reach = np.log(chances)[:, None] - rate * np.array([begin, begin + size])
    for weights, times in zip(laws, (numbers, steps - numbers), strict=True):
        around = np.zeros(size)
        np.add.at(around, place % size, weights)
        found = np.fft.rfft(around)
        # Each value is off by at most the l2 error of all.
        error = eta * math.sqrt(size) * float(np.linalg.norm(around)) + 4.0 * U
        modulus = np.abs(found) * (1.0 + 4.0 * U) + error
        off += float(times.max()) * error / modulus
        values.append(found)
        moduli.append(modulus)
        more = np.log([float(weights @ np.exp(r * place)) for r in rate])
        reach += np.outer(times, more)
    spectrum = _powers(values[0], values[1], first, steps, chances)
    sizes = _powers(moduli[0], moduli[1], first, steps, chances) * (1.0 + 64.0 * U * steps)
    mass = np.roll(np.fft.irfft(spectrum, size), -(begin % size))
    error = 2.0 * float((sizes * np.minimum(off, 2.0)).sum()) / size
    error += 2.0 * eta * float(np.linalg.norm(mass)) + 1e-250 + left
    outside = float(np.exp(np.minimum(reach, 0.0)).sum()) * (1.0 + 1e-9)
    return _Law(mass, error * (1.0 + 1e-6), outside, scale)


def _powers(shifted: _Array, plain: _Array, first: int, steps: int, chances: FloatArray) -> _Array:
    """Return Σ chance · shifted^k · plain^(steps - k) over k = first, first + 1, …"""
    last = first + chances.size - 1
    found, power = np.full_like(shifted, chances[-1]), np.ones_like(plain)
    for chance in chances[-2::-1].tolist():
        power = power * plain
        found = found * shifted + chance * power
    return found * _power(shifted, first) * _power(plain, steps - last)


def _power(base: _Array, count: int) -> _Array:
    found = base if count else np.ones_like(base)
    for bit in bin(count)[3:]:
        found = found * found
        if bit == "1":
            found = found * base
    return found
