"""Gradients of a risk whose error has a public bound for all possible records.

Rows lie on a public grid, so that BLAS multiplies them without rounding by short pieces of a
parameter and of the slopes. What is left to round is bounded by the number of records and public
constants, and never by where the minimum is (docs/theorems_convex.md, Theorem V10).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.learn.convex.losses import Loss

# Theorem V10 depends on these four: products of rows with pieces, and sums of 1024 = 2^10 of them,
# have at most 53 bits, so that BLAS rounds nothing.
ROW_BITS = 30  # Bits of a coordinate below the bound on its row's norm.
PIECE_BITS = 22  # Bits of a piece of the parameter: ROW_BITS + PIECE_BITS < 53.
SLOPE_BITS = 12  # Bits of the leading piece of a slope: ROW_BITS + SLOPE_BITS + 10 <= 53.
BLOCK = 1024  # Rows that are multiplied at a time.


def grid_rows(rows: FloatArray, norm: float) -> FloatArray:
    """Cut every coordinate to a public grid of steps between 2**-30 and 2**-29 of ``norm``.

    Towards zero, so no row grows; every row by itself, so neighbours stay neighbours.
    """
    step = math.ldexp(1.0, math.frexp(norm)[1] - ROW_BITS)
    kept = rows * (1.0 / step)
    np.trunc(kept, out=kept)
    kept *= step
    return kept


def norm_of(v: FloatArray) -> float:
    """Return the Euclidean norm of all entries."""
    return math.sqrt(float(np.vdot(v, v)))


def two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the computed sum and what it rounded off, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@dataclass(frozen=True)
class Point:
    """A parameter as an unevaluated sum of two arrays: twice the digits of a double."""

    high: FloatArray
    low: FloatArray

    @classmethod
    def of(cls, theta: FloatArray) -> Point:
        """Return a point without a low part."""
        return cls(theta, np.zeros_like(theta))

    def moved(self, direction: FloatArray, step: float) -> Point:
        """Return the point ``step * direction`` further."""
        high, rest = two_sum(self.high, step * direction)
        return Point(*two_sum(high, self.low + rest))

    def pieces(self, finest: int) -> FloatArray:
        """Return arrays whose sum is the point, up to half of 2**finest a coordinate.

        Each is a multiple of a power of two of at most 2**22 times that size in norm (V10).
        """
        largest = norm_of(self.high)
        columns = math.ceil(0.5 * math.log2(self.high.shape[0] + 1))
        place = max(math.frexp(largest)[1] - PIECE_BITS, finest) if largest > 0.0 else finest
        rest, low = self.high, self.low
        found = []
        while True:
            unit = math.ldexp(1.0, place)
            piece = np.rint(rest / unit) * unit
            found.append(piece)
            if place <= finest:
                return np.stack(found, axis=-1)
            rest, low = two_sum(rest - piece, low)
            # What is left is below half a unit a coordinate.
            place = max(place + columns - PIECE_BITS, finest)


@dataclass(frozen=True)
class RegularizedRisk:
    """J(θ) = Σ_i loss(x_i θ, y_i) + (regularization / 2) |θ|² + <linear, θ>, in sum form.

    ``x`` has shape (n, d) and is cut to the grid of :func:`grid_rows`, which defines the risk; θ
    and ``linear`` have shape (d,), or (d, K) for K outputs. ``norm_bound`` bounds the rows.
    """

    x: FloatArray
    y: FloatArray
    loss: Loss
    regularization: float
    linear: FloatArray
    norm_bound: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", grid_rows(self.x, self.norm_bound))

    def gradient(self, slopes: FloatArray, theta: FloatArray) -> FloatArray:
        """Return ∇J in plain arithmetic, given each record's slopes."""
        return self.x.T @ slopes + self.regularization * theta + self.linear

    @property
    def smoothness(self) -> float:
        """A bound on ∇²J."""
        return smoothness(self.loss, len(self.x), self.norm_bound, self.regularization)

    @property
    def reach(self) -> float:
        """The minimum and every point at which an error is claimed are within this of zero."""
        drawn = norm_of(self.linear)
        return reach(self.loss, len(self.x), self.norm_bound, self.regularization, drawn)

    @property
    def gradient_error(self) -> float:
        """A bound on the error of :meth:`exact_gradient` within ``reach`` (V10)."""
        return gradient_error(
            self.loss,
            records=len(self.x),
            shape=self.linear.shape,
            norm=self.norm_bound,
            linear=norm_of(self.linear),
        )

    @property
    def finest(self) -> int:
        """The exponent of the grid that points are rounded to: it costs one rounding a record."""
        size = self.linear.size
        allowed = max(len(self.x), 1) * self.norm_bound * self.loss.slope_bound * U
        return math.frexp(allowed / (self.smoothness * math.sqrt(size)))[1] - 1

    def scores(self, point: Point) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Yield blocks of rows, with their scores as sums of two arrays."""
        pieces = point.pieces(self.finest)
        d, shape = len(pieces), pieces.shape[1:]
        flat = np.ascontiguousarray(pieces.reshape(d, -1))
        for start in range(0, len(self.x), BLOCK):
            rows = slice(start, start + BLOCK)
            # Exact: multiples of one unit, all sums of any of them below 2**53 units.
            parts = (self.x[rows] @ flat).reshape(-1, *shape)
            high, low = parts[..., 0], np.zeros(parts.shape[:-1])
            for k in range(1, parts.shape[-1]):
                high, lost = two_sum(high, parts[..., k])
                low = low + lost
            yield rows, *two_sum(high, low)

    def exact_gradient(self, point: Point) -> FloatArray:
        """Return ∇J, off by at most :attr:`gradient_error` for points within :attr:`reach`."""
        unit = math.ldexp(1.0, math.frexp(self.loss.slope_bound)[1] - SLOPE_BITS)
        total, rest = np.zeros_like(self.linear), np.zeros_like(self.linear)
        for rows, high, low in self.scores(point):
            slopes = self.loss.slope_of_sum(high, low, self.y[rows])
            slopes = slopes.reshape(len(slopes), -1)
            leading = np.rint(slopes / unit) * unit
            both = self.x[rows].T @ np.hstack((leading, slopes - leading))
            k = slopes.shape[1]
            # The leading half is exact, and added without loss.
            total, lost = two_sum(total, both[:, :k].reshape(total.shape))
            rest = rest + (lost + both[:, k:].reshape(total.shape))
        risk = total + rest
        lam = self.regularization
        return np.asarray((risk + self.linear) + lam * point.high + lam * point.low)

    def certified_gradient_norm(self, theta: FloatArray) -> float:
        """Return an upper bound on |∇J(θ)| of exact arithmetic (docs/theorems_convex.md, V10)."""
        # Beyond reach the last additions round by more, and by no more than this.
        beyond = max(norm_of(theta) - self.reach, 0.0)
        far = 8.0 * U * self.regularization * beyond
        found = norm_of(self.exact_gradient(Point.of(theta)))
        return (found + self.gradient_error + far) * (1.0 + 1e-9)


def smoothness(loss: Loss, records: int, norm: float, lam: float) -> float:
    """Return a bound on the Hessian of a risk."""
    return (records * loss.curvature_bound * norm**2 + lam) * (1.0 + 1e-12)


def reach(loss: Loss, records: int, norm: float, lam: float, linear: float = 0.0) -> float:
    """Return three times a bound on |argmin J|: no descent from within a third leaves it (V10)."""
    return 3.0 * (records * norm * loss.slope_bound + linear) / lam * (1.0 + 1e-9)


def largest_target(loss: Loss, records: int, norm: float, lam: float, linear: float = 0.0) -> float:
    """Return where targets may be cut: residuals beyond it have one slope within ``reach``."""
    return 2.0 * (norm * reach(loss, records, norm, lam, linear) + loss.slope_bound)


def gradient_error(
    loss: Loss, *, records: int, shape: tuple[int, ...], norm: float, linear: float
) -> float:
    """Return a bound on the error of an exact gradient; ``linear`` bounds the linear term (V10)."""
    outputs = math.prod(shape[1:])
    blocks = records / BLOCK + 1.0
    # Evaluation; what is left of a slope; its blocks; the last additions; the point's own grid.
    trailing = math.sqrt(outputs) * 2.0**-SLOPE_BITS * (BLOCK + blocks + 4.0)
    each = loss.slope_roundings + trailing + 16.0 + 1.0
    largest = max(records, 1) * norm * loss.slope_bound
    return U * (each * largest + 16.0 * linear) * (1.0 + 1e-6)
