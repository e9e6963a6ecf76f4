"""A search that ends with the first run whose score reaches a known threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass

from accountant import checks
from accountant._basics.rounding import up
from accountant.derived.any_of import one_of
from accountant.derived.repetition import STOPPING, converted, excess, response_delta
from accountant.mechanisms.base import Mechanism, Profile
from accountant.pairs.base import DominatingPair
from accountant.pairs.profile_pair import two_sided
from accountant.relations import NeighbouringRelation


@dataclass(frozen=True)
class FirstAboveThresholdBounds:
    """Bounds on the first run that reaches a threshold, from bounds on one run (Theorem P19).

    Parameters
    ----------
    profile : Profile
        Of one run.
    gamma : float
        The probability of stopping after a run that has not reached it.
    """

    profile: Profile
    gamma: float

    @property
    def excess(self) -> float:
        """Return c, the loss that the runs before the last one add."""
        return excess(self.profile, self.gamma, 0.0)

    def rdp(self, order: float) -> float:
        """Bound D_order."""
        runs = -math.log(self.gamma) / (order - 1.0)
        return up(self.profile.rdp(order) + self.excess + runs, 16.0)

    def delta(self, epsilon: float) -> float:
        """Bound the profile at ``epsilon``."""
        shifted = epsilon - self.excess
        near = self.profile.delta(shifted) / self.gamma if shifted >= 0.0 else 1.0
        pure = response_delta(self.pure_epsilon, epsilon)
        return up(min(near, pure, converted(self, epsilon)), 4.0)

    @property
    def pure_epsilon(self) -> float:
        """A bound on the loss: one run's, plus the excess."""
        return up(self.profile.pure_epsilon + self.excess, 4.0)


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
        return (
            two_sided(FirstAboveThresholdBounds(self.base.profile(), self.stopping_probability)),
        )

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
