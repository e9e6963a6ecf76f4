"""Cyclic batches: fixed batches in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from accountant.sampling.batch_size_sampler import EpochSampler
from accountant.sampling.drawing import Indices, Seed
from accountant.sampling.sampler import WorstCaseInstance


@dataclass(frozen=True, repr=False, kw_only=True)
class CyclicBatches(EpochSampler):
    """Consecutive records form a batch; the batches come in order, once per epoch.

    Parameters
    ----------
    dataset_size, batch_size : int
        Numbers of records; the last batch of an epoch may be smaller.
    epochs : int
        Passes over the data.
    relation : NeighbouringRelation, keyword only
        Zero-out or replace-one. Adding a record would move the boundaries of all later batches.

    Notes
    -----
    *Guarantee.* Exactly √epochs/σ-GDP (twice that under replace-one): a record takes part once per
    epoch, at steps known to everybody (Theorem S2).
    """

    name: ClassVar[str] = "cyclic"
    theorem: ClassVar[str] = "S2"

    def batches(self, seed: Seed = None) -> Iterator[Indices]:
        """Cut the records, in their order, into batches."""
        for _ in range(self.epochs):
            for start in range(0, self.dataset_size, self.batch_size):
                stop = min(start + self.batch_size, self.dataset_size)
                yield np.arange(start, stop, dtype=np.int64)

    def worst_case_instances(self, noise_multiplier: float) -> tuple[WorstCaseInstance, ...]:
        """Return the mechanism itself, which is attained."""
        return (WorstCaseInstance(self.mechanism(noise_multiplier)),)
