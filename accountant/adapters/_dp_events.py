"""A tree of dp-accounting's events as a composition of mechanisms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from accountant._basics.rounding import ratio_down, ratio_up
from accountant.adapters import _dp_events_releases as releases
from accountant.adapters._dp_events_releases import (
    ADD_OR_REMOVE,
    REPLACE_ONE,
    ZERO_OUT,
    Parts,
    Refused,
    number,
    whole,
)
from accountant.composition import Composition
from accountant.derived import BestOfPoissonRuns, BestOfRuns, JointRelease, SampledReplacement
from accountant.derived.repetition import mean_runs
from accountant.errors import AccountantError
from accountant.mechanisms import Gaussian, Mechanism
from accountant.pairs.product import root_of_squares
from accountant.relations import NeighbouringRelation
from accountant.sampling import (
    Allocated,
    AllocatedMechanism,
    FixedSizeSampled,
    PoissonSampled,
    TruncatedPoissonSampled,
    WithReplacementSampled,
)

# Events whose meaning depends on the data they run on, or which say nothing of a record left out,
# do not run on a sample.
_NOT_ON_A_SAMPLE = frozenset(
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
_STATED = frozenset(
    {"EpsilonDeltaDpEvent", "ExponentialMechanismDpEvent", "PermuteAndFlipDpEvent", "ZCDpEvent"}
)


class NonPrivate(Exception):  # noqa: N818 (a finding, not a malfunction)
    """The tree holds a NonPrivateDpEvent: ε is infinite, whatever surrounds it."""


def convert(event: Any, relation: NeighbouringRelation) -> Parts:
    """Return the counted mechanisms of an event; an empty tuple when it releases nothing.

    Raises
    ------
    Refused
        The event, or its combination with others or with the relation, has no guarantee here.
    NonPrivate
        It has none anywhere.
    """
    kind = type(event)
    converter, known = CONVERTED.get(kind.__name__, (None, ""))
    if converter is None or kind.__module__ != "dp_accounting.dp_event":
        raise Refused(event, REFUSED.get(kind.__name__, "the event is unknown"))
    extra = {part.name for part in kind.__attrs_attrs__} ^ set(known.split())
    if extra:
        others = ", ".join(sorted(extra))
        raise Refused(event, f"the event has other fields than those known: {others}")
    try:
        return converter(event, relation)
    except (AccountantError, TypeError, ValueError, OverflowError) as error:
        raise Refused(event, str(error)) from error


def _nothing(event: Any, relation: NeighbouringRelation) -> Parts:
    return ()


def _non_private(event: Any, relation: NeighbouringRelation) -> Parts:
    raise NonPrivate


def _composed(event: Any, relation: NeighbouringRelation) -> Parts:
    found: dict[Mechanism, int] = {}
    # Every part is looked at, so that one that is unknown is found behind one without privacy.
    private = True
    for part in event.events:
        try:
            parts = convert(part, relation)
        except NonPrivate:
            private = False
            continue
        for mechanism, count in parts:
            found[mechanism] = found.get(mechanism, 0) + count
    if not private:
        raise NonPrivate
    return tuple(found.items())


def _self_composed(event: Any, relation: NeighbouringRelation) -> Parts:
    count = whole(event, "count")
    try:
        parts = convert(event.event, relation)
    except NonPrivate:
        if count == 0:
            return ()
        raise
    return tuple((mechanism, n * count) for mechanism, n in parts) if count else ()


def _poisson_sampled(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert Poisson sampling; what runs on the sample shares it (M6, E1, E2, E7)."""
    q = number(event, "sampling_probability", highest=1.0)
    inside = _NOT_ON_A_SAMPLE
    if relation is not ADD_OR_REMOVE:
        # A guarantee about replacing or blanking a record says nothing of leaving it out.
        inside |= _STATED
    release = _together(event, relation, inside)
    if release is None or q == 0.0:
        return ()
    if q == 1.0:
        return convert(event.event, relation)
    return ((PoissonSampled(release, q), 1),)


def _without_replacement(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert a uniform subset; under zero-out a blank is drawn like a record (S6, E2)."""
    size = whole(event, "source_dataset_size", least=1)
    batch = whole(event, "sample_size")
    if batch > size:
        raise Refused(event, "sample_size must be at most source_dataset_size")
    if relation is ADD_OR_REMOVE:
        raise Refused(
            event,
            "a sample of fixed size changes in more than one record when one is added or removed;"
            " the guarantee is under REPLACE_ONE or REPLACE_SPECIAL",
        )
    inside = _NOT_ON_A_SAMPLE | (_STATED if relation is ZERO_OUT else set())
    release = _together(event, REPLACE_ONE, inside)
    if release is None or batch == 0:
        return ()
    if relation is REPLACE_ONE and isinstance(release, Gaussian) and release.sensitivity == 1.0:
        noise = release.noise_multiplier
        return ((FixedSizeSampled(noise, batch_size=batch, dataset_size=size), 1),)
    return ((SampledReplacement(release, ratio_up(batch, size), relation=relation), 1),)


def _with_replacement(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert independent draws for every place of the sample (S7, S8, E5)."""
    size = whole(event, "source_dataset_size", least=1)
    batch = whole(event, "sample_size")
    if relation is ZERO_OUT:
        raise Refused(event, "the theorems are under ADD_OR_REMOVE_ONE and REPLACE_ONE")
    release = _together(event, relation, _NOT_ON_A_SAMPLE)
    if release is None or batch == 0:
        return ()
    if not (isinstance(release, Gaussian) and release.sensitivity == 1.0):
        raise Refused(event, "the theorems are for Gaussian noise, composed or not")
    found = WithReplacementSampled(
        release.noise_multiplier, batch_size=batch, dataset_size=size, relation=relation
    )
    return ((found, 1),)


def _truncated(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert a Poisson sample that is cut down to a cap (S13, E8)."""
    size = whole(event, "dataset_size")
    q = number(event, "sampling_probability", highest=1.0)
    cap = whole(event, "truncated_batch_size")
    noise = number(event, "noise_multiplier")
    if q == 0.0 or cap == 0:
        return ()
    if noise == 0.0:
        return releases.no_noise(relation)
    if relation is ADD_OR_REMOVE:
        # The neighbour may be the larger of the two.
        size += 1
    found = TruncatedPoissonSampled(
        noise, sampling_probability=q, cap=cap, dataset_size=max(size, 1), relation=relation
    )
    return ((found, 1),)


def _random_allocation(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert runs of which every record picks some, uniformly (S4, S5, S9, S23)."""
    picked, steps = whole(event, "num_selected"), whole(event, "num_steps", least=1)
    if picked > steps:
        raise Refused(event, "num_selected must be at most num_steps")
    if relation is REPLACE_ONE:
        raise Refused(event, "the theorems are under ADD_OR_REMOVE_ONE and REPLACE_SPECIAL")
    inside = _NOT_ON_A_SAMPLE | (_STATED if relation is ZERO_OUT else set())
    release = _together(event, relation, inside)
    if release is None or picked == 0:
        return ()
    if release == releases.no_noise(relation)[0][0]:
        # What is released without noise tells which runs the record was in.
        return ((release, 1),)
    block = steps // picked
    one: Mechanism
    if isinstance(release, Gaussian) and release.sensitivity == 1.0:
        one = Allocated(release.noise_multiplier, steps=block, relation=relation)
    else:
        one = AllocatedMechanism(release, steps=block)
    return ((one, picked),)


def _repeat_and_select(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert the best of K runs, K negative binomial or Poisson (P4 to P6)."""
    mean, shape = number(event, "mean"), number(event, "shape")
    parts = convert(event.event, relation)
    if shape < math.inf and mean < 1.0:
        raise Refused(event, "mean must be at least 1: the distribution is truncated to K >= 1")
    if not parts or mean == 0.0:
        return ()
    if (shape < math.inf and mean == 1.0) or releases.no_noise(relation)[0] in parts:
        return parts
    base = parts[0][0] if len(parts) == 1 and parts[0][1] == 1 else Composition(parts)
    if shape == math.inf:
        return ((BestOfPoissonRuns(base, mean), 1),)
    gamma = BestOfRuns.with_mean(base, mean, eta=shape).stopping_probability
    # The search ends below the mean; a smaller γ makes more runs, and costs more.
    while not (mean_runs(gamma, shape) * (1.0 - 2.0**-44 * (1.0 + shape)) >= mean):
        gamma *= 1.0 - 2.0**-36
        if gamma == 0.0:
            raise Refused(event, "mean is too large")
    return ((BestOfRuns(base, gamma, eta=shape), 1),)


def _together(
    event: Any, relation: NeighbouringRelation, inside: frozenset[str] | set[str]
) -> Mechanism | None:
    """Return what runs on one sample as one release; None when it releases nothing."""
    _refuse_inside(event, event.event, inside)
    parts = convert(event.event, relation)
    if not parts:
        return None
    (first, count), *others = parts
    if not others and count == 1:
        return first
    if all(isinstance(mechanism, Gaussian) for mechanism, _ in parts):
        # Gaussians about the same sum are one, with the root of the sum of squares of 1/σ (M11).
        inverse = root_of_squares(
            (ratio_up(m.sensitivity, m.noise_multiplier), n)  # type: ignore[attr-defined]
            for m, n in parts
        )
        noise = ratio_down(1.0, inverse) if inverse > 0.0 else math.inf
        return Gaussian(noise, relation=relation)
    return JointRelease(Composition(parts))


def _refuse_inside(sampler: Any, event: Any, refused: frozenset[str] | set[str]) -> None:
    name = type(event).__name__
    if name in refused:
        raise Refused(sampler, f"{name} has no guarantee on a sample under this relation")
    for inner in getattr(event, "events", ()) or ():
        _refuse_inside(sampler, inner, refused)
    if hasattr(event, "event"):
        _refuse_inside(sampler, event.event, refused)


# Each event's converter, and the fields that it had when that was written.
CONVERTED: dict[str, tuple[Callable[[Any, NeighbouringRelation], Parts], str]] = {
    "NoOpDpEvent": (_nothing, ""),
    "NonPrivateDpEvent": (_non_private, ""),
    "ComposedDpEvent": (_composed, "events"),
    "SelfComposedDpEvent": (_self_composed, "event count"),
    "GaussianDpEvent": (releases.gaussian, "noise_multiplier"),
    "LaplaceDpEvent": (releases.laplace, "noise_multiplier"),
    "DiscreteLaplaceDpEvent": (releases.discrete_laplace, "noise_parameter sensitivity"),
    "RandomizedResponseDpEvent": (releases.randomized_response, "noise_parameter num_buckets"),
    "MixtureOfGaussiansDpEvent": (
        releases.mixture_of_gaussians,
        "standard_deviation sensitivities sampling_probs",
    ),
    "ZCDpEvent": (releases.zcdp, "rho xi"),
    "EpsilonDeltaDpEvent": (releases.epsilon_delta, "epsilon delta"),
    "ExponentialMechanismDpEvent": (releases.exponential_mechanism, "epsilon"),
    "PermuteAndFlipDpEvent": (releases.permute_and_flip, "epsilon"),
    "DiscreteGaussianDpEvent": (releases.discrete_gaussian, "sigma sensitivity dimension"),
    "SingleEpochTreeAggregationDpEvent": (
        releases.single_epoch_tree,
        "noise_multiplier step_counts",
    ),
    "PoissonSampledDpEvent": (_poisson_sampled, "sampling_probability event"),
    "SampledWithoutReplacementDpEvent": (
        _without_replacement,
        "source_dataset_size sample_size event",
    ),
    "SampledWithReplacementDpEvent": (_with_replacement, "source_dataset_size sample_size event"),
    "TruncatedSubsampledGaussianDpEvent": (
        _truncated,
        "dataset_size sampling_probability truncated_batch_size noise_multiplier",
    ),
    "RandomAllocationDpEvent": (_random_allocation, "event num_selected num_steps"),
    "RepeatAndSelectDpEvent": (_repeat_and_select, "event mean shape"),
}

REFUSED = {
    "DpEvent": "the base class describes no release",
    "UnsupportedDpEvent": "the event stands for what has no description",
}
