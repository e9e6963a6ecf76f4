"""dp-accounting's events and its accountant interface, for JAX Privacy, TF Privacy and others.

:class:`ExactAccountant` goes wherever a ``dp_accounting.PrivacyAccountant`` does;
:func:`composition` turns a tree of events into a mechanism of this package.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import dp_accounting

from accountant import checks
from accountant.adapters._dp_events import NonPrivate, convert
from accountant.adapters._dp_events_releases import Parts, Refused, no_noise
from accountant.bounds import Bounds
from accountant.composition import Composition
from accountant.errors import ArgumentTypeError, UnsupportedError
from accountant.ledger import Accountant
from accountant.mechanisms import Gaussian
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
    except NonPrivate:
        parts = no_noise(relation)
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
        super().__init__(_theirs(self._relation))
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
        except NonPrivate:
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
        if not self._private:
            checks.number(_DELTA, target_delta)
            return math.inf
        return 0.0 if _is_one(target_delta) else self.releases.epsilon(target_delta)

    def get_delta(self, target_epsilon: float) -> float:
        """Return δ at ``target_epsilon`` >= 0, certified never too small."""
        delta = self.releases.delta(target_epsilon)
        return delta if self._private else 1.0

    def get_epsilon_bounds(self, target_delta: float) -> Bounds:
        """Return a certified bracket of ε; its lower end is that of the stated pairs."""
        if not self._private:
            checks.number(_DELTA, target_delta)
            return Bounds(math.inf, math.inf)
        if _is_one(target_delta):
            return Bounds(0.0, 0.0)
        return self.releases.epsilon_bounds(target_delta)


_DELTA = checks.Argument(
    "target_delta",
    "a probability in [0, 1]",
    lambda x: (x >= 0.0) & (x <= 1.0),
    "Choose it well below one over the number of records",
)


def _is_one(delta: float) -> bool:
    return checks.number(_DELTA, delta) == 1.0


def _parts(event: Any, relation: NeighbouringRelation) -> Parts:
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


def _theirs(relation: NeighbouringRelation) -> Any:
    return next(theirs for theirs, ours in _RELATIONS.items() if ours is relation)
