"""Stated guarantees: ε or (ε, δ), a mechanism above a release, or two data sets below it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field

from accountant import checks
from accountant._basics.rounding import times_up, up
from accountant.mechanisms.base import Counted, Mechanism
from accountant.mechanisms.fields import Stated, Wrapper, mechanism_of, set_fields
from accountant.mechanisms.gaussian import Gaussian
from accountant.pairs.atoms import ResponsePair
from accountant.pairs.base import DominatingPair
from accountant.relations import ADD_OR_REMOVE, NeighbouringRelation


@dataclass(frozen=True, repr=False, init=False)
class EpsilonGuarantee(Stated):
    """A guarantee that one ε states, and that adds up along a path of neighbours.

    Parameters
    ----------
    epsilon : float
        In nats, >= 0 and finite; subclasses say what it bounds.
    relation : NeighbouringRelation, keyword only
        The relation under which it holds.
    """

    epsilon0: float = field(metadata={"argument": "epsilon"})
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __init__(self, epsilon: float, *, relation: NeighbouringRelation = ADD_OR_REMOVE) -> None:
        epsilon0 = checks.number(checks.FINITE_EPSILON, epsilon)
        set_fields(self, epsilon0=epsilon0, relation=relation)


@dataclass(frozen=True, repr=False, init=False)
class PureDP(EpsilonGuarantee):
    """Any ε-differentially private mechanism.

    Parameters
    ----------
    epsilon : float
        The guarantee, >= 0 and finite.
    relation : NeighbouringRelation, keyword only
        The relation under which it holds.

    Notes
    -----
    *Guarantee.* Dominated by randomised response with ε (Kairouz, Oh, Viswanath 2015;
    docs/theorems_mechanisms.md, Theorem M7).
    """

    theorems = ("M7",)
    about = "Any ε-differentially private mechanism."
    claim = "a pure ε"

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return randomised response, which is its own reverse."""
        return (ResponsePair(self.epsilon0),)


@dataclass(frozen=True, repr=False, init=False)
class ApproximateDP(Stated):
    """Any (ε, δ)-differentially private mechanism.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee: ε >= 0 and finite, δ in [0, 1].
    relation : NeighbouringRelation, keyword only
        The relation under which it holds.

    Notes
    -----
    *Guarantee.* Dominated by the extremal pair: with probability δ the loss is infinite, otherwise
    randomised response (Kairouz, Oh, Viswanath 2015; docs/theorems_mechanisms.md, Theorem M7).
    """

    theorems = ("M7",)
    about = "Any (ε, δ)-differentially private mechanism."
    claim = "an (ε, δ)"

    epsilon0: float = field(metadata={"argument": "epsilon"})
    _: KW_ONLY
    delta0: float = field(metadata={"argument": "delta"})
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __init__(
        self, epsilon: float, *, delta: float, relation: NeighbouringRelation = ADD_OR_REMOVE
    ) -> None:
        set_fields(
            self,
            epsilon0=checks.number(checks.FINITE_EPSILON, epsilon),
            delta0=checks.number(checks.STATED_DELTA, delta),
            relation=relation,
        )

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the extremal pair, which is its own reverse."""
        return (ResponsePair(self.epsilon0, infinite=self.delta0),)

    def _steps(self, size: int, relation: NeighbouringRelation) -> ApproximateDP:
        if size == 1:
            return ApproximateDP(self.epsilon0, delta=self.delta0, relation=relation)
        e, epsilon = self.epsilon0, times_up(self.epsilon0, size)
        growth = float(size) if e == 0.0 else math.inf
        if e > 0.0 and epsilon < 700.0:
            growth = math.exp(epsilon - e) * math.expm1(-epsilon) / math.expm1(-e)
        delta = self.delta0 * growth if self.delta0 > 0.0 else 0.0
        delta = min(up(delta, 32.0 + 4.0 * epsilon), 1.0)
        return ApproximateDP(epsilon, delta=delta, relation=relation)


@dataclass(frozen=True, repr=False, init=False)
class RandomizedResponse(Mechanism):
    """The true one of k answers with probability e^ε/(e^ε + k - 1), else another, uniformly.

    Parameters
    ----------
    epsilon : float
        The loss, >= 0 and finite, in nats.
    k : int, optional
        The number of possible answers, >= 2.
    relation : NeighbouringRelation, keyword only
        The relation whose neighbours may have any two true answers.

    Notes
    -----
    *Guarantee.* Attained by two data sets whose answers differ; with k > 2 the loss is 0 for the
    other answers (docs/theorems_mechanisms.md, Theorem M7). Every relation allows any two answers
    already, so the bound does not double under replace-one.
    """

    theorems = ("M7",)
    about = "The true one of k answers with probability e^ε/(e^ε + k - 1), else another, uniformly."

    epsilon0: float = field(metadata={"argument": "epsilon"})
    _: KW_ONLY
    k: int = 2
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __init__(
        self, epsilon: float, *, k: int = 2, relation: NeighbouringRelation = ADD_OR_REMOVE
    ) -> None:
        set_fields(
            self,
            epsilon0=checks.number(checks.FINITE_EPSILON, epsilon),
            k=checks.integer("k", k, 2),
            relation=relation,
        )

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the pair of two different answers, which is its own reverse."""
        return (ResponsePair(self.epsilon0, others=self.k - 2),)

    def group(self, size: int) -> Mechanism:
        """Return the pure guarantee kε: each record of the group may have a response of its own."""
        return self if size == 1 else PureDP(self.epsilon0, relation=self.relation).group(size)

    def under(self, relation: NeighbouringRelation) -> RandomizedResponse:
        """Return itself under another relation whose neighbours may have any two answers."""
        return RandomizedResponse(self.epsilon0, k=self.k, relation=checks.relation(relation))


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
