"""Cyclic Poisson sampling: what banded matrix mechanisms are amplified by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from accountant import checks
from accountant._rounding import fraction_up
from accountant.errors import DomainError
from accountant.mechanisms.dominated_by import DominatedBy
from accountant.relations import NeighbouringRelation
from accountant.sampling import drawing
from accountant.sampling.drawing import Indices, Seed
from accountant.sampling.poisson_batches import poisson_gaussian
from accountant.sampling.sampler import Sampler, WorstCaseInstance

if TYPE_CHECKING:
    from accountant.mechanisms.base import Mechanism


_RELATIONS = (NeighbouringRelation.ADD_OR_REMOVE, NeighbouringRelation.ZERO_OUT)


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
    relation: NeighbouringRelation = field(default=NeighbouringRelation.ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        class_rate(self.sampling_probability, self.bands)

    def batches(self, seed: Seed = None) -> Iterator[Indices]:
        """Draw a class for every record once, then a Poisson sample of a class in every step.

        A class is drawn, not taken from a record's position, which other records may move.
        """
        rng = drawing.generator(seed)
        classes = rng.integers(self.bands, size=self.dataset_size)
        members = [np.flatnonzero(classes == c).astype(np.int64) for c in range(self.bands)]
        rate = class_rate(self.sampling_probability, self.bands)
        for step in range(self.steps):
            mine = members[step % self.bands]
            size = drawing.poisson_size(rng, mine.size, rate)
            yield mine[drawing.distinct(rng, mine.size, size)]

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
