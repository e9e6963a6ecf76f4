"""The best of a random number of private runs: hyper-parameter search as one release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from accountant.checks import Argument
from accountant.errors import ArgumentTypeError
from accountant.mechanisms import _arguments as arguments
from accountant.mechanisms._arithmetic import U, lift, up
from accountant.mechanisms.base import DominatingPair, Mechanism
from accountant.mechanisms.flat import flat
from accountant.mechanisms.profile_pair import (
    Bounded,
    ProfilePair,
    least_point,
    renyi_bound,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

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

# Rényi orders at which Theorems P5 and P6 are converted for the profile.
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
        return (flat(self) or ProfilePair(self),)

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
        """Bound the profile at ``epsilon`` by Theorem P4, or P5."""
        shifted = epsilon - _excess(self)
        near = self.mean * self.base.delta(shifted) if shifted >= 0.0 else 1.0
        return up(min(near, _converted(self, epsilon)), 4.0)

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
        return (flat(self) or ProfilePair(self),)

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
        return up(min(near, _converted(self, epsilon)), 4.0)

    def pure(self) -> float:
        """Return a bound on the loss: one run's, plus m times the total variation."""
        return up(_pure(self.base) + self.mean * self.base.delta(0.0), 8.0)


def mean_runs(gamma: float, eta: float) -> float:
    """Return E[K] of the truncated negative binomial distribution, rounded up."""
    log = -math.log(gamma)
    if log == 0.0:
        return 1.0
    # η(1-γ)/(γ(1-γ^η)), and its limit at η = 0, or next to it.
    share = log if abs(eta * log) < 1e-20 else -math.expm1(-eta * log) / eta
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

    return least_point(holds)


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
def _curve(search: Bounded) -> NDArray[np.float64]:
    """Return rows of order - 1 and a bound on the divergence, where it says something."""
    rows = [(order - 1.0, renyi_bound(search, order)) for order in ORDERS]
    return np.array([row for row in rows if row[1] < 1e300]).reshape(-1, 2)


def _converted(search: Bounded, epsilon: float) -> float:
    """Bound the profile by the Rényi divergences at a list of orders (Theorem C10)."""
    below, rho = _curve(search).T
    exponents = below * (rho - epsilon + np.log1p(-1.0 / (below + 1.0))) - np.log1p(below)
    # What underflows is still there.
    return lift(math.exp(min([0.0, *exponents.tolist()])) * (1.0 + 1e-9))


def _pure(mechanism: Mechanism) -> float:
    return float(mechanism.epsilon(0.0))
