"""Poisson sampling: each record is used with probability q, independently of the others."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from itertools import islice
from typing import ClassVar

from accountant import checks
from accountant._basics.binding import bound
from accountant._basics.rounding import LEAST, times_up, up
from accountant.errors import UnsupportedError
from accountant.mechanisms.base import Mechanism, Selection
from accountant.mechanisms.fields import BoundedContribution, mechanism_of
from accountant.mechanisms.gaussian import Gaussian, GaussianPair, merged
from accountant.mechanisms.mixture import MixtureOfGaussians
from accountant.mechanisms.stated_guarantees import nothing
from accountant.pairs.base import DominatingPair
from accountant.relations import ADD_OR_REMOVE, REPLACE_ONE, NeighbouringRelation
from accountant.sampling.exchange_pair import ATTAINED, exchange_pair, exchanged, noise_below
from accountant.sampling.sampled_pairs import sampled
from accountant.sampling.sampler import (
    Indices,
    Sampler,
    Seed,
    WorstCaseInstance,
    distinct,
    generator,
    poisson_size,
)

_DIGITS = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)
# Chances that underflow fall fast, so that together they are below this.
_UNDERFLOWN = 64.0 * LEAST


@dataclass(frozen=True, repr=False, init=False)
class PoissonSampled(Mechanism):
    """A mechanism run on a Poisson sample of the records.

    Parameters
    ----------
    mechanism : Mechanism
        What is run on the sample, under any relation. The parts of a composition share the sample;
        with a sample of its own, each is sampled by itself.
    sampling_probability : float
        q in [0, 1].

    Raises
    ------
    UnsupportedError
        The mechanism's bound is one on replacing a record alone, and says nothing of a sample that
        lacks the record: :attr:`~accountant.Mechanism.covers_removal` is False.

    Notes
    -----
    *Guarantee.* With (P, Q) dominating the mechanism, (1-q)Q + qP against Q dominates the removal
    of a record, and P against (1-q)P + qQ its addition, for the pair (P, Q) of that direction (Zhu,
    Dong, Wang 2022, Theorem 11; docs/theorems_mechanisms.md, Theorem M6). Of a mechanism known by
    its Rényi curve alone the curve at integer orders is amplified (Zhu, Wang 2019; M16); of a
    composition that, and a pair made of its joint profile (docs/theorems_adapters.md, Theorem E1).

    Under replace-one, Gaussian noise, composed or not, has the pair (1-q)·N(0, σ²) + q·N(1, σ²)
    against (1-q)·N(0, σ²) + q·N(-1, σ²), attained (Theorem E7), and so has other symmetric unimodal
    noise (Laplace, discrete Gaussian, discrete Laplace, Skellam: E15); every other mechanism the
    symmetric pair with profile q·δ(log(1 + (e^ε - 1)/q)) at ε >= 0, δ that of the mechanism (E2).

    Examples
    --------
    >>> import accountant as ac
    >>> ac.PoissonSampled(ac.Laplace(1.0), 0.1).epsilon(0.0) < 0.17
    True
    >>> noise = ac.Gaussian(1.0, relation=ac.NeighbouringRelation.REPLACE_ONE)
    >>> 2.843 < (1000 * ac.PoissonSampled(noise, 0.01)).epsilon(1e-5) < 2.844
    True
    """

    theorems = ("M6", "M16", "E1", "E7", "E15", "E2")
    about = "A mechanism run on a Poisson sample of the records."
    selection = Selection(
        "Poisson: each record independently with probability q",
        "Batches are drawn by an independent coin for every record and every step, so that their"
        " sizes vary and empty batches still release noise. Shuffling the data and cutting it into"
        " batches is not Poisson sampling, and costs more.",
    )

    mechanism: Mechanism
    sampling_probability: float

    def __init__(self, mechanism: Mechanism, sampling_probability: float) -> None:
        mechanism_of(mechanism)
        if not mechanism.covers_removal:
            raise UnsupportedError(
                f"no theorem covers Poisson sampling of {mechanism!r:.80}: it is bounded under"
                f" {mechanism.relation!r}, and a bound on replacing a record says nothing of a"
                " sample without that record. State it under add-or-remove or zero-out, or as noise"
                " on bounded contributions (Gaussian, Laplace, …); or draw batches of a fixed size,"
                " which SampledReplacement accounts for"
            )
        object.__setattr__(self, "mechanism", mechanism)
        q = checks.number(checks.SAMPLING_PROBABILITY, sampling_probability)
        object.__setattr__(self, "sampling_probability", q)

    @property
    def relation(self) -> NeighbouringRelation:
        """That of the mechanism."""
        return self.mechanism.relation

    @property
    def covers_removal(self) -> bool:
        """True: a record that is left out is one that was not drawn."""
        return True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.mechanism!r}, {self.sampling_probability!r})"

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the sampled pairs (remove, add); one pair under replace-one."""
        q, inner = self.sampling_probability, self.mechanism
        if q == 0.0:
            return (GaussianPair(math.inf),)
        if q < 1.0 and inner.relation is REPLACE_ONE:
            return self._exchanged()
        if type(inner) is Gaussian and inner.sensitivity == 1.0 and q < 1.0:
            sigma = inner.noise_multiplier
            if sigma < math.inf:
                # The usual kind, of which a history may hold thousands: without the inner pair.
                return GaussianPair(sigma, q), GaussianPair(sigma, q, True)
        found = inner.pairs()
        if q == 1.0:
            return found
        remove, add = found[0], found[-1]
        return sampled(remove, q), sampled(add, q, remove)

    def _exchanged(self) -> tuple[DominatingPair, ...]:
        """Return the pair of a sample of which a record is replaced (Theorems E7, E15 and E2)."""
        q, inner = self.sampling_probability, self.mechanism
        if isinstance(inner, PoissonSampled):
            # A sample of a sample is one at the product of the rates; a larger rate dominates.
            both = Fraction(q) * Fraction(inner.sampling_probability)
            rate = min(max(up(float(both)), LEAST), 1.0) if both else 0.0
            return PoissonSampled(inner.mechanism, rate).pairs()
        noise = _gaussian_noise(inner)
        if noise is not None:
            return (exchange_pair(noise, q),)
        if isinstance(inner, BoundedContribution) and inner.is_unimodal:
            pair = exchanged(inner.pairs()[0], q)
            if pair is not None:
                return (pair,)
        found: tuple[DominatingPair, ...] = bound().sampled_replacement(inner, q)
        return found

    def from_below(self) -> Mechanism | None:
        """Return the sample of what bounds the inner mechanism from below.

        Gaussian noise so small or so large that the pair of an exchange is that of the noise
        unsampled is taken larger: more noise is post-processing. Under replace-one what has no
        pair of its own (Theorems E7 and E15), and a sample of a sample, has no lower end.
        """
        q, inner = self.sampling_probability, self.mechanism
        below = inner.from_below()
        if q in (0.0, 1.0):
            return below if q else None
        if self.relation is REPLACE_ONE:
            noise = _gaussian_noise(inner)
            has_own = noise is not None or isinstance(self.pairs()[0], ATTAINED)
            if isinstance(inner, PoissonSampled) or not has_own:
                return nothing(REPLACE_ONE)
            more = None if noise is None else noise_below(noise)
            if more is not None:
                return PoissonSampled(Gaussian(more, relation=REPLACE_ONE), q)
        return None if below is None else PoissonSampled(below, q)

    @property
    def attained_alone(self) -> bool:
        """As the mechanism: each value of the profile is one of the profile without sampling."""
        if self.relation is REPLACE_ONE:
            return self.attained
        return self.mechanism.attained_alone

    def group(self, size: int) -> Mechanism:
        """Return the mechanism for a group: a binomial number of its records is used.

        For Gaussian noise alone: a mixture of Gaussians (Ganesh 2024; Theorem M15). The records of
        the group are all removed (blanked), or all added (filled in); a group of which some leave
        while others come is not covered.
        """
        records = checks.integer("size", size, 1)
        if records == 1:
            return self
        inner = self.mechanism
        if not isinstance(inner, Gaussian) or self.relation is REPLACE_ONE:
            raise UnsupportedError(
                f"no theorem gives {self!r:.80} a group guarantee; sample a Gaussian under"
                " add-or-remove or zero-out, or take the group of the mechanism unsampled"
            )
        q = self.sampling_probability
        if q in (0.0, 1.0):
            return PoissonSampled(inner.group(records), q)
        chances = _binomial(records, q)
        used = [*range(len(chances))]
        if len(used) <= records:  # the others are counted at the largest shift
            used.append(records)
            chances.append(_UNDERFLOWN)
        shifts = [times_up(inner.sensitivity, k) for k in used]
        return MixtureOfGaussians(
            inner.noise_multiplier,
            sensitivities=tuple(shifts),
            probabilities=tuple(chances),
            relation=self.relation,
        )

    def under(self, relation: NeighbouringRelation) -> PoissonSampled:
        """Return the same release under another relation, where the mechanism allows it."""
        return PoissonSampled(
            self.mechanism.under(checks.relation(relation)), self.sampling_probability
        )


def _binomial(count: int, q: float) -> list[float]:
    """Return the chances of 0, 1, … successes, up to where those of all larger numbers underflow.

    Nearest doubles, and the least one where they underflow: of its 60 digits the recursion loses
    five units a step.
    """
    with localcontext(_DIGITS):
        success = Decimal(q)
        failure = 1 - success
        odds, chance = success / failure, failure**count
        found = [max(float(chance), LEAST)]
        for k in range(count):
            chance *= odds * (count - k) / (k + 1)
            found.append(max(float(chance), LEAST))
            if found[-1] == LEAST and k > count * q:
                break
    return found


def _gaussian_noise(mechanism: Mechanism) -> float | None:
    """Return the noise of Gaussian releases, composed to one, over the bound on a contribution.

    None where anything else is released. Rounded down. The mechanism is under replace-one.
    """
    ways = tuple(islice(mechanism.alternatives(), 2))
    if len(ways) != 1 or not all(type(part) is Gaussian for part, _ in ways[0]):
        return None
    pairs = [(pair, n) for part, n in ways[0] for pair in part.pairs()]
    parts = [(pair, n) for pair, n in pairs if isinstance(pair, GaussianPair)]
    whole = parts[0][0] if len(parts) == parts[0][1] == 1 else merged(parts)
    if whole.noise_multiplier == math.inf:
        return math.inf
    # Replacing a record moves the sum by two contributions, which is the unit of the pair.
    return min(2.0 * whole.noise_multiplier, sys.float_info.max)


def poisson_gaussian(
    noise_multiplier: float,
    probability: float,
    relation: NeighbouringRelation = ADD_OR_REMOVE,
) -> PoissonSampled:
    """Return one Poisson-subsampled Gaussian step."""
    return PoissonSampled(Gaussian(noise_multiplier, relation=relation), probability)


@dataclass(frozen=True, repr=False, kw_only=True)
class PoissonSampler(Sampler):
    """Poisson sampling: in every step each record takes part with one probability, independently.

    Parameters
    ----------
    dataset_size : int
        Number of records, for :meth:`batches`; the guarantee does not depend on it.
    sampling_probability : float
        In [0, 1].
    steps : int
        Number of steps.
    relation : NeighbouringRelation, keyword only
        Any; add-or-remove and zero-out have the same pair.

    Notes
    -----
    *Guarantee.* Theorem S1 with independent participations: the pair of docs/theorems.md in every
    step, attained; under replace-one that of Theorem E7 (docs/theorems_adapters.md), attained.
    """

    name: ClassVar[str] = "Poisson"
    theorem: ClassVar[str] = "S1, E7"
    relations: ClassVar[tuple[NeighbouringRelation, ...]] = tuple(NeighbouringRelation)

    dataset_size: int
    sampling_probability: float
    steps: int
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def batches(self, seed: Seed = None) -> Iterator[Indices]:
        """Draw a binomial size, then that many distinct records, in O(batch)."""
        rng = generator(seed)
        for _ in range(self.steps):
            size = poisson_size(rng, self.dataset_size, self.sampling_probability)
            yield distinct(rng, self.dataset_size, size)

    def mechanism(self, noise_multiplier: float) -> Mechanism:
        """Return ``steps`` Poisson-subsampled Gaussians."""
        noise = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
        return self.steps * poisson_gaussian(noise, self.sampling_probability, self.relation)

    def worst_case_instances(self, noise_multiplier: float) -> tuple[WorstCaseInstance, ...]:
        """Return the mechanism itself: all other contributions zero, this one always one."""
        return (WorstCaseInstance(self.mechanism(noise_multiplier)),)
