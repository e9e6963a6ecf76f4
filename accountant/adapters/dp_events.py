"""dp-accounting's events and its accountant interface, for JAX Privacy, TF Privacy and others.

:class:`ExactAccountant` goes wherever a ``dp_accounting.PrivacyAccountant`` does;
:func:`composition` turns a tree of events into a mechanism of this package.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import dp_accounting

from accountant import checks, sampling
from accountant._basics.rounding import ratio_down, ratio_up
from accountant.adapters import _dp_events as events
from accountant.adapters._dp_events import REPLACE_ONE, ZERO_OUT, Refused, number, whole
from accountant.composition import Composition
from accountant.derived import BestOfPoissonRuns, BestOfRuns, JointRelease, SampledReplacement
from accountant.derived.repetition import mean_runs
from accountant.errors import AccountantError, ArgumentTypeError, UnsupportedError
from accountant.ledger import Accountant
from accountant.mechanisms import Gaussian, Mechanism
from accountant.pairs.product import root_of_squares
from accountant.relations import NeighbouringRelation

__all__ = ["ExactAccountant", "composition"]

_Theirs = dp_accounting.NeighboringRelation
_RELATIONS = {
    _Theirs.ADD_OR_REMOVE_ONE: NeighbouringRelation.ADD_OR_REMOVE,
    _Theirs.REPLACE_ONE: NeighbouringRelation.REPLACE_ONE,
    _Theirs.REPLACE_SPECIAL: NeighbouringRelation.ZERO_OUT,
}


def composition(event: Any, neighboring_relation: Any = _Theirs.ADD_OR_REMOVE_ONE) -> Composition:
    """Return what a tree of dp-accounting's events releases, as a mechanism.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        Any tree of events that dp-accounting 0.6 defines.
    neighboring_relation : dp_accounting.NeighboringRelation or NeighbouringRelation
        REPLACE_SPECIAL is zero-out.

    Returns
    -------
    Composition
        Of no release at all for a tree without any; with infinite ε for one with a
        NonPrivateDpEvent.

    Raises
    ------
    UnsupportedError
        No theorem covers a part of the tree under the relation; the message says which and why.

    Notes
    -----
    *Guarantee.* That of the mechanisms returned; docs/adapters.md lists event by event which they
    are, and by which theorem.

    Examples
    --------
    >>> import dp_accounting as dp  # doctest: +SKIP
    >>> step = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0))  # doctest: +SKIP
    >>> composition(dp.SelfComposedDpEvent(step, 1000))  # doctest: +SKIP
    1000 * PoissonSampled(Gaussian(1.0), 0.01)
    """
    relation = _relation(neighboring_relation)
    try:
        parts = _parts(event, relation)
    except events.NonPrivate:
        parts = ((events.no_noise(relation), 1),)
    except Refused as refusal:
        raise UnsupportedError(f"{refusal.event!r:.200} is not covered: {refusal.why}") from refusal
    return Composition(parts or ((Gaussian(1.0, relation=relation), 0),))


class ExactAccountant(dp_accounting.PrivacyAccountant):  # type: ignore[misc]
    """dp-accounting's accountant interface on a certified ledger.

    Parameters
    ----------
    neighboring_relation : dp_accounting.NeighboringRelation, optional
        ADD_OR_REMOVE_ONE, REPLACE_ONE or REPLACE_SPECIAL.

    Attributes
    ----------
    releases : accountant.Accountant
        What was composed, as mechanisms; ask it for brackets or for ε over steps. The property
        ``ledger`` is dp-accounting's own: the events.

    Notes
    -----
    *Guarantee.* ε and δ are never too small under the relation, for every event that
    ``supports`` accepts (docs/adapters.md). What it does not accept has no theorem here.

    Examples
    --------
    >>> accountant = ExactAccountant()  # doctest: +SKIP
    >>> accountant.compose(dp.GaussianDpEvent(2.0), 10).get_epsilon(1e-5)  # doctest: +SKIP
    """

    def __init__(self, neighboring_relation: Any = _Theirs.ADD_OR_REMOVE_ONE) -> None:
        self._relation = _relation(neighboring_relation)
        super().__init__(next(k for k, v in _RELATIONS.items() if v is self._relation))
        self.releases = Accountant()
        self._private = True

    def __deepcopy__(self, memo: Any) -> ExactAccountant:
        """Return another accountant with the same releases, as calibrations begin with one."""
        found = ExactAccountant(self._relation)
        found._ledger = copy.deepcopy(self._ledger, memo)
        found.releases.merge(self.releases)
        found._private = self._private
        return found

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        """Convert the event; record it when asked to. None, or what is wrong with it."""
        try:
            parts = _parts(event, self._relation)
        except events.NonPrivate:
            self._private = self._private and not (do_compose and count > 0)
            return None
        except Refused as refusal:
            return self.CompositionErrorDetails(refusal.event, refusal.why)
        if do_compose and count > 0:
            for mechanism, times in parts:
                self.releases.compose(mechanism, times * count)
        return None

    def compose(self, event: Any, count: int = 1) -> Any:
        """Record ``count`` applications of an event.

        Raises
        ------
        dp_accounting.UnsupportedEventError
            ``supports(event)`` is False; nothing is recorded.
        ArgumentTypeError, DomainError
            ``count`` is no integer >= 1.
        """
        return super().compose(event, checks.integer("count", count, 1))

    def get_epsilon(self, target_delta: float) -> float:
        """Return ε at ``target_delta`` in [0, 1], certified never too small.

        Everything is (0, 1)-private, so ε is 0 at δ = 1, except after a NonPrivateDpEvent, for
        which dp-accounting answers ∞ at every δ.
        """
        one = checks.number(_DELTA, target_delta) == 1.0
        if not self._private:
            return math.inf
        return 0.0 if one else self.releases.epsilon(target_delta)

    def get_delta(self, target_epsilon: float) -> float:
        """Return δ at ``target_epsilon`` >= 0, certified never too small."""
        delta = self.releases.delta(target_epsilon)
        return delta if self._private else 1.0


_DELTA = checks.Argument(
    "target_delta",
    "a probability in [0, 1]",
    lambda x: (x >= 0.0) & (x <= 1.0),
    "Choose it well below one over the number of records",
)


def _parts(event: Any, relation: NeighbouringRelation) -> events.Parts:
    try:
        return convert(event, relation)
    except RecursionError:
        raise Refused(event, "the events are nested too deeply") from None


def _relation(value: Any) -> NeighbouringRelation:
    if isinstance(value, NeighbouringRelation):
        return value
    found = _RELATIONS.get(value) if isinstance(value, _Theirs) else None
    if found is None:
        raise ArgumentTypeError(
            f"neighboring_relation must be a dp_accounting.NeighboringRelation; got {value!r:.60}"
        )
    return found


def convert(event: Any, relation: NeighbouringRelation) -> events.Parts:
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
        raise Refused(event, events.REFUSED.get(kind.__name__, "the event is unknown"))
    extra = {part.name for part in kind.__attrs_attrs__} ^ set(known.split())
    if extra:
        others = ", ".join(sorted(extra))
        raise Refused(event, f"the event has other fields than those known: {others}")
    try:
        found = converter(event, relation)
    except (AccountantError, TypeError, ValueError, OverflowError) as error:
        raise Refused(event, str(error)) from error
    return found if isinstance(found, tuple) else ((found, 1),)


def _composed(event: Any, relation: NeighbouringRelation) -> events.Found:
    found: dict[Mechanism, int] = {}
    # Every part is looked at, so that one that is unknown is found behind one without privacy.
    private = True
    for part in event.events:
        try:
            parts = convert(part, relation)
        except events.NonPrivate:
            private = False
            continue
        for mechanism, count in parts:
            found[mechanism] = found.get(mechanism, 0) + count
    if not private:
        raise events.NonPrivate
    return tuple(found.items())


def _self_composed(event: Any, relation: NeighbouringRelation) -> events.Found:
    count = whole(event, "count")
    try:
        parts = convert(event.event, relation)
    except events.NonPrivate:
        if count == 0:
            return ()
        raise
    return tuple((mechanism, n * count) for mechanism, n in parts) if count else ()


def _poisson_sampled(event: Any, relation: NeighbouringRelation) -> events.Found:
    """Convert Poisson sampling; what runs on the sample shares it (M6, E1, E2, E7)."""
    q = number(event, "sampling_probability", highest=1.0)
    inside = events.NOT_ON_A_SAMPLE
    if relation is not events.ADD_OR_REMOVE:
        # A guarantee about replacing or blanking a record says nothing of leaving it out.
        inside |= events.STATED
    release = _together(event, relation, inside)
    if release is None or q == 0.0:
        return ()
    if q == 1.0:
        return convert(event.event, relation)
    return sampling.PoissonSampled(release, q)


def _without_replacement(event: Any, relation: NeighbouringRelation) -> events.Found:
    """Convert a uniform subset; under zero-out a blank is drawn like a record (S6, E2)."""
    size = whole(event, "source_dataset_size", least=1)
    batch = whole(event, "sample_size")
    if batch > size:
        raise Refused(event, "sample_size must be at most source_dataset_size")
    if relation is events.ADD_OR_REMOVE:
        raise Refused(
            event,
            "a sample of fixed size changes in more than one record when one is added or removed;"
            " the guarantee is under REPLACE_ONE or REPLACE_SPECIAL",
        )
    inside = events.NOT_ON_A_SAMPLE | (events.STATED if relation is ZERO_OUT else set())
    release = _together(event, REPLACE_ONE, inside)
    if release is None or batch == 0:
        return ()
    if relation is REPLACE_ONE and isinstance(release, Gaussian) and release.sensitivity == 1.0:
        noise = release.noise_multiplier
        return sampling.FixedSizeSampled(noise, batch_size=batch, dataset_size=size)
    return SampledReplacement(release, ratio_up(batch, size), relation=relation)


def _with_replacement(event: Any, relation: NeighbouringRelation) -> events.Found:
    """Convert independent draws for every place of the sample (S7, S8, E5)."""
    size = whole(event, "source_dataset_size", least=1)
    batch = whole(event, "sample_size")
    if relation is ZERO_OUT:
        raise Refused(event, "the theorems are under ADD_OR_REMOVE_ONE and REPLACE_ONE")
    release = _together(event, relation, events.NOT_ON_A_SAMPLE)
    if release is None or batch == 0:
        return ()
    if not (isinstance(release, Gaussian) and release.sensitivity == 1.0):
        raise Refused(event, "the theorems are for Gaussian noise, composed or not")
    return sampling.WithReplacementSampled(
        release.noise_multiplier, batch_size=batch, dataset_size=size, relation=relation
    )


def _random_allocation(event: Any, relation: NeighbouringRelation) -> events.Found:
    """Convert runs of which every record picks some, uniformly (S4, S5, S9, S23)."""
    picked, steps = whole(event, "num_selected"), whole(event, "num_steps", least=1)
    if picked > steps:
        raise Refused(event, "num_selected must be at most num_steps")
    if relation is REPLACE_ONE:
        raise Refused(event, "the theorems are under ADD_OR_REMOVE_ONE and REPLACE_SPECIAL")
    inside = events.NOT_ON_A_SAMPLE | (events.STATED if relation is ZERO_OUT else set())
    release = _together(event, relation, inside)
    if release is None or picked == 0:
        return ()
    if release == events.no_noise(relation):
        return release  # what is released without noise tells which runs the record was in
    block = steps // picked
    one: Mechanism
    if isinstance(release, Gaussian) and release.sensitivity == 1.0:
        one = sampling.Allocated(release.noise_multiplier, steps=block, relation=relation)
    else:
        one = sampling.AllocatedMechanism(release, steps=block)
    return ((one, picked),)


def _repeat_and_select(event: Any, relation: NeighbouringRelation) -> events.Found:
    """Convert the best of K runs, K negative binomial or Poisson (P4 to P6)."""
    mean, shape = number(event, "mean"), number(event, "shape")
    parts = convert(event.event, relation)
    if shape < math.inf and mean < 1.0:
        raise Refused(event, "mean must be at least 1: the distribution is truncated to K >= 1")
    if not parts or mean == 0.0:
        return ()
    if (shape < math.inf and mean == 1.0) or (events.no_noise(relation), 1) in parts:
        return parts
    base = parts[0][0] if len(parts) == 1 and parts[0][1] == 1 else Composition(parts)
    if shape == math.inf:
        return BestOfPoissonRuns(base, mean)
    gamma = BestOfRuns.with_mean(base, mean, eta=shape).stopping_probability
    # The search ends below the mean; a smaller γ makes more runs, and costs more.
    while not (mean_runs(gamma, shape) * (1.0 - 2.0**-44 * (1.0 + shape)) >= mean):
        gamma *= 1.0 - 2.0**-36
        if gamma == 0.0:
            raise Refused(event, "mean is too large")
    return BestOfRuns(base, gamma, eta=shape)


def _together(
    event: Any, relation: NeighbouringRelation, inside: frozenset[str] | set[str]
) -> Mechanism | None:
    """Return what runs on one sample as one release; None when it releases nothing."""
    events.refuse_inside(event, event.event, inside)
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


CONVERTED = events.RELEASES | {
    "ComposedDpEvent": (_composed, "events"),
    "SelfComposedDpEvent": (_self_composed, "event count"),
    "PoissonSampledDpEvent": (_poisson_sampled, "sampling_probability event"),
    "SampledWithoutReplacementDpEvent": (
        _without_replacement,
        "source_dataset_size sample_size event",
    ),
    "SampledWithReplacementDpEvent": (_with_replacement, "source_dataset_size sample_size event"),
    "RandomAllocationDpEvent": (_random_allocation, "event num_selected num_steps"),
    "RepeatAndSelectDpEvent": (_repeat_and_select, "event mean shape"),
}
