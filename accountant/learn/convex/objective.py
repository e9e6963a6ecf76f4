"""Objective perturbation: a random linear term in the objective, and its minimum released.

The sum form is used throughout, J(θ) = Σ_i loss(x_i θ, y_i) + (λ/2)|θ|² + <b, θ>: it does not
contain the number of records, which is private under add-or-remove.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numpy.typing import NDArray

from accountant import checks
from accountant._typing import FloatArray
from accountant.calibration import calibrate_sigma
from accountant.learn.account import charged
from accountant.learn.convex import public_bounds
from accountant.learn.convex.exact_gradients import RegularizedRisk, largest_target
from accountant.learn.convex.losses import Logistic, Loss, Softmax
from accountant.learn.convex.mechanism import (
    ObjectivePerturbation,
    calibrate_objective,
    pure_epsilon_for_noise,
)
from accountant.learn.convex.noise import (
    FINE_BITS,
    NoiseSource,
    gaussian_bits,
    pure_bits,
    rounded_shift,
)
from accountant.learn.convex.public_bounds import DATA_NORM, REGULARIZATION
from accountant.learn.convex.result import PrivateResult, clip_rows, paired, table
from accountant.learn.convex.solvers import least_tolerance, minimize
from accountant.learn.secrecy import without_numpy_warnings
from accountant.ledger import Accountant
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.stated_guarantees import ApproximateDP, PureDP

# Of (ε, δ), what the release of an approximate minimum may cost.
RELEASE_SHARE = 1e-3
COARSE = 0.25  # of that share, for the grid of a pure release
# Certified gradient norm, over the largest gradient of one record.
TOLERANCE = 2e-7
BEYOND = 65.0  # deviations past the typical length of a normal vector that none exceeds


@without_numpy_warnings
def perturb_objective(
    x: NDArray[Any],
    y: NDArray[Any],
    *,
    epsilon: float,
    delta: float,
    data_norm: float,
    loss: Loss | None = None,
    regularization: float | None = None,
    tolerance: float | None = None,
    max_records: int = public_bounds.MOST_RECORDS,
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
    rows = table(x)
    eps = checks.number(checks.TARGET_EPS, epsilon)
    target = checks.number(checks.DELTA, delta)
    norm = checks.number(DATA_NORM, data_norm)
    limit = public_bounds.record_limit(max_records, public_bounds.MOST_EXACT)
    chosen = Logistic() if loss is None else loss
    lam = _regularization(regularization, chosen, eps * (1.0 - RELEASE_SHARE), norm)
    source = NoiseSource(rng)
    shape = chosen.weight_shape(rows.shape[1])
    draw = _draw_pure if target == 0.0 else _draw_gaussian
    drawn = draw(chosen, eps, target, norm, lam, shape, source)
    least = least_tolerance(
        chosen, max_records=limit, shape=shape, norm=norm, regularization=lam, linear=drawn.longest
    )
    tau = public_bounds.certified_tolerance(tolerance, TOLERANCE * norm * chosen.slope_bound, least)
    share = eps * RELEASE_SHARE
    mu = _release_mu(drawn.b.size, share, target)
    # The correction is a tiny release; as a black box a grid composes it without having to resolve
    # its scale.
    mechanisms = (drawn.mechanism, ApproximateDP(share, delta=target * RELEASE_SHARE))
    book = charged(ledger, mechanisms, "objective perturbation")
    # Whatever these public numbers are refused for has been asked: the data come now.
    public_bounds.require_few(rows, limit)
    labels, rows = paired(chosen.encode(y), rows)
    labels = chosen.cut(labels, largest_target(chosen, limit, norm, lam, drawn.longest))
    problem = RegularizedRisk(clip_rows(rows, norm), labels, chosen, lam, drawn.b, norm)
    if target == 0.0:
        value = release_pure(problem, tau, drawn.rounding, share, source)
    else:
        value = release_minimum(problem, tau, drawn.rounding, mu, source)
    details = {"regularization": lam, "noise": drawn.noise, "tolerance": tau}
    return PrivateResult(value, mechanisms, book, eps, target, source.private, details)


def _release_mu(size: int, share: float, delta: float) -> float:
    """Return μ of the minimum's release, 0 for a pure one, or refuse numbers that no grid fits."""
    if delta == 0.0:
        pure_bits(size, share, COARSE)
        return 0.0
    mu = 1.0 / calibrate_sigma(share, delta * RELEASE_SHARE)
    gaussian_bits(size, mu)
    return mu


class _Drawn(NamedTuple):
    b: FloatArray
    noise: float
    mechanism: Mechanism
    rounding: float  # how far b is from a vector that has the theorem's density
    longest: float  # |b| is below this, but for an event of probability e^-2000 (V6)


def _draw_gaussian(
    loss: Loss,
    epsilon: float,
    delta: float,
    norm: float,
    lam: float,
    shape: tuple[int, ...],
    source: NoiseSource,
) -> _Drawn:
    noise = calibrate_objective(
        loss,
        epsilon=epsilon * (1.0 - RELEASE_SHARE),
        delta=delta * (1.0 - RELEASE_SHARE),
        data_norm=norm,
        regularization=lam,
    )
    mechanism = ObjectivePerturbation(loss, data_norm=norm, regularization=lam, noise=noise)
    # Gaussian noise on a grid: its rounding counts as part of the approximation.
    rounding = noise * rounded_shift(math.prod(shape), FINE_BITS)
    longest = noise * (math.sqrt(math.prod(shape)) + BEYOND)
    return _Drawn(source.normal(shape, noise), noise, mechanism, rounding, longest)


def _draw_pure(
    loss: Loss,
    epsilon: float,
    delta: float,
    norm: float,
    lam: float,
    shape: tuple[int, ...],
    source: NoiseSource,
) -> _Drawn:
    share = epsilon * (1.0 - RELEASE_SHARE)
    remaining = pure_epsilon_for_noise(loss, share, norm, lam)
    scale = norm * loss.slope_bound / remaining * (1.0 + 1e-12)
    b, apart = source.multivariate_laplace(shape)
    longest = scale * (math.sqrt(math.prod(shape) + 1.0) + BEYOND) ** 2
    return _Drawn(scale * b, scale, PureDP(share), scale * apart * (1.0 + 1e-9), longest)


def release_pure(
    problem: RegularizedRisk,
    tolerance: float,
    rounding: float,
    epsilon: float,
    source: NoiseSource,
) -> FloatArray:
    """Release a certified approximate minimum as a pure ``epsilon`` correction of it (V9)."""
    apart = 2.0 * (tolerance + rounding) / problem.regularization
    distance = apart * math.sqrt(problem.linear.size)
    theta = minimize(problem, tolerance)
    return source.release_pure(theta, distance * (1.0 + 1e-12), epsilon, COARSE)


def release_minimum(
    problem: RegularizedRisk, tolerance: float, rounding: float, mu: float, source: NoiseSource
) -> FloatArray:
    """Release a certified approximate minimum as a ``mu``-GDP correction of the exact one (V9).

    ``rounding`` bounds how far the objective's linear term is from the one of the theorem.
    """
    size = problem.linear.size
    bits = gaussian_bits(size, mu)
    # Twice the distance to the minimum, plus twice the rounding of what is released.
    remaining = mu - 2.0 * rounded_shift(size, bits)
    sigma = 2.0 * (tolerance + rounding) / (problem.regularization * remaining) * (1.0 + 1e-12)
    theta = minimize(problem, tolerance)
    return source.release(theta, sigma, bits)


def _regularization(value: float | None, loss: Loss, epsilon: float, norm: float) -> float:
    if value is not None:
        return checks.number(REGULARIZATION, value)
    if isinstance(loss, Logistic):
        return norm**2 / epsilon
    factor = 8.0 if isinstance(loss, Softmax) else 8.0 * loss.curvature_bound
    return factor * norm**2 / epsilon
