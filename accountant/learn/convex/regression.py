"""Linear regression from noisy sufficient statistics: ridge, and AdaSSP."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant._basics.rounding import U
from accountant.calibration import calibrate_sigma
from accountant.learn.convex.fit import (
    BOUND,
    DATA_NORM,
    MOST_RECORDS,
    Fit,
    PrivateResult,
    require_few,
)
from accountant.learn.convex.losses import real_labels
from accountant.learn.convex.noise import GRID_BITS, NoiseSource, remaining_after_rounding
from accountant.learn.convex.rows import BLOCK, clip_rows, paired, sum_by_blocks, table
from accountant.learn.validation import without_numpy_warnings
from accountant.ledger import Accountant
from accountant.mechanisms.gaussian import Gaussian
from accountant.search import narrow

RIDGE = checks.Argument(
    "regularization", "a number >= 0", lambda x: x >= 0.0, "It is added to the Gram matrix"
)
# A computed eigenvalue of a symmetric matrix is off by at most this many roundings of its norm for
# each column: Theorem V16 depends on it.
EIGENVALUE_ROUNDINGS = 32
BISECTIONS = 64  # They find an eigenvalue to its last digit where LAPACK fails.
# Wang's ρ: the probability that AdaSSP's ridge falls short. Only utility depends on it.
FAILURE = 0.05


class _Statistics(NamedTuple):
    gram: FloatArray  # noisy Xᵀ X, symmetric
    cross: FloatArray  # noisy Xᵀ y
    gram_noise: float


@without_numpy_warnings
def private_ridge(
    x: Array,
    y: Array,
    *,
    epsilon: float,
    delta: float,
    data_norm: float,
    target_bound: float,
    regularization: float | None = None,
    ledger: Accountant | None = None,
    rng: int | None = None,
) -> PrivateResult:
    """Fit ridge regression from one Gaussian release of (XᵀX, Xᵀy).

    Parameters
    ----------
    x : array of shape (n, d)
        Rows longer than ``data_norm`` are scaled down to it. What is not
        finite numbers, or has no label of the loss, adds nothing.
    y : array of shape (n,)
        Clipped to [-target_bound, target_bound].
    epsilon, delta : float
        The guarantee, δ in (0, 1).
    data_norm, target_bound : float
        Public bounds, an intercept's column included in the first.
    regularization : float, optional
        λ of the sum form; by default the size of the noise on XᵀX.
    ledger : Accountant, optional
        Charged before the noise is drawn; the fit has one of its own when left out.
    rng : int, optional
        A seed, for tests only.

    Returns
    -------
    PrivateResult
        ``value`` has shape (d,).

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy under add-or-remove: one Gaussian mechanism
    on the isometric embedding of the statistics (docs/theorems_convex.md, Theorem V16), for up to
    1e7 records; more are refused.
    """
    given = None if regularization is None else checks.number(RIDGE, regularization)
    rows, labels, bounds = _regression_data(x, y, data_norm, target_bound)
    fit = Fit("private ridge regression", epsilon, delta, ledger, rng)
    multiplier = calibrate_sigma(fit.epsilon, fit.delta)
    fit.charge(Gaussian(multiplier))
    statistics = _noisy_statistics(rows, labels, bounds, multiplier, fit.source)
    spread = _spectral_bound(rows.shape[1], statistics.gram_noise)
    ridge = spread if given is None else given
    value = _solve(statistics.gram, statistics.cross, ridge)
    return fit.result(value, regularization=ridge, gram_noise=statistics.gram_noise)


@without_numpy_warnings
def ada_ssp(
    x: Array,
    y: Array,
    *,
    epsilon: float,
    delta: float,
    data_norm: float,
    target_bound: float,
    ledger: Accountant | None = None,
    rng: int | None = None,
) -> PrivateResult:
    """Fit linear regression by adaptive sufficient statistics perturbation.

    Wang (UAI 2018), Algorithm 2, with the three Gaussian releases calibrated jointly and exactly
    in place of ε/3, δ/3 each.

    Parameters
    ----------
    x, y, epsilon, delta, data_norm, target_bound, ledger, rng
        As in :func:`private_ridge`.

    Returns
    -------
    PrivateResult
        ``value`` has shape (d,).

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy under add-or-remove: the least eigenvalue
    gets a tenth of μ², the statistics the rest (docs/theorems_convex.md, Theorem V16), for up to
    1e7 records; more are refused.
    """
    rows, labels, bounds = _regression_data(x, y, data_norm, target_bound)
    d = rows.shape[1]
    fit = Fit("AdaSSP", epsilon, delta, ledger, rng)
    multiplier = calibrate_sigma(fit.epsilon, fit.delta)
    for_eigenvalue, for_rest = multiplier / math.sqrt(0.1), multiplier / math.sqrt(0.9)
    fit.charge(Gaussian(for_eigenvalue), Gaussian(for_rest))
    statistics = _noisy_statistics(rows, labels, bounds, for_rest, fit.source)
    # It pays for floating point, and for a grid that moves each value by half a step.
    remaining = remaining_after_rounding(1, GRID_BITS, for_eigenvalue)
    eigenvalue_noise = for_eigenvalue * bounds[0] ** 2 * _computed_eigenvalue(d) / remaining
    least = max(_least_eigenvalue(sum_by_blocks(rows, rows)), 0.0)
    noisy = float(fit.source.release(np.array([least]), eigenvalue_noise, GRID_BITS)[0])
    floor = max(noisy - eigenvalue_noise * math.sqrt(2.0 * math.log(1.0 / FAILURE)), 0.0)
    ridge = max(_spectral_bound(d, statistics.gram_noise) - floor, 0.0)
    value = _solve(statistics.gram, statistics.cross, ridge)
    return fit.result(value, regularization=ridge, gram_noise=statistics.gram_noise)


def _regression_data(
    x: Array, y: Array, data_norm: float, target_bound: float
) -> tuple[FloatArray, FloatArray, tuple[float, float]]:
    rows = table(x)
    require_few(rows, MOST_RECORDS)
    norm = checks.number(DATA_NORM, data_norm)
    bound = checks.number(BOUND.renamed("target_bound"), target_bound)
    labels = real_labels(y)
    rows = clip_rows(rows, norm)
    labels, rows = paired(np.clip(labels, -bound, bound), rows)
    return rows, labels, (norm, bound)


def _noisy_statistics(
    rows: FloatArray,
    labels: FloatArray,
    bounds: tuple[float, float],
    multiplier: float,
    source: NoiseSource,
) -> _Statistics:
    """Release Xᵀ X / R² and Xᵀ y / (R B), each moved by at most one, as one Gaussian mechanism.

    The Gram matrix is released in the isometric embedding of symmetric matrices, so the noise of
    its off-diagonal entries has half the variance of the diagonal's.
    """
    norm, bound = bounds
    d = rows.shape[1]
    upper = np.triu_indices(d, 1)
    gram = sum_by_blocks(rows, rows) / norm**2
    cross = sum_by_blocks(rows, labels) / (norm * bound)
    embedded = np.concatenate((np.diag(gram), math.sqrt(2.0) * gram[upper], cross))
    # |(xxᵀ/R², xy/(RB))| <= √2; the last terms cover sums in floating point and the grid.
    sensitivity = math.sqrt(2.0) * (1.0 + 1e-6)
    sigma = multiplier * sensitivity
    remaining = remaining_after_rounding(embedded.size, GRID_BITS, multiplier)
    released = source.release(embedded, sigma / remaining, GRID_BITS)
    noisy = np.zeros((d, d))
    noisy[upper] = released[d:-d] / math.sqrt(2.0)
    noisy = noisy + noisy.T
    noisy[np.diag_indices(d)] = released[:d]
    return _Statistics(noisy * norm**2, released[-d:] * norm * bound, sigma / remaining * norm**2)


def _computed_eigenvalue(d: int) -> float:
    """Return what one record moves a *computed* least eigenvalue by, in units of R² (V16)."""
    blocks = BLOCK + 2 * math.log2(MOST_RECORDS) + 8
    return 1.0 + 2.0 * MOST_RECORDS * U * (blocks + EIGENVALUE_ROUNDINGS * d)


def _least_eigenvalue(gram: FloatArray) -> float:
    """Return the least eigenvalue, within its rounding (V16) however LAPACK fares."""
    try:
        return float(np.linalg.eigvalsh(gram)[0])
    except np.linalg.LinAlgError:
        pass  # what fails for one neighbour must not be seen: bisect what a factorisation tells

    def below(value: float) -> bool:
        try:
            np.linalg.cholesky(gram - value * np.eye(len(gram)))
        except np.linalg.LinAlgError:
            return False
        return True

    return narrow(below, 0.0, float(np.trace(gram)), BISECTIONS)[0]


def _spectral_bound(d: int, noise: float) -> float:
    """Return what the largest eigenvalue of the noise exceeds with probability at most FAILURE.

    Its mean is at most noise √(2d), and it is a noise-Lipschitz function of normals (V16).
    """
    return noise * (math.sqrt(2.0 * d) + math.sqrt(2.0 * math.log(1.0 / FAILURE)))


def _solve(gram: FloatArray, cross: FloatArray, ridge: float) -> FloatArray:
    # Post-processing: eigenvalues that noise pushed below a tenth of the ridge are lifted to it.
    values, vectors = np.linalg.eigh(gram)
    lifted = np.maximum(values + ridge, max(0.1 * ridge, 1e-12 * max(abs(values).max(), 1e-300)))
    return np.asarray(vectors @ ((vectors.T @ cross) / lifted))
