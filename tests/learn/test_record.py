"""What a training run says it cost: everything its ledger holds, and its own part separately."""

import math

import pytest

import accountant as ac
from accountant.display import text_up
from accountant.errors import BudgetExceeded
from accountant.learn import TrainingRecord
from accountant.learn.record import Release
from support.dp_sgd_runs import train

DELTA = 1e-5
STEP = ac.PoissonSampled(ac.Gaussian(1.0), 0.125)


@pytest.mark.parametrize("earlier", [STEP, ac.Gaussian(3.0), ac.Laplace(2.0)], ids=repr)
def test_a_run_on_a_ledger_that_was_charged_before_reports_all_of_it(earlier):
    ledger = ac.Accountant()
    ledger.compose(earlier, 3)
    result = train(ledger=ledger, steps=4, rng=None)
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


def test_what_others_charge_during_a_run_counts_too():
    ledger = ac.Accountant()

    def other(progress):
        ledger.compose(ac.Gaussian(4.0))

    result = train(ledger=ledger, steps=3, callbacks=[other])
    assert result.epsilon == (3 * STEP + 3 * ac.Gaussian(4.0)).epsilon(DELTA)


def test_what_a_record_knew_before_is_added_to_what_its_accountant_holds():
    record = TrainingRecord(counts={Release("gaussian", 0.125, 1.0): 2}, accountant=ac.Accountant())
    record.accountant.compose(ac.Gaussian(3.0))
    result = train(ledger=record, steps=4)
    assert result.epsilon == (6 * STEP + ac.Gaussian(3.0)).epsilon(DELTA)


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


def test_runs_of_several_kinds_on_one_record_are_composed():
    record = TrainingRecord(3.0, DELTA)
    train(ledger=record, steps=4)
    other = train(ledger=record, noise_multiplier=2.0, steps=5)
    whole = 4 * STEP + 5 * ac.PoissonSampled(ac.Gaussian(2.0), 0.125)
    assert other.epsilon == whole.epsilon(DELTA) > other.run_epsilon
    third = Release("gaussian", 0.125, 1.5)
    left = record.affordable(third)
    assert left > 0
    record.charge(third, left)
    assert record.epsilon(DELTA) <= 3.0
    with pytest.raises(BudgetExceeded):
        record.charge(third)


def test_where_nothing_can_be_certified_infinity_is_reported():
    record = TrainingRecord(counts={Release("gaussian", 0.125, 0.0): 1})
    assert record.epsilon(DELTA) == math.inf
    ledger = ac.Accountant()
    ledger.compose(ac.ApproximateDP(1.0, 1e-3))
    result = train(ledger=ledger, steps=2, rng=None)
    assert result.epsilon == math.inf
    assert result.statement.startswith("No finite ε is certified at δ = 1e-05")


def test_the_delta_of_a_run_is_noted_in_its_accountant():
    ledger = ac.Accountant()
    train(ledger=ledger, delta=1e-7, steps=2)
    assert ledger.deltas == (1e-7,)
    train(ledger=ledger, delta=1e-6, steps=2)
    assert ledger.deltas == (1e-7, 1e-6)
