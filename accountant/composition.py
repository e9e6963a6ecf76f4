"""The algebra of releases: ``10_000 * step + other``, a frozen value without numerics."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, TypeGuard

from accountant.checks import MAX_COUNT
from accountant.errors import ArgumentTypeError, DomainError, UnsupportedError
from accountant.mechanisms import _arguments as arguments
from accountant.mechanisms._arithmetic import sum_up, times_up, up
from accountant.mechanisms.base import DominatingPair, Mechanism, offers
from accountant.mechanisms.gaussian import GaussianPair, merged
from accountant.mechanisms.joint import JointRelease
from accountant.relations import NeighbouringRelation

__all__ = ["Composition", "Parallel", "ProductPair", "WorstPair", "both_ways", "parallel"]


@dataclass(frozen=True, repr=False, eq=False)
class Composition(Mechanism):
    """Several releases about the same records, each known number of times.

    Written ``n * a + b``; repeats are merged and nested compositions flattened. Mechanisms may be
    chosen adaptively as long as each stays within the parameters stated here.

    Parameters
    ----------
    parts : iterable of (Mechanism, int)
        What is released, and how often: true integers in [0, 2**53].

    Raises
    ------
    UnsupportedError
        The relations of the parts differ.

    Notes
    -----
    *Guarantee.* Dominating pairs compose to their product, in each direction (Zhu, Dong, Wang 2022,
    Theorem 10; docs/theorems_mechanisms.md, Theorem M1).

    Examples
    --------
    >>> import accountant as ac
    >>> 2 * ac.Gaussian(4.0) + ac.Laplace(2.0) + ac.Gaussian(4.0)
    3 * Gaussian(4.0) + Laplace(2.0)
    """

    parts: tuple[tuple[Mechanism, int], ...]

    def __post_init__(self) -> None:
        merged: dict[Mechanism, int] = {}
        for mechanism, count in _flat(self.parts):
            merged[mechanism] = merged.get(mechanism, 0) + count
        if not merged:
            raise DomainError("a composition must have at least one part; 0 * mechanism is allowed")
        for mechanism, count in merged.items():
            if count > MAX_COUNT:
                raise DomainError(
                    f"{mechanism!r} must be repeated at most 2**53 times; got {count}"
                )
        _same_relation(merged)
        kept = {m: n for m, n in merged.items() if n} or dict([next(iter(merged.items()))])
        object.__setattr__(self, "parts", tuple(kept.items()))

    @property
    def relation(self) -> NeighbouringRelation:
        """The relation of every part."""
        return self.parts[0][0].relation

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the product pairs, for what runs on one sample; analyses look at the parts."""
        if len(self.parts) == self.parts[0][1] == 1:
            return self.parts[0][0].pairs()
        found = [(both_ways(mechanism), count) for mechanism, count in self.parts]
        plain = [(pairs[0], n) for pairs, n in found if _is_plain(pairs)]
        if len(plain) == len(found):
            return (merged(plain),)
        remove = ProductPair(tuple((pairs[0], n) for pairs, n in found), self)
        add = ProductPair(tuple((pairs[-1], n) for pairs, n in found), self)
        return (remove,) if remove == add else (remove, add)

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


@dataclass(frozen=True, repr=False, eq=False)
class Parallel(Mechanism):
    """Releases about disjoint sets of records: each record meets one of the branches.

    Made by :func:`parallel`, which states the conditions.
    """

    branches: tuple[Mechanism, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "branches", tuple(arguments.several("branches", self.branches)))
        if not self.branches:
            raise DomainError("parallel needs at least one branch")
        for branch in self.branches:
            _must_be_mechanism(branch)
        _same_relation(self.branches)
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

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the worst of the branches' pairs; analyses look at the branches instead."""
        found = [branch.pairs() for branch in self.branches]
        remove = WorstPair(tuple(pairs[0] for pairs in found), self)
        add = WorstPair(tuple(pairs[-1] for pairs in found), self)
        return (remove,) if remove == add else (remove, add)

    def under(self, relation: NeighbouringRelation) -> Parallel:
        """Return the branches under another relation."""
        return Parallel(tuple(branch.under(relation) for branch in self.branches))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Parallel):
            return NotImplemented
        return frozenset(self.branches) == frozenset(other.branches)

    def __hash__(self) -> int:
        return hash((Parallel, frozenset(self.branches)))

    def __repr__(self) -> str:
        return f"parallel({', '.join(map(repr, self.branches))})"


def parallel(*branches: Mechanism) -> Parallel:
    """Compose releases about disjoint sets of records.

    Parameters
    ----------
    *branches : Mechanism
        What is released about each set, all under one relation: add-or-remove or zero-out.

    Returns
    -------
    Parallel
        A mechanism that costs a record no more than the branch it meets.

    Notes
    -----
    *Guarantee.* Which set a record belongs to is a function of the record alone, fixed before any
    release: then the output of all other branches is independent of the record, and the worst
    branch is paid (McSherry 2009; docs/theorems_mechanisms.md, Theorem M18). Repeated,
    ``n * parallel(a, b)``, the sets may differ from time to time, and the worst split of the n
    between the branches is paid; with the same sets each time write ``parallel(n * a, n * b)``.
    """
    return Parallel(branches)


def both_ways(mechanism: Mechanism) -> tuple[DominatingPair, ...]:
    """Return the pairs as they compose with others: one for both orders under replace-one.

    To add and to remove are two directions, the same for all releases. Of two values of a record
    neither comes first, so one release may lean towards this value and the next towards that, and
    a pair that serves a single order serves no composition (Theorem M1).
    """
    pairs = mechanism.pairs()
    if mechanism.relation is not NeighbouringRelation.REPLACE_ONE or pairs[0] == pairs[-1]:
        return pairs
    return (WorstPair((pairs[0], pairs[-1]), mechanism),)


@dataclass(frozen=True)
class ProductPair(DominatingPair):
    """The product of pairs, as far as it is needed as one: its Rényi curve, and a hull.

    Parameters
    ----------
    parts : tuple of (DominatingPair, int)
        The pairs of one direction.
    releases : Mechanism
        What they are the pairs of.
    """

    parts: tuple[tuple[DominatingPair, int], ...]
    releases: Mechanism

    @property
    def hull(self) -> DominatingPair | None:
        """The pair of the joint profile, when all have a loss distribution (Theorem E1)."""
        return _hull(self.releases) if _have_losses(pair for pair, _ in self.parts) else None

    @property
    def support(self) -> tuple[float, float]:
        """The sums of the ends."""
        ends = [(n * low, n * high) for pair, n in self.parts if n for low, high in [pair.support]]
        low = -sum_up([-low for low, _ in ends])
        return low, sum_up([high for _, high in ends])

    @property
    def infinite_mass(self) -> float:
        """The mass of at least one infinite loss."""
        return infinite_mass(self.parts)

    @property
    def rho(self) -> float:
        """The sum."""
        return total((pair.rho, n) for pair, n in self.parts)

    @property
    def mu(self) -> float:
        """The root of the sum of squares (Dong, Roth, Su 2022, Corollary 3.3)."""
        return root_of_squares((pair.mu, n) for pair, n in self.parts)

    def rdp(self, order: float) -> float:
        """Return the sum of the divergences, rounded up."""
        return total((pair.rdp(order), n) for pair, n in self.parts)

    def finite_rdp(self, order: float) -> float:
        """Return the sum of the divergences of finite losses, rounded up."""
        return total((pair.finite_rdp(order), n) for pair, n in self.parts)


@dataclass(frozen=True)
class WorstPair(DominatingPair):
    """Bounds that hold for each of several pairs, and a hull.

    Parameters
    ----------
    choices : tuple of DominatingPair
        The pairs.
    releases : Mechanism
        Whose profile is the largest of theirs.
    """

    choices: tuple[DominatingPair, ...]
    releases: Mechanism

    @property
    def hull(self) -> DominatingPair | None:
        """The pair of the largest profile, when all have a loss distribution (Theorem E1)."""
        return _hull(self.releases) if _have_losses(self.choices) else None

    @property
    def support(self) -> tuple[float, float]:
        """The hull."""
        lows, highs = zip(*(pair.support for pair in self.choices), strict=True)
        return min(lows), max(highs)

    @property
    def infinite_mass(self) -> float:
        """The largest."""
        return max(pair.infinite_mass for pair in self.choices)

    @property
    def rho(self) -> float:
        """The largest."""
        return max(pair.rho for pair in self.choices)

    @property
    def mu(self) -> float:
        """The largest."""
        return max(pair.mu for pair in self.choices)

    def rdp(self, order: float) -> float:
        """Return the largest divergence."""
        return max(pair.rdp(order) for pair in self.choices)

    def finite_rdp(self, order: float) -> float:
        """Return the largest divergence of finite losses."""
        return max(pair.finite_rdp(order) for pair in self.choices)


def _have_losses(pairs: Iterable[DominatingPair]) -> bool:
    return all(offers(pair, "masses") or pair.hull is not None for pair in pairs)


@lru_cache(maxsize=64)
def _hull(releases: Mechanism) -> DominatingPair:
    return JointRelease(releases).pairs()[0]


def _is_plain(pairs: tuple[DominatingPair, ...]) -> TypeGuard[tuple[GaussianPair]]:
    """Tell whether the pairs are one, of Gaussian noise without a sample."""
    (first, *others) = pairs
    return isinstance(first, GaussianPair) and first.sampling_probability == 1.0 and not others


def total(terms: Iterable[tuple[float, int]]) -> float:
    """Return Σ n·x over terms (x, n) with x >= 0, rounded up; n = 0 contributes nothing."""
    return sum_up([times_up(x, n) for x, n in terms if n])


def root_of_squares(terms: Iterable[tuple[float, int]]) -> float:
    """Return √(Σ n·x²) over terms (x, n) with x >= 0, rounded up."""
    found = [(x, n) for x, n in terms if n and x > 0.0]
    # In units of the largest, so that no square leaves the range of the doubles.
    most = max((x for x, _ in found), default=0.0)
    if most == 0.0 or most == math.inf or len(found) == found[0][1] == 1:
        return most
    squares = sum_up([times_up(up((x / most) ** 2, 4.0), n) for x, n in found])
    return up(most * math.sqrt(squares), 4.0)


def infinite_mass(parts: Iterable[tuple[DominatingPair, int]]) -> float:
    """Return the probability that any of the losses is infinite, rounded up."""
    silent = 0.0
    for pair, count in parts:
        mass = pair.infinite_mass if count else 0.0
        if mass >= 1.0:
            return 1.0
        silent += count * math.log1p(-mass)
    return min(up(-math.expm1(silent * (1.0 + 2.0**-48)), 16.0), 1.0)


def repeat(mechanism: Any, count: object) -> Composition:
    """Return ``count * mechanism``."""
    return Composition(((mechanism, arguments.integer("count", count, 0)),))


def add(left: Any, right: Any) -> Composition:
    """Return ``left + right``."""
    return Composition(((left, 1), (right, 1)))


def _flat(parts: object) -> Iterable[tuple[Mechanism, int]]:
    if not isinstance(parts, Iterable):
        raise ArgumentTypeError(f"parts must be pairs (mechanism, count); got {parts!r}")
    for part in parts:
        if not (isinstance(part, (tuple, list)) and len(part) == 2):
            raise ArgumentTypeError(f"parts must be pairs (mechanism, count); got {part!r}")
        mechanism, count = part
        times = arguments.integer("count", count, 0)
        _must_be_mechanism(mechanism)
        if isinstance(mechanism, Composition):
            yield from ((inner, n * times) for inner, n in mechanism.parts)
        else:
            yield mechanism, times


def _must_be_mechanism(value: object) -> None:
    if not isinstance(value, Mechanism):
        raise ArgumentTypeError(
            f"only mechanisms compose, such as Gaussian(1.1) or n * PoissonSampled(...);"
            f" got {value!r}"
        )


def _same_relation(mechanisms: Iterable[Mechanism]) -> None:
    def same(first: Mechanism, other: Mechanism) -> Mechanism:
        if first.relation is other.relation:
            return first
        raise UnsupportedError(
            f"guarantees under different relations do not compose: {first!r} is under"
            f" {first.relation!r}, {other!r} under {other.relation!r}. State one under the"
            " other's, as in mechanism.under(relation)"
        )

    reduce(same, mechanisms)
