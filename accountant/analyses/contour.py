"""The exact analysis: invert the moment-generating function of the privacy loss on a contour.

Arguments are already checked (:mod:`accountant.checks`): floats, or float64 arrays that broadcast
to ``shape``. Counts are exact floats. Every function brackets the larger of the two
directions of add-or-remove.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from accountant._core import answers as core
from accountant._typing import FloatArray
from accountant.analyses.array_evaluation import at_zero_delta, evaluate, shared
from accountant.checks import Checked

EITHER = core.EITHER

# The native entries themselves, for calls with delta > 0 and a finite ε: they take a direction as
# well, and set the floating-point environment that they need.
native_delta_bounds: Callable[..., tuple[float, float]] = core.delta_bounds
native_epsilon_bounds: Callable[..., tuple[float, float]] = core.epsilon_bounds


def epsilon_bounds(q: float, sigma: float, steps: float, delta: float) -> tuple[float, float]:
    """Bracket ε(delta)."""
    if delta > 0.0:
        return core.epsilon_bounds(q, sigma, steps, delta, EITHER)
    epsilon = float(at_zero_delta(q, sigma, steps))
    return epsilon, epsilon


def delta_bounds(q: float, sigma: float, steps: float, epsilon: float) -> tuple[float, float]:
    """Bracket δ(epsilon)."""
    if epsilon < math.inf:
        return core.delta_bounds(q, sigma, steps, epsilon, EITHER)
    # No mass of the loss lies at infinity.
    return 0.0, 0.0


def each_epsilon_bounds(
    shape: tuple[int, ...], q: Checked, sigma: Checked, steps: Checked, delta: Checked, workers: int
) -> tuple[FloatArray, FloatArray]:
    """Bracket ε(delta) for every element."""
    zero = np.equal(delta, 0.0)
    values = (q, sigma, steps, np.where(zero, 0.5, delta))
    lower, upper = shared(core.fill_shared_epsilon_bounds, shape, values, workers)
    limit = at_zero_delta(q, sigma, steps)
    return np.where(zero, limit, lower), np.where(zero, limit, upper)


def each_delta_bounds(
    shape: tuple[int, ...],
    q: Checked,
    sigma: Checked,
    steps: Checked,
    epsilon: Checked,
    workers: int,
) -> tuple[FloatArray, FloatArray]:
    """Bracket δ(epsilon) for every element."""
    infinite = np.equal(epsilon, np.inf)
    values = (q, sigma, steps, np.where(infinite, 0.0, epsilon))
    lower, upper = evaluate(core.fill_delta_bounds, shape, values, workers, EITHER)
    return np.where(infinite, 0.0, lower), np.where(infinite, 0.0, upper)
