"""Batch samplers: what they yield, what they charge, and a DataLoader that uses them."""

import numpy as np
import pytest

import accountant as ac
from accountant import matrix, sampling
from accountant.adapters.torch_batches import (
    BATCHES_MARK,
    NOISE_MARK,
    BatchSampler,
    Run,
    average,
    mark,
    step_of,
)
from accountant.ledger import Accountant, Budget
from accountant.noise import SecureGenerator
from support.refusals import refused

REPLACE = ac.NeighbouringRelation.REPLACE_ONE
SAMPLERS = [
    sampling.PoissonSampler(dataset_size=60, sampling_probability=0.1, steps=8),
    sampling.TruncatedPoissonSampler(dataset_size=60, sampling_probability=0.1, cap=20, steps=8),
    sampling.FixedSizeSampler(dataset_size=60, batch_size=6, steps=8),
    sampling.WithReplacementSampler(dataset_size=60, batch_size=6, steps=8, relation=REPLACE),
    sampling.RandomAllocation(dataset_size=60, steps_per_epoch=4, epochs=2),
    sampling.CyclicPoisson(dataset_size=60, sampling_probability=0.1, bands=2, steps=8),
    sampling.SeparatedPoisson(
        dataset_size=60, sampling_probability=0.1, min_separation=3, steps=8, bands=2
    ),
    sampling.BallsInBins(dataset_size=60, bins=4, strategy=matrix.banded_square_root(8, bands=2)),
    sampling.ShuffledBatches(dataset_size=60, batch_size=15, epochs=2),
    sampling.CyclicBatches(dataset_size=60, batch_size=15, epochs=2),
    sampling.FullBatch(dataset_size=60, steps=8),
]
NAMES = [sampler.name for sampler in SAMPLERS]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=NAMES)
def test_a_run_is_charged_before_its_first_batch(sampler):
    ledger = Accountant()
    batches = BatchSampler(sampler, 3, ledger=ledger, noise_multiplier=2.0, label="run")
    run = iter(batches)
    assert not ledger.counts
    first = next(run)
    expected = Accountant()
    expected.compose(sampler.mechanism(2.0))
    assert ledger.counts == expected.counts
    drawn = [first, *run]
    assert len(drawn) == len(batches) == sampler.steps == 8
    assert drawn == [batch.tolist() for batch in sampler.batches(3)]
    assert all(0 <= i < 60 for batch in drawn for i in batch)
    if sampler is SAMPLERS[0]:
        assert ledger.epsilon(1e-5) == sampler.epsilon(2.0, 1e-5)
    list(batches)  # another run
    assert sum(n for _, n in ledger.counts) == 2 * sum(n for _, n in expected.counts)


def test_a_run_that_the_budget_does_not_allow_draws_nothing():
    sampler = SAMPLERS[0]
    ledger = Accountant(Budget(sampler.epsilon(2.0, 1e-5) * 1.01, 1e-5))
    batches = BatchSampler(sampler, ledger=ledger, noise_multiplier=0.3)
    refused(ac.BudgetExceeded, "", next, iter(batches))
    assert not ledger.counts


@pytest.mark.long
def test_batches_that_can_be_drawn_again_are_marked():
    for seed in (None, 3, np.random.default_rng(3)):
        ledger = Accountant()
        batches = BatchSampler(SAMPLERS[0], seed, ledger=ledger, noise_multiplier=2.0, label="run")
        list(batches)
        assert ledger.history[0].label == ("run" if seed is None else f"{BATCHES_MARK}; run")
        assert (BATCHES_MARK in ac.report.statement(ledger, 1e-5).markdown()) == (seed is not None)
        assert batches.begin().why_not_private == (BATCHES_MARK if seed is not None else "")


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"ledger": Accountant()}, "both of ledger"),
        ({"noise_multiplier": 1.0}, "both of ledger"),
        ({"ledger": 3, "noise_multiplier": 1.0}, "ledger must be"),
        ({"ledger": Accountant(), "noise_multiplier": 0.0}, "noise_multiplier must be"),
    ],
)
def test_what_is_refused(given, match):
    refused(ac.AccountantError, match, BatchSampler, SAMPLERS[0], **given)
    refused(ac.ArgumentTypeError, "sampler must be", BatchSampler, [[0, 1]])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_workers_do_not_make_a_pass_another_run(workers):
    torch = pytest.importorskip("torch")
    ledger = Accountant()
    sampler = SAMPLERS[0]
    loader = torch.utils.data.DataLoader(
        range(60),
        batch_sampler=BatchSampler(sampler, ledger=ledger, noise_multiplier=2.0),
        collate_fn=list,
        num_workers=workers,
    )
    for passes in (1, 2):
        assert len(list(loader)) == 8
        assert ledger.epsilon(1e-5) == (passes * sampler.mechanism(2.0)).epsilon(1e-5)


ALLOCATION = sampling.RandomAllocation(dataset_size=20, steps_per_epoch=5)
POISSON = sampling.PoissonSampler(dataset_size=20, sampling_probability=0.3, steps=12)


def test_batches_are_spent_once_and_in_their_order():
    run = Run(POISSON)
    for number in (1, None, -1):
        refused(ac.UnsupportedError, "left out, used twice", run.spend, number)
    run.spend(0)
    for number in (0, 2, None):
        refused(ac.UnsupportedError, "left out, used twice", run.spend, number)
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
    refused(ac.UnsupportedError, "must not fall", run.charge, ledger, 1.2999)
    assert len(ledger) == len(ledger.history) == 1
    poor = Run(ALLOCATION)
    refused(ac.BudgetExceeded, "", poor.charge, ac.Accountant(ac.Budget(0.01, 1e-5)), 1.3)
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
