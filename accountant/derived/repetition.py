"""The best of a random number of private runs, as in a hyper-parameter search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from accountant import checks
from accountant.checks import Argument
from accountant.derived.any_of import one_of
from accountant.derived.repetition_bounds import (
    BestOfPoissonRunsBounds,
    BestOfRunsBounds,
    FirstAboveThresholdBounds,
    excess,
    mean_runs,
)
from accountant.environment import to_nearest
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.dominated_by import nothing
from accountant.pairs.base import DominatingPair
from accountant.pairs.profile_pair import ProfileBounds
from accountant.pairs.two_sided import two_sided
from accountant.relations import NeighbouringRelation
from accountant.search import DOUBLES, bisect

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
POISSON_MEAN = Argument(
    "mean",
    "a number in (0, 10**9)",
    lambda x: (x > 0.0) & (x < 1e9),
    "It is the mean number of runs",
)


@dataclass(frozen=True, repr=False)
class BestOfRuns(Mechanism):
    """Run K times, with settings drawn at random, and release the best run's output.

    Parameters
    ----------
    base : Mechanism or sequence of Mechanism
        A bound on one run with its score, for every setting that may be drawn; of several, one for
        each setting, it is :class:`AnyOf` them.
    stopping_probability : float
        γ in (0, 1].
    eta : float, optional
        η > -1: K has the negative binomial distribution of (η, γ), truncated to K >= 1. 1 is
        geometric, with mean 1/γ; 0 is logarithmic.

    Notes
    -----
    *Guarantee.* The profile is at most E[K]·δ(ε - (1+η)·c), δ the profile of one run and c least
    with δ(c) <= γ(e^c - 1)/(1 - γ) (docs/theorems_selection.md, Theorem P4); the Rényi divergence
    at most D_α + log E[K]/(α-1) + (1+η)·min(c, Papernot and Steinke's term) (Theorem P5). Only the
    best output may be published; K must stay secret.

    *Algorithm.* Five hundred values of the profile of one run, joined by chords (Theorems P7, E1).

    Examples
    --------
    >>> import accountant as ac
    >>> ac.BestOfRuns.with_mean(ac.Gaussian(2.0), 10.0, eta=0.0).epsilon(1e-5) < 3.0
    True
    """

    theorems = ("P4", "P5", "P7", "E1")
    about = "Run K times, with settings drawn at random, and release the best run's output."

    base: Mechanism
    stopping_probability: float
    eta: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", one_of(self.base))
        gamma = checks.number(STOPPING, self.stopping_probability)
        object.__setattr__(self, "stopping_probability", gamma)
        object.__setattr__(self, "eta", checks.number(ETA, self.eta))

    @classmethod
    @to_nearest
    def with_mean(
        cls, base: Mechanism | Sequence[Mechanism], mean: float, *, eta: float = 1.0
    ) -> BestOfRuns:
        """Return the search of ``mean`` runs in expectation, rounded down."""
        target, shape = checks.number(MEAN, mean), checks.number(ETA, eta)

        def few(rank: int) -> bool:
            return mean_runs(DOUBLES.value(rank), shape) <= target

        # E[K] decreases with γ.
        rank = bisect(few, DOUBLES.rank(1.0), DOUBLES.rank(1e-300))
        return cls(one_of(base), DOUBLES.value(rank), eta=shape)

    @property
    def mean(self) -> float:
        """E[K], rounded up."""
        return mean_runs(self.stopping_probability, self.eta)

    @property
    def relation(self) -> NeighbouringRelation:
        """The relation of one run."""
        return self.base.relation

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return one pair for the larger profile of the two directions."""
        if self.stopping_probability == 1.0:
            return self.base.pairs()
        bounds = BestOfRunsBounds(self.base.profile(), self.stopping_probability, self.eta)
        return (_pair(bounds),)

    def from_below(self) -> Mechanism | None:
        """Return one run: with equal scores, the best of the runs is any of them."""
        below = self.base.from_below()
        return below if self.stopping_probability == 1.0 else below or self.base

    @property
    def covers_removal(self) -> bool:
        """Whether the bound of the base does."""
        return self.base.covers_removal

    def group(self, size: int) -> BestOfRuns:
        """Return the search with one run's bound for a group."""
        return BestOfRuns(self.base.group(size), self.stopping_probability, eta=self.eta)

    def under(self, relation: NeighbouringRelation) -> BestOfRuns:
        """Return the search with one run's bound stated under another relation."""
        return BestOfRuns(self.base.under(relation), self.stopping_probability, eta=self.eta)

    def excess(self) -> float:
        """Return (1+η)·c, the loss that the choice adds to the chosen run (Theorem P4)."""
        return excess(self.base.profile(), self.stopping_probability, self.eta)


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
    Steinke's Rényi bound D_α + m·δ(log(1 + 1/(α-1))) + log m/(α-1), plus a term for no run at all
    (docs/theorems_selection.md, Theorem P6).
    """

    theorems = ("P6",)
    about = (
        "Run a Poisson number of times, with settings drawn at random, and release the best output."
    )

    base: Mechanism
    mean: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", one_of(self.base))
        object.__setattr__(self, "mean", checks.number(POISSON_MEAN, self.mean))

    @property
    def relation(self) -> NeighbouringRelation:
        """The relation of one run."""
        return self.base.relation

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return one pair for the larger profile of the two directions."""
        return (_pair(BestOfPoissonRunsBounds(self.base.profile(), self.mean)),)

    def from_below(self) -> Mechanism:
        """Return what releases nothing: there may be no run at all."""
        return nothing(self.relation)

    @property
    def covers_removal(self) -> bool:
        """Whether the bound of the base does."""
        return self.base.covers_removal

    def group(self, size: int) -> BestOfPoissonRuns:
        """Return the search with one run's bound for a group."""
        return BestOfPoissonRuns(self.base.group(size), self.mean)

    def under(self, relation: NeighbouringRelation) -> BestOfPoissonRuns:
        """Return the search with one run's bound stated under another relation."""
        return BestOfPoissonRuns(self.base.under(relation), self.mean)


@dataclass(frozen=True, repr=False)
class FirstAboveThreshold(Mechanism):
    """Run until a score reaches a threshold known beforehand, and release that run's output.

    Parameters
    ----------
    base : Mechanism or sequence of Mechanism
        As in :class:`BestOfRuns`.
    stopping_probability : float
        γ in (0, 1]: after a run below the threshold the search ends with this probability, and
        releases that nothing was found.

    Notes
    -----
    *Guarantee.* The profile is at most δ(ε - c)/γ, δ the profile of one run and c least with
    δ(c) <= γ(e^c - 1)/(1 - γ) (docs/theorems_selection.md, Theorem P19): twice the ε of a pure run,
    where :class:`BestOfRuns` with as many runs costs three times (Liu, Talwar 2019). The threshold
    is fixed without the data; outputs below it and the number of runs must stay secret.

    Examples
    --------
    >>> import accountant as ac
    >>> from accountant.derived import FirstAboveThreshold
    >>> FirstAboveThreshold(ac.PureDP(0.5), 0.01).epsilon(0.0) <= 1.0 + 1e-9
    True
    """

    theorems = ("P19",)
    about = "Run until a score reaches a threshold known beforehand, and release that run's output."

    base: Mechanism
    stopping_probability: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", one_of(self.base))
        gamma = checks.number(STOPPING, self.stopping_probability)
        object.__setattr__(self, "stopping_probability", gamma)

    @property
    def relation(self) -> NeighbouringRelation:
        """The relation of one run."""
        return self.base.relation

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return one pair for the larger profile of the two directions."""
        if self.stopping_probability == 1.0:
            return self.base.pairs()
        return (_pair(FirstAboveThresholdBounds(self.base.profile(), self.stopping_probability)),)

    def from_below(self) -> Mechanism | None:
        """Return one run: every score may reach the threshold."""
        return self.base.from_below() or self.base

    @property
    def covers_removal(self) -> bool:
        """Whether the bound of the base does."""
        return self.base.covers_removal

    def group(self, size: int) -> FirstAboveThreshold:
        """Return the search with one run's bound for a group."""
        return FirstAboveThreshold(self.base.group(size), self.stopping_probability)

    def under(self, relation: NeighbouringRelation) -> FirstAboveThreshold:
        """Return the search with one run's bound stated under another relation."""
        return FirstAboveThreshold(self.base.under(relation), self.stopping_probability)


def _pair(bounds: ProfileBounds) -> DominatingPair:
    return two_sided(bounds)
