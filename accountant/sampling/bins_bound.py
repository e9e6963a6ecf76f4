"""Balls in bins, conditioned on the record's own bin: sharp where one bin decides.

docs/theorems_matrix.md, Theorem X6 (iii) and (iv).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from accountant._typing import FloatArray
from accountant.mechanisms.normal_masses import cells

_CELLS = 16_384
_REACH = 13.0  # what is beyond has mass below 1e-38, and counts in full
_POWERS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
_LARGEST = 600.0  # of exponents: their exponentials are doubles
_LARGEST_EPSILON = 300.0  # squares of its exponential are doubles, and below those of what is cut


class Circle(NamedTuple):
    """Bins on a circle, some of which come round once more than the others.

    Attributes
    ----------
    bins : int
        Number of bins B.
    lags : tuple of float
        Covariances r_0, r_1, …, r_{b-1} of the log-ratios of bins so far apart, on a circle of at
        least 2b - 1 bins; of two bins that both come round once more, if some do.
    fewer : tuple of float
        Those of two bins of which one comes round once less; ``lags`` if there is none.
    often : int
        How many bins come round once more; B if all do.
    """

    bins: int
    lags: tuple[float, ...]
    fewer: tuple[float, ...]
    often: int

    @classmethod
    def whole(cls, bins: int, lags: tuple[float, ...]) -> Circle:
        """Return a circle all of whose bins come round equally often."""
        return cls(bins, lags, lags, bins)


def conditional_delta(circle: Circle, epsilon: float) -> float:
    """Bound δ(epsilon) of removing a record, ``epsilon`` in nats."""
    if epsilon > _LARGEST_EPSILON:
        return 1.0
    share = circle.often / circle.bins * (1.0 + 1e-15)
    total = share * _given(circle, epsilon, more=True)
    if share < 1.0:
        total += (1.0 - share + 1e-15) * _given(circle, epsilon, more=False)
    return min(total * (1.0 + 1e-14), 1.0)


def _given(circle: Circle, epsilon: float, *, more: bool) -> float:
    """Bound δ(epsilon), given whether the record's bin comes round once more."""
    masses, error, own, parts = _moments(circle, more)
    others = parts[0]
    gamma = math.exp(epsilon) * (1.0 - 1e-13)
    with np.errstate(all="ignore"):
        # The least concave function of the others' part that is above (1 - γ / (own + others))₊.
        beyond = np.maximum(1.0 - gamma / (own + others), 0.0)
        touch = _touch(own, gamma, 1.0)
        line = gamma / touch**2 * others
        bound = np.where((own >= gamma) | (others >= touch - own), beyond, line)
        # Markov's inequality for higher powers, where the others' part is rarely large.
        for power, norm in zip(_POWERS, parts, strict=True):
            touch = _touch(own, gamma, power)
            most = (1.0 - gamma / touch) * (norm / (touch - own)) ** power
            bound = np.where((own < gamma) & (most < bound), most, bound)
    # In positive form: what overflowed counts in full.
    bound = np.where(bound < 1.0, bound, 1.0) * (1.0 + 1e-9)
    total = float(np.dot(masses, np.concatenate([bound, [1.0]])))
    return min(total * (1.0 + error + 1e-9) + 1e-290, 1.0)


def conditional_epsilon(circle: Circle, delta: float, high: float) -> float:
    """Bound ε(delta) of removing a record; ``high`` where nothing below it is certified."""
    low = 0.0
    if not conditional_delta(circle, high) <= delta:
        return high
    while high - low > 1e-5 * high:
        middle = 0.5 * (low + high)
        if conditional_delta(circle, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def _touch(own: FloatArray, gamma: float, power: float) -> FloatArray:
    """Return s = own + y where (1 - γ/s)₊ / y^power is largest, for own < γ."""
    half = (power + 1.0) * gamma
    root = np.sqrt(np.maximum(half**2 - 4.0 * power * gamma * own, 0.0))
    return np.asarray((half + root) / (2.0 * power), dtype=np.float64)


@lru_cache(maxsize=8)
def _moments(
    circle: Circle, more: bool
) -> tuple[FloatArray, float, FloatArray, tuple[FloatArray, ...]]:
    """Return masses of cells of the own log-ratio, and at their ends its part and the rest's."""
    edges = np.linspace(-_REACH, _REACH, _CELLS)
    masses, error = cells(edges, 0.0)
    variance = (circle.lags if more else circle.fewer)[0]
    x = variance + math.sqrt(variance) * edges
    # Round-off of an exponent is far below this part of its size.
    slack = 1.0 + 1e-9 * (1.0 + np.abs(x) + circle.lags[0])
    own = np.exp(np.minimum(x - 0.5 * variance, _LARGEST)) / circle.bins * slack
    own[x - 0.5 * variance >= _LARGEST] = math.inf
    return masses, error, own, tuple(_norm(circle, more, x, power) * slack for power in _POWERS)


def _norm(circle: Circle, more: bool, x: FloatArray, power: float) -> FloatArray:
    """Return the norm in L^power of the other bins' part, given the own log-ratio (Minkowski)."""
    bins, lags, fewer, often = circle
    own, largest = (lags if more else fewer)[0], lags[0]
    away = bins - 2 * len(lags) + 1
    total = np.zeros(x.size)
    for count, variance in ((min(often, away), largest), (max(away - often, 0), fewer[0])):
        total += count * math.exp(min(0.5 * (power - 1.0) * variance, _LARGEST))
    # A neighbour may come round once more or not: the larger of both for the record's own bin.
    for pair in zip(lags[1:], fewer[1:], strict=True):
        options = []
        for lag in pair if more else pair[1:]:
            rest = max(largest - lag * lag / own, 0.0)
            options.append(lag / own * (x - 0.5 * lag) + 0.5 * (power - 1.0) * rest)
        total += 2.0 * np.exp(np.minimum(np.max(options, axis=0), _LARGEST))
    return total / bins
