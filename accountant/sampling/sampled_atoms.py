"""A sample of a pair that has atoms, and the Rényi curve of a sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._basics.rounding import TINY, U, lift, product_up, up
from accountant.pairs.atoms import AtomicPair, Atoms
from accountant.pairs.base import DominatingPair
from accountant.pairs.excess import loss_of_sample, loss_of_the_rest

Curve: TypeAlias = Callable[[float], float]
# The largest integer order of an amplified curve.
MOST_TERMS = 4096


def remove_from_curve(curve: Curve, q: float, order: float) -> float:
    """Bound D_α((1-q)Q + qP ‖ Q) from bounds on D_j(P‖Q) at integers j (Theorem M16).

    The binomial expansion at integer orders, exact when the curve is; between integers the chord
    of the convex function (α - 1)·D_α.
    """
    return _between(_moments(curve, q, 1.0), order)


def add_from_curve(curve: Curve, q: float, order: float) -> float:
    """Bound D_α(P ‖ (1-q)P + qQ) from bounds on D_j in both directions (Theorem M16)."""
    return _between(_moments(curve, q, 3.0), order)


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


@lru_cache(maxsize=64)
def _moments(curve: Curve, q: float, factor: float) -> Callable[[int], float]:
    """Return the function n -> bound on (n - 1)·D_n, which remembers what it computed."""
    logs = np.empty(MOST_TERMS)
    known = 2
    found: dict[int, float] = {}

    def cumulant(n: int) -> float:
        nonlocal known
        if n not in found:
            for j in range(known, n + 1):
                logs[j - 2] = _log_term((j - 1) * curve(float(j)), factor if j > 2 else 1.0)
            known = max(known, n + 1)
            found[n] = _moment(logs[: n - 1], q, n)
        return found[n]

    return cumulant


def _moment(logs: NDArray[np.float64], q: float, n: int) -> float:
    """Bound (n - 1)·D_n by log(1 + Σ C(n, j) (1-q)^{n-j} q^j c_j (e^{(j-1)D_j} - [factor 1])).

    With Σ_j C(n, j) (1-q)^{n-j} q^j = 1 the moment minus one is Σ_{j≥2} of the binomial weight
    times e^{(j-1)D_j} - 1 when every factor is 1; a factor 3 from j = 3 on adds twice the term.
    ``logs`` are the logarithms of what the weights of j = 2, ..., n are multiplied with.
    """
    log_q, log_rest = math.log(q), math.log1p(-q)
    taken = np.arange(2, n + 1)
    factorials = _log_factorials()
    weights = factorials[n] - factorials[taken] - factorials[n - taken]
    terms = weights + taken * log_q + (n - taken) * log_rest + logs
    top = float(terms.max())
    if not top < math.inf:
        return math.inf
    if top == -math.inf:
        return 0.0
    total = top + math.log(float(np.exp(terms - top).sum()))
    # lgamma and the logarithms are off by a few units of their size, which exp turns into a factor.
    # Sums of up to 128 terms in order, and then by pairs, add at most 133 units for 4096.
    size = 256.0 + 8.0 * (math.lgamma(n + 1) + n * (abs(log_q) + abs(log_rest)) + abs(top))
    total += size * U
    if total > 0.0:
        return up(total + math.log1p(math.exp(-total)))
    return up(lift(math.log1p(math.exp(total))))


@lru_cache(maxsize=1)
def _log_factorials() -> NDArray[np.float64]:
    """Return log(k!) for all k that a moment asks for."""
    return np.array([math.lgamma(k + 1.0) for k in range(MOST_TERMS + 2)])


def _log_term(exponent: float, factor: float) -> float:
    """Return log(factor·e^x - 1) for x >= 0; infinite where x is."""
    if exponent == math.inf:
        return math.inf
    if factor == 1.0:
        if exponent <= 0.0:
            return -math.inf
        return exponent + math.log(-math.expm1(-exponent))
    return exponent + math.log(factor) + math.log1p(-math.exp(-exponent) / factor)


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


@dataclass(frozen=True)
class SampledAtoms(AtomicPair):
    """A Poisson-sampled discrete pair: its atoms, at their new losses."""

    inner: AtomicPair
    q: float
    add: bool
    reverse: DominatingPair | None = None

    def atoms(self) -> Atoms:
        """Return the inner atoms carried forward; those of one law alone become finite."""
        q, table = self.q, self.inner.loss_atoms
        if self.add:
            new, first = -loss_of_sample(q, -table.loss), table.p
            second, extra = (1.0 - q) * table.p + q * table.q, table.infinite_p
            place, end, at_end = table.loss.size, -math.log1p(-q), (extra, (1.0 - q) * extra)
            infinite = 0.0, q * table.infinite_q
        else:
            new, second = loss_of_sample(q, table.loss), table.q
            first, extra = (1.0 - q) * table.q + q * table.p, table.infinite_q
            place, end, at_end = 0, math.log1p(-q), ((1.0 - q) * extra, extra)
            infinite = q * table.infinite_p, 0.0
        if extra > 0.0:
            new, first, second = (
                np.insert(column, place, value)
                for column, value in ((new, end), (first, at_end[0]), (second, at_end[1]))
            )
        new = np.maximum.accumulate(new)
        error = table.loss_error + 16.0 * U * max(-float(new[0]), float(new[-1]))
        if table.loss[0] != 0.0 or table.loss[-1] != 0.0:  # a loss may have underflowed to 0
            error = max(error, TINY)
        return Atoms(
            new, first.copy(), second.copy(), *infinite,
            table.relative_error + 8.0 * U, error, table.absolute_error + 1e-323,
        )  # fmt: skip

    @property
    def infinite_mass(self) -> float:
        """Only a record that was used can be lost, however seldom."""
        return 0.0 if self.add else product_up(self.q, self.inner.infinite_mass)

    @cached_property
    def support(self) -> tuple[float, float]:
        """The ends of the atoms, or of what inner losses without bound are mapped to."""
        low, high = super().support
        inner_low, inner_high = self.inner.support
        if self.add:
            low = -math.inf if inner_low == -math.inf else low
            return low, (max(high, -loss_of_the_rest(self.q)) if inner_high == math.inf else high)
        low = min(low, loss_of_the_rest(self.q)) if inner_low == -math.inf else low
        return low, (math.inf if inner_high == math.inf else high)

    def finite_rdp(self, order: float) -> float:
        """Return the divergence of the finite losses, rounded up.

        A high order is ruled by outcomes too rare to be among the atoms, so with an unbounded inner
        loss it is the inner curve that is amplified (Theorem M16).
        """
        if all(map(math.isfinite, self.inner.support)):
            return super().finite_rdp(order)
        return curve_of_sample(self.inner, self.reverse, self.q, self.add, order)

    @property
    def _unhidden(self) -> DominatingPair:
        """The inner pair."""
        return self.inner

    @property
    def variation(self) -> float:
        """Only a record that was used is seen."""
        return product_up(self.q, self.inner.variation)
