"""Steps of replace-one on fixed numbers of draws, as a game against the best adversary.

An adversary who sees the outputs chooses the contributions of the next step. What it gains is the
largest of a few convolutions in every step. From above that is attained up to the width of the
bands (docs/theorems_sampling.md, Theorems S18 and S19). From below it is played with two choices: a
record that contributes +u among others that contribute -u, while the budget is not overspent, and
the two exchanged afterwards (Theorem S22).

Values are times e^{θε} on a window, and a step's masses times e^{θ·loss}, so that all of a
convolution matters alike.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.analyses.pld.fft import fft_error, fft_size
from accountant.sampling.lattice_envelope import LatticeLaw, mirrored

# Losses further down are raised to it, as a share of the window; from below they are left out.
BELOW = 0.15
# From below the choice is made anew after a power of two of steps, about this many times.
CHOICES = 96


class Plan(NamedTuple):
    """A window of ε from ``low``, knots of a ``spacing``, and the tilt at which sums are taken."""

    low: float
    spacing: float
    size: int
    tilt: float


class Value(NamedTuple):
    """Upper bounds on δ at the knots of ε."""

    epsilon: FloatArray
    delta: FloatArray
    loss_error: float

    def at(self, epsilon: float) -> float:
        """Bound δ at ``epsilon``: the chord between two knots, in e^ε."""
        least = epsilon - self.loss_error
        if not self.epsilon[0] <= least:
            return 1.0
        place = min(int(np.searchsorted(self.epsilon, least, side="right")), self.epsilon.size) - 1
        if place == self.epsilon.size - 1:
            return float(self.delta[-1])
        share = math.expm1(least - self.epsilon[place])
        share /= math.expm1(self.epsilon[place + 1] - self.epsilon[place])
        share = max(share * (1.0 - 1e-13), 0.0)
        high, low = float(self.delta[place]), float(self.delta[place + 1])
        return min(high - min(share, 1.0) * (high - low), 1.0) * (1.0 + 8.0 * U)

    def epsilon_of(self, delta: float) -> float:
        """Bound ε where δ is ``delta``; infinite beyond the window."""
        small = np.flatnonzero(self.delta <= delta)
        if small.size == 0:
            return math.inf
        place = int(small[0])
        if place == 0:
            return max(float(self.epsilon[0]), 0.0) + self.loss_error
        high, low = float(self.delta[place - 1]), float(self.delta[place])
        rise = math.expm1(self.epsilon[place] - self.epsilon[place - 1])
        share = min((high - delta) / (high - low) * (1.0 + 1e-13), 1.0)
        found = float(self.epsilon[place - 1]) + math.log1p(share * rise)
        return max(found * (1.0 + 1e-14) + 1e-300, 0.0) + self.loss_error


def play(laws: tuple[LatticeLaw, ...], count: int, plan: Plan) -> Value:
    """Return the adversary's largest δ after ``count`` steps of its choice, from above.

    The laws have ``plan.size - 1`` losses ``plan.spacing`` apart on either side of 0.
    """
    epsilon: FloatArray = np.asarray(plan.low + plan.spacing * np.arange(plan.size), np.float64)
    errors = max(law.mass_error for law in laws), max(law.loss_error for law in laws)
    step = _Step(laws, plan, epsilon)
    tilted = step.weight * np.maximum(-np.expm1(epsilon), 0.0)
    for _ in range(count):
        tilted = step.best(tilted)
    values = tilted / step.weight * math.exp(count * errors[0] * 1.01) * (1.0 + 1e-9)
    loss_error = count * errors[1] + 32.0 * U * (1.0 + float(np.abs(epsilon).max()))
    return Value(epsilon, np.minimum.accumulate(np.minimum(values, 1.0)), loss_error)


class _Step:
    """What the adversary may choose in one step, and what it gains.

    Attributes
    ----------
    weight : float64 array
        e^{θ(ε - low)} on the window: a δ of one, tilted.
    """

    def __init__(self, laws: tuple[LatticeLaw, ...], plan: Plan, epsilon: FloatArray) -> None:
        size, spacing, tilt = plan.size, plan.spacing, plan.tilt
        self._size, self._below = size, math.ceil(BELOW * size)
        self._span = fft_size(2 * size + self._below)
        kernels = np.stack([_kernel_above(law, self._below, self._span, plan) for law in laws])
        self._transforms = np.fft.rfft(kernels, axis=1)
        self._infinite = max(law.infinite for law in laws)
        # The value times e^{tilt·(ε - low)} on the window, with size - 1 knots before it.
        self.weight = np.exp(tilt * (epsilon - plan.low))
        before = spacing * np.arange(-(size - 1), 0)
        self._after = np.exp(tilt * spacing * np.arange(size, size + self._below))
        self._before, self._shrink = np.exp(tilt * before), np.exp(before)
        self._relative = _convolution_error(kernels, self._span)
        self._whole, self._products = np.zeros(self._span), np.empty_like(self._transforms)

    def best(self, value: FloatArray) -> FloatArray:
        """Return the largest of what the choices make of a tilted value, from above."""
        size, start, whole = self._size, float(value[0]), self._whole
        # Beyond the window: the chord from (0, 1) in e^ε, and the last value.
        whole[: size - 1] = self._before * (1.0 - self._shrink * (1.0 - min(start, 1.0)))
        whole[size - 1 : 2 * size - 1] = value
        end = 2 * size - 1
        whole[end : end + self._below] = (value[-1] / self.weight[-1]) * self._after
        np.multiply(self._transforms, np.fft.rfft(whole), out=self._products)
        found = np.fft.irfft(self._products, self._span, axis=1)[:, size - 1 : end]
        best: FloatArray = np.maximum(found.max(axis=0), 0.0) + self._relative * norm(whole)
        best += self._infinite * self.weight
        np.minimum(best, self.weight, out=best)
        best *= 1.0 + 16.0 * U
        return best


def norm(x: FloatArray) -> float:
    """Return the ℓ2 norm; not by BLAS, whose threads take longer to wake than the sum takes."""
    return math.sqrt(float(np.add.reduce(x * x)))


def _kernel_above(law: LatticeLaw, below: int, span: int, plan: Plan) -> FloatArray:
    """Return the tilted masses at cyclic places; losses below the least are raised to it."""
    size = (law.masses.size - 1) // 2
    masses = law.masses[size - below :].copy()
    masses[0] += float(law.masses[: size - below].sum())
    masses *= np.exp(plan.tilt * plan.spacing * np.arange(-below, size + 1)) * (1.0 + 16.0 * U)
    kernel = np.zeros(span)
    kernel[np.arange(-below, size + 1) % span] = masses
    return kernel


class Reached(NamedTuple):
    """Lower bounds on δ at the knots of ε."""

    epsilon: FloatArray
    delta: FloatArray
    loss_error: float

    def at(self, epsilon: float) -> float:
        """Bound δ at ``epsilon`` from below."""
        place = int(np.searchsorted(self.epsilon, epsilon + self.loss_error, side="left"))
        return float(self.delta[place]) if place < self.epsilon.size else 0.0

    def epsilon_of(self, delta: float) -> float:
        """Bound ε where δ is ``delta`` from below."""
        more = np.flatnonzero(self.delta > delta)
        return max(float(self.epsilon[more[-1]]) - self.loss_error, 0.0) if more.size else 0.0


def reach(law: LatticeLaw, count: int, plan: Plan, choices: int = CHOICES) -> Reached:
    """Return what ``count`` steps reach by ``law`` and its mirror image, both from below.

    The law has ``plan.size - 1`` losses ``plan.spacing`` apart on either side of 0.
    """
    both = law, mirrored(law, plan.spacing)
    epsilon: FloatArray = np.asarray(plan.low + plan.spacing * np.arange(plan.size), np.float64)
    below = math.ceil(BELOW * plan.size)
    single = np.stack([_kernel_below(one.masses, below, plan) for one in both])
    doublings = max(int(math.log2(max(count / choices, 1.0))), 0)
    several = single
    for _ in range(doublings):
        several = np.stack([_squared(one, below) for one in several])
    value = np.exp(plan.tilt * (epsilon - plan.low)) * np.maximum(-np.expm1(epsilon), 0.0)
    # The last steps come first.
    value = _chosen(single, count % 2**doublings, plan, value)
    value = _chosen(several, count >> doublings, plan, value)
    errors = max(one.mass_error for one in both), max(one.loss_error for one in both)
    value *= math.exp(-count * errors[0] * 1.01) * (1.0 - 1e-9)
    value /= np.exp(plan.tilt * (epsilon - plan.low))
    loss_error = count * errors[1] + 32.0 * U * (1.0 + float(np.abs(epsilon).max()))
    return Reached(epsilon, value, loss_error)


def _kernel_below(masses: FloatArray, below: int, plan: Plan) -> FloatArray:
    """Return the tilted masses of losses from -below; those further down are left out."""
    size = (masses.size - 1) // 2
    place = np.arange(-below, size + 1)
    tilted = masses[size - below :] * np.exp(plan.tilt * plan.spacing * place)
    return np.asarray(tilted * (1.0 - 16.0 * U * (1.0 + plan.tilt * plan.spacing * size)))


def _convolution_error(kernels: FloatArray, span: int) -> float:
    """Bound the ℓ2 error of a convolution, in units of the other factor's norm (Theorem G4).

    It is one at every place, too.
    """
    norms = np.linalg.norm(kernels, axis=-1)
    most = float((math.sqrt(span) * norms + 2.0 * kernels.sum(axis=-1)).max())
    return 1.01 * fft_error(span) * most


def _squared(kernel: FloatArray, below: int) -> FloatArray:
    """Return the kernel of twice as many steps on the same places, from below."""
    span = fft_size(2 * kernel.size)
    found = np.fft.irfft(np.fft.rfft(kernel, span) ** 2, span)[below : below + kernel.size]
    error = _convolution_error(kernel, span) * float(np.linalg.norm(kernel))
    return np.asarray(np.maximum(found - error, 0.0) * (1.0 - 16.0 * U))


def _chosen(kernels: FloatArray, count: int, plan: Plan, value: FloatArray) -> FloatArray:
    """Choose ``count`` times among the kernels: tilted values of δ on the window, from below."""
    size, below = plan.size, kernels.shape[1] - plan.size
    span = fft_size(2 * size + below)
    transforms = np.fft.rfft(np.roll(_padded(kernels, span), -below, axis=1), axis=1)
    relative = _convolution_error(kernels, span)
    before = plan.spacing * np.arange(-(size - 1), 0)
    tilted_before = np.exp(plan.tilt * before) * (1.0 - 16.0 * U)
    # Below the window δ is at least 1 - e^ε, and at least what it is at its start.
    plain = np.maximum(-np.expm1(plan.low + before), 0.0) * (1.0 - 16.0 * U)
    most = np.exp(plan.tilt * plan.spacing * np.arange(size))
    whole = np.zeros(span)
    for _ in range(count):
        whole[: size - 1] = tilted_before * np.maximum(plain, value[0])
        whole[size - 1 : 2 * size - 1] = value
        found = np.fft.irfft(transforms * np.fft.rfft(whole), span, axis=1)
        best = found[:, size - 1 : 2 * size - 1].max(axis=0)
        error = relative * norm(whole)
        value = np.minimum(np.maximum(best - error, 0.0) * (1.0 - 16.0 * U), most)
    return value


def _padded(kernels: FloatArray, span: int) -> FloatArray:
    return np.pad(kernels, ((0, 0), (0, span - kernels.shape[1])))
