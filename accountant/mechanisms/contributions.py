"""Noise on what a bounded contribution of one record moves: groups, and other relations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

from accountant import checks
from accountant._rounding import times_up
from accountant.mechanisms.base import Mechanism
from accountant.relations import NeighbouringRelation


class BoundedContribution(Mechanism):
    """Noise on something that one record moves by at most ``sensitivity``, a field of subclasses.

    A record that is replaced takes its contribution away and brings another: twice as far.
    """

    # Whether Theorem E15 has its pair on a Poisson sample under replace-one.
    is_unimodal: ClassVar[bool] = False

    if TYPE_CHECKING:
        sensitivity: float

    @property
    def distance(self) -> float:
        """How far one record moves it, by the relation."""
        return self.sensitivity * (2 if self.relation is NeighbouringRelation.REPLACE_ONE else 1)

    @property
    def covers_removal(self) -> bool:
        """True: a record that is left out moves it less than one that is replaced."""
        return True

    def group(self, size: int) -> Self:
        """Return the mechanism for a group: the contributions of its records add up."""
        moved = times_up(self.sensitivity, checks.integer("size", size, 1))
        return replace(self, sensitivity=moved)  # type: ignore[type-var]

    def under(self, relation: NeighbouringRelation) -> Self:
        """Return the same noise on the same contributions under another relation."""
        return replace(self, relation=checks.relation(relation))  # type: ignore[type-var]
