"""Loaders of accountant.sampling under opacus, charged as whole runs; and physical batches."""

import math

import pytest

import accountant as ac
from accountant import sampling
from accountant.adapters.torch_batches import BatchSampler
from support import opacus_runs as runs
from support.opacus_runs import DELTA, NOISE, QUIET, RECORDS, private, torch, toy

pytestmark = QUIET

STEPS = 6
SAMPLERS = [
    sampling.RandomAllocation(dataset_size=RECORDS, steps_per_epoch=STEPS),
    sampling.RandomAllocation(dataset_size=RECORDS, steps_per_epoch=3, epochs=2),
    sampling.TruncatedPoissonSampler(
        dataset_size=RECORDS, sampling_probability=0.01, cap=12, steps=STEPS
    ),
    sampling.FixedSizeSampler(dataset_size=RECORDS, batch_size=20, steps=STEPS),
    sampling.WithReplacementSampler(
        dataset_size=RECORDS,
        batch_size=20,
        steps=STEPS,
        relation=ac.NeighbouringRelation.REPLACE_ONE,
    ),
    sampling.ShuffledBatches(dataset_size=RECORDS, batch_size=RECORDS // STEPS, epochs=1),
    sampling.CyclicBatches(dataset_size=RECORDS, batch_size=RECORDS // STEPS, epochs=1),
    sampling.PoissonSampler(dataset_size=RECORDS, sampling_probability=0.001, steps=STEPS),
    sampling.FullBatch(dataset_size=RECORDS, steps=STEPS),
]
NAMES = [sampler.name for sampler in SAMPLERS]


def loader_of(sampler, **options):
    data = toy()
    return data, torch.utils.data.DataLoader(data, batch_sampler=BatchSampler(sampler, **options))


def step(model, optimizer, x, y):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()


@pytest.mark.parametrize("sampler", SAMPLERS, ids=NAMES)
def test_a_run_is_charged_whole_at_its_first_step(sampler):
    data, loader = loader_of(sampler)
    engine, model, optimizer, loader = private(data, loader=loader, poisson_sampling=False)
    expected = ac.Accountant()
    expected.compose(sampler.mechanism(NOISE))
    charged, sizes = [], []
    for x, y in loader:
        assert len(engine.accountant.ledger) == (0 if not charged else len(expected))
        step(model, optimizer, x, y)
        charged.append(engine.accountant.ledger.counts)
        sizes.append(len(x))
    assert charged == [expected.counts] * sampler.steps
    assert engine.get_epsilon(DELTA) == sampler.epsilon(NOISE, DELTA)
    # What a sum is divided by is near the average batch.
    average = optimizer.expected_batch_size
    assert abs(sum(sizes) / len(sizes) - average) < 6 * math.sqrt(average / len(sizes)) + 1
    for x, y in loader:
        step(model, optimizer, x, y)
        break  # a run that is left early has been charged in full
    assert engine.get_epsilon(DELTA) == (2 * sampler.mechanism(NOISE)).epsilon(DELTA)


def test_physical_batches_of_an_allocation():
    data, loader = loader_of(SAMPLERS[0])
    engine, model, optimizer, loader = private(data, loader=loader, poisson_sampling=False)
    with runs.parts(loader, optimizer, 16) as cut:
        for x, y in cut:
            step(model, optimizer, x, y)
    assert engine.get_epsilon(DELTA) == SAMPLERS[0].epsilon(NOISE, DELTA)


def test_a_budget_refuses_a_run_before_its_first_step():
    sampler = SAMPLERS[0]
    data, loader = loader_of(sampler)
    engine, model, optimizer, loader = private(data, loader=loader, poisson_sampling=False)
    limit = sampler.epsilon(NOISE, DELTA) * 0.99
    engine.accountant.ledger = ac.Accountant(ac.Budget(limit, DELTA))
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(ac.BudgetExceeded):
        step(model, optimizer, *next(iter(loader)))
    assert engine.get_epsilon(DELTA) == 0.0
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_the_noise_of_a_run_does_not_fall():
    data, loader = loader_of(SAMPLERS[0])
    engine, model, optimizer, loader = private(data, loader=loader, poisson_sampling=False)
    batches = iter(loader)
    step(model, optimizer, *next(batches))
    optimizer.noise_multiplier = NOISE + 1.0
    step(model, optimizer, *next(batches))
    optimizer.noise_multiplier = NOISE - 0.1
    with pytest.raises(ac.UnsupportedError, match="must not fall within a run"):
        step(model, optimizer, *next(batches))
    assert engine.get_epsilon(DELTA) == SAMPLERS[0].epsilon(NOISE, DELTA)


def test_a_target_is_met_by_the_run_itself():
    sampler = SAMPLERS[0]
    data, loader = loader_of(sampler)
    made = private(data, loader=loader, poisson_sampling=False, epsilon=2.0, epochs=3)
    noise = made[2].noise_multiplier
    run = 3 * sampler.mechanism(noise)
    assert run.epsilon(DELTA) <= 2.0 < (3 * sampler.mechanism(noise * (1 - 1e-4))).epsilon(DELTA)


def test_what_a_run_does_not_cover_is_refused():
    sampler = SAMPLERS[0]
    data, loader = loader_of(sampler)
    with pytest.raises(ac.UnsupportedError, match="poisson_sampling=False"):
        private(data, loader=loader)
    with pytest.raises(ac.UnsupportedError, match="poisson_sampling=False"):
        private(data, loader=loader, epsilon=2.0, epochs=1)
    banded = sampling.CyclicPoisson(
        dataset_size=RECORDS, sampling_probability=0.1, bands=2, steps=8
    )
    data, loader = loader_of(banded)
    with pytest.raises(ac.UnsupportedError, match="correlated noise"):
        private(data, loader=loader, poisson_sampling=False)
    data, loader = loader_of(sampler, ledger=ac.Accountant(), noise_multiplier=NOISE)
    with pytest.raises(ac.UnsupportedError, match="charged twice"):
        private(data, loader=loader, poisson_sampling=False)
    # Opacus' own accountants still take it.
    engine = runs.opacus.PrivacyEngine(accountant="rdp")
    private(data, loader=loader, poisson_sampling=False, engine=engine)


def test_a_seeded_run_is_not_drawn_twice():
    data, loader = loader_of(SAMPLERS[0], seed=5)
    _, model, optimizer, loader = private(data, loader=loader, poisson_sampling=False)
    for x, y in loader:
        step(model, optimizer, x, y)
    with pytest.raises(ac.UnsupportedError, match="must be drawn anew"):
        next(iter(loader))


def test_coins_and_noise_of_one_seed_are_refused():
    def made():
        data = toy()
        coins = torch.Generator().manual_seed(4)
        return data, torch.utils.data.DataLoader(data, batch_size=10, generator=coins)

    data, loader = made()
    with pytest.raises(ac.UnsupportedError, match="the coins and the noise have one seed"):
        private(data, loader=loader, noise_generator=torch.Generator().manual_seed(4))
    private(data, loader=loader, noise_generator=torch.Generator().manual_seed(5))
    private(data, loader=loader, noise_generator=loader.generator)  # one stream, no number twice
