"""Shared by samplers with a stated batch size: their settings, and the epochs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from accountant import checks
from accountant.relations import NeighbouringRelation
from accountant.sampling.sampler import Sampler

if TYPE_CHECKING:
    from accountant.mechanisms.base import Mechanism


@dataclass(frozen=True, repr=False, kw_only=True)
class EpochSampler(Sampler):
    """Every record once an epoch, in batches cut from an order."""

    relations: ClassVar[tuple[NeighbouringRelation, ...]] = (
        NeighbouringRelation.ZERO_OUT,
        NeighbouringRelation.REPLACE_ONE,
    )

    dataset_size: int
    batch_size: int
    epochs: int
    relation: NeighbouringRelation = field(default=NeighbouringRelation.ZERO_OUT, kw_only=True)

    @property
    def steps_per_epoch(self) -> int:
        """The number of batches of one epoch."""
        return -(-self.dataset_size // self.batch_size)

    @property
    def steps(self) -> int:
        """The number of batches of one run."""
        return self.epochs * self.steps_per_epoch

    def mechanism(self, noise_multiplier: float) -> Mechanism:
        """Return one Gaussian per epoch."""
        from accountant.mechanisms.gaussian import Gaussian

        return self.epochs * Gaussian(
            checks.number(checks.NOISE_MULTIPLIER, noise_multiplier), relation=self.relation
        )


@dataclass(frozen=True, repr=False, kw_only=True)
class StepSampler(Sampler):
    """A batch of a stated size in every step, independent of all others."""

    dataset_size: int
    batch_size: int
    steps: int
