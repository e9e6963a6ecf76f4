"""One step of the game of :mod:`~accountant.analyses.replacement_game`, as transforms.

Values are times e^{θε} on a window, and a step's masses times e^{θ·loss}, so that all of a
convolution matters alike (docs/theorems_sampling.md, Theorem S19).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.analyses.pld.fft import fft_error, fft_size

if TYPE_CHECKING:
    from accountant.sampling.lattice_envelope import LatticeLaw


# Losses further down are raised to it, as a share of the window.
BELOW = 0.15


class Plan(NamedTuple):
    """A window of ε from ``low``, knots of a ``spacing``, and the tilt at which sums are taken."""

    low: float
    spacing: float
    size: int
    tilt: float


class Step:
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
        kernels = np.stack([_kernel(law, self._below, self._span, plan) for law in laws])
        self._transforms = np.fft.rfft(kernels, axis=1)
        self._infinite = max(law.infinite for law in laws)
        # The value times e^{tilt·(ε - low)} on the window, with size - 1 knots before it.
        self.weight = np.exp(tilt * (epsilon - plan.low))
        before = spacing * np.arange(-(size - 1), 0)
        self._after = np.exp(tilt * spacing * np.arange(size, size + self._below))
        self._before, self._shrink = np.exp(tilt * before), np.exp(before)
        # Of a product of transforms and its inverse, in ℓ2 and so at every place (Theorem G4).
        norms = np.linalg.norm(kernels, axis=1)
        most = float((math.sqrt(self._span) * norms + 2.0 * kernels.sum(axis=1)).max())
        self._relative = fft_error(self._span) * most * 1.01
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


def _kernel(law: LatticeLaw, below: int, span: int, plan: Plan) -> FloatArray:
    """Return the tilted masses at cyclic places; losses below the least are raised to it."""
    size = (law.masses.size - 1) // 2
    masses = law.masses[size - below :].copy()
    masses[0] += float(law.masses[: size - below].sum())
    masses *= np.exp(plan.tilt * plan.spacing * np.arange(-below, size + 1)) * (1.0 + 16.0 * U)
    kernel = np.zeros(span)
    kernel[np.arange(-below, size + 1) % span] = masses
    return kernel
