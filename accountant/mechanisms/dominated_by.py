"""What is known of a release from one side: a mechanism above it, or two data sets below it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from accountant.mechanisms.base import Counted, Mechanism
from accountant.mechanisms.fields import Wrapper, mechanism_of
from accountant.mechanisms.gaussian import Gaussian
from accountant.pairs.base import DominatingPair
from accountant.relations import NeighbouringRelation

ADD_OR_REMOVE = NeighbouringRelation.ADD_OR_REMOVE


def nothing(relation: NeighbouringRelation) -> Mechanism:
    """Return what releases nothing, which is below every mechanism."""
    return Gaussian(math.inf, relation=relation)


@dataclass(frozen=True, repr=False)
class DominatedBy(Wrapper):
    """A release that costs at most what a mechanism does, and perhaps less.

    Samplers return it where their theorem is an upper bound. Upper ends are the mechanism's; lower
    ends are 0, because no pair of data sets is known to reach the mechanism's pair.

    Parameters
    ----------
    mechanism : Mechanism
        What dominates the release.

    Notes
    -----
    *Guarantee.* That of the mechanism, under its relation: a pair that dominates may take the place
    of another in every composition (docs/theorems_mechanisms.md, Theorem M1).

    Examples
    --------
    >>> import accountant as ac
    >>> from accountant.mechanisms import DominatedBy
    >>> DominatedBy(ac.PureDP(1.0)).epsilon_bounds(0.0)
    Bounds(0.0, 1.0)
    """

    theorems = ("M1",)
    wrapped = "mechanism"
    about = "A release that costs at most what a mechanism does, and perhaps less."

    mechanism: Mechanism

    def __post_init__(self) -> None:
        mechanism_of(self.mechanism)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the mechanism's."""
        return self.mechanism.pairs()

    def from_below(self) -> Mechanism:
        """Return what releases nothing."""
        return nothing(self.relation)

    def adaptively(self) -> DominatedBy:
        """Return the same with every ``parallel`` in the mechanism made adaptive."""
        return DominatedBy(self.mechanism.adaptively())

    def alternatives(self, count: int = 1) -> Iterator[Counted]:
        """Yield those of the mechanism."""
        return self.mechanism.alternatives(count)


@dataclass(frozen=True, repr=False)
class OnePair(Mechanism):
    """The loss of two data sets in one order, for lower ends."""

    pair: DominatingPair
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the pair."""
        return (self.pair,)
