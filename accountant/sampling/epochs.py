"""Samplers whose batches are known, or an order of the records: full, cyclic and shuffled ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import TINY, U, lift, up
from accountant.errors import DomainError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.stated_guarantees import DominatedBy
from accountant.pairs.atoms import AtomicPair, Atoms
from accountant.pairs.base import DominatingPair
from accountant.pairs.excess import distribution, tail_error
from accountant.relations import ADD_OR_REMOVE, ZERO_OUT, NeighbouringRelation
from accountant.sampling.random_allocation import Allocated
from accountant.sampling.sampler import (
    EpochSampler,
    Indices,
    Sampler,
    Seed,
    WorstCaseInstance,
    generator,
    shuffled,
)


@dataclass(frozen=True, repr=False, kw_only=True)
class FullBatch(Sampler):
    """Gradient descent: all records take part in every step.

    Parameters
    ----------
    dataset_size : int
        Number of records.
    steps : int
        Number of steps.
    relation : NeighbouringRelation, keyword only
        Any; replacing a record moves the sum twice as far.

    Notes
    -----
    *Guarantee.* Exactly √steps/σ-GDP (twice that under replace-one): Theorem S2.
    """

    name: ClassVar[str] = "full batch"
    theorem: ClassVar[str] = "S2"
    relations: ClassVar[tuple[NeighbouringRelation, ...]] = tuple(NeighbouringRelation)

    dataset_size: int
    steps: int
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def batches(self, seed: Seed = None) -> Iterator[Indices]:
        """Return all records, every time."""
        for _ in range(self.steps):
            yield np.arange(self.dataset_size, dtype=np.int64)

    def mechanism(self, noise_multiplier: float) -> Mechanism:
        """Return ``steps`` Gaussians."""
        return self.steps * Gaussian(
            checks.number(checks.NOISE_MULTIPLIER, noise_multiplier), relation=self.relation
        )

    def worst_case_instances(self, noise_multiplier: float) -> tuple[WorstCaseInstance, ...]:
        """Return the mechanism itself, which is attained."""
        return (WorstCaseInstance(self.mechanism(noise_multiplier)),)


@dataclass(frozen=True, repr=False, kw_only=True)
class CyclicBatches(EpochSampler):
    """Consecutive records form a batch; the batches come in order, once per epoch.

    Parameters
    ----------
    dataset_size, batch_size : int
        Numbers of records; the last batch of an epoch may be smaller.
    epochs : int
        Passes over the data.
    relation : NeighbouringRelation, keyword only
        Zero-out or replace-one. Adding a record would move the boundaries of all later batches.

    Notes
    -----
    *Guarantee.* Exactly √epochs/σ-GDP (twice that under replace-one): a record takes part once per
    epoch, at steps known to everybody (Theorem S2).
    """

    name: ClassVar[str] = "cyclic"
    theorem: ClassVar[str] = "S2"

    def batches(self, seed: Seed = None) -> Iterator[Indices]:
        """Cut the records, in their order, into batches."""
        for _ in range(self.epochs):
            for start in range(0, self.dataset_size, self.batch_size):
                stop = min(start + self.batch_size, self.dataset_size)
                yield np.arange(start, stop, dtype=np.int64)

    def worst_case_instances(self, noise_multiplier: float) -> tuple[WorstCaseInstance, ...]:
        """Return the mechanism itself, which is attained."""
        return (WorstCaseInstance(self.mechanism(noise_multiplier)),)


# Cells of the largest release.
_CELLS = 400
# The least noise: below it hardly any cell of the largest release has mass under both laws.
_LEAST_NOISE = 0.05
# The largest 1/σ²: beyond it the second moment bounds nothing.
_LARGEST = 100.0


@dataclass(frozen=True, repr=False, kw_only=True)
class ShuffledBatches(EpochSampler):
    """Every epoch shuffles the records afresh and cuts them into batches of a fixed size.

    Parameters
    ----------
    dataset_size, batch_size : int
        Numbers of records; the last batch of an epoch may be smaller.
    epochs : int
        Passes over the data.
    relation : NeighbouringRelation, keyword only
        Zero-out or replace-one. Under add-or-remove the boundaries of the batches move, and there
        is no theorem.

    Notes
    -----
    *Guarantee.* Theorem S11: no amplification inside an epoch, √epochs/σ-GDP (twice that under
    replace-one). The lower bound (Theorem S12, after Chua et al. 2024) shows how much of that is
    real, and how far an account for Poisson sampling would be off.
    """

    name: ClassVar[str] = "shuffled"
    theorem: ClassVar[str] = "S11, S12"

    def mechanism(self, noise_multiplier: float) -> Mechanism:
        """Return one Gaussian per epoch, which dominates: the order hides when a record comes."""
        found = super().mechanism(noise_multiplier)
        return found if self.steps_per_epoch == 1 else DominatedBy(found)

    def batches(self, seed: Seed = None) -> Iterator[Indices]:
        """Shuffle, then cut: O(records) an epoch."""
        rng = generator(seed)
        for _ in range(self.epochs):
            order = shuffled(rng, self.dataset_size)
            for start in range(0, self.dataset_size, self.batch_size):
                yield np.sort(order[start : start + self.batch_size])

    def variation_bound(self, noise_multiplier: float) -> float:
        """Bound the total variation distance of runs on neighbouring data (Theorem S24).

        In [0, 1], rounded up: no attacker's true positive rate exceeds the false positive rate by
        more, and ε is 0 at a larger δ. It shows what shuffling hides inside an epoch, which is much
        only where epochs have very many batches.

        Parameters
        ----------
        noise_multiplier : float
            σ > 0.

        Raises
        ------
        DomainError
            The batch size does not divide the number of records: there is no theorem.
        """
        noise = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
        if self.dataset_size % self.batch_size:
            raise DomainError(
                f"batch_size must divide dataset_size = {self.dataset_size}; got"
                f" {self.batch_size}. No theorem covers a smaller last batch"
            )
        inverse = 1.0 / noise
        k = inverse * inverse
        if not k < _LARGEST:
            return 1.0
        if self.relation is ZERO_OUT:
            first = math.expm1(k)
            # e^{4k} + e^k - 2e^{2k}, without a difference of large terms.
            other = math.exp(k) * math.expm1(k) * (math.exp(k) + math.expm1(2.0 * k))
        else:
            first = 2.0 * math.exp(-k) * math.expm1(2.0 * k)
            other = 2.0 * math.exp(2.0 * k) * math.expm1(2.0 * k)
        steps = self.steps_per_epoch
        moment = first + (steps - 1) * math.exp(k) * other
        return min(up(0.5 * self.epochs / steps * math.sqrt(lift(moment)), 64.0), 1.0)

    def worst_case_instances(self, noise_multiplier: float) -> tuple[WorstCaseInstance, ...]:
        """Return losses that opposite contributions reach (Theorem S12)."""
        noise = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
        steps = self.steps_per_epoch
        zero_out = self.relation is ZERO_OUT
        # Other contributions are constant, so only the batch of the record shows; with unequal
        # batches, after the releases are put in a random order.
        one = Allocated(noise if zero_out else 0.5 * noise, steps=steps)
        found = [WorstCaseInstance(self.epochs * one.from_below())]
        if zero_out and steps > 1 and noise >= _LEAST_NOISE:
            found.append(WorstCaseInstance(self.epochs * _LargestBatch(noise, steps)))
        return tuple(found)


@dataclass(frozen=True, repr=False)
class _LargestBatch(Mechanism):
    """The largest of an epoch's releases, when the record's batch stands out by 2 or by 1.

    All other contributions are -1 and the record's is +1, or nothing when it is blank: above the
    common level its batch has 2 against 1, every other one 0.
    """

    noise_multiplier: float
    steps: int

    @property
    def relation(self) -> NeighbouringRelation:
        """Zero-out."""
        return ZERO_OUT

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return both directions."""
        return tuple(
            _LargestBatchPair(self.noise_multiplier, self.steps, add) for add in (False, True)
        )


@dataclass(frozen=True)
class _LargestBatchPair(AtomicPair):
    """The cell of the largest release: less than the release tells, so a lower bound."""

    noise_multiplier: float
    steps: int
    add: bool

    def atoms(self) -> Atoms:
        """Return the loss of every cell."""
        noise = self.noise_multiplier
        # Between where the largest of the others lies and where the record's batch may.
        edges = np.linspace(-2.0, 2.0 / noise + 9.0, _CELLS)
        p, p_error = _cells(edges, 2.0 / noise, self.steps)
        q, q_error = _cells(edges, 1.0 / noise, self.steps)
        if self.add:
            p, q = q, p
        kept = (p > 1e-280) & (q > 1e-280)
        # Cells that are not told apart reliably are left out of P: less loss, never more.
        kept &= np.maximum(p_error, q_error) < 1e-9
        p, q = p[kept], q[kept]
        loss = np.log(p / q)
        order = np.argsort(loss)
        error = float(np.maximum(p_error, q_error)[kept].max())
        return Atoms(loss[order], p[order], q[order], 0.0, 0.0, error, 4.0 * error + 8.0 * U)


def _cells(edges: FloatArray, shift: float, steps: int) -> tuple[FloatArray, FloatArray]:
    """Return the masses of cells of max(N(shift, 1), steps - 1 times N(0, 1)), and their errors."""
    (own, own_error), (other, other_error) = _log_below(edges - shift), _log_below(edges)
    log_below = own + (steps - 1) * other
    error = own_error + (steps - 1) * other_error + 32.0 * U * np.abs(log_below)
    below = np.exp(log_below)
    above = -np.expm1(log_below)
    below_error = (error + 16.0 * U) * below
    above_error = error * below + 16.0 * U * above
    low = below[:-1] < 0.5
    masses = np.where(low, below[1:] - below[:-1], above[:-1] - above[1:])
    errors = np.where(low, below_error[1:] + below_error[:-1], above_error[1:] + above_error[:-1])
    masses = np.concatenate([[below[0]], masses, [above[-1]]])
    errors = np.concatenate([[below_error[0]], errors, [above_error[-1]]])
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(masses > 0.0, errors / masses, np.inf)
    return masses, relative


def _log_below(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log Φ(z) and its absolute error, from the smaller of Φ(z) and 1 - Φ(z)."""
    below, above = distribution(z), distribution(-z)
    right = above < 0.5
    log = np.where(right, np.log1p(-np.minimum(above, 0.5)), np.log(np.maximum(below, TINY)))
    return log, tail_error(z) * np.where(right, above / np.maximum(below, 0.5), 1.0)
