"""Poisson sampling with a cap on the batch size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, half_square, lift, ratio_up, up
from accountant.environment import to_nearest
from accountant.mechanisms.base import Mechanism, Selection
from accountant.mechanisms.gaussian import Gaussian, GaussianPair
from accountant.pairs.base import DominatingPair, Masses
from accountant.pairs.product import BlendPair
from accountant.relations import ADD_OR_REMOVE, REPLACE_ONE, NeighbouringRelation
from accountant.sampling.exchange_pair import MOST_SQUARED_DISTANCE
from accountant.sampling.poisson import poisson_gaussian
from accountant.sampling.replacement_pair import LEAST_DISTANCE, ReplacementPair
from accountant.sampling.sampled_pairs import SampledPair
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


@dataclass(frozen=True)
class DoubtfulGaussian(DominatingPair):
    """N(1, σ²) against N(0, σ²) with a probability of something else, or the reverse.

    Parameters
    ----------
    noise_multiplier : float
        σ > 0.
    doubt : float
        In [0, 1): the probability, under the law without the record, of what the other never gives.
    add : bool
        The reversed pair.
    """

    noise_multiplier: float
    doubt: float
    add: bool = False

    @property
    def _plain(self) -> GaussianPair:
        return GaussianPair(self.noise_multiplier)

    @property
    def _raised(self) -> float:
        """What the doubt adds to every loss."""
        return -math.log1p(-self.doubt)

    @property
    def infinite_mass(self) -> float:
        """The doubt, where its law comes first."""
        return self.doubt if self.add else 0.0

    @property
    def loss_error(self) -> float:
        """That of the noise, and the rounding of the sum."""
        return up(self._plain.loss_error + 16.0 * U * (1.0 + self._raised))

    def masses(self, edges: FloatArray) -> Masses:
        """Return the masses between edges."""
        edges = np.asarray(edges, dtype=np.float64)
        if self.add:
            return replace(self, add=False).masses(-edges[::-1]).reverse()
        p, q, error = self._plain.masses(edges - self._raised)
        q = (1.0 - self.doubt) * q
        q[0] += self.doubt
        return Masses(p, q, error + 4.0 * U)


@dataclass(frozen=True)
class OverflowPair(SampledPair):
    """A Poisson sample of :class:`DoubtfulGaussian`: a step in which others may fill the batch."""

    inner: DoubtfulGaussian

    @property
    def mu(self) -> float:
        """That of a step in which the record displaces another (Theorem S13)."""
        return up(2.0 * ratio_up(1.0, self.inner.noise_multiplier), 2.0)

    def finite_rdp(self, order: float) -> float:
        """Return the divergence, rounded up.

        An addition has no loss above -log(1-q). A removal has S = 1-q + q·Y/(1-s) with probability
        1-s, else 1-q, whose norm of order α is at most 1-q + q·(1-s)^{1/α-1}·e^{(α-1)/2σ²}.
        """
        if self.add:
            return up(-math.log1p(-self.q), 8.0)
        power = -math.log1p(-self.inner.doubt) * (1.0 - 1.0 / order)
        power += (order - 1.0) * half_square(ratio_up(1.0, self.inner.noise_multiplier))
        if power > 600.0:
            # log(1 + q·e^power), also where q is smaller still.
            log_q = math.log(self.q)
            size = (power + log_q) + 32.0 * U * (power - log_q)
            norm = up(max(size, 0.0) + math.log1p(math.exp(-abs(size))), 8.0)
        else:
            norm = math.log1p(self.q * math.expm1(power * (1.0 + 16.0 * U)))
        return up(lift(norm * order / (order - 1.0)), 64.0)


_RELATIONS = tuple(NeighbouringRelation)


@to_nearest
def overflow_probability(records: int, probability: float, size: int) -> float:
    """Return an upper bound on P[Bin(records, probability) >= size], tight to a few 1e-9.

    Terms are summed until they no longer matter; then a geometric series bounds the rest.
    """
    if size <= 0 or probability >= 1.0:
        return 1.0 if size <= records else 0.0
    if size > records or probability <= 0.0:
        return 0.0
    odds = probability / (1.0 - probability)
    if size <= records * probability:
        return 1.0
    log_term, slack = _log_chance(records, probability, size)
    total, term, k = 0.0, 1.0, size
    while True:
        total += term
        ratio = (records - k) / (k + 1) * odds
        if (ratio < 0.9 and term < 1e-12 * total) or (ratio < 1.0 and k - size > 100_000):
            break
        term *= ratio
        k += 1
    # Ratios fall, so what follows is at most a geometric series.
    total += term * ratio / (1.0 - ratio)
    return min(1.0, math.exp(log_term + slack) * total * (1.0 + 1e-11) + 1e-300)


def _log_chance(records: int, probability: float, size: int) -> tuple[float, float]:
    """Return log P[Bin(records, probability) = size], and its error: units of its largest part."""
    parts = (
        math.lgamma(records + 1.0),
        -math.lgamma(size + 1.0),
        -math.lgamma(records - size + 1.0),
        size * math.log(probability),
        (records - size) * math.log1p(-probability),
    )
    return math.fsum(parts), 2.0**-48 * (8.0 + math.fsum(abs(part) for part in parts))


class _Filled(NamedTuple):
    """That the others fill the batch or miss it by one, and the share in which they fill it."""

    probability: float
    share: float


def _filled(records: int, probability: float, cap: int) -> _Filled | None:
    """Bound both from above; None where the share says nothing."""
    over = overflow_probability(records, probability, cap)
    if not (0.0 < probability < 1.0 and 1 <= cap <= records and over < 0.5):
        return None
    log_chance, slack = _log_chance(records, probability, cap - 1)
    least = math.exp(log_chance - slack) * (1.0 - 1e-12)
    most = math.exp(log_chance + slack) * (1.0 + 1e-12)
    if not least > 1e-290:
        return None
    share = over / (over + least) * (1.0 + 2.0**-50)
    return _Filled(min((over + most) * (1.0 + 2.0**-50), 1.0), share)


@dataclass(frozen=True, repr=False)
class TruncatedPoissonSampled(Mechanism):
    """One Gaussian release of the sum over a Poisson sample that is cut down to a cap.

    Parameters
    ----------
    noise_multiplier : float
        Noise standard deviation over the bound on one contribution, > 0.
    sampling_probability : float
        In [0, 1].
    cap : int
        Largest batch; a larger sample is replaced by a uniform subset of this size.
    dataset_size : int
        Records of the larger data set, or a public upper bound on it.
    relation : NeighbouringRelation, keyword only
        Any; under zero-out a blank is drawn like a record and contributes nothing.

    Notes
    -----
    *Guarantee.* Theorem S13: with the probability that the others alone fill the batch, the record
    displaces another and moves the sum by 2, else by 1; a mixture of the two pairs dominates. With
    less noise Theorem S21: what it displaces looks like a batch that lacks one record.
    Under the other relations the pair of Theorem E2 for a distance of two contributions, else that
    of :class:`~accountant.sampling.PoissonSampled` (docs/theorems_adapters.md, Theorem E8).
    """

    theorems = ("S13", "S21", "E2", "E8")
    about = "One Gaussian release of the sum over a Poisson sample that is cut down to a cap."
    selection = Selection(
        "Poisson, cut down to a cap",
        "Batches are drawn by independent coins; only what exceeds the cap is dropped, uniformly.",
    )

    noise_multiplier: float
    _: KW_ONLY
    sampling_probability: float
    cap: int
    dataset_size: int
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        check_settings(self, "truncated Poisson", _RELATIONS)

    @property
    def overflow(self) -> float:
        """The probability, rounded up, that the other records alone fill the batch."""
        return overflow_probability(self.dataset_size - 1, self.sampling_probability, self.cap)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return (remove, add); one pair under replace-one."""
        noise, q, overflow = self.noise_multiplier, self.sampling_probability, self.overflow
        usual = poisson_gaussian(noise, q, self.relation).pairs()
        if overflow == 0.0 or q == 0.0:
            return tuple(usual)
        if self.relation is not ADD_OR_REMOVE:
            return self._among_fixed_records(usual, overflow)
        filled = _filled(self.dataset_size - 1, q, self.cap)
        if filled is not None and self._hides(filled.share):
            plain = DoubtfulGaussian(noise, filled.share)
            removal = OverflowPair(plain, q, add=False)
            addition = OverflowPair(replace(plain, add=True), q, add=True, reverse=plain)
            return tuple(
                BlendPair(filled.probability, rare, pair)
                for rare, pair in zip((removal, addition), usual, strict=True)
            )
        displaced = poisson_gaussian(0.5 * noise, q).pairs()
        return tuple(
            BlendPair(overflow, displaced[min(i, len(displaced) - 1)], pair)
            for i, pair in enumerate(usual)
        )

    def from_below(self) -> Mechanism | None:
        """Return Poisson sampling at the probability of being drawn below the cap."""
        overflow = self.overflow
        if overflow == 0.0 or self.sampling_probability == 0.0:
            return None
        q = self.sampling_probability * (1.0 - overflow) * (1.0 - 2.0**-50)
        return poisson_gaussian(self.noise_multiplier, q, self.relation)

    def _hides(self, share: float) -> bool:
        """Tell whether Theorem S21 is the better one, by the variances of dP/dQ."""
        if not 0.1 < self.noise_multiplier < 1e6 or share > 0.99:
            return False
        squared = 1.0 / self.noise_multiplier**2
        told = share * math.expm1(4.0 * squared) + (1.0 - share) * math.expm1(squared)
        return math.exp(squared) / (1.0 - share) - 1.0 < told

    def _among_fixed_records(
        self, usual: tuple[DominatingPair, ...], overflow: float
    ) -> tuple[DominatingPair, ...]:
        """Return the blended pairs of Theorem E8: as many records on either side."""
        noise, q = self.noise_multiplier, self.sampling_probability
        distance = ratio_up(2.0, noise) if noise < math.inf else 0.0
        if distance == 0.0:
            return usual
        squared = distance * distance
        if not (distance >= LEAST_DISTANCE and squared <= MOST_SQUARED_DISTANCE) or q == 1.0:
            return Gaussian(noise, relation=REPLACE_ONE).pairs()
        displaced = ReplacementPair(q, (1.0,), (distance,))
        return tuple(BlendPair(overflow, displaced, pair) for pair in usual)


@dataclass(frozen=True, repr=False, kw_only=True)
class TruncatedPoissonSampler(Sampler):
    """Poisson sampling whose batches never exceed a cap.

    Parameters
    ----------
    dataset_size : int
        Number of records (of the larger data set).
    sampling_probability : float
        In [0, 1].
    cap : int
        Largest batch; a larger sample is cut down to a uniform subset.
    steps : int
        Number of steps.
    relation : NeighbouringRelation, keyword only
        Any.

    Notes
    -----
    *Guarantee.* Theorem S13 or S21 in every step; E8 under zero-out and replace-one.
    """

    name: ClassVar[str] = "truncated Poisson"
    theorem: ClassVar[str] = "S13, S21, E8"
    relations: ClassVar[tuple[NeighbouringRelation, ...]] = _RELATIONS

    dataset_size: int
    sampling_probability: float
    cap: int
    steps: int
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def batches(self, seed: Seed = None) -> Iterator[Indices]:
        """Draw the size, cut it to the cap, then draw that many distinct records."""
        rng = generator(seed)
        for _ in range(self.steps):
            size = poisson_size(rng, self.dataset_size, self.sampling_probability)
            # A uniform subset of a uniform subset is a uniform subset.
            yield distinct(rng, self.dataset_size, min(size, self.cap))

    def mechanism(self, noise_multiplier: float) -> Mechanism:
        """Return ``steps`` truncated releases."""
        return self.steps * TruncatedPoissonSampled(
            noise_multiplier,
            sampling_probability=self.sampling_probability,
            cap=self.cap,
            dataset_size=self.dataset_size,
            relation=self.relation,
        )

    def worst_case_instances(self, noise_multiplier: float) -> tuple[WorstCaseInstance, ...]:
        """Return the mechanism, whose lower ends are those of draws below the cap."""
        return (WorstCaseInstance(self.mechanism(noise_multiplier)),)
