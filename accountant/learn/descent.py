"""Projected gradient descent and one-example private SGD: settings of the DP-SGD loop.

Bassily, Smith and Thakurta (FOCS 2014). Their constants are replaced by the exact account.
"""

from __future__ import annotations

import math
from typing import Any

from accountant import checks
from accountant.errors import DomainError
from accountant.learn.averaging import MeanOfLast
from accountant.learn.dp_sgd import RADIUS, train_dp_sgd
from accountant.learn.models.base import Model
from accountant.learn.optimizers import SGD
from accountant.learn.plan import BATCH
from accountant.learn.result import TrainingResult
from accountant.learn.schedules import InverseSquareRoot


def train_projected_gradient_descent(
    model: Model,
    X: object,
    y: object,
    *,
    clipping_norm: float,
    delta: float,
    steps: int,
    projection_radius: float,
    expected_records: float,
    learning_rate: float | None = None,
    **options: Any,
) -> TrainingResult:
    """Train by noisy gradient descent on all records, projected onto a ball.

    Parameters
    ----------
    model, X, y, clipping_norm, delta, steps
        As in :func:`train_dp_sgd`.
    projection_radius : float
        Of the ball around the origin.
    expected_records : float
        A public estimate of the number of records, which the noisy sum is divided by. The number
        itself is a secret: it may be 0 to 2²⁴, and nothing depends on it.
    learning_rate : float, optional
        Of the first step; step t takes it over √(t + 1). By default the radius over the clipping
        norm.
    **options
        Further arguments of :func:`train_dp_sgd`: ``noise_multiplier`` or ``target_epsilon``,
        ``averaging`` (the mean of all iterates by default), ``checkpoint``, …

    Returns
    -------
    TrainingResult
        As of :func:`train_dp_sgd`.

    Notes
    -----
    *Guarantee.* As :func:`train_dp_sgd` with q = 1: (√steps / noise_multiplier)-GDP.
    """
    _refuse(options, ("sampler", "optimizer", "expected_batch_size", "epochs"))
    rate = _rate(learning_rate, projection_radius, clipping_norm)
    return train_dp_sgd(
        model,
        X,
        y,
        clipping_norm=clipping_norm,
        delta=delta,
        steps=steps,
        expected_batch_size=expected_records,
        sampler="full",
        optimizer=SGD(InverseSquareRoot(rate)),
        projection_radius=projection_radius,
        **({"averaging": MeanOfLast(1.0)} | options),
    )


def train_one_example_sgd(
    model: Model,
    X: object,
    y: object,
    *,
    clipping_norm: float,
    delta: float,
    steps: int,
    projection_radius: float,
    learning_rate: float | None = None,
    **options: Any,
) -> TrainingResult:
    """Train by private SGD on one expected record a step, projected onto a ball.

    The batch is a Poisson sample with expectation one, as the account needs it, where the original
    draws exactly one record. Parameters are those of :func:`train_projected_gradient_descent`; the
    default rate takes the noise into account, radius / (clipping_norm √(1 + d σ²)) with d
    parameters, when ``noise_multiplier`` is given.

    Notes
    -----
    *Guarantee.* As :func:`train_dp_sgd` with q = 1/n, which declares the number of records n
    public; with ``sampling_probability``, about one over it, n is a secret.
    """
    _refuse(options, ("sampler", "optimizer", "expected_batch_size", "epochs"))
    sigma = options.get("noise_multiplier") or 0.0
    rate = _rate(learning_rate, projection_radius, clipping_norm)
    if learning_rate is None:
        rate /= math.sqrt(1.0 + model.size * sigma**2)
    return train_dp_sgd(
        model,
        X,
        y,
        clipping_norm=clipping_norm,
        delta=delta,
        steps=steps,
        expected_batch_size=1.0,
        sampler="poisson",
        optimizer=SGD(InverseSquareRoot(rate)),
        projection_radius=projection_radius,
        **({"averaging": MeanOfLast(1.0)} | options),
    )


def _refuse(options: dict[str, Any], fixed: tuple[str, ...]) -> None:
    for name in fixed:
        if name in options:
            raise DomainError(f"{name} is fixed by this trainer; use train_dp_sgd to choose it")


def _rate(given: float | None, radius: float, clipping_norm: float) -> float:
    if given is not None:
        return given
    length = checks.number(RADIUS, radius)
    bound = checks.number(BATCH.renamed("clipping_norm"), clipping_norm)
    return length / bound
