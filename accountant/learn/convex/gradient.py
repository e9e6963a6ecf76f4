"""Gradient perturbation: noisy projected full-batch gradient descent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant._basics.rounding import U
from accountant.calibration import calibrate_sigma
from accountant.errors import DomainError
from accountant.learn.convex.fit import (
    BOUND,
    GRID_BITS,
    MOST_RECORDS,
    STEP_SIZE,
    LinearFit,
    PrivateResult,
    remaining_after_rounding,
    rounded_shift,
)
from accountant.learn.convex.losses import Loss
from accountant.learn.convex.rows import gradient_rounding, project, row_scores, sum_by_blocks
from accountant.learn.validation import without_numpy_warnings
from accountant.ledger import Accountant
from accountant.mechanisms.gaussian import GDP
from accountant.relations import NeighbouringRelation

PENALTY = checks.nonnegative("regularization", "It multiplies |theta|²/2 in the sum over records")


def last_iterate_mu(
    *,
    steps: int,
    step_size: float,
    noise: float,
    sensitivity: float,
    smoothness: float,
    convexity: float = 0.0,
    diameter: float = math.inf,
) -> float:
    """Return μ for the *last* iterate of noisy projected gradient descent.

    Parameters
    ----------
    steps : int
        Number of steps T; both runs start at the same public point.
    step_size : float
        η, at most 2 / smoothness.
    noise : float
        Standard deviation of the noise in each coordinate of the gradient.
    sensitivity : float
        Bound on the gradients' distance between neighbours, at any point.
    smoothness, convexity : float
        Public bounds M >= m >= 0 on the Hessian of the whole objective.
    diameter : float
        Of the set that every iterate is projected to; ``inf`` without projection.

    Returns
    -------
    float
        The last iterate is μ-GDP, if nothing else is seen: no average of iterates, no loss, no
        early stopping, no momentum.

    Raises
    ------
    DomainError
        The step is too large for the map to contract; the message names the largest.

    Notes
    -----
    *Guarantee.* Bok, Su and Altschuler (ICML 2024) with optimal shifts (docs/theorems_convex.md,
    Theorem V13): the least, over the number τ of last steps looked at, of (c^τ D + ηs Σ_{j<τ} c^j)
    / (ησ (Σ_{j<τ} c^{2j})^{1/2}), where D counts as 0 at τ = T.
    """
    total = checks.integer("steps", steps, 1)
    eta = checks.number(STEP_SIZE, step_size)
    if not (0.0 <= convexity <= smoothness and smoothness > 0.0):
        raise DomainError(
            f"smoothness must be at least convexity >= 0 and positive; got {smoothness!r} and"
            f" {convexity!r}"
        )
    if not (eta <= 2.0 / smoothness):
        raise DomainError(
            f"step_size must be at most 2 / smoothness = {2.0 / smoothness:.6g} for the last"
            f" iterate's account; got {eta!r}. Take smaller steps, or account for all iterates"
        )
    if not (noise > 0.0 and sensitivity >= 0.0 and diameter >= 0.0):
        raise DomainError("noise must be positive, sensitivity and diameter nonnegative")
    c = max(abs(1.0 - eta * convexity), abs(1.0 - eta * smoothness))
    # Powers are accumulated upwards; 1e-9 covers the round-off of up to 1e6 terms.
    best = math.inf
    power, first, second = 1.0, 0.0, 0.0
    for tau in range(1, total + 1):
        first += power
        second += power * power
        power *= c
        start = 0.0 if tau == total else power * diameter
        best = min(best, (start + eta * sensitivity * first) / (eta * noise * math.sqrt(second)))
    return best * (1.0 + 1e-9)


@without_numpy_warnings
def noisy_gradient_descent(
    x: Array,
    y: Array,
    *,
    epsilon: float,
    delta: float,
    data_norm: float,
    steps: int,
    step_size: float,
    loss: Loss | None = None,
    regularization: float = 0.0,
    radius: float | None = None,
    momentum: float = 0.0,
    account: Literal["all", "last"] = "all",
    ledger: Accountant | None = None,
    rng: int | None = None,
) -> PrivateResult:
    """Fit a linear model by noisy full-batch gradient descent on the sum of losses.

    Parameters
    ----------
    x, y, data_norm, loss, ledger, rng
        As in :func:`~accountant.learn.convex.perturbation.perturb_objective`.
    epsilon, delta : float
        The guarantee; δ in (0, 1).
    steps : int
        Number of noisy gradients.
    step_size : float
        Multiplies the gradient of the *sum*, so about 1 / (records × curvature).
    regularization : float
        λ >= 0 of the sum form; it costs no noise.
    radius : float, optional
        Iterates are projected to this ball; for ``"last"`` without it, to one that no run leaves.
    momentum : float
        Heavy-ball momentum in [0, 1), for ``account="all"`` only.
    account : {"all", "last"}
        ``"all"`` pays for every noisy gradient and releases the mean of the last half of the
        iterates. ``"last"`` pays for the last iterate alone and releases that; its smoothness bound
        contains the number of records, so its relation is zero-out, where that is public.

    Returns
    -------
    PrivateResult

    Notes
    -----
    *Guarantee.* ``"all"``: ``steps`` Gaussian releases, √steps / multiplier GDP, under
    add-or-remove (docs/theorems_convex.md, Theorem V12), for up to 1e7 records; more are
    refused. ``"last"``: Theorem V13, refused outside its conditions. The rounding of sums, steps
    and projections is part of the noise's calibration.
    """
    fit = LinearFit(x, data_norm, loss, "noisy gradient descent", epsilon, delta, ledger, rng)
    count = checks.integer("steps", steps, 1)
    eta = checks.number(STEP_SIZE, step_size)
    checks.choice("account", account, ("all", "last"))
    if not (0.0 <= momentum < 1.0) or (momentum and account == "last"):
        raise DomainError(
            f"momentum must be in [0, 1), and 0 for the last iterate's account, whose maps must"
            f" contract; got {momentum!r}"
        )
    checks.number(PENALTY, regularization)
    ball = math.inf if radius is None else checks.number(BOUND.renamed("radius"), radius)
    rows, labels = fit.data(y, MOST_RECORDS if account == "all" else None)
    target = 1.0 / calibrate_sigma(fit.epsilon, fit.delta)
    run = _Run(fit, rows, labels, count, eta, regularization, ball, momentum)
    if account == "all":
        noise, descend = run.noise_for_all(target), run.mean_of_last_half
        fit.charge(GDP(target))
    else:
        noise, descend = run.noise_for_last(target), run.last_iterate
        fit.charge(GDP(target, relation=NeighbouringRelation.ZERO_OUT))
    return fit.result(descend(noise), noise=noise)


@dataclass(frozen=True)
class _Run:
    """One descent: its data, its public settings, and the noise they ask for."""

    fit: LinearFit
    rows: FloatArray
    labels: FloatArray
    steps: int
    eta: float
    lam: float
    radius: float
    momentum: float

    def rounding(self, records: int, reach: float) -> float:
        """Return how far a computed sum of gradients is from the exact one."""
        loss, norm, columns = self.fit.loss, self.fit.norm, self.rows.shape[1]
        return gradient_rounding(loss, records=records, columns=columns, norm=norm, reach=reach)

    def gradient(self, theta: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):  # a warning would say something about a record
            slopes = self.fit.loss.slope(row_scores(self.rows, theta), self.labels)
        # Where a run has diverged a record's score may be inf - inf: no noise would hide a NaN.
        return sum_by_blocks(self.rows, np.nan_to_num(slopes, nan=0.0))

    def noise_for_all(self, target: float) -> float:
        """Return the noise of each gradient for ``target``-GDP of all (V12)."""
        multiplier = math.sqrt(self.steps) / target
        # At one θ two neighbours' records have the same computed slopes (scores are made row by
        # row): only adding them up differs, and the rounding to the grid, half a step a coordinate.
        computed = 2.0 * self.rounding(MOST_RECORDS, 0.0)
        remaining = remaining_after_rounding(self.fit.size, multiplier)
        return multiplier * (self.fit.slope + computed) / remaining * (1.0 + 1e-9)

    def mean_of_last_half(self, noise: float) -> FloatArray:
        theta, velocity, total = (np.zeros(self.fit.shape) for _ in range(3))
        for t in range(self.steps):
            noisy = self.fit.source.release(self.gradient(theta), noise)
            velocity = self.momentum * velocity + noisy + self.lam * theta
            theta = project(theta - self.eta * velocity, self.radius)
            if t >= self.steps // 2:
                total += theta
        return total / (self.steps - self.steps // 2)

    def noise_for_last(self, target: float) -> float:
        """Return the noise of each gradient for a ``target``-GDP last iterate (V13)."""
        fit, records = self.fit, len(self.rows)

        def noise(sensitivity: float) -> float:
            unit = last_iterate_mu(
                steps=self.steps,
                step_size=self.eta,
                noise=1.0,
                sensitivity=sensitivity,
                smoothness=records * fit.loss.curvature_bound * fit.norm**2 + self.lam,
                convexity=self.lam,
                diameter=2.0 * self.radius,
            )
            return unit / target

        base = noise(fit.slope)
        reach = self.reach_for_last(2.0 * base)
        # A step's computed point before its noise, and its projection after: both move by these.
        move = records * fit.slope + self.lam * reach
        before = self.rounding(records, reach) + 16.0 * U * move
        before += 4.0 * U * reach / self.eta
        after = (fit.size + 16) * U * reach / self.eta
        grid = 2.0 * rounded_shift(fit.size, GRID_BITS) * (2.0 * base)
        found = noise(fit.slope + 2.0 * (before + after + grid)) * (1.0 + 1e-9)
        if not (found <= 2.0 * base):
            raise DomainError(
                f"{self.steps} steps over {records} records lose too many digits in double"
                ' precision for the last iterate\'s account; use account="all"'
            )
        return found

    def reach_for_last(self, noise: float) -> float:
        """Return the radius of the ball that iterates are kept in."""
        if self.radius < math.inf:
            return self.radius
        drift = len(self.rows) * self.fit.slope + noise * (math.sqrt(self.fit.size) + 64.0)
        return self.steps * self.eta * drift

    def last_iterate(self, noise: float) -> FloatArray:
        """Descend with the noise on the point, not on the gradient.

        The last operation on data and noise is then one exact Gaussian release, and what follows
        depends on the released point alone: Theorem V13 needs both.
        """
        theta = np.zeros(self.fit.shape)
        reach = self.reach_for_last(noise)
        for _ in range(self.steps):
            point = theta - self.eta * (self.gradient(theta) + self.lam * theta)
            theta = project(self.fit.source.release(point, self.eta * noise), reach)
        return theta
