"""Private rows: one layout, clipping, and sums whose rounding has a public bound.

A risk's rows lie on a public grid besides, so that BLAS multiplies them without rounding by short
pieces of a parameter and of the slopes. What is left to round is bounded by the number of records
and public constants, and never by where the minimum is (docs/theorems_convex.md, Theorem V10).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.errors import DomainError
from accountant.learn.convex.losses import SLOPE_ROUNDINGS, Loss
from accountant.learn.validation import numbers

# Clipped rows end this share inside the ball, so that no rounding puts them outside (V12).
INSIDE = 1.0 - 2.0**-40
# Columns of one inner product: NumPy cuts longer sums at places of its own, and a single row
# elsewhere than one of several. Theorem V12 depends on it.
TOGETHER = 4096
# Rows that one matrix product adds before the blocks are added pairwise: the bound of
# gradient_rounding contains it.
BLOCK = 256


def table(x: object) -> FloatArray:
    """Return ``x`` as a float64 matrix, row by row in memory; what cannot be read is NaN.

    Sums over a row round by the row's layout (Theorem V12), and what clips one long row copies all
    of them: only one layout may ever be met.
    """
    rows = np.require(numbers("x", x), requirements=["C", "A", "E"])
    if rows.ndim != 2:
        raise DomainError(f"x must have two dimensions, (records, columns); got {rows.ndim}")
    if not rows.shape[1]:
        raise DomainError("x must have at least one column; got none")
    return rows


def clip_rows(rows: FloatArray, norm: float) -> FloatArray:
    """Scale every row longer than ``norm`` down to it; rows within are unchanged.

    A row that is not finite, or whose squares overflow, becomes zero, and so adds nothing.
    """
    with np.errstate(all="ignore"):  # a warning would say something about a record
        lengths = np.sqrt(row_products(rows, rows))
    # A computed norm of d squares is off by d/2 roundings at most, and some.
    limit = norm * (INSIDE - (rows.shape[1] + 8) * U)
    within = lengths <= limit  # not so for NaN
    if within.all():
        return rows
    scale = np.ones_like(lengths)
    scale[~within] = limit / lengths[~within]
    lost = ~np.isfinite(lengths)
    with np.errstate(all="ignore"):
        clipped = rows * scale[:, None]
    clipped[lost] = 0.0
    return clipped


def row_products(rows: FloatArray, other: FloatArray) -> FloatArray:
    """Return every row's inner product with its row of ``other``, or with the one vector it is.

    No digit depends on the other rows or on their number (docs/theorems_convex.md, Theorem V12).
    """
    equation = "ij,j->i" if other.ndim == 1 else "ij,ij->i"
    total = np.zeros(len(rows))
    for start in range(0, rows.shape[1], TOGETHER):
        part = slice(start, start + TOGETHER)
        total += np.einsum(equation, rows[:, part], other[..., part])
    return total


def paired(labels: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return labels and rows, if there is a label for every row.

    A record whose label could not be read, and is NaN, becomes one of zeros: it adds nothing.
    """
    if len(labels) != len(rows):
        # Neither number: how many records there are is private.
        raise DomainError("y must have one label a row of x; got another number of labels")
    lost = np.isnan(labels) if labels.ndim == 1 else np.isnan(labels).any(axis=1)
    if not lost.any():
        return labels, rows
    labels, rows = labels.copy(), rows.copy()
    labels[lost], rows[lost] = 0.0, 0.0
    return labels, rows


def project(theta: FloatArray, radius: float) -> FloatArray:
    """Return the nearest point of the centred ball; points inside stay where they are."""
    length = float(np.sqrt(np.vdot(theta, theta)))
    return theta if length <= radius else theta * (radius / length)


def sum_by_blocks(x: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return ``x.T @ slopes``, adding blocks of rows pairwise so that round-off stays small."""
    n, d = x.shape
    columns = slopes.reshape(n, math.prod(slopes.shape[1:]))
    k = columns.shape[1]
    whole = n // BLOCK
    blocks = x[: whole * BLOCK].reshape(whole, BLOCK, d).transpose(0, 2, 1)
    parts = blocks @ columns[: whole * BLOCK].reshape(whole, BLOCK, k)
    last = x[whole * BLOCK :].T @ columns[whole * BLOCK :]
    while len(parts) > 1:
        if len(parts) % 2:
            parts = np.concatenate((parts, np.zeros_like(parts[:1])))
        parts = parts[0::2] + parts[1::2]
    total = parts[0] + last if len(parts) else last
    return np.asarray(total.reshape((d, *slopes.shape[1:])))


def row_scores(x: FloatArray, theta: FloatArray) -> FloatArray:
    """Return ``x @ theta``, every row by itself: no digit depends on the other rows.

    A matrix product of BLAS rounds a row by where it stands; a product and sum over one row does
    not (Theorem V12; a test compares all positions).
    """
    if theta.ndim == 1:
        return row_products(x, theta)
    columns = [row_products(x, column) for column in np.ascontiguousarray(theta.T)]
    return np.stack(columns, axis=1)


def gradient_rounding(
    loss: Loss, *, records: int, columns: int, norm: float, reach: float, blocked: bool = True
) -> float:
    """Return how far a computed sum of gradients is from the exact one, for |θ| <= ``reach``.

    Public bounds alone: rows of norm at most ``norm``, and the rounding of V10 at its largest
    (docs/theorems_convex.md). ``blocked`` sums are those of :func:`sum_by_blocks`, others one
    matrix product.
    """
    score = (columns + 2) * U * norm * reach
    per_slope = loss.curvature_bound * score
    per_slope += (SLOPE_ROUNDINGS + (loss.outputs or 1)) * U * loss.slope_bound
    added = BLOCK + 2 * math.log2(records + 2) if blocked else records
    return records * norm * (per_slope + (added + 8) * U * loss.slope_bound) * (1.0 + 1e-6)


# Theorem V10 depends on these four: products of rows with pieces, and sums of 1024 = 2^10 of them,
# have at most 53 bits, so that BLAS rounds nothing.
ROW_BITS = 30  # Bits of a coordinate below the bound on its row's norm.
PIECE_BITS = 22  # Bits of a piece of the parameter: ROW_BITS + PIECE_BITS < 53.
SLOPE_BITS = 12  # Bits of the leading piece of a slope: ROW_BITS + SLOPE_BITS + 10 <= 53.
EXACT_ROWS = 1024  # Rows that are multiplied at a time.


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


@dataclass(eq=False)
class PublicRisk:
    """What public numbers say of every risk of up to ``records`` rows (Theorem V10).

    ``shape`` is the parameter's, ``norm`` bounds the rows, ``regularization`` is λ of the sum form,
    and ``drawn`` bounds the norm of the linear term.
    """

    loss: Loss
    records: int
    shape: tuple[int, ...]
    norm: float
    regularization: float
    drawn: float = 0.0

    @property
    def largest(self) -> float:
        """A bound on the gradient at zero."""
        return max(self.records, 1) * self.norm * self.loss.slope_bound + self.drawn

    @property
    def smoothness(self) -> float:
        """A bound on ∇²J."""
        curvature = self.records * self.loss.curvature_bound * self.norm**2
        return (curvature + self.regularization) * (1.0 + 1e-12)

    @property
    def reach(self) -> float:
        """Three times a bound on |argmin J|: no descent from within a third leaves it."""
        slopes = self.records * self.norm * self.loss.slope_bound
        return 3.0 * (slopes + self.drawn) / self.regularization * (1.0 + 1e-9)

    @property
    def largest_target(self) -> float:
        """Where targets may be cut: residuals beyond it have one slope within ``reach``."""
        return 2.0 * (self.norm * self.reach + self.loss.slope_bound)

    @property
    def gradient_error(self) -> float:
        """A bound on the error of an exact gradient within ``reach``."""
        outputs = math.prod(self.shape[1:])
        blocks = self.records / EXACT_ROWS + 1.0
        # Evaluation; what is left of a slope; its blocks; the last additions; the point's own grid.
        trailing = math.sqrt(outputs) * 2.0**-SLOPE_BITS * (EXACT_ROWS + blocks + 4.0)
        each = self.loss.slope_roundings + trailing + 16.0 + 1.0
        slopes = max(self.records, 1) * self.norm * self.loss.slope_bound
        return U * (each * slopes + 16.0 * self.drawn) * (1.0 + 1e-6)

    @property
    def certifiable(self) -> float:
        """What the error of a gradient and the last rounding of the point leave certifiable."""
        return (4.0 * self.gradient_error + 4.0 * U * self.largest) * (1.0 + 1e-6)


class RegularizedRisk(PublicRisk):
    """J(θ) = Σ_i loss(x_i θ, y_i) + (regularization / 2) |θ|² + <linear, θ>, in sum form.

    ``x`` has shape (n, d) and is cut to the grid of :func:`grid_rows`, which defines the risk; θ
    and ``linear`` have shape (d,), or (d, K) for K outputs. ``norm`` bounds the rows.
    """

    def __init__(
        self,
        x: FloatArray,
        y: FloatArray,
        loss: Loss,
        regularization: float,
        linear: FloatArray,
        norm: float,
    ) -> None:
        super().__init__(loss, len(x), linear.shape, norm, regularization, norm_of(linear))
        self.x, self.y, self.linear = grid_rows(x, norm), y, linear

    def gradient(self, slopes: FloatArray, theta: FloatArray) -> FloatArray:
        """Return ∇J in plain arithmetic, given each record's slopes."""
        return self.x.T @ slopes + self.regularization * theta + self.linear

    @property
    def finest(self) -> int:
        """The exponent of the grid that points are rounded to: it costs one rounding a record."""
        size = self.linear.size
        allowed = max(len(self.x), 1) * self.norm * self.loss.slope_bound * U
        return math.frexp(allowed / (self.smoothness * math.sqrt(size)))[1] - 1

    def scores(self, point: Point) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Yield blocks of rows, with their scores as sums of two arrays."""
        pieces = point.pieces(self.finest)
        d, shape = len(pieces), pieces.shape[1:]
        flat = np.ascontiguousarray(pieces.reshape(d, -1))
        for start in range(0, len(self.x), EXACT_ROWS):
            rows = slice(start, start + EXACT_ROWS)
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
