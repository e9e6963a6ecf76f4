"""DP-SGD seen by a user with several records: the group of a Poisson-subsampled Gaussian.

Arguments are already checked, as in :mod:`accountant.analyses.contour`, and ``records`` is the
number of records that one user contributes. One record takes the native analyses of equal steps;
more are a mixture of Gaussians (docs/theorems_mechanisms.md, Theorem M15). Every function answers
for the larger of the two directions of add-or-remove.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.binding import bound
from accountant.analyses import contour
from accountant.broadcasting import flatten, run_tasks


def epsilon_bounds(
    q: float, sigma: float, steps: float, delta: float, records: float
) -> tuple[float, float]:
    """Bracket ε(delta)."""
    if records == 1.0 or _is_nothing(q, sigma, steps):
        return contour.epsilon_bounds(q, sigma, steps, delta)
    lower, upper = _mechanism(q, sigma, steps, records).epsilon_bounds(delta)
    return float(lower), float(upper)


def delta_bounds(
    q: float, sigma: float, steps: float, epsilon: float, records: float
) -> tuple[float, float]:
    """Bracket δ(epsilon)."""
    if records == 1.0 or _is_nothing(q, sigma, steps):
        return contour.delta_bounds(q, sigma, steps, epsilon)
    lower, upper = _mechanism(q, sigma, steps, records).delta_bounds(epsilon)
    return float(lower), float(upper)


def renyi_epsilon_upper(
    q: float, sigma: float, steps: float, delta: float, records: float
) -> float:
    """Bound ε(delta) from above by the Rényi curve, at the best order."""
    if records == 1.0 or _is_nothing(q, sigma, steps) or delta == 0.0:
        return contour.epsilon_upper(q, sigma, steps, delta)
    from accountant.analyses import renyi_conversion

    problems = _mechanism(q, sigma, steps, records).profile().problems
    return max(renyi_conversion.epsilon_upper(parts, delta) for parts in problems)


def divergence_upper(q: float, sigma: float, steps: float, order: float, records: float) -> float:
    """Bound the Rényi divergence from above."""
    if records == 1.0 or _is_nothing(q, sigma, steps):
        return contour.divergence_upper(q, sigma, steps, order)
    return float(_mechanism(q, sigma, steps, records).rdp(order))


def each(question: Callable[..., Any], shape: tuple[int, ...], *values: Any) -> Any:
    """Answer ``question`` for every element of what broadcasts to ``shape``.

    The last of ``values`` is the number of threads. Brackets come as two arrays.
    """
    *arguments, threads = values
    rows = [row.tolist() for row in flatten(shape, arguments)]
    tasks = list(zip(*rows, strict=True))
    answers = run_tasks(lambda task: question(*task), tasks, threads)
    if question in (epsilon_bounds, delta_bounds):
        ends: FloatArray = np.array(answers, dtype=np.float64).reshape(-1, 2)
        return ends[:, 0].reshape(shape), ends[:, 1].reshape(shape)
    return np.array(answers, dtype=np.float64).reshape(shape)


def _is_nothing(q: float, sigma: float, steps: float) -> bool:
    return q == 0.0 or steps == 0.0 or sigma == math.inf


def _mechanism(q: float, sigma: float, steps: float, records: float) -> Any:
    return bound().steps_of_user(q, sigma, int(steps), int(records))
