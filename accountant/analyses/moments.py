"""Moments of the privacy loss that a filter may add up (Theorem L17).

:func:`truncated` bounds the moments E[e^(bL); L <= T] of the losses up to an end, and the mass
P{L > T} beyond it. Where few outcomes have a loss far above all others, as under Poisson sampling,
the moments of all losses are nearly those of these outcomes; cut off, they cost next to nothing. A
loss is put on a lattice that is fine at zero and widens in proportion, each cell by its chord
(Theorem G2), which uses the masses under both P and Q. Most of a moment is 1 + b·(P - Q), which is
known exactly; only the rest is summed, so that its error is relative to the moment less one.

:func:`is_within` tells whether sums of log-moments at several orders keep an (ε, δ): with equal
weights w fixed in advance, and sums k_j at b_j = α_j - 1, any probabilities p with s = Σ p_j·b_j
and

    Σ p_j·(k_j + log(p_j/w_j)) + log c_s <= s·ε + log δ,    c_s = s^s / (1 + s)^(1 + s),

certify it. The best p is found by bisection; what it gives is evaluated once, with its rounding.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.pairs.base import DominatingPair
from accountant.search import bisect

# Cells on each side of zero.
_CELLS = 700
_FINE = 32.0  # cells that fit into a standard deviation at zero

# Losses beyond are never told apart.
_REACH = 64.0

# Masses are known to within 1e-300, too: next to those below, that is not nothing.
_TINY = 1e-280


class Truncated(NamedTuple):
    """Upper bounds for each of the ends T.

    Attributes
    ----------
    ends : float64 array of shape (m,)
        The ends T > 0, increasing, in nats: no loss that is not beyond is larger.
    logs : float64 array of shape (orders, m)
        log E[e^(bL); L <= T], or 0 where it is negative.
    beyond : float64 array of shape (m,)
        P{L > T}, infinite losses included.
    """

    ends: FloatArray
    logs: FloatArray
    beyond: FloatArray


class _Cells(NamedTuple):
    """The masses of the cells, and the part of each at its upper knot, between two bounds."""

    edges: FloatArray
    masses: FloatArray
    least: FloatArray
    most: FloatArray
    bottom: tuple[float, float]
    beyond: FloatArray  # the mass above each edge but the first
    error: float


def truncated(
    pair: DominatingPair, below: tuple[float, ...], spread: float, reach: float
) -> Truncated | None:
    """Return truncated moments at orders 1 + ``below``; None where the masses do not add up to 1.

    Parameters
    ----------
    pair : DominatingPair
        With a loss distribution.
    below : tuple of float
        b > 0.
    spread : float
        About a standard deviation of the loss; it decides how fine the lattice is.
    reach : float
        No end is larger.
    """
    cells = _cells(pair, spread, min(reach, _REACH))
    if cells is None:
        return None
    first = len(cells.edges) // 2  # the cell above zero
    logs = np.array([_log_moments(cells, b)[first:] for b in below])
    ends = cells.edges[first + 1 :]
    if cells.error > 0.0:  # the masses may be those of edges that lie as much higher
        ends = np.nextafter(ends + cells.error, np.inf)
    return Truncated(ends, logs, cells.beyond[first:])


def _log_moments(cells: _Cells, b: float) -> FloatArray:
    """Return log E[e^(bL); L <= T], rounded up, at every edge T but the first."""
    knots = _rest(cells.edges, b)
    low, high = knots[:-1], knots[1:]
    with np.errstate(over="ignore", invalid="ignore"):
        part = np.where(high > low, cells.most, cells.least)
        each = cells.masses * ((1.0 - part) * low + part * high * (1.0 + 4.0 * U))
        each = np.where(np.isnan(each), math.inf, each)
        rest = np.cumsum(each) * (1.0 + (len(each) + 8) * U)
    p, q = cells.bottom
    # Below the lattice the moment is at most its value at the end. What the tangent 1 + b(1 - e^-L)
    # lacks there is b times the mass under Q; what it lacks beyond T is negative.
    ends = p * math.exp(b * float(cells.edges[0])) * (1.0 + 2048.0 * U) + 1e-300
    whole = rest + ends + b * (q + math.expm1(cells.error))
    return np.asarray(np.log1p(whole * (1.0 + 16.0 * U)) * (1.0 + 8.0 * U) + b * cells.error)


def _rest(x: FloatArray, b: float) -> FloatArray:
    """Return e^(bx) - 1 - b(1 - e^-x) >= 0, rounded up: a convex function of e^-x."""
    with np.errstate(over="ignore"):
        one, two = np.expm1(b * x), np.expm1(-x)
        error = 8.0 * np.abs(one) + np.abs(b * x) * (np.abs(one) + 1.0) + 8.0 * b * np.abs(two)
        return np.asarray(np.maximum(one + b * two, 0.0) + U * error)


@functools.lru_cache(maxsize=64)
def _cells(pair: DominatingPair, spread: float, reach: float) -> _Cells | None:
    """Return the masses of a pair on the lattice of a spread."""
    edges = _edges(spread, reach)
    found = pair.masses(edges)
    if not (abs(float(np.sum(found.p)) - 1.0) < 1e-6 > abs(float(np.sum(found.q)) - 1.0)):
        return None
    relative, error = found.relative_error, pair.loss_error
    if not (relative < 0.1 and error < 0.1):
        return None
    factor = 1.0 + relative + 4.0 * U
    p = found.p * factor + 1e-300
    inner = found.p[1:-1]
    known = (inner > _TINY) & (found.q[1:-1] > _TINY)
    ratio = np.where(known, found.q[1:-1] / np.where(known, inner, 1.0), 0.0) * np.exp(edges[:-1])
    width = -np.expm1(-np.diff(edges))
    # Of p, q, the exponential, the width and the quotients; e^-L at edges off by the error.
    slack = (1.0 + relative) / (1.0 - relative) * math.exp(error) - 1.0 + 32.0 * U
    most = np.where(known, (1.0 - ratio * (1.0 - slack)) / width * (1.0 + 8.0 * U), 1.0)
    least = np.where(known, (1.0 - ratio * (1.0 + slack)) / width * (1.0 - 8.0 * U), 0.0)
    above = np.cumsum(p[::-1])[::-1] * (1.0 + (len(p) + 4) * U)
    return _Cells(
        edges,
        p[1:-1],
        np.clip(least - 4.0 * U, 0.0, 1.0),
        np.clip(most + 4.0 * U, 0.0, 1.0),
        (float(p[0]), float(found.q[0]) * factor + 1e-300),
        above[2:],
        error,
    )


def _edges(spread: float, reach: float) -> FloatArray:
    """Return increasing edges from -reach to reach, symmetric, finest at 0."""
    step = min(spread / _FINE, reach / _CELLS)
    # step·sinh(growth·cells)/growth = reach; any growth is sound.
    grid = 2.0**-20

    def short(k: int) -> bool:
        growth = k * grid
        return step * math.sinh(growth * _CELLS) / growth <= reach

    growth = max(bisect(short, 1, 1 << 16), 1) * grid
    half = np.sinh(np.arange(1, _CELLS + 1) * growth)
    half *= reach / half[-1]
    return np.concatenate([-half[::-1], [0.0], half])


# The certificate is flat at its best: half the digits of x are enough.
_HALVINGS = 26
_DIGITS = 40


def is_within(logs: Sequence[float], below: Sequence[float], epsilon: float, delta: float) -> bool:
    """Tell whether log-moments at orders 1 + ``below`` are certified to keep (ε, δ).

    ``logs`` >= 0 are upper bounds, perhaps infinite; ``delta`` > 0.
    """
    rows = [(k, b) for k, b in zip(logs, below, strict=True) if k < math.inf]
    if not rows:
        return False
    low = epsilon + math.log1p(1.0 / max(b for _, b in rows))
    high = epsilon + math.log1p(1.0 / min(b for _, b in rows))
    for _ in range(_HALVINGS):
        x = 0.5 * (low + high)
        s = _mean(_weights(rows, x), rows)
        low, high = (low, x) if x > epsilon + math.log1p(1.0 / s) else (x, high)
    return _excess(_weights(rows, low), rows, len(logs), epsilon, delta) <= 0.0


def used(logs: Sequence[float], below: Sequence[float], epsilon: float, delta: float) -> float:
    """Return the least t, rounded up, such that ``logs`` / t keep (ε, δ); infinite above 2**40."""
    if not any(logs):
        return 0.0

    def fits(part: float) -> bool:
        return is_within([k / part * (1.0 + 2.0 * U) for k in logs], below, epsilon, delta)

    high = 1.0
    while not fits(high):
        high *= 2.0
        if high > 2.0**40:
            return math.inf
    low = 0.5 * high
    while high <= 1.0 and low > 2.0**-40 and fits(low):
        low, high = 0.5 * low, low
    for _ in range(_DIGITS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _weights(rows: Sequence[tuple[float, float]], x: float) -> list[float]:
    """Return the probabilities proportional to e^(b·x - k)."""
    exponents = [b * x - k for k, b in rows]
    most = max(exponents)
    found = [math.exp(each - most) for each in exponents]
    whole = math.fsum(found)
    return [each / whole for each in found]


def _mean(weights: Sequence[float], rows: Sequence[tuple[float, float]]) -> float:
    return math.fsum(p * b for p, (_, b) in zip(weights, rows, strict=True))


def _excess(
    weights: Sequence[float],
    rows: Sequence[tuple[float, float]],
    orders: int,
    epsilon: float,
    delta: float,
) -> float:
    """Return the left side of the condition less the right side, rounded up."""
    s = _mean(weights, rows)
    moments = math.fsum(p * k for p, (k, _) in zip(weights, rows, strict=True))
    apart = [p * math.log(p * orders) for p in weights if p > 0.0]
    tail = s * math.log1p(1.0 / s) + math.log1p(s)  # -log c_s
    terms = (moments, math.fsum(apart), -tail, -s * epsilon, -math.log(delta))
    sizes = moments + math.fsum(map(abs, apart)) + tail + s * epsilon + abs(math.log(delta)) + 1.0
    # The weights add up to one but for their rounding, which changes each sum by a like part.
    return math.fsum(terms) + (2.0 * len(rows) + 64.0) * U * sizes
