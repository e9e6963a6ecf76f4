"""The Rényi analysis: it adds up divergences at every real order and converts the sum.

Arguments are already checked, as in :mod:`accountant.analyses.contour`. Every function is an upper
bound in the larger of the two directions of add-or-remove.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import NORMAL, lift
from accountant._core import answers as core
from accountant.analyses.contour import at_zero_delta, evaluate
from accountant.checks import Checked

# The native entry itself, for delta > 0: it returns the order as well.
native_epsilon_upper: Callable[..., tuple[float, float]] = core.epsilon_renyi_upper


def epsilon_upper(q: float, sigma: float, steps: float, delta: float) -> float:
    """Bound ε(delta) from above, at the best order."""
    if delta > 0.0:
        return core.epsilon_renyi_upper(q, sigma, steps, delta)[0]
    return float(at_zero_delta(q, sigma, steps))


def divergence_upper(q: float, sigma: float, steps: float, order: float) -> float:
    """Bound the Rényi divergence of ``steps`` steps from above."""
    # Zero steps spend nothing, even if one step's divergence overflows.
    if steps == 0:
        return 0.0
    one = core.renyi_bounds(q, sigma, order, core.EITHER)[1]
    # What underflows has lost digits, or all of itself, before it is multiplied.
    product = steps * (lift(one) if q > 0.0 and sigma < math.inf else one)
    # One rounding, to nearest: the next double is above the exact product. Zero is exact.
    return math.nextafter(product, math.inf) if product > 0.0 else 0.0


def each_epsilon_upper(
    shape: tuple[int, ...], q: Checked, sigma: Checked, steps: Checked, delta: Checked, workers: int
) -> FloatArray:
    """Bound ε(delta) from above for every element."""
    zero = np.equal(delta, 0.0)
    values = (q, sigma, steps, np.where(zero, 0.5, delta))
    upper, _ = evaluate(core.fill_epsilon_renyi_upper, shape, values, workers)
    return np.where(zero, at_zero_delta(q, sigma, steps), upper)


def each_divergence_upper(
    shape: tuple[int, ...],
    q: Checked,
    sigma: Checked,
    steps: Checked,
    orders: Checked,
    workers: int,
) -> FloatArray:
    """Bound the Rényi divergence of ``steps`` steps from above for every element."""
    # One step's divergence does not depend on steps: evaluate it on the smaller shape.
    inner = np.broadcast_shapes(np.shape(q), np.shape(sigma), np.shape(orders))
    values = (q, sigma, orders)
    _, one_step = evaluate(core.fill_renyi_bounds, inner, values, workers, core.EITHER)
    some = np.greater(steps, 0.0)
    seen = np.greater(q, 0.0) & np.less(sigma, math.inf)
    one_step = np.where(seen, np.maximum(one_step, NORMAL), one_step)  # as above
    # An overflow to infinity is still an upper bound.
    with np.errstate(over="ignore"):
        total = np.multiply(np.where(some, steps, 1.0), one_step)
        return np.where(some & (total > 0.0), np.nextafter(total, np.inf), np.zeros(shape))
