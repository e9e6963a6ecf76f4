"""The exact analysis: invert the moment-generating function of the privacy loss on a contour.

Arguments are already checked (:mod:`accountant.checks`): floats, or float64 arrays that broadcast
to ``shape``. Counts are exact floats. Every function brackets the larger of the two directions of
add-or-remove. The Rényi analysis adds up divergences at every real order and converts the sum: its
functions, called ``…upper``, are bounds from above.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import NORMAL, lift
from accountant._core import answers as core
from accountant.broadcasting import flatten, in_chunks, run_tasks
from accountant.checks import Checked


def evaluate(
    fill: Callable[..., None],
    shape: tuple[int, ...],
    values: tuple[Checked, ...],
    workers: int,
    *options: int,
) -> tuple[FloatArray, FloatArray]:
    """Return the two outputs of a native ``fill_`` loop over values broadcast to ``shape``."""
    rows = flatten(shape, values)
    size = math.prod(shape)
    first, second, statuses = np.empty(size), np.empty(size), np.empty(size, dtype=np.intc)

    def loop(part: slice) -> None:
        fill(*(row[part] for row in rows), *options, first[part], second[part], statuses[part])

    in_chunks(loop, size, workers)
    core.check_statuses(statuses)
    return first.reshape(shape), second.reshape(shape)


def shared(
    fill: Callable[..., None], shape: tuple[int, ...], values: tuple[Checked, ...], workers: int
) -> tuple[FloatArray, FloatArray]:
    """Return the two outputs of a native loop in which neighbours share what they compute.

    ``values`` are q, sigma, steps and delta. The division into tasks depends on them alone, so
    that threads change no result.
    """
    rows = flatten(shape, values)
    size = math.prod(shape)
    first, second, statuses = np.empty(size), np.empty(size), np.empty(size, dtype=np.intc)
    order = _neighbours(*rows)
    rows = [row[order] for row in rows]

    def loop(part: slice) -> None:
        at = order[part]
        low, high, codes = np.empty(at.size), np.empty(at.size), np.empty(at.size, dtype=np.intc)
        fill(*(row[part] for row in rows), low, high, codes)
        first[at], second[at], statuses[at] = low, high, codes

    run_tasks(loop, _tasks(rows[0], rows[1]), workers)
    core.check_statuses(statuses)
    return first.reshape(shape), second.reshape(shape)


# Deviations of the loss within which questions about delta are neighbours.
_DEPTH = 4.0
# Questions that a task has at least, unless there are no more.
_FEW = 16
_MANY = 1024  # questions that a task has at most


def _neighbours(
    q: FloatArray, sigma: FloatArray, steps: FloatArray, delta: FloatArray
) -> NDArray[np.intp]:
    """Return the order in which neighbouring questions follow each other."""
    depth = np.floor(np.sqrt(-2.0 * np.log(delta)) / _DEPTH)
    keys = [row for row in (delta, steps, depth, sigma, q) if row.size and (row != row[0]).any()]
    return np.lexsort(keys) if keys else np.arange(q.size)


def _tasks(q: FloatArray, sigma: FloatArray) -> list[slice]:
    """Divide sorted questions where the mechanism changes, and very many of one."""
    edges = [0]
    for new in (np.flatnonzero((np.diff(q) != 0.0) | (np.diff(sigma) != 0.0)) + 1).tolist():
        edges.extend(range(edges[-1] + _MANY, new, _MANY))
        if new - edges[-1] >= _FEW:
            edges.append(new)
    edges.extend(range(edges[-1] + _MANY, q.size, _MANY))
    return [slice(*ends) for ends in itertools.pairwise([*edges, q.size]) if q.size]


def at_zero_delta(q: Checked, sigma: Checked, steps: Checked) -> FloatArray:
    """Return ε(0), which is infinite for Gaussian noise unless nothing is released."""
    trivial = np.equal(q, 0.0) | np.equal(steps, 0.0) | np.equal(sigma, np.inf)
    return np.where(trivial, 0.0, np.inf)


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
