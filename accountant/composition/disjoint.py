"""Releases about disjoint sets of records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from accountant import checks
from accountant.composition.composition import Composition, same_relation
from accountant.composition.problems import problems_or_none
from accountant.errors import DomainError, UnsupportedError
from accountant.mechanisms.base import Counted, Mechanism
from accountant.mechanisms.fields import mechanism_of
from accountant.pairs.base import DominatingPair
from accountant.pairs.product import WorstPair, worst
from accountant.relations import NeighbouringRelation


@dataclass(frozen=True, repr=False, eq=False)
class _Branches(Mechanism):
    """Releases about disjoint sets of records."""

    branches: tuple[Mechanism, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "branches", tuple(checks.sequence("branches", self.branches)))
        if not self.branches:
            raise DomainError("parallel needs at least one branch")
        for branch in self.branches:
            mechanism_of(branch, "branches")
        same_relation(self.branches)
        if self.relation is NeighbouringRelation.REPLACE_ONE:
            raise UnsupportedError(
                "parallel composition is covered under add-or-remove and zero-out; replacing a"
                " record may change two branches: compose them with +, or state them under"
                " NeighbouringRelation.ADD_OR_REMOVE"
            )

    @property
    def relation(self) -> NeighbouringRelation:
        """The relation of every branch."""
        return self.branches[0].relation

    def under(self, relation: NeighbouringRelation) -> Self:
        """Return the branches under another relation."""
        return type(self)(tuple(branch.under(relation) for branch in self.branches))

    def adaptively(self) -> AdaptiveParallel:
        """Return the branches with sets that may depend on earlier outputs."""
        return AdaptiveParallel(tuple(branch.adaptively() for branch in self.branches))

    def from_below(self) -> _Branches | None:
        """Return what data sets reach of the branches; None if that is all."""
        found = [(branch.from_below(), branch) for branch in self.branches]
        if all(below is None for below, _ in found):
            return None
        return type(self)(tuple(below or branch for below, branch in found))

    @property
    def attained(self) -> bool:
        """Whether all branches are."""
        return self.from_below() is None and all(branch.attained for branch in self.branches)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Branches):
            return NotImplemented
        return type(self) is type(other) and frozenset(self.branches) == frozenset(other.branches)

    def __hash__(self) -> int:
        return hash((type(self), frozenset(self.branches)))


@dataclass(frozen=True, repr=False, eq=False)
class Parallel(_Branches):
    """Releases about disjoint sets of records that are fixed before any release.

    Made by :func:`parallel`, which states the conditions (Theorem M18).
    """

    theorems = ("M18",)
    about = "Releases about disjoint sets of records that are fixed before any release."

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the worst of the branches' pairs; analyses use the branches instead."""
        found = [branch.pairs() for branch in self.branches]
        problems = problems_or_none(self)
        remove = WorstPair(tuple(pairs[0] for pairs in found), problems)
        add = WorstPair(tuple(pairs[-1] for pairs in found), problems)
        return (remove,) if remove == add else (remove, add)

    def alternatives(self, count: int = 1) -> Iterator[Counted]:
        """Yield every way to assign ``count`` releases to the branches."""
        for split in _splits(count, len(self.branches)):
            used = tuple((b, n) for b, n in zip(self.branches, split, strict=True) if n)
            if used:
                yield from Composition(used).alternatives()
            else:
                yield ((self.branches[0], 0),)

    def __repr__(self) -> str:
        return f"parallel({', '.join(map(repr, self.branches))})"


@dataclass(frozen=True, repr=False, eq=False)
class AdaptiveParallel(_Branches):
    """Releases about disjoint sets of records that may depend on earlier releases.

    Made by :func:`parallel` with ``adaptive=True``, which states the conditions (Theorem M18).
    """

    theorems = ("M18",)
    about = "Releases about disjoint sets of records that may depend on earlier releases."

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return one pair a direction that dominates every branch."""
        found = [branch.adaptively().pairs() for branch in self.branches]
        # Of a single release: nothing comes before it that its sets could depend on.
        alone = problems_or_none(Parallel(self.branches))
        remove = worst((pairs[0] for pairs in found), alone)
        add = worst((pairs[-1] for pairs in found), alone)
        return (remove,) if remove == add else (remove, add)

    def from_below(self) -> Parallel:
        """Return the branches of sets that are fixed in advance."""
        return Parallel(tuple(branch.from_below() or branch for branch in self.branches))

    def __repr__(self) -> str:
        return f"parallel({', '.join(map(repr, self.branches))}, adaptive=True)"


def parallel(*branches: Mechanism, adaptive: bool = False) -> Parallel | AdaptiveParallel:
    """Compose releases about disjoint sets of records.

    Parameters
    ----------
    *branches : Mechanism
        The release about each set, all under one relation: add-or-remove or zero-out.
    adaptive : bool, keyword only
        Whether the sets may depend on the outputs of other releases that it is composed with.

    Returns
    -------
    Parallel or AdaptiveParallel
        The mechanism of all branches; a record is in one of them only.

    Notes
    -----
    *Guarantee.* The set of a record must be a function of the record alone, and of coins that are
    independent of the data. Then the outputs of all other branches are independent of the record,
    and the worst branch bounds the loss (McSherry 2009; docs/theorems_mechanisms.md, Theorem M18).

    *Without* ``adaptive`` that function is fixed before the first of *all* releases that are
    composed, and ``a + parallel(b, c)`` costs the worse of ``a + b`` and ``a + c``. In
    ``n * parallel(b, c)`` there are n such functions, all fixed in advance, and the account takes
    the worst split of the n between the branches. If the sets are the same each time, write
    ``parallel(n * b, n * c)``.

    *With* ``adaptive`` the function may depend on the outputs of ``a`` and of earlier repetitions,
    so that a record can be in the branch that is worst for its loss so far. The account then takes
    the worst branch each time. An :class:`Accountant` of several releases treats every ``parallel``
    as adaptive, because it does not know how the sets were chosen.

    Examples
    --------
    >>> import accountant as ac
    >>> branches = ac.PureDP(2.0), ac.ApproximateDP(0.0, delta=0.3)
    >>> round((ac.PureDP(0.5) + ac.parallel(*branches)).delta(1.5), 3)
    0.347
    >>> round((ac.PureDP(0.5) + ac.parallel(*branches, adaptive=True)).delta(1.5), 3)
    0.46
    """
    return AdaptiveParallel(branches) if checks.flag("adaptive", adaptive) else Parallel(branches)


def composed(counts: tuple[tuple[Mechanism, int], ...]) -> Composition:
    """Return the composition of counted releases, each of which may depend on those before.

    The disjoint sets of a ``parallel`` may depend on what other records released (Theorem M18).
    """
    whole = Composition(counts)
    return whole if sum(count for _, count in counts) <= 1 else whole.adaptively()


def _splits(count: int, ways: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write ``count`` as an ordered sum."""
    if ways == 1:
        yield (count,)
        return
    for first in range(count, -1, -1):
        for rest in _splits(count - first, ways - 1):
            yield (first, *rest)
