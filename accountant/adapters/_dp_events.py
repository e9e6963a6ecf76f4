"""dp-accounting's releasing events as mechanisms.

Nothing is guessed: what an event does not state under a relation is refused, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeAlias

from accountant import mechanisms
from accountant._basics.rounding import U, ratio_down, up
from accountant.mechanisms import ApproximateDP, Gaussian, Laplace, Mechanism
from accountant.pairs.product import root_of_squares
from accountant.relations import NeighbouringRelation
from accountant.sampling import TruncatedPoissonSampled

Parts: TypeAlias = tuple[tuple[Mechanism, int], ...]
# What a converter finds: one mechanism, or several with their counts; () releases nothing.
Found: TypeAlias = Mechanism | Parts

ADD_OR_REMOVE = NeighbouringRelation.ADD_OR_REMOVE
REPLACE_ONE = NeighbouringRelation.REPLACE_ONE
ZERO_OUT = NeighbouringRelation.ZERO_OUT
_HIDES = 1e6  # discrete noise of a larger rate hides nothing
# Events whose meaning depends on the data they run on, or which say nothing of a record left out,
# do not run on a sample.
NOT_ON_A_SAMPLE = frozenset(
    {
        "RandomAllocationDpEvent",
        "RandomizedResponseDpEvent",
        "SampledWithReplacementDpEvent",
        "SampledWithoutReplacementDpEvent",
        "SingleEpochTreeAggregationDpEvent",
        "TruncatedSubsampledGaussianDpEvent",
    }
)
# Events that state a bound on two neighbours, and nothing about a record left out.
STATED = frozenset(
    {"EpsilonDeltaDpEvent", "ExponentialMechanismDpEvent", "PermuteAndFlipDpEvent", "ZCDpEvent"}
)


class Refused(Exception):  # noqa: N818 (a refusal, not a malfunction)
    """An event without a guarantee here, and why."""

    def __init__(self, event: Any, why: str) -> None:
        super().__init__(why)
        self.event, self.why = event, why


class NonPrivate(Exception):  # noqa: N818 (a finding, not a malfunction)
    """The tree holds a NonPrivateDpEvent: ε is infinite, whatever surrounds it."""


def no_noise(relation: NeighbouringRelation) -> Mechanism:
    """Return what a release of the data themselves costs."""
    return ApproximateDP(0.0, delta=1.0, relation=relation)


def number(event: Any, name: str, highest: float = math.inf) -> float:
    """Return a real number in [0, highest] of an event."""
    value: Any = getattr(event, name)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise Refused(event, f"{name} must be a real number; got {value!r:.40}")
    real = float(value)
    if not (0.0 <= real <= highest):
        raise Refused(event, f"{name} must be in [0, {highest}]; got {value!r}")
    return real


def whole(event: Any, name: str, least: int = 0) -> int:
    """Return an integer >= least of an event."""
    value: Any = getattr(event, name)
    if not (_is_whole(value) and value >= least):
        raise Refused(event, f"{name} must be an integer >= {least}; got {value!r:.40}")
    return int(value)


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def nothing(event: Any, relation: NeighbouringRelation) -> Found:
    return ()


def non_private(event: Any, relation: NeighbouringRelation) -> Found:
    raise NonPrivate


def of_norm(kind: Callable[..., Mechanism]) -> Callable[[Any, NeighbouringRelation], Found]:
    """Convert a sum of vectors of norm at most C (l1 for Laplace noise), with noise sC."""

    def converted(event: Any, relation: NeighbouringRelation) -> Found:
        noise = number(event, "noise_multiplier")
        return kind(noise, relation=relation) if noise else no_noise(relation)

    return converted


def discrete_laplace(event: Any, relation: NeighbouringRelation) -> Found:
    """Convert DiscreteLaplaceDpEvent: integers of l1 norm at most C, noise e^{-a|x|} (E3)."""
    rate, moved = number(event, "noise_parameter"), whole(event, "sensitivity")
    if moved == 0:
        return ()
    if rate == 0.0 or rate > _HIDES:
        # The first is no distribution; dp-accounting treats it as no privacy, too.
        return no_noise(relation)
    scale = ratio_down(1.0, rate)
    return mechanisms.DiscreteLaplace(scale, sensitivity=moved, relation=relation)


def discrete_gaussian(event: Any, relation: NeighbouringRelation) -> Found:
    """Convert DiscreteGaussianDpEvent: one integer by its law (M13), a vector by zCDP."""
    sigma, moved = number(event, "sigma"), number(event, "sensitivity")
    if event.dimension is not None:
        whole(event, "dimension", least=1)
    if event.dimension == 1 and moved < math.inf:
        moved = math.floor(moved)  # integers move by integers
    if moved == 0.0:
        return ()
    if sigma == 0.0 or moved == math.inf:
        return no_noise(relation)
    if event.dimension == 1:
        return mechanisms.DiscreteGaussian(sigma, sensitivity=int(moved), relation=relation)
    return mechanisms.DiscreteGaussianVector(sigma, sensitivity=moved, relation=relation)


def epsilon_delta(event: Any, relation: NeighbouringRelation) -> Found:
    """Convert EpsilonDeltaDpEvent: a guarantee under the accountant's relation (M7)."""
    epsilon, delta = number(event, "epsilon"), number(event, "delta", highest=1.0)
    if epsilon == math.inf:
        return no_noise(relation)
    return ApproximateDP(epsilon, delta=delta, relation=relation) if epsilon or delta else ()


def exponential_mechanism(event: Any, relation: NeighbouringRelation) -> Found:
    """Convert ExponentialMechanismDpEvent: its losses lie in a range of epsilon (M8)."""
    epsilon = number(event, "epsilon")
    if epsilon == math.inf:
        return no_noise(relation)
    return mechanisms.ExponentialMechanism(epsilon, relation=relation) if epsilon else ()


def permute_and_flip(event: Any, relation: NeighbouringRelation) -> Found:
    """Convert PermuteAndFlipDpEvent: no worse than Laplace noise of that epsilon (E10)."""
    epsilon = number(event, "epsilon")
    if epsilon == 0.0:
        return ()
    # The event states what two neighbours differ by, under any relation.
    moved = 2.0 if relation is REPLACE_ONE else 1.0
    scale = ratio_down(moved, epsilon) if epsilon < math.inf else 0.0
    return Laplace(scale, relation=relation) if scale else no_noise(relation)


def randomized_response(event: Any, relation: NeighbouringRelation) -> Found:
    """Convert RandomizedResponseDpEvent: one bucket of k, random with probability p (E4)."""
    p, k = number(event, "noise_parameter", highest=1.0), whole(event, "num_buckets", least=1)
    if relation is ADD_OR_REMOVE:
        raise Refused(
            event,
            "the event does not say what is released without the record;"
            " neighboring_relation must be `REPLACE_ONE` or `REPLACE_SPECIAL`",
        )
    if k == 1 or p == 1.0:
        return ()
    if p == 0.0:
        return no_noise(relation)
    if relation is REPLACE_ONE:
        loss = up(math.log1p(k * (1.0 - p) / p), 16.0)
        return mechanisms.RandomizedResponse(loss, k=k, relation=relation)
    # Masses are rounded so that the two tell more apart: the record's bucket is likelier with it,
    # and less likely without, also after both are divided by their sums.
    less = 1.0 - 16.0 * U
    other, own = (k - 1) / k * p * less, 1.0 / k * less
    return mechanisms.DominatingPMFs((1.0 - other, other), (own, 1.0 - own), relation=relation)


def mixture_of_gaussians(event: Any, relation: NeighbouringRelation) -> Found:
    """Convert MixtureOfGaussiansDpEvent: N(0, s²) against a mixture of N(c, s²)."""
    noise = number(event, "standard_deviation")
    shifts, chances = tuple(event.sensitivities), tuple(event.sampling_probs)
    if relation is REPLACE_ONE:
        raise Refused(
            event,
            "no theorem bounds a mixture of Gaussians against another; neighboring_relation must be"
            " `ADD_OR_REMOVE_ONE` or `REPLACE_SPECIAL`",
        )
    found = mechanisms.MixtureOfGaussians(
        noise or 1.0, sensitivities=shifts, probabilities=chances, relation=relation
    )
    if max(found.sensitivities) == 0.0:
        return ()
    return found if noise else no_noise(relation)


@dataclass(frozen=True)
class Line:
    """The Rényi curve xi + rho·α."""

    xi: float
    rho: float

    def __call__(self, order: float) -> float:
        """Return the bound, rounded up."""
        return up(self.xi + up(self.rho * order, 1.0), 1.0)


def zcdp(event: Any, relation: NeighbouringRelation) -> Found:
    """Convert ZCDpEvent: D_α <= xi + rho·α at every order, under the accountant's relation."""
    rho, xi = number(event, "rho"), number(event, "xi")
    if math.inf in (rho, xi):
        return no_noise(relation)
    if xi == 0.0:
        return mechanisms.ZCDP(rho, relation=relation)
    return mechanisms.RenyiCurve(Line(xi, rho), relation=relation)


def single_epoch_tree(event: Any, relation: NeighbouringRelation) -> Found:
    """Convert SingleEpochTreeAggregationDpEvent: a record is in one node of every level (E6)."""
    noise = number(event, "noise_multiplier")
    counts: Any = event.step_counts
    steps: list[Any] = [counts] if isinstance(counts, Real) else list(counts)
    if not steps or not all(_is_whole(n) and n >= 0 for n in steps):
        raise Refused(event, "step_counts must be an integer >= 0, or several")
    if relation is ADD_OR_REMOVE:
        raise Refused(event, "adding a record moves all later records to other leaves")
    levels = int(max(steps)).bit_length()
    if levels == 0:
        return ()
    if noise == 0.0:
        return no_noise(relation)
    # √levels, rounded up.
    return Gaussian(noise, sensitivity=root_of_squares([(1.0, levels)]), relation=relation)


def truncated(event: Any, relation: NeighbouringRelation) -> Found:
    """Convert a Poisson sample that is cut down to a cap (S13, E8)."""
    size = whole(event, "dataset_size")
    q = number(event, "sampling_probability", highest=1.0)
    cap = whole(event, "truncated_batch_size")
    noise = number(event, "noise_multiplier")
    if q == 0.0 or cap == 0:
        return ()
    if noise == 0.0:
        return no_noise(relation)
    if relation is ADD_OR_REMOVE:
        # The neighbour may be the larger of the two.
        size += 1
    return TruncatedPoissonSampled(
        noise, sampling_probability=q, cap=cap, dataset_size=max(size, 1), relation=relation
    )


def refuse_inside(sampler: Any, event: Any, refused: frozenset[str] | set[str]) -> None:
    name = type(event).__name__
    if name in refused:
        raise Refused(sampler, f"{name} has no guarantee on a sample under this relation")
    for inner in getattr(event, "events", ()) or ():
        refuse_inside(sampler, inner, refused)
    if hasattr(event, "event"):
        refuse_inside(sampler, event.event, refused)


# Each event's converter, and the fields that it had when that was written.
RELEASES: dict[str, tuple[Callable[[Any, NeighbouringRelation], Found], str]] = {
    "NoOpDpEvent": (nothing, ""),
    "NonPrivateDpEvent": (non_private, ""),
    "GaussianDpEvent": (of_norm(Gaussian), "noise_multiplier"),
    "LaplaceDpEvent": (of_norm(Laplace), "noise_multiplier"),
    "DiscreteLaplaceDpEvent": (discrete_laplace, "noise_parameter sensitivity"),
    "RandomizedResponseDpEvent": (randomized_response, "noise_parameter num_buckets"),
    "MixtureOfGaussiansDpEvent": (
        mixture_of_gaussians,
        "standard_deviation sensitivities sampling_probs",
    ),
    "ZCDpEvent": (zcdp, "rho xi"),
    "EpsilonDeltaDpEvent": (epsilon_delta, "epsilon delta"),
    "ExponentialMechanismDpEvent": (exponential_mechanism, "epsilon"),
    "PermuteAndFlipDpEvent": (permute_and_flip, "epsilon"),
    "DiscreteGaussianDpEvent": (discrete_gaussian, "sigma sensitivity dimension"),
    "SingleEpochTreeAggregationDpEvent": (single_epoch_tree, "noise_multiplier step_counts"),
    "TruncatedSubsampledGaussianDpEvent": (
        truncated,
        "dataset_size sampling_probability truncated_batch_size noise_multiplier",
    ),
}

REFUSED = {
    "DpEvent": "the base class describes no release",
    "UnsupportedDpEvent": "the event stands for what has no description",
}
