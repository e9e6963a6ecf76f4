"""Gaussian differential privacy: the exact profile, composition, and the central-limit heuristic.

A mechanism is μ-GDP if it is at least as hard to tell neighbours apart as N(0, 1) from N(μ, 1).
Theorem numbers refer to docs/theorems_conversions.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from accountant import checks
from accountant._basics import intervals as iv
from accountant._basics.rounding import U
from accountant._core import answers as core
from accountant.analyses.classical import tuples
from accountant.bounds import Bounds
from accountant.environment import to_nearest

__all__ = [
    "clt_delta_approximation",
    "clt_epsilon_approximation",
    "clt_mu_approximation",
    "compose_gdp",
    "gdp_delta_bounds",
    "gdp_epsilon_bounds",
]


@to_nearest
def compose_gdp(parts: Iterable[tuple[float, int]]) -> float:
    """Return the μ of a composition of ``(mu, count)`` Gaussian-private parts: √(Σ count μ²).

    Notes
    -----
    *Guarantee.* The adaptive composition is μ-GDP under the relation of the parts, μ rounded up
    (Theorem C8).

    Examples
    --------
    >>> compose_gdp([(0.5, 36), (4.0, 1)])
    5.0
    """
    total = iv.of(0.0)
    for part in tuples(parts, 2):
        mu, count = checks.number(checks.MU, part[0]), checks.whole(checks.COUNT, part[1])
        if count == 0:
            continue
        if mu == math.inf:
            return math.inf
        total = total + iv.of(mu) * mu * float(count)
    return iv.sqrt(total).up()


@to_nearest
def gdp_delta_bounds(mu: object, epsilon: object) -> Bounds:
    """Bracket the privacy profile of μ-GDP at ``epsilon`` >= 0.

    Notes
    -----
    *Guarantee.* δ(ε) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ) lies in the bracket, and every μ-GDP
    mechanism is (ε, upper)-differentially private (Theorem C8; docs/theorems.md, Theorem 10).

    Examples
    --------
    >>> lower, upper = gdp_delta_bounds(1.0, 1.0)
    >>> 0.126936 < lower <= upper < 0.126937
    True
    """
    return Bounds(*delta_ends(checks.number(checks.MU, mu), checks.number(checks.EPSILON, epsilon)))


@to_nearest
def gdp_epsilon_bounds(mu: object, delta: object) -> Bounds:
    """Bracket the ε of μ-GDP at ``delta``.

    Notes
    -----
    *Guarantee.* As :func:`gdp_delta_bounds`.

    Examples
    --------
    >>> lower, upper = gdp_epsilon_bounds(1.0, 1e-5)
    >>> 4.37 < lower <= upper < 4.38
    True
    """
    return Bounds(*epsilon_ends(checks.number(checks.MU, mu), checks.number(checks.DELTA, delta)))


def delta_ends(mu: float, epsilon: float) -> tuple[float, float]:
    """Bracket δ(epsilon) for checked arguments."""
    # No mass of the loss lies at infinity, for any finite μ.
    if mu == 0.0 or (epsilon == math.inf and mu < math.inf):
        return 0.0, 0.0
    if epsilon == 0.0:
        return _total_variation(mu)
    small, large = _noise(mu)
    if small == 0.0 or epsilon == math.inf:
        return 0.0, 1.0
    lower = core.delta_bounds(1.0, large, 1.0, epsilon, core.EITHER)[0]
    upper = core.delta_bounds(1.0, small, 1.0, epsilon, core.EITHER)[1]
    # δ falls with ε, and the core does not resolve values below 1e-150.
    return lower, min(upper, _total_variation(mu)[1])


def epsilon_ends(mu: float, delta: float) -> tuple[float, float]:
    """Bracket ε(delta) for checked arguments."""
    if mu == 0.0:
        return 0.0, 0.0
    if delta == 0.0:
        return math.inf, math.inf
    small, large = _noise(mu)
    if small == 0.0:
        return 0.0, math.inf
    lower = core.epsilon_bounds(1.0, large, 1.0, delta, core.EITHER)[0]
    return lower, core.epsilon_bounds(1.0, small, 1.0, delta, core.EITHER)[1]


def _total_variation(mu: float) -> tuple[float, float]:
    """Bracket erf(μ/√8), which keeps its relative accuracy however small μ is."""
    # The argument carries three roundings, and erf at most the relative error of its argument;
    # erf itself is trusted to 8 roundings, as in the core. Subnormal results are not.
    value, error = math.erf(mu / math.sqrt(8.0)), 16.0 * U
    return max(value * (1.0 - error) - 1e-300, 0.0), min(value * (1.0 + error) + 1e-300, 1.0)


def _noise(mu: float) -> tuple[float, float]:
    """Bracket 1/μ. More noise never has a larger profile."""
    # One rounding. Where 1/μ overflows, the largest double is below it.
    inverse = 1.0 / mu
    return math.nextafter(inverse, 0.0), math.nextafter(inverse, math.inf)


@to_nearest
def clt_mu_approximation(q: object, sigma: object, steps: object) -> float:
    """Return the μ that DP-SGD tends to: an approximation, never a guarantee.

    Parameters
    ----------
    q, sigma, steps
        Scalars, as in :func:`accountant.get_epsilon`; Poisson sampling, add-or-remove.

    Returns
    -------
    float
        q √(steps (e^(1/σ²) - 1)).

    Notes
    -----
    *No guarantee.* The central limit theorem of Bu, Dong, Long, Su 2020 gives the limit of the
    trade-off function when the number of steps grows with q √steps fixed. At a finite number of
    steps the true ε may be larger; for small σ it is much larger. Use
    :func:`accountant.get_epsilon`.

    Examples
    --------
    >>> round(clt_mu_approximation(0.01, 1.0, 1000), 4)
    0.4145
    """
    probability, noise = checks.number(checks.Q, q), checks.number(checks.SIGMA, sigma)
    number = checks.whole(checks.STEPS, steps)
    if probability == 0.0 or number == 0:
        return 0.0
    try:
        return probability * math.sqrt(number * math.expm1(1.0 / noise / noise))
    except OverflowError:
        return math.inf


@to_nearest
def clt_epsilon_approximation(q: object, sigma: object, steps: object, delta: object) -> float:
    """Return the ε at ``delta`` of the central-limit μ: an approximation, never a guarantee.

    Notes
    -----
    *No guarantee.* See :func:`clt_mu_approximation`.

    Examples
    --------
    >>> 1.4 < clt_epsilon_approximation(0.01, 1.0, 1000, 1e-5) < 1.7
    True
    """
    target = checks.number(checks.DELTA, delta)
    return epsilon_ends(clt_mu_approximation(q, sigma, steps), target)[1]


@to_nearest
def clt_delta_approximation(q: object, sigma: object, steps: object, epsilon: object) -> float:
    """Return the δ at ``epsilon`` of the central-limit μ: an approximation, never a guarantee.

    Notes
    -----
    *No guarantee.* See :func:`clt_mu_approximation`.

    Examples
    --------
    >>> 0 < clt_delta_approximation(0.01, 1.0, 1000, 1.0) < 1e-2
    True
    """
    point = checks.number(checks.EPSILON, epsilon)
    return delta_ends(clt_mu_approximation(q, sigma, steps), point)[1]
