"""Batches of a fixed size, drawn without replacement and afresh for every step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

from accountant import checks
from accountant._rounding import U, lift, ratio_down, ratio_up
from accountant.mechanisms.base import Mechanism, Selection
from accountant.mechanisms.dominated_by import OnePair
from accountant.mechanisms.fields import set_fields
from accountant.pairs.base import DominatingPair
from accountant.relations import NeighbouringRelation
from accountant.sampling import drawing
from accountant.sampling.drawing import Indices, Seed
from accountant.sampling.poisson import poisson_gaussian
from accountant.sampling.replacement_pair import LEAST_DISTANCE, Draws, ReplacementPair
from accountant.sampling.sampler import StepSampler, WorstCaseInstance

_REPLACE_ONE = (NeighbouringRelation.REPLACE_ONE,)


@dataclass(frozen=True, repr=False)
class FixedSizeSampled(Mechanism):
    """One Gaussian release of the sum over a uniform batch of fixed size.

    Parameters
    ----------
    noise_multiplier : float
        Noise standard deviation over the bound on one contribution, > 0.
    batch_size, dataset_size : int
        The batch is a uniform subset, without replacement.
    relation : NeighbouringRelation, keyword only
        Replace-one: under the others the batch itself changes with the data set's size.

    Notes
    -----
    *Guarantee.* Theorem S6 (Balle, Barthe, Gaboardi 2018; composed as in Zhu, Dong, Wang 2022):
    a symmetric pair, whose profile at ε >= 0 one release attains. Several equal steps are bounded
    by Theorem S19: what an adversary gains who chooses every step, which is about a tenth less.
    """

    theorems = ("S6", "S19")
    about = "One Gaussian release of the sum over a uniform batch of fixed size."
    selection = Selection(
        "a uniform batch of fixed size, without replacement",
        "Every step draws a fresh uniform subset of the stated size from all records; the number of"
        " records is public.",
    )

    noise_multiplier: float
    _: KW_ONLY
    batch_size: int
    dataset_size: int
    relation: NeighbouringRelation = field(default=NeighbouringRelation.REPLACE_ONE, kw_only=True)

    def __post_init__(self) -> None:
        size = checks.whole(checks.DATASET_SIZE, self.dataset_size)
        set_fields(
            self,
            noise_multiplier=checks.number(checks.NOISE_MULTIPLIER, self.noise_multiplier),
            dataset_size=size,
            batch_size=checks.batch_size(self.batch_size, size),
            relation=checks.supported_relation("fixed-size sampling", self.relation, _REPLACE_ONE),
        )

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the symmetric pair."""
        distance = ratio_up(2, self.noise_multiplier)
        if distance < LEAST_DISTANCE:
            from accountant.mechanisms.gaussian import Gaussian

            # Sampling only hides (Theorem S6); there is next to nothing to hide.
            return Gaussian(self.noise_multiplier, relation=self.relation).pairs()
        return (FixedSizePair(ratio_up(self.batch_size, self.dataset_size), (1.0,), (distance,)),)

    def from_below(self) -> Mechanism:
        """Return the loss of a record +1 that becomes -1 among records that are all -1."""
        probability = ratio_down(self.batch_size, self.dataset_size)
        step = poisson_gaussian(0.5 * self.noise_multiplier, probability)
        return OnePair(step.pairs()[0], relation=self.relation)


@dataclass(frozen=True)
class FixedSizePair(ReplacementPair):
    """The pair of Theorem S6; of its Rényi bounds the better: its own and that of Wang et al."""

    @property
    def draws(self) -> Draws:
        """Once with the sampling probability, which is rounded."""
        q = self.sampling_probability
        return Draws((1.0 - q, q), 0.5 * self.distances[0], 4.0 * U)

    def finite_rdp(self, order: float) -> float:
        """Return the smaller bound; theirs is known at integer orders."""
        own = super().finite_rdp(order)
        if not order.is_integer() or order > 512:
            return own
        theirs = wang_balle_kasiviswanathan(
            int(order), self.sampling_probability, self.distances[0]
        )
        return min(own, theirs)


def wang_balle_kasiviswanathan(order: int, sampling_probability: float, distance: float) -> float:
    """Return the Rényi bound of Wang, Balle and Kasiviswanathan (2019, Theorem 9) for a Gaussian.

    Parameters
    ----------
    order : int
        At least 2.
    sampling_probability : float
        Batch size over number of records.
    distance : float
        Largest distance in noise standard deviations, 2/σ.

    Returns
    -------
    float
        An upper bound on the divergence of one step in nats, under replace-one.
    """
    checks.integer("order", order, 2, advice="The bound sums from 2 on")
    log_q = math.log(sampling_probability)
    unit = 0.5 * distance * distance  # ε(j) = j·unit
    two = min(math.log(4.0) + _log_expm1(2.0 * unit), 2.0 * unit + math.log(2.0))
    terms = [2.0 * log_q + math.log(math.comb(order, 2)) + two]
    terms += [
        j * log_q + math.log(math.comb(order, j)) + math.log(2.0) + (j - 1) * j * unit
        for j in range(3, order + 1)
    ]
    highest = max(terms)
    total = highest + math.log(math.fsum(math.exp(term - highest) for term in terms))
    # Exponents are off by a few units each.
    total += 2.0**-48 * (8.0 + max(abs(term) for term in terms) + abs(log_q) * order)
    value = total if total > 40.0 else math.log1p(math.exp(total))
    return lift(value / (order - 1)) * (1.0 + 2.0**-48)


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x))


@dataclass(frozen=True, repr=False, kw_only=True)
class FixedSizeSampler(StepSampler):
    """Every step uses a fresh uniform batch of exactly ``batch_size`` records.

    Parameters
    ----------
    dataset_size, batch_size : int
        Numbers of records.
    steps : int
        Number of steps.
    relation : NeighbouringRelation, keyword only
        Replace-one.

    Notes
    -----
    *Guarantee.* Theorem S6 in one step, Theorem S19 in several. The lower bound is reached by a
    record that differs from all others until the budget is overspent, and then hides (S22).
    """

    name: ClassVar[str] = "fixed size, without replacement"
    theorem: ClassVar[str] = "S6, S18, S19, S22"
    relations: ClassVar[tuple[NeighbouringRelation, ...]] = _REPLACE_ONE

    relation: NeighbouringRelation = field(default=NeighbouringRelation.REPLACE_ONE, kw_only=True)

    def batches(self, seed: Seed = None) -> Iterator[Indices]:
        """Draw a uniform subset for every step, in O(batch)."""
        rng = drawing.generator(seed)
        for _ in range(self.steps):
            yield drawing.distinct(rng, self.dataset_size, self.batch_size)

    def mechanism(self, noise_multiplier: float) -> Mechanism:
        """Return ``steps`` fixed-size releases."""
        return self.steps * FixedSizeSampled(
            noise_multiplier, batch_size=self.batch_size, dataset_size=self.dataset_size
        )

    def worst_case_instances(self, noise_multiplier: float) -> tuple[WorstCaseInstance, ...]:
        """Return the mechanism itself, whose lower ends are reached.

        By a record +1 that becomes -1 among records that are all -1; in a game, by one that chooses
        its contributions step by step (Theorem S22).
        """
        return (WorstCaseInstance(self.mechanism(noise_multiplier)),)
