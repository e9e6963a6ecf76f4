"""Poisson sampling: each record enters each batch independently with probability q."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from accountant import checks
from accountant.relations import NeighbouringRelation
from accountant.sampling import drawing
from accountant.sampling.drawing import Indices, Seed
from accountant.sampling.sampler import Sampler, WorstCaseInstance

if TYPE_CHECKING:
    from accountant.mechanisms.base import Mechanism
    from accountant.sampling.poisson import PoissonSampled


def poisson_gaussian(
    noise_multiplier: float,
    probability: float,
    relation: NeighbouringRelation = NeighbouringRelation.ADD_OR_REMOVE,
) -> PoissonSampled:
    """Return one Poisson-subsampled Gaussian step."""
    from accountant.mechanisms.gaussian import Gaussian
    from accountant.sampling.poisson import PoissonSampled

    return PoissonSampled(Gaussian(noise_multiplier, relation=relation), probability)


@dataclass(frozen=True, repr=False, kw_only=True)
class PoissonSampler(Sampler):
    """Poisson sampling: in every step each record takes part with one probability, independently.

    Parameters
    ----------
    dataset_size : int
        Number of records, for :meth:`batches`; the guarantee does not depend on it.
    sampling_probability : float
        In [0, 1].
    steps : int
        Number of steps.
    relation : NeighbouringRelation, keyword only
        Any; add-or-remove and zero-out have the same pair.

    Notes
    -----
    *Guarantee.* Theorem S1 with independent participations: the pair of docs/theorems.md in every
    step, attained; under replace-one that of Theorem E7 (docs/theorems_adapters.md), attained.
    """

    name: ClassVar[str] = "Poisson"
    theorem: ClassVar[str] = "S1, E7"
    relations: ClassVar[tuple[NeighbouringRelation, ...]] = tuple(NeighbouringRelation)

    dataset_size: int
    sampling_probability: float
    steps: int
    relation: NeighbouringRelation = field(default=NeighbouringRelation.ADD_OR_REMOVE, kw_only=True)

    def batches(self, seed: Seed = None) -> Iterator[Indices]:
        """Draw a binomial size, then that many distinct records, in O(batch)."""
        rng = drawing.generator(seed)
        for _ in range(self.steps):
            size = drawing.poisson_size(rng, self.dataset_size, self.sampling_probability)
            yield drawing.distinct(rng, self.dataset_size, size)

    def mechanism(self, noise_multiplier: float) -> Mechanism:
        """Return ``steps`` Poisson-subsampled Gaussians."""
        noise = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
        return self.steps * poisson_gaussian(noise, self.sampling_probability, self.relation)

    def worst_case_instances(self, noise_multiplier: float) -> tuple[WorstCaseInstance, ...]:
        """Return the mechanism itself: all other contributions zero, this one always one."""
        return (WorstCaseInstance(self.mechanism(noise_multiplier)),)
