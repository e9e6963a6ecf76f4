"""Loaders of :class:`BatchSampler` for opacus."""

from __future__ import annotations

from typing import Any, cast

from opacus.data_loader import CollateFnWithEmpty, dtype_safe, shape_safe, wrap_collate_with_empty

from accountant.adapters._observer import INDEPENDENT_NOISE, average
from accountant.adapters.torch_batches import BatchSampler
from accountant.calibration.any_mechanism import calibrate
from accountant.errors import UnsupportedError
from accountant.sampling import Sampler


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
    if type(sampler) not in INDEPENDENT_NOISE:
        raise UnsupportedError(
            f"opacus draws the noise of every step anew; {sampler!r:.80} needs the correlated noise"
            " of its strategy. Use RandomAllocation or another sampler without a strategy, or"
            " accountant.learn, whose trainers draw correlated noise"
        )
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
