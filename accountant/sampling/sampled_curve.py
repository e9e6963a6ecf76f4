"""The Rényi curve of a Poisson-sampled pair of which only the curve is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

from accountant.pairs.base import DominatingPair
from accountant.sampling._renyi import add_from_curve, remove_from_curve


@lru_cache(maxsize=4096)
def curve_of_sample(
    inner: DominatingPair, reverse: DominatingPair | None, q: float, add: bool, order: float
) -> float:
    """Return the divergence of the finite losses at an order, rounded up (Theorem M16)."""
    # Outcomes of infinite loss are lost to P against Q, but not to P against (1-q)P + qQ.
    if not add or inner.is_symmetric:
        return min(remove_from_curve(_finite(inner), q, order), inner.rdp(order))
    # To second order in q the divergence is that of Q from P.
    return min(add_from_curve(_either(inner, reverse or inner), q, order), inner.rdp(order))


# Every order asks for all integers below it, so that divergences are remembered.


@lru_cache(maxsize=64)
def _finite(inner: DominatingPair) -> Callable[[float], float]:
    return cache(inner.finite_rdp)


@lru_cache(maxsize=64)
def _either(inner: DominatingPair, reverse: DominatingPair) -> Callable[[float], float]:
    @cache
    def larger(order: float) -> float:
        one = inner.rdp(order)
        return one if reverse == inner else max(one, reverse.rdp(order))

    return larger
