"""Releases on a grid: the value is rounded, integer noise is added, the sum is scaled back."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accountant.errors import DomainError
from accountant.noise.generator import SecureGenerator

LARGEST_EXACT = 2.0**52


@dataclass(frozen=True)
class Grid:
    """The multiples of ``step``, a power of two, and the noise that is added on them.

    Attributes
    ----------
    step : float
        A power of two, so that dividing and multiplying by it is exact.

    Notes
    -----
    *Guarantee.* :meth:`release_gaussian` is a function of ``round(value) + N(0, sd²)``, the
    Gaussian mechanism on the rounded value: post-processing, so that every account of the
    continuous Gaussian mechanism applies, at the sensitivity of the *rounded* value. No float
    rounding of value or noise is outside it (docs/theorems_training.md, Theorem T5).

    Examples
    --------
    >>> Grid.at_most(0.3).step
    0.25
    """

    step: float

    def __post_init__(self) -> None:
        if not (self.step > 0.0 and math.isfinite(self.step)) or math.frexp(self.step)[0] != 0.5:
            raise DomainError(f"step must be a power of two; got {self.step!r}")

    @classmethod
    def at_most(cls, step: float) -> Grid:
        """Return the coarsest grid whose step is at most ``step``."""
        if not (step >= 2.0**-1000 and math.isfinite(step)):
            raise DomainError(f"step must be in [2**-1000, inf); got {step!r}")
        return cls(math.ldexp(0.5, math.frexp(step)[1]))

    def require_range(self, largest: float) -> None:
        """Refuse a grid on which values up to ``largest`` would not be exact float64 multiples."""
        if not (largest / self.step <= LARGEST_EXACT):
            raise DomainError(
                f"values up to {largest:g} do not fit the grid of step {self.step:g} exactly;"
                " use a smaller batch or more noise"
            )

    def round(self, value: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``value / step`` rounded to integers, as float64."""
        scaled = value * (1.0 / self.step)
        return np.rint(scaled, out=scaled)

    def release_gaussian(
        self, value: NDArray[np.float64], standard_deviation: float, generator: SecureGenerator
    ) -> NDArray[np.float64]:
        """Return ``value`` on the grid plus Gaussian noise rounded to the grid."""
        released = self.round(value)
        released += generator.rounded_normal(value.size, standard_deviation / self.step)
        released *= self.step
        return released

    def release_discrete_gaussian(
        self, value: NDArray[np.float64], scale: int, generator: SecureGenerator
    ) -> NDArray[np.float64]:
        """Return ``value`` on the grid plus discrete Gaussian noise of ``scale`` steps."""
        released = self.round(value)
        released += generator.discrete_gaussian(value.size, scale)
        released *= self.step
        return released
