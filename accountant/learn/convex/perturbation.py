"""Output and objective perturbation: noise on a minimum, or a random linear term in its objective.

The sum form is used throughout, J(θ) = Σ_i loss(x_i θ, y_i) + (λ/2)|θ|² + <b, θ>: it does not
contain the number of records, which is private under add-or-remove.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant.calibration import calibrate_sigma
from accountant.learn.convex.fit import (
    COARSE,
    FINE_BITS,
    MOST_RECORDS,
    REGULARIZATION,
    RELEASE_SHARE,
    Fit,
    LinearFit,
    PrivateResult,
    certified_tolerance,
    gaussian_bits,
    pure_bits,
    relation_factor,
    remaining_after_rounding,
    rounded_shift,
)
from accountant.learn.convex.losses import Logistic, Loss, Softmax
from accountant.learn.convex.mechanism import (
    ObjectivePerturbation,
    calibrate_objective,
    pure_epsilon_for_noise,
)
from accountant.learn.convex.solvers import minimize
from accountant.learn.validation import without_numpy_warnings
from accountant.ledger import Accountant
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.stated_guarantees import ApproximateDP, PureDP
from accountant.relations import NeighbouringRelation

# The certified gradient norm over the largest gradient of one record: the noise grows by twice it.
OUTPUT_TOLERANCE = 1e-6


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
        As in :func:`~accountant.learn.convex.perturbation.perturb_objective`.
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
    fit = LinearFit(x, data_norm, loss, "output perturbation", epsilon, delta, ledger, rng)
    lam = checks.number(REGULARIZATION, regularization)
    public = fit.public(max_records, lam)
    tau = certified_tolerance(tolerance, OUTPUT_TOLERANCE * fit.slope, public)
    distance = minimum_sensitivity(
        slope=fit.slope, regularization=lam, tolerance=tau, relation=relation
    )
    require_noise(fit.size, fit.epsilon, fit.delta)
    return add_noise(fit, minimize(fit.risk(y, public), tau), distance, relation)


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
        # The mechanism's own sensitivity is one record's contribution; replacing doubles it there.
        contribution = 1.0 / relation_factor(relation)
        fit.charge(Gaussian(multiplier, sensitivity=contribution, relation=relation))
        value, scale = fit.gaussian(theta, multiplier, distance * (1.0 + 1e-12))
    return fit.result(value, sensitivity=distance, noise=scale)


def require_noise(size: int, epsilon: float, delta: float) -> float:
    """Return the noise multiplier, 0 for δ = 0, or refuse the guarantee: no data are asked."""
    if delta == 0.0:
        pure_bits(size, epsilon * RELEASE_SHARE, COARSE)
        return 0.0
    multiplier = calibrate_sigma(epsilon, delta)
    remaining_after_rounding(size, multiplier)
    return multiplier


# The certified gradient norm over the largest gradient of one record: the final noise is
# proportional to it.
TOLERANCE = 2e-7
# No normal vector is longer than √d plus this, but for an event of probability e^-2000 (V6).
BEYOND = 65.0


@without_numpy_warnings
def perturb_objective(
    x: Array,
    y: Array,
    *,
    epsilon: float,
    delta: float,
    data_norm: float,
    loss: Loss | None = None,
    regularization: float | None = None,
    tolerance: float | None = None,
    max_records: int = MOST_RECORDS,
    ledger: Accountant | None = None,
    rng: int | None = None,
) -> PrivateResult:
    """Fit a linear model by objective perturbation.

    Parameters
    ----------
    x : array of shape (n, d)
        Records. Rows longer than ``data_norm`` are scaled down to it. What is not
        finite numbers, or has no label of the loss, adds nothing.
    y : array of shape (n,)
        Labels in the loss's public domain.
    epsilon, delta : float
        The guarantee, in nats; δ in [0, 1). At 0 the noise has density ``exp(-ε'|b| / slope)``
        and the guarantee is pure.
    data_norm : float
        Public bound on the rows' norm, never computed from ``x``.
    loss : Loss, optional
        Logistic by default.
    regularization : float, optional
        λ of the sum form; ``data_norm**2 / epsilon`` for the logistic loss, where it costs no noise
        beyond the Gaussian mechanism's; 8 times that for softmax, and 8 times the curvature bound
        times that for the others.
    tolerance : float, optional
        Certified bound on the gradient at the minimum; 2e-7 of a record's largest gradient, or
        more where public numbers ask for it.
    max_records : int
        A public bound on the number of records, of which more are refused. The least tolerance is
        proportional to it.
    ledger : Accountant, optional
        Charged before the noise is drawn; the fit has one of its own when left out.
    rng : int, optional
        A seed, for tests only; the result is then marked as not private.

    Returns
    -------
    PrivateResult
        ``value`` has shape (d,), or (d, K) for softmax.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy under add-or-remove, by Theorems V3 to V5 for
    the exact minimum and V9 and V10 for its certified approximation (docs/theorems_convex.md),
    which is reached on all records: public numbers alone decide what is refused. Coordinates are
    cut to a grid of 2**-30 of ``data_norm`` or so.

    *Algorithm.* Preconditioned L-BFGS; some tens of passes over ``x``.
    """
    fit = LinearFit(x, data_norm, loss, "objective perturbation", epsilon, delta, ledger, rng)
    lam = _regularization(regularization, fit)
    drawn = (_draw_pure if fit.delta == 0.0 else _draw_gaussian)(fit, lam)
    public = fit.public(max_records, lam, drawn.longest)
    tau = certified_tolerance(tolerance, TOLERANCE * fit.slope, public)
    share = fit.epsilon * RELEASE_SHARE
    release = _releasing(fit, share)
    # The correction is a tiny release; as a black box a grid composes it without having to resolve
    # its scale.
    fit.charge(drawn.mechanism, ApproximateDP(share, delta=fit.delta * RELEASE_SHARE))
    theta = minimize(fit.risk(y, public, drawn.b), tau)
    # The minimum and its certified approximation, on either data set (V9).
    apart = 2.0 * (tau + drawn.rounding) / lam
    return fit.result(release(theta, apart), regularization=lam, noise=drawn.noise, tolerance=tau)


_Release: TypeAlias = Callable[[FloatArray, float], FloatArray]


def _releasing(fit: LinearFit, share: float) -> _Release:
    """Return what releases a minimum that lies so far from another, or refuse public numbers."""
    if fit.delta == 0.0:
        pure_bits(fit.size, share, COARSE)
        root = math.sqrt(fit.size) * (1.0 + 1e-12)
        return lambda theta, apart: fit.source.release_pure(theta, apart * root, share, COARSE)
    mu = 1.0 / calibrate_sigma(share, fit.delta * RELEASE_SHARE)
    bits = gaussian_bits(fit.size, mu)
    # The rounding of what is released moves either value by half a step a coordinate.
    remaining = mu - 2.0 * rounded_shift(fit.size, bits)
    return lambda theta, apart: fit.source.release(theta, apart / remaining * (1.0 + 1e-12), bits)


class _Drawn(NamedTuple):
    b: FloatArray
    noise: float
    mechanism: Mechanism
    rounding: float  # how far b is from a vector that has the theorem's density
    longest: float  # |b| is below this, but for an event of probability e^-2000 (V6)


def _draw_gaussian(fit: LinearFit, lam: float) -> _Drawn:
    noise = calibrate_objective(
        fit.loss,
        epsilon=fit.epsilon * (1.0 - RELEASE_SHARE),
        delta=fit.delta * (1.0 - RELEASE_SHARE),
        data_norm=fit.norm,
        regularization=lam,
    )
    mechanism = ObjectivePerturbation(fit.loss, data_norm=fit.norm, regularization=lam, noise=noise)
    # Gaussian noise on a grid: its rounding counts as part of the approximation.
    rounding = noise * rounded_shift(fit.size, FINE_BITS)
    longest = noise * (math.sqrt(fit.size) + BEYOND)
    return _Drawn(fit.source.normal(fit.shape, noise), noise, mechanism, rounding, longest)


def _draw_pure(fit: LinearFit, lam: float) -> _Drawn:
    share = fit.epsilon * (1.0 - RELEASE_SHARE)
    remaining = pure_epsilon_for_noise(fit.loss, share, fit.norm, lam)
    scale = fit.slope / remaining * (1.0 + 1e-12)
    b, apart = fit.source.multivariate_laplace(fit.shape)
    longest = scale * (math.sqrt(fit.size + 1.0) + BEYOND) ** 2
    return _Drawn(scale * b, scale, PureDP(share), scale * apart * (1.0 + 1e-9), longest)


def _regularization(value: float | None, fit: LinearFit) -> float:
    if value is not None:
        return checks.number(REGULARIZATION, value)
    factor = 8.0 if isinstance(fit.loss, Softmax) else 8.0 * fit.loss.curvature_bound
    if isinstance(fit.loss, Logistic):
        factor = 1.0
    return factor * fit.norm**2 / (fit.epsilon * (1.0 - RELEASE_SHARE))
