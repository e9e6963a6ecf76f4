"""Samplers: batches, the mechanism that accounts for them, lower bounds; and what many share."""

from __future__ import annotations

import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.display import Described
from accountant._basics.rounding import up
from accountant.bounds import Bounds
from accountant.environment import to_nearest
from accountant.errors import ArgumentTypeError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.gaussian import Gaussian
from accountant.relations import REPLACE_ONE, ZERO_OUT, NeighbouringRelation

Indices: TypeAlias = "NDArray[np.int64]"
Seed: TypeAlias = "int | np.random.Generator | None"


def generator(seed: object) -> np.random.Generator:
    """Return a generator: 256 bits of the operating system's entropy unless a seed is given.

    A seed makes the batches reproducible, hence predictable: for tests only. Amplification by
    sampling assumes that nobody else knows which records were used.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if seed is None:
        return np.random.Generator(np.random.PCG64DXSM(secrets.randbits(256)))
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0:
        return np.random.Generator(np.random.PCG64DXSM(int(seed)))
    raise ArgumentTypeError(
        f"seed must be None, an integer >= 0 or a numpy Generator; got {seed!r}."
        " Leave it out for real training: the default is the operating system's entropy"
    )


def distinct(rng: np.random.Generator, population: int, size: int) -> Indices:
    """Draw a uniform subset of ``size`` of ``range(population)``, sorted, in O(size log size).

    The first ``size`` distinct values of an independent uniform sequence form a uniform subset:
    relabelling the records maps sequences to sequences of equal probability.
    """
    if population == 0:
        return np.empty(0, dtype=np.int64)  # no record may take part
    if 2 * size > population:  # then the complement takes fewer draws
        left_out = distinct(rng, population, population - size)
        chosen = np.ones(population, dtype=bool)
        chosen[left_out] = False
        return np.flatnonzero(chosen).astype(np.int64, copy=False)
    drawn = np.empty(0, dtype=np.int64)
    while True:
        # Half as many again covers most repeats (at most every second draw repeats one).
        more = rng.integers(population, size=size + size // 2 + 8, dtype=np.int64)
        drawn = np.concatenate([drawn, more])
        values, first = np.unique(drawn, return_index=True)
        if values.size >= size:
            # Only the earliest distinct values: keeping the smallest ones would favour them.
            return np.sort(values[np.argsort(first)[:size]])


def poisson_size(rng: np.random.Generator, population: int, probability: float) -> int:
    """Draw how many of ``population`` independent coins show heads."""
    return int(rng.binomial(population, probability))


def shuffled(rng: np.random.Generator, population: int) -> Indices:
    """Draw a uniform permutation of ``range(population)``."""
    return rng.permutation(population).astype(np.int64, copy=False)


class WorstCaseInstance(NamedTuple):
    """Two neighbouring data sets at work: a loss that the sampler really reaches.

    Attributes
    ----------
    mechanism : Mechanism or Composition
        Its profile is reached, up to ``excess``, in at least one direction.
    excess : float
        What the mechanism's δ may exceed the reached one by.
    """

    mechanism: Mechanism
    excess: float = 0.0


def check_settings(holder: Any, label: str, relations: tuple[NeighbouringRelation, ...]) -> None:
    """Check every field of a sampler, or of its mechanism, by its name, and store what is checked.

    ``label`` is the name by which a message refuses other relations than ``relations``. Fields of
    other names are left as they are.
    """
    for part in fields(holder):
        name, value = part.name, getattr(holder, part.name)
        match name:
            case "noise_multiplier":
                value = checks.number(checks.NOISE_MULTIPLIER, value)
            case "sampling_probability":
                value = checks.number(checks.SAMPLING_PROBABILITY, value)
            case "dataset_size":
                value = checks.whole(checks.DATASET_SIZE, value)
            case "batch_size":
                value = checks.batch_size(value, holder.dataset_size)
            case "cap":
                value = checks.integer(name, value, 1, advice="It is the largest batch")
            case (
                "steps"
                | "bands"
                | "min_separation"
                | "epochs"
                | "steps_per_epoch"
                | "participations"
            ):
                value = checks.integer(name, value, 1)
            case "relation":
                value = checks.supported_relation(label, value, relations)
        object.__setattr__(holder, name, value)


class Sampler(Described, ABC):
    """A rule that chooses the records of every step; it *is* its accounting.

    Subclasses are frozen dataclasses, and :func:`check_settings` checks their fields.
    :meth:`batches` draws exactly the distribution that the theorem behind :meth:`mechanism`
    assumes. Steps add the clipped contributions (ℓ2 norm at most one) of the batch and Gaussian
    noise of standard deviation ``noise_multiplier``; what is divided by afterwards is public and
    constant.
    """

    name: ClassVar[str]
    theorem: ClassVar[str]
    relations: ClassVar[tuple[NeighbouringRelation, ...]]
    relation: NeighbouringRelation

    def __init_subclass__(cls, **arguments: object) -> None:
        super().__init_subclass__(**arguments)
        for name in ("__post_init__", "mechanism", "worst_case_instances"):
            if name in vars(cls):
                setattr(cls, name, to_nearest(vars(cls)[name]))

    @to_nearest
    def __post_init__(self) -> None:
        check_settings(self, self.name, self.relations)

    if TYPE_CHECKING:
        # A field in some subclasses, a property in others.
        @property
        def steps(self) -> int:
            """The number of batches of one run."""

    @abstractmethod
    def batches(self, seed: Seed = None) -> Iterator[Indices]:
        """Draw the batches of one run, one after another.

        Parameters
        ----------
        seed : int or numpy Generator, optional
            For tests only; by default 256 bits of the operating system's entropy.

        Yields
        ------
        int64 array of shape (k,)
            Indices into the data set; ``k`` may be 0, and the step still releases its noise.
        """

    @abstractmethod
    def mechanism(self, noise_multiplier: float) -> Mechanism:
        """Return the mechanism of the whole run, for an account to compose.

        Its guarantee is that of :attr:`theorem` (docs/theorems_sampling.md), under
        :attr:`relation`.
        """

    @abstractmethod
    def worst_case_instances(self, noise_multiplier: float) -> tuple[WorstCaseInstance, ...]:
        """Return losses that some pair of neighbouring data sets reaches under this sampler."""

    @to_nearest
    def epsilon_bounds(self, noise_multiplier: float, delta: float) -> Bounds:
        """Bracket the ε(delta) of the sampler itself, in nats.

        Notes
        -----
        *Guarantee.* The upper end holds for all neighbouring data sets and all adaptive choices of
        contributions under :attr:`relation`; the lower end is reached by one of the
        :meth:`worst_case_instances`, so no analysis can go below it (docs/theorems_sampling.md).
        """
        upper = float(self.mechanism(noise_multiplier).epsilon(delta))
        lower = 0.0
        for witness in self.worst_case_instances(noise_multiplier):
            reached = delta + witness.excess * (1.0 + 1e-12)
            if reached < 1.0:
                lower = max(lower, float(witness.mechanism.epsilon_bounds(reached).lower))
        # Both are certified, so a crossing is a rounding of two equal numbers.
        return Bounds(min(lower, upper), upper)

    @to_nearest
    def epsilon(self, noise_multiplier: float, delta: float) -> float:
        """Return the ε spent at ``delta``, certified never too small."""
        return float(self.mechanism(noise_multiplier).epsilon(delta))


@dataclass(frozen=True, repr=False, kw_only=True)
class EpochSampler(Sampler):
    """Every record once an epoch, in batches cut from an order."""

    relations: ClassVar[tuple[NeighbouringRelation, ...]] = (
        ZERO_OUT,
        REPLACE_ONE,
    )

    dataset_size: int
    batch_size: int
    epochs: int
    relation: NeighbouringRelation = field(default=ZERO_OUT, kw_only=True)

    @property
    def steps_per_epoch(self) -> int:
        """The number of batches of one epoch."""
        return -(-self.dataset_size // self.batch_size)

    @property
    def steps(self) -> int:
        """The number of batches of one run."""
        return self.epochs * self.steps_per_epoch

    def mechanism(self, noise_multiplier: float) -> Mechanism:
        """Return one Gaussian per epoch."""
        return self.epochs * Gaussian(
            checks.number(checks.NOISE_MULTIPLIER, noise_multiplier), relation=self.relation
        )


@dataclass(frozen=True, repr=False, kw_only=True)
class StepSampler(Sampler):
    """A batch of a stated size in every step, independent of all others."""

    dataset_size: int
    batch_size: int
    steps: int


_RELATIONS: Mapping[str, tuple[NeighbouringRelation, ...]] = {
    "poisson": (NeighbouringRelation.ADD_OR_REMOVE, NeighbouringRelation.ZERO_OUT),
    "fixed size": (NeighbouringRelation.REPLACE_ONE,),
}


class Amplified(NamedTuple):
    """An (ε, δ) guarantee after sampling, and its relation."""

    epsilon: float
    delta: float
    relation: NeighbouringRelation


@to_nearest
def amplify(
    epsilon: float,
    *,
    delta: float,
    sampling_probability: float,
    sampler: str = "poisson",
    relation: NeighbouringRelation | None = None,
) -> Amplified:
    """Return the guarantee of an (ε, δ)-private release that runs on a random sample.

    Parameters
    ----------
    epsilon : float
        Privacy loss of the release on its sample, in nats, >= 0.
    delta : float
        In [0, 1).
    sampling_probability : float
        In [0, 1]; batch size over number of records for samples of fixed size.
    sampler : {"poisson", "fixed size"}
        Independent coins, or a uniform subset of a fixed size (without replacement).
    relation : NeighbouringRelation, optional
        The relation of the release's guarantee and of the result: add-or-remove (or zero-out) for
        Poisson sampling, replace-one for fixed size. By default the first of these.

    Returns
    -------
    Amplified
        ``epsilon = log1p(q·expm1(ε))`` and ``delta = q·δ``, both rounded up.

    Raises
    ------
    UnsupportedError
        The sampler has no theorem for the relation.

    Notes
    -----
    *Guarantee.* Theorem S3 (Balle, Barthe, Gaboardi 2018, Theorems 8 and 9). One release: to
    account for many, compose the samplers' mechanisms, which lose much less.
    Under zero-out the release must treat a sample with a blank as the sample without that record;
    one that shows the sample's size, blanks included, does not.

    Examples
    --------
    >>> from accountant.sampling import amplify
    >>> amplify(1.0, delta=1e-6, sampling_probability=0.01).epsilon < 0.01704
    True
    """
    checks.choice("sampler", sampler, tuple(_RELATIONS))
    known = _RELATIONS[sampler]
    relation = checks.supported_relation(sampler, known[0] if relation is None else relation, known)
    epsilon = checks.number(checks.EPSILON, epsilon)
    delta = checks.number(checks.DELTA, delta)
    q = checks.number(checks.SAMPLING_PROBABILITY, sampling_probability)
    if q in (0.0, 1.0) or epsilon == 0.0:
        return Amplified(0.0 if q == 0.0 else epsilon, delta * q, relation)
    return Amplified(min(_amplified(q, epsilon), epsilon), up(q * delta, 0.0), relation)


def _amplified(q: float, epsilon: float) -> float:
    if epsilon < 700.0:
        return up(math.log1p(q * math.expm1(epsilon)), 32.0)
    # log1p(q(e^ε - 1)) = ε + log(q + (1 - q)e^-ε) for large ε, where e^ε overflows.
    value = epsilon + math.log(q + (1.0 - q) * math.exp(-epsilon))
    return up(value + 2.0**-48 * (epsilon + 1.0), 0.0)
