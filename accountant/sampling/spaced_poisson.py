"""Poisson samples of records that may take part in some steps only.

Records in classes that take turns, and records that are left out for some steps after one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from accountant import checks
from accountant._basics.rounding import fraction_up, ratio_down, up
from accountant.errors import DomainError
from accountant.mechanisms.base import Mechanism, Selection
from accountant.mechanisms.gaussian import GaussianPair
from accountant.mechanisms.stated_guarantees import DominatedBy, nothing
from accountant.pairs.base import DominatingPair
from accountant.pairs.product import BlendPair
from accountant.relations import ADD_OR_REMOVE, ZERO_OUT, NeighbouringRelation
from accountant.sampling.poisson import poisson_gaussian
from accountant.sampling.sampler import (
    Indices,
    Sampler,
    Seed,
    WorstCaseInstance,
    check_settings,
    distinct,
    generator,
    poisson_size,
)
from accountant.sampling.truncated_poisson import overflow_probability

_RELATIONS = (ADD_OR_REMOVE, ZERO_OUT)


def class_rate(sampling_probability: float, bands: int) -> float:
    """Return the rate within one of ``bands`` classes, rounded up."""
    rate = bands * Fraction(sampling_probability)
    if rate > 1:
        raise DomainError(
            f"sampling_probability must be at most 1 / bands = {1 / bands:.6g}; got"
            f" {sampling_probability!r}. A step samples from one of {bands} classes only"
        )
    return fraction_up(rate)


@dataclass(frozen=True, repr=False, kw_only=True)
class CyclicPoisson(Sampler):
    """The records are split into classes, and step t samples from class t modulo ``bands``.

    For strategies of :mod:`accountant.matrix` with at most ``bands`` bands. The noise multiplier is
    the standard deviation of the noise on the encoding over the sensitivity of one participation,
    ``strategy.sensitivity_bounds().upper``.

    Parameters
    ----------
    dataset_size : int
        Number of records, for :meth:`batches`; the guarantee does not depend on it.
    sampling_probability : float
        q, the expected share of all records in a batch, at most 1 / ``bands``: a record of the
        step's class takes part with probability ``bands * q``.
    bands : int
        Number of classes.
    steps : int
        Number of steps.
    relation : NeighbouringRelation, keyword only
        Add-or-remove or zero-out.

    Notes
    -----
    *Guarantee.* Theorem X4 (docs/theorems_matrix.md): ⌈steps / bands⌉ compositions of the
    Poisson-subsampled Gaussian at rate ``bands * q``. Attained for a record whose class is known,
    with columns of one norm and ``bands`` a divisor of ``steps``; classes are therefore treated as
    public, and the lower end of :meth:`epsilon_bounds` is that of a record whose class is known.

    Examples
    --------
    >>> from accountant.sampling import CyclicPoisson
    >>> sampler = CyclicPoisson(
    ...     dataset_size=100_000, sampling_probability=0.01, bands=4, steps=1000
    ... )
    >>> 4.826 < sampler.epsilon(1.0, 1e-6) < 4.827
    True
    """

    name: ClassVar[str] = "cyclic Poisson"
    theorem: ClassVar[str] = "X4"
    relations: ClassVar[tuple[NeighbouringRelation, ...]] = _RELATIONS

    dataset_size: int
    sampling_probability: float
    bands: int
    steps: int
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        class_rate(self.sampling_probability, self.bands)

    def batches(self, seed: Seed = None) -> Iterator[Indices]:
        """Draw a class for every record once, then a Poisson sample of a class in every step.

        A class is drawn, not taken from a record's position, which other records may move.
        """
        rng = generator(seed)
        classes = rng.integers(self.bands, size=self.dataset_size)
        members = [np.flatnonzero(classes == c).astype(np.int64) for c in range(self.bands)]
        rate = class_rate(self.sampling_probability, self.bands)
        for step in range(self.steps):
            mine = members[step % self.bands]
            size = poisson_size(rng, mine.size, rate)
            yield mine[distinct(rng, mine.size, size)]

    def mechanism(self, noise_multiplier: float) -> Mechanism:
        """Return one Poisson-subsampled Gaussian for every block of ``bands`` steps."""
        found = self._blocks(noise_multiplier, -(-self.steps // self.bands))
        return DominatedBy(found) if self.steps % self.bands else found

    def worst_case_instances(self, noise_multiplier: float) -> tuple[WorstCaseInstance, ...]:
        """Return the blocks that are complete, for a record of the first class."""
        whole = self.steps // self.bands
        return (WorstCaseInstance(self._blocks(noise_multiplier, whole)),) if whole else ()

    def _blocks(self, noise_multiplier: float, count: int) -> Mechanism:
        noise = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
        rate = class_rate(self.sampling_probability, self.bands)
        return count * poisson_gaussian(noise, rate, self.relation)


# The most numbers of participations that are told apart: others count as the next of them.
_COUNTS = 48


@dataclass(frozen=True, repr=False)
class SeparatedParticipations(Mechanism):
    """A run of Gaussian releases whose number of participations is random, and told.

    Parameters
    ----------
    noise_multiplier : float
        Noise standard deviation over the sensitivity of one participation, > 0.
    sampling_probability : float
        Of taking part in a step, for a record that may.
    min_separation : int
        Steps from one participation to the next, at least.
    steps : int
        Number of steps.
    relation : NeighbouringRelation, keyword only
        Add-or-remove or zero-out.

    Notes
    -----
    *Guarantee.* Theorem X7 (i): a mixture of Gaussian mechanisms, one for every number of
    participations, whose probabilities are those of binomial tails.
    """

    theorems = ("X7",)
    about = "A run of Gaussian releases whose number of participations is random, and told."
    selection = Selection(
        "Poisson with a pause: a record that took part waits a stated number of steps",
        "Every record that is not waiting is drawn by an independent coin; the strategy that"
        " correlates the noise has at most as many bands as the pause has steps.",
    )

    noise_multiplier: float
    _: KW_ONLY
    sampling_probability: float
    min_separation: int
    steps: int
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        check_settings(self, "separated Poisson", _RELATIONS)

    def at_least(self, count: int) -> float:
        """Return the probability of ``count`` participations or more, rounded up."""
        trials = self.steps - (count - 1) * (self.min_separation - 1)
        return overflow_probability(trials, self.sampling_probability, count)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the mixture, which is its own reverse."""
        most = -(-self.steps // self.min_separation)
        likely = [count for count in _spread(most) if self.at_least(count) > 0.0]
        pair: DominatingPair = GaussianPair(math.inf)
        # P{more than the last count} of what was blended so far, at least the truth: a tail, as
        # one less a tail has lost the digits of rare counts.
        beyond = self.at_least(1) if likely else 0.0
        for index, count in enumerate(likely):
            last = index + 1 == len(likely)
            further = 0.0 if last else min(self.at_least(count + 1), beyond)
            share = 1.0 if beyond >= 1.0 else (beyond - further) / (1.0 - further)
            weight = min(up(share, 8.0), 1.0)
            if weight > 0.0:
                pair = _blend(weight, self._counted(count), pair)
            beyond = further
        return (pair,)

    def from_below(self) -> Mechanism:
        """Return what releases nothing: the sum over a run says more, but is another release."""
        return nothing(self.relation)

    def _counted(self, count: int) -> GaussianPair:
        noise = self.noise_multiplier
        if noise == math.inf:
            return GaussianPair(noise)
        return GaussianPair(ratio_down(noise, up(math.sqrt(count), 2.0)), exact=False)


def _blend(weight: float, worse: DominatingPair, usual: DominatingPair) -> DominatingPair:
    return worse if weight == 1.0 else BlendPair(weight, worse, usual)


def _spread(most: int) -> list[int]:
    """Return some of 1 … most, the last among them: each stands for those below it."""
    if most <= _COUNTS:
        return list(range(1, most + 1))
    ladder = np.geomspace(1.0, most, _COUNTS)
    return sorted({math.ceil(x) for x in ladder[:-1]} | {most})


@dataclass(frozen=True, repr=False, kw_only=True)
class SeparatedPoisson(Sampler):
    """Each record that did not take part in the last steps takes part with one probability.

    Known as b-min-separation sampling: after a participation a record is left out for
    ``min_separation - 1`` steps. The noise multiplier is the standard deviation of the noise on the
    encoding over the sensitivity of one participation.

    Parameters
    ----------
    dataset_size : int
        Number of records, for :meth:`batches`; the guarantee does not depend on it.
    sampling_probability : float
        Of taking part in a step, for a record that may. A batch then holds the share
        q / (1 + (min_separation - 1) q) of all records, once the run is under way.
    min_separation : int
        Steps from one participation to the next, at least.
    steps : int
        Number of steps.
    bands : int
        Bands of the strategy that correlates the noise, at most ``min_separation``; 1 is
        independent noise.
    relation : NeighbouringRelation, keyword only
        Add-or-remove or zero-out.

    Notes
    -----
    *Guarantee.* Theorem X7 (docs/theorems_matrix.md): with independent noise Poisson sampling at
    the same probability dominates; with more bands the mixture over the number of participations,
    which hides how many they are and not when.
    """

    name: ClassVar[str] = "separated Poisson"
    theorem: ClassVar[str] = "X7"
    relations: ClassVar[tuple[NeighbouringRelation, ...]] = _RELATIONS

    dataset_size: int
    sampling_probability: float
    min_separation: int
    steps: int
    bands: int = 1
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bands > self.min_separation:
            raise DomainError(
                f"bands must be at most min_separation = {self.min_separation}; got {self.bands}."
                " Participations would meet in the encoding"
            )

    def batches(self, seed: Seed = None) -> Iterator[Indices]:
        """Draw among the records that may take part, in O(records) a step."""
        rng = generator(seed)
        free = np.zeros(self.dataset_size, dtype=np.int64)
        for step in range(self.steps):
            ready = np.flatnonzero(free <= step).astype(np.int64)
            size = poisson_size(rng, ready.size, self.sampling_probability)
            batch = ready[distinct(rng, ready.size, size)]
            free[batch] = step + self.min_separation
            yield batch

    def mechanism(self, noise_multiplier: float) -> Mechanism:
        """Return Poisson-subsampled steps, or the mixture over the number of participations."""
        noise = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
        if self.bands == 1:
            found = self.steps * poisson_gaussian(noise, self.sampling_probability, self.relation)
            return found if self.min_separation == 1 else DominatedBy(found)
        return SeparatedParticipations(
            noise,
            sampling_probability=self.sampling_probability,
            min_separation=self.min_separation,
            steps=self.steps,
            relation=self.relation,
        )

    def worst_case_instances(self, noise_multiplier: float) -> tuple[WorstCaseInstance, ...]:
        """Return one sampled release, the first."""
        noise = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
        if self.bands > self.steps:
            return ()
        first = poisson_gaussian(noise, self.sampling_probability, self.relation)
        return (WorstCaseInstance(first),)
