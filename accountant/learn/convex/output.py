"""Output perturbation: fit without noise, then add noise for the sensitivity of the minimum."""

from __future__ import annotations

import math

import numpy as np

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant.calibration import calibrate_sigma
from accountant.errors import DomainError
from accountant.learn.convex.exact_gradients import RegularizedRisk, largest_target
from accountant.learn.convex.fit import (
    MOST_EXACT,
    MOST_RECORDS,
    REGULARIZATION,
    Fit,
    LinearFit,
    PrivateResult,
    certified_tolerance,
    record_limit,
    relation_factor,
)
from accountant.learn.convex.losses import Loss
from accountant.learn.convex.noise import COARSE, GRID_BITS, RELEASE_SHARE, pure_bits, rounded_shift
from accountant.learn.convex.solvers import least_tolerance, minimize
from accountant.learn.validation import without_numpy_warnings
from accountant.ledger import Accountant
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.stated_guarantees import PureDP
from accountant.relations import NeighbouringRelation

# The certified gradient norm over the largest gradient of one record: the noise grows by twice it.
TOLERANCE = 1e-6


def minimum_sensitivity(
    *,
    slope: float,
    regularization: float,
    tolerance: float = 0.0,
    relation: NeighbouringRelation = NeighbouringRelation.ADD_OR_REMOVE,
) -> float:
    """Return how far neighbouring data sets' approximate minima lie apart, in Euclidean norm.

    Parameters
    ----------
    slope : float
        Bound on the norm of one record's gradient.
    regularization : float
        λ of the sum form.
    tolerance : float
        Certified bound on ``|∇J|`` at the points released, 0 for exact minima.
    relation : NeighbouringRelation
        Replacing a record moves the sum of gradients twice as far as adding one.

    Notes
    -----
    *Guarantee.* ``(slope + 2 tolerance) / regularization``, the slope doubled for replace-one
    (docs/theorems_convex.md, Theorem V8).
    """
    gradient = slope * relation_factor(relation) + 2.0 * tolerance
    return gradient / regularization * (1.0 + 1e-12)


@without_numpy_warnings
def perturb_output(
    x: Array,
    y: Array,
    *,
    epsilon: float,
    delta: float,
    data_norm: float,
    regularization: float,
    loss: Loss | None = None,
    tolerance: float | None = None,
    relation: NeighbouringRelation = NeighbouringRelation.ADD_OR_REMOVE,
    max_records: int = MOST_RECORDS,
    ledger: Accountant | None = None,
    rng: int | None = None,
) -> PrivateResult:
    """Fit a linear model and perturb its parameter.

    Parameters
    ----------
    x, y, data_norm, loss, ledger, rng
        As in :func:`~accountant.learn.convex.objective.perturb_objective`.
    epsilon, delta : float
        The guarantee; with δ = 0 the noise has density ``exp(-ε|b| / sensitivity)`` (Chaudhuri,
        Monteleoni, Sarwate 2011), else it is Gaussian, calibrated exactly; released on a grid.
    regularization : float
        λ of the sum form. The noise is inversely proportional to it, so there is no default.
    tolerance : float, optional
        Certified bound on the gradient at the minimum, which the sensitivity includes; 1e-6 of a
        record's largest gradient, or more where public numbers ask for it.
    relation : NeighbouringRelation
        Add-or-remove (the default), zero-out or replace-one.
    max_records : int
        A public bound on the number of records, of which more are refused. The least tolerance is
        proportional to it.

    Returns
    -------
    PrivateResult
        ``value`` has shape (d,), or (d, K) for softmax.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy under ``relation``
    (docs/theorems_convex.md, Theorem V8; V10 for all records that public numbers admit).
    """
    fit = LinearFit(
        "output perturbation", x, data_norm, loss, epsilon=epsilon, delta=delta, ledger=ledger,
        rng=rng,
    )  # fmt: skip
    norm, chosen = fit.norm, fit.loss
    lam = checks.number(REGULARIZATION, regularization)
    limit = record_limit(max_records, MOST_EXACT)
    least = least_tolerance(
        chosen, max_records=limit, shape=fit.shape, norm=norm, regularization=lam
    )
    tau = certified_tolerance(tolerance, TOLERANCE * fit.slope, least)
    distance = minimum_sensitivity(
        slope=fit.slope, regularization=lam, tolerance=tau, relation=relation
    )
    require_noise(fit.size, fit.epsilon, fit.delta)
    rows, labels = fit.data(y, limit)
    labels = chosen.cut(labels, largest_target(chosen, limit, norm, lam))
    problem = RegularizedRisk(rows, labels, chosen, lam, np.zeros(fit.shape), norm)
    return add_noise(fit, minimize(problem, tau), distance, relation)


def add_noise(
    fit: Fit, theta: FloatArray, distance: float, relation: NeighbouringRelation
) -> PrivateResult:
    """Release ``theta``, which neighbours move by at most ``distance`` in Euclidean norm."""
    multiplier = require_noise(theta.size, fit.epsilon, fit.delta)
    if fit.delta == 0.0:
        fit.charge(PureDP(fit.epsilon, relation=relation))
        # Noise of density exp(-|b| / scale), drawn up to a rounding that a tiny release covers.
        scale = distance / (fit.epsilon * (1.0 - RELEASE_SHARE)) * (1.0 + 1e-12)
        b, apart = fit.source.multivariate_laplace(theta.shape)
        absolute = 2.0 * scale * apart * math.sqrt(theta.size) * (1.0 + 1e-9)
        share = fit.epsilon * RELEASE_SHARE
        value = fit.source.release_pure(theta + scale * b, absolute, share, COARSE)
    else:
        fit.charge(_gaussian(multiplier, relation))
        # Rounding to the grid moves either data set's value by half a step a coordinate.
        excess = 2.0 * multiplier * rounded_shift(theta.size, GRID_BITS)
        scale = multiplier * distance / (1.0 - excess) * (1.0 + 1e-12)
        value = fit.source.release(theta, scale, GRID_BITS)
    return fit.result(value, sensitivity=distance, noise=scale)


def require_noise(size: int, epsilon: float, delta: float) -> float:
    """Return the noise multiplier, 0 for δ = 0, or refuse the guarantee: no data are asked."""
    if delta == 0.0:
        pure_bits(size, epsilon * RELEASE_SHARE, COARSE)
        return 0.0
    multiplier = calibrate_sigma(epsilon, delta)
    if not (2.0 * multiplier * rounded_shift(size, GRID_BITS) < 0.5):
        raise DomainError(
            f"epsilon and delta are too small for {size} coordinates on one grid: they ask for"
            f" noise of {multiplier:.6g} sensitivities"
        )
    return multiplier


def _gaussian(multiplier: float, relation: NeighbouringRelation) -> Gaussian:
    # The mechanism's own sensitivity is one record's contribution; replacing doubles it there.
    contribution = 1.0 / relation_factor(relation)
    return Gaussian(multiplier, sensitivity=contribution, relation=relation)
