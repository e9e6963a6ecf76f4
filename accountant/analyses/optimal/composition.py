"""Optimal composition of (ε, δ)-differentially private mechanisms.

When nothing is known of k mechanisms but that each is (ε, δ)-differentially private, the best
possible guarantee of their composition is that of randomised response with a mass δ at infinity
(Kairouz, Oh, Viswanath 2015; Murtagh, Vadhan 2016). Its profile is computed exactly, piecewise
linear in e^ε between the points of the theorem, for any number of runs; with several different ε by
enumeration, or on a grid with its error inside the bracket. A relation is whatever relation the
parts share: one, not several.

Theorem numbers refer to docs/theorems_conversions.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

from accountant import checks
from accountant import intervals as iv
from accountant.analyses.optimal.binomial import randomised_response
from accountant.analyses.optimal.loss_table import LossTable
from accountant.analyses.optimal.parts_on_grid import NEGLIGIBLE, enumerated, on_grid
from accountant.analyses.parts import Part, merged_parts
from accountant.bounds import Bounds
from accountant.checks import Argument
from accountant.environment import to_nearest
from accountant.intervals import Interval

# As many atoms as are enumerated; beyond, losses are rounded to a grid.
ENUMERABLE = 2**20
GRID_POINTS = Argument(
    "grid_points",
    "an integer in [16, 2**22]",
    lambda x: (x >= 16) & (x <= 2**22),
    "More points make the bracket narrower and the work larger",
)


@to_nearest
def optimal_epsilon(parts: object, delta: object, *, grid_points: int = 2**14) -> float:
    """Return the smallest ε that (ε, δ) parts can promise at ``delta``, rounded up.

    Parameters
    ----------
    parts : iterable of tuple
        ``(epsilon, delta)`` or ``(epsilon, delta, count)`` of each group of mechanisms; ε finite
        and >= 0 in nats, δ in [0, 1), counts integers >= 0.
    delta : float
        The δ of the composition, in [0, 1).
    grid_points : int
        Resolution of the grid, where one is needed (see Notes).

    Returns
    -------
    float
        ε in nats; infinite when the parts' own δ already exceed ``delta``.

    Notes
    -----
    *Guarantee.* Every (also adaptive) composition of mechanisms with these guarantees under one
    relation is (ε, delta)-differentially private under it, and no smaller ε holds for all of them
    up to the width of :func:`optimal_epsilon_bounds` (Theorems C4 to C6).

    *Algorithm.* One ε: binomial masses by recurrence from one mass in 40-digit arithmetic, then
    exact interpolation in e^ε. Several: enumeration of up to 2**20 atoms; beyond, every group's
    losses are spread over a grid so that the result dominates.

    Examples
    --------
    >>> optimal_epsilon([(0.1, 0.0, 100)], 1e-6) < 100 * 0.1
    True
    """
    return _ends(optimal_epsilon_bounds(parts, delta, grid_points=grid_points))[1]


@to_nearest
def optimal_epsilon_bounds(parts: object, delta: object, *, grid_points: int = 2**14) -> Bounds:
    """Bracket the smallest ε that (ε, δ) parts can promise at ``delta``.

    Parameters
    ----------
    parts, delta, grid_points
        As in :func:`optimal_epsilon`.

    Returns
    -------
    Bounds
        ``lower <= ε <= upper``; equal up to round-off unless a grid was needed.

    Notes
    -----
    *Guarantee.* The optimal ε lies in the bracket (Theorems C4 to C6).

    Examples
    --------
    >>> lower, upper = optimal_epsilon_bounds([(1.0, 0.0, 3), (0.5, 1e-7, 2)], 1e-6)
    >>> upper - lower < 1e-12
    True
    """
    checked = merged_parts(parts)
    target = checks.number(checks.DELTA, delta)
    points = checks.whole(GRID_POINTS, grid_points)
    table, largest = _table(checked, points)
    return Bounds(*table.epsilon_bounds(target, largest))


@to_nearest
def optimal_delta(parts: object, epsilon: object, *, grid_points: int = 2**14) -> float:
    """Return the smallest δ that (ε, δ) parts can promise at ``epsilon``, rounded up.

    Parameters
    ----------
    parts, grid_points
        As in :func:`optimal_epsilon`.
    epsilon : float
        The ε of the composition, in nats, >= 0; may be infinite.

    Returns
    -------
    float
        δ in [0, 1].

    Notes
    -----
    *Guarantee.* Every composition of such mechanisms under one relation is (epsilon, δ)-private
    under it (Theorems C4 to C6).

    Examples
    --------
    >>> optimal_delta([(0.1, 0.0, 100)], 10.0) < 1e-15
    True
    """
    return _ends(optimal_delta_bounds(parts, epsilon, grid_points=grid_points))[1]


@to_nearest
def optimal_delta_bounds(parts: object, epsilon: object, *, grid_points: int = 2**14) -> Bounds:
    """Bracket the smallest δ that (ε, δ) parts can promise at ``epsilon``.

    Parameters
    ----------
    parts, epsilon, grid_points
        As in :func:`optimal_delta`.

    Returns
    -------
    Bounds
        ``lower <= δ <= upper``.

    Notes
    -----
    *Guarantee.* The optimal δ lies in the bracket (Theorems C4 to C6).

    Examples
    --------
    >>> import math
    >>> lower, upper = optimal_delta_bounds([(1.0, 0.0)], 0.0)
    >>> lower <= math.tanh(0.5) <= upper
    True
    """
    checked = merged_parts(parts)
    point = checks.number(checks.EPSILON, epsilon)
    points = checks.whole(GRID_POINTS, grid_points)
    table, largest = _table(checked, points)
    if point >= largest.up():
        return Bounds(max(0.0, table.infinite.down()), min(1.0, table.infinite.up()))
    return Bounds(*table.delta_bounds(point))


def infinite_mass(parts: tuple[Part, ...]) -> Interval:
    """Enclose 1 - Π (1 - δ)^count."""
    total = iv.of(0.0)
    for part in parts:
        if part.delta > 0.0:
            total = total + iv.log1p(-part.delta) * float(part.count)
    # 0 - x, not -x: no negative zeros.
    return iv.of(0.0) - iv.expm1(total)


def largest_loss(parts: tuple[Part, ...]) -> Interval:
    """Enclose Σ count · ε, the ε of basic composition."""
    total = iv.of(0.0)
    for part in parts:
        total = total + iv.of(part.epsilon) * float(part.count)
    return total


@lru_cache(maxsize=4)
def _table(parts: tuple[Part, ...], points: int) -> tuple[LossTable, Interval]:
    counts: dict[float, int] = {}
    for part in parts:
        if part.epsilon > 0.0:
            counts[part.epsilon] = counts.get(part.epsilon, 0) + part.count
    if len(counts) <= 1:
        ((epsilon, count),) = counts.items() or {(0.0, 1)}
        table = randomised_response(epsilon, count)
    else:
        tables = [randomised_response(*item, NEGLIGIBLE) for item in counts.items()]
        few = math.prod(float(each.losses.size) for each in tables) <= ENUMERABLE
        table = enumerated(tables) if few else on_grid(tables, points)
    return replace(table, infinite=infinite_mass(parts)), largest_loss(parts)


def _ends(bounds: Bounds) -> tuple[float, float]:
    assert isinstance(bounds.lower, float)
    assert isinstance(bounds.upper, float)
    return bounds.lower, bounds.upper
