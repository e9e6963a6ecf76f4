"""Selection: exponential mechanism, noisy maximum, threshold tests."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from accountant import checks
from accountant._basics.rounding import U, half_square, ratio_up, sum_up, times_up, up
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.fields import BoundedContribution, set_fields
from accountant.mechanisms.laplace import ExponentialLossPair
from accountant.mechanisms.stated_guarantees import EpsilonGuarantee, RandomizedResponse, nothing
from accountant.pairs.atoms import ResponsePair
from accountant.pairs.base import DominatingPair
from accountant.relations import ADD_OR_REMOVE, NeighbouringRelation

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
