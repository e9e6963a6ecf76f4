"""Conversions between trade-off functions (f-DP) and (ε, δ).

Arguments are scalars; divergences and ε are in nats. Theorem numbers refer to
docs/theorems_conversions.md.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import TypeAlias

from accountant import checks
from accountant import intervals as iv
from accountant._rounding import U
from accountant.checks import Argument
from accountant.environment import to_nearest
from accountant.errors import DomainError

Tradeoff: TypeAlias = Callable[[float], float]

TOLERANCE = Argument(
    "tolerance",
    "a number in (0, 1)",
    lambda x: (x > 0.0) & (x < 1.0),
    "It is the relative width to stop at",
)
MOST_CELLS = 5000


@to_nearest
def approximate_dp_tradeoff(epsilon: object, delta: object, fpr: object) -> float:
    """Return the trade-off function of (ε, δ)-differential privacy at ``fpr``, rounded down.

    Notes
    -----
    *Guarantee.* Every attack on an (ε, δ)-differentially private mechanism with this false-positive
    rate misses at least this often: max(0, 1 - δ - e^ε fpr, e^-ε (1 - δ - fpr)) (Theorem C16;
    Wasserman, Zhou 2010).

    Examples
    --------
    >>> approximate_dp_tradeoff(0.0, 0.0, 0.25)
    0.75
    """
    e, d, x = (
        checks.number(checks.FINITE_EPSILON, epsilon),
        checks.number(checks.DELTA, delta),
        checks.number(checks.FPR, fpr),
    )
    kept = iv.of(1.0) - d
    steep = kept - iv.exp(e) * x
    flat = iv.exp(-e) * (kept - x)
    return max(0.0, steep.down(), flat.down())


@to_nearest
def tradeoff_to_delta(tradeoff: Tradeoff, epsilon: object, *, tolerance: object = 1e-3) -> float:
    """Return the δ at ``epsilon`` that a trade-off function implies, rounded up.

    Parameters
    ----------
    tradeoff : callable
        Takes a false-positive rate in [0, 1], returns a lower bound on the false-negative rate of
        any attack; the truth it bounds is non-increasing, as every trade-off function is.
    epsilon : float
        In nats, finite, >= 0.
    tolerance : float
        Relative width at which to stop refining, in (0, 1).

    Returns
    -------
    float
        δ in [0, 1].

    Notes
    -----
    *Guarantee.* (epsilon, δ)-differential privacy in the direction of the trade-off function, both
    when it is symmetric: δ = sup over x of 1 - f(x) - e^ε x (Dong, Roth, Su 2022, Proposition
    2.12), where on every cell f is bounded by its value at the right end (Theorem C17).

    *Algorithm.* Best-first refinement of cells of [0, 1]; at most 5000 cells, a limit that can
    only make the answer larger.

    Examples
    --------
    >>> perfect = lambda fpr: 1 - fpr
    >>> tradeoff_to_delta(perfect, 0.5) < 1e-6
    True
    """
    checks.function("tradeoff", tradeoff, "the false-positive rate")
    point = checks.number(checks.FINITE_EPSILON, epsilon)
    width = checks.number(TOLERANCE, tolerance)
    slope = iv.exp(point).down()

    def miss(x: float) -> float:
        value = float(tradeoff(x))
        if not 0.0 <= value <= 1.0:
            raise DomainError(f"tradeoff must be in [0, 1]; got {value!r} at {x!r}")
        return value

    def bound(left: float, at_right: float) -> float:
        # Three roundings of numbers at most 1; where slope * left overflows, nothing is left.
        return 1.0 - at_right - slope * left + 4.0 * U

    def cell(left: float, right: float) -> tuple[float, float, float]:
        return -bound(left, miss(right)), left, right

    cells = [cell(0.0, 1.0)]
    attained = max(1.0 - miss(0.0), 0.0)
    for _ in range(MOST_CELLS):
        top, left, right = cells[0]
        # Below the rounding of the bound itself nothing more can be resolved.
        if -top <= attained * (1.0 + width) + 2.0**-48:
            break
        # Small false-positive rates matter most: divide in ratio there, in half elsewhere.
        middle = math.sqrt(left * right) if left > 0.0 else right * 2.0**-8
        middle = middle if right > 4.0 * left else 0.5 * (left + right)
        if not left < middle < right:
            break
        attained = max(attained, 1.0 - miss(middle) - slope * middle)
        heapq.heapreplace(cells, cell(left, middle))
        heapq.heappush(cells, cell(middle, right))
    return min(max(-cells[0][0], 0.0), 1.0)
