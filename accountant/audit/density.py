"""Exact audits of outputs in one or two dimensions: the masses of cells, no samples.

Telling in which cell the output lies is post-processing, so the privacy profile of the cells is a
lower bound on the mechanism's own for every grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant.audit.report import AuditReport
from accountant.errors import DomainError
from accountant.mechanisms.base import Mechanism
from accountant.search import narrow

Tails: TypeAlias = Callable[[FloatArray], tuple[Any, Any]]

# A cell's mass is off by a few units in the last place of two values of a distribution function up
# to 1/2.
ROUND_OFF = 2.0**-50


def cell_masses(tails: Tails, edges: object) -> FloatArray:
    """Return the masses of the cells between edges, and beyond the outer two.

    Parameters
    ----------
    tails : callable
        ``tails(x)`` returns P{output <= x} and P{output > x}, each accurate where it is small.
    edges : array_like of shape (k,)
        Ascending.

    Returns
    -------
    ndarray of shape (k + 1,)
    """
    x = np.asarray(edges, dtype=np.float64)
    if x.ndim != 1 or not x.size or not (np.diff(x) > 0.0).all():
        raise DomainError("edges must be ascending")
    below, above = (np.asarray(v, dtype=np.float64) for v in tails(x))
    # Differences in the tail where they do not cancel.
    inner = np.where(below[:-1] < 0.5, below[1:] - below[:-1], above[:-1] - above[1:])
    return np.concatenate(([below[0]], np.maximum(inner, 0.0), [above[-1]]))


def profile_of_masses(p: FloatArray, q: FloatArray, epsilon: float, error: float = 0.0) -> float:
    """Return a lower bound on δ(ε) from cell masses that are within ``error`` in total variation.

    Notes
    -----
    *Guarantee.* Theorem A11 of docs/theorems_audit.md.
    """
    factor = math.exp(min(epsilon, 700.0))
    with np.errstate(over="ignore"):
        excess = np.maximum(p - factor * q, 0.0)
    return max(0.0, math.fsum(excess.tolist()) - error - (factor * error if error else 0.0))


def epsilon_of_masses(p: FloatArray, q: FloatArray, delta: float, error: float = 0.0) -> float:
    """Return an ε at which the profile of the cells is above ``delta``, or 0."""

    def above(epsilon: float) -> bool:
        # The round-off of masses of about one; p and q are used as given beyond it.
        return profile_of_masses(p, q, epsilon, error) > delta * (1.0 + 1e-12) + 1e-15

    if not above(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while above(high):
        low, high = high, 2.0 * high
        if high > 600.0:
            return low
    return narrow(above, low, high, 60)[0]


def audit_masses(
    p: object,
    q: object,
    *,
    claimed: Mechanism | float,
    delta: float,
    error: float = 0.0,
    name: str = "output",
) -> AuditReport:
    """Audit a claim by the exact probabilities of output cells under two neighbouring data sets.

    Parameters
    ----------
    p, q : array_like of one shape
        Masses of the same cells under the two data sets; one or two dimensions, or any outcomes.
    claimed : Mechanism or float
        A mechanism, or ε at ``delta``.
    delta : float
        In [0, 1).
    error : float
        By how much, in all, the masses of either may be wrong (quadrature of densities); the
        round-off of the cells, and what is missing to a sum of 1, are added to it.
    name : str
        For the report.

    Returns
    -------
    AuditReport
        With confidence 1: there is no chance in it.

    Notes
    -----
    *Guarantee.* An honest mechanism is never flagged (docs/theorems_audit.md, Theorem A11).

    Examples
    --------
    >>> report = audit_masses([0.75, 0.25], [0.25, 0.75], claimed=1.0, delta=0.0)
    >>> report.flagged, round(report.epsilon_lower, 6)  # log 3
    (True, 1.098612)
    """
    left, right = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    good = left.shape == right.shape and left.size > 0
    if not (good and bool((left >= 0.0).all()) and bool((right >= 0.0).all())):
        raise DomainError("p and q must be masses of the same cells, all >= 0")
    # Differences of distribution functions carry their round-off, whatever the mass of the cell.
    doubt = error + ROUND_OFF * left.size
    for name_of, mass in (("p", left), ("q", right)):
        surplus = abs(math.fsum(mass.ravel().tolist()) - 1.0)
        if not (surplus <= error + 1e-9):
            raise DomainError(f"the masses {name_of} must add up to 1 within error")
        doubt += surplus
    target = checks.number(checks.DELTA, delta)
    left, right = left.ravel(), right.ravel()
    lower = max(
        epsilon_of_masses(left, right, target, doubt), epsilon_of_masses(right, left, target, doubt)
    )
    epsilon = (
        claimed.epsilon(target)
        if isinstance(claimed, Mechanism)
        else checks.number(checks.EPSILON, claimed)
    )
    return AuditReport(name, lower * (1.0 - 1e-12), epsilon, target, 1.0, "cells, Theorem A11")
