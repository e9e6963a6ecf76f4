"""Runs of a sampler: charged whole, or step by step where the steps are independent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accountant import sampling
from accountant.composition import Composition
from accountant.errors import UnsupportedError

if TYPE_CHECKING:
    from accountant.mechanisms.base import Mechanism
    from accountant.sampling import Sampler

__all__ = ["INDEPENDENT_NOISE", "Run", "average", "step_of"]

# Those whose steps are drawn independently, so that each is a release by itself.
_INDEPENDENT_STEPS = (
    sampling.FixedSizeSampler,
    sampling.FullBatch,
    sampling.PoissonSampler,
    sampling.TruncatedPoissonSampler,
    sampling.WithReplacementSampler,
)

# Those whose noise is drawn anew in every step.
INDEPENDENT_NOISE = (
    *_INDEPENDENT_STEPS,
    sampling.CyclicBatches,
    sampling.RandomAllocation,
    sampling.ShuffledBatches,
)


def step_of(sampler: Any, noise_multiplier: float) -> Mechanism | None:
    """Return the mechanism of one step, or None if no step of the sampler stands alone."""
    if type(sampler) not in _INDEPENDENT_STEPS:
        return None
    found: Mechanism = replace(sampler, steps=1).mechanism(noise_multiplier)
    return found.parts[0][0] if isinstance(found, Composition) else found


class Run:
    """One iteration over a batch sampler: a whole run, of which no step stands alone."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._noise: float | None = None

    def to_charge(self, noise_multiplier: float) -> Mechanism | None:
        """Return what a step with this noise is charged: the run, or None if it was charged.

        Raises
        ------
        UnsupportedError
            The step has less noise than the run was charged for.
        """
        if self._noise is None:
            return self._sampler.mechanism(noise_multiplier)
        if not (noise_multiplier >= self._noise):
            raise UnsupportedError(
                f"noise_multiplier must not fall within a run of {self._sampler!r:.80}, which was"
                f" charged as a whole with {self._noise}; got {noise_multiplier}. Change the noise"
                " between two iterations over the loader, or draw Poisson samples, whose steps are"
                " charged one by one"
            )
        return None

    def charged(self, noise_multiplier: float) -> None:
        """Note that the ledger holds the run."""
        self._noise = noise_multiplier if self._noise is None else self._noise


def average(sampler: Any) -> float:
    """Return the average size of a batch, a public constant that steps are divided by."""
    match sampler:
        case sampling.PoissonSampler() | sampling.TruncatedPoissonSampler():
            size = sampler.dataset_size * sampler.sampling_probability
            return float(max(min(size, getattr(sampler, "cap", size)), 1.0))
        case sampling.RandomAllocation():
            return float(
                max(sampler.dataset_size * sampler.participations / sampler.steps_per_epoch, 1.0)
            )
        case sampling.FullBatch():
            return float(sampler.dataset_size)
        case _:
            return float(sampler.batch_size)
