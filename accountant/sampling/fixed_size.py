"""Batches of a fixed number of draws: subsets without repetition, and draws with replacement."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from accountant import checks
from accountant._basics.rounding import U, ratio_down, ratio_up, times_up, up
from accountant.errors import PrecisionError
from accountant.mechanisms.base import Mechanism, Selection
from accountant.mechanisms.fields import set_fields
from accountant.mechanisms.mixture import repeated_draws
from accountant.mechanisms.stated_guarantees import OnePair
from accountant.pairs.atoms import ResponsePair
from accountant.pairs.base import DominatingPair
from accountant.relations import NeighbouringRelation
from accountant.sampling import sampler as drawing
from accountant.sampling.poisson import poisson_gaussian
from accountant.sampling.replacement_pair import (
    LEAST_DISTANCE,
    FixedSizePair,
    ReplacementPair,
    WithReplacementPair,
)
from accountant.sampling.sampler import Indices, Seed, StepSampler, WorstCaseInstance

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


_RELATIONS = (NeighbouringRelation.ADD_OR_REMOVE, NeighbouringRelation.REPLACE_ONE)

# Draws of a smaller probability are left out, and then counted as infinite loss.
_LEFT_OUT = 1e-25
# The least probability of no draw: below it the others, which follow from it, lose digits.
_LEAST_WEIGHT = 1e-290
# The largest shift in standard deviations of the noise: squares of larger ones leave the doubles.
_FARTHEST = 1e100
# The noise from which lower ends are taken there.
_MORE_NOISE = 1e-50


class _Draws(NamedTuple):
    """How often one record is drawn: probabilities of 0 … K times, and of more."""

    weights: tuple[float, ...]
    remainder: float
    relative_error: float


@lru_cache(maxsize=64)
def _draws(batch_size: int, dataset_size: int) -> _Draws:
    """Return Bin(batch_size, 1/dataset_size), dataset_size > 1, cut off where it is negligible."""
    odds = 1.0 / (dataset_size - 1)
    weight = math.exp(batch_size * math.log1p(-1.0 / dataset_size))
    if not weight > _LEAST_WEIGHT:
        raise PrecisionError(
            f"batch_size must miss a record with a chance above {_LEAST_WEIGHT}; got {batch_size}"
            f" draws from {dataset_size} records. Every record is then in every batch, many times:"
            " use full batches"
        )
    weights = [weight]
    for k in range(batch_size):
        weight *= (batch_size - k) / (k + 1) * odds
        ratio = (batch_size - k - 1) / (k + 2) * odds
        if weight < _LEFT_OUT and ratio < 0.5:
            break
        weights.append(weight)
    else:
        weight = 0.0
    # From here on the ratios fall below one half: a geometric series.
    error = U * (8.0 * (len(weights) + 2) + 16.0 * batch_size / dataset_size + 16.0)
    return _Draws(tuple(weights), 2.0 * weight * (1.0 + error), error)


@dataclass(frozen=True, repr=False)
class WithReplacementSampled(Mechanism):
    """One Gaussian release of the sum over a batch drawn with replacement.

    Parameters
    ----------
    noise_multiplier : float
        Noise standard deviation over the bound on one contribution, > 0.
    batch_size, dataset_size : int
        Draws, and records of the *larger* data set under add-or-remove. The batch may be larger
        than the data.
    relation : NeighbouringRelation, keyword only
        Add-or-remove or replace-one.

    Notes
    -----
    *Guarantee.* Theorem S8 (add-or-remove; a record that is drawn displaces another, so hits move
    the sum by 2, attained) and Theorem S7 (replace-one; Balle, Barthe, Gaboardi 2018). Several
    equal steps under replace-one have Theorems S19 and S20.
    """

    theorems = ("S8", "S7", "S19", "S20")
    about = "One Gaussian release of the sum over a batch drawn with replacement."
    selection = Selection(
        "a batch of fixed size, with replacement",
        "Every step draws each member of its batch independently and uniformly from all records;"
        " a record drawn twice counts twice.",
    )

    noise_multiplier: float
    _: KW_ONLY
    batch_size: int
    dataset_size: int
    relation: NeighbouringRelation = field(default=NeighbouringRelation.ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        set_fields(
            self,
            noise_multiplier=checks.number(checks.NOISE_MULTIPLIER, self.noise_multiplier),
            dataset_size=checks.integer(
                "dataset_size", self.dataset_size, 1, advice="It is the number of records"
            ),
            batch_size=checks.integer("batch_size", self.batch_size, 1, advice="It counts draws"),
            relation=checks.supported_relation(
                "sampling with replacement", self.relation, _RELATIONS
            ),
        )

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return (remove, add), or the symmetric pair under replace-one."""
        if self.dataset_size == 1:  # the only record is drawn every time
            distance = ratio_up(2 * self.batch_size, self.noise_multiplier)
            return (ReplacementPair(1.0, (1.0,), (distance,), 0.0, 2.0**-46),)
        if self._once is not None:
            return self._once.pairs()
        draws = _draws(self.batch_size, self.dataset_size)
        weights = draws.weights
        remainder, error = draws.remainder, draws.relative_error
        if self.relation is NeighbouringRelation.ADD_OR_REMOVE:
            unit = ratio_up(2, self.noise_multiplier)
            if unit > _FARTHEST:
                # The output reveals whether the record was drawn: the loss is the draw's.
                told = -math.expm1(self.batch_size * math.log1p(-1.0 / self.dataset_size))
                return (ResponsePair(0.0, infinite=min(up(told, 24.0), 1.0)),)
            farthest = times_up(unit, self.batch_size)
            return tuple(
                repeated_draws(
                    weights, unit, add=add, remainder=remainder, error=error, farthest=farthest
                )
                for add in (False, True)
            )
        hit = [(k, w) for k, w in enumerate(weights) if k > 0 and w > 0.0]
        q = min(1.0, math.fsum(w for _, w in hit) * (1.0 + 2.0**-48) * (1.0 + error))
        distances = tuple(ratio_up(2 * k, self.noise_multiplier) for k, _ in hit)
        shares = tuple(w / q for _, w in hit)
        farthest = ratio_up(2 * self.batch_size, self.noise_multiplier)
        doubt = 4.0 * error + 2.0**-46
        return (
            WithReplacementPair(
                q, shares, distances, remainder / q, doubt, farthest, weights, error
            ),
        )

    @property
    def _once(self) -> FixedSizeSampled | None:
        """One record, uniformly: the same step as without replacement."""
        if self.batch_size > 1 or self.relation is not NeighbouringRelation.REPLACE_ONE:
            return None
        return FixedSizeSampled(self.noise_multiplier, batch_size=1, dataset_size=self.dataset_size)

    def from_below(self) -> Mechanism | None:
        """Return the release with more noise, which is post-processing, where shifts are told.

        Under replace-one the loss of a record +1 that becomes -1 among records that are all -1.
        """
        if self.dataset_size == 1:
            return None
        if self._once is not None:
            return self._once.from_below()
        if self.relation is NeighbouringRelation.REPLACE_ONE:
            added = replace(self, relation=NeighbouringRelation.ADD_OR_REMOVE)
            pair = (added.from_below() or added).pairs()[0]
            return OnePair(pair, relation=self.relation)
        is_told = ratio_up(2, self.noise_multiplier) > _FARTHEST
        return replace(self, noise_multiplier=_MORE_NOISE) if is_told else None


@dataclass(frozen=True, repr=False, kw_only=True)
class WithReplacementSampler(StepSampler):
    """Every step draws ``batch_size`` records independently; a record may come several times.

    Parameters
    ----------
    dataset_size, batch_size : int
        Records (of the larger data set under add-or-remove), and draws per step.
    steps : int
        Number of steps.
    relation : NeighbouringRelation, keyword only
        Add-or-remove or replace-one.

    Notes
    -----
    *Guarantee.* Theorem S8 (add-or-remove) or S7 (replace-one) in every step.
    """

    name: ClassVar[str] = "with replacement"
    theorem: ClassVar[str] = "S7, S8, S19, S20, S22"
    relations: ClassVar[tuple[NeighbouringRelation, ...]] = _RELATIONS

    relation: NeighbouringRelation = field(default=NeighbouringRelation.ADD_OR_REMOVE, kw_only=True)

    def batches(self, seed: Seed = None) -> Iterator[Indices]:
        """Draw independent indices; repeats stay."""
        rng = drawing.generator(seed)
        for _ in range(self.steps):
            yield np.sort(rng.integers(self.dataset_size, size=self.batch_size, dtype=np.int64))

    def mechanism(self, noise_multiplier: float) -> Mechanism:
        """Return ``steps`` releases with replacement."""
        return self.steps * WithReplacementSampled(
            noise_multiplier,
            batch_size=self.batch_size,
            dataset_size=self.dataset_size,
            relation=self.relation,
        )

    def worst_case_instances(self, noise_multiplier: float) -> tuple[WorstCaseInstance, ...]:
        """Return the mechanism itself, whose lower ends are reached but for draws left out."""
        one = WithReplacementSampled(
            noise_multiplier, batch_size=self.batch_size, dataset_size=self.dataset_size
        )
        left_out = sum(pair.left_out for pair in one.pairs())
        return (WorstCaseInstance(self.mechanism(noise_multiplier), self.steps * left_out),)
