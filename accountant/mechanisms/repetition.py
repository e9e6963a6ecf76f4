"""The best of a random number of private runs: hyper-parameter search as one release."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from accountant.checks import Argument
from accountant.errors import ArgumentTypeError, UnsupportedError
from accountant.mechanisms import _arguments as arguments
from accountant.mechanisms._arithmetic import U, up
from accountant.mechanisms.atoms import AtomicPair, Atoms
from accountant.mechanisms.base import DominatingPair, Mechanism
from accountant.mechanisms.flat import flat

if TYPE_CHECKING:
    from accountant.relations import NeighbouringRelation

__all__ = ["BestOfPoissonRuns", "BestOfRuns"]

STOPPING = Argument(
    "stopping_probability",
    "a number in (0, 1]",
    lambda x: (x > 0.0) & (x <= 1.0),
    "1 is a single run; BestOfRuns.with_mean finds it for a mean number of runs",
)
ETA = Argument(
    "eta",
    "a finite number > -1",
    lambda x: (x > -1.0) & (x < math.inf),
    "0 is the logarithmic distribution, 1 the geometric one; smaller ones cost less",
)
MEAN = Argument(
    "mean",
    "a finite number >= 1",
    lambda x: (x >= 1.0) & (x < 2.0**53),
    "It is the mean number of runs",
)
POISSON_MEAN = MEAN._replace(requirement="a finite number > 0", holds=lambda x: (x > 0) & (x < 1e9))

POINTS = 500  # of the profile, joined by chords
LEAST = 1e-25  # of the profile; what is left is mass at infinity
FARTHEST = 170.0  # and four times it does not overflow an exponential
LARGEST = 690.0  # of the losses in the table: their exponentials are doubles
# Rényi orders at which Theorem P6 is converted for the profile.
ORDERS = tuple(1.0 + math.exp(0.12 * k) for k in range(-25, 60))


@dataclass(frozen=True, repr=False)
class BestOfRuns(Mechanism):
    """Run K times, with settings drawn at random, and release the best run's output.

    Parameters
    ----------
    base : Mechanism
        A bound on one run: on every setting that may be drawn, the score included.
    stopping_probability : float
        γ in (0, 1].
    eta : float, optional
        η > -1: K has the negative binomial distribution of (η, γ), truncated to K >= 1. 1 is
        geometric, with mean 1/γ; 0 is logarithmic.

    Notes
    -----
    *Guarantee.* The profile is at most E[K]·δ(ε - (1+η)·c), δ the profile of one run and c least
    with δ(c) <= γ(e^c - 1)/(1 - γ) (docs/theorems_selection.md, Theorem P4); the Rényi divergence
    at most D_α + log E[K]/(α-1) + (1+η)·min(c, Papernot and Steinke's term) (Theorem P5). Nothing
    but the best output may be seen, K included.

    *Algorithm.* Five hundred values of the profile of one run, joined by chords (Theorem P7).

    Examples
    --------
    >>> import accountant as ac
    >>> ac.BestOfRuns.with_mean(ac.Gaussian(2.0), 10.0, eta=0.0).epsilon(1e-5) < 3.0
    True
    """

    base: Mechanism
    stopping_probability: float
    eta: float = 1.0

    def __post_init__(self) -> None:
        _settle_base(self)
        gamma = arguments.scalar(STOPPING, self.stopping_probability)
        object.__setattr__(self, "stopping_probability", gamma)
        object.__setattr__(self, "eta", arguments.scalar(ETA, self.eta))

    @classmethod
    def with_mean(cls, base: Mechanism, mean: float, *, eta: float = 1.0) -> BestOfRuns:
        """Return the search of ``mean`` runs in expectation, rounded down."""
        target, shape = arguments.scalar(MEAN, mean), arguments.scalar(ETA, eta)
        low, high = 1e-300, 1.0
        # E[K] decreases with γ.
        while low < (middle := math.sqrt(low * high)) < high:
            low, high = (middle, high) if mean_runs(middle, shape) > target else (low, middle)
        return cls(base, high, shape)

    @property
    def mean(self) -> float:
        """E[K], rounded up."""
        return mean_runs(self.stopping_probability, self.eta)

    @property
    def relation(self) -> NeighbouringRelation:
        """That of one run."""
        return self.base.relation

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return one pair, made of the worst of both directions."""
        if self.stopping_probability == 1.0:
            return self.base.pairs()
        return (flat(self) or BestPair(self),)

    def group(self, size: int) -> BestOfRuns:
        """Return the search as seen by a group."""
        return BestOfRuns(self.base.group(size), self.stopping_probability, self.eta)

    def under(self, relation: NeighbouringRelation) -> BestOfRuns:
        """Return the search with one run's bound stated under another relation."""
        return BestOfRuns(self.base.under(relation), self.stopping_probability, self.eta)

    def excess(self) -> float:
        """Return (1+η)·c: what the choice adds to the loss of the run chosen (Theorem P4)."""
        return up((1.0 + self.eta) * _contrast(self.base, self.stopping_probability), 4.0)

    def renyi(self, order: float) -> float:
        """Bound D_order by Theorem P5."""
        return _renyi_negative_binomial(self, order)

    def hockey(self, epsilon: float) -> float:
        """Bound the profile at ``epsilon`` by Theorem P4."""
        shifted = epsilon - _excess(self)
        return up(self.mean * self.base.delta(shifted), 4.0) if shifted >= 0.0 else 1.0

    def pure(self) -> float:
        """Return a bound on the loss: one run's, plus the excess."""
        pure = _pure(self.base)
        return up(pure + _excess(self), 4.0) if pure < math.inf else pure


@dataclass(frozen=True, repr=False)
class BestOfPoissonRuns(Mechanism):
    """Run a Poisson number of times, with settings drawn at random, and release the best output.

    Parameters
    ----------
    base : Mechanism
        As in :class:`BestOfRuns`.
    mean : float
        The mean of the Poisson distribution, > 0. With no run at all a fixed output is released.

    Notes
    -----
    *Guarantee.* The lesser of m·δ(ε - m·δ(0)), δ the profile of one run, and Papernot and
    Steinke's Rényi bound D_α + m·δ(log(1 + 1/(α-1))) + log m/(α-1), with what no run at all adds
    (docs/theorems_selection.md, Theorem P6).
    """

    base: Mechanism
    mean: float

    def __post_init__(self) -> None:
        _settle_base(self)
        object.__setattr__(self, "mean", arguments.scalar(POISSON_MEAN, self.mean))

    @property
    def relation(self) -> NeighbouringRelation:
        """That of one run."""
        return self.base.relation

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return one pair, made of the worst of both directions."""
        return (flat(self) or BestPair(self),)

    def group(self, size: int) -> BestOfPoissonRuns:
        """Return the search as seen by a group."""
        return BestOfPoissonRuns(self.base.group(size), self.mean)

    def under(self, relation: NeighbouringRelation) -> BestOfPoissonRuns:
        """Return the search with one run's bound stated under another relation."""
        return BestOfPoissonRuns(self.base.under(relation), self.mean)

    def renyi(self, order: float) -> float:
        """Bound D_order by Theorem P6."""
        one = self.base.rdp(order)
        below, m = order - 1.0, self.mean
        distance = self.base.delta(max(math.log1p(1.0 / below) * (1.0 - 8.0 * U), 0.0))
        exponent = below * (one + m * distance) + math.log(m)
        # The fixed output of no run has mass e^{-m} and no loss.
        total = max(exponent, -m) + math.log1p(math.exp(-abs(exponent + m)))
        size = below * (one + m * distance) + abs(math.log(m)) + m + 1.0
        return max((total + 16.0 * U * size) / below * (1.0 + 4.0 * U), 0.0)

    def hockey(self, epsilon: float) -> float:
        """Bound the profile at ``epsilon`` by Theorem P6."""
        shifted = epsilon - up(self.mean * self.base.delta(0.0), 4.0)
        near = self.mean * self.base.delta(shifted) if shifted >= 0.0 else 1.0
        try:
            rows = _curve(self)
        except UnsupportedError:
            return up(near, 4.0)
        exponents = [
            b * (rho - epsilon) + b * math.log1p(-1.0 / (b + 1.0)) - math.log(b + 1.0)
            for b, rho in rows
        ]
        return up(min(near, math.exp(min(0.0, *exponents)) * (1.0 + 1e-9)), 4.0)

    def pure(self) -> float:
        """Return a bound on the loss: one run's, plus m times the total variation."""
        return up(_pure(self.base) + self.mean * self.base.delta(0.0), 8.0)


class Bounded(Protocol):
    """What is known of a mechanism by bounds: its profile, its Rényi divergences, its loss."""

    def hockey(self, epsilon: float) -> float:
        """Bound the profile in both directions."""

    def renyi(self, order: float) -> float:
        """Bound the Rényi divergence in both directions."""

    def pure(self) -> float:
        """Bound the loss; infinite when unbounded."""

    def __hash__(self) -> int:
        """Return a hash by value: bounds are cached."""


@dataclass(frozen=True)
class BestPair(AtomicPair):
    """Values of the profile joined by chords, which lie above it (Theorem P7)."""

    search: Any  # hashable, and as in Bounded
    # The Rényi bound is a theorem of its own, and composes better than the hull of the profile.
    sharper_rdp = True

    def atoms(self) -> Atoms:
        """Return the atoms of the convex hull of the values found."""
        grid, values = self._values()
        points = [(Fraction(0), Fraction(1), 0.0)]
        points += [
            (Fraction(math.exp(x)), Fraction(min(h, 1.0)), x)
            for x, h in zip(grid, values, strict=True)
        ]
        kept = _hull(points)
        slopes = [(a[1] - b[1]) / (b[0] - a[0]) for a, b in pairwise(kept)]
        q = [before - after for before, after in pairwise([*slopes, Fraction(0)])]
        rows = [(x[2], w * x[0], w) for x, w in zip(kept[1:], q, strict=True) if w > 0]
        # Nothing known at any ε: all mass at infinity, but a table must not be empty.
        rows = rows or [(0.0, Fraction(2.0**-60), Fraction(2.0**-60))]
        loss, p, q_mass = (np.array([float(row[i]) for row in rows]) for i in range(3))
        infinite, lost = float(kept[-1][1]), float(1 - slopes[0])
        error = 8.0 * U * (1.0 + grid[-1])
        return Atoms(loss, p, q_mass, infinite, max(lost, 0.0), 8.0 * U, error)

    def _values(self) -> tuple[list[float], list[float]]:
        """Return points from 0 on, and bounds on the profile there."""
        spacing = self.lattice[1]
        grid = [k * spacing for k in range(math.ceil(self._reach / spacing) + 1)]
        if grid[-1] < self.search.pure() < LARGEST:
            grid.append(math.ceil(self.search.pure() / spacing) * spacing)
        # Exponentials are off by an ulp: ask a little to the left, where the profile is larger.
        return grid, [self.search.hockey(max(x * (1.0 - 1e-14) - 1e-300, 0.0)) for x in grid]

    @property
    def lattice(self) -> tuple[float, float]:
        """Multiples of the spacing of the values."""
        wanted, pure = self._reach / POINTS, self.search.pure()
        # A bound on the loss is on the lattice, so that nothing is left beyond it.
        return 0.0, pure / math.ceil(pure / wanted) if wanted < pure < math.inf else wanted

    @property
    def _reach(self) -> float:
        return float(_reach_of(self.search))

    @property
    def pure_epsilon(self) -> float:
        """The bound on the loss, when one run's is bounded."""
        return float(self.search.pure())

    def rdp(self, order: float) -> float:
        """Return the least of the Rényi bound of the search, the pure one, and the atoms'."""
        return float(min(_renyi(self.search, order), self.search.pure(), super().rdp(order)))

    def finite_rdp(self, order: float) -> float:
        """Return the least of the bound on the mechanism and that of the atoms without +∞."""
        mine = min(_renyi(self.search, order), self.search.pure())
        return float(min(mine, super().finite_rdp(order)))


def mean_runs(gamma: float, eta: float) -> float:
    """Return E[K] of the truncated negative binomial distribution, rounded up."""
    log = -math.log(gamma)
    if log == 0.0:
        return 1.0
    # η(1-γ)/(γ(1-γ^η)), and its limit at η = 0.
    share = log if eta == 0.0 else -math.expm1(-eta * log) / eta
    return max(up((1.0 - gamma) / (gamma * share), 32.0 + 8.0 * abs(eta) * log), 1.0)


def _settle_base(mechanism: Any) -> None:
    if not isinstance(mechanism.base, Mechanism):
        raise ArgumentTypeError(
            f"base must be a mechanism that bounds one run, as in Gaussian(2.0);"
            f" got {mechanism.base!r:.60}"
        )


@lru_cache(maxsize=64)
def _excess(search: BestOfRuns) -> float:
    return search.excess()


@lru_cache(maxsize=64)
def _contrast(base: Mechanism, gamma: float) -> float:
    """Return a c with δ(c) <= γ(e^c - 1)/(1 - γ), nearly the least."""
    odds = gamma / (1.0 - gamma) * (1.0 - 8.0 * U)

    def holds(c: float) -> bool:
        return base.delta(c) <= odds * math.expm1(min(c, 700.0)) * (1.0 - 8.0 * U)

    return _least(holds)


@lru_cache(maxsize=64)
def _reach_of(search: Any) -> float:
    """Return where the profile is negligible, or a bound on the loss."""
    # A mass at infinity never goes away.
    least = max(LEAST, 1.001 * search.hockey(4.0 * FARTHEST))
    reach = _least(lambda x: search.hockey(x) <= least, digits=2.0**-8)
    # A profile that says nothing at any ε is negligible nowhere: its reach is of no matter.
    return float(min(max(reach, 2.0**-30), LARGEST, max(search.pure(), 1e-12)))


def _least(holds: Callable[[float], bool], digits: float = 2.0**-40) -> float:
    """Return a point where a condition that stays true holds, nearly the least."""
    high = 2.0**-10
    while not holds(high):
        if high >= FARTHEST:
            return math.inf if not holds(4.0 * FARTHEST) else 4.0 * FARTHEST
        high *= 2.0
    low = 0.0
    while high - low > digits * high and high > 1e-30:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@lru_cache(maxsize=64)
def _renyi_term(base: Mechanism, gamma: float) -> float:
    """Return the least of (1 - 1/λ)·D_λ + log(1/γ)/λ over orders λ >= 1, rounded up."""
    log = -math.log(gamma)

    def term(x: float) -> float:
        order = 1.0 + math.exp(x)
        return (1.0 - 1.0 / order) * base.rdp(order) + log / order

    best = min((-6.0 + 0.5 * k for k in range(33)), key=term)
    fine = [best + 0.05 * k for k in range(-10, 11)]
    return up(min(log, *(term(x) for x in fine)), 32.0)


def _renyi_negative_binomial(search: BestOfRuns, order: float) -> float:
    gamma, eta = search.stopping_probability, search.eta
    one = search.base.rdp(order)
    choice = min(_excess(search), up((1.0 + eta) * _renyi_term(search.base, gamma), 4.0))
    return up(one + math.log(search.mean) / (order - 1.0) + choice, 16.0)


@lru_cache(maxsize=64)
def _curve(search: BestOfPoissonRuns) -> tuple[tuple[float, float], ...]:
    return tuple((order - 1.0, search.renyi(order)) for order in ORDERS)


def _renyi(search: Bounded, order: float) -> float:
    try:
        return search.renyi(order)
    except UnsupportedError:
        return math.inf


def _pure(mechanism: Mechanism) -> float:
    return float(mechanism.epsilon(0.0))


def _hull(points: list[tuple[Fraction, Fraction, float]]) -> list[tuple[Fraction, Fraction, float]]:
    """Return the vertices of the lower convex hull, for points with increasing abscissae."""
    kept: list[tuple[Fraction, Fraction, float]] = []
    for point in points:
        while len(kept) >= 2 and _above(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return kept


def _above(first: Any, middle: Any, last: Any) -> bool:
    left = (middle[1] - first[1]) * (last[0] - first[0])
    return bool(left >= (last[1] - first[1]) * (middle[0] - first[0]))
