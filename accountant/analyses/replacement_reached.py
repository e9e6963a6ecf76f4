"""What an adversary reaches who stands out while it must, and hides once it has won.

While the budget is not overspent, the record contributes +u among others that contribute -u, and
its replacement does as they do; afterwards the two change places. Both are choices in the game of
:mod:`~accountant.analyses.replacement_game`, which is played here from below
(docs/theorems_sampling.md, Theorem S22).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.analyses.pld.fft import fft_error, fft_size
from accountant.analyses.replacement_round import BELOW, Plan, norm
from accountant.sampling.lattice_envelope import mirrored

if TYPE_CHECKING:
    from accountant.sampling.lattice_envelope import LatticeLaw


# The choice is made anew after a power of two of steps, about so many times.
CHOICES = 96


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
    single = np.stack([_kernel(one.masses, below, plan) for one in both])
    doublings = max(int(math.log2(max(count / choices, 1.0))), 0)
    several = single
    for _ in range(doublings):
        several = np.stack([_squared(one, below) for one in several])
    value = np.exp(plan.tilt * (epsilon - plan.low)) * np.maximum(-np.expm1(epsilon), 0.0)
    # The last steps come first.
    value = _steps(single, count % 2**doublings, plan, value)
    value = _steps(several, count >> doublings, plan, value)
    errors = max(one.mass_error for one in both), max(one.loss_error for one in both)
    value *= math.exp(-count * errors[0] * 1.01) * (1.0 - 1e-9)
    value /= np.exp(plan.tilt * (epsilon - plan.low))
    loss_error = count * errors[1] + 32.0 * U * (1.0 + float(np.abs(epsilon).max()))
    return Reached(epsilon, value, loss_error)


def _kernel(masses: FloatArray, below: int, plan: Plan) -> FloatArray:
    """Return the tilted masses of losses from -below; those further down are left out."""
    size = (masses.size - 1) // 2
    place = np.arange(-below, size + 1)
    tilted = masses[size - below :] * np.exp(plan.tilt * plan.spacing * place)
    return np.asarray(tilted * (1.0 - 16.0 * U * (1.0 + plan.tilt * plan.spacing * size)))


def _convolution_error(kernels: FloatArray, span: int) -> float:
    """Bound the ℓ2 error of a convolution, in units of the other factor's norm (Theorem G4)."""
    norms = np.linalg.norm(kernels, axis=-1)
    most = float((math.sqrt(span) * norms + 2.0 * kernels.sum(axis=-1)).max())
    return 1.01 * fft_error(span) * most


def _squared(kernel: FloatArray, below: int) -> FloatArray:
    """Return the kernel of twice as many steps on the same places, from below."""
    span = fft_size(2 * kernel.size)
    found = np.fft.irfft(np.fft.rfft(kernel, span) ** 2, span)[below : below + kernel.size]
    error = _convolution_error(kernel, span) * float(np.linalg.norm(kernel))
    return np.asarray(np.maximum(found - error, 0.0) * (1.0 - 16.0 * U))


def _steps(kernels: FloatArray, count: int, plan: Plan, value: FloatArray) -> FloatArray:
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
