"""The observer of a run: batches are spent once and in order, and a run is charged once, whole."""

import pytest

import accountant as ac
from accountant import sampling
from accountant.adapters._observer import BATCHES_MARK, NOISE_MARK, Run, average, mark, step_of
from accountant.noise import SecureGenerator

ALLOCATION = sampling.RandomAllocation(dataset_size=20, steps_per_epoch=5)
POISSON = sampling.PoissonSampler(dataset_size=20, sampling_probability=0.3, steps=12)


def test_batches_are_spent_once_and_in_their_order():
    run = Run(POISSON)
    for number in (1, None, -1):
        with pytest.raises(ac.UnsupportedError, match="left out, used twice"):
            run.spend(number)
    run.spend(0)
    for number in (0, 2, None):
        with pytest.raises(ac.UnsupportedError, match="left out, used twice"):
            run.spend(number)
    run.spend(1)
    assert run.spent == 2


def test_a_run_is_charged_whole_and_its_noise_may_not_fall():
    run, ledger = Run(ALLOCATION), ac.Accountant()
    assert not run.goes_on
    run.charge(ledger, 1.3)
    assert run.goes_on
    for noise in (1.3, 2.0):
        run.charge(ledger, noise)
    assert ledger.epsilon(1e-5) == ALLOCATION.epsilon(1.3, 1e-5)
    with pytest.raises(ac.UnsupportedError, match="must not fall"):
        run.charge(ledger, 1.2999)
    assert len(ledger) == len(ledger.history) == 1
    poor = Run(ALLOCATION)
    with pytest.raises(ac.BudgetExceeded):
        poor.charge(ac.Accountant(ac.Budget(0.01, 1e-5)), 1.3)
    assert not poor.goes_on


def test_a_run_that_can_be_drawn_again_says_so():
    ledger = ac.Accountant()
    run = Run(ALLOCATION, seeded=True)
    run.charge(ledger, 1.3, mark(SecureGenerator(1).why_not_private, run.why_not_private))
    assert ledger.history[0].label == f"{NOISE_MARK}; {BATCHES_MARK}"
    assert Run(ALLOCATION).why_not_private == mark("", "") == ""
    assert mark(NOISE_MARK, NOISE_MARK, "", label="mine") == f"{NOISE_MARK}; mine"


def test_steps_that_stand_alone_and_their_average():
    assert step_of(ALLOCATION, 1.3) is None
    assert (12 * step_of(POISSON, 1.3)).epsilon(1e-5) == POISSON.epsilon(1.3, 1e-5)
    assert (average(POISSON), average(ALLOCATION)) == (6.0, 4.0)
