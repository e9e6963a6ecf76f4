"""Loaders for opacus: checks of what draws their batches, and of workers' shards and seeds."""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from opacus.data_loader import CollateFnWithEmpty, dtype_safe, shape_safe, wrap_collate_with_empty
from opacus.utils.batch_memory_manager import BatchSplittingSampler
from opacus.utils.uniform_sampler import DistributedUniformWithReplacementSampler

from accountant.adapters import _opacus_draws as drawn
from accountant.adapters._opacus_steps import adds_noise
from accountant.adapters._torch_observer import gathered
from accountant.adapters.torch_batches import BatchSampler, average, refuse_strategy
from accountant.calibration.any_mechanism import calibrate
from accountant.errors import UnsupportedError
from accountant.sampling import Sampler


def refuse_overlapping_shards(sampler: Any) -> None:
    """Refuse samplers of several workers that could draw one record twice for a step."""
    where = None
    if isinstance(sampler, DistributedUniformWithReplacementSampler):
        order = (sampler.shuffle_seed, sampler.epoch) if sampler.shuffle else None
        where = (sampler.total_size, sampler.sample_rate, order)
    found = gathered(where)
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
    found = gathered(seeds) if together else [seeds]
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


# Opacus' distributed sampler leaves empty batches out; with a probability below this none is.
_NEVER = 1e-18


def follow_batches(loader: Any) -> drawn.Draws:
    """Return what a loader of Poisson samples, or of a BatchSampler, draws from here on.

    Raises
    ------
    UnsupportedError
        The batches are others, or empty ones are left out or hold a random record.
    """
    refuse_random_records(getattr(getattr(loader, "collate_fn", None), "rand_on_empty", False))
    sampler: Any = inner_sampler(loader)
    if type(sampler) in drawn.SAMPLERS:
        if isinstance(sampler, DistributedUniformWithReplacementSampler):
            _refuse_left_out(sampler)
        return drawn.follow(sampler, loader)
    if type(sampler) in drawn.BATCH_SAMPLERS:
        return drawn.follow(sampler, loader)
    raise UnsupportedError(
        "the exact accountant needs Poisson batches; got a loader whose batch_sampler is a"
        f" {type(sampler).__name__}. Leave poisson_sampling=True, or give it a batch_sampler"
        " of accountant.adapters.torch_batches.BatchSampler, which draws what accountant.sampling"
        " has: batches of fixed size, shuffled ones and allocations"
    )


def inner_sampler(loader: Any) -> Any:
    """Return the sampler that draws a loader's batches, which another may cut."""
    sampler: Any = getattr(loader, "batch_sampler", None)
    return sampler.sampler if isinstance(sampler, BatchSplittingSampler) else sampler


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


def refuse_unknown_arithmetic(module: Any, mode: str) -> None:
    """Refuse parameters that are sums of half precision, or parts of which other workers hold."""
    if mode == "ghost_tp":
        raise UnsupportedError(
            "the exact accountant does not cover tensor parallelism (grad_sample_mode='ghost_tp'),"
            " whose norms are put together from parts of every layer. Use FSDP2Wrapper with"
            " 'ghost_fsdp', or DistributedDataParallel"
        )
    for name, p in module.named_parameters() if isinstance(module, torch.nn.Module) else ():
        if not p.requires_grad:
            continue
        if hasattr(p, "to_local") and mode != "ghost_fsdp":
            raise UnsupportedError(
                f"parameters must be whole on every worker; {name} is sharded over them, and sums"
                " of its parts are not those that are clipped. Use grad_sample_mode='ghost_fsdp'"
                " with FSDP2Wrapper, or DistributedDataParallel"
            )
        if p.dtype not in (torch.float32, torch.float64):
            raise UnsupportedError(
                f"trained parameters must be float32 or float64; got {name} of {p.dtype}, in which"
                " sums and noise would be rounded to a few bits. Keep the parameters in float32 and"
                " run the model under torch.autocast"
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


def refuse_correlated(draws: drawn.Draws, loader: Any, optimizer: Any, together: bool) -> None:
    """Refuse batches and noise that are not independent of one another, of all workers.

    Parameters
    ----------
    draws : Draws
        Of the loader's sampler; told the seed of this worker.
    loader, optimizer
        As make_private returned them.
    together : bool
        Whether the optimiser adds up the sums of several workers.
    """
    sampler: Any = inner_sampler(loader)
    if together:
        refuse_overlapping_shards(sampler)
    if optimizer.secure_mode:
        return  # the operating system's entropy has no seed
    poisson = isinstance(sampler, drawn.SAMPLERS)
    coins = getattr(sampler, "generator", None)
    coins = drawn.default_generator(torch.get_default_device()) if coins is None else coins
    noise = optimizer.generator
    noise = drawn.default_generator(optimizer.params[0].device) if noise is None else noise
    seeds = []
    if poisson and coins is not None:
        seeds.append(("coins", coins.device.type, drawn.seed_of(coins)))
    # One generator for both gives no number twice.
    if noise is not None and not (poisson and noise is coins) and adds_noise(optimizer):
        seeds.append(("noise", noise.device.type, drawn.seed_of(noise)))
    refuse_shared_seeds(seeds, together)
    if together:
        draws.seed = drawn.seed_of(sampler.generator)


def sampler_of(loader: Any) -> Sampler | None:
    """Return the sampler of a loader whose batches are those of a :class:`BatchSampler`."""
    batches = getattr(loader, "batch_sampler", None)
    return batches.sampler if isinstance(batches, BatchSampler) else None


def refuse_replaced(loader: Any, poisson_sampling: bool) -> None:
    """Refuse a loader of a BatchSampler that opacus would replace, or could not be covered."""
    sampler = sampler_of(loader)
    if sampler is None:
        return
    if poisson_sampling:
        raise UnsupportedError(
            "opacus replaces the BatchSampler of the loader by Poisson samples of another size,"
            " unless make_private is given poisson_sampling=False"
        )
    refuse_strategy(sampler)
    if loader.batch_sampler.ledger is not None:
        raise UnsupportedError(
            "the engine charges its own ledger for every run; give the BatchSampler none, or the"
            " run is charged twice. Assign the ledger to engine.accountant.ledger"
        )


def noise_of(loader: Any, epsilon: float, delta: float, epochs: int) -> float:
    """Return the least noise multiplier with which iterations over a loader stay in a target."""
    sampler = sampler_of(loader)
    assert sampler is not None
    return cast(
        "float",
        calibrate(
            lambda noise: epochs * sampler.mechanism(noise),
            epsilon=epsilon,
            delta=delta,
            precision=1e-6,
        ),
    )


def prepare(loader: Any, optimizer: Any) -> None:
    """Let a loader return empty batches, and an optimiser divide by the average batch."""
    sampler = sampler_of(loader)
    if sampler is None:
        return
    if not isinstance(loader.collate_fn, CollateFnWithEmpty):
        first = loader.dataset[0]
        loader.collate_fn = wrap_collate_with_empty(
            collate_fn=loader.collate_fn,
            sample_empty_shapes=[(0, *shape_safe(x)) for x in first],
            dtypes=[dtype_safe(x) for x in first],
        )
    # Opacus takes a pass over the loader for one over the data.
    optimizer.expected_batch_size = average(sampler)
