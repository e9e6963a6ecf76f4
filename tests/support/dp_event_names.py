"""dp-accounting's events under short names, and our account of them.

Skips the module that imports it where dp-accounting is not installed.
"""

import pytest

import accountant as ac

attr = pytest.importorskip("attr")
dp = pytest.importorskip("dp_accounting")
events = pytest.importorskip("dp_accounting.dp_event")
pytest.importorskip("dp_accounting.pld")
from accountant.adapters import dp_events as adapter  # noqa: E402

AddRemove = dp.NeighboringRelation.ADD_OR_REMOVE_ONE
Replace = dp.NeighboringRelation.REPLACE_ONE
Special = dp.NeighboringRelation.REPLACE_SPECIAL
ALL = (AddRemove, Replace, Special)
OURS = {
    AddRemove: ac.NeighbouringRelation.ADD_OR_REMOVE,
    Replace: ac.NeighbouringRelation.REPLACE_ONE,
    Special: ac.NeighbouringRelation.ZERO_OUT,
}

G, L, DL = events.GaussianDpEvent, events.LaplaceDpEvent, events.DiscreteLaplaceDpEvent
Times, Composed = events.SelfComposedDpEvent, events.ComposedDpEvent
Poisson = events.PoissonSampledDpEvent
Without = events.SampledWithoutReplacementDpEvent
With = events.SampledWithReplacementDpEvent
Tree = events.SingleEpochTreeAggregationDpEvent
Best, RR = events.RepeatAndSelectDpEvent, events.RandomizedResponseDpEvent
Mixture, Truncated = events.MixtureOfGaussiansDpEvent, events.TruncatedSubsampledGaussianDpEvent
ZCDP = events.ZCDpEvent


def newest(name, **fields):
    """Return an event type, written out where the dp-accounting installed is older than it.

    A field with the value None has that default; all others must be given.
    """
    found = getattr(events, name, None)
    if found is None:
        fields = {k: attr.ib() if v is attr.NOTHING else attr.ib(v) for k, v in fields.items()}
        found = attr.make_class(name, fields, bases=(events.DpEvent,), frozen=True)
        found.__module__ = "dp_accounting.dp_event"
    return found


NEEDED = attr.NOTHING
Allocated = newest("RandomAllocationDpEvent", event=NEEDED, num_selected=NEEDED, num_steps=NEEDED)
DiscreteG = newest("DiscreteGaussianDpEvent", sigma=NEEDED, sensitivity=1.0, dimension=None)
Stated = newest("EpsilonDeltaDpEvent", epsilon=NEEDED, delta=NEEDED)
Exponential = newest("ExponentialMechanismDpEvent", epsilon=NEEDED)
Flip = newest("PermuteAndFlipDpEvent", epsilon=NEEDED)
NEWEST = (Allocated, DiscreteG, Stated, Exponential, Flip)

DELTA = 1e-5


def exact(event, relation=AddRemove, count=1):
    return adapter.ExactAccountant(relation).compose(event, count)


def mechanism(event, relation=AddRemove):
    return adapter.composition(event, relation)


def refusal(event, relation=AddRemove):
    found = adapter.ExactAccountant(relation)._maybe_compose(event, 1, False)
    return None if found is None else found.error_message
