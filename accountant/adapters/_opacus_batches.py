"""Checks of the assumptions about batches in the account of a run with Opacus."""

from __future__ import annotations

import math
from typing import Any

import torch
from opacus.utils.batch_memory_manager import BatchSplittingSampler
from opacus.utils.uniform_sampler import DistributedUniformWithReplacementSampler

from accountant.adapters._opacus_draws import SAMPLERS, Draws, follow, seed_of
from accountant.errors import UnsupportedError

__all__ = [
    "follow_batches",
    "refuse_data_dependent_clipping",
    "refuse_random_records",
]

# Opacus' distributed sampler leaves empty batches out; with a probability below this none is.
_NEVER = 1e-18


def follow_batches(loader: Any) -> Draws:
    """Return what a loader of Poisson samples draws from here on.

    Raises
    ------
    UnsupportedError
        The batches are no Poisson samples, those of several workers are not independent, or empty
        ones hold a random record.
    """
    refuse_random_records(getattr(getattr(loader, "collate_fn", None), "rand_on_empty", False))
    sampler: Any = getattr(loader, "batch_sampler", None)
    if isinstance(sampler, BatchSplittingSampler):
        sampler = sampler.sampler
    if type(sampler) in SAMPLERS:
        if not isinstance(sampler, DistributedUniformWithReplacementSampler):
            return follow(sampler, loader)
        _refuse_left_out(sampler)
        _refuse_shared_seed(sampler)
        draws = follow(sampler, loader)
        draws.seed = seed_of(sampler.generator)
        return draws
    raise UnsupportedError(
        "the exact accountant needs Poisson batches; got a loader whose batch_sampler is a"
        f" {type(sampler).__name__}. Leave poisson_sampling=True, or account for the batches you"
        " draw with accountant.sampling, which has samplers of fixed size and shuffled ones"
    )


def refuse_data_dependent_clipping(part: Any) -> None:
    """Refuse an optimiser or an engine that adapts its clipping bound to the data.

    Opacus' rule for it counts unclipped records per *actual* batch, whose size it does not perturb,
    so the noise multiplier it records does not cover what it releases.
    """
    names = {kind.__name__ for kind in type(part).__mro__}
    if names & {"AdaClipDPOptimizer", "PrivacyEngineAdaptiveClipping"}:
        raise UnsupportedError(
            "the exact accountant does not cover opacus' adaptive clipping: it uses the size of"
            ' the actual batch without noise. Use clipping="flat" or "per_layer"'
        )


def refuse_random_records(asked: object) -> None:
    """Refuse batches in which a record of random numbers stands for an empty sample.

    It leaves the batch when a record enters, so that one record moves the sum by two norms.
    """
    if asked:
        raise UnsupportedError(
            "the exact accountant does not cover rand_on_empty=True: a random record in place of an"
            " empty batch has a clipped gradient of its own, and one record then moves the sum by"
            " twice the clipping norm. Leave rand_on_empty=False"
        )


def _refuse_left_out(sampler: Any) -> None:
    """Refuse shards so small that a worker's batch is empty, hence left out, now and then."""
    # The smallest shard, so that all workers come to one verdict.
    others = sampler.total_size // sampler.num_replicas - 1
    empty = math.exp(others * math.log1p(-sampler.sample_rate)) if sampler.sample_rate < 1 else 0.0
    if not (empty <= _NEVER):
        raise UnsupportedError(
            f"a worker draws an empty batch with probability {empty:.1e}, and opacus' distributed"
            " sampler then makes no step, which tells that the batch was empty. Use larger batches"
            " (at least 42 records on average on every worker) or fewer workers"
        )


def _refuse_shared_seed(sampler: Any) -> None:
    """Refuse workers with one seed: their coins, and so the records of a batch, are the same."""
    seeds: list[Any] = [None] * sampler.num_replicas
    torch.distributed.all_gather_object(seeds, seed_of(sampler.generator))
    if len(set(seeds)) < len(seeds):
        raise UnsupportedError(
            f"the workers must draw their batches independently; their seeds are {seeds}. Seed each"
            " with a number of its own, as in torch.manual_seed(seed + rank)"
        )
