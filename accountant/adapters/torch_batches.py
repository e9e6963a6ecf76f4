"""A PyTorch ``batch_sampler`` that draws exactly what its account assumes, and charges for it.

With it stands the observer of a run: which sampler drew, which batches came, what was charged.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from accountant import checks, sampling
from accountant.composition import Composition
from accountant.errors import DomainError, UnsupportedError
from accountant.ledger import Accountant, Entry
from accountant.mechanisms.base import Mechanism
from accountant.sampling import Sampler
from accountant.sampling.sampler import Seed

__all__ = ["BatchSampler"]

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


def refuse_strategy(sampler: Any) -> None:
    """Refuse a sampler whose account is that of correlated noise."""
    if type(sampler) not in INDEPENDENT_NOISE:
        raise UnsupportedError(
            f"sampler must be one whose noise is drawn anew in every step; got {sampler!r:.80}."
            " Use accountant.learn, whose trainers draw correlated noise"
        )


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


class BatchSampler:
    """The batches of one run, for ``DataLoader(data, batch_sampler=...)``.

    Parameters
    ----------
    sampler : Sampler
        Which batches to draw; its :meth:`~accountant.sampling.Sampler.mechanism` accounts for them:
        any of :mod:`accountant.sampling`.
    seed : int or numpy Generator, optional
        For tests only: batches that can be recomputed do not hide who is in them, and the charge
        says so. By default the operating system's entropy.
    ledger : Accountant, optional
        Charged for a whole run when the first batch of an iteration is asked for, before it is
        drawn.
    noise_multiplier : float, optional
        That of the releases, for the ledger: the standard deviation of the noise over the bound on
        one contribution; for :class:`~accountant.sampling.CyclicPoisson`,
        :class:`~accountant.sampling.BallsInBins` and
        :class:`~accountant.sampling.SeparatedPoisson` over the sensitivity of one participation in
        the strategy.
    label : str, keyword only
        Of the charge.

    Raises
    ------
    BudgetExceeded
        When the first batch is asked for of a run that the ledger's budget does not allow.

    Notes
    -----
    One iteration is the *whole* run that the mechanism accounts for, all epochs of it; iterating
    again is another run, and is charged again. A run that is left early has been charged in full.
    Batches may be empty: give the loader a ``collate_fn`` that takes an empty list, and release the
    noise of that step all the same. Clip every record's gradient, add them up, add the noise, and
    divide by a public constant.

    Examples
    --------
    >>> from accountant.ledger import Accountant
    >>> from accountant.sampling import PoissonSampler
    >>> sampler = PoissonSampler(dataset_size=1000, sampling_probability=0.01, steps=3)
    >>> ledger = Accountant()
    >>> batches = BatchSampler(sampler, ledger=ledger, noise_multiplier=1.0)
    >>> len(batches), all(isinstance(batch, list) for batch in batches)
    (3, True)
    >>> ledger.epsilon(1e-6) == sampler.epsilon(1.0, 1e-6)
    True
    """

    def __init__(
        self,
        sampler: Sampler,
        seed: Seed = None,
        *,
        ledger: Accountant | None = None,
        noise_multiplier: float | None = None,
        label: str = "",
    ) -> None:
        checks.instance("sampler", sampler, (Sampler,), "one of accountant.sampling's")
        if (ledger is None) != (noise_multiplier is None):
            raise DomainError("give both of ledger and noise_multiplier, or neither")
        self.sampler = sampler
        self.ledger = ledger
        self.label = label
        self._seed = seed
        self._charge: Mechanism | None = None
        if ledger is not None:
            checks.instance("ledger", ledger, Accountant, "an Accountant")
            assert noise_multiplier is not None
            noise = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
            self._charge = sampler.mechanism(noise)

    def __len__(self) -> int:
        return self.sampler.steps

    def begin(self) -> Run:
        """Return what is seen of a run that begins now."""
        return Run(self.sampler, self._seed is not None)

    def __iter__(self) -> Iterator[list[int]]:
        # When the first batch is asked for: a DataLoader with workers makes two iterators.
        if self.ledger is not None and self._charge is not None:
            words = mark(self.begin().why_not_private, label=self.label)
            self.ledger.compose(self._charge, label=words)
        for batch in self.sampler.batches(self._seed):
            yield batch.tolist()
