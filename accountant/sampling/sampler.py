"""Samplers: batches, the mechanism that accounts for them, lower bounds; and what many share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from accountant import checks
from accountant.bounds import Bounds
from accountant.environment import to_nearest
from accountant.relations import NeighbouringRelation
from accountant.sampling.drawing import Indices, Seed

if TYPE_CHECKING:
    from accountant.mechanisms.base import Mechanism


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


class Sampler(ABC):
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

    def __repr__(self) -> str:
        """Return the shortest constructor call."""
        shown = []
        for part in fields(self):  # type: ignore[arg-type]
            value = getattr(self, part.name)
            if part.default is MISSING or value != part.default:
                shown.append(f"{part.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

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
        NeighbouringRelation.ZERO_OUT,
        NeighbouringRelation.REPLACE_ONE,
    )

    dataset_size: int
    batch_size: int
    epochs: int
    relation: NeighbouringRelation = field(default=NeighbouringRelation.ZERO_OUT, kw_only=True)

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
        from accountant.mechanisms.gaussian import Gaussian

        return self.epochs * Gaussian(
            checks.number(checks.NOISE_MULTIPLIER, noise_multiplier), relation=self.relation
        )


@dataclass(frozen=True, repr=False, kw_only=True)
class StepSampler(Sampler):
    """A batch of a stated size in every step, independent of all others."""

    dataset_size: int
    batch_size: int
    steps: int
