"""Amplification of a Rényi curve by Poisson sampling, at integer orders and between them."""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant._rounding import U, lift, up

__all__ = ["add_from_curve", "remove_from_curve"]

Curve = Callable[[float], float]
MOST_TERMS = 4096


def remove_from_curve(curve: Curve, q: float, order: float) -> float:
    """Bound D_α((1-q)Q + qP ‖ Q) from bounds on D_j(P‖Q) at integers j (Theorem M16).

    The binomial expansion at integer orders, exact when the curve is; between integers the chord
    of the convex function (α - 1)·D_α.
    """
    return _between(lambda n: _moment(curve, q, n, 1.0), order)


def add_from_curve(curve: Curve, q: float, order: float) -> float:
    """Bound D_α(P ‖ (1-q)P + qQ) from bounds on D_j in both directions (Theorem M16)."""
    return _between(lambda n: _moment(curve, q, n, 3.0), order)


def _between(cumulant: Callable[[int], float], order: float) -> float:
    low = math.floor(order)
    if low > MOST_TERMS:
        return math.inf
    if low == order:
        return up(_share(cumulant(low), order - 1.0))
    k_low = cumulant(low) if low > 1 else 0.0
    share = order - low
    chord = (1.0 - share) * k_low + share * cumulant(low + 1)
    # D_α does not decrease with the order.
    return up(min(_share(chord, order - 1.0), _share(cumulant(low + 1), low)), 16.0)


def _share(cumulant: float, below: float) -> float:
    return lift(cumulant / below) if cumulant > 0.0 else 0.0


def _moment(curve: Curve, q: float, n: int, factor: float) -> float:
    """Bound (n - 1)·D_n by log(1 + Σ C(n, j) (1-q)^{n-j} q^j c_j (e^{(j-1)D_j} - [factor 1])).

    With Σ_j C(n, j) (1-q)^{n-j} q^j = 1 the moment minus one is Σ_{j≥2} of the binomial weight
    times e^{(j-1)D_j} - 1 when every factor is 1; a factor 3 from j = 3 on adds twice the term.
    """
    terms: list[float] = []
    log_q, log_rest = math.log(q), math.log1p(-q)
    for j in range(2, n + 1):
        divergence = curve(float(j))
        if divergence == math.inf:
            return math.inf
        exponent = (j - 1) * divergence
        weight = (
            math.lgamma(n + 1)
            - math.lgamma(j + 1)
            - math.lgamma(n - j + 1)
            + j * log_q
            + (n - j) * log_rest
        )
        terms.append(weight + _log_term(exponent, factor if j > 2 else 1.0))
    top = max(terms)
    if top == -math.inf:
        return 0.0
    total = top + math.log(math.fsum(math.exp(term - top) for term in terms))
    # lgamma and the logarithms are off by a few units of their size, which exp turns into a factor.
    size = 64.0 + 8.0 * (math.lgamma(n + 1) + n * (abs(log_q) + abs(log_rest)) + abs(top))
    total += size * U
    if total > 0.0:
        return up(total + math.log1p(math.exp(-total)))
    return up(lift(math.log1p(math.exp(total))))


def _log_term(exponent: float, factor: float) -> float:
    """Return log(factor·e^x - 1) for x >= 0."""
    if factor == 1.0:
        if exponent <= 0.0:
            return -math.inf
        return exponent + math.log(-math.expm1(-exponent))
    return exponent + math.log(factor) + math.log1p(-math.exp(-exponent) / factor)
