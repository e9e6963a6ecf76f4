"""The accountant itself: what it records, what it refuses, and the numbers it answers with."""

import copy
import math
import os
import pickle
import tracemalloc

import pytest

import accountant as ac
from accountant import mechanisms as m
from accountant.composition import Composition
from accountant.errors import (
    AccountantError,
    ArgumentTypeError,
    BudgetExceeded,
    UnsupportedError,
)
from accountant.ledger import Accountant, Budget, evaluation, register
from accountant.relations import NeighbouringRelation
from accountant.sampling.poisson import PoissonSampled
from support.toy_mechanisms import Bag, Coin, Noise

REPLACE = NeighbouringRelation.REPLACE_ONE
register(Noise)


# Numbers


@pytest.mark.parametrize(
    ("q", "sigma", "steps", "delta"),
    [(0.01, 1.1, 1000, 1e-5), (1.0, 5.0, 30, 1e-6), (0.5, 2.0, 1, 1e-3), (1e-3, 0.7, 10**6, 1e-9)],
)
def test_repeated_steps_equal_the_one_call_function(q, sigma, steps, delta):
    ledger = Accountant()
    ledger.step(noise_multiplier=sigma, sampling_probability=q, count=steps)
    assert ledger.epsilon(delta) == ac.get_epsilon(q, sigma, steps, delta)
    assert ledger.epsilon_bounds(delta) == ac.epsilon_bounds(q, sigma, steps, delta)
    assert ledger.delta(1.0) == ac.get_delta(q, sigma, steps, 1.0)


def test_interleaved_steps_are_merged():
    ledger = Accountant()
    for k in range(60):
        ledger.step(noise_multiplier=1.0 + k % 2, sampling_probability=0.02, label=str(k % 3))
    together = Accountant()
    together.step(noise_multiplier=1.0, sampling_probability=0.02, count=30)
    together.step(noise_multiplier=2.0, sampling_probability=0.02, count=30)
    assert ledger.epsilon(1e-5) == together.epsilon(1e-5)
    assert len(ledger.history) == 60
    assert len(ledger.counts) == 2


def test_an_empty_ledger_has_spent_nothing():
    ledger = Accountant()
    assert ledger.epsilon(0.0) == ledger.delta(0.0) == 0.0
    assert ledger.relation is None
    assert ledger.history == ()
    assert ledger.epsilon_over_steps(1e-5).shape == (0,)
    assert Accountant.from_json(ledger.to_json()).history == ()


def test_a_mix_is_the_composition():
    ledger = Accountant()
    ledger.compose(m.Gaussian(4.0), 3)
    ledger.compose(m.Laplace(2.0), label="histogram")
    expected = Composition(((m.Gaussian(4.0), 3), (m.Laplace(2.0), 1))).epsilon_bounds(1e-5)
    assert ledger.epsilon_bounds(1e-5) == expected


# History


@pytest.mark.long
def test_a_million_steps_take_the_memory_of_one():
    ledger = Accountant()
    for _ in range(1000):
        ledger.step(noise_multiplier=1.0, sampling_probability=0.01)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(100_000):
        ledger.step(noise_multiplier=1.0, sampling_probability=0.01)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 4096
    assert [item.count for item in ledger.history] == [101_000]


def test_labels_and_times_separate_records():
    ledger = Accountant()
    for label, time_ in (("a", None), ("a", None), ("b", None), ("b", 1.0), ("b", 1), ("a", None)):
        ledger.compose(Noise(1.0), label=label, time=time_)
    assert [(e.count, e.label, e.time) for e in ledger.history] == [
        (2, "a", None),
        (1, "b", None),
        (2, "b", 1.0),
        (1, "a", None),
    ]


# Refusals: nothing is recorded

BAD = {
    "count": (0, -1, 1.0, True, "1", math.nan, None, 2**53 + 1, [1, 2]),
    "mechanism": ("Gaussian", None, m.Gaussian, m.Gaussian(1.0, relation=REPLACE)),
    "label": (3, b"x"),
    "time": ("now", True, math.nan, math.inf, 10**400),
}
BAD_STEPS = {
    "noise_multiplier": (0.0, -1.0, math.nan, "1", True),
    "sampling_probability": (1.1, -0.1, math.nan, None, True),
    "count": (0.5,),
}


def each(bad):
    """One argument that is wrong at a time."""
    found = [{name: value} for name, values in bad.items() for value in values]
    return pytest.mark.parametrize("bad", found, ids=repr)


@each(BAD)
@pytest.mark.parametrize("budget", [None, Budget(5.0, 1e-5)], ids=["free", "budgeted"])
def test_bad_input_records_nothing(bad, budget):
    ledger = Accountant(budget)
    ledger.compose(m.Gaussian(10.0), 2, label="first")
    before = ledger.to_json()
    with pytest.raises(AccountantError):
        ledger.compose(**({"mechanism": m.Gaussian(10.0)} | bad))
    assert ledger.to_json() == before


@each(BAD_STEPS)
def test_bad_steps_record_nothing(bad):
    ledger = Accountant()
    with pytest.raises(AccountantError):
        ledger.step(**({"noise_multiplier": 1.0, "sampling_probability": 0.1} | bad))
    assert len(ledger) == 0


def test_unhashable_mechanisms_are_refused():
    with pytest.raises(ArgumentTypeError, match="hashable"):
        Accountant().compose(Bag(numbers=[1.0]))


@pytest.mark.parametrize("value", [-1e-9, 1.0, math.nan, "1e-5", None, True])
def test_bad_questions(value):
    with pytest.raises(AccountantError):
        Accountant().epsilon(value)


def test_copies_are_refused():
    ledger = Accountant()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(UnsupportedError):
            attempt(ledger)


def test_a_forked_copy_cannot_spend_the_budget_again():
    ledger, free = Accountant(Budget(1.0, 1e-5)), Accountant()
    child = os.fork()
    if child == 0:
        try:
            free.compose(Noise(100.0))
            ledger.compose(Noise(100.0))
        except UnsupportedError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    ledger.compose(Noise(100.0))


# Merging


def test_merge_appends_in_order():
    first, second = Accountant(), Accountant()
    first.compose(Noise(1.0), 2, label="a")
    second.compose(Noise(1.0), 3, label="a")
    second.compose(Coin(0.5), label="b")
    first.merge(second)
    assert [(e.count, e.label) for e in first.history] == [(5, "a"), (1, "b")]
    assert len(second) == 4


def test_merge_is_all_or_nothing():
    budgeted = Accountant(Budget(1.0, 1e-5))
    other = Accountant()
    other.compose(Noise(100.0))
    other.compose(Noise(0.1))
    with pytest.raises(BudgetExceeded):
        budgeted.merge(other)
    mixed = Accountant()
    mixed.compose(Noise(1.0, relation=REPLACE))
    with pytest.raises(UnsupportedError):
        mixed.merge(other)
    assert len(budgeted) == 0
    assert len(mixed) == 1
    for wrong in (mixed, "ledger", None):
        with pytest.raises(AccountantError):
            mixed.merge(wrong)


# The budget whose parameters are fixed in advance


def test_the_non_adaptive_budget_is_the_exact_composition():
    budget = Budget(2.0, 1e-5, filter="non-adaptive")
    ledger = Accountant(budget)
    step = PoissonSampled(m.Gaussian(1.0), 0.01)
    allowed = ac.calibrate_steps(2.0, 1e-5, q=0.01, sigma=1.0)
    assert ledger.affordable(step) == allowed
    for _ in range(allowed):
        ledger.compose(step)
    with pytest.raises(BudgetExceeded):
        ledger.compose(step)
    assert len(ledger) == allowed
    assert ledger.epsilon(1e-5) <= 2.0
    left = ledger.remaining()
    assert left.spent == ledger.epsilon(1e-5)
    assert 0.0 <= left.fraction < 0.01


def test_what_cannot_be_computed_is_not_admitted_by_a_probe(monkeypatch):

    def limited(counts, delta):
        if sum(count for _, count in counts) > 3:
            raise ac.PrecisionError("no certified number")
        return 0.1 * sum(count for _, count in counts)

    monkeypatch.setattr(evaluation, "epsilon", limited)
    ledger = Accountant(Budget(1.0, 1e-5, filter="non-adaptive"))
    assert ledger.affordable(Noise(1.0)) == 3
    for _ in range(3):
        ledger.compose(Noise(1.0))
    with pytest.raises(ac.PrecisionError):
        ledger.compose(Noise(1.0))
    assert len(ledger) == 3


def test_the_renyi_filter_takes_dp_sgd():
    step = PoissonSampled(m.Gaussian(1.0), 0.01)
    exact = ac.calibrate_steps(2.0, 1e-5, q=0.01, sigma=1.0)
    assert 0.55 * exact < Accountant(Budget(2.0, 1e-5)).affordable(step) < exact
    ledger = Accountant(Budget.suited_to(step, 2.0, 1e-5))
    allowed = ledger.affordable(step)
    assert 0.72 * exact < allowed < exact
    ledger.compose(step, allowed)
    assert ledger.epsilon(1e-5) <= 2.0
    with pytest.raises(BudgetExceeded, match="0 would fit"):
        ledger.compose(step)


def test_a_refusal_states_the_total_and_the_limit():
    ledger = Accountant(Budget(3.0, 1e-5, filter="gaussian"))
    ledger.compose(m.Gaussian(2.0))
    with pytest.raises(BudgetExceeded) as refused:
        ledger.compose(m.Gaussian(0.5))
    told = str(refused.value)
    assert "ε would be 10.38, and the limit is 3; 0 would fit; 1 with noise_multiplier=" in told
    assert told.endswith('\nThe filter "gaussian" adds up squared μ: 4.25, and the limit is 0.5171')
    assert ledger.remaining().spent == 0.25


@pytest.mark.long
def test_equal_steps_under_a_budget_are_one_record():
    ledger = Accountant(Budget(8.0, 1e-5))
    for _ in range(20_000):
        ledger.step(noise_multiplier=50.0, sampling_probability=0.001)
    assert [item.count for item in ledger.history] == [20_000]
