"""dp-accounting's events under short names, and our account of them.

Skips the module that imports it where dp-accounting is not installed.
"""

import pytest

import accountant as ac

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

DELTA = 1e-5


def exact(event, relation=AddRemove, count=1):
    return adapter.ExactAccountant(relation).compose(event, count)


def mechanism(event, relation=AddRemove):
    return adapter.composition(event, relation)


def refusal(event, relation=AddRemove):
    found = adapter.ExactAccountant(relation)._maybe_compose(event, 1, False)
    return None if found is None else found.error_message
