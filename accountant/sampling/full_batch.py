"""Full batches: every record in every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from accountant import checks
from accountant.relations import NeighbouringRelation
from accountant.sampling.drawing import Indices, Seed
from accountant.sampling.sampler import Sampler, WorstCaseInstance

if TYPE_CHECKING:
    from accountant.mechanisms.base import Mechanism


@dataclass(frozen=True, repr=False, kw_only=True)
class FullBatch(Sampler):
    """Gradient descent: all records take part in every step.

    Parameters
    ----------
    dataset_size : int
        Number of records.
    steps : int
        Number of steps.
    relation : NeighbouringRelation, keyword only
        Any; replacing a record moves the sum twice as far.

    Notes
    -----
    *Guarantee.* Exactly √steps/σ-GDP (twice that under replace-one): Theorem S2.
    """

    name: ClassVar[str] = "full batch"
    theorem: ClassVar[str] = "S2"
    relations: ClassVar[tuple[NeighbouringRelation, ...]] = tuple(NeighbouringRelation)

    dataset_size: int
    steps: int
    relation: NeighbouringRelation = field(default=NeighbouringRelation.ADD_OR_REMOVE, kw_only=True)

    def batches(self, seed: Seed = None) -> Iterator[Indices]:
        """Return all records, every time."""
        for _ in range(self.steps):
            yield np.arange(self.dataset_size, dtype=np.int64)

    def mechanism(self, noise_multiplier: float) -> Mechanism:
        """Return ``steps`` Gaussians."""
        from accountant.mechanisms.gaussian import Gaussian

        return self.steps * Gaussian(
            checks.number(checks.NOISE_MULTIPLIER, noise_multiplier), relation=self.relation
        )

    def worst_case_instances(self, noise_multiplier: float) -> tuple[WorstCaseInstance, ...]:
        """Return the mechanism itself, which is attained."""
        return (WorstCaseInstance(self.mechanism(noise_multiplier)),)
