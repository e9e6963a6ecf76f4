"""The accountant itself: what it records, what it refuses, and the numbers it answers with."""

import copy
import math
import os
import pickle
import threading
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accountant as ac
from accountant import mechanisms as m
from accountant import sampling
from accountant.composition import Composition, parallel
from accountant.errors import (
    AccountantError,
    ArgumentTypeError,
    BudgetExceeded,
    DomainError,
    UnsupportedError,
)
from accountant.ledger import Accountant, Budget, Entry, IndividualFilter, Odometer, register
from accountant.relations import NeighbouringRelation
from accountant.sampling.poisson import PoissonSampled
from toy_mechanisms import Bag, Coin, Noise

REPLACE = NeighbouringRelation.REPLACE_ONE
register(Bag)
register(Coin)
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


def test_a_clock_that_goes_backwards_changes_no_order():
    ledger = Accountant()
    for second in (5.0, 1.0, 3.0):
        ledger.compose(Noise(1.0), time=second)
    assert [e.time for e in ledger.history] == [5.0, 1.0, 3.0]
    assert Accountant.from_json(ledger.to_json()).history == ledger.history


# Refusals: nothing is recorded

BAD = [
    {"count": 0},
    {"count": -1},
    {"count": 1.0},
    {"count": True},
    {"count": "1"},
    {"count": math.nan},
    {"count": None},
    {"count": 2**53 + 1},
    {"count": [1, 2]},
    {"mechanism": "Gaussian"},
    {"mechanism": None},
    {"mechanism": m.Gaussian},
    {"mechanism": m.Gaussian(1.0, relation=REPLACE)},
    {"label": 3},
    {"label": b"x"},
    {"time": "now"},
    {"time": True},
    {"time": math.nan},
    {"time": math.inf},
    {"time": 10**400},
]


@pytest.mark.parametrize("bad", BAD, ids=repr)
@pytest.mark.parametrize("budget", [None, Budget(5.0, 1e-5)], ids=["free", "budgeted"])
def test_bad_input_records_nothing(bad, budget):
    ledger = Accountant(budget)
    ledger.compose(m.Gaussian(10.0), 2, label="first")
    before = ledger.to_json()
    with pytest.raises(AccountantError):
        ledger.compose(**({"mechanism": m.Gaussian(10.0)} | bad))
    assert ledger.to_json() == before


@pytest.mark.parametrize(
    "bad",
    [
        {"noise_multiplier": 0.0},
        {"noise_multiplier": -1.0},
        {"noise_multiplier": math.nan},
        {"noise_multiplier": "1"},
        {"noise_multiplier": True},
        {"sampling_probability": 1.1},
        {"sampling_probability": -0.1},
        {"sampling_probability": math.nan},
        {"sampling_probability": None},
        {"sampling_probability": True},
        {"count": 0.5},
    ],
    ids=repr,
)
def test_bad_steps_record_nothing(bad):
    ledger = Accountant()
    with pytest.raises(AccountantError):
        ledger.step(**({"noise_multiplier": 1.0, "sampling_probability": 0.1} | bad))
    assert len(ledger) == 0


def test_unhashable_mechanisms_are_refused():
    with pytest.raises(ArgumentTypeError, match="hashable"):
        Accountant().compose(Bag(numbers=[1.0]))


def test_totals_beyond_exact_doubles_are_refused():
    ledger = Accountant()
    ledger.compose(Noise(1.0), 2**53)
    with pytest.raises(DomainError, match=r"2\*\*53"):
        ledger.compose(Noise(1.0))
    assert len(ledger) == 2**53


@pytest.mark.parametrize("value", [-1e-9, 1.0, math.nan, "1e-5", None, True, [1e-5, 1e-6]])
def test_bad_questions(value):
    with pytest.raises(AccountantError):
        Accountant().epsilon(value)


def test_copies_are_refused():
    ledger = Accountant()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(UnsupportedError):
            attempt(ledger)


def test_a_budget_of_the_wrong_type():
    with pytest.raises(ArgumentTypeError):
        Accountant((1.0, 1e-5))


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


def test_merging_each_into_the_other_at_once_does_not_hang():
    ledgers = Accountant(), Accountant()
    for ledger in ledgers:
        ledger.compose(Noise(1.0))
    threads = [
        threading.Thread(target=ledgers[i].merge, args=(ledgers[1 - i],), daemon=True)
        for i in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10.0)
    assert not any(thread.is_alive() for thread in threads)
    assert sorted(map(len, ledgers)) in ([2, 3], [2, 2])


# Threads


def test_threads_hammering_one_accountant_lose_nothing():
    ledger = Accountant()

    def work(k):
        for _ in range(2000):
            ledger.step(noise_multiplier=1.0 + k, sampling_probability=0.01, label=str(k))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(count for _, count in ledger.counts) == [2000] * 8
    assert sum(item.count for item in ledger.history) == 16_000


@pytest.mark.parametrize("kind", ["renyi", "gaussian", "approximate", "non-adaptive"])
def test_threads_never_overspend_a_budget(kind):
    mechanism = m.PureDP(0.01) if kind == "approximate" else m.Gaussian(50.0)
    budget = Budget(1.0, 1e-5, filter=kind)
    allowed = Accountant(budget).affordable(mechanism)
    ledger = Accountant(budget)

    def work():
        try:
            while True:
                ledger.compose(mechanism)
        except BudgetExceeded:
            pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger) == allowed > 20


def test_threads_charging_individual_budgets():
    watch = IndividualFilter(Budget(1.0, 1e-5, orders=20.0), 10)
    taken = []

    def work():
        mine = np.zeros(10, dtype=int)
        for _ in range(200):
            mine += watch.charge(watch.capacities[0] / 100.5)
        taken.append(mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sum(taken) == 100).all()


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
    from accountant.ledger import numbers

    def limited(counts, delta):
        if sum(count for _, count in counts) > 3:
            raise ac.PrecisionError("no certified number")
        return 0.1 * sum(count for _, count in counts)

    monkeypatch.setattr(numbers, "epsilon", limited)
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


def test_a_million_steps_under_a_budget_are_quick():
    ledger = Accountant(Budget(8.0, 1e-5))
    start = time.process_time()
    for _ in range(20_000):
        ledger.step(noise_multiplier=50.0, sampling_probability=0.001)
    assert (time.process_time() - start) / 20_000 < 100e-6


# ε over the steps of a schedule


def test_each_step_of_a_schedule_is_close_to_the_best_order():
    ledger = Accountant()
    orders = 1.0 + np.geomspace(0.5, 100.0, 200)
    sums, best = np.zeros_like(orders), []
    for k in range(40):
        ledger.step(noise_multiplier=1.0 + 0.05 * k, sampling_probability=0.02, count=5)
        sums += ac.get_rdp(0.02, 1.0 + 0.05 * k, 5, orders)
        by_renyi = sums + np.log1p(-1 / orders) - np.log(1e-5 * orders) / (orders - 1)
        best.append(by_renyi.min())
    curve = ledger.epsilon_over_steps(1e-5)
    assert curve.shape == (200,)
    assert (np.diff(curve) >= 0).all()
    assert (curve[4::5] <= 1.01 * np.array(best)).all()


def test_checkpoints_bring_the_curve_down_to_the_exact_composition():
    ledger = Accountant()
    ledger.step(noise_multiplier=2.0, sampling_probability=1.0, count=30)
    ledger.step(noise_multiplier=4.0, sampling_probability=1.0, count=10)
    curve = ledger.epsilon_over_steps(1e-5)
    sharper = ledger.epsilon_over_steps(1e-5, checkpoints=4)
    assert (np.diff(sharper) >= 0).all()
    assert (sharper <= curve).all()
    for steps in range(1, 41):
        sigma = 1.0 / math.sqrt(min(steps, 30) / 4.0 + max(steps - 30, 0) / 16.0)
        truth = ac.epsilon_bounds(1.0, sigma, 1, 1e-5)
        assert truth.lower * (1 - 1e-9) <= sharper[steps - 1]
        if steps % 10 == 0:
            assert sharper[steps - 1] <= truth.upper * (1 + 1e-5)


@pytest.mark.parametrize("bad", [-1, 1.0, True, "3", [1]])
def test_bad_checkpoints(bad):
    with pytest.raises(AccountantError):
        Accountant().epsilon_over_steps(1e-5, checkpoints=bad)


def test_ten_thousand_equal_steps_in_a_second():
    ledger = Accountant()
    ledger.step(noise_multiplier=1.0, sampling_probability=0.01, count=10_000)
    seconds = []  # of processor time: a busy machine is not slower
    for _ in range(3):
        start = time.process_time()
        curve = ledger.epsilon_over_steps(1e-5)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 1.0
    assert (np.diff(curve) >= 0).all()
    assert curve[-1] == ledger.epsilon(1e-5)
    checked = np.unique(np.geomspace(1, 10_000, 60).astype(int))
    truth = ac.epsilon_bounds(0.01, 1.0, checked, 1e-5)
    assert (truth.lower <= curve[checked - 1]).all()
    assert (curve[checked - 1] <= 1.08 * truth.upper).all()


def test_ten_thousand_different_steps_in_a_second():
    from accountant.ledger import schedule

    ledger = Accountant()
    for sigma in np.geomspace(0.8, 3.0, 10_000):
        ledger.step(noise_multiplier=float(sigma), sampling_probability=0.01)
    seconds = []  # of processor time: a busy machine is not slower
    for _ in range(3):
        start = time.process_time()
        by_renyi = schedule.pointwise(ledger.history, 1e-5)
        seconds.append(time.process_time() - start)
    start = time.process_time()
    curve = ledger.epsilon_over_steps(1e-5)
    assert time.process_time() - start < 12.0  # exact: both directions on a busy machine
    assert (curve <= by_renyi).all()
    assert (np.diff(curve) >= 0).all()
    assert curve.shape == (10_000,)
    assert min(seconds) < 1.0
    readings = Odometer(1e-5).over_steps(ledger)
    assert (readings >= curve).all()
    # Rounded parameters cost little: against the unrounded Rényi bound at the end.
    sigmas = np.geomspace(0.8, 3.0, 10_000)
    best = min(
        ac.get_rdp(0.01, sigmas, 1, a).sum() + math.log1p(-1 / a) - math.log(1e-5 * a) / (a - 1)
        for a in (5.0, 6.0, 7.0)
    )
    assert curve[-1] <= 1.01 * best


def test_each_step_of_a_schedule_of_gaussians_is_exact():
    ledger = Accountant()
    sigmas = [1.0 + 0.004 * k for k in range(500)]
    for sigma in sigmas:
        ledger.step(noise_multiplier=sigma, sampling_probability=0.02)
    ledger.step(noise_multiplier=8.0, sampling_probability=1.0, count=3)
    curve = ledger.epsilon_over_steps(1e-5)
    assert curve.shape == (503,)
    assert (np.diff(curve) >= 0).all()
    step = [ac.PoissonSampled(ac.Gaussian(sigma), 0.02) for sigma in sigmas]
    for length in (3, 50, 400, 500, 503):
        parts = [(m, 1) for m in step[: min(length, 500)]]
        parts += [(ac.Gaussian(8.0), length - 500)] if length > 500 else []
        truth = ac.Composition(tuple(parts)).epsilon_bounds(1e-5)
        assert truth.lower <= curve[length - 1]
        if length >= 400:
            assert curve[length - 1] <= truth.upper * (1.0 + 1e-9)


@given(
    st.lists(
        st.tuples(st.floats(0.3, 30.0), st.floats(1e-6, 1.0)), min_size=1, max_size=60, unique=True
    ),
    st.integers(1, 20),
)
def test_rounded_parameters_never_cost_less(settings, limit):
    from accountant.ledger import schedule

    rounded = schedule._rounded([(q, sigma) for sigma, q in settings], limit)
    for (q, sigma), (up, down) in rounded.items():
        assert q <= up <= 1.0
        assert 0.0 < down <= sigma


def test_too_many_steps_for_one_number_each():
    ledger = Accountant()
    ledger.compose(Noise(1.0), 10**9)
    with pytest.raises(DomainError, match="releases"):
        ledger.epsilon_over_steps(1e-5)


# Round trips

SHIPPED = [
    m.Gaussian(1.1),
    m.Gaussian(math.inf),
    m.Gaussian(1.5, sensitivity=0.1, relation=REPLACE),
    m.GDP(0.3),
    m.Laplace(2.0),
    m.DiscreteGaussian(3.0),
    m.DiscreteGaussianVector(3.0),
    PoissonSampled(m.DiscreteGaussianVector(3.0), 0.1),
    m.DiscreteLaplace(2.0),
    m.PureDP(0.5),
    m.ApproximateDP(0.5, 1e-7),
    m.RandomizedResponse(1.0, k=4),
    m.ZCDP(0.1),
    m.TruncatedCDP(0.1, 20.0),
    m.MixtureOfGaussians(2.0, (0.0, 1.0), (0.5, 0.5)),
    m.DominatingPMFs((0.25, 0.75), (0.75, 0.25)),
    m.ExponentialMechanism(0.4),
    m.BestOfRuns(m.Gaussian(4.0), 0.1, 0.0),
    m.BestOfPoissonRuns(m.Laplace(4.0), 3.0),
    m.SmoothSensitivityGaussian(5.0, 0.01),
    m.ShuffledResponses(1.0, 1000, 4),
    PoissonSampled(m.Gaussian(0.1 + 0.2), 1 / 3),
    PoissonSampled(m.Laplace(0.7), 1e-9),
    Composition(((m.Gaussian(2.0), 3), (m.Laplace(1.0), 1))),
    parallel(m.Gaussian(2.0), 5 * m.Laplace(1.0)),
]


@pytest.mark.parametrize("mechanism", SHIPPED, ids=repr)
def test_every_shipped_mechanism_survives_a_file(mechanism, tmp_path):
    ledger = Accountant()
    ledger.compose(mechanism, 7, label="x")
    ledger.save(tmp_path / "ledger.json")
    again = Accountant.load(tmp_path / "ledger.json")
    assert again.history == ledger.history
    assert type(again.history[0].mechanism) is type(mechanism)
    assert repr(again.history[0].mechanism) == repr(mechanism)


SAMPLED = [
    sampling.FixedSizeSampled,
    sampling.WithReplacementSampled,
    sampling.TruncatedPoissonSampled,
    sampling.Allocated,
]


def test_every_shipped_mechanism_is_tried_or_cannot_be_written():
    from accountant.ledger import schema

    tried = {type(mechanism).__name__ for mechanism in SHIPPED}
    unwritable = {"RenyiCurve", "LossDistribution"}  # they hold functions
    further = {"AboveThreshold", "ReportNoisyMax", "ObjectivePerturbation"}
    further |= {kind.__name__ for kind in SAMPLED}
    assert set(schema.names()) - {"Bag", "Coin", "Noise"} <= tried | unwritable | further


def test_functions_cannot_be_written_and_the_message_says_which_record():
    ledger = Accountant()
    ledger.compose(Noise(1.0))
    ledger.compose(m.RenyiCurve(lambda order: 0.1 * order))
    with pytest.raises(UnsupportedError, match="record 1"):
        ledger.to_json()


def test_unregistered_classes_are_refused_at_writing():
    class Coin2(Coin):
        pass

    ledger = Accountant()
    ledger.compose(Coin2(1.0))
    with pytest.raises(UnsupportedError, match="register"):
        ledger.to_json()
    with pytest.raises(ArgumentTypeError):
        register(3)
    with pytest.raises(DomainError, match="taken"):
        register(type("Gaussian", (Coin,), {"__dataclass_params__": Coin.__dataclass_params__}))


anything = st.floats(allow_nan=False) | st.sampled_from([math.inf, -math.inf, -0.0, 5e-324])
bags = st.builds(
    Bag,
    numbers=st.lists(anything, max_size=4).map(tuple),
    inner=st.none() | st.floats(0.1, 9.0).map(m.Gaussian) | st.floats(0.0, 9.0).map(Coin),
    flag=st.booleans(),
    name=st.text(max_size=8),
    whole=st.integers(-(10**30), 10**30),
)
entries = st.tuples(
    bags,
    st.integers(1, 10**6),
    st.none() | st.text(max_size=10),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
)


@given(st.lists(entries, max_size=6))
def test_any_values_survive_json(items):
    ledger = Accountant()
    for item in items:
        ledger.compose(*item[:3], time=item[3])
    again = Accountant.from_json(ledger.to_json())
    assert again.history == ledger.history
    assert again.to_json() == ledger.to_json()
    for before, after in zip(ledger.history, again.history, strict=True):
        # -0.0 == 0.0, but their bits differ.
        assert repr(before.mechanism) == repr(after.mechanism)


def test_nan_survives_as_nan():
    ledger = Accountant()
    ledger.compose(Bag(numbers=(math.nan,)))
    value = Accountant.from_json(ledger.to_json()).history[0].mechanism.numbers[0]
    assert math.isnan(value)


def test_entries_are_frozen():
    item = Entry(Noise(1.0), 2)
    with pytest.raises(AttributeError):
        item.count = 3
