"""Losses that are a convex, piecewise linear function of one normal variable.

Every theorem of this package bounds the privacy loss of a release by ``max_i (a_i + s_i Z)``, with
Z standard normal. Such a variable has closed forms for all an analysis may ask.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.bounds import Bounds
from accountant.pairs.base import DominatingPair, Masses

# log_ndtr, exp and a few hundred additions lose less than this share: measured below 1e-13.
RELATIVE_ERROR = 1e-11
# Masses beyond this many standard deviations are below e^-800, which no double holds.
FARTHEST = 40.0
BLOCK = 2048  # Edges that are looked for on the same lines: affects speed only.


class ConvexNormalPair(DominatingPair):
    """The pair whose loss is L = max_i (intercepts[i] + slopes[i] z), z ~ N(0, 1) under P.

    Q has density e^{-L} with respect to P; what it lacks to mass one lies outside P's support.

    Parameters
    ----------
    intercepts, slopes : float64 arrays of one shape
        The lines. L must satisfy E e^{-L} <= 1, as it does when it is nonnegative.
    copies : int
        With ``copies`` = c > 1, z has density c φ(z) above the point where that integrates to one:
        the largest of c standard normals of any joint law is stochastically at most this z, so for
        slopes >= 0 this is a union bound (docs/theorems_convex.md, V4).
    """

    def __init__(self, intercepts: FloatArray, slopes: FloatArray, *, copies: int = 1) -> None:
        self._a, self._s = _upper_envelope(intercepts, slopes)
        self._log_copies = math.log(copies)
        self._start = -math.inf if copies == 1 else float(ndtri(1.0 - 1.0 / copies))
        with np.errstate(divide="ignore"):
            crossings = -np.diff(self._a) / np.diff(self._s)
        self._knots = np.concatenate(([-np.inf], crossings, [np.inf]))

    @property
    def support(self) -> tuple[float, float]:
        """An enclosure of the losses, in nats."""
        z = np.append(self._knots[1:-1], self._start)
        lowest = float(self._loss(z[np.isfinite(z)]).min(initial=np.inf))
        grows = self._s[0] < 0.0 or self._s[-1] > 0.0
        flat = float(self._a[self._s == 0.0].min(initial=np.inf))
        low = min(lowest, flat)
        one_sided = len(self._s) == 1 and self._s[0] != 0.0 and self._start == -math.inf
        return (-math.inf if one_sided else low), (math.inf if grows else low)

    @property
    def loss_error(self) -> float:
        """How far, in nats, rounding moves an edge of :meth:`masses`."""
        sizes = np.abs(self._a) + FARTHEST * np.abs(self._s)
        return 8.0 * U * float(sizes.max())

    def profile(self, epsilon: float) -> Bounds:
        """Bracket H(ε) = E[(1 - e^{ε - L})₊]."""
        low, high = self._above(epsilon)
        mass = np.exp(self._log_interval(low, high))
        tilted = np.exp(self._log_tilted(low, high, 1.0, epsilon))
        gap = RELATIVE_ERROR * float(mass.sum())
        value = float((mass - tilted).sum())
        slack = gap * 1e-2 + RELATIVE_ERROR * abs(value)
        slack += _weighted(mass, self._rounding(low, high, 0.0, 0.0))
        slack += _weighted(tilted, self._rounding(low, high, 1.0, epsilon))
        return Bounds(max(value - slack, 0.0), min(max(value, 0.0) + slack, 1.0))

    def rdp(self, order: float) -> float:
        """Return an upper bound on the Rényi divergence of this order, > 1, in nats."""
        u, v = self._pieces()
        logs = self._log_tilted(u, v, 1.0 - order, 0.0)
        top = float(logs.max())
        parts = np.exp(logs - top)
        moment = top + math.log(float(parts.sum()))
        lost = _weighted(parts, self._rounding(u, v, 1.0 - order, 0.0)) / float(parts.sum())
        return (moment + RELATIVE_ERROR * (1.0 + abs(moment)) + lost) / (order - 1.0)

    def masses(self, edges: FloatArray) -> Masses:
        """Return the masses of the cells between increasing ``edges`` of the loss."""
        # {L <= t} is an interval of z, so each cell of the loss is one interval on either side.
        seen = np.maximum(edges, self.support[0])
        right = self._last_below(seen)
        left = -ConvexNormalPair(self._a, -self._s)._last_below(seen)
        # Nothing lies at or below an edge under the minimum: both ends move to the minimiser.
        lowest = self._argmin()
        empty = edges < self.support[0]
        right = np.where(empty, lowest, np.maximum(right, lowest))
        left = np.where(empty, lowest, np.minimum(left, lowest))
        cuts = np.concatenate(([-np.inf], left[::-1], [lowest], right, [np.inf]))
        m = len(edges)
        cell = np.concatenate((np.arange(m, -1, -1), np.arange(m + 1)))
        z = np.unique(np.concatenate((cuts, self._knots)))
        owner = cell[np.clip(np.searchsorted(cuts, z[1:], side="left") - 1, 0, 2 * m + 1)]
        line = np.clip(np.searchsorted(self._knots, z[1:], side="left") - 1, 0, len(self._a) - 1)
        low, high = np.maximum(z[:-1], self._start), np.maximum(z[1:], self._start)
        p = _gathered(owner, np.exp(self._log_interval(low, high)), m + 1)
        logs = self._log_interval(low, high, self._s[line])
        logs = logs - self._a[line] + 0.5 * self._s[line] ** 2
        q = _gathered(owner, np.exp(logs), m + 1)
        q[0] += max(1.0 - float(q.sum()), 0.0)
        # Exponents as large as a line's intercept are rounded before they are taken.
        largest = float((np.abs(self._a) + self._s**2).max())
        return Masses(p, q, 1e-9 + 8.0 * U * largest)

    def _loss(self, z: FloatArray) -> FloatArray:
        return np.asarray((self._a[:, None] + self._s[:, None] * z).max(axis=0, initial=-np.inf))

    def _pieces(self) -> tuple[FloatArray, FloatArray]:
        u = np.maximum(self._knots[:-1], self._start)
        return u, np.maximum(self._knots[1:], u)

    def _above(self, epsilon: float) -> tuple[FloatArray, FloatArray]:
        """Return, for each line, the part of its piece where the loss exceeds ``epsilon``."""
        u, v = self._pieces()
        with np.errstate(divide="ignore", invalid="ignore"):
            root = (epsilon - self._a) / self._s
        low = np.where(self._s > 0.0, np.maximum(u, root), u)
        high = np.where(self._s < 0.0, np.minimum(v, root), v)
        flat = (self._s == 0.0) & ~(self._a > epsilon)
        return low, np.where(flat, low, np.maximum(low, high))

    def _log_tilted(self, low: FloatArray, high: FloatArray, t: float, shift: float) -> FloatArray:
        """Return log ∫ e^{t (shift - L)} over one interval of each line."""
        tilt = t * self._s
        return t * (shift - self._a) + 0.5 * tilt**2 + self._log_interval(low, high, tilt)

    def _log_interval(
        self, low: FloatArray, high: FloatArray, tilt: FloatArray | float = 0.0
    ) -> FloatArray:
        return _log_normal_mass(low + tilt, high + tilt) + self._log_copies

    def _rounding(self, low: FloatArray, high: FloatArray, t: float, shift: float) -> FloatArray:
        """Return the relative error of :meth:`_log_tilted`'s exponentials, beyond a constant (V2).

        Exponents are sums of terms that grow with the squares of slopes; an end of an interval is
        off by its last digit, which counts by the density there against the interval's mass.
        """
        tilt = t * self._s
        a, b = low + tilt, high + tilt
        # The end with more density: zero is between the ends, or one of them is nearer to it.
        near = np.maximum(np.maximum(a, -b), 0.0)
        ends = np.maximum(
            np.where(np.isfinite(a), np.abs(a), 0.0), np.where(np.isfinite(b), np.abs(b), 0.0)
        )
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = near + 1.0 + 1.0 / (high - low)
            exponent = abs(t) * (abs(shift) + np.abs(self._a)) + tilt**2 + near**2
            found = U * (4.0 * exponent + 4.0 * ends * share)
        return np.where(high > low, found, 0.0)

    def _last_below(self, edges: FloatArray) -> FloatArray:
        """Return the largest z with L(z) <= t for each t, as if L were increasing; may be -inf."""
        growing = self._s > 0.0
        found = np.full(len(edges), np.inf)
        if not growing.any():
            return found
        a, s = self._a[growing], self._s[growing]
        for start in range(0, len(edges), BLOCK):
            block = edges[start : start + BLOCK]
            # The larger t, the steeper is the line with the least root: the lines of the block's
            # ends and those between do for all of it (docs/theorems_convex.md, V2).
            ends = [(t - a) / s for t in (block[0], block[-1])]
            first, last = sorted(int(roots.argmin()) for roots in ends)
            if not max(abs(float(roots.min())) for roots in ends) <= FARTHEST:
                first, last = 0, a.size - 1
            some = slice(first, last + 1)
            roots = (block[:, None] - a[some]) / s[some]
            found[start : start + BLOCK] = roots.min(axis=1)
        return found

    def _argmin(self) -> float:
        if self._s[0] >= 0.0:
            return self._start if self._s[0] > 0.0 else float(self._knots[1])
        return float(self._knots[int(np.searchsorted(self._s, 0.0))])


def concave_majorant(
    nodes: FloatArray, values: FloatArray, derivatives: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the vertices of a piecewise linear majorant of a concave function.

    Between nodes the majorant follows the two tangents up to where they meet; it is exact at the
    first and the last node (docs/theorems_convex.md, V2).
    """
    width = np.diff(nodes)
    bend = derivatives[:-1] - derivatives[1:]
    rise = np.diff(values) - derivatives[1:] * width
    with np.errstate(divide="ignore", invalid="ignore"):
        offset = np.where(bend > 0.0, rise / bend, 0.0)
    offset = np.clip(np.nan_to_num(offset), 0.0, width)
    # Either tangent bounds the function; where round-off moved the point, take the larger.
    heights = np.maximum(
        values[:-1] + derivatives[:-1] * offset, values[1:] - derivatives[1:] * (width - offset)
    )
    x = np.concatenate((nodes[:1], nodes[:-1] + offset, nodes[-1:]))
    return x, np.concatenate((values[:1], heights, values[-1:]))


def _upper_envelope(intercepts: FloatArray, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lines that are somewhere the largest, by increasing slope."""
    order = np.lexsort((intercepts, slopes))
    kept: list[tuple[float, float]] = []
    for a, s in zip(intercepts[order].tolist(), slopes[order].tolist(), strict=True):
        if kept and kept[-1][1] == s:
            kept.pop()
        while len(kept) > 1:
            (a0, s0), (a1, s1) = kept[-2:]
            if (a0 - a1) * (s - s1) < (a1 - a) * (s1 - s0):
                break
            kept.pop()
        kept.append((a, s))
    lines = np.array(kept)
    return lines[:, 0], lines[:, 1]


def _log_normal_mass(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return log of the standard normal mass of (low, high], relatively accurate; -inf if empty."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # Towards the nearer tail nothing cancels; the whole line is a NaN here, and not flipped.
        flip = low + high > 0.0
        near, far = np.where(flip, -low, high), np.where(flip, -high, low)
        log_far = log_ndtr(far)
        whole = log_ndtr(near)
        out = whole + np.log1p(-np.exp(np.minimum(log_far - whole, 0.0)))
        width = high - low
        middle = 0.5 * (low + high)
        thin = width * (1.0 + np.abs(middle)) < 0.01
        square = middle**2
        series = (square - 1.0) * width**2 / 24.0 + (
            (square - 6.0) * square + 3.0
        ) * width**4 / 1920.0
        thin_log = np.log(width) - 0.5 * square - 0.5 * math.log(2.0 * math.pi) + np.log1p(series)
    empty = ~(high > low)
    return np.where(empty, -np.inf, np.where(thin, thin_log, out))


def _weighted(masses: FloatArray, errors: FloatArray) -> float:
    """Return Σ mass · error, where no mass is none."""
    kept = masses > 0.0
    return float((masses[kept] * errors[kept]).sum())


def _gathered(owner: NDArray[np.intp], mass: FloatArray, cells: int) -> FloatArray:
    """Return the sum of the masses of each owner."""
    return np.asarray(np.bincount(owner, mass, cells), dtype=np.float64)
