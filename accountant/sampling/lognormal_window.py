"""One Gaussian step below a threshold: nodes and weights for expectations of its likelihood ratio.

Y = exp(μt - μ²/2), t ~ N(0, 1), μ = 1/σ, is the likelihood ratio of one step and D = Y - 1. A
:class:`Window` integrates functions of D over lo < t < hi by Gauss's rule on panels; what that
leaves out and how far it is off is bounded by Theorem S15 (docs/theorems_sampling.md).
"""

from __future__ import annotations

import functools
import math
from enum import Enum
from typing import NamedTuple

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray

NODES = 16
# Ellipses that are tried for every panel, by the sum of their half axes.
RADII = np.array([1.6, 2.2, 3.0, 4.0, 5.5, 7.5, 10.0, 14.0])
MOST_PANELS = 400
_ROOT = math.sqrt(2.0 * math.pi)


class Kind(Enum):
    """What is integrated."""

    LINE = 1
    SQUARE = 2
    WHOLE = 3


class Window(NamedTuple):
    """A quadrature rule for t < hi.

    Attributes
    ----------
    mu : float
        1/σ, the shift of the noise by one contribution, in its standard deviations.
    low, high : float
        The ends of the rule; the mass below ``low`` is bounded, what is above ``high`` left out.
    edges : float64 array
        Ends of the panels.
    excess, weights : float64 arrays of one length
        D at the nodes, and the weights, which include the normal density.
    excess_error, weight_error : float64 arrays
        Absolute round-off of ``excess``, relative round-off of ``weights``.
    mass_above, mean_above : float
        Q{t > hi} and E_Q[Y; t > hi], each within a relative ``tail_error``.
    """

    mu: float
    low: float
    high: float
    edges: FloatArray
    excess: FloatArray
    weights: FloatArray
    excess_error: FloatArray
    weight_error: FloatArray
    mass_above: float
    mean_above: float
    tail_error: float

    @property
    def largest(self) -> float:
        """D at ``high``."""
        return math.expm1(self.mu * self.high - 0.5 * self.mu * self.mu)

    @property
    def least(self) -> float:
        """Y at ``low``."""
        return math.exp(self.mu * self.low - 0.5 * self.mu * self.mu)

    def log_unit(self, rate: float) -> float:
        """Return the logarithm of the unit of :meth:`unseen` and :meth:`quadrature_error`."""
        return -rate * (1.0 - self.least) if rate < -1.0 else max(-rate, 0.0)

    def unseen(self, rate: float) -> float:
        """Bound E[|D| e^{rate·D}; t < low]; at rate < -1 also without the factor |D|."""
        mass = 0.5 * math.erfc(-self.low * math.sqrt(0.5)) * (1.0 + 1e-10) + 1e-300
        density = math.exp(-0.5 * self.low * self.low) / _ROOT * (1.0 + 1e-10) + 1e-300
        if rate >= -1.0:
            # |D| is at most one, and at most its exponent, where that is negative.
            return min(mass, self.mu * (density + 0.5 * self.mu * mass))
        # Y falls by at most Y(low) μ v over a distance v.
        slope = -self.low + rate * self.least * self.mu
        return density * (1.0 + 1e-9) / slope if slope > 1.0 else math.inf

    def quadrature_error(self, kind: Kind, rate: float, frequency: float = 0.0) -> float:
        """Bound the error of the rule, in units of exp(:meth:`log_unit`) (Theorem S15).

        For e^{rate·D}(e^{-i frequency·D} - 1), e^{rate·D} - 1 - rate·D or e^{rate·D}.
        """
        return float(_panel_errors(self.mu, self.edges, kind, rate, frequency).sum())


@functools.lru_cache(maxsize=1)
def _gauss() -> tuple[FloatArray, FloatArray]:
    return np.polynomial.legendre.leggauss(NODES)


def _panel_errors(
    mu: float, edges: FloatArray, kind: Kind, rate: float, frequency: float
) -> FloatArray:
    """Bound the error on every panel by the best of a few ellipses."""
    half = 0.5 * np.diff(edges)[:, None]
    middle = 0.5 * (edges[1:] + edges[:-1])[:, None]
    across, up = half * (0.5 * (RADII + 1.0 / RADII)), half * (0.5 * (RADII - 1.0 / RADII))
    nearest = np.maximum(np.abs(middle) - across, 0.0)
    top = mu * (middle + across) - 0.5 * mu * mu
    bottom = mu * (middle - across) - 0.5 * mu * mu
    turn = np.minimum(mu * up, math.pi)
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.exp(top)
        sine = np.where(turn < 0.5 * math.pi, np.sin(turn), 1.0)
        # |e^v - 1| <= |v| max(1, e^{Re v}), and at most 1 + e^{Re v}
        size = np.hypot(np.maximum(np.abs(top), np.abs(bottom)), mu * up)
        size = np.minimum(size * np.maximum(1.0, largest), 1.0 + largest)
        if rate >= 0.0:
            growth = rate * (largest - 1.0)
        else:
            cosine = np.cos(turn)
            least = np.where(cosine > 0.0, np.exp(bottom), largest) * cosine
            growth = rate * (
                least - (math.exp(mu * edges[0] - 0.5 * mu * mu) if rate < -1.0 else 0.0)
            )
        exponent = growth + 0.5 * (up * up - nearest * nearest)
        factor = np.ones_like(size)
        if kind is Kind.SQUARE:
            exponent = exponent - np.minimum(growth - min(rate, 0.0), 0.0)
            factor = 0.5 * (rate * size) ** 2
        elif kind is Kind.LINE:
            exponent = exponent + frequency * largest * sine
            factor = frequency * size
        # (64/15) M ρ^{-2n} / (1 - ρ^{-2}) on [-1, 1] (Trefethen, Theorem 19.3)
        log_error = exponent + np.log(factor * half / _ROOT + 1e-300)
        log_error += math.log(64.0 / 15.0) - 2.0 * NODES * np.log(RADII)
        log_error -= np.log1p(-(RADII**-2.0))
        error = np.exp(log_error) * (1.0 + 1e-9)
    error = np.where(np.isfinite(error), error, math.inf)
    return np.asarray(error.min(axis=1))


def panels_for(
    mu: float, low: float, high: float, rate: float, frequency: float, most: float
) -> FloatArray:
    """Return ends of panels on which the rule is off by at most ``most`` each, if so many do."""
    kind = Kind.SQUARE if rate >= -1.0 else Kind.WHOLE
    edges = np.linspace(low, high, max(int(high - low), 1) + 1)
    for _ in range(12):
        bad = _panel_errors(mu, edges, Kind.LINE, rate, frequency) > most
        bad |= _panel_errors(mu, edges, kind, rate, 0.0) > most
        if not bad.any() or edges.size > MOST_PANELS:
            break
        middles = 0.5 * (edges[1:] + edges[:-1])[bad]
        edges = np.sort(np.concatenate([edges, middles]))
    return edges


def window(mu: float, edges: FloatArray) -> Window:
    """Return the rule on the given panels."""
    nodes, weights = _gauss()
    half = 0.5 * np.diff(edges)
    middle = 0.5 * (edges[1:] + edges[:-1])
    t = (middle[:, None] + half[:, None] * nodes).ravel()
    w = (half[:, None] * weights).ravel() * np.exp(-0.5 * t * t) / _ROOT
    exponent = mu * t - 0.5 * mu * mu
    excess = np.expm1(exponent)
    # A node is off by 4u(|t| + half), its exponent by 4u more of each term; 8u for expm1.
    moved = 8.0 * U * (np.abs(t) + np.repeat(half, NODES))
    exponent_error = mu * moved + 4.0 * U * (np.abs(mu * t) + mu * mu)
    excess_error = (1.0 + excess) * exponent_error * 1.01 + 8.0 * U * np.abs(excess)
    weight_error = 64.0 * U + 2.0 * np.abs(t) * moved + 2.0 * U * t * t
    high = float(edges[-1])
    root = math.sqrt(0.5)
    mass = 0.5 * math.erfc(high * root)
    mean = 0.5 * math.erfc((high - mu) * root)
    tail_error = (32.0 + 8.0 * (abs(high) + mu + 2.0) ** 2) * U
    return Window(
        mu,
        float(edges[0]),
        high,
        edges,
        excess,
        w,
        excess_error,
        weight_error,
        mass,
        mean,
        tail_error,
    )
