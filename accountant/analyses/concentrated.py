"""Composition of Rényi, zero-concentrated and truncated concentrated guarantees by addition.

Theorem numbers refer to docs/theorems_conversions.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from accountant import checks
from accountant._basics import intervals as iv
from accountant.analyses.classical import tuples
from accountant.environment import to_nearest

__all__ = ["TruncatedConcentrated", "compose_rdp", "compose_tcdp", "compose_zcdp"]

RenyiCurve: TypeAlias = Callable[[float], float]


class TruncatedConcentrated(NamedTuple):
    """(ρ, ω)-tCDP: the Rényi divergence of order α is at most ρα for 1 < α < ω."""

    rho: float
    omega: float


@to_nearest
def compose_zcdp(parts: Iterable[tuple[float, int]]) -> float:
    """Return the ρ of a composition of ``(rho, count)`` zero-concentrated parts, rounded up.

    Notes
    -----
    *Guarantee.* The adaptive composition is ρ-zCDP under the relation of the parts (Theorem C7).

    Examples
    --------
    >>> compose_zcdp([(0.5, 3), (0.25, 2)])
    2.0
    """
    return compose_tcdp((rho, math.inf, count) for rho, count in tuples(parts, 2)).rho


@to_nearest
def compose_tcdp(parts: Iterable[tuple[float, float, int]]) -> TruncatedConcentrated:
    """Return the (ρ, ω) of a composition of ``(rho, omega, count)`` parts: (Σρ, min ω).

    Notes
    -----
    *Guarantee.* The adaptive composition is (ρ, ω)-tCDP under the relation of the parts
    (Theorem C7).

    Examples
    --------
    >>> compose_tcdp([(0.5, 10.0, 2), (0.25, 4.0, 1)])
    TruncatedConcentrated(rho=1.25, omega=4.0)
    """
    total, least, unbounded = iv.of(0.0), math.inf, False
    for part in tuples(parts, 3):
        rho, omega, count = (
            checks.number(checks.RHO, part[0]),
            checks.number(checks.OMEGA, part[1]),
            checks.whole(checks.COUNT, part[2]),
        )
        if count == 0:
            continue
        least = min(least, omega)
        unbounded = unbounded or rho == math.inf
        if not unbounded:
            total = total + iv.of(rho) * float(count)
    return TruncatedConcentrated(math.inf if unbounded else total.up(), least)


@to_nearest
def compose_rdp(parts: Iterable[tuple[RenyiCurve, int]]) -> RenyiCurve:
    """Return the Rényi curve of a composition of ``(curve, count)`` parts.

    A curve takes an order α > 1 and returns an upper bound on the Rényi divergence, in nats.

    Notes
    -----
    *Guarantee.* The curve returned bounds the adaptive composition under the relation of the parts
    (Theorem C7).

    Examples
    --------
    >>> curve = compose_rdp([(lambda order: 0.5 * order, 4)])
    >>> curve(2.0)
    4.0
    """
    curves = [(_curve(part[0]), checks.whole(checks.COUNT, part[1])) for part in tuples(parts, 2)]

    @to_nearest
    def composed(order: float) -> float:
        alpha = checks.number(checks.ORDER, order)
        total = iv.of(0.0)
        for curve, count in curves:
            value = float(curve(alpha)) if count else 0.0
            if not value < math.inf:
                return math.inf
            total = total + iv.of(value) * float(count)
        return total.up()

    return composed


def _curve(value: RenyiCurve) -> RenyiCurve:
    return checks.function("curve", value, "the Rényi order")
