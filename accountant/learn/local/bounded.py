"""Bounded numbers with noise added by their owners, and the mean of the reports."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accountant import checks
from accountant._typing import FloatArray
from accountant.errors import DomainError
from accountant.learn.selection.noisy_max import EPSILON, Generator, generator_of
from accountant.learn.validation import numbers
from accountant.mechanisms import Gaussian, Laplace
from accountant.mechanisms.base import Mechanism
from accountant.noise.exact_samplers import rounded_laplace
from accountant.relations import NeighbouringRelation

STEPS = 2.0**20  # of the grid, from one bound to the other


@dataclass(frozen=True, eq=False)
class Reports:
    """Noisy values, one for each user.

    Attributes
    ----------
    values : ndarray of shape (n,)
        Unbiased for the clipped true ones.
    noise_variance : float
        Of each.
    mechanism : Mechanism
        One user's cost, under replace-one.
    private : bool
        False for seeded noise.
    """

    values: FloatArray
    noise_variance: float
    mechanism: Mechanism
    private: bool


@dataclass(frozen=True)
class MeanEstimate:
    """The mean of the reports, and the variance that the noise gives it."""

    mean: float
    variance: float


def randomize_laplace(
    values: object, bounds: tuple[float, float], epsilon: float, *, rng: Generator = None
) -> Reports:
    """Add Laplace noise of scale (high - low)/ε to every value, clipped to the bounds.

    What is no number counts as the lower bound.

    Notes
    -----
    *Guarantee.* ε-differential privacy of each report, in the local model: under replacing its
    value. Values are rounded to a grid of (high - low)/2^20, noise is exact on it (Theorem P3 of
    docs/theorems_selection.md).
    """
    low, high = _ends(bounds)
    loss = checks.number(EPSILON, epsilon)
    generator = generator_of(rng)
    on_grid = _on_grid(values, low, high)
    # Rounded up, so that the loss is not above ε.
    scale = 1.0 / loss * (1.0 + 2.0**-50)
    noisy = on_grid + rounded_laplace(generator, on_grid.size, scale * STEPS)
    half = Laplace(scale, sensitivity=0.5, relation=NeighbouringRelation.REPLACE_ONE)
    width = high - low
    return Reports(
        low + width * (noisy / STEPS), 2.0 * (width * scale) ** 2, half, not generator.seeded
    )


def randomize_gaussian(
    values: object, bounds: tuple[float, float], noise_multiplier: float, *, rng: Generator = None
) -> Reports:
    """Add normal noise of ``noise_multiplier``·(high - low) to every value, clipped to the bounds.

    What is no number counts as the lower bound.

    Notes
    -----
    *Guarantee.* The Gaussian mechanism, of each report, under replacing its value.
    """
    low, high = _ends(bounds)
    sigma = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
    generator = generator_of(rng)
    on_grid = _on_grid(values, low, high)
    noisy = on_grid + generator.rounded_normal(on_grid.size, sigma * STEPS)
    half = Gaussian(sigma, sensitivity=0.5, relation=NeighbouringRelation.REPLACE_ONE)
    width = high - low
    return Reports(low + width * (noisy / STEPS), (width * sigma) ** 2, half, not generator.seeded)


def estimate_mean(reports: Reports) -> MeanEstimate:
    """Return the mean of the reports; unbiased for the mean of the clipped values."""
    n = reports.values.size
    return MeanEstimate(math.fsum(reports.values.tolist()) / n, reports.noise_variance / n)


def _on_grid(values: object, low: float, high: float) -> FloatArray:
    found = numbers("values", [values] if np.isscalar(values) else values, ())
    if found.ndim != 1 or found.size == 0:
        raise DomainError("values must have one dimension, (users,), and at least one entry")
    share = (np.clip(np.where(np.isnan(found), low, found), low, high) - low) / (high - low)
    return np.asarray(np.rint(share * STEPS).clip(0.0, STEPS))


def _ends(bounds: tuple[float, float]) -> tuple[float, float]:
    from accountant.learn.blocks.aggregate import _ends as ends

    return ends(bounds)
