"""A search that ends with the first run whose score reaches a known threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass

from accountant import checks
from accountant._basics.rounding import up
from accountant.derived.any_of import one_of
from accountant.derived.repetition import STOPPING, SearchBounds, excess
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.fields import Wrapper
from accountant.pairs.base import DominatingPair
from accountant.pairs.profile_pair import two_sided


@dataclass(frozen=True)
class FirstAboveThresholdBounds(SearchBounds):
    """Bounds on the first run that reaches a threshold, from bounds on one run (Theorem P19).

    Parameters
    ----------
    gamma : float
        The probability of stopping after a run that has not reached it.
    """

    gamma: float

    @property
    def runs(self) -> float:
        """1/γ."""
        return up(1.0 / self.gamma)

    @property
    def excess(self) -> float:
        """Return c, the loss that the runs before the last one add."""
        return excess(self.profile, self.gamma, 0.0)

    def rdp(self, order: float) -> float:
        """Bound D_order."""
        runs = -math.log(self.gamma) / (order - 1.0)
        return up(self.profile.rdp(order) + self.excess + runs, 16.0)


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
        object.__setattr__(self, "base", one_of(self.base))
        gamma = checks.number(STOPPING, self.stopping_probability)
        object.__setattr__(self, "stopping_probability", gamma)

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
