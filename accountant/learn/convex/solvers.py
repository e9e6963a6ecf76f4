"""Minimise a regularised risk and certify the gradient, round-off included.

The privacy of a minimiser is a statement about the minimum. A solver that stops early breaks it;
one that *certifies* |∇J| <= tau lies within tau / lambda of the minimum, which the ledger pays for.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from accountant.learn.convex.losses import Loss

__all__ = ["RegularizedRisk", "gradient_rounding", "minimize", "row_scores", "sum_by_blocks"]

FloatArray: TypeAlias = "NDArray[np.float64]"

ROUNDOFF = 2.0**-53
BLOCK = 256  # rows added by one matrix product before the blocks are added pairwise
MEMORY = 20  # pairs kept by L-BFGS
MAX_ITERATIONS = 20_000  # cannot bind: an adult-sized problem takes some twenty
MAX_PRECONDITIONED = 2_000  # columns up to which a Gram matrix is factored
SLOPE_ROUNDINGS = 64  # of one evaluated slope, in units of the largest; measured below 8


@dataclass(frozen=True)
class RegularizedRisk:
    """J(θ) = Σ_i loss(x_i θ, y_i) + (regularization / 2) |θ|² + <linear, θ>, in sum form.

    ``x`` has shape (n, d); θ and ``linear`` have shape (d,), or (d, K) for K outputs.
    ``norm_bound`` bounds the rows of ``x``.
    """

    x: FloatArray
    y: FloatArray
    loss: Loss
    regularization: float
    linear: FloatArray
    norm_bound: float

    def value(self, u: FloatArray, theta: FloatArray) -> float:
        """Return J, given the scores ``u = x @ theta``."""
        risk = float(self.loss.value(u, self.y).sum())
        return risk + float(np.vdot(theta, 0.5 * self.regularization * theta + self.linear))

    def gradient(self, slopes: FloatArray, theta: FloatArray) -> FloatArray:
        """Return ∇J, given each record's slopes."""
        return self.x.T @ slopes + self.regularization * theta + self.linear

    def certified_gradient_norm(self, theta: FloatArray) -> float:
        """Return an upper bound on |∇J(θ)| of exact arithmetic (docs/theorems_convex.md, V10)."""
        n, d = self.x.shape
        slopes = self.loss.slope(self.x @ theta, self.y)
        risk = sum_by_blocks(self.x, slopes)
        gradient = risk + self.regularization * theta + self.linear
        theta_norm = _norm(theta)
        # A score is off by at most γ_d |x| |θ|, a slope by that times the curvature.
        score = (d + 2) * ROUNDOFF * self.norm_bound * theta_norm
        per_slope = self.loss.curvature_bound * score
        per_slope += (SLOPE_ROUNDINGS + slopes[:1].size) * ROUNDOFF * self.loss.slope_bound
        roundings = BLOCK + 2 * math.log2(n + 2) + 8
        adding = roundings * ROUNDOFF * float(np.sum(_row_norms(slopes)))
        final = 8 * ROUNDOFF * (_norm(risk) + self.regularization * theta_norm + _norm(self.linear))
        error = self.norm_bound * (n * per_slope + adding) + final
        return float((_norm(gradient) + error) * (1.0 + 1e-9))


def minimize(problem: RegularizedRisk, tolerance: float) -> FloatArray | None:
    """Return θ with a certified |∇J(θ)| <= ``tolerance``, or None when that was not reached.

    Parameters
    ----------
    problem : RegularizedRisk
        Strongly convex: ``regularization`` > 0.
    tolerance : float
        τ > 0.

    Returns
    -------
    ndarray or None
        Of the shape of ``problem.linear``. None is a failure of arithmetic (a tolerance below
        round-off), never of the iteration, which converges on every strongly convex function.

    Notes
    -----
    *Guarantee.* |θ - argmin J| <= tolerance / regularization (docs/theorems_convex.md, V9, V10).

    *Algorithm.* L-BFGS, preconditioned by the Gram matrix of a subset of the rows; the line search
    bisects the directional derivative, which is monotone; two passes over x an iteration.
    """
    theta = np.zeros_like(problem.linear)
    u = problem.x @ theta
    slopes = problem.loss.slope(u, problem.y)
    gradient = problem.gradient(slopes, theta)
    precondition = _preconditioner(problem)
    pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=MEMORY)
    best, stalled = math.inf, 0
    for _ in range(MAX_ITERATIONS):
        norm = _norm(gradient)
        if not (norm > 0.5 * tolerance):
            break
        # The last digits: progress ends where round-off begins, and only the certificate counts.
        stalled = 0 if norm < 0.9 * best else stalled + 1
        best = min(best, norm)
        if stalled > 200:
            break
        direction = _two_loops(pairs, gradient, precondition)
        if not float(np.vdot(direction, gradient)) < 0.0:
            pairs.clear()
            direction = -precondition(gradient)
        du = problem.x @ direction
        step = _line_search(problem, theta, u, direction, du, float(np.vdot(direction, gradient)))
        theta_new = theta + step * direction
        u = u + step * du
        slopes = problem.loss.slope(u, problem.y)
        gradient_new = problem.gradient(slopes, theta_new)
        s, g = theta_new - theta, gradient_new - gradient
        curvature = float(np.vdot(s, g))
        if curvature > 0.0:
            pairs.append((s, g, curvature))
        theta, gradient = theta_new, gradient_new
    return theta if problem.certified_gradient_norm(theta) <= tolerance else None


def _line_search(
    problem: RegularizedRisk,
    theta: FloatArray,
    u: FloatArray,
    direction: FloatArray,
    du: FloatArray,
    initial: float,
) -> float:
    """Return a step where the directional derivative has shrunk; J is convex along the line."""
    lam = problem.regularization
    tilt = lam * float(np.vdot(theta, direction)) + float(np.vdot(problem.linear, direction))
    square = lam * float(np.vdot(direction, direction))

    def derivative(step: float) -> float:
        slopes = problem.loss.slope(u + step * du, problem.y)
        return float(np.vdot(slopes, du)) + tilt + step * square

    low, high = 0.0, math.inf
    at_low, at_high = initial, math.inf
    step = 1.0
    for _ in range(60):
        here = derivative(step)
        if -0.9 * abs(initial) <= here <= 0.3 * abs(initial):
            return step
        if here < 0.0:
            low, at_low = step, here
        else:
            high, at_high = step, here
        if high == math.inf:
            # Where round-off hides the curvature the derivative does not move: the largest stride.
            moved = here - initial
            step *= min(max(-1.1 * initial / moved, 2.0), 10.0) if moved > 0.0 else 10.0
        else:
            # The secant's zero, kept off the ends.
            rise = at_high - at_low
            guess = low + (high - low) * (-at_low / rise) if rise > 0.0 else low
            margin = 0.1 * (high - low)
            step = min(max(guess, low + margin), high - margin)
    return step


def _two_loops(
    pairs: deque[tuple[FloatArray, FloatArray, float]],
    gradient: FloatArray,
    precondition: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Return the L-BFGS direction, with the preconditioner as its initial inverse Hessian."""
    q = -gradient
    stack = []
    for s, g, curvature in reversed(pairs):
        weight = float(np.vdot(s, q)) / curvature
        q = q - weight * g
        stack.append(weight)
    r = precondition(q)
    if pairs:
        _, g, curvature = pairs[-1]
        square = float(np.vdot(g, precondition(g)))
        r = r * (curvature / square) if square > 0.0 else r
    for (s, g, curvature), weight in zip(pairs, reversed(stack), strict=True):
        r = r + (weight - float(np.vdot(g, r)) / curvature) * s
    return r


def _preconditioner(problem: RegularizedRisk) -> Callable[[FloatArray], FloatArray]:
    n, d = problem.x.shape
    bound = problem.loss.curvature_bound
    scale = 1.0 / (problem.regularization + bound * n * problem.norm_bound**2)
    if d > MAX_PRECONDITIONED or n == 0:
        return lambda v: scale * v
    stride = max(1, n // (10 * d))
    rows = problem.x[::stride]
    gram = rows.T @ rows
    gram *= 0.5 * bound * n / len(rows)
    gram[np.diag_indices(d)] += problem.regularization
    try:
        factor = cho_factor(gram, lower=True, check_finite=False)
    except LinAlgError:  # round-off made it indefinite, which says something about the records
        return lambda v: scale * v
    return lambda v: np.asarray(cho_solve(factor, v, check_finite=False))


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
        return np.asarray(np.einsum("ij,j->i", x, theta))
    columns = [np.einsum("ij,j->i", x, column) for column in np.ascontiguousarray(theta.T)]
    return np.stack(columns, axis=1)


def gradient_rounding(
    loss: Loss, *, records: int, columns: int, norm: float, reach: float, blocked: bool = True
) -> float:
    """Return how far a computed sum of gradients is from the exact one, for |θ| <= ``reach``.

    Public bounds alone: rows of norm at most ``norm``, and the rounding of V10 at its largest
    (docs/theorems_convex.md). ``blocked`` sums are those of :func:`sum_by_blocks`, others one
    matrix product.
    """
    score = (columns + 2) * ROUNDOFF * norm * reach
    per_slope = loss.curvature_bound * score
    per_slope += (SLOPE_ROUNDINGS + (loss.outputs or 1)) * ROUNDOFF * loss.slope_bound
    added = BLOCK + 2 * math.log2(records + 2) if blocked else records
    return records * norm * (per_slope + (added + 8) * ROUNDOFF * loss.slope_bound) * (1.0 + 1e-6)


def _row_norms(slopes: FloatArray) -> FloatArray:
    return np.abs(slopes) if slopes.ndim == 1 else np.asarray(np.sqrt((slopes**2).sum(axis=1)))


def _norm(v: FloatArray) -> float:
    return math.sqrt(float(np.vdot(v, v)))
