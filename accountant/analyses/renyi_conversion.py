"""The conversion of Rényi divergences to (ε, δ), the search for the order, and sums of curves.

Each formula is written once, for floats (``lib = math``), arrays (``lib = numpy``) and intervals
(``lib = intervals``): a search evaluates floats, and the number returned is certified by intervals.
Where many orders or levels δ are wanted, :func:`excess_upper` and the functions after it evaluate
floats and add what their rounding may come to. Theorem numbers refer to
docs/theorems_conversions.md.

Canonne's formula has one more evaluation, ``convert_upper`` of ``_core/src/renyi_conversion.c``:
the curve of the subsampled Gaussian, its derivatives and the search for the order are C, and a call
from there to here would cost more than all of them. A test holds one against the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._basics import intervals as iv
from accountant._basics.rounding import U
from accountant.pairs.base import DominatingPair
from accountant.pairs.product import infinite_mass, total
from accountant.search import golden

RenyiCurve: TypeAlias = Callable[[float], float]
Parts: TypeAlias = Sequence[tuple["DominatingPair", int]]

# For the rounding of formulas evaluated with floats.
_SLACK = 12.0 * U

EPSILON_FORMS = ("asoodeh", "canonne", "mironov")

# The least and the largest log(α - 1) of the scan of orders. Any order gives a bound: these and the
# next two decide how near it is to the best.
LEAST = -14.0
MOST = 28.0
# Points of the scan.
POINTS = 43
# Steps of the golden section around its best point.
REFINEMENTS = 26
# Orders below which sums of curves are searched.
HIGHEST = 1.0 + math.exp(20.25)


def best_epsilon(
    curve: RenyiCurve,
    delta: float,
    form: str,
    orders: Iterable[float] | None = None,
    limit: float = math.inf,
) -> float:
    """Return a certified upper bound on ε, at the best order found below ``limit``."""

    def loose(order: float) -> float:
        rho = curve(order)
        if not rho < math.inf:
            return math.inf
        if form == "mironov":
            return float(_mironov(math, rho, order, delta))
        return float(_canonne(math, rho, order, delta))

    order = _best_order(loose, orders, limit)
    if order is None:
        return math.inf
    rho = curve(order)
    if form == "mironov":
        return max(0.0, float(_mironov(iv, iv.of(rho), iv.of(order), iv.of(delta)).up()))
    results = [float(_canonne(iv, iv.of(rho), iv.of(order), iv.of(delta)).up())]
    if form == "asoodeh":
        candidates = {order: rho} if orders is not None else _nearby(curve, order, limit)
        results.extend(_sharpened(a, r, delta) for a, r in candidates.items())
    return max(min(results), 0.0)


def best_delta(
    curve: RenyiCurve,
    epsilon: float,
    form: str,
    orders: Iterable[float] | None = None,
    limit: float = math.inf,
    *,
    floats: bool = False,
) -> float:
    """Return a certified upper bound on δ, at the best order found below ``limit``.

    With ``floats`` Canonne's formula takes no intervals, and has a few digits less.
    """
    formula = _log_delta_mironov if form == "mironov" else _log_delta_canonne

    def loose(order: float) -> float:
        rho = curve(order)
        return float(formula(math, rho, order, epsilon)) if rho < math.inf else math.inf

    order = _best_order(loose, orders, limit, POINTS // 2 if floats else POINTS)
    if order is None:
        return 1.0
    if floats and form == "canonne":
        return _delta_upper(curve(order), order, epsilon)
    log_delta = formula(iv, iv.of(curve(order)), iv.of(order), iv.of(epsilon))
    return min(iv.exp(log_delta).up(), 1.0)


def curve_of(parts: Parts) -> RenyiCurve:
    """Return order -> Σ n·D_order of the finite losses, rounded up."""
    return lambda order: total((pair.finite_rdp(order), n) for pair, n in parts)


def epsilon_upper(parts: Parts, delta: float, curve: RenyiCurve | None = None) -> float:
    """Bound ε(delta) of one direction from above (docs/theorems_mechanisms.md, Theorem M12).

    ``curve`` is :func:`curve_of` of the parts, if the caller has already computed it.
    """
    infinite = infinite_mass(parts)
    remaining = delta if infinite == 0.0 else math.nextafter(delta - infinite, -math.inf)
    if not remaining > 0.0:
        return math.inf
    return best_epsilon(curve or curve_of(parts), remaining, "canonne", limit=HIGHEST)


def delta_upper(
    parts: Parts, epsilon: float, curve: RenyiCurve | None = None, *, floats: bool = False
) -> float:
    """Bound δ(epsilon) of one direction from above; ``curve`` as in :func:`epsilon_upper`.

    ``floats`` as in :func:`best_delta`.
    """
    curve = curve or curve_of(parts)
    finite = best_delta(curve, epsilon, "canonne", limit=HIGHEST, floats=floats)
    infinite = infinite_mass(parts)
    return min(math.nextafter(finite + infinite, 1.0), 1.0) if infinite > 0.0 else finite


def best_order(parts: Parts, delta: float) -> float:
    """Return the order at which Canonne's bound on ε is nearly least; infinite where none is."""
    curve = curve_of(parts)
    return (
        _best_order(lambda order: float(_canonne(math, curve(order), order, delta)), None, HIGHEST)
        or math.inf
    )


def excess_upper(order: float, delta: float) -> float:
    """Bound what Canonne's formula adds to a divergence, ε - ρ, from above; it may be negative."""
    return float(_excess_upper(math, order, delta))


def excesses_upper(order: float, deltas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return :func:`excess_upper` for many δ; infinite where δ is not positive."""
    known = deltas > 0.0
    return np.where(known, _excess_upper(np, order, np.where(known, deltas, 0.5)), math.inf)


def capacity_lower(order: float, epsilon: float, delta: float) -> float:
    """Return the largest ρ that Canonne's formula turns into (ε, δ), rounded down.

    It is negative where there is none: the inverse of the formula in its first argument (Theorem L3
    of docs/theorems_ledger.md).
    """
    return math.nextafter(epsilon - excess_upper(order, delta), -math.inf)


def mironov_upper(order: float, rho: float, delta: float) -> float:
    """Return ρ + log(1/δ)/(α - 1), rounded up: Mironov's formula for floats."""
    tail = float(_mironov(math, 0.0, order, delta))
    return math.nextafter(rho + tail * (1.0 + _SLACK), math.inf)


def log_deltas(
    rhos: NDArray[np.float64], orders: NDArray[np.float64], epsilon: float
) -> NDArray[np.float64]:
    """Return the logarithms of Canonne's δ for arrays, without a bound on their rounding."""
    return np.asarray(_log_delta_canonne(np, rhos, orders, epsilon))


def _excess_upper(lib: Any, order: float, delta: Any) -> Any:
    # Library calls are trusted to 8 units in the last place, of 2**-53; the quotient takes three
    # more roundings, and that of 1/α is at most one unit of 1/(α - 1) in the logarithm.
    sizes = (abs(lib.log(delta)) + math.log(order) + 1.0) / (order - 1.0)
    return _canonne(lib, 0.0, order, delta) + _SLACK * (sizes - math.log1p(-1.0 / order))


def _delta_upper(rho: float, order: float, epsilon: float) -> float:
    """Return Canonne's δ by floats, rounded up."""
    # The logarithm is that of the formula with log(1 - 1/α) = log(α - 1) - log α, whose two terms
    # carry 8 units each, as does the last; a product and α - 1 take three roundings, the sums four.
    below = order - 1.0
    logs = abs(math.log(below)) + math.log(order)
    log_delta = below * (rho - epsilon + math.log(below) - math.log(order)) - math.log(order)
    log_delta += 2.0 * _SLACK * (below * (rho + epsilon + logs + 1.0) + math.log(order))
    if not log_delta < 0.0:  # also where products leave the doubles and it is no number
        return 1.0
    return min(math.exp(log_delta) * (1.0 + _SLACK) + 5e-324, 1.0)


def _mironov(lib: Any, rho: Any, order: Any, delta: Any) -> Any:
    return rho - lib.log(delta) / (order - 1.0)


def _canonne(lib: Any, rho: Any, order: Any, delta: Any) -> Any:
    return rho + lib.log1p(-1.0 / order) - (lib.log(delta) + lib.log(order)) / (order - 1.0)


def _log_delta_mironov(lib: Any, rho: Any, order: Any, epsilon: Any) -> Any:
    return (order - 1.0) * (rho - epsilon)


def _log_delta_canonne(lib: Any, rho: Any, order: Any, epsilon: Any) -> Any:
    below = order - 1.0
    return below * (rho - epsilon) + below * lib.log1p(-1.0 / order) - lib.log(order)


def _asoodeh(lib: Any, rho: Any, order: Any, delta: Any, touch: Any) -> Any:
    """Return ε from the line-and-power majorant that touches zero at ``touch`` (Theorem C11)."""
    below = order - 1.0
    log_touch = lib.log(touch)
    power = lib.exp(below * log_touch)  # touch^(α-1)
    moment = lib.exp(below * rho)
    gap = moment + below * power * touch - order * power
    far = lib.exp(lib.log(gap / (order * delta) + power) / below)
    return lib.log(below * (far / order + delta / gap * power * (far - touch)))


def _nearby(curve: RenyiCurve, order: float, limit: float) -> dict[float, float]:
    """Return orders around the best one for Canonne's formula, with their divergences."""
    found = {}
    for factor in (1.0, 0.5, 0.7, 0.85, 1.2, 1.5, 2.0):
        nearby = 1.0 + (order - 1.0) * factor
        if 1.0 < nearby < limit:
            rho = curve(nearby)
            if rho < math.inf:
                found[nearby] = rho
    return found


def _sharpened(order: float, rho: float, delta: float) -> float:
    """Return Asoodeh's ε at one order. Any point of contact is valid; the search finds the best."""
    if (iv.of(order) * delta).lower >= 1:
        return (iv.of(rho) + iv.log1p(-delta)).up()
    if not 0.0 < (order - 1.0) * rho < 700.0:
        return math.inf

    def loose(contact: float) -> float:
        try:
            return float(_asoodeh(math, rho, order, delta, contact))
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.inf

    contact = golden(loose, 1e-9, 1.0 - 1e-9, REFINEMENTS)[1]
    if not loose(contact) < math.inf:
        return math.inf
    exact = (iv.of(x) for x in (rho, order, delta, contact))
    try:
        return float(_asoodeh(iv, *exact).up())
    except (ValueError, ZeroDivisionError):  # forty digits did not separate a term from zero
        return math.inf


def _best_order(
    loose: Callable[[float], float],
    orders: Iterable[float] | None,
    limit: float,
    points: int = POINTS,
) -> float | None:
    def cost(order: float) -> float:
        value = loose(order)
        return value if value == value else math.inf

    if orders is not None:
        known = [(cost(order), order) for order in orders if order < limit]
        value, order = min(known, default=(math.inf, math.inf))
        return order if value < math.inf else None
    # Orders so near 1 that α - 1 is rounded away are left out.
    highest = math.log(limit - 1.0) if limit < math.inf else MOST
    highest = min(max(highest, -30.0), MOST)
    width = (highest - min(LEAST, highest - 1.0)) / (points - 1)
    scan = [highest - 1e-9 - i * width for i in range(points)]
    values = [cost(1.0 + math.exp(x)) for x in scan]
    best = min(range(points), key=values.__getitem__)
    if not values[best] < math.inf:
        return None
    x = golden(
        lambda y: cost(1.0 + math.exp(y)),
        scan[min(best + 1, points - 1)],
        scan[max(best - 1, 0)],
        REFINEMENTS,
    )[1]
    order = min((1.0 + math.exp(scan[best]), 1.0 + math.exp(x)), key=cost)
    return order if 1.0 < order < limit else None
