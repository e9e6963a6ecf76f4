"""The history and state that opacus reads and writes, beside the ledger that holds all releases."""

import json
import math

import pytest

import accountant as ac
from accountant.ledger import Accountant, Budget
from support.opacus_runs import DELTA, NOISE, QUIET, adapter
from support.refusals import refused

pytestmark = QUIET


def recorded(*rows):
    made = adapter.ExactAccountant()
    made.history = rows
    return made


def test_states_round_trip_and_are_refused_when_they_do_not_fit():
    made = recorded((1.0, 0.1, 5), (2.0, 0.1, 3))
    state = made.state_dict()
    fresh = adapter.ExactAccountant()
    fresh.load_state_dict(state)
    assert fresh.history == made.history == [(1.0, 0.1, 5), (2.0, 0.1, 3)]
    assert len(fresh) == 8
    for damaged in (
        None,
        {},
        {"history": []},
        state | {"mechanism": "rdp"},
        state | {"history": [(1.0, 0.1, 5)]},
        state | {"ledger": state["ledger"].replace("0.1", "0.2")},
    ):
        with pytest.raises(ValueError, match=r"state_dict|ledger"):
            adapter.ExactAccountant().load_state_dict(damaged)


@pytest.mark.parametrize(
    ("rows", "fits"),
    [
        ([(1.0, 0.1, 5)], True),
        ([(1.0, 0.1, 5), (2.0, 0.1, 3)], True),
        ([(1.0, 0.1, 5), (2.0, 0.1, 4)], False),
        ([(1.0, 0.1, 4), (2.0, 0.1, 1)], False),
        ([(1.0, 0.2, 1)], False),
        ([(1.0, 0.1, 5), (2.0, 0.1, 3), (1.0, 0.1, 1)], False),
    ],
)
def test_going_back_to_a_checkpoint_forgets_nothing(rows, fits):
    state = recorded((1.0, 0.1, 5), (2.0, 0.1, 3)).state_dict()
    made = recorded(*rows)
    if fits:
        made.load_state_dict(state)
        assert len(made) == 8
    else:
        refused(ValueError, "What was released stays released", made.load_state_dict, state)
        assert made.history == rows


def test_a_state_does_not_replace_a_budget():
    state = recorded((2.0, 0.01, 5)).state_dict()
    made = adapter.ExactAccountant()
    made.ledger = Accountant(Budget(1.0, 1e-5))
    refused(ac.DomainError, "must have the budget", made.load_state_dict, state)
    assert len(made) == 0
    made.step(noise_multiplier=2.0, sample_rate=0.01)
    fresh = adapter.ExactAccountant()
    fresh.load_state_dict(made.state_dict())
    assert fresh.ledger.budget == Budget(1.0, 1e-5)
    made.load_state_dict(made.state_dict())


def test_history_can_be_assigned_as_opacus_does_and_stays_on_failure():
    made = recorded((1.0, 0.1, 5))
    with pytest.raises(ac.DomainError, match="sampling_probability"):
        made.history = [(1.0, 0.1, 1), (1.0, 1.1, 1)]
    assert made.history == [(1.0, 0.1, 5)]


def test_no_noise_is_no_privacy():
    made = recorded((0.0, 0.01, 1))
    assert made.history == [(0.0, 0.01, 1)]
    assert made.get_epsilon(DELTA) == math.inf
    refused(ac.DomainError, "noise_multiplier", made.step, noise_multiplier=-1.0, sample_rate=0.1)
    with pytest.raises(ac.DomainError, match="noise_multiplier"):
        made.step(noise_multiplier=math.nan, sample_rate=0.1)


def test_options_of_their_numerics_are_ignored_and_others_refused():
    made = recorded((1.0, 0.1, 5))
    assert made.get_epsilon(DELTA, alphas=[2.0]) == made.get_epsilon(DELTA)
    refused(ac.UnsupportedError, "poisson", made.get_epsilon, DELTA, poisson=False)


# Other releases on the same records, charged to the engine's ledger.


def with_a_count():
    engine_side = adapter.ExactAccountant()
    for _ in range(3):
        engine_side.step(noise_multiplier=NOISE, sample_rate=0.1)
    engine_side.ledger.compose(ac.Laplace(2.0), label="a count")
    engine_side.step(noise_multiplier=NOISE, sample_rate=0.1)
    return engine_side


def test_other_releases_in_the_ledger_are_counted_and_kept():
    found = with_a_count()
    assert len(found) == 5
    whole = 4 * ac.PoissonSampled(ac.Gaussian(NOISE), 0.1) + ac.Laplace(2.0)
    assert found.get_epsilon(DELTA) == whole.epsilon(DELTA)
    with pytest.raises(ac.UnsupportedError, match=r"Laplace\(2.0\).*ledger.history"):
        found.history  # noqa: B018
    again = adapter.ExactAccountant()
    again.load_state_dict(json.loads(json.dumps(found.state_dict())))
    assert again.ledger.history == found.ledger.history
    again.step(noise_multiplier=NOISE, sample_rate=0.1)
    refused(ac.DomainError, "must continue the 6 steps", again.load_state_dict, found.state_dict())
    lie = found.state_dict() | {"history": [(NOISE, 0.1, 4)]}
    refused(ac.DomainError, "equal to its ledger", adapter.ExactAccountant().load_state_dict, lie)


@pytest.mark.parametrize(
    "release",
    [
        ac.PoissonSampled(ac.Gaussian(NOISE, sensitivity=3.0), 0.1),
        ac.PoissonSampled(ac.Laplace(NOISE), 0.1),
        ac.Gaussian(NOISE),
    ],
    ids=repr,
)
def test_what_looks_like_a_step_and_is_none_has_no_row(release):
    found = adapter.ExactAccountant()
    found.ledger.compose(release)
    with pytest.raises(ac.UnsupportedError, match="cannot say"):
        found.history  # noqa: B018
    assert found.state_dict()["history"] is None
