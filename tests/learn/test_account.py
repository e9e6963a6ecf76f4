"""What a training run says it cost: everything its ledger holds, and its own part separately."""

import copy
import math
import pickle
import threading

import numpy as np
import pytest

import accountant as ac
from accountant._basics.display import text_up
from accountant.errors import BudgetExceeded, UnsupportedError
from accountant.learn import LogisticRegression
from accountant.ledger import Budget
from accountant.relations import NeighbouringRelation
from support.dp_sgd_runs import Untouchable, train

DELTA = 1e-5
STEP = ac.PoissonSampled(ac.Gaussian(1.0), 0.125)


@pytest.mark.parametrize("earlier", [STEP, ac.Gaussian(3.0), ac.Laplace(2.0)], ids=repr)
def test_a_run_on_a_ledger_that_was_charged_before_reports_all_of_it(earlier):
    ledger = ac.Accountant()
    ledger.compose(earlier, 3)
    result = train(ledger=ledger, steps=4, rng=None)
    assert result.ledger is ledger
    assert result.epsilon == ledger.epsilon(DELTA) == result.ledger.epsilon(DELTA)
    assert result.run_epsilon == ac.get_epsilon(0.125, 1.0, 4, DELTA) < result.epsilon
    whole, alone = result.statement.split("This run alone: ")
    assert f"ε = {text_up(result.epsilon)} " in whole
    assert f"ε = {text_up(result.run_epsilon)} " in alone


def test_a_second_run_reports_both():
    ledger = ac.Accountant()
    first, second = train(ledger=ledger, rng=None), train(ledger=ledger, rng=None)
    assert first.epsilon == first.run_epsilon == second.run_epsilon
    assert second.epsilon == ac.get_epsilon(0.125, 1.0, 10, DELTA) == ledger.epsilon(DELTA)
    assert "This run alone" not in first.statement
    # The rows of the history are of the run, and say so.
    assert [row["run_epsilon"] for row in second.history.public] == [
        ac.get_epsilon(0.125, 1.0, k, DELTA) for k in range(1, 6)
    ]


def test_a_run_of_its_own_has_a_ledger_of_its_own():
    result = train(steps=4)
    assert [(entry.mechanism, entry.count) for entry in result.ledger.history] == [(STEP, 4)]
    assert result.ledger.history[0].label == result.plan.run
    assert result.ledger.deltas == (DELTA,)
    assert train(steps=4).ledger is not result.ledger
    full = train(steps=4, sampler="full", noise="discrete_gaussian", expected_batch_size=400)
    assert full.ledger.counts == ((ac.DiscreteGaussianVector(1.0), 4),)


def test_what_others_charge_during_a_run_counts_too():
    ledger = ac.Accountant()

    def other(progress):
        ledger.compose(ac.Gaussian(4.0))

    result = train(ledger=ledger, steps=3, callbacks=[other])
    assert result.epsilon == (3 * STEP + 3 * ac.Gaussian(4.0)).epsilon(DELTA)
    assert result.run_epsilon == ac.get_epsilon(0.125, 1.0, 3, DELTA)


def test_two_runs_at_once_share_one_budget():
    ledger = ac.Accountant(Budget(8.0, DELTA))
    allowed = ledger.affordable(STEP)
    steps = allowed * 3 // 4
    results, apart = [], threading.Barrier(2)

    def work():
        # Both plans fit before either has made a step.
        results.append(train(ledger=ledger, steps=steps, on_plan=lambda plan: apart.wait()))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger) == sum(result.steps for result in results) == allowed < 2 * steps
    for result in results:
        assert sum(e.count for e in ledger.history if e.label == result.plan.run) == result.steps
        assert result.run_epsilon <= result.epsilon <= 8.0


def test_resumed_on_an_accountant_a_run_is_counted_once(tmp_path):
    place = tmp_path / "c"
    ledger = ac.Accountant()
    train(ledger=ledger, steps=6, checkpoint=place, callbacks=[lambda p: p.step == 3])
    result = train(ledger=ledger, steps=6, checkpoint=place)
    assert len(ledger) == result.steps == 6
    assert result.epsilon == result.run_epsilon == ac.get_epsilon(0.125, 1.0, 6, DELTA)
    # Another ledger is told of all steps, and says what it held besides.
    second = ac.Accountant()
    second.compose(ac.Gaussian(3.0))
    result = train(ledger=second, steps=6, checkpoint=place)
    assert result.epsilon == (6 * STEP + ac.Gaussian(3.0)).epsilon(DELTA)


@pytest.mark.long
@pytest.mark.parametrize("rule", ["renyi", "non-adaptive"])
def test_a_run_resumes_within_the_budget_it_has_spent_from(tmp_path, rule):
    # The plan needs the whole budget: its own first steps are not asked for again.
    whole = train(ledger=ac.Accountant(Budget(4.0, DELTA, filter=rule)), steps=None)
    ledger = ac.Accountant(Budget(4.0, DELTA, filter=rule))
    place = tmp_path / "c"
    for given in ({"callbacks": [lambda progress: progress.step == 3]}, {}):
        result = train(ledger=ledger, steps=None, checkpoint=place, **given)
    assert result.plan.steps == result.steps == whole.steps == len(ledger)
    assert np.array_equal(result.parameters, whole.parameters)
    with pytest.raises(BudgetExceeded):
        train(Untouchable(5), ledger=ledger, steps=1)


@pytest.mark.long
def test_a_run_is_not_resumed_on_a_budget_that_its_first_steps_exceed(tmp_path):
    place = tmp_path / "c"
    train(steps=6, checkpoint=place, callbacks=[lambda progress: progress.step == 3])
    ledger = ac.Accountant(Budget(1.0, DELTA))
    with pytest.raises(BudgetExceeded):
        train(Untouchable(5), ledger=ledger, steps=6, checkpoint=place)
    assert not len(ledger)


@pytest.mark.long
@pytest.mark.parametrize("rule", ["renyi", "non-adaptive"])
def test_runs_of_several_kinds_on_one_budget_are_composed(rule):
    ledger = ac.Accountant(Budget(8.0, DELTA, filter=rule))
    train(ledger=ledger, steps=4)
    other = train(ledger=ledger, noise_multiplier=2.0, steps=5)
    whole = 4 * STEP + 5 * ac.PoissonSampled(ac.Gaussian(2.0), 0.125)
    assert other.epsilon == whole.epsilon(DELTA) > other.run_epsilon
    third = train(ledger=ledger, noise_multiplier=1.5, steps=None)
    assert third.steps > 0
    assert third.epsilon <= 8.0
    with pytest.raises(BudgetExceeded):
        train(Untouchable(5), ledger=ledger, noise_multiplier=1.5, steps=1)
    with pytest.raises(BudgetExceeded, match=r"not one step .* noise_multiplier="):
        train(Untouchable(5), ledger=ledger, noise_multiplier=1.5, steps=None)


def test_a_ledger_of_another_relation_is_refused_before_any_gradient():
    ledger = ac.Accountant()
    ledger.compose(ac.Gaussian(3.0, relation=NeighbouringRelation.REPLACE_ONE))
    with pytest.raises(UnsupportedError, match="relation"):
        train(Untouchable(5), ledger=ledger)
    assert len(ledger) == 1


def test_what_fails_after_its_charge_stays_charged():
    class Failing(LogisticRegression):
        def add_rows(self, *given):
            if len(ledger) == 2:
                raise MemoryError
            super().add_rows(*given)

    ledger = ac.Accountant()
    with pytest.raises(MemoryError):
        train(Failing(5), ledger=ledger)
    assert ledger.counts == ((STEP, 2),)


@pytest.mark.long
def test_without_noise_the_ledger_says_that_nothing_is_guaranteed():
    ledger = ac.Accountant()
    ledger.compose(ac.Gaussian(3.0))
    for result in (train(noise_multiplier=0.0), train(noise_multiplier=0.0, ledger=ledger)):
        assert result.epsilon == result.run_epsilon == result.ledger.epsilon(DELTA) == math.inf
        assert not result.private
    assert train(noise_multiplier=0.0, steps=0).epsilon == 0.0
    with pytest.raises(BudgetExceeded):
        train(Untouchable(5), noise_multiplier=0.0, ledger=ac.Accountant(Budget(9.0, DELTA)))


def test_where_nothing_can_be_certified_infinity_is_reported():
    ledger = ac.Accountant()
    ledger.compose(ac.ApproximateDP(1.0, delta=1e-3))
    result = train(ledger=ledger, steps=2, rng=None)
    assert result.epsilon == math.inf
    assert result.run_epsilon == ac.get_epsilon(0.125, 1.0, 2, DELTA)
    assert result.statement.startswith("No finite ε is certified at δ = 1e-05")


def test_the_delta_of_a_run_is_noted_in_its_accountant():
    ledger = ac.Accountant()
    train(ledger=ledger, delta=1e-7, steps=2)
    assert ledger.deltas == (1e-7,)
    train(ledger=ledger, delta=1e-6, steps=2)
    assert ledger.deltas == (1e-7, 1e-6)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copied_result_has_a_ledger_that_can_be_asked_and_records_no_more(copied):
    ledger = ac.Accountant(Budget(20.0, DELTA))
    ledger.compose(ac.Gaussian(3.0), label="earlier")
    result = train(ledger=ledger)
    again = copied(result)
    assert again.ledger.history == ledger.history
    assert again.ledger.budget == ledger.budget
    assert again.ledger.deltas == ledger.deltas
    assert again.ledger.epsilon(DELTA) == again.epsilon == result.epsilon
    with pytest.raises(UnsupportedError, match="records no more"):
        train(Untouchable(5), ledger=again.ledger)
    assert result.ledger is ledger
    train(ledger=ledger, steps=1)
    assert len(ledger) == 7
