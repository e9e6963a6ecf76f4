"""Minima that are certified for all possible records, so that no data set is refused.

The privacy of a minimiser is a statement about the minimum. What is returned here lies within
tolerance / regularization of it, which the ledger pays for; public numbers alone decide, before any
record is looked at, whether double precision can do so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.errors import DomainError
from accountant.learn.convex.rows import Point, PublicRisk, RegularizedRisk, norm_of
from accountant.search import narrow

# Up to this condition number of the Hessian Newton's equations keep eight digits (Theorem V10).
MOST_CONDITION = 2.0**45
# Gradients and parameters lie between these: their squares are neither lost nor infinite.
SIZES = (1e-100, 1e100)
MOST_FACTORED = 2000  # Coordinates up to which a Hessian is factored: affects speed only.
MOST_CONJUGATE = 300  # Steps of conjugate gradients beyond: affects speed only.
MEMORY = 20  # Pairs of gradients that L-BFGS keeps: affects speed only.
MOST_ITERATIONS = 300  # L-BFGS usually makes twenty: affects speed only.
ROWS_A_COLUMN = 10  # Rows a column whose Gram matrix sets the scale: affects speed only.
WIDEST = 1e9  # No minimum is looked for beyond this step along a ray: affects speed only.
NEAREST = 1e-18  # Nor before this one.
BISECTIONS = 60  # Steps of that search: affects speed only.


def least_tolerance(public: PublicRisk) -> float:
    """Return the least tolerance that is reached on every data set with these public numbers.

    Raises
    ------
    DomainError
        The Hessian may be too ill-conditioned for double precision: more records than this
        ``regularization`` allows. Nothing here depends on records.

    Notes
    -----
    *Guarantee.* docs/theorems_convex.md, Theorem V10.
    """
    lam, records = public.regularization, public.records
    condition = public.smoothness / lam
    if not (condition <= MOST_CONDITION):
        raise DomainError(
            f"regularization = {lam:.6g} is too small for max_records = {records}"
            f" in double precision: curvatures may be {condition:.3g} apart. Take a larger"
            " regularization, or a smaller public bound max_records"
        )
    slope = public.norm * public.loss.slope_bound
    if not (SIZES[0] <= slope <= SIZES[1] and SIZES[0] <= public.reach <= SIZES[1]):
        raise DomainError(
            f"data_norm = {public.norm:.6g}, regularization = {lam:.6g} and the loss's largest"
            f" slope, {public.loss.slope_bound:.6g}, must keep gradients and parameters within"
            " 1e-100 and 1e100"
        )
    if not (public.gradient_error < math.inf):
        raise DomainError(
            f"loss must state slope_roundings, how its slopes round; got {public.loss!r}"
        )
    return public.certifiable


def minimize(problem: RegularizedRisk, tolerance: float) -> FloatArray:
    """Return θ with |θ - argmin J| at most ``tolerance / regularization``.

    Parameters
    ----------
    problem : RegularizedRisk
        Strongly convex: ``regularization`` > 0.
    tolerance : float
        At least :func:`least_tolerance` of public numbers that the problem satisfies.

    Returns
    -------
    ndarray
        Of the shape of ``problem.linear``.

    Notes
    -----
    *Guarantee.* For all records, in floating point: the norm of an exact gradient and the rounding
    of the point returned are below ``tolerance``, and the descent ends (docs/theorems_convex.md,
    Theorem V10).

    *Algorithm.* L-BFGS in plain arithmetic, whose result counts for nothing but speed; then steps
    of Newton with exact gradients, each of which halves the gradient or lowers J by a certified
    part of what a plain gradient step would, which is taken otherwise.
    """
    error = problem.gradient_error
    if not (tolerance >= problem.certifiable):
        raise DomainError(f"tolerance = {tolerance:.6g} is below what double precision certifies")
    with np.errstate(all="ignore"):  # a warning would say something about the records
        place = _start(problem, descend(problem, 0.5 * tolerance), problem.largest)
        best = math.inf
        while True:
            rounding = U * problem.regularization * norm_of(place.point.high)
            if (place.norm + error + rounding) * (1.0 + 1e-9) <= tolerance:
                return place.point.high + place.point.low
            best = min(best, place.norm)
            place = _step(problem, place, best, error)


def descend(problem: RegularizedRisk, tolerance: float) -> FloatArray:
    """Return a point near the minimum, by L-BFGS in plain arithmetic; nothing is proved of it.

    Coordinates are those in which the Hessian of some of the rows is about the identity.
    """
    back = _whitening(problem)
    shape = problem.linear.shape

    def risk(flat: FloatArray) -> tuple[float, FloatArray]:
        theta = back(flat.reshape(shape), False)
        scores = problem.x @ theta
        value = float(problem.loss.value(scores, problem.y).sum())
        value += float(np.vdot(0.5 * problem.regularization * theta + problem.linear, theta))
        slopes = problem.loss.slope(scores, problem.y)
        return value, back(problem.gradient(slopes, theta), True).ravel()

    options: Any = {"maxiter": MOST_ITERATIONS, "maxcor": MEMORY, "ftol": 0.0, "gtol": tolerance}
    start = np.zeros(problem.linear.size)
    found = optimize.minimize(risk, start, jac=True, method="L-BFGS-B", options=options)
    return back(found.x.reshape(shape), False)


def _whitening(problem: RegularizedRisk) -> Callable[[FloatArray, bool], FloatArray]:
    """Return the map from such coordinates to parameters, and for gradients its transpose."""
    n, d = problem.x.shape
    bound = problem.loss.curvature_bound
    if d > MOST_FACTORED or n == 0:
        return lambda v, transposed: v
    rows = problem.x[:: max(1, n // (ROWS_A_COLUMN * d))]
    gram = rows.T @ rows
    gram *= 0.5 * bound * n / len(rows) / problem.regularization
    gram[np.diag_indices(d)] += 1.0
    try:
        factor = np.linalg.cholesky(gram)
    except LinAlgError:  # round-off made it indefinite, which says something about the records
        return lambda v, transposed: v

    def back(v: FloatArray, transposed: bool) -> FloatArray:
        triangle = factor if transposed else factor.T
        return np.asarray(solve_triangular(triangle, v, lower=transposed, check_finite=False))

    return back


class _Place(NamedTuple):
    point: Point
    gradient: FloatArray
    norm: float


def _at(problem: RegularizedRisk, point: Point) -> _Place | None:
    """Return the exact gradient at a point, or None outside the ball where its error is known."""
    if not (norm_of(point.high) <= problem.reach):
        return None
    gradient = problem.exact_gradient(point)
    return _Place(point, gradient, norm_of(gradient))


def _start(problem: RegularizedRisk, theta: FloatArray, largest: float) -> _Place:
    """Return where to start: zero, unless the gradient at ``theta`` is no larger than there."""
    found = _at(problem, Point.of(theta)) if np.isfinite(theta).all() else None
    if found is not None and found.norm <= largest:
        return found
    zero = Point.of(np.zeros_like(problem.linear))
    gradient = problem.exact_gradient(zero)
    return _Place(zero, gradient, norm_of(gradient))


def _step(problem: RegularizedRisk, here: _Place, best: float, error: float) -> _Place:
    """Return the next point: half the best gradient, or a certified decrease (V10)."""
    wanted = here.norm**2 / (8.0 * problem.smoothness)
    direction, guess = _newton(problem, here)
    length = norm_of(direction)
    digits = 2.0 * direction.size * U  # of an inner product, and of the step itself
    for step in dict.fromkeys((1.0, guess)) if length < math.inf else ():
        there = _at(problem, here.point.moved(direction, step))
        if there is None:
            continue
        if there.norm <= 0.5 * best:
            return there
        halfway = _at(problem, here.point.moved(direction, 0.5 * step))
        if halfway is None:
            continue
        # J is convex: on each half of the way it falls by the derivative at the half's end.
        falls = -float(np.vdot(there.gradient + halfway.gradient, direction))
        slack = 2.0 * error + digits * (there.norm + halfway.norm)
        if 0.5 * step * (falls - 1.001 * slack * length) >= wanted:
            return there
    plain = here.point.moved(here.gradient, -1.0 / problem.smoothness)
    gradient = problem.exact_gradient(plain)
    return _Place(plain, gradient, norm_of(gradient))


def _newton(problem: RegularizedRisk, here: _Place) -> tuple[FloatArray, float]:
    """Return Newton's direction and the least point of J along it; neither is trusted."""
    scores = np.concatenate(
        [high for _, high, _ in problem.scores(here.point)]
        or [np.zeros((0, *problem.linear.shape[1:]))]
    )
    direction = _solved(problem, scores, here)
    start = here.point.high + here.point.low
    return direction, least_along(problem, start, scores, direction)


def _solved(problem: RegularizedRisk, scores: FloatArray, here: _Place) -> FloatArray:
    """Solve Newton's equations by a factored Hessian or by conjugate gradients."""
    loss, x, lam = problem.loss, problem.x, problem.regularization
    if problem.linear.ndim == 1 and x.shape[1] <= MOST_FACTORED:
        weights = loss.curvature_along(scores, problem.y, np.ones_like(scores))
        hessian = x.T @ (x * weights[:, None])
        hessian[np.diag_indices(x.shape[1])] += lam
        try:
            factor = cho_factor(hessian, lower=True, check_finite=False)
            return -np.asarray(cho_solve(factor, here.gradient, check_finite=False))
        except LinAlgError:  # the fallback needs no factor
            pass

    def times(v: FloatArray) -> FloatArray:
        return np.asarray(x.T @ loss.curvature_along(scores, problem.y, x @ v) + lam * v)

    found, rest = np.zeros_like(here.gradient), -here.gradient
    way, square = rest, float(np.vdot(rest, rest))
    for _ in range(MOST_CONJUGATE):
        image = times(way)
        share = square / max(float(np.vdot(way, image)), 1e-300)
        found, rest = found + share * way, rest - share * image
        square, before = float(np.vdot(rest, rest)), square
        if not (math.sqrt(square) > 1e-3 * here.norm):
            break
        way = rest + (square / before) * way
    return found


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

    high = 1.0
    while high < WIDEST and derivative(high) < 0.0:
        high *= 4.0
    falls = narrow(lambda step: derivative(step) < 0.0, NEAREST, high, BISECTIONS, geometric=True)
    return falls[0]
