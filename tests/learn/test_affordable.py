"""A trainer makes as many steps as the exact composition allows, and none that cannot be paid."""

import re

import pytest

import accountant as ac
from accountant.errors import BudgetExceeded, UnsupportedError
from accountant.learn import Checkpoint
from accountant.learn.account import affordable_steps, require_a_step
from accountant.ledger import Accountant, Budget
from support.dp_sgd_runs import Untouchable, train

DELTA = 1e-5
CASES = [
    (1.0, 1e-6, 0.001, 1.0, 31_117),
    (3.0, 1e-5, 0.01, 1.1, 3_712),
    (1.0, 1e-5, 0.01, 1.0, 254),
]


@pytest.mark.long
@pytest.mark.parametrize(("epsilon", "delta", "q", "sigma", "steps"), CASES)
def test_a_budget_pays_the_steps_of_the_exact_composition(epsilon, delta, q, sigma, steps):
    ledger = Accountant(Budget(epsilon, delta))
    settings = {"sampling_probability": q, "expected_batch_size": 8.0, "noise_multiplier": sigma}
    stopped = train(
        ledger=ledger, delta=delta, steps=None, callbacks=[lambda p: p.step == 3], **settings
    )
    assert stopped.plan.steps == steps
    assert stopped.steps == len(ledger) == 3
    assert stopped.plan.epsilon <= epsilon
    # Stopping is free, and so is going on: the rest of the plan is left.
    assert ledger.affordable(stopped.plan.mechanism) == steps - 3
    with pytest.raises(BudgetExceeded):
        train(
            Untouchable(5),
            ledger=ledger,
            delta=delta,
            steps=1,
            **(settings | {"noise_multiplier": 5.0}),
        )


def test_all_steps_of_a_plan_are_made():
    ledger = Accountant(Budget(1.0, DELTA))
    given = {"sampling_probability": 0.01, "expected_batch_size": 4.0}
    assert train(ledger=ledger, steps=None, **given).steps == len(ledger) == 254


def test_a_run_whose_filter_admits_it_is_charged_as_it_goes():
    ledger = Accountant(Budget(8.0, DELTA))
    train(ledger=ledger, steps=4)
    assert ledger.planned == ()
    step = ac.PoissonSampled(ac.Gaussian(1.0), 0.125)
    fresh = Accountant(Budget(8.0, DELTA))
    admitted, most = fresh.affordable(step), fresh.affordable(step, planned=True)
    assert admitted < most
    result = train(ledger=fresh, steps=most)
    assert result.steps == most
    assert [(e.count, e.label) for e in fresh.planned] == [(most, result.plan.run)]


def test_a_plan_made_before_is_used(tmp_path):
    ledger = Accountant(Budget(1.0, DELTA))
    step = ac.PoissonSampled(ac.Gaussian(1.0), 0.01)
    ledger.plan(step, 100)
    given = {"sampling_probability": 0.01, "expected_batch_size": 4.0, "ledger": ledger}
    place = Checkpoint(tmp_path / "c")
    half = train(steps=None, checkpoint=place, callbacks=[lambda p: p.step == 40], **given)
    assert half.plan.steps == 100
    assert train(steps=None, checkpoint=place, **given).steps == len(ledger) == 100
    assert sum(e.count for e in ledger.planned) == 100


@pytest.mark.parametrize(
    "rule",
    [
        {"filter": "gaussian"},
        {"filter": "approximate"},
        {"filter": "kinds", "kinds": [ac.Gaussian(50.0)]},
    ],
    ids=repr,
)
def test_a_filter_that_cannot_charge_a_step_does_not_keep_it_from_being_planned(rule):
    step = ac.PoissonSampled(ac.Gaussian(1.0), 0.01)
    for wanted, steps in ((None, 254), (200, 200)):
        ledger = Accountant(Budget(1.0, DELTA, **rule))
        assert affordable_steps(ledger, step, wanted) == steps
        assert ledger.affordable_by_filter(step)["plan"] == 254
        ledger.compose(step, steps)
        assert ledger.epsilon(DELTA) <= 1.0
    other = ac.Gaussian(9.0, relation=ac.NeighbouringRelation.REPLACE_ONE)
    ledger = Accountant(Budget(1.0, DELTA, **rule))
    ledger.plan(step, 1)
    with pytest.raises(UnsupportedError, match="relation"):
        affordable_steps(ledger, other, 1)


def test_two_runs_before_the_first_step_are_planned_together():
    ledger = Accountant(Budget(1.0, DELTA))
    step = ac.PoissonSampled(ac.Gaussian(1.0), 0.01)
    assert affordable_steps(ledger, step, 100, "a") == 100
    other = ac.PoissonSampled(ac.Gaussian(2.0), 0.01)
    assert affordable_steps(ledger, other, 200, "b") == 200
    assert [e.label for e in ledger.planned] == ["a", "b"]
    assert affordable_steps(ledger, other, 10**6) == 0


@pytest.mark.long
@pytest.mark.parametrize("earlier", [0, 1], ids=["first", "later"])
@pytest.mark.parametrize("noise", ["gaussian", "discrete_gaussian"])
@pytest.mark.parametrize("steps", [None, 50])
def test_what_cannot_be_paid_is_refused_with_what_would_fit(steps, noise, earlier):
    def ledger():
        book = Accountant(Budget(0.5, DELTA))
        if earlier:
            book.compose(ac.Gaussian(60.0))
        return book

    given = {"sampling_probability": 0.5, "expected_batch_size": 50.0, "noise": noise}
    with pytest.raises(BudgetExceeded, match="no step was made") as caught:
        train(Untouchable(5), ledger=ledger(), steps=steps, noise_multiplier=0.7, **given)
    message = str(caught.value)
    cost = float(re.search(r"ε = (\S+) at", message)[1])
    assert cost > 0.5
    sigma = float(re.search(r"noise_multiplier=([0-9.]+)", message)[1])
    count = steps or 1
    make = ac.Gaussian if noise == "gaussian" else ac.DiscreteGaussianVector
    assert affordable_steps(ledger(), ac.PoissonSampled(make(sigma), 0.5), count)
    assert not affordable_steps(ledger(), ac.PoissonSampled(make(0.98 * sigma), 0.5), count)
    rate = re.search(r"sampling_probability=(\S+) \(expected_batch_size=(\S+)\)", message)
    # Discrete noise is charged by its curve, and with so little of it that admits no rate of use.
    assert (rate is not None) == (noise == "gaussian") or steps is None
    if rate is not None:
        q = float(rate[1])
        assert affordable_steps(ledger(), ac.PoissonSampled(make(0.7), q), count)
        assert not affordable_steps(ledger(), ac.PoissonSampled(make(0.7), 1.02 * q), count)
        assert float(rate[2]) == pytest.approx(100 * q, rel=1e-3)


@pytest.mark.long
def test_no_advice_where_nothing_fits_and_none_on_the_batch_of_all_records():
    over, step = Accountant(Budget(1.0, DELTA)), ac.PoissonSampled(ac.Gaussian(1.0), 0.01)
    over.plan(step)
    over.compose(step)
    with pytest.raises(BudgetExceeded, match="no noise and no smaller batch would fit"):
        train(Untouchable(5), ledger=over, steps=None, noise_multiplier=0.7)
    with pytest.raises(BudgetExceeded) as caught:
        train(
            Untouchable(5), ledger=Accountant(Budget(0.1, DELTA)), steps=1, sampler="full",
            noise_multiplier=0.7,
        )  # fmt: skip
    assert "noise_multiplier=" in str(caught.value)
    assert "sampling_probability" not in str(caught.value)


@pytest.mark.long
@pytest.mark.parametrize("plan", [True, False])
def test_an_adapter_is_told_before_its_first_step_what_would_fit(plan):
    ledger = Accountant(Budget(0.2, 1e-6))
    step = ac.PoissonSampled(ac.Gaussian(0.8), 0.05)
    with pytest.raises(BudgetExceeded, match="not one step") as refused:
        require_a_step(ledger, step, 0.8, 0.05, plan=plan)
    found = re.search(
        r"noise_multiplier=([\d.]+), or sampling_probability=([\d.e-]+) would fit",
        str(refused.value),
    )
    assert found, refused.value
    for sigma, q in ((float(found[1]), 0.05), (0.8, float(found[2]))):
        other = ac.PoissonSampled(ac.Gaussian(sigma), q)
        fresh = Accountant(Budget(0.2, 1e-6))
        fresh.plan(other, 1)
        fresh.compose(other)
    assert not ledger.planned
    assert not ledger.counts


def test_an_adapter_goes_on_where_a_step_fits_or_nobody_limits_it():
    step = ac.PoissonSampled(ac.Gaussian(1.0), 0.01)
    ledger = Accountant(Budget(1.0, 1e-5))
    require_a_step(ledger, step, 1.0, 0.01, plan=True)
    assert ledger.planned[0].count == 254
    require_a_step(ledger, ac.Gaussian(0.1), 0.1, 1.0, plan=True)  # not its first: compose refuses
    require_a_step(Accountant(), ac.Gaussian(0.01), 0.01, 1.0, plan=True)
