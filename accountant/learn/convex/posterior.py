"""Exponential mechanisms: of a quantile, of a parameter on a grid, and one exact Gibbs sample."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant.calibration import calibrate_sigma
from accountant.errors import DomainError
from accountant.learn.convex.fit import (
    BOUND,
    FINE_BITS,
    MOST_COUNTED,
    REGULARIZATION,
    Fit,
    LinearFit,
    NoiseSource,
    PrivateResult,
    require_few,
)
from accountant.learn.convex.losses import Huber, HuberHinge, Logistic, Loss
from accountant.learn.convex.rows import PublicRisk, RegularizedRisk
from accountant.learn.convex.solvers import least_tolerance, minimize
from accountant.learn.validation import numbers, without_numpy_warnings
from accountant.ledger import Accountant
from accountant.ledger.basic import rate
from accountant.mechanisms.gaussian import GDP
from accountant.mechanisms.stated_guarantees import PureDP
from accountant.noise import Grid

MAX_DIMENSION = 2  # A grid, and rejection, cost too much beyond.
HELD = 2**23  # Losses held at a time: affects memory only.
# The range of one record's loss is this many units: sums of integers are exact (V14).
UNITS = 2**30
CELLS = 2**40  # The interval of a quantile has this many equal cells: the draw is one of them.
PARTS = 2**30  # A quantile's level is a multiple of one over this, so that ranks are whole.
_LEVEL = checks.STATED_DELTA.renamed("quantile", "The median is 0.5")


@without_numpy_warnings
def private_quantile(
    x: Array,
    quantile: float,
    *,
    epsilon: float,
    lower: float,
    upper: float,
    ledger: Accountant | None = None,
    rng: int | None = None,
) -> PrivateResult:
    """Draw a quantile by the exponential mechanism on the interval [lower, upper].

    Smith (STOC 2011), Algorithm 2, with the sensitivity of the tilted rank.

    Parameters
    ----------
    x : array of shape (n,)
        Numbers, clipped to the interval; what is no finite number is left out.
    quantile : float
        In [0, 1]; rounded to a multiple of 2**-30.
    epsilon : float
        The pure guarantee.
    lower, upper : float
        The public interval.
    ledger : Accountant, optional
        Charged before the noise is drawn; the fit has one of its own when left out.
    rng : int, optional
        A seed, for tests only.

    Returns
    -------
    PrivateResult
        ``value`` has shape (1,).

    Notes
    -----
    *Guarantee.* ε-differential privacy under add-or-remove (docs/theorems_convex.md, Theorem V18).
    The value is the middle of one of 2**40 equal cells of the interval; ranks are integers, and the
    draw is exact in law: no rounding is outside the guarantee. Sums of up to 2**31 records fit;
    more are refused.
    """
    fit = Fit("quantile", epsilon, 0.0, ledger, rng)
    level = checks.number(_LEVEL, quantile)
    if not (-math.inf < lower < upper < math.inf and lower / 2.0 < upper / 2.0):
        raise DomainError(f"lower must be below upper, both finite; got {lower!r} and {upper!r}")
    values = numbers("x", x, ())
    if values.ndim != 1:
        # A row of several numbers would count as several records, at one record's price.
        raise DomainError(f"x must have one dimension, (records,); got {values.ndim}")
    require_few(values, MOST_COUNTED)
    values = np.clip(values[np.isfinite(values)], lower, upper)  # others are left out
    # Every record by itself becomes a cell's number; scores are constant on runs of cells.
    share = (values / 2.0 - lower / 2.0) / (upper / 2.0 - lower / 2.0)
    cells = np.sort(np.clip(np.rint(share * CELLS), 0, CELLS).astype(np.int64))
    edges = np.concatenate(([0], cells, [CELLS]))
    widths = np.diff(edges)
    below = np.arange(len(widths), dtype=np.int64)
    # In a gap, `below` records lie under the point: |(1 - q) below - q (n - below)|, in integers.
    parts = round(level * PARTS)
    distance = np.abs(PARTS * below - parts * len(values))
    fit.charge(PureDP(fit.epsilon))
    gap = fit.source.weighted_index(
        distance, rate(fit.epsilon) / (2 * max(parts, PARTS - parts)), widths
    )
    # What is released is a function of a cell's number: no digit of a record is in it.
    cell = int(edges[gap]) + fit.source.below(int(widths[gap]))
    place = (cell + 0.5) / CELLS
    return fit.result(np.array([lower * (1.0 - place) + upper * place]))


def oscillation(loss: Loss, reach: float) -> float:
    """Return a bound on the largest minus the least loss of one record over scores in ±reach."""
    if isinstance(loss, (Logistic, HuberHinge)):
        ends = loss.value(np.array([-reach, reach]), np.ones(2))
        return float(ends[0] - ends[1]) * (1.0 + 1e-12)
    return 2.0 * loss.slope_bound * reach


@without_numpy_warnings
def exponential_mechanism(
    x: Array,
    y: Array,
    *,
    epsilon: float,
    data_norm: float,
    radius: float,
    loss: Loss | None = None,
    points: int = 201,
    ledger: Accountant | None = None,
    rng: int | None = None,
) -> PrivateResult:
    """Draw a parameter with probability proportional to exp(-ε risk / oscillation) on a grid.

    Parameters
    ----------
    x, y, data_norm, loss, ledger, rng
        As in :func:`~accountant.learn.convex.perturbation.perturb_objective`; at most two columns.
    epsilon : float
        The pure guarantee.
    radius : float
        The grid covers the ball of this radius.
    points : int
        Grid points along each axis.

    Returns
    -------
    PrivateResult
        ``value`` has shape (d,).

    Notes
    -----
    *Guarantee.* ε-differential privacy under add-or-remove (docs/theorems_convex.md, Theorem V14):
    all scores move the same way, so the usual factor of two is not needed. Losses enter as integers
    and the draw is exact in law: no rounding is outside the guarantee. Sums of up to 2**31 records
    fit; more are refused.
    """
    fit = LinearFit(x, data_norm, loss, "exponential mechanism", epsilon, 0.0, ledger, rng)
    reach = checks.number(BOUND.renamed("radius"), radius)
    d = fit.rows.shape[1]
    require_few_columns(d, fit.loss)
    axis = np.linspace(-reach, reach, checks.integer("points", points, 2, 10**6))
    grid = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    grid = grid[(grid**2).sum(axis=1) <= reach**2]
    if not len(grid):
        raise DomainError(f"points must be at least 3 in two dimensions; got {points}")
    rows, labels = fit.data(y, MOST_COUNTED)
    risk = integer_risk(rows, labels, fit.loss, grid, oscillation(fit.loss, fit.norm * reach))
    fit.charge(PureDP(fit.epsilon))
    winner = fit.source.weighted_index(risk, rate(fit.epsilon) / UNITS)
    return fit.result(grid[winner], grid_points=float(len(grid)))


def integer_risk(
    rows: FloatArray, labels: FloatArray, loss: Loss, grid: FloatArray, width: float
) -> NDArray[np.int64]:
    """Return the sum of the records' losses at every grid point, in units of width / 2**30.

    Every record by itself is rounded to integers in [0, 2**30] above its own least loss, whatever
    its losses are: that range, and not floating point, is the sensitivity. Sums are exact.
    """
    total = np.zeros(len(grid), np.int64)
    block = max(1, HELD // len(grid))
    for start in range(0, len(rows), block):
        part = slice(start, start + block)
        scores = np.zeros((len(rows[part]), len(grid)))
        # One product at a time: a matrix product may round a record by what stands beside it.
        for column in range(grid.shape[1]):
            scores += rows[part, column, None] * grid[None, :, column]
        with np.errstate(all="ignore"):
            values = loss.value(scores, labels[part, None])
            units = np.rint((values - values.min(axis=1, keepdims=True)) / width * UNITS)
        kept = np.clip(np.nan_to_num(units, nan=0.0), 0.0, UNITS)
        total += kept.astype(np.int64).sum(axis=0)
    return total


def require_few_columns(d: int, loss: Loss) -> None:
    """Refuse what the exact samplers of this package cannot draw."""
    if loss.outputs is not None or not 1 <= d <= MAX_DIMENSION:
        raise DomainError(
            f"x must have at most {MAX_DIMENSION} columns and the loss one score for exact"
            f" sampling; got {d} columns. perturb_objective has no such limit"
        )


PROPOSALS = 256  # Proposals that are tried together: affects speed only.
# The account covers the rounding of a risk of up to this many records (V15).
MOST_RECORDS = 10**5
# Public numbers that may ask for more evaluations of a loss, in expectation, are refused.
MOST_EVALUATIONS = 2e11
# A loss, its score and the pairwise sum are off by at most this share of the loss's bound, and the
# penalty by the next: Theorem V15 depends on both, and a test measures them against 50 digits.
LOSS_ROUNDING = 2.0**-47
PENALTY_ROUNDING = 2.0**-50
# No proposal lies beyond this many standard deviations, but for one in e^2000.
FARTHEST = 64.0


def gibbs_posterior_mu(*, slope: float, regularization: float, temperature: float) -> float:
    """Return μ for one exact sample of density proportional to exp(-J / temperature).

    Parameters
    ----------
    slope : float
        Bound on the norm of one record's gradient.
    regularization : float
        λ > 0: J is λ-strongly convex.
    temperature : float
        Larger is flatter, hence more private.

    Notes
    -----
    *Guarantee.* μ = slope / √(λ temperature) under add-or-remove (Gopi, Lee and Liu, COLT 2022;
    docs/theorems_convex.md, Theorem V15).
    """
    return slope / math.sqrt(regularization * temperature) * (1.0 + 1e-12)


@without_numpy_warnings
def gibbs_posterior(
    x: Array,
    y: Array,
    *,
    epsilon: float,
    delta: float,
    data_norm: float,
    regularization: float,
    loss: Loss | None = None,
    max_records: int = MOST_RECORDS,
    ledger: Accountant | None = None,
    rng: int | None = None,
) -> PrivateResult:
    """Draw one sample of the Gibbs posterior exactly, by rejection, in at most two dimensions.

    Parameters
    ----------
    x, y, data_norm, loss, ledger, rng
        As in :func:`~accountant.learn.convex.perturbation.perturb_objective`; at most two columns.
    epsilon, delta : float
        The guarantee, which sets the temperature.
    regularization : float
        λ of the sum form.
    max_records : int
        A public bound on the number of records, at most 1e5; more are refused, and so is a bound up
        to which sampling may take more than 2e11 evaluations of a loss.

    Notes
    -----
    *Guarantee.* μ-GDP with μ of ``(epsilon, delta)`` (docs/theorems_convex.md, Theorem V15), the
    rounding of the risk included. The sampler is exact: a proposal that the strongly convex J
    dominates, so nothing is mixing. Public numbers bound the expected number of proposals.
    """
    fit = LinearFit(x, data_norm, loss, "Gibbs posterior", epsilon, delta, ledger, rng)
    lam = checks.number(REGULARIZATION, regularization)
    require_few_columns(fit.rows.shape[1], fit.loss)
    public = fit.public(max_records, lam, most=MOST_RECORDS)
    target = 1.0 / calibrate_sigma(fit.epsilon, fit.delta)
    law = _law(public, target)
    least = least_tolerance(public)
    _require_proposals(public)
    # Residuals beyond reach have one slope wherever the sample falls: their size adds a number.
    problem = fit.risk(y, public, largest_target=law.label)
    fit.charge(GDP(target))
    centre = minimize(problem, max(1e-6 * fit.slope, least))
    # The proposals' grid is public, so their centre must lie on it too: digits below it would be
    # the private minimum's, and no noise covers them.
    step = Grid.at_most(law.spread * 2.0**-FINE_BITS).step
    centre = np.rint(centre / step) * step
    tau = problem.certified_gradient_norm(centre)
    value = _rejection(problem, centre, tau, law, fit.source)
    return fit.result(value, temperature=law.temperature, rounding=law.rounding)


@dataclass(frozen=True)
class _Law:
    """Public numbers of one sampling problem."""

    temperature: float
    spread: float  # standard deviation of the proposals
    label: float  # Huber labels beyond it may be cut off
    rounding: float  # the logarithm of the computed law is within this of the exact one's


def _require_proposals(public: PublicRisk) -> None:
    """Refuse public numbers up to which the sampler may need too many proposals.

    One is accepted at least as often as if the whole Hessian were its bound (V15); e covers the
    shift by the certified gradient.
    """
    lam, records = public.regularization, public.records
    proposals = math.e * (2.0 * public.smoothness / lam) ** (0.5 * public.shape[0])
    if not (max(records, 1) * proposals <= MOST_EVALUATIONS):
        raise DomainError(
            f"regularization = {lam:.6g} may take {proposals:.3g} proposals for max_records ="
            f" {records} rows; take a larger regularization or a smaller public max_records"
        )


def _law(public: PublicRisk, target: float) -> _Law:
    """Return the temperature for ``target``-GDP, what rounding costs included (V15)."""
    norm, lam = public.norm, public.regularization
    try:
        exact = _law_at(public, target)
    except ArithmeticError:  # public numbers whose products leave the doubles
        raise DomainError(
            "loss, data_norm and regularization must have a law in double precision; got"
            f" {public.loss!r}, {norm!r} and {lam!r}"
        ) from None
    least = target - 3.0 * exact.rounding
    if not (exact.rounding <= 0.01 and least > 0.5 * target):
        raise DomainError(
            f"regularization must be nearer to data_norm**2 = {norm**2:.6g}, or epsilon smaller,"
            f" for an account of max_records = {public.records} rows in double precision;"
            f" got {lam!r}"
        )
    # A smaller μ is a higher temperature, at which rounding weighs less.
    return replace(_law_at(public, least), rounding=exact.rounding)


def _law_at(public: PublicRisk, mu: float) -> _Law:
    loss, norm, lam, records = public.loss, public.norm, public.regularization, public.records
    d = public.shape[0]
    slope = norm * loss.slope_bound
    temperature = (slope / mu) ** 2 / lam * (1.0 + 1e-9)
    spread = math.sqrt(2.0 * temperature / lam)
    farthest = math.sqrt(d) * (FARTHEST + 1.0) * spread
    # |argmin J| <= n L / λ, for the gradients there add up to -λ argmin.
    reach = records * slope / lam * 1.001 + farthest
    label = norm * reach * 1.001 + loss.slope_bound if isinstance(loss, Huber) else 1.0
    base = float(np.abs(loss.value(np.zeros(2), np.array([-1.0, 1.0]))).max())
    largest = loss.slope_bound * (norm * reach + label + 1.0) + base
    evaluation = LOSS_ROUNDING * records * largest + PENALTY_ROUNDING * lam * reach**2
    # Within a cell of the grid log density moves by at most this, to first order cancelling.
    curvature = records * loss.curvature_bound * norm**2 + lam
    cell = 2.0**-FINE_BITS * spread * math.sqrt(d) / temperature
    inside = (cell * curvature * farthest) ** 2 + cell**2 * curvature * temperature
    return _Law(temperature, spread, label, 4.0 * evaluation / temperature + 2.0 * inside)


def _rejection(
    problem: RegularizedRisk, centre: FloatArray, tau: float, law: _Law, source: NoiseSource
) -> FloatArray:
    """Sample exp(-J / temperature), with certified |∇J(centre)| <= tau.

    J(θ) - J(centre) >= λ/4 r² - τ²/λ at distance r, so a normal proposal of precision
    λ / (2 temperature) dominates after that shift.
    """
    lam, d = problem.regularization, len(centre)

    def risk(points: FloatArray) -> FloatArray:
        # Records along the last axis, which NumPy adds pairwise.
        scores = points @ problem.x.T
        values = problem.loss.value(scores, problem.y[None, :]).sum(axis=1)
        return np.asarray(values + 0.5 * lam * (points**2).sum(axis=1))

    base = float(risk(centre[None, :])[0])
    together = max(1, min(PROPOSALS, HELD // max(len(problem.x), 1)))
    while True:
        steps = source.normal((together, d), law.spread)
        rise = risk(centre + steps) - base - 0.25 * lam * (steps**2).sum(axis=1) + tau**2 / lam
        # The certificate keeps the rise above zero, but for the last digits of its evaluation.
        exponents = np.clip(np.nan_to_num(rise / law.temperature, nan=0.0), 0.0, 1e6)
        accepted = np.flatnonzero(source.coins(exponents))
        if accepted.size:
            return np.asarray(centre + steps[accepted[0]])
