"""The algebra of releases: ``10_000 * step + other`` and ``parallel``, without numerics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any, Self, TypeGuard

from accountant import checks
from accountant.checks import MAX_COUNT
from accountant.composition.problems import limited, problems_or_none, symmetrised_pairs
from accountant.errors import ArgumentTypeError, DomainError, UnsupportedError
from accountant.mechanisms.base import Counted, Mechanism
from accountant.mechanisms.fields import mechanism_of
from accountant.mechanisms.gaussian import GaussianPair, merged
from accountant.mechanisms.stated_guarantees import OnePair
from accountant.pairs.base import DominatingPair
from accountant.pairs.product import ProductPair, WorstPair, worst
from accountant.relations import NeighbouringRelation


def same_relation(mechanisms: Iterable[Mechanism]) -> None:
    """Raise if the relations differ."""

    def same(first: Mechanism, other: Mechanism) -> Mechanism:
        if first.relation is other.relation:
            return first
        raise UnsupportedError(
            f"guarantees under different relations do not compose: {first!r} is under"
            f" {first.relation!r}, {other!r} under {other.relation!r}. State one under the"
            " other's, as in mechanism.under(relation)"
        )

    reduce(same, mechanisms)


@dataclass(frozen=True, repr=False, eq=False)
class Composition(Mechanism):
    """Several releases about the same records, each with a count.

    Written ``n * a + b``; repeats are merged and nested compositions flattened. The function that a
    part computes may depend on earlier outputs. The choice of the parts and of their counts may
    not, and the sets of a :func:`parallel` may not unless it is adaptive.

    Parameters
    ----------
    parts : iterable of (Mechanism, int)
        The mechanisms and their counts, integers in [0, 2**53].

    Raises
    ------
    UnsupportedError
        The relations of the parts differ.

    Notes
    -----
    *Guarantee.* Dominating pairs compose to their product, in each direction (Zhu, Dong, Wang 2022,
    Theorem 10; docs/theorems_mechanisms.md, Theorem M1; parallel releases: Theorem M18).

    Examples
    --------
    >>> import accountant as ac
    >>> 2 * ac.Gaussian(4.0) + ac.Laplace(2.0) + ac.Gaussian(4.0)
    3 * Gaussian(4.0) + Laplace(2.0)
    """

    theorems = ("M1", "M18")
    about = "Several releases about the same records, each with a count."

    parts: tuple[tuple[Mechanism, int], ...]

    def __post_init__(self) -> None:
        given = tuple(_checked(self.parts))
        if not given:
            raise DomainError("a composition must have at least one part; 0 * mechanism is allowed")
        relation = given[0][0].relation
        runs = sum([n * (m._runs if isinstance(m, Composition) else 1) for m, n in given])
        # A sum of a thousand mechanisms makes as many compositions, each of which nests the one
        # before: the parts are merged when first asked for, unless a check needs them.
        vars(self).update(_given=given, _relation=relation, _runs=runs)
        del vars(self)["parts"]
        if runs > MAX_COUNT or any(m.relation is not relation for m, _ in given):
            same_relation(mechanism for mechanism, _ in self.parts)

    def __getattr__(self, name: str) -> Any:
        if name != "parts":
            raise AttributeError(name)
        counts: dict[Mechanism, int] = {}
        waiting = list(reversed(self._given))
        while waiting:
            mechanism, times = waiting.pop()
            if isinstance(mechanism, Composition):
                inner = vars(mechanism).get("parts", mechanism._given)
                waiting.extend([(m, n * times) for m, n in reversed(inner)])
            else:
                counts[mechanism] = counts.get(mechanism, 0) + times
        for mechanism, count in counts.items():
            if count > MAX_COUNT:
                raise DomainError(
                    f"{mechanism!r} must be repeated at most 2**53 times; got {count}"
                )
        first = next(iter(counts.items()))
        parts = tuple([part for part in counts.items() if part[1]]) or (first,)
        vars(self).update(parts=parts, _given=parts)
        return parts

    def __reduce__(self) -> tuple[type[Composition], tuple[object]]:
        return Composition, (self.parts,)

    @property
    def relation(self) -> NeighbouringRelation:
        """The relation of every part."""
        found: NeighbouringRelation = self._relation
        return found

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the product pairs, for a sample of the whole; analyses use the parts."""
        if len(self.parts) == self.parts[0][1] == 1:
            return self.parts[0][0].pairs()
        found = [(symmetrised_pairs(mechanism), count) for mechanism, count in self.parts]
        plain = [(pairs[0], n) for pairs, n in found if _is_plain(pairs)]
        if len(plain) == len(found):
            return (merged(plain),)
        problems = problems_or_none(self)
        remove = ProductPair(tuple((pairs[0], n) for pairs, n in found), problems)
        add = ProductPair(tuple((pairs[-1], n) for pairs, n in found), problems)
        return (remove,) if remove == add else (remove, add)

    @property
    def covers_removal(self) -> bool:
        """Whether the bounds of all parts do."""
        return all(mechanism.covers_removal for mechanism, _ in self.parts)

    def from_below(self) -> Composition | None:
        """Return the composition of what data sets reach of the parts; None if that is all.

        Under replace-one a part of two pairs is taken in one order, the same for all.
        """
        found = [(part.from_below() or _in_one_order(part), part, n) for part, n in self.parts]
        if all(below is None for below, _, _ in found):
            return None
        return Composition(tuple((below or part, n) for below, part, n in found))

    @property
    def attained(self) -> bool:
        """Whether its parts are, in one order under replace-one."""
        return self.from_below() is None and all(part.attained for part, _ in self.parts)

    @property
    def attained_alone(self) -> bool:
        """That of its part, if it is a single release."""
        if len(self.parts) == self.parts[0][1] == 1:
            return self.parts[0][0].attained_alone
        return self.attained

    def adaptively(self) -> Composition:
        """Return the composition with every ``parallel`` in it made adaptive."""
        found = [(part.adaptively(), part, n) for part, n in self.parts]
        if all(new is part for new, part, _ in found):
            return self
        return Composition(tuple((new, n) for new, _, n in found))

    def alternatives(self, count: int = 1) -> Iterator[Counted]:
        """Yield every choice of one alternative for each part."""
        if len(self.parts) == 1:
            part, n = self.parts[0]
            yield from part.alternatives(n * count)
            return
        rows = [list(limited(part.alternatives(n * count))) for part, n in self.parts]
        for row in product(*rows):
            yield tuple(counted for alternative in row for counted in alternative)

    def group(self, size: int) -> Composition:
        """Return the composition of the groups."""
        return Composition(tuple((mechanism.group(size), n) for mechanism, n in self.parts))

    def under(self, relation: NeighbouringRelation) -> Composition:
        """Return the composition of the parts under another relation."""
        return Composition(tuple((mechanism.under(relation), n) for mechanism, n in self.parts))

    def __eq__(self, other: object) -> bool:
        """Compare as sets of counted parts: the order does not matter."""
        if not isinstance(other, Composition):
            return NotImplemented
        return frozenset(self.parts) == frozenset(other.parts)

    def __hash__(self) -> int:
        return hash((Composition, frozenset(self.parts)))

    def __repr__(self) -> str:
        if len(self.parts) == 1 and self.parts[0][1] == 1:
            return f"1 * {self.parts[0][0]!r}"
        return " + ".join(f"{n} * {m!r}" if n != 1 else repr(m) for m, n in self.parts)


def _in_one_order(mechanism: Mechanism) -> Mechanism | None:
    """Return the first of two pairs that replace one record in either order."""
    if mechanism.relation is not NeighbouringRelation.REPLACE_ONE:
        return None
    pairs = mechanism.pairs()
    return None if pairs[0] == pairs[-1] else OnePair(pairs[0], relation=mechanism.relation)


def _is_plain(pairs: tuple[DominatingPair, ...]) -> TypeGuard[tuple[GaussianPair]]:
    """Tell whether the pairs are one, of Gaussian noise without a sample."""
    (first, *others) = pairs
    return isinstance(first, GaussianPair) and first.sampling_probability == 1.0 and not others


def _checked(parts: object) -> Iterator[tuple[Mechanism, int]]:
    if not isinstance(parts, Iterable):
        raise ArgumentTypeError(f"parts must be pairs (mechanism, count); got {parts!r}")
    for part in parts:
        if not (isinstance(part, (tuple, list)) and len(part) == 2):
            raise ArgumentTypeError(f"parts must be pairs (mechanism, count); got {part!r}")
        mechanism, count = part
        times = checks.integer("count", count, 0)
        yield mechanism_of(mechanism, "parts"), times


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
