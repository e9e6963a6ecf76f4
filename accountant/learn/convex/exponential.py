"""The exponential mechanism for empirical risk, exact on a grid of parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._typing import FloatArray
from accountant.errors import DomainError
from accountant.learn.account import charged
from accountant.learn.convex.losses import HuberHinge, Logistic, Loss
from accountant.learn.convex.noise import NoiseSource
from accountant.learn.convex.public_bounds import BOUND, DATA_NORM, MOST_COUNTED, require_few
from accountant.learn.convex.result import PrivateResult, clip_rows, paired, table
from accountant.learn.secrecy import without_numpy_warnings
from accountant.ledger import Accountant
from accountant.ledger.basic import rate
from accountant.mechanisms.stated_guarantees import PureDP

MAX_DIMENSION = 2
CELLS = 2**21  # numbers held at a time: records of a block times grid points
POINTS = checks.Argument(
    "points", "an integer in [2, 1e6]", lambda x: (x >= 2) & (x <= 10**6), "Along each axis"
)
UNITS = 2**30  # of the range of one record's loss


def oscillation(loss: Loss, reach: float) -> float:
    """Return a bound on the largest minus the least loss of one record over scores in ±reach."""
    if isinstance(loss, (Logistic, HuberHinge)):
        ends = loss.value(np.array([-reach, reach]), np.ones(2))
        return float(ends[0] - ends[1]) * (1.0 + 1e-12)
    return 2.0 * loss.slope_bound * reach


@without_numpy_warnings
def exponential_mechanism(
    x: NDArray[Any],
    y: NDArray[Any],
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
        As in :func:`~accountant.learn.convex.objective.perturb_objective`; at most two columns.
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
    rows = table(x)
    eps = checks.number(checks.TARGET_EPS, epsilon)
    norm = checks.number(DATA_NORM, data_norm)
    reach = checks.number(BOUND.renamed("radius"), radius)
    chosen = Logistic() if loss is None else loss
    d = rows.shape[1]
    require_few_columns(d, chosen)
    axis = np.linspace(-reach, reach, checks.whole(POINTS, points))
    grid = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    grid = grid[(grid**2).sum(axis=1) <= reach**2]
    if not len(grid):
        raise DomainError(f"points must be at least 3 in two dimensions; got {points}")
    require_few(rows, MOST_COUNTED)
    rows = clip_rows(rows, norm)
    labels, rows = paired(chosen.encode(y), rows)
    risk = integer_risk(rows, labels, chosen, grid, oscillation(chosen, norm * reach))
    book = charged(ledger, (PureDP(eps),), "exponential mechanism")
    source = NoiseSource(rng)
    winner = source.weighted_index(risk, rate(eps) / UNITS)
    details = {"grid_points": float(len(grid))}
    return PrivateResult(grid[winner], (PureDP(eps),), book, eps, 0.0, source.private, details)


def integer_risk(
    rows: FloatArray, labels: FloatArray, loss: Loss, grid: FloatArray, width: float
) -> NDArray[np.int64]:
    """Return the sum of the records' losses at every grid point, in units of width / 2**30.

    Every record by itself is rounded to integers in [0, 2**30] above its own least loss, whatever
    its losses are: that range, and not floating point, is the sensitivity. Sums are exact.
    """
    total = np.zeros(len(grid), np.int64)
    block = max(1, CELLS // len(grid))
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
