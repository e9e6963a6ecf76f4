"""The observer of a run: which sampler drew, which batches came, and what was charged for them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from accountant import sampling
from accountant.composition import Composition
from accountant.errors import DomainError, UnsupportedError
from accountant.ledger import Accountant, Entry
from accountant.mechanisms.base import Mechanism
from accountant.sampling import Sampler

# What stands in a ledger where somebody can repeat what was drawn.
NOISE_MARK = "not private: seeded, so the noise can be recomputed"
BATCHES_MARK = "not private: seeded, so the batches can be recomputed"
MASKS_MARK = "not private: seeded, so what a model drops out can be recomputed"

UNCHANGED = (
    "the model's parameters did not change in two steps, which were charged: give the optimiser the"
    " parameters of this model, as they are after adapters were put in, and call its step"
)

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


@functools.lru_cache(maxsize=16)
def step_of(sampler: Any, noise_multiplier: float) -> Mechanism | None:
    """Return the mechanism of one step, or None if no step of the sampler stands alone."""
    if type(sampler) not in _INDEPENDENT_STEPS:
        return None
    found: Mechanism = replace(sampler, steps=1).mechanism(noise_multiplier)
    return found.parts[0][0] if isinstance(found, Composition) else found


def mark(*reasons: str, label: str = "") -> str:
    """Return the label of a release: why it is not private, if it is not, and the user's words."""
    return "; ".join(dict.fromkeys(each for each in (*reasons, label) if each))


class Run:
    """What is seen of one iteration over a batch sampler, whoever makes it.

    Parameters
    ----------
    sampler : Sampler
        The one that draws.
    seeded : bool
        Whether its batches can be drawn again.

    Attributes
    ----------
    sampler : Sampler
        As given.
    spent : int
        How many of its batches were used, in their order, each once.
    why_not_private : str
        Empty, or the mark of batches that can be recomputed.
    """

    def __init__(self, sampler: Sampler, seeded: bool = False) -> None:
        self.sampler, self.spent = sampler, 0
        self.why_not_private = BATCHES_MARK if seeded else ""
        self._noise: float | None = None

    def __deepcopy__(self, memo: Any) -> Run:
        """Return the run itself: a copy of a batch is the same one, and spent with it."""
        return self

    def spend(self, number: int | None) -> None:
        """Note that a step uses a batch, or None where the step before it is not done.

        Raises
        ------
        UnsupportedError
            It is not the one after that of the last step.
        """
        if number != self.spent:
            raise UnsupportedError(
                "every batch must end in one step, empty ones too; one was left out, used twice or"
                " left unfinished. That of itself tells what is in it: call release() after each"
            )
        self.spent += 1

    @property
    def goes_on(self) -> bool:
        """Whether the ledger holds the whole run, and batches of it are left."""
        return self._noise is not None and self.spent < self.sampler.steps

    def charge(self, ledger: Accountant, noise_multiplier: float, mark: str = "") -> None:
        """Charge a step with this noise: the whole run at its first, if no step stands alone.

        Raises
        ------
        BudgetExceeded
            The budget does not allow it; nothing was charged.
        UnsupportedError
            The step has less noise than the run was charged for.
        """
        mechanism = self.to_charge(noise_multiplier)
        if mechanism is not None:
            ledger.compose(mechanism, label=mark or None)
        self._noise = noise_multiplier if self._noise is None else self._noise

    def to_charge(self, noise_multiplier: float) -> Mechanism | None:
        """Return what the run costs with this noise, or None if it was charged."""
        if self._noise is None:
            return self.sampler.mechanism(noise_multiplier)
        if not (noise_multiplier >= self._noise):
            raise UnsupportedError(
                f"noise_multiplier must not fall within a run of {self.sampler!r:.80}, which was"
                f" charged as a whole with {self._noise}; got {noise_multiplier}. Change the noise"
                " between two iterations over the loader, or draw Poisson samples, whose steps are"
                " charged one by one"
            )
        return None


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


def refuse_forgetting(recorded: Sequence[Entry], loaded: Sequence[Entry]) -> None:
    """Refuse a loaded history that does not begin with what is recorded."""
    for place, item in enumerate(recorded):
        found = loaded[place] if place < len(loaded) else None
        more = 0 if found is None else found.count - item.count
        last = place == len(recorded) - 1
        if found is None or found.mechanism != item.mechanism or more < 0 or (more and not last):
            raise DomainError(
                f"state_dict must continue the {sum(each.count for each in recorded)} steps"
                " recorded here; it does not hold them. What was released stays released: load a"
                " checkpoint into a new run, and merge the ledgers of runs on the same"
                " records"
            )
