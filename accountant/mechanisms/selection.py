"""Selection: exponential mechanism, noisy maximum, threshold tests; reports in random order."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, half_square, ratio_up, sum_up, times_up, up
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.fields import BoundedContribution, set_fields
from accountant.mechanisms.laplace import ExponentialLossPair
from accountant.mechanisms.stated_guarantees import EpsilonGuarantee, RandomizedResponse, nothing
from accountant.pairs.atoms import ResponsePair
from accountant.pairs.base import DominatingPair
from accountant.pairs.profile_pair import ProfilePair
from accountant.relations import ADD_OR_REMOVE, REPLACE_ONE, NeighbouringRelation

Noise: TypeAlias = Literal["gumbel", "exponential", "laplace"]


@dataclass(frozen=True, repr=False, init=False)
class ExponentialMechanism(EpsilonGuarantee):
    """A selection whose losses between two neighbours lie in a range of length ε.

    Parameters
    ----------
    epsilon : float
        The length of the range, >= 0 and finite: ε when candidate r is chosen with probability
        proportional to exp(ε·u(r)/2Δ), or to exp(ε·u(r)/Δ) when one record moves all scores in one
        direction; Δ bounds how far it moves a score.
    relation : NeighbouringRelation, keyword only
        The relation under which Δ bounds the scores' change.

    Notes
    -----
    *Guarantee.* ε-bounded range (Durfee, Rogers 2019), so dominated by the pair of Theorem M8 of
    docs/theorems_mechanisms.md, and D_α <= αε²/8 (Cesar, Rogers 2021).
    """

    theorems = ("M8",)
    about = "A selection whose losses between two neighbours lie in a range of length ε."

    @property
    def attained_alone(self) -> bool:
        """True: two candidates reach the profile at each ε, with scores of their own."""
        return True

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the pair of a bounded range, which is its own reverse."""
        return (BoundedRangePair(self.epsilon0),)

    def from_below(self) -> Mechanism:
        """Return the choice between two candidates that change places (Theorem M8)."""
        return RandomizedResponse(0.5 * self.epsilon0, relation=self.relation)


@dataclass(frozen=True, repr=False)
class ReportNoisyMax(BoundedContribution):
    """The index of the largest noisy score.

    Parameters
    ----------
    scale : float
        Scale b > 0 of the noise added to every score.
    noise : {"gumbel", "exponential", "laplace"}, optional
        Gumbel noise is the exponential mechanism; exponential noise is permute-and-flip.
    sensitivity : float, optional
        How far one record moves a score, >= 0.
    monotonic : bool, optional
        Whether adding a record moves all scores in one direction.
    relation : NeighbouringRelation, keyword only
        Replacing a record moves a score by twice the sensitivity.

    Notes
    -----
    *Guarantee.* With the range ε = 2Δ/b, or Δ/b for monotonic scores, doubled under replace-one:
    Gumbel noise has an ε-bounded range, exponential and Laplace noise are ε-private (Dwork, Roth
    2014; McKenna, Sheldon 2020; docs/theorems_mechanisms.md, Theorem M8).
    """

    theorems = ("M8",)
    about = "The index of the largest noisy score."

    scale: float
    noise: Noise = "gumbel"
    sensitivity: float = field(default=1.0, kw_only=True)
    monotonic: bool = field(default=False, kw_only=True)
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        checks.flag("monotonic", self.monotonic)
        checks.choice("noise", self.noise, ("gumbel", "exponential", "laplace"))
        set_fields(self, checks.SCALE, checks.SENSITIVITY)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the pair, which is its own reverse."""
        moved = self.distance
        reach = _quotient(moved * (1.0 if self.monotonic else 2.0), self.scale)
        return (BoundedRangePair(reach) if self.noise == "gumbel" else ResponsePair(reach),)

    @property
    def attained_alone(self) -> bool:
        """Whether it is the exponential mechanism, of which two candidates reach the profile."""
        return self.noise == "gumbel"

    def from_below(self) -> Mechanism:
        """Return the choice between two candidates that change places (Theorem M8)."""
        half = 0.5 * _quotient(self.distance * (1.0 if self.monotonic else 2.0), self.scale)
        half = min(half, 700.0) * (1.0 - 32.0 * U)
        odds = half
        if self.noise == "exponential":
            odds = math.log1p(2.0 * math.expm1(half))
        elif self.noise == "laplace":
            odds = math.log1p((4.0 * math.expm1(half) - 2.0 * half) / (2.0 + half))
        return RandomizedResponse(odds * (1.0 - 32.0 * U), relation=self.relation)


@dataclass(frozen=True, repr=False)
class AboveThreshold(BoundedContribution):
    """Sparse vector: which of a stream of queries exceed a noisy threshold, stopping in time.

    Parameters
    ----------
    threshold_scale, query_scale : float
        Scales b₁, b₂ > 0 of the Laplace noise on the threshold, drawn once, and on every query.
    positives : int, optional
        The number c >= 1 of answers "above" after which it stops.
    sensitivity : float, optional
        How far one record moves a query's answer, >= 0.
    monotonic : bool, optional
        Whether adding a record moves all answers in one direction.
    relation : NeighbouringRelation, keyword only
        Replacing a record moves an answer by twice the sensitivity.

    Notes
    -----
    *Guarantee.* ε-private with ε = Δ/b₁ + 2cΔ/b₂, and Δ/b₁ + cΔ/b₂ for monotonic queries (Lyu, Su,
    Li 2017, Theorems 2 to 5; docs/theorems_mechanisms.md, Theorem M8). The noisy answers
    themselves are not part of the release: add a Laplace mechanism for each.
    """

    theorems = ("M8",)
    about = (
        "Sparse vector: which of a stream of queries exceed a noisy threshold, stopping in time."
    )

    threshold_scale: float
    query_scale: float = field(kw_only=True)
    positives: int = field(default=1, kw_only=True)
    sensitivity: float = field(default=1.0, kw_only=True)
    monotonic: bool = field(default=False, kw_only=True)
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        checks.flag("monotonic", self.monotonic)
        set_fields(
            self,
            checks.SCALE.renamed("threshold_scale"),
            checks.SCALE.renamed("query_scale"),
            checks.SENSITIVITY,
            positives=checks.integer("positives", self.positives, 1),
        )

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return randomised response with the pure ε, which is its own reverse."""
        moved = self.distance
        each = moved * (1.0 if self.monotonic else 2.0)
        answers = times_up(_quotient(each, self.query_scale), self.positives)
        return (ResponsePair(sum_up([_quotient(moved, self.threshold_scale), answers])),)

    def from_below(self) -> Mechanism:
        """Return what releases nothing: no data are known to reach the bound."""
        return nothing(self.relation)


class BoundedRangePair(ExponentialLossPair):
    """The least pair that dominates every mechanism whose losses lie in a range of ``reach``.

    Its Rényi curve is that of the mechanisms, which is smaller than the pair's own: for two given
    neighbours the range is fixed, so αε²/8 holds (Theorem M8).
    """

    sharper_rdp = True

    @property
    def rho(self) -> float:
        """ε²/8."""
        return 0.25 * half_square(self.reach)

    def rdp(self, order: float) -> float:
        """Return the least of αε²/8 and the pair's own divergence, rounded up."""
        return min(up(order * self.rho), super().rdp(order), self.reach)


def _quotient(distance: float, scale: float) -> float:
    return ratio_up(distance, scale) if distance > 0.0 else 0.0


REACH = 1e-30  # mass of the number of clones left out on either side, added to the profile
SLACK = 1e-10  # of the sums of tails: the library's binomial tails are good to 3e-11
EPSILON = checks.Argument(
    "epsilon", "a number in (0, 30]", lambda x: (x > 0.0) & (x <= 30.0), "It is in nats"
)
BLOCKS = 2**11  # numbers of clones looked at one by one; more are grouped
UNSEEN = 1e-13  # mass of the largest numbers of clones, which are one group


@dataclass(frozen=True, repr=False, init=False)
class ShuffledResponses(Mechanism):
    """The multiset of reports of ``dataset_size`` users, all made by *one* ε₀-private randomiser.

    Parameters
    ----------
    epsilon : float
        ε₀ > 0 of the randomiser, under replacing a user's value.
    dataset_size : int
        The number of users, in [1, 2**30]; public.
    k : int, optional
        When the randomiser is k-ary randomised response; any other one when None.

    Notes
    -----
    *Guarantee.* The clones of Feldman, McMillan, Talwar (2021, 2023), evaluated numerically, under
    replace-one (docs/theorems_selection.md, Theorem P14). Never above ε₀.

    *Assumptions.* Every user draws his report by himself, once, with the same randomiser, fixed
    before any report. Users with randomisers of their own, each ε₀-private, are **not** covered: a
    report may tell whose it is, and then nothing is hidden. What they have in common is ε₀ alone,
    ``PureDP(epsilon, relation=NeighbouringRelation.REPLACE_ONE)``. Different randomisers are
    covered if any two of all the laws a report can have are ε₀-close, whichever users and values
    they belong to.
    """

    theorems = ("P14",)
    about = (
        "The multiset of reports of dataset_size users, all made by *one* ε₀-private randomiser."
    )

    epsilon0: float = field(metadata={"argument": "epsilon"})
    _: KW_ONLY
    dataset_size: int
    k: int | None = None

    def __init__(self, epsilon: float, *, dataset_size: int, k: int | None = None) -> None:
        set_fields(
            self,
            epsilon0=checks.number(EPSILON, epsilon),
            dataset_size=checks.integer("dataset_size", dataset_size, 1, 2**30),
            k=None if k is None else checks.integer("k", k, 2, 2**30),
        )

    @property
    def relation(self) -> NeighbouringRelation:
        """One user's value is replaced."""
        return REPLACE_ONE

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the pair, which is its own reverse."""
        return (ProfilePair(ShuffledBounds(self.epsilon0, self.dataset_size, self.k)),)

    def from_below(self) -> Mechanism:
        """Return what releases nothing: clones bound from above only."""
        return nothing(self.relation)


@dataclass(frozen=True)
class ShuffledBounds:
    """The profile of shuffled responses, from above."""

    epsilon0: float
    n: int
    k: int | None

    def delta(self, epsilon: float) -> float:
        """Bound the profile at ``epsilon`` >= 0."""
        if epsilon >= self.epsilon0:
            return 0.0
        a = math.exp(self.epsilon0)
        more = math.expm1(self.epsilon0)
        found = self._clones(epsilon, 1.0, 1.0 / a, more / a)
        if self.k is None:
            return found
        size = a + self.k - 1.0
        rest = (more + (self.k - 2.0)) / size
        return min(found, self._clones(epsilon, (a + 1.0) / size, 2.0 / size, rest))

    def _clones(self, epsilon: float, weight: float, chance: float, rest: float) -> float:
        """Bound the profile when every other user is a clone with this chance, or not with rest."""
        others, a = self.n - 1, math.exp(self.epsilon0)
        spread = math.sqrt(140.0 * (others * chance + 140.0)) + 140.0
        low = max(math.floor(others * chance - spread), 0)
        high = min(math.ceil(others * chance + spread), others)
        clones = np.arange(low, high + 1, dtype=np.float64)
        masses = _binomial(clones, others, chance, rest)
        # More clones hide better: a group counts as its smallest number of them.
        beyond = np.cumsum(masses[::-1])[::-1]
        seen = int(np.count_nonzero(beyond > UNSEEN))
        starts = np.arange(0, max(seen, 1), -(-clones.size // BLOCKS))
        clones, masses = clones[starts], np.add.reduceat(masses, starts)
        grown = math.exp(epsilon)
        share = math.expm1(self.epsilon0 + epsilon) / math.expm1(self.epsilon0) / (1.0 + grown)
        level = (clones + 1.0) * share
        first = np.floor(level) + 1.0  # the first count of zeros that favours P
        upper, lower = _tail(first - 1.0, clones), _tail(first, clones)
        p = (a * upper + lower) / (a + 1.0)
        q = (upper + a * lower) / (a + 1.0)
        each = np.maximum(p - grown * q, 0.0) + SLACK * p
        total = float(masses @ each) * (1.0 + 1e-9) + 2.0 * REACH
        return min(weight * total, 1.0)

    def rdp(self, order: float) -> float:
        """Return infinity: the atoms of the profile give the curve."""
        return math.inf

    @property
    def pure_epsilon(self) -> float:
        """ε₀, of one response."""
        return self.epsilon0


def _tail(first: FloatArray, n: FloatArray) -> FloatArray:
    """Return P(Bin(n, 1/2) >= first)."""
    inside = (first >= 1.0) & (first <= n)
    safe = np.where(inside, first, 1.0)
    others = np.where(inside, n - safe + 1.0, 1.0)
    # Loaded when needed: SciPy's functions take longer to import than all the rest.
    from scipy import special

    values = special.betainc(safe, others, 0.5)
    return np.asarray(np.where(inside, values, np.where(first < 1.0, 1.0, 0.0)))


def _binomial(x: FloatArray, n: int, p: float, rest: float) -> FloatArray:
    """Return the masses of Bin(n, p), normalised over the window, which holds all but 1e-30.

    By the ratios of neighbours, ``rest`` being 1 - p with all its digits: logarithms of factorials
    would lose eight digits at a million users.
    """
    # At most n·rest lies off the end: less than what the window leaves out.
    if rest <= 1e-100 or n == 0:
        return np.asarray((x == n).astype(np.float64))
    steps = np.log((n - x[:-1]) / (x[:-1] + 1.0) * (p / rest))
    middle = int(np.searchsorted(-steps, 0.0))  # the ratios fall: the mode
    up, down = np.cumsum(steps[middle:]), -np.cumsum(steps[:middle][::-1])[::-1]
    masses = np.exp(np.concatenate([down, [0.0], up]))
    return np.asarray(masses / masses.sum())
