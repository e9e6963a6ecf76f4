"""Bolt-on private SGD: plain permutation SGD, then noise on the final weights only.

Wu, Li, Kumar, Chaudhuri, Jha and Naughton, SIGMOD 2017, Algorithms 1 and 2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accountant import checks
from accountant._basics.arrays import Array
from accountant._basics.rounding import U
from accountant.errors import DomainError
from accountant.learn.convex.fit import BOUND, REGULARIZATION, STEP_SIZE, LinearFit, PrivateResult
from accountant.learn.convex.losses import Loss
from accountant.learn.convex.perturbation import add_noise, require_noise
from accountant.learn.convex.rows import gradient_rounding, project
from accountant.learn.validation import without_numpy_warnings
from accountant.ledger import Accountant
from accountant.relations import NeighbouringRelation


def permutation_sgd_sensitivity(
    *,
    slope: float,
    curvature: float,
    dataset_size: int,
    passes: int,
    batch_size: int,
    regularization: float = 0.0,
    step_size: float | None = None,
) -> float:
    """Return how far replacing one record moves the last iterate, for every fixed permutation.

    Parameters
    ----------
    slope, curvature : float
        Bounds on the norm of one record's gradient and Hessian, without the regularisation.
    dataset_size, passes, batch_size : int
        The number of records is public under replace-one. An incomplete last batch is left out.
    regularization : float
        γ >= 0 of the *mean* form: each step sees mean loss + (γ/2)|θ|².
    step_size : float, optional
        For γ = 0: a constant step, at most 2 / curvature. For γ > 0 the steps are min(1/β, 1/(γt))
        with β = curvature + γ, and none may be given.

    Notes
    -----
    *Guarantee.* ``2 passes slope step_size / batch_size`` for γ = 0, and ``2 passes slope /
    (γ steps)`` for γ > 0, which is 2 slope / (γ n) when the batches are complete: it must not be
    divided by the batch size again (docs/theorems_convex.md, Theorem V11).
    """
    steps_a_pass = dataset_size // batch_size
    if steps_a_pass == 0:
        raise DomainError(
            f"batch_size must be at most the dataset_size, {dataset_size}; got {batch_size}"
        )
    if regularization > 0.0:
        if step_size is not None:
            raise DomainError(
                f"step_size must be None with regularization > 0, where the theorem fixes the"
                f" steps; got {step_size!r}"
            )
        return 2.0 * slope / (regularization * steps_a_pass * batch_size) * (1.0 + 1e-12)
    if step_size is None or not (step_size <= 2.0 / curvature):
        raise DomainError(
            f"step_size must be at most 2 / curvature = {2.0 / curvature:.6g} without"
            f" regularization; got {step_size!r}"
        )
    return 2.0 * passes * slope * step_size / batch_size * (1.0 + 1e-12)


def permutation_sgd_rounding(
    loss: Loss,
    *,
    norm: float,
    columns: int,
    batch_size: int,
    steps: int,
    regularization: float = 0.0,
    step_size: float | None = None,
    radius: float = math.inf,
) -> float:
    """Return how far the computed last iterate is from that of exact arithmetic.

    Parameters
    ----------
    loss, norm, columns, batch_size, steps, regularization, step_size, radius
        The public settings of the run; ``columns`` counts the rows' coordinates.

    Notes
    -----
    *Guarantee.* No step expands, so the roundings of all steps add up; each is bounded by public
    numbers alone (docs/theorems_convex.md, Theorem V11).
    """
    slope, beta = loss.slope_bound * norm, loss.curvature_bound * norm**2 + regularization
    eta = 1.0 / beta if step_size is None else step_size
    # No iterate is longer than this: η L a step, or L / γ, or the projection.
    reach = slope / regularization if regularization else steps * eta * slope
    reach = 1.001 * min(reach, radius)
    batch = gradient_rounding(
        loss, records=batch_size, columns=columns, norm=norm, reach=reach, blocked=False
    )
    move = slope + regularization * reach
    size = columns * (loss.outputs or 1)
    # The step and its size, the move, the projection; each in units of the last place.
    each = eta * (batch / batch_size + 16.0 * U * move)
    each += (size + 16) * U * reach
    total = steps * each
    if not (total <= 1e-3 * reach):
        raise DomainError(
            f"{steps} steps of batch_size {batch_size} lose too many digits in double precision for"
            " this guarantee; use fewer passes or larger batches"
        )
    return total


@without_numpy_warnings
def bolt_on_sgd(
    x: Array,
    y: Array,
    *,
    epsilon: float,
    delta: float,
    data_norm: float,
    loss: Loss | None = None,
    passes: int = 10,
    batch_size: int = 50,
    regularization: float = 0.0,
    step_size: float | None = None,
    radius: float | None = None,
    ledger: Accountant | None = None,
    rng: int | None = None,
) -> PrivateResult:
    """Run permutation SGD without noise and perturb the last iterate.

    Parameters
    ----------
    x, y, data_norm, loss, ledger, rng
        As in :func:`~accountant.learn.convex.perturbation.perturb_objective`.
    epsilon, delta : float
        The guarantee under *replace-one*; δ = 0 for the pure variant.
    passes, batch_size, regularization, step_size
        As in :func:`permutation_sgd_sensitivity`; without regularisation the step defaults to
        1 / curvature.
    radius : float, optional
        Iterates are projected to this ball; projections do not expand.

    Returns
    -------
    PrivateResult
        Its mechanism is stated under replace-one.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy under replace-one
    (docs/theorems_convex.md, Theorem V11), the rounding of every step included. The permutation
    does not depend on the data.
    """
    fit = LinearFit(x, data_norm, loss, "bolt-on SGD", epsilon, delta, ledger, rng)
    turns = checks.integer("passes", passes, 1)
    batch = checks.integer("batch_size", batch_size, 1)
    gamma = checks.number(REGULARIZATION, regularization) if regularization else 0.0
    curvature = fit.loss.curvature_bound * fit.norm**2
    if gamma == 0.0 and step_size is None:
        step_size = 1.0 / curvature
    if step_size is not None:
        step_size = checks.number(STEP_SIZE, step_size)
    reach = math.inf if radius is None else checks.number(BOUND.renamed("radius"), radius)
    records, columns = fit.rows.shape
    given: Any = {"batch_size": batch, "regularization": gamma, "step_size": step_size}
    distance = permutation_sgd_sensitivity(
        slope=fit.slope, curvature=curvature, dataset_size=records, passes=turns, **given
    )
    m = records // batch
    distance += 2.0 * permutation_sgd_rounding(
        fit.loss, norm=fit.norm, columns=columns, steps=turns * m, radius=reach, **given
    )
    require_noise(fit.size, fit.epsilon, fit.delta)
    order = fit.source.permutation(records)[: m * batch].reshape(m, batch)
    rows, labels = fit.data(y)
    theta = np.zeros(fit.shape)
    for t in range(turns * m):
        chunk = order[t % m]
        slopes = fit.loss.slope(rows[chunk] @ theta, labels[chunk])
        gradient = rows[chunk].T @ slopes / batch + gamma * theta
        step = step_size or min(1.0 / (curvature + gamma), 1.0 / (gamma * (t + 1)))
        theta = project(theta - step * gradient, reach)
    return add_noise(fit, theta, distance, NeighbouringRelation.REPLACE_ONE)
