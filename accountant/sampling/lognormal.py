"""The likelihood ratio Y = exp(μt - μ²/2), t ~ N(0, 1), μ = 1/σ, of one Gaussian step.

Y is log-normal with mean one. Its law is kept on a grid in two ways (docs/theorems_sampling.md,
Theorem S5): *spread*, where every value moves to the two grid points around it and keeps its mean,
which is larger in the convex order; and *merged*, where the values of a cell become their mean,
which is smaller. A :class:`Window` integrates functions of the excess D = Y - 1 over lo < t < hi by
Gauss's rule on panels; what that leaves out and how far it is off is bounded by Theorem S15.
"""

from __future__ import annotations

import functools
import math
from enum import Enum
from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant._core import tools
from accountant.errors import PrecisionError

_SQRT2 = math.sqrt(2.0)


class Law(NamedTuple):
    """A law on finitely many values >= 0 that bounds another one from one side.

    Attributes
    ----------
    values, masses : float64 arrays of one length
        Increasing values and their masses.
    escaped : float
        The mean that was moved to infinity (spread laws only).
    mass_error, value_error : float
        Relative errors of the masses and of the values: the statement of Theorem S5 holds after
        multiplying each by a factor within these of one, on the unfavourable side.
    """

    values: FloatArray
    masses: FloatArray
    escaped: float
    mass_error: float
    value_error: float


class Cells(NamedTuple):
    """Masses and first moments of the cells ``[0, y₀), [y₀, y₁), …, [y_{n-1}, ∞)`` of Y."""

    edges: FloatArray
    masses: FloatArray
    moments: FloatArray
    mass_error: float
    value_error: float


def normal_tail(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return P{N(0, 1) > z} and the absolute error of each."""
    tail = 0.5 * tools.libm("erfc", z / _SQRT2)
    # 16 units for erfc, and its argument's rounding times the logarithmic derivative.
    return tail, tail * (16.0 + 4.0 * (z * z + 2.0)) * U + 1e-320


def lognormal_cells(scores: FloatArray, noise_multiplier: float) -> Cells:
    """Return the cells of Y between the edges y = exp(z/σ - 1/2σ²), z the increasing ``scores``."""
    inverse = 1.0 / noise_multiplier
    exponents = scores * inverse - 0.5 * inverse * inverse
    edges = np.exp(exponents)
    masses, mass_error = _normal_cells(scores)
    moments, moment_error = _normal_cells(scores - inverse)
    # The shift of the score by 1/σ is rounded: 2u(|z| + 1/σ), times the density over the mass of
    # a cell, which is at most a few over the cell's width.
    width = float(np.diff(scores).min())
    reach = float(np.abs(scores).max()) + inverse
    moment_error += 4.0 * U * reach * (reach + 2.0 / width)
    exponent_error = (float(np.abs(exponents).max()) * 4.0 + 16.0) * U
    return Cells(
        edges, masses, moments, mass_error, 4.0 * (mass_error + moment_error + exponent_error)
    )


def _normal_cells(z: FloatArray) -> tuple[FloatArray, float]:
    """Return the standard normal masses of the cells between ``z``, and their relative error."""
    upper, upper_error = normal_tail(np.maximum(z, 0.0))
    lower, lower_error = normal_tail(np.maximum(-z, 0.0))
    # Differences of the smaller tails: no cancellation against one.
    above = z[:-1] >= 0.0
    masses = np.where(above, upper[:-1] - upper[1:], lower[1:] - lower[:-1])
    errors = np.where(above, upper_error[:-1] + upper_error[1:], lower_error[1:] + lower_error[:-1])
    straddling = (z[:-1] < 0.0) & (z[1:] > 0.0)
    masses = np.where(straddling, 1.0 - lower[:-1] - upper[1:], masses)
    errors = np.where(straddling, lower_error[:-1] + upper_error[1:] + 2.0 * U, errors)
    if not bool((masses > 0.0).all()):
        raise PrecisionError("the grid of the likelihood ratio is finer than its masses resolve")
    relative = float((errors / masses).max()) + 2.0 * U
    first = lower[0] if z[0] < 0.0 else 1.0 - upper[0]
    last = upper[-1] if z[-1] > 0.0 else 1.0 - lower[-1]
    ends = 64.0 * U * (2.0 + float(np.abs(z[[0, -1]]).max()) ** 2)
    return np.concatenate([[first], masses, [last]]), max(relative, ends)


def spread(cells: Cells) -> Law:
    """Move each cell's mass to its ends, keeping its mean: larger in the convex order."""
    left = np.concatenate([[0.0], cells.edges[:-1]])
    means = cells.moments[:-1] / cells.masses[:-1]
    share = np.clip((means - left) / (cells.edges - left), 0.0, 1.0)
    masses = np.zeros(cells.edges.size + 1)
    masses[:-1] += cells.masses[:-1] * (1.0 - share)
    masses[1:] += cells.masses[:-1] * share
    # Above the last edge: the mass stays there and the rest of its mean goes to infinity.
    masses[-1] += cells.masses[-1]
    return Law(
        np.concatenate([[0.0], cells.edges]),
        masses,
        float(cells.moments[-1]),
        cells.mass_error + 8.0 * U,
        cells.value_error + 16.0 * U,
    )


def merged(cells: Cells) -> Law:
    """Replace each cell by its mean: smaller in the convex order."""
    # What is left out only lowers expectations of non-negative functions.
    kept = cells.masses > 1e-290
    return Law(
        cells.moments[kept] / cells.masses[kept],
        cells.masses[kept],
        0.0,
        cells.mass_error,
        cells.value_error + 4.0 * U,
    )


# Nodes of Gauss's rule on a panel.
NODES = 16
# Ellipses that are tried for every panel, by the sum of their half axes; all of them are valid.
RADII = np.array([1.6, 2.2, 3.0, 4.0, 5.5, 7.5, 10.0, 14.0])
# Panels are not halved beyond this number.
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
    """Return ends of panels on which the rule is off by at most ``most`` each, if enough do."""
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
