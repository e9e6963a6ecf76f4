"""Steps of replace-one on batches of a fixed size, as a game against the best adversary.

An adversary who sees the outputs chooses the contributions of the next step. What it gains is the
largest of a few convolutions in every step, an upper bound that is attained up to the width of the
bands (docs/theorems_sampling.md, Theorems S18 and S19).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from accountant._rounding import U
from accountant.analyses.pld.fft import fft_error, fft_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from accountant.sampling.lattice_envelope import LatticeLaw

__all__ = ["BELOW", "Plan", "Value", "norm", "play"]

FloatArray: TypeAlias = "NDArray[np.float64]"

# Losses further down are raised to it, as a share of the window.
BELOW = 0.15


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
    values = _steps(laws, count, plan, epsilon)
    values = values * math.exp(count * errors[0] * 1.01) * (1.0 + 1e-9)
    loss_error = count * errors[1] + 32.0 * U * (1.0 + float(np.abs(epsilon).max()))
    return Value(epsilon, np.minimum.accumulate(np.minimum(values, 1.0)), loss_error)


def _steps(laws: tuple[LatticeLaw, ...], count: int, plan: Plan, epsilon: FloatArray) -> FloatArray:
    size, spacing, tilt = plan.size, plan.spacing, plan.tilt
    below = math.ceil(BELOW * size)
    span = fft_size(2 * size + below)
    kernels = np.stack([_kernel(law, below, span, plan) for law in laws])
    transforms = np.fft.rfft(kernels, axis=1)
    infinite = max(law.infinite for law in laws)
    # The value times e^{tilt·(ε - low)} on the window, with size - 1 knots before it.
    weight = np.exp(tilt * (epsilon - plan.low))
    before = spacing * np.arange(-(size - 1), 0)
    after = np.exp(tilt * spacing * np.arange(size, size + below))
    tilted_before, shrink = np.exp(tilt * before), np.exp(before)
    # Of a product of transforms and its inverse, in ℓ2 and so at every place (Theorem G4).
    norms = np.linalg.norm(kernels, axis=1)
    relative = fft_error(span) * float((math.sqrt(span) * norms + 2.0 * kernels.sum(axis=1)).max())
    relative *= 1.01
    value = weight * np.maximum(-np.expm1(epsilon), 0.0)
    whole, products = np.zeros(span), np.empty_like(transforms)
    for _ in range(count):
        start = float(value[0])
        # Beyond the window: the chord from (0, 1) in e^ε, and the last value.
        whole[: size - 1] = tilted_before * (1.0 - shrink * (1.0 - min(start, 1.0)))
        whole[size - 1 : 2 * size - 1] = value
        whole[2 * size - 1 : 2 * size - 1 + below] = (value[-1] / weight[-1]) * after
        np.multiply(transforms, np.fft.rfft(whole), out=products)
        found = np.fft.irfft(products, span, axis=1)
        best = found[:, size - 1 : 2 * size - 1].max(axis=0)
        error = relative * norm(whole)
        value = np.maximum(best, 0.0) + error + infinite * weight
        np.minimum(value, weight, out=value)
        value *= 1.0 + 16.0 * U
    return np.asarray(value / weight)


def norm(x: FloatArray) -> float:
    """Return the ℓ2 norm; not by BLAS, whose threads take longer to wake than the sum takes."""
    return math.sqrt(float(np.add.reduce(x * x)))


def _kernel(law: LatticeLaw, below: int, span: int, plan: Plan) -> FloatArray:
    """Return the tilted masses at cyclic places; losses below the least are raised to it."""
    size = (law.masses.size - 1) // 2
    masses = law.masses[size - below :].copy()
    masses[0] += float(law.masses[: size - below].sum())
    masses *= np.exp(plan.tilt * plan.spacing * np.arange(-below, size + 1)) * (1.0 + 16.0 * U)
    kernel = np.zeros(span)
    kernel[np.arange(-below, size + 1) % span] = masses
    return kernel
