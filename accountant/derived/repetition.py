"""The best of a random number of private runs, or the first that is good enough."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.rounding import U, lift, up
from accountant.analyses.renyi_conversion import log_deltas
from accountant.checks import Argument
from accountant.derived.joint import one_of
from accountant.environment import to_nearest
from accountant.mechanisms.base import Mechanism, Profile
from accountant.mechanisms.fields import Wrapper, set_fields
from accountant.mechanisms.stated_guarantees import nothing
from accountant.pairs.base import DominatingPair
from accountant.pairs.profile_pair import ProfileBounds, least_point, rdp_bound, two_sided
from accountant.search import DOUBLES, bisect

# Rényi orders at which Theorems P5 and P6 are converted for the profile.
ORDERS = tuple(1.0 + math.exp(0.12 * k) for k in range(-25, 60))


@dataclass(frozen=True)
class SearchBounds(ABC):
    """Bounds on a search by bounds on one run: a factor, and a loss that the choice adds.

    Parameters
    ----------
    profile : Profile
        Of one run.
    runs : float
        The factor of the profile of one run.
    excess : float
        The loss that the choice of the run adds to it.
    """

    profile: Profile
    runs: float
    excess: float

    @abstractmethod
    def rdp(self, order: float) -> float:
        """Bound D_order."""

    def delta(self, epsilon: float) -> float:
        """Bound the profile at ``epsilon``, by that of one run, its loss, and the divergences."""
        shifted = epsilon - self.excess
        near = self.runs * self.profile.delta(shifted) if shifted >= 0.0 else 1.0
        pure = response_delta(self.pure_epsilon, epsilon)
        return up(min(up(near), pure, converted(self, epsilon)), 4.0)

    @property
    def pure_epsilon(self) -> float:
        """A bound on the loss: one run's, plus the excess."""
        pure = self.profile.pure_epsilon
        return pure if pure == math.inf else up(pure + self.excess, 8.0)


@dataclass(frozen=True)
class BestOfRunsBounds(SearchBounds):
    """Bounds on the best of a negative binomial number of runs (P4, P5), K of mean ``runs``."""

    gamma: float
    eta: float

    def rdp(self, order: float) -> float:
        """Bound D_order by Theorem P5."""
        one = self.profile.rdp(order)
        choice = min(self.excess, up((1.0 + self.eta) * _rdp_term(self.profile, self.gamma), 4.0))
        return up(one + math.log(self.runs) / (order - 1.0) + choice, 16.0)


@dataclass(frozen=True)
class BestOfPoissonRunsBounds(SearchBounds):
    """Bounds on the best of a Poisson number of runs (Theorem P6), of mean ``runs``."""

    def rdp(self, order: float) -> float:
        """Bound D_order by Theorem P6."""
        one = self.profile.rdp(order)
        below, m = order - 1.0, self.runs
        distance = self.profile.delta(max(math.log1p(1.0 / below) * (1.0 - 8.0 * U), 0.0))
        exponent = below * (one + m * distance) + math.log(m)
        # The fixed output of no run has mass e^{-m} and no loss.
        total = max(exponent, -m) + math.log1p(math.exp(-abs(exponent + m)))
        size = below * (one + m * distance) + abs(math.log(m)) + m + 1.0
        return max((total + 16.0 * U * size) / below * (1.0 + 4.0 * U), 0.0)


@dataclass(frozen=True)
class FirstAboveThresholdBounds(SearchBounds):
    """Bounds on the first run that reaches a threshold (Theorem P19), of 1/γ = ``runs``."""

    def rdp(self, order: float) -> float:
        """Bound D_order."""
        runs = math.log(self.runs) / (order - 1.0)
        return up(self.profile.rdp(order) + self.excess + runs, 16.0)


@to_nearest
def mean_runs(gamma: float, eta: float) -> float:
    """Return E[K] of the truncated negative binomial distribution, rounded up."""
    log = -math.log(gamma)
    if log == 0.0:
        return 1.0
    # η(1-γ)/(γ(1-γ^η)), and its limit at η = 0, or next to it.
    share = log if abs(eta * log) < 1e-20 else -math.expm1(-eta * log) / eta
    return max(up((1.0 - gamma) / (gamma * share), 32.0 + 8.0 * abs(eta) * log), 1.0)


@lru_cache(maxsize=64)
def excess(profile: Profile, gamma: float, eta: float) -> float:
    """Return (1+η)·c, rounded up (Theorem P4)."""
    return up((1.0 + eta) * _contrast(profile, gamma), 4.0)


@lru_cache(maxsize=64)
def _contrast(profile: Profile, gamma: float) -> float:
    """Return a c with δ(c) <= γ(e^c - 1)/(1 - γ), nearly the least."""
    odds = gamma / (1.0 - gamma) * (1.0 - 8.0 * U)

    def holds(c: float) -> bool:
        return profile.delta(c) <= odds * math.expm1(min(c, 700.0)) * (1.0 - 8.0 * U)

    return least_point(holds)


@lru_cache(maxsize=64)
def _rdp_term(profile: Profile, gamma: float) -> float:
    """Return the least of (1 - 1/λ)·D_λ + log(1/γ)/λ over orders λ >= 1, rounded up."""
    log = -math.log(gamma)

    def term(x: float) -> float:
        order = 1.0 + math.exp(x)
        return (1.0 - 1.0 / order) * profile.rdp(order) + log / order

    best = min((-6.0 + 0.5 * k for k in range(33)), key=term)
    fine = [best + 0.05 * k for k in range(-10, 11)]
    return up(min(log, *(term(x) for x in fine)), 32.0)


@lru_cache(maxsize=64)
def _curve(bounds: ProfileBounds) -> NDArray[np.float64]:
    """Return rows of order - 1 and a bound on the divergence, where the bound is finite."""
    rows = [(order - 1.0, rdp_bound(bounds, order)) for order in ORDERS]
    return np.array([row for row in rows if row[1] < 1e300]).reshape(-1, 2)


def response_delta(bound: float, epsilon: float) -> float:
    """Bound δ(epsilon), epsilon >= 0, of losses of at most ``bound`` either way (Theorem M10)."""
    if not epsilon < bound < 600.0:
        return 0.0 if epsilon >= bound else 1.0
    # (e^b - e^ε)/(1 + e^b).
    return up(-math.expm1(epsilon - bound) / (1.0 + math.exp(-bound)), 8.0)


def converted(bounds: ProfileBounds, epsilon: float) -> float:
    """Bound the profile by the Rényi divergences at a list of orders (Theorem C10)."""
    below, rho = _curve(bounds).T
    exponents = log_deltas(rho, 1.0 + below, epsilon)
    # A logarithm above -745 is the sum of terms of that size, so it is wrong by less than 1e-12;
    # below that exp underflows, and lift covers the error.
    return lift(math.exp(min([0.0, *exponents.tolist()])) * (1.0 + 5e-10))


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
class BestOfRuns(Wrapper):
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
        set_fields(self, STOPPING, ETA, base=one_of(self.base))

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

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return one pair for the larger profile of the two directions."""
        if self.stopping_probability == 1.0:
            return self.base.pairs()
        gamma, profile = self.stopping_probability, self.base.profile()
        # (1+η)·c, the loss that the choice adds to the chosen run (Theorem P4).
        added = excess(profile, gamma, self.eta)
        bounds = BestOfRunsBounds(profile, self.mean, added, gamma, self.eta)
        return (two_sided(bounds),)

    def from_below(self) -> Mechanism | None:
        """Return one run: with equal scores, the best of the runs is any of them."""
        below = self.base.from_below()
        return below if self.stopping_probability == 1.0 else below or self.base


@dataclass(frozen=True, repr=False)
class BestOfPoissonRuns(Wrapper):
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
        set_fields(self, POISSON_MEAN, base=one_of(self.base))

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return one pair for the larger profile of the two directions."""
        profile = self.base.profile()
        # The mean times the total variation.
        added = up(self.mean * profile.delta(0.0), 4.0)
        return (two_sided(BestOfPoissonRunsBounds(profile, self.mean, added)),)

    def from_below(self) -> Mechanism:
        """Return what releases nothing: there may be no run at all."""
        return nothing(self.relation)


@dataclass(frozen=True, repr=False)
class FirstAboveThreshold(Wrapper):
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
        set_fields(self, STOPPING, base=one_of(self.base))

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return one pair for the larger profile of the two directions."""
        if self.stopping_probability == 1.0:
            return self.base.pairs()
        gamma, profile = self.stopping_probability, self.base.profile()
        # c is the loss that the runs before the last one add.
        added = excess(profile, gamma, 0.0)
        return (two_sided(FirstAboveThresholdBounds(profile, up(1.0 / gamma), added)),)

    def from_below(self) -> Mechanism | None:
        """Return one run: every score may reach the threshold."""
        return self.base.from_below() or self.base
