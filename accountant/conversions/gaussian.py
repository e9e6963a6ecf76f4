"""Conversions between Gaussian differential privacy and (ε, δ), Rényi and zCDP.

Arguments are scalars; divergences and ε are in nats. Theorem numbers refer to
docs/theorems_conversions.md.
"""

from __future__ import annotations

import math
import sys

from accountant import checks
from accountant import intervals as iv
from accountant.analyses import gdp
from accountant.environment import to_nearest
from accountant.errors import PrecisionError
from accountant.search import DOUBLES, boundary


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
    point, target = (
        checks.number(checks.FINITE_EPSILON, epsilon),
        checks.number(checks.TARGET_DELTA, delta),
    )
    guess = max(point / math.sqrt(-2.0 * math.log(target)), target)
    rank = boundary(
        lambda mu: gdp.delta_ends(mu, point)[1],
        target,
        DOUBLES,
        guess,
        DOUBLES.rank(sys.float_info.min),
        DOUBLES.rank(sys.float_info.max),
    )
    if rank is None:
        raise PrecisionError(f"no mu was certified for epsilon = {point!r}, delta = {target!r}")
    return DOUBLES.value(rank)
