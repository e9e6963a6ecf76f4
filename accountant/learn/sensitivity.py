"""Bounds on one record's effect on a computed sum: clipping and every rounding.

The statements are Theorems T2 to T5 of docs/theorems_training.md; the names there are used here.
"""

from __future__ import annotations

import math

import numpy as np

from accountant._rounding import U
from accountant.errors import DomainError
from accountant.learn.clipping import Rule
from accountant.learn.models.base import BLOCK_ROWS, Model
from accountant.noise.grid import Grid
from accountant.search import narrow

# A run whose number of records is a secret accepts as many as this, and pays for the rounding of
# sums of as many as may be drawn from them: it may not look at how many there are.
MOST_RECORDS = 2**24

UNIT32 = 2.0**-24
OUTWARD = 1.0 + 1e-12  # for the roundings of these few formulas themselves
RARE = 700.0  # an event of probability below e^-700 is left out (Theorem T4)


def batch_cap(expected_batch_size: float) -> int:
    """Return a size that a Poisson sample exceeds with probability below e⁻⁷⁰⁰.

    The number of records drawn is a sum of independent trials with mean at most
    μ = 1.01 B + 2; Chernoff: P{m >= (1 + x) μ} <= exp(-μ ((1 + x) log(1 + x) - x)).
    """
    mean = 1.01 * expected_batch_size + 2.0

    def rare(x: float) -> bool:
        return mean * ((1.0 + x) * math.log1p(x) - x) >= RARE

    high = 2.0
    while not rare(high):
        high *= 2.0
    excess, _ = narrow(rare, high, 0.0, 60)
    return math.ceil(mean * (1.0 + excess)) + 1


def relative_excess(model: Model, cap: int) -> float:
    """Return r such that one record changes the computed sum by at most sensitivity · (1 + r).

    Covers the computed norms and clip factors (η), the scaled rows, and 2 γ cap for the rounding
    of the sums of all records in both runs; not the rounding to a grid. Sums are in double
    precision whatever the model's is. Where a record adds several outer products, what may cancel
    between them, within a block, is at most ``spread`` times its norm.
    """
    spread, terms = model.spread, model.terms
    unit = UNIT32 if model.dtype == np.float32 else U
    eta = (model.widest / 8.0 + 64.0) * U + 4.0 * unit * spread
    within = (BLOCK_ROWS * terms + 4) * U
    across = (cap / BLOCK_ROWS + 4.0) * U
    inside = within / (1.0 - within) * spread
    gamma = inside + across / (1.0 - across) * (1.0 + inside)
    sums = 2.0 * gamma * cap
    return (eta + sums + eta * sums) * OUTWARD  # (1 + η) (1 + 2 γ cap) - 1, without cancellation


def grid_for(
    rule: Rule, size: int, noise_multiplier: float, largest_scale: float, excess: float = 0.0
) -> Grid:
    """Return the grid: its rounding adds at most a thousandth to the sensitivity, if it can.

    With noise of at most ``largest_scale`` grid steps (the discrete Gaussian's limit) it may have
    to be coarser.
    """
    sensitivity = rule.sensitivity
    fine = sensitivity * 2.0**-10 / math.sqrt(size)
    coarse = 2.1 * sensitivity * (1.0 + excess) * noise_multiplier / largest_scale
    return Grid.at_most(max(fine, coarse))


def rounded_sensitivity(rule: Rule, excess: float, grid: Grid, size: int, cap: int) -> float:
    """Return the sensitivity of the sum after rounding to ``grid``, Δ of Theorem T5."""
    sensitivity = rule.sensitivity
    if not math.isfinite(sensitivity):
        raise DomainError("noise needs a finite clipping_norm; got inf")
    grid.require_range(sensitivity * (1.0 + excess) * (cap + 1.0))
    return (sensitivity * (1.0 + excess) + grid.step * math.sqrt(size)) * OUTWARD
