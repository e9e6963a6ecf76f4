"""The batches that samplers draw for opacus, by coins of torch, kept until a step uses them."""

from __future__ import annotations

import copy
import functools
import math
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch
from opacus.utils.uniform_sampler import (
    DistributedUniformWithReplacementSampler,
    UniformWithReplacementSampler,
)

from accountant.adapters._torch_observer import seed_known
from accountant.adapters.torch_batches import BATCHES_MARK, BatchSampler, Run
from accountant.errors import UnsupportedError

# Random bits of torch.rand; those of other types are rounded, and then not uniform.
_BITS = {torch.float32: 24, torch.float64: 53}


def coin_probability(rate: float) -> float:
    """Return the probability with which ``torch.rand(()) < rate`` holds.

    Parameters
    ----------
    rate : float
        In [0, 1], as a sampler of opacus has it.

    Notes
    -----
    The words are multiples of 2**-24 (2**-53 when torch's default type is float64) and the rate is
    rounded to their type, so that the probability is a multiple, too. Off the CPU, where words may
    be finer, one more is counted.
    """
    dtype = torch.get_default_dtype()
    if dtype not in _BITS:
        raise UnsupportedError(
            "the probability of a coin is known when torch's default type is float32 or float64;"
            f" got {dtype}. Set it back while batches are drawn"
        )
    return _probability(float(rate), dtype, torch.get_default_device().type != "cpu")


class States:
    """The states of generators that were used; a state used again gives the same random numbers."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._seen: set[int] = set()

    def use(self, state: int | None) -> None:
        """Note a state, as :func:`state` gives it; refuse one seen before."""
        if state is None:
            return
        if state in self._seen:
            raise UnsupportedError(
                f"{self._what} must be drawn anew; the random generator is in a state it was in"
                " before, so the same numbers would come again. Do not seed within a run: the"
                " difference of two releases with one noise has none"
            )
        self._seen.add(state)


def state(generator: Any, device: Any) -> int | None:
    """Return a digest of a generator's state, by default of that of a device, where it is known.

    For this process only: a digest in a file would give away a state whose seed is short.
    """
    generator = default_generator(device) if generator is None else generator
    return None if generator is None else hash(generator.get_state().numpy().tobytes())


@functools.lru_cache(maxsize=64)
def _probability(rate: float, dtype: Any, finer: bool) -> float:
    if not (0 <= rate <= 1):
        return rate  # the ledger says what is wrong with it
    bits = _BITS[dtype]
    low = max(math.floor(math.ldexp(rate, bits)) - 2, 0)
    # The words around the rate, compared as the samplers compare them.
    words = [math.ldexp(word, -bits) for word in range(low, min(low + 6, 2**bits))]
    below = int((torch.tensor(words, dtype=dtype, device="cpu") < rate).sum())
    return math.ldexp(min(low + below + finer, 2**bits), -bits)


def default_generator(device: Any) -> Any:
    """Return the generator that torch uses for a device when it is given none."""
    if device.type == "cpu":
        return torch.default_generator
    if device.type == "cuda":
        return torch.cuda.default_generators[device.index or 0]
    return None


_OWN_SAMPLERS = (UniformWithReplacementSampler, DistributedUniformWithReplacementSampler)


class Draw:
    """One batch: its size, its law, and how many rows were handed out and summed.

    The law of a Poisson sample is its rate; that of another one is the run it belongs to. It is
    marked where it can be drawn again.
    """

    __slots__ = ("handed", "law", "size", "summed", "why_not_private")

    def __init__(self, size: int, law: float | Run, why_not_private: str) -> None:
        self.size, self.law, self.why_not_private = size, law, why_not_private
        self.handed = self.summed = 0


class Iteration:
    """One pass over a sampler: the parts of batches that it handed out and no step has used."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Draw, int]] = deque()
        self.running = True
        # Whether a step used a part of it, and whether it ended by itself and not by a break.
        self.used = self.exhausted = False
        self.drawn: Draw | None = None

    def hand_out(self, rows: int) -> None:
        """Note a part, the batch itself when it is not cut, of the batch drawn last."""
        assert self.drawn is not None
        self.drawn.handed += rows
        self.waiting.append((self.drawn, rows))


class Draws:
    """What one sampler drew.

    Attributes
    ----------
    ahead : int
        How many parts the loader fetches before the one that is being used.
    states : States
        Of the generator, before every draw.
    seed : int, optional
        Of the generator when it was found to differ from those of the other workers.
    seeds : dict, optional
        Of the generators that make_private seeded from the system; None in secure mode.
    """

    def __init__(self) -> None:
        self.ahead = 0
        self.states = States("batches")
        self.seed: int | None = None
        self.seeds: dict[Any, int] | None = None
        self._iterations: list[Iteration] = []
        self._used: Iteration | None = None

    def begin(self) -> Iteration:
        """Note a new pass."""
        self._iterations.append(Iteration())
        return self._iterations[-1]

    def refuse_seeded(self, generator: Any) -> None:
        """Refuse a worker's generator that was seeded after the seeds were compared."""
        if self.seed is not None and self.seed != seed_of(generator):
            raise UnsupportedError(
                "the workers must draw their batches independently; this one was seeded after"
                " make_private, which compared the seeds. Seed each worker with a number of its"
                " own before make_private, and not afterwards"
            )

    def forget(self) -> None:
        """Drop every pass: nothing it handed out may be used from here on."""
        self._iterations.clear()
        self._used = None

    def take(self, rows: int) -> Draw:
        """Return the batch that the next part comes from; the part is used with that.

        Parameters
        ----------
        rows : int
            Records whose gradients are about to be summed.

        Raises
        ------
        UnsupportedError
            No part of that size is next, or batches were left out.
        """
        waiting = [each for each in self._candidates() if each.waiting]
        found = next((each for each in waiting if each.waiting[0][1] == rows), None)
        if found is None:
            raise UnsupportedError(_no_such_part(rows, [each.waiting[0][1] for each in waiting]))
        if len(found.waiting) > self.ahead + 1 or any(
            self._left_out(each) for each in waiting if each is not found
        ):
            raise UnsupportedError(
                "every batch that is drawn must end in one step, empty ones too; a batch was left"
                " out, or batches were fetched in advance. Leaving one out because of what is in it"
                " tells its records apart. Use every batch before the next is fetched, empty ones"
                " too, and let num_workers of the loader given to make_private fetch in advance"
            )
        self._used, found.used = found, True
        self._iterations = [each for each in self._iterations if each is found or each.running]
        return found.waiting.popleft()[0]

    def _left_out(self, other: Iteration) -> bool:
        """Tell whether a pass left a batch out, beside the one whose batch is used now."""
        if other.running:
            return len(other.waiting) > self.ahead
        # What a break left in hand, or a loader fetched before it, counts as not asked for.
        allowed = self.ahead + 1 if self.ahead else 0
        return other.exhausted and other.used and len(other.waiting) > allowed

    def _candidates(self) -> list[Iteration]:
        """Return the pass in use, unless it has ended, and then the others, newest first."""
        newest = self._iterations[::-1]
        if self._used is not None and self._used.running and self._used in newest:
            newest.remove(self._used)
            newest.insert(0, self._used)
        return newest


def _coins(sampler: Any, own: Iterator[Any]) -> Iterator[tuple[Any, float, str]]:
    """Yield Poisson samples with the probability of their coins, and the mark of known ones."""
    draws: Draws = sampler.draws
    while True:
        rate = coin_probability(sampler.sample_rate)
        draws.refuse_seeded(sampler.generator)
        before = state(sampler.generator, torch.get_default_device())
        batch = next(own, None)
        if batch is None:
            return
        draws.states.use(before)
        known = draws.seeds is not None and seed_known(sampler.generator, draws.seeds)
        yield batch, rate, BATCHES_MARK if known else ""


def _one_run(sampler: Any, own: Iterator[Any]) -> Iterator[tuple[Any, Run, str]]:
    """Yield the batches of a BatchSampler with the run that they belong to."""
    if isinstance(sampler._seed, int):
        sampler.draws.states.use(sampler._seed)
    run = sampler.begin()
    for batch in own:
        yield batch, run, run.why_not_private


def _followed(kind: Any, drawing: Any) -> Any:
    """Return the class of samplers of a kind that note what they draw in ``draws``."""

    # A mixin would have another layout, and an object's class can change to one of its own only.
    class Followed(kind):  # type: ignore[misc]
        draws: Draws

        def batches(self, iteration: Iteration) -> Iterator[Any]:
            """Draw, and note every batch; the caller notes the parts he hands out."""
            try:
                for batch, law, mark in drawing(self, kind.__iter__(self)):
                    iteration.drawn = Draw(len(batch), law, mark)
                    yield batch
                iteration.exhausted = True
            finally:
                iteration.running = False

        def __iter__(self) -> Iterator[Any]:
            iteration = self.draws.begin()
            for batch in self.batches(iteration):
                iteration.hand_out(len(batch))
                yield batch

    return Followed


_FOLLOWED: dict[Any, Any] = {kind: _followed(kind, _coins) for kind in _OWN_SAMPLERS}
SAMPLERS = (*_OWN_SAMPLERS, *_FOLLOWED.values())
_FOLLOWED[BatchSampler] = _followed(BatchSampler, _one_run)
BATCH_SAMPLERS = (BatchSampler, _FOLLOWED[BatchSampler])


def seed_of(generator: Any) -> int:
    """Return the seed that the coins come from."""
    found = torch.initial_seed() if generator is None else generator.initial_seed()
    return int(found)


def follow(sampler: Any, loader: Any) -> Draws:
    """Return what a sampler draws from here on; one account for all who follow it."""
    if type(sampler) in _FOLLOWED:
        sampler.__class__ = _FOLLOWED[type(sampler)]
        sampler.draws = Draws()
    draws: Draws = sampler.draws
    draws.ahead = max(draws.ahead, loader.num_workers * (loader.prefetch_factor or 0))
    return draws


class _Batches:
    """The batches of a followed sampler, for a caller that cuts them."""

    def __init__(self, sampler: Any, iteration: Iteration) -> None:
        self._sampler, self._iteration = sampler, iteration

    def __iter__(self) -> Iterator[Any]:
        batches: Iterator[Any] = self._sampler.batches(self._iteration)
        return batches


def in_parts(cut: Any, splitter: Any) -> Iterator[Any]:
    """Iterate over a BatchSplittingSampler, noting its parts.

    Parameters
    ----------
    cut : callable
        Its own ``__iter__``.
    splitter : BatchSplittingSampler
        Whose sampler may be followed; if it is not, nothing is noted.
    """
    sampler: Any = splitter.sampler
    if type(sampler) not in _FOLLOWED.values():
        yield from cut(splitter)
        return
    iteration = sampler.draws.begin()
    alike = copy.copy(splitter)
    alike.sampler = _Batches(sampler, iteration)
    for part in cut(alike):
        iteration.hand_out(len(part))
        yield part


def _no_such_part(rows: int, found: list[int]) -> str:
    """Say what does not fit; sizes of batches are those of the sample, hence not told."""
    if not found:
        return (
            "every step needs a Poisson batch of its own; the loader that make_private returned"
            " drew none since the last one. A batch used twice, or one from another loader, has no"
            " account: iterate over the loader that make_private returned, one step a batch"
        )
    return (
        "a step must use the records of the batch that was drawn, each as one row; the gradients"
        " to be summed have another number of rows. Batches that were joined, cut, left out or"
        " taken from another loader, and records of several rows (augmentations, tokens), have no"
        " account: use the batches as the loader returns them, empty ones too, and give a record"
        " one row"
    )
