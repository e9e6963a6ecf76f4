"""Random allocation (balls in bins): every record picks the steps it takes part in.

In every epoch each record picks ``participations`` of ``steps_per_epoch`` steps, uniformly and on
its own; one of T is also called balls-in-bins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from accountant import checks
from accountant.bounds import Bounds
from accountant.environment import to_nearest
from accountant.errors import DomainError
from accountant.mechanisms.base import Mechanism, Selection
from accountant.mechanisms.fields import set_fields
from accountant.mechanisms.stated_guarantees import DominatedBy, OnePair
from accountant.pairs.base import DominatingPair
from accountant.relations import NeighbouringRelation
from accountant.sampling import sampler as drawing
from accountant.sampling.allocation_pair import POINTS, AllocationPair
from accountant.sampling.sampler import Indices, Sampler, Seed, WorstCaseInstance
from accountant.sampling.several_steps import removal_bounds

_RELATIONS = (NeighbouringRelation.ADD_OR_REMOVE, NeighbouringRelation.ZERO_OUT)
# The least and most points of a law: fewer say little, and the time grows with their square.
_POINTS = (100, 2400)

# The least noise: below it ratios span most of the range of doubles, there is little left to
# amplify, and the plain Gaussian bound serves.
_LEAST_NOISE = 0.15
# The largest noise: above it ratios differ from one by less than the errors their grid carries.
_MOST_NOISE = 1e8


class HasLaws(Protocol):
    """An allocation that is bounded by laws from above and from below."""

    @property
    def relation(self) -> NeighbouringRelation:
        """Its relation."""

    def bounding_pairs(self, *, upper: bool) -> tuple[DominatingPair, ...]:
        """Return (remove, add) of the laws from one side."""


ALLOCATION = Selection(
    "random allocation: each record in one step of an epoch, picked uniformly",
    "Each record picks its step independently and uniformly, afresh in every epoch; batch sizes"
    " vary.",
)


@dataclass(frozen=True, repr=False)
class Allocated(Mechanism):
    """``steps`` Gaussian releases, of which a record takes part in exactly one, picked uniformly.

    Parameters
    ----------
    noise_multiplier : float
        Noise standard deviation over the bound on one contribution, > 0.
    steps : int
        Number of releases T.
    relation : NeighbouringRelation, keyword only
        Add-or-remove or zero-out; the pair is the same.
    points : int, keyword only
        Grid points of the law, in [100, 2400]: more are slower, and a little tighter.

    Notes
    -----
    *Guarantee.* Theorems S1, S4 and S5: the mean of the N(e_i, σ²I) against N(0, σ²I), attained,
    and computed through a law that is larger in the convex order; lower ends of brackets through
    one that is smaller. A bracket is therefore about one percent of δ wide.

    Examples
    --------
    >>> import accountant as ac
    >>> ac.sampling.Allocated(1.0, steps=1000).epsilon(1e-6) < ac.Gaussian(1.0).epsilon(1e-6) / 10
    True
    """

    theorems = ("S1", "S4", "S5")
    about = "Several Gaussian releases; a record takes part in exactly one, picked uniformly."
    selection = ALLOCATION

    noise_multiplier: float
    _: KW_ONLY
    steps: int
    relation: NeighbouringRelation = field(default=NeighbouringRelation.ADD_OR_REMOVE, kw_only=True)
    points: int = field(default=POINTS, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        set_fields(
            self,
            noise_multiplier=checks.number(checks.NOISE_MULTIPLIER, self.noise_multiplier),
            steps=checks.integer("steps", self.steps, 1),
            relation=checks.supported_relation("random allocation", self.relation, _RELATIONS),
            points=checks.integer("points", self.points, *_POINTS),
        )

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return (remove, add)."""
        return self.bounding_pairs(upper=True)

    def bounding_pairs(self, *, upper: bool) -> tuple[DominatingPair, ...]:
        """Return pairs that are nowhere below the mechanism's, or nowhere above them."""
        from accountant.mechanisms.gaussian import Gaussian

        noise = self.noise_multiplier
        if self.steps == 1 or not _LEAST_NOISE <= noise <= _MOST_NOISE:
            # Picking a step is post-processing of having told which: convexity (Theorem S2).
            return Gaussian(noise if upper or self.steps == 1 else math.inf).pairs()
        return tuple(
            AllocationPair(noise, self.steps, add, upper, self.points) for add in (False, True)
        )

    def from_below(self) -> Mechanism:
        """Return a mechanism whose profile is nowhere above this one's (for lower bounds)."""
        return FromBelow(self)


@dataclass(frozen=True, repr=False)
class FromBelow(Mechanism):
    """The same as ``above``, with the laws that are smaller in the convex order."""

    above: HasLaws

    @property
    def relation(self) -> NeighbouringRelation:
        """The relation of the mechanism it bounds."""
        return self.above.relation

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return (remove, add)."""
        return self.above.bounding_pairs(upper=False)


@dataclass(frozen=True, repr=False, kw_only=True)
class RandomAllocation(Sampler):
    """In every epoch each record picks its steps at random, independently of all others.

    Parameters
    ----------
    dataset_size : int
        Number of records, for :meth:`batches`; the guarantee does not depend on it.
    steps_per_epoch : int
        Number of steps T of one epoch.
    epochs : int
        Number of epochs; the picks are fresh in each.
    participations : int
        How many of the T steps a record picks; 1 is balls-in-bins.
    relation : NeighbouringRelation, keyword only
        Add-or-remove or zero-out.

    Notes
    -----
    *Guarantee.* Theorems S1, S4, S5, S15 and S27; with more participations, :meth:`mechanism` is
    that of Theorem S9, the composition of ``participations`` allocations of one in
    ⌊T/participations⌋ (Feldman, Shenfeld 2025), and one epoch is bracketed by Theorem S28.
    """

    name: ClassVar[str] = "random allocation"
    theorem: ClassVar[str] = "S4, S5, S28"
    relations: ClassVar[tuple[NeighbouringRelation, ...]] = _RELATIONS

    dataset_size: int
    steps_per_epoch: int
    epochs: int = 1
    participations: int = 1
    relation: NeighbouringRelation = field(default=NeighbouringRelation.ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.participations > self.steps_per_epoch:
            raise DomainError(
                f"participations must be at most steps_per_epoch = {self.steps_per_epoch}; got"
                f" {self.participations}. A record cannot take part twice in one step"
            )

    @property
    def steps(self) -> int:
        """The number of batches of one run."""
        return self.epochs * self.steps_per_epoch

    def batches(self, seed: Seed = None) -> Iterator[Indices]:
        """Let every record pick, then list the pickers of every step: O(records) an epoch."""
        rng = drawing.generator(seed)
        for _ in range(self.epochs):
            picks = self._picks(rng)
            order = np.argsort(picks, axis=None, kind="stable")
            records = order // self.participations
            bounds = np.cumsum(np.bincount(picks.ravel(), minlength=self.steps_per_epoch))
            yield from np.split(records.astype(np.int64, copy=False), bounds[:-1])

    def _picks(self, rng: np.random.Generator) -> Indices:
        """Return the steps each record picks, of shape (records, participations)."""
        shape = (self.dataset_size, self.participations)
        if self.participations == 1:
            return rng.integers(self.steps_per_epoch, size=shape, dtype=np.int64)
        return np.stack(
            [
                drawing.distinct(rng, self.steps_per_epoch, self.participations)
                for _ in range(self.dataset_size)
            ]
        )

    def _block(self, noise_multiplier: float) -> Allocated:
        block = self.steps_per_epoch // self.participations
        return Allocated(noise_multiplier, steps=block, relation=self.relation)

    def mechanism(self, noise_multiplier: float) -> Mechanism:
        """Return the epochs, each one or more allocations of one step."""
        found = (self.epochs * self.participations) * self._block(noise_multiplier)
        return found if self.participations == 1 else DominatedBy(found)

    @to_nearest
    def epsilon(self, noise_multiplier: float, delta: float) -> float:
        """Return the ε spent at ``delta``, certified never too small."""
        return float(self._ends(noise_multiplier, delta, lower=False).upper)

    @to_nearest
    def epsilon_bounds(self, noise_multiplier: float, delta: float) -> Bounds:
        """Bracket the ε(delta) of the sampler itself, in nats."""
        found = super().epsilon_bounds(noise_multiplier, delta)
        if self.participations == 1:
            return found
        return found.intersection(self._ends(noise_multiplier, delta, lower=True))

    def _ends(self, noise_multiplier: float, delta: float, *, lower: bool) -> Bounds:
        """Bracket ε by blocks, and one epoch of several picks by its removal (Theorem S28)."""
        plain = Bounds(0.0, super().epsilon(noise_multiplier, delta))
        if self.participations == 1 or self.epochs > 1:
            return plain
        noise = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
        budget, picks = checks.number(checks.DELTA, delta), self.participations
        found = removal_bounds(
            noise, self.steps_per_epoch, picks, budget, float(plain.upper), lower=lower
        )
        if found.upper >= plain.upper:
            return found
        # The other direction is bounded by the blocks, which nearly always is far below.
        add = self._block(noise).pairs()[-1]
        if float((picks * OnePair(add, relation=self.relation)).delta(found.upper)) <= budget:
            return found
        return Bounds(found.lower, plain.upper)

    def worst_case_instances(self, noise_multiplier: float) -> tuple[WorstCaseInstance, ...]:
        """Return the pair itself, from below; with more participations, sums over an epoch.

        A record that picks k of T steps contributes k to the sum over an epoch's steps, whose noise
        has standard deviation √T σ.
        """
        steps, picks = self.steps_per_epoch, self.participations
        if picks == 1:
            one = Allocated(noise_multiplier, steps=steps, relation=self.relation)
            return (WorstCaseInstance(self.epochs * one.from_below()),)
        from accountant.mechanisms.gaussian import Gaussian

        exact = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
        noise = exact * math.sqrt(steps) / picks * (1.0 + 2.0**-50)
        return (WorstCaseInstance(self.epochs * Gaussian(noise, relation=self.relation)),)
