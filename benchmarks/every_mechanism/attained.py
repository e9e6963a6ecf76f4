"""Releases that actual neighbouring inputs attain, whose lower ends no bound can be below."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import accountant as ac

__all__ = ["permute_and_flip", "released", "two_candidates"]

Strategies = Callable[[float], Iterator[ac.Mechanism]]
# Shares of the range ε that the first candidate's loss takes; the other one has the rest.
SHARES = (0.35, 0.4, 0.45, 0.48, 0.5, 0.52, 0.55, 0.6, 0.65, 0.75, 0.9, 0.99)


def sampled(mechanism: ac.Mechanism, q: float) -> ac.Mechanism:
    return mechanism if q == 1.0 else ac.PoissonSampled(mechanism, q)


def released(mechanism: ac.Mechanism) -> Strategies:
    """One mechanism that has the stated guarantee."""
    return lambda q: iter([sampled(mechanism, q)])


def two_candidates(epsilon: float) -> Strategies:
    """The exponential mechanism between two candidates whose scores move apart by all of ε.

    The log odds of the first are ``a`` with the record and ``a - epsilon`` without it. ``a`` makes
    its loss the given share of ε: (1 - e^{-(ε-t)})/(1 - e^{-ε}) is its probability with the record.
    """

    def strategies(q: float) -> Iterator[ac.Mechanism]:
        for share in SHARES:
            # e^t of odds against e^{t-ε}: P = (e^t - e^{t-ε})⁻¹·e^t·(1 - e^{t-ε})
            t = share * epsilon
            first = -math.expm1(t - epsilon) / -math.expm1(-epsilon)
            other = first * math.exp(-t)
            yield sampled(ac.DominatingPMFs([first, 1.0 - first], [other, 1.0 - other]), q)

    return strategies


def permute_and_flip(epsilon: float) -> Strategies:
    """Permute-and-flip between two candidates: the gap of their scores moves by ``epsilon`` scales.

    The worse one of two wins with probability e^{-gap/scale}/2.
    """

    def first(gap: float) -> float:
        return 1.0 - 0.5 * math.exp(-gap) if gap >= 0.0 else 0.5 * math.exp(gap)

    def strategies(q: float) -> Iterator[ac.Mechanism]:
        for share in (-1.0, -0.9, -0.75, -0.5, -0.25, -0.1, 0.0):
            p, r = first((1.0 + share) * epsilon), first(share * epsilon)
            yield sampled(ac.DominatingPMFs([p, 1.0 - p], [r, 1.0 - r]), q)

    return strategies
