"""Data-parallel runs with opacus: shards that do not overlap, and seeds that differ."""

from __future__ import annotations

from typing import Any

from opacus.utils.uniform_sampler import DistributedUniformWithReplacementSampler
from torch import distributed

from accountant.errors import UnsupportedError


def refuse_overlapping_shards(sampler: Any) -> None:
    """Refuse samplers of several workers that could draw one record twice for a step."""
    where = None
    if isinstance(sampler, DistributedUniformWithReplacementSampler):
        order = (sampler.shuffle_seed, sampler.epoch) if sampler.shuffle else None
        where = (sampler.total_size, sampler.sample_rate, order)
    found: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(found, where)
    if None in found:
        raise UnsupportedError(
            "each worker must draw from a shard of its own, or a record is in the batches of"
            f" several workers at once; got a loader whose batch_sampler is a"
            f" {type(sampler).__name__}, which does not split the records. Leave"
            " poisson_sampling=True, or train with other samplers in one process"
        )
    if len(set(found)) > 1:
        raise UnsupportedError(
            "the workers must split one data set alike; their (records, sampling rate, (shuffle"
            f" seed, epoch)) are {found}. Give the sampler the same arguments on every worker"
        )


def refuse_shared_seeds(seeds: list[tuple[str, str, int]], together: bool) -> None:
    """Refuse generators with one seed: their numbers, and so coins or noise, are the same.

    Parameters
    ----------
    seeds : list
        Of this worker's generators: use, device and seed.
    together : bool
        Whether other workers' are compared with them.
    """
    found: list[Any] = [seeds]
    if together:
        found = [None] * distributed.get_world_size()
        distributed.all_gather_object(found, seeds)
    known: dict[tuple[str, int], str] = {}
    for rank, rows in enumerate(found):
        for use, device, seed in rows:
            name = f"{use} of worker {rank}" if together else use
            other = known.setdefault((device, seed), name)
            if other != name:
                raise UnsupportedError(
                    "the workers must draw their batches independently, and independently of all"
                    f" noise; the {other} and the {name} have one seed. Seed each generator with a"
                    " number of its own, as in torch.manual_seed(seed + rank)"
                )
