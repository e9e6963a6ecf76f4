"""Subsample and aggregate: any estimator on disjoint random blocks, and a private centre."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant.errors import ArgumentTypeError, DomainError
from accountant.learn.pate.ensemble import assign_shards, run_jobs
from accountant.learn.selection.noisy_max import (
    EPSILON,
    Generator,
    generator_of,
    select_exponential,
)
from accountant.learn.validation import as_records, records_at, silence
from accountant.mechanisms import ExponentialMechanism, Gaussian, Laplace
from accountant.mechanisms.base import Mechanism
from accountant.noise.exact_samplers import rounded_laplace

__all__ = ["BlockResult", "block_estimates", "private_block_mean", "private_block_median"]

# Estimates of up to this many blocks, 2^20 steps each, add up exactly in float64 (Theorem P9).
MOST_BLOCKS = 2**32
END = checks.FINITE.renamed("bounds", "Known without the data")


@dataclass(frozen=True)
class BlockResult:
    """A private centre of the blocks' estimates.

    Attributes
    ----------
    value : float
        The release.
    blocks : int
        How many blocks there were.
    mechanism : Mechanism
        The entry for a ledger.
    private : bool
        False for a seeded release.
    """

    value: float
    blocks: int
    mechanism: Mechanism
    private: bool


def block_estimates(
    records: object,
    estimator: Callable[[Array], float],
    blocks: int,
    bounds: tuple[float, float],
    *,
    n_jobs: int = 1,
    rng: Generator = None,
) -> FloatArray:
    """Return the estimator's value on every block, clipped to bounds, shape (blocks,): private.

    Parameters
    ----------
    records : array_like, shape (n, …)
        Every record draws its block independently. Of a list, a block is an array of the type of
        its own records: of numbers, or of objects.
    estimator : callable
        ``estimator(block)`` returns a number; a failure, a NaN or an empty block counts as the
        middle of the bounds. It keeps nothing from one block to the next, a shared random
        generator included.
    blocks : int
        Their number, fixed without the data.
    bounds : (float, float)
        Values outside are moved to the nearer end; fixed without the data.
    n_jobs : int
        Processes, through joblib when it is not 1, on whatever backend is set.
    rng : SecureGenerator, int or None
        For the blocks; a seed is for tests only.

    Notes
    -----
    *Guarantee.* None of its own; one record moves one of the values (docs/theorems_selection.md,
    Theorem P9).
    """
    checks.function("estimator", estimator, "a block of records")
    low, high = interval(bounds)
    rows = as_records("records", records)
    place = assign_shards(len(rows), blocks, rng=rng)
    held = (records_at(rows, np.flatnonzero(place == k)) for k in range(blocks))
    jobs = ((_one, (estimator, block)) for block in held)
    values = np.array(run_jobs(jobs, n_jobs), dtype=np.float64)
    values[np.isnan(values)] = 0.5 * low + 0.5 * high
    return np.clip(values, low, high)


def private_block_mean(
    estimates: FloatArray,
    bounds: tuple[float, float],
    *,
    noise: str = "gaussian",
    noise_multiplier: float,
    rng: Generator = None,
) -> BlockResult:
    """Release the mean of the blocks' estimates.

    Parameters
    ----------
    estimates : ndarray of shape (blocks,)
        From :func:`block_estimates`, with the same bounds.
    bounds : (float, float)
        As there.
    noise : {"gaussian", "laplace"}
        The noise.
    noise_multiplier : float
        Standard deviation (Gaussian) or scale (Laplace) of the noise, in units of the mean's
        sensitivity, (high - low) / blocks.

    Notes
    -----
    *Guarantee.* The Gaussian or Laplace mechanism with sensitivity one (docs/theorems_selection.md,
    Theorem P9; Nissim, Raskhodnikova, Smith 2007), with noise exact on a grid.
    """
    low, high = interval(bounds)
    values = _values(estimates, low, high)
    checks.choice("noise", noise, ("gaussian", "laplace"))
    multiplier = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
    generator = generator_of(rng)
    # Values in units of high - low are rounded to a grid: the sum moves by at most 2^20 steps.
    steps = 2.0**20
    total = float(np.floor((values - low) / (high - low) * steps).clip(0.0, steps).sum())
    mechanism: Mechanism
    if noise == "gaussian":
        mechanism = Gaussian(multiplier)
        drawn = generator.rounded_normal(1, multiplier * steps)
    else:
        mechanism = Laplace(multiplier)
        drawn = rounded_laplace(generator, 1, multiplier * steps)
    mean = (total + float(drawn[0])) / (steps * values.size)
    return BlockResult(low + (high - low) * mean, values.size, mechanism, not generator.seeded)


def private_block_median(
    estimates: FloatArray,
    bounds: tuple[float, float],
    epsilon: float,
    *,
    candidates: int = 1024,
    rng: Generator = None,
) -> BlockResult:
    """Release a median of the blocks' estimates: the exponential mechanism on a grid of candidates.

    Parameters
    ----------
    estimates, bounds
        As in :func:`private_block_mean`.
    epsilon : float
        The guarantee, > 0.
    candidates : int
        Equally spaced values between the bounds.

    Notes
    -----
    *Guarantee.* ε-bounded range: the score of a candidate, minus the distance of its rank from the
    middle, moves by at most one when one estimate does (docs/theorems_selection.md, Theorem P9).
    """
    low, high = interval(bounds)
    values = np.sort(_values(estimates, low, high))
    checks.number(EPSILON, epsilon)
    count = checks.integer("candidates", candidates, 2, 10**6)
    grid = np.linspace(low, high, count)
    below = np.searchsorted(values, grid, side="left")
    above = values.size - np.searchsorted(values, grid, side="right")
    # How far the median is from being at the candidate, in estimates that would have to move.
    score = -np.maximum(np.maximum(below, above) - 0.5 * values.size, 0.0)
    chosen = select_exponential(score, epsilon, sensitivity=1.0, rng=rng)
    assert isinstance(chosen.mechanism, ExponentialMechanism)
    return BlockResult(float(grid[chosen.index]), values.size, chosen.mechanism, chosen.private)


def _one(estimator: Callable[[Array], float], block: Array) -> float:
    try:
        with silence():
            return float(estimator(block)) if len(block) else math.nan
    except Exception:
        return math.nan


def interval(bounds: object) -> tuple[float, float]:
    """Return the ends of a public interval of positive, finite length, checked."""
    if not (isinstance(bounds, (tuple, list)) and len(bounds) == 2):
        raise ArgumentTypeError(f"bounds must be a pair (low, high); got {bounds!r:.60}")
    low, high = (checks.number(END, end) for end in bounds)
    # An infinite width would turn values into NaN, which no noise hides.
    if not (low < high and high - low < math.inf):
        raise DomainError(f"bounds must be increasing, with a finite difference; got {bounds!r}")
    return low, high


def _values(estimates: object, low: float, high: float) -> FloatArray:
    values = np.asarray(estimates, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise DomainError(f"estimates must have shape (blocks,); got {values.shape}")
    if values.size > MOST_BLOCKS:
        raise DomainError(f"estimates must be at most 2**32; got {values.size} blocks")
    if not ((values >= low) & (values <= high)).all():
        raise DomainError("estimates must lie within the bounds; use block_estimates")
    return values
