"""L-BFGS in plain arithmetic, which finds a point near a minimum without proof.

:func:`~accountant.learn.convex.certified.minimize` certifies what it finds, and goes on otherwise.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from accountant._typing import FloatArray
from accountant.learn.convex.exact_gradients import RegularizedRisk, norm_of

MEMORY = 20  # pairs kept by L-BFGS
MAX_ITERATIONS = 300  # an adult-sized problem takes some twenty
STALLED = 50  # iterations without progress: round-off has begun
WIDEST, BISECTIONS = 1e9, 60  # of a search along a ray
MAX_PRECONDITIONED = 2_000  # columns up to which a Gram matrix is factored


def descend(problem: RegularizedRisk, tolerance: float) -> FloatArray:
    """Return a point where the computed gradient's norm is about ``tolerance`` or stopped falling.

    L-BFGS, preconditioned by the Gram matrix of a subset of the rows; the line search bisects the
    directional derivative, which is monotone; two passes over x an iteration.
    """
    theta = np.zeros_like(problem.linear)
    u = problem.x @ theta
    slopes = problem.loss.slope(u, problem.y)
    gradient = problem.gradient(slopes, theta)
    precondition = _preconditioner(problem)
    pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=MEMORY)
    best, stalled = math.inf, 0
    for _ in range(MAX_ITERATIONS):
        norm = norm_of(gradient)
        if not (norm > tolerance):
            break
        # The last digits: progress ends where round-off begins, and only the certificate counts.
        stalled = 0 if norm < 0.9 * best else stalled + 1
        best = min(best, norm)
        if stalled > STALLED:
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
    return theta


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


def least_along(
    problem: RegularizedRisk, theta: FloatArray, u: FloatArray, direction: FloatArray
) -> float:
    """Return about where J is least on the ray from ``theta``, whose scores are ``u``."""
    du = problem.x @ direction
    lam = problem.regularization
    tilt = float(np.vdot(lam * theta + problem.linear, direction))
    square = lam * float(np.vdot(direction, direction))

    def derivative(step: float) -> float:
        slopes = problem.loss.slope(u + step * du, problem.y)
        return float(np.vdot(slopes, du)) + tilt + step * square

    low, high = 0.0, 1.0
    while high < WIDEST and derivative(high) < 0.0:
        low, high = high, 4.0 * high
    for _ in range(BISECTIONS):
        # Small steps are told apart by their ratio, the last of them by their difference.
        middle = math.sqrt(low * high) if low > 0.0 else 2.0**-10 * high
        middle = middle if high > 2.0 * low else 0.5 * (low + high)
        if derivative(middle) < 0.0:
            low = middle
        else:
            high = middle
    return low
