"""Conversions from pure differential privacy to Rényi, zCDP and GDP.

Arguments are scalars; divergences and ε are in nats. Theorem numbers refer to
docs/theorems_conversions.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

from accountant import checks
from accountant import intervals as iv
from accountant._rounding import U
from accountant.environment import to_nearest
from accountant.search import DOUBLES, bisect

# erf is trusted to 8 roundings and erfc to 16 (docs/theorems.md, Library functions).
ERF, ERFC = 8.0 * U, 16.0 * U
LOG_2_ROOT_PI = 1.265512123  # log(2√π), rounded down


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
    e, alpha = (
        iv.of(checks.number(checks.FINITE_EPSILON, epsilon)),
        iv.of(checks.number(checks.ORDER, order)),
    )
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
    e = checks.number(checks.FINITE_EPSILON, epsilon)
    if e == 0.0:
        return 0.0
    if e < 1e-290:
        # tanh(ε/2)/2 <= ε/4 <= Φ(0.63·ε) - 1/2, for the density is flat here and 0.63·φ(0) > 1/4.
        return math.nextafter(1.26 * e, math.inf)
    # Between neighbouring doubles, the larger of which is certain.
    certain = _certainty(e)
    largest = DOUBLES.rank(sys.float_info.max)
    return DOUBLES.value(bisect(lambda rank: certain(DOUBLES.value(rank)), largest, 0))


def _certainty(epsilon: float) -> Callable[[float], bool]:
    """Return a function of μ: whether Φ(-μ/2) <= 1/(1 + e^ε) is certain."""
    if epsilon > 600.0:
        # erfc(x) <= e^(-x²)/(x√π), compared by logarithms.
        least, root = (iv.log1p(iv.exp(-epsilon)) + epsilon).upper, iv.sqrt(8.0)

        def by_logarithms(mu: float) -> bool:
            x = iv.of(mu) / root
            return bool((x * x + iv.log(x) + LOG_2_ROOT_PI).lower >= least)

        return by_logarithms
    tail = (2.0 / (iv.exp(epsilon) + 1.0)).down()
    middle = (-iv.expm1(-epsilon) / (iv.exp(-epsilon) + 1.0)).up()
    # The first resolves small ε: Φ(μ/2) - Φ(-μ/2) = erf(μ/√8) >= tanh(ε/2).
    return lambda mu: _erf_lower(mu) >= middle or _erfc_upper(mu) <= tail


def _erf_lower(mu: float) -> float:
    """Bound erf(μ/√8) from below."""
    return math.erf(_argument(mu)) * (1.0 - 2.0 * ERF)


def _erfc_upper(mu: float) -> float:
    """Bound erfc(μ/√8) from above."""
    return math.erfc(_argument(mu)) * (1.0 + 2.0 * ERFC) + 1e-300


def _argument(mu: float) -> float:
    # Three roundings of 2**-53, and taken off four.
    return mu / math.sqrt(8.0) * (1.0 - 2.0**-51)
