"""Conversions of pure, Gaussian and functional guarantees, each certified in one direction.

Theorem numbers refer to docs/theorems_conversions.md.
"""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Callable
from typing import TypeAlias

from accountant import checks
from accountant._basics import intervals as iv
from accountant._basics.rounding import U
from accountant.analyses import gdp
from accountant.checks import Argument
from accountant.environment import to_nearest
from accountant.errors import DomainError, PrecisionError
from accountant.pairs.excess import mu_of_pure
from accountant.search import DOUBLES, boundary


@to_nearest
def pure_to_rdp(epsilon: object, order: object) -> float:
    """Return the Rényi divergence of ``order`` that ε-differential privacy allows at most.

    Notes
    -----
    *Guarantee.* The divergence of randomised response, which dominates every ε-differentially
    private mechanism: log(cosh((α - ½) ε)/cosh(ε/2))/(α - 1), rounded up (Theorem C12).

    Examples
    --------
    >>> pure_to_rdp(1.0, 2.0) < 1.0
    True
    """
    e = iv.of(checks.number(checks.FINITE_EPSILON, epsilon))
    alpha = iv.of(checks.number(checks.ORDER, order))
    # cosh(x) = e^x (1 + e^-2x)/2, and (α - ½) - ½ = α - 1.
    ratio = iv.log1p(iv.exp(-((alpha * 2.0 - 1.0) * e))) - iv.log1p(iv.exp(-e))
    return max(min((e + ratio / (alpha - 1.0)).up(), e.up()), 0.0)


@to_nearest
def pure_to_zcdp(epsilon: object, *, form: str = "tight") -> float:
    """Return the ρ for which ε-differential privacy implies ρ-zCDP.

    Parameters
    ----------
    epsilon : float
        Finite, >= 0.
    form : {"tight", "bun-steinke"}
        ε tanh(ε/2), the least possible; or ε²/2 (Bun, Steinke 2016, Proposition 1.4).

    Notes
    -----
    *Guarantee.* ρ-zCDP, ρ rounded up (Theorem C13).

    Examples
    --------
    >>> pure_to_zcdp(1.0) < pure_to_zcdp(1.0, form="bun-steinke") == 0.5
    True
    """
    checks.choice("form", form, ("tight", "bun-steinke"))
    e = iv.of(checks.number(checks.FINITE_EPSILON, epsilon))
    if form == "bun-steinke":
        return (e * e * 0.5).up()
    return (e * -iv.expm1(-e) / (iv.exp(-e) + 1.0)).up()


@to_nearest
def pure_to_gdp(epsilon: object) -> float:
    """Return the μ for which ε-differential privacy implies μ-GDP.

    Notes
    -----
    *Guarantee.* μ-GDP with μ = 2 Φ⁻¹(e^ε/(1 + e^ε)), rounded up: the least possible (Theorem C14).

    Examples
    --------
    >>> 1.23 < pure_to_gdp(1.0) < 1.24
    True
    """
    return mu_of_pure(checks.number(checks.FINITE_EPSILON, epsilon))


@to_nearest
def gdp_to_epsilon(mu: object, delta: object) -> float:
    """Return the ε at ``delta`` of μ-GDP, exactly, rounded up (analytic Gaussian).

    Notes
    -----
    *Guarantee.* (ε, delta)-differential privacy, and no smaller ε holds for N(0, 1) against
    N(μ, 1), up to round-off (Theorem C8). The bracket:
    :func:`accountant.analyses.gdp.gdp_epsilon_bounds`.

    Examples
    --------
    >>> 4.37 < gdp_to_epsilon(1.0, 1e-5) < 4.38
    True
    """
    return gdp.epsilon_ends(checks.number(checks.MU, mu), checks.number(checks.DELTA, delta))[1]


@to_nearest
def gdp_to_delta(mu: object, epsilon: object) -> float:
    """Return the δ at ``epsilon`` of μ-GDP, exactly, rounded up.

    Notes
    -----
    *Guarantee.* As :func:`gdp_to_epsilon`.

    Examples
    --------
    >>> 0.126936 < gdp_to_delta(1.0, 1.0) < 0.126937
    True
    """
    return gdp.delta_ends(checks.number(checks.MU, mu), checks.number(checks.EPSILON, epsilon))[1]


@to_nearest
def gdp_to_rdp(mu: object, order: object) -> float:
    """Return the Rényi divergence αμ²/2 that μ-GDP allows at ``order``, rounded up.

    Notes
    -----
    *Guarantee.* Theorem C8.

    Examples
    --------
    >>> gdp_to_rdp(1.0, 3.0)
    1.5
    """
    value, alpha = checks.number(checks.MU, mu), checks.number(checks.ORDER, order)
    return (iv.of(value) * value * alpha * 0.5).up()


@to_nearest
def gdp_to_zcdp(mu: object) -> float:
    """Return the ρ = μ²/2 for which μ-GDP implies ρ-zCDP, rounded up.

    Notes
    -----
    *Guarantee.* Theorem C8.

    Examples
    --------
    >>> gdp_to_zcdp(2.0)
    2.0
    """
    value = checks.number(checks.MU, mu)
    return (iv.of(value) * value * 0.5).up()


@to_nearest
def largest_gdp(epsilon: object, delta: object) -> float:
    """Return the largest μ for which μ-GDP implies (epsilon, delta)-differential privacy.

    Parameters
    ----------
    epsilon : float
        In nats, finite, >= 0.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        μ, rounded down: the next larger double was not certified.

    Notes
    -----
    *Guarantee.* ``gdp_to_delta(mu, epsilon) <= delta`` (Theorem C8). There is no
    converse: with δ > 0 an (ε, δ) guarantee implies no μ-GDP, because it allows that the record is
    published with probability δ. For δ = 0 see :func:`pure_to_gdp`.

    Examples
    --------
    >>> mu = largest_gdp(1.0, 1e-5)
    >>> gdp_to_delta(mu, 1.0) <= 1e-5
    True
    """
    point = checks.number(checks.FINITE_EPSILON, epsilon)
    target = checks.number(checks.TARGET_DELTA, delta)
    guess = max(point / math.sqrt(-2.0 * math.log(target)), target)
    ends = DOUBLES.rank(sys.float_info.min), DOUBLES.rank(sys.float_info.max)
    rank = boundary(lambda mu: gdp.delta_ends(mu, point)[1], target, DOUBLES, guess, *ends)
    if rank is None:
        raise PrecisionError(f"no mu was certified for epsilon = {point!r}, delta = {target!r}")
    return DOUBLES.value(rank)


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
    e, d = checks.number(checks.FINITE_EPSILON, epsilon), checks.number(checks.DELTA, delta)
    x = checks.number(checks.FPR, fpr)
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
