"""Projected gradient descent and one-example private SGD: settings of the DP-SGD loop.

Bassily, Smith and Thakurta (FOCS 2014). Their constants are replaced by the exact account.
"""

from __future__ import annotations

import math
from typing import Any

from accountant import checks
from accountant.errors import DomainError
from accountant.learn.dp_sgd import RADIUS, train_dp_sgd
from accountant.learn.models.base import Model
from accountant.learn.optimizers import SGD, inverse_square_root
from accountant.learn.plan import BATCH, Batches, Noise
from accountant.learn.result import MeanOfLast, TrainingResult


def train_projected_gradient_descent(
    model: Model,
    X: object,
    y: object,
    *,
    noise: Noise,
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
    model, X, y, noise, clipping_norm, delta, steps
        As in :func:`train_dp_sgd` and :class:`Batches`.
    projection_radius : float
        Of the ball around the origin.
    expected_records : float
        A public estimate of the number of records, which the noisy sum is divided by. The number
        itself is a secret: it may be 0 to 2²⁴, and nothing depends on it.
    learning_rate : float, optional
        Of the first step; step t takes it over √(t + 1). By default the radius over the clipping
        norm.
    **options
        Further arguments of :func:`train_dp_sgd`: ``averaging`` (the mean of all iterates by
        default), ``checkpoint``, …

    Returns
    -------
    TrainingResult
        As of :func:`train_dp_sgd`.

    Notes
    -----
    *Guarantee.* As :func:`train_dp_sgd` with q = 1: (√steps / noise_multiplier)-GDP.
    """
    rate = _rate(learning_rate, projection_radius, clipping_norm)
    batches = Batches(expected_records, steps=steps, sampler="full")
    return _train(
        model, X, y, batches, rate, options, noise=noise, clipping_norm=clipping_norm, delta=delta,
        projection_radius=projection_radius,
    )  # fmt: skip


def train_one_example_sgd(
    model: Model,
    X: object,
    y: object,
    *,
    noise: Noise,
    clipping_norm: float,
    delta: float,
    steps: int,
    projection_radius: float,
    sampling_probability: float | None = None,
    learning_rate: float | None = None,
    **options: Any,
) -> TrainingResult:
    """Train by private SGD on one expected record a step, projected onto a ball.

    The batch is a Poisson sample with expectation one, as the account needs it, where the original
    draws exactly one record. Parameters are those of :func:`train_projected_gradient_descent`; the
    default rate takes the noise into account, radius / (clipping_norm √(1 + d σ²)) with d
    parameters, when the noise multiplier is given.

    Notes
    -----
    *Guarantee.* As :func:`train_dp_sgd` with q = 1/n, which declares the number of records n
    public; with ``sampling_probability``, about one over it, n is a secret.
    """
    sigma = noise.noise_multiplier or 0.0
    rate = _rate(learning_rate, projection_radius, clipping_norm)
    if learning_rate is None:
        rate /= math.sqrt(1.0 + model.size * sigma**2)
    batches = Batches(1.0, steps=steps, sampling_probability=sampling_probability)
    return _train(
        model, X, y, batches, rate, options, noise=noise, clipping_norm=clipping_norm, delta=delta,
        projection_radius=projection_radius,
    )  # fmt: skip


def _train(
    model: Model,
    X: object,
    y: object,
    batches: Batches,
    rate: float,
    options: dict[str, Any],
    **given: Any,
) -> TrainingResult:
    """Train with a rate that falls with the root of the step, unless more is asked for."""
    for name in ("batches", "optimizer"):
        if name in options:
            raise DomainError(f"{name} is fixed by this trainer; use train_dp_sgd to choose it")
    optimizer = SGD(inverse_square_root(rate))
    options = {"averaging": MeanOfLast(1.0)} | options
    return train_dp_sgd(model, X, y, batches=batches, optimizer=optimizer, **given, **options)


def _rate(given: float | None, radius: float, clipping_norm: float) -> float:
    if given is not None:
        return given
    length = checks.number(RADIUS, radius)
    bound = checks.number(BATCH.renamed("clipping_norm"), clipping_norm)
    return length / bound
