"""Conversions from Rényi curves, zCDP and tCDP to (ε, δ).

Arguments are scalars; divergences and ε are in nats. Theorem numbers refer to
docs/theorems_conversions.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeAlias

from accountant import checks
from accountant._basics import intervals as iv
from accountant.analyses.renyi_conversion import EPSILON_FORMS, best_delta, best_epsilon
from accountant.environment import to_nearest
from accountant.errors import ArgumentTypeError, DomainError

RenyiCurve: TypeAlias = Callable[[float], float]


@to_nearest
def rdp_to_epsilon(
    curve: RenyiCurve,
    delta: object,
    *,
    form: str = "asoodeh",
    orders: Iterable[float] | None = None,
) -> float:
    """Return the ε at ``delta`` that a Rényi curve implies, at the best order.

    Parameters
    ----------
    curve : callable
        Takes an order α > 1, returns an upper bound on the Rényi divergence, in nats (``inf`` where
        there is none). For a guarantee in both directions it must bound both.
    delta : float
        In [0, 1). At 0 the answer is infinite unless the divergence is 0.
    form : {"asoodeh", "canonne", "mironov"}
        ``"canonne"``: Canonne, Kamath, Steinke 2020; Balle et al. 2020. ``"asoodeh"``: the optimum
        over all distributions of that divergence (Asoodeh et al. 2021), never worse, and a few
        milliseconds slower. ``"mironov"``: Mironov 2017, the classical one; with integer ``orders``
        it is the moments accountant of Abadi et al. 2016.
    orders : iterable of float, optional
        The orders to try; by default every real one.

    Returns
    -------
    float
        ε >= 0, rounded up; infinite where the curve is.

    Notes
    -----
    *Guarantee.* (ε, delta)-differential privacy in every direction the curve bounds (Theorems C9
    to C11). Every order at which the search may end is valid.

    *Algorithm.* A scan of log(α - 1), a golden section, one evaluation in interval arithmetic.

    Examples
    --------
    >>> gaussian = lambda order: order / 2
    >>> sharp, usual, old = (
    ...     rdp_to_epsilon(gaussian, 1e-5, form=form) for form in ("asoodeh", "canonne", "mironov")
    ... )
    >>> sharp <= usual < old
    True
    """
    target = checks.number(checks.DELTA, delta)
    checks.choice("form", form, EPSILON_FORMS)
    checked = _checked_curve(curve)
    known = _checked_orders(orders)
    if target == 0.0:
        return 0.0 if any(checked(a) == 0.0 for a in known or (2.0,)) else math.inf
    return best_epsilon(checked, target, form, known)


@to_nearest
def rdp_to_delta(
    curve: RenyiCurve,
    epsilon: object,
    *,
    form: str = "canonne",
    orders: Iterable[float] | None = None,
) -> float:
    """Return the δ at ``epsilon`` that a Rényi curve implies, at the best order.

    Parameters
    ----------
    curve, orders
        As in :func:`rdp_to_epsilon`.
    epsilon : float
        In nats, >= 0.
    form : {"canonne", "mironov"}
        As in :func:`rdp_to_epsilon`.

    Returns
    -------
    float
        δ in [0, 1], rounded up.

    Notes
    -----
    *Guarantee.* (epsilon, δ)-differential privacy in every direction the curve bounds (Theorems
    C9 and C10).

    Examples
    --------
    >>> 0 < rdp_to_delta(lambda order: order / 2, 5.0) < 1e-5
    True
    """
    point = checks.number(checks.EPSILON, epsilon)
    checks.choice("form", form, EPSILON_FORMS[1:])
    checked, known = _checked_curve(curve), _checked_orders(orders)
    if point == math.inf:
        # A finite divergence at any order leaves no mass at infinity.
        return 0.0 if any(checked(a) < math.inf for a in known or (1.5, 2.0)) else 1.0
    return best_delta(checked, point, form, known)


@to_nearest
def zcdp_to_rdp(rho: object, order: object) -> float:
    """Return the Rényi divergence ρα that ρ-zCDP allows at ``order``, rounded up.

    Examples
    --------
    >>> zcdp_to_rdp(0.5, 3.0)
    1.5
    """
    value, alpha = checks.number(checks.RHO, rho), checks.number(checks.ORDER, order)
    return (iv.of(value) * alpha).up()


@to_nearest
def zcdp_to_epsilon(rho: object, delta: object, *, form: str = "asoodeh") -> float:
    """Return the ε at ``delta`` that ρ-zCDP implies.

    Parameters
    ----------
    rho : float
        ρ >= 0: the Rényi divergence is at most ρα at every order α > 1.
    delta : float
        In [0, 1).
    form : {"asoodeh", "canonne", "bun-steinke"}
        The first two as in :func:`rdp_to_epsilon`; the last is ρ + 2√(ρ log(1/δ)).

    Notes
    -----
    *Guarantee.* (ε, delta)-differential privacy, rounded up (Theorems C10, C11, C15).

    Examples
    --------
    >>> zcdp_to_epsilon(0.5, 1e-5) < zcdp_to_epsilon(0.5, 1e-5, form="bun-steinke")
    True
    """
    return tcdp_to_epsilon(rho, math.inf, delta, form=form)


@to_nearest
def zcdp_to_delta(rho: object, epsilon: object) -> float:
    """Return the δ at ``epsilon`` that ρ-zCDP implies, at the best order.

    Notes
    -----
    *Guarantee.* (epsilon, δ)-differential privacy, rounded up (Theorem C10).

    Examples
    --------
    >>> 0 < zcdp_to_delta(0.5, 5.0) < 1e-5
    True
    """
    return tcdp_to_delta(rho, math.inf, epsilon)


@to_nearest
def tcdp_to_epsilon(rho: object, omega: object, delta: object, *, form: str = "asoodeh") -> float:
    """Return the ε at ``delta`` that (ρ, ω)-tCDP implies.

    Parameters
    ----------
    rho, omega : float
        The Rényi divergence is at most ρα at every order 1 < α < ω.
    delta : float
        In [0, 1).
    form : {"asoodeh", "canonne", "bun-steinke"}
        As in :func:`zcdp_to_epsilon`; the last is Bun, Dwork, Rothblum, Steinke 2018, Lemma 6.

    Notes
    -----
    *Guarantee.* (ε, delta)-differential privacy, rounded up (Theorems C10, C11, C15).

    Examples
    --------
    >>> zcdp_to_epsilon(0.5, 1e-5) < tcdp_to_epsilon(0.5, 3.0, 1e-5)
    True
    """
    r, limit = checks.number(checks.RHO, rho), checks.number(checks.OMEGA, omega)
    target = checks.number(checks.DELTA, delta)
    checks.choice("form", form, ("asoodeh", "canonne", "bun-steinke"))
    if r == 0.0:
        return 0.0
    if target == 0.0 or r == math.inf:
        return math.inf
    if form == "bun-steinke":
        return _bun_steinke(r, limit, target)
    return best_epsilon(lambda order: zcdp_to_rdp(r, order), target, form, None, limit)


@to_nearest
def tcdp_to_delta(rho: object, omega: object, epsilon: object) -> float:
    """Return the δ at ``epsilon`` that (ρ, ω)-tCDP implies, at the best order below ω.

    Notes
    -----
    *Guarantee.* (epsilon, δ)-differential privacy, rounded up (Theorem C10).

    Examples
    --------
    >>> zcdp_to_delta(0.5, 5.0) < tcdp_to_delta(0.5, 3.0, 5.0) < 1e-2
    True
    """
    r, limit = checks.number(checks.RHO, rho), checks.number(checks.OMEGA, omega)
    point = checks.number(checks.EPSILON, epsilon)
    if r == 0.0:
        return 0.0
    if r == math.inf:
        return 1.0
    if point == math.inf:
        return 0.0
    return best_delta(lambda order: zcdp_to_rdp(r, order), point, "canonne", None, limit)


def _checked_curve(curve: RenyiCurve) -> RenyiCurve:
    checks.function("curve", curve, "the order")

    def checked(order: float) -> float:
        value = float(curve(order))
        if not value >= 0.0:
            raise DomainError(
                f"curve must return a divergence >= 0; got {value!r} at order {order!r}."
                " Return inf where there is none"
            )
        return value

    return checked


def _checked_orders(orders: Iterable[float] | None) -> tuple[float, ...] | None:
    if orders is None:
        return None
    if isinstance(orders, (str, bytes)) or not isinstance(orders, Iterable):
        raise ArgumentTypeError(f"orders must be an iterable of orders > 1; got {orders!r:.60}")
    known = tuple(checks.number(checks.ORDER, order) for order in orders)
    if not known:
        raise DomainError("orders must hold at least one order; got none")
    return known


def _bun_steinke(rho: float, omega: float, delta: float) -> float:
    r, tail = iv.of(rho), -iv.log(delta)
    simple = (r + iv.sqrt(r * tail) * 2.0).up()
    if omega == math.inf or (tail.upper <= ((iv.of(omega) - 1.0) * (omega - 1.0) * r).lower):
        return simple
    # At the largest order; this formula is also valid where the first one is.
    return (r * omega + tail / (iv.of(omega) - 1.0)).up()
