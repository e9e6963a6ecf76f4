"""Means, covariances and quantiles of clipped data, by Gaussian or Laplace noise."""

from __future__ import annotations

import math

import numpy as np

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant.calibration import calibrate_sigma
from accountant.errors import DomainError
from accountant.learn.convex.fit import (
    BOUND,
    MOST_COUNTED,
    MOST_RECORDS,
    Fit,
    PrivateResult,
    require_few,
)
from accountant.learn.convex.noise import GRID_BITS, remaining_after_rounding
from accountant.learn.convex.rows import clip_rows, sum_by_blocks, table
from accountant.learn.validation import numbers, without_numpy_warnings
from accountant.ledger import Accountant
from accountant.ledger.basic import rate
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.stated_guarantees import PureDP


@without_numpy_warnings
def private_mean(
    x: Array,
    *,
    epsilon: float,
    delta: float,
    bound: float,
    center: Array | float = 0.0,
    ledger: Accountant | None = None,
    rng: int | None = None,
) -> PrivateResult:
    """Estimate a mean from a noisy sum and a noisy count.

    Parameters
    ----------
    x : array of shape (n,) or (n, d)
        Records; one that is not finite numbers is left out.
    epsilon, delta : float
        The guarantee; δ = 0 uses Laplace noise on every coordinate.
    bound : float
        Records are clipped to this Euclidean distance from ``center``.
    center : array or float
        A public guess.
    ledger : Accountant, optional
        Charged before the noise is drawn; the fit has one of its own when left out.
    rng : int, optional
        A seed, for tests only.

    Returns
    -------
    PrivateResult
        ``value`` has shape (d,), or (1,) for one-dimensional data.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy under add-or-remove: a record moves the pair
    (sum / bound, count) by at most √2 in Euclidean norm, √d + 1 in absolute sum
    (docs/theorems_convex.md, Theorem V17), for up to 1e7 records; more are refused.
    """
    rows, middle = _centred(x, bound, center)
    d = rows.shape[1]
    statistics = np.append(sum_by_blocks(rows, np.ones(len(rows))) / bound, float(len(rows)))
    fit = Fit("mean", epsilon, delta, ledger, rng)
    released = _release(fit, statistics, math.sqrt(2.0), math.sqrt(d) + 1.0)
    # Post-processing: a count below one says nothing, and no mean of clipped data leaves the ball.
    mean = clip_rows(bound * released[None, :d] / max(float(released[d]), 1.0), bound)[0]
    return fit.result(mean + middle)


@without_numpy_warnings
def private_covariance(
    x: Array,
    *,
    epsilon: float,
    delta: float,
    bound: float,
    center: Array | float = 0.0,
    ledger: Accountant | None = None,
    rng: int | None = None,
) -> PrivateResult:
    """Estimate the second moment about ``center`` from a noisy sum of outer products and a count.

    Parameters
    ----------
    x, epsilon, delta, bound, center, ledger, rng
        As in :func:`private_mean`; ``center`` is public, or from a private mean paid for apart.

    Returns
    -------
    PrivateResult
        ``value`` has shape (d, d), symmetric and positive semidefinite.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy under add-or-remove: in the isometric
    embedding an outer product has norm bound², so that with the count a record moves the statistics
    by at most √2, and by at most d + 1 in absolute sum (docs/theorems_convex.md, Theorem V17), for
    up to 1e7 records; more are refused.
    """
    rows, _ = _centred(x, bound, center)
    d = rows.shape[1]
    upper = np.triu_indices(d, 1)
    second = sum_by_blocks(rows, rows) / bound**2
    root = math.sqrt(2.0)
    statistics = np.concatenate((np.diag(second), root * second[upper], [float(len(rows))]))
    # Σ_i x_i² + √2 Σ_{i<j} |x_i x_j| <= (Σ |x_i|)² <= d for a unit vector.
    fit = Fit("second moment", epsilon, delta, ledger, rng)
    released = _release(fit, statistics, root, d + 1.0)
    matrix = np.zeros((d, d))
    matrix[upper] = released[d:-1] / root
    matrix = matrix + matrix.T
    matrix[np.diag_indices(d)] = released[:d]
    values, vectors = np.linalg.eigh(matrix * bound**2 / max(float(released[-1]), 1.0))
    return fit.result((vectors * np.clip(values, 0.0, bound**2)) @ vectors.T)


@without_numpy_warnings
def private_quantile(
    x: Array,
    quantile: float,
    *,
    epsilon: float,
    lower: float,
    upper: float,
    ledger: Accountant | None = None,
    rng: int | None = None,
) -> PrivateResult:
    """Draw a quantile by the exponential mechanism on the interval [lower, upper].

    Smith (STOC 2011), Algorithm 2, with the sensitivity of the tilted rank.

    Parameters
    ----------
    x : array of shape (n,)
        Numbers, clipped to the interval; what is no finite number is left out.
    quantile : float
        In [0, 1]; rounded to a multiple of 2**-30.
    epsilon : float
        The pure guarantee.
    lower, upper : float
        The public interval.
    ledger : Accountant, optional
        Charged before the noise is drawn; the fit has one of its own when left out.
    rng : int, optional
        A seed, for tests only.

    Returns
    -------
    PrivateResult
        ``value`` has shape (1,).

    Notes
    -----
    *Guarantee.* ε-differential privacy under add-or-remove (docs/theorems_convex.md, Theorem V18).
    The value is the middle of one of 2**40 equal cells of the interval; ranks are integers, and the
    draw is exact in law: no rounding is outside the guarantee. Sums of up to 2**31 records fit;
    more are refused.
    """
    fit = Fit("quantile", epsilon, 0.0, ledger, rng)
    level = checks.number(_LEVEL, quantile)
    if not (-math.inf < lower < upper < math.inf and lower / 2.0 < upper / 2.0):
        raise DomainError(f"lower must be below upper, both finite; got {lower!r} and {upper!r}")
    values = numbers("x", x, ())
    if values.ndim != 1:
        # A row of several numbers would count as several records, at one record's price.
        raise DomainError(f"x must have one dimension, (records,); got {values.ndim}")
    require_few(values, MOST_COUNTED)
    values = np.clip(values[np.isfinite(values)], lower, upper)  # others are left out
    # Every record by itself becomes a cell's number; scores are constant on runs of cells.
    share = (values / 2.0 - lower / 2.0) / (upper / 2.0 - lower / 2.0)
    cells = np.sort(np.clip(np.rint(share * CELLS), 0, CELLS).astype(np.int64))
    edges = np.concatenate(([0], cells, [CELLS]))
    widths = np.diff(edges)
    below = np.arange(len(widths), dtype=np.int64)
    # In a gap, `below` records lie under the point: |(1 - q) below - q (n - below)|, in integers.
    parts = round(level * PARTS)
    distance = np.abs(PARTS * below - parts * len(values))
    fit.charge(PureDP(fit.epsilon))
    gap = fit.source.weighted_index(
        distance, rate(fit.epsilon) / (2 * max(parts, PARTS - parts)), widths
    )
    # What is released is a function of a cell's number: no digit of a record is in it.
    cell = int(edges[gap]) + fit.source.below(int(widths[gap]))
    place = (cell + 0.5) / CELLS
    return fit.result(np.array([lower * (1.0 - place) + upper * place]))


CELLS = 2**40  # The interval of a quantile has this many equal cells: the draw is one of them.
PARTS = 2**30  # A quantile's level is a multiple of one over this, so that ranks are whole.
_LEVEL = checks.Argument(
    "quantile", "a number in [0, 1]", lambda x: (x >= 0.0) & (x <= 1.0), "The median is 0.5"
)


def _centred(x: Array, bound: float, center: Array | float) -> tuple[FloatArray, FloatArray]:
    checks.real(BOUND, bound)
    array = numbers("x", x)
    rows = table(array[:, None] if array.ndim == 1 else array)
    require_few(rows, MOST_RECORDS)
    rows = rows[np.isfinite(rows).all(axis=1)]  # a record that cannot be read is left out
    middle = np.broadcast_to(np.asarray(center, dtype=np.float64), rows.shape[1:])
    if not np.isfinite(middle).all():
        raise DomainError("center must hold finite numbers; got NaN or infinity")
    with np.errstate(over="ignore"):
        # A difference whose square overflows is clipped to zero, as any such row.
        shifted = np.clip(rows - middle, -1e300, 1e300)
    return clip_rows(shifted, bound), middle


def _release(fit: Fit, statistics: FloatArray, euclidean: float, absolute: float) -> FloatArray:
    """Add noise for the given sensitivities; sums in floating point are inside the last factor."""
    if fit.delta == 0.0:
        fit.charge(PureDP(fit.epsilon))
        return fit.source.release_pure(statistics, absolute * (1.0 + 1e-6), fit.epsilon)
    multiplier = calibrate_sigma(fit.epsilon, fit.delta)
    remaining = remaining_after_rounding(statistics.size, GRID_BITS, multiplier)
    fit.charge(Gaussian(multiplier))
    sigma = multiplier * euclidean * (1.0 + 1e-6) / remaining
    return fit.source.release(statistics, sigma, GRID_BITS)
