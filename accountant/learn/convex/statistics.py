"""Means, covariances and linear regression from noisy sums of clipped data."""

from __future__ import annotations

import math

import numpy as np

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant._basics.rounding import U
from accountant.calibration import calibrate_sigma
from accountant.errors import DomainError
from accountant.learn.convex.fit import (
    BOUND,
    DATA_NORM,
    MOST_RECORDS,
    Fit,
    PrivateResult,
    require_few,
)
from accountant.learn.convex.losses import real_labels
from accountant.learn.convex.rows import BLOCK, clip_rows, paired, sum_by_blocks, table
from accountant.learn.validation import numbers, without_numpy_warnings
from accountant.ledger import Accountant
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.stated_guarantees import PureDP
from accountant.search import narrow

ROOT_2 = math.sqrt(2.0)
COMPUTED = 1.0 + 1e-6  # Sums of up to MOST_RECORDS rows in floating point move by less more (V17).
RIDGE = checks.nonnegative("regularization", "It is added to the Gram matrix")
# A computed eigenvalue of a symmetric matrix is off by at most this many roundings of its norm for
# each column: Theorem V16 depends on it.
EIGENVALUE_ROUNDINGS = 32
BISECTIONS = 64  # They find an eigenvalue to its last digit where LAPACK fails.
# Wang's ρ: the probability that AdaSSP's ridge falls short. Only utility depends on it.
FAILURE = 0.05


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
    released = _release(fit, statistics, math.sqrt(d) + 1.0)
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
    second = _embedded(sum_by_blocks(rows, rows) / bound**2)
    # Σ_i x_i² + √2 Σ_{i<j} |x_i x_j| <= (Σ |x_i|)² <= d for a unit vector.
    fit = Fit("second moment", epsilon, delta, ledger, rng)
    released = _release(fit, np.append(second, float(len(rows))), d + 1.0)
    matrix = _matrix(released[:-1], d)
    values, vectors = np.linalg.eigh(matrix * bound**2 / max(float(released[-1]), 1.0))
    return fit.result((vectors * np.clip(values, 0.0, bound**2)) @ vectors.T)


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


def _release(fit: Fit, statistics: FloatArray, absolute: float) -> FloatArray:
    """Charge for sensitivities √2 and ``absolute``, and add noise for them."""
    if fit.delta == 0.0:
        fit.charge(PureDP(fit.epsilon))
        return fit.source.release_pure(statistics, absolute * COMPUTED, fit.epsilon)
    multiplier = calibrate_sigma(fit.epsilon, fit.delta)
    fit.charge(Gaussian(multiplier))
    return fit.gaussian(statistics, multiplier, ROOT_2 * COMPUTED)[0]


def _embedded(matrix: FloatArray) -> FloatArray:
    """Return a symmetric matrix as a vector of the same Euclidean norm.

    So the noise of an entry off the diagonal has half the variance of the diagonal's.
    """
    return np.append(np.diag(matrix), ROOT_2 * matrix[np.triu_indices(len(matrix), 1)])


def _matrix(embedded: FloatArray, d: int) -> FloatArray:
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d, 1)] = embedded[d:] / ROOT_2
    matrix = matrix + matrix.T
    matrix[np.diag_indices(d)] = embedded[:d]
    return matrix


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
    gram, cross, noise = _noisy_statistics(fit, rows, labels, bounds, multiplier)
    ridge = _spectral_bound(rows.shape[1], noise) if given is None else given
    return fit.result(_solve(gram, cross, ridge), regularization=ridge, gram_noise=noise)


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
    gram, cross, noise = _noisy_statistics(fit, rows, labels, bounds, for_rest)
    least = np.array([max(_least_eigenvalue(sum_by_blocks(rows, rows)), 0.0)])
    moved = bounds[0] ** 2 * _computed_eigenvalue(d)  # it pays for floating point
    noisy, spread = fit.gaussian(least, for_eigenvalue, moved)
    floor = max(float(noisy[0]) - spread * math.sqrt(2.0 * math.log(1.0 / FAILURE)), 0.0)
    ridge = max(_spectral_bound(d, noise) - floor, 0.0)
    return fit.result(_solve(gram, cross, ridge), regularization=ridge, gram_noise=noise)


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
    fit: Fit, rows: FloatArray, labels: FloatArray, bounds: tuple[float, float], multiplier: float
) -> tuple[FloatArray, FloatArray, float]:
    """Release Xᵀ X / R² and Xᵀ y / (R B), each moved by at most one, as one Gaussian mechanism.

    Returns noisy Xᵀ X, symmetric, noisy Xᵀ y, and the noise of the former's diagonal.
    """
    norm, bound = bounds
    d = rows.shape[1]
    gram = _embedded(sum_by_blocks(rows, rows) / norm**2)
    cross = sum_by_blocks(rows, labels) / (norm * bound)
    # |(xxᵀ/R², xy/(RB))| <= √2.
    released, sigma = fit.gaussian(np.append(gram, cross), multiplier, ROOT_2 * COMPUTED)
    return _matrix(released[:-d], d) * norm**2, released[-d:] * norm * bound, sigma * norm**2


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
