"""The exact accountant in real opacus runs on the CPU; skipped where opacus is not installed."""

import math

import pytest

import accountant as ac
from support import opacus_runs as runs
from support.opacus_runs import DELTA, NOISE, private, torch, toy, train

pytestmark = runs.QUIET


def test_one_import_registers_the_accountant():
    made = runs.opacus.accountants.create_accountant("exact")
    assert isinstance(made, runs.adapter.ExactAccountant)
    assert isinstance(made, runs.opacus.accountants.IAccountant)
    assert made.mechanism() == "exact"
    assert len(made) == 0
    assert made.get_epsilon(DELTA) == 0.0


def test_digits_same_noise_and_steps_exact_epsilon():
    data = runs.digits()
    engine, model, optimizer, loader = private(data, batch_size=128)
    for _ in range(4):
        train(model, optimizer, loader)
    steps = 4 * len(loader)
    rate = runs.coin(1 / math.ceil(len(data) / 128))
    assert engine.accountant.history == [(NOISE, rate, steps)]
    assert len(engine.accountant) == steps
    epsilon = engine.get_epsilon(DELTA)
    assert epsilon == ac.get_epsilon(rate, NOISE, steps, DELTA)
    assert epsilon < runs.theirs("prv", [(NOISE, rate, steps)])
    assert epsilon < runs.theirs("rdp", [(NOISE, rate, steps)])
    bounds = engine.accountant.get_epsilon_bounds(DELTA)
    assert bounds.lower <= epsilon == bounds.upper
    with torch.no_grad():  # it trains
        right = (model(data.tensors[0]).argmax(1) == data.tensors[1]).float().mean()
    assert right > 0.3


def test_a_run_resumed_from_a_checkpoint_keeps_its_epsilon(tmp_path):
    data = runs.digits()
    engine, model, optimizer, loader = private(data, batch_size=128)
    train(model, optimizer, loader)
    engine.save_checkpoint(path=tmp_path / "half.pt", module=model, optimizer=optimizer)
    kept = torch.load(tmp_path / "half.pt", weights_only=True)["privacy_accountant_state_dict"]
    assert kept["mechanism"] == "exact"

    resumed, again, optimizer_again, loader_again = private(data, batch_size=128)
    resumed.load_checkpoint(path=tmp_path / "half.pt", module=again, optimizer=optimizer_again)
    assert resumed.get_epsilon(DELTA) == engine.get_epsilon(DELTA) > 0.0
    for run in ((model, optimizer, loader), (again, optimizer_again, loader_again)):
        train(*run, steps=5)
    steps = len(loader) + 5
    whole = ac.get_epsilon(runs.coin(1 / math.ceil(len(data) / 128)), NOISE, steps, DELTA)
    assert resumed.get_epsilon(DELTA) == engine.get_epsilon(DELTA) == whole


def test_physical_batches_are_one_logical_step():
    engine, model, optimizer, loader = private(toy(), batch_size=100)
    physical = 0
    with runs.parts(loader, optimizer, 16) as cut:
        for x, y in cut:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            physical += 1
    assert physical > 3 * len(loader)
    assert engine.accountant.history == [(NOISE, runs.coin(1 / 10), len(loader))]


def test_a_poisson_loader_of_the_users_own_is_accounted_at_its_own_rate():
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler

    data = toy()
    coins = UniformWithReplacementSampler(num_samples=len(data), sample_rate=0.3, steps=20)
    loader = torch.utils.data.DataLoader(data, batch_sampler=coins)
    # Opacus itself would record one over the number of steps, 0.05.
    engine, model, optimizer, loader = private(data, loader=loader, poisson_sampling=False)
    train(model, optimizer, loader)
    assert engine.accountant.history == [(NOISE, runs.coin(0.3), 20)]
    assert engine.get_epsilon(DELTA) == ac.get_epsilon(runs.coin(0.3), NOISE, 20, DELTA)


@pytest.mark.parametrize("options", [{"clipping": "per_layer"}, {"grad_sample_mode": "ghost"}])
def test_other_ways_to_clip_are_counted_alike(options):
    data = toy()
    limits = [1.0] * 4 if "clipping" in options else 1.0
    engine, model, optimizer, *rest = private(data, max_grad_norm=limits, **options)
    criterion = rest[0] if len(rest) == 2 else torch.nn.functional.cross_entropy
    for x, y in rest[-1]:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    assert engine.accountant.history == [
        (NOISE, runs.coin(runs.BATCH / runs.RECORDS), len(rest[-1]))
    ]


def test_a_noise_schedule_is_recorded_step_by_step():
    from opacus.schedulers import ExponentialNoise

    engine, model, optimizer, loader = private(toy())
    schedule = ExponentialNoise(optimizer, gamma=0.9)
    noises = []
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        noises.append(optimizer.noise_multiplier)
        schedule.step()
        if len(noises) == 3:
            break
    assert engine.accountant.history == [
        (noise, runs.coin(runs.BATCH / runs.RECORDS), 1) for noise in noises
    ]
    parts = [
        (ac.PoissonSampled(ac.Gaussian(noise), runs.coin(runs.BATCH / runs.RECORDS)), 1)
        for noise in noises
    ]
    assert engine.get_epsilon(DELTA) == ac.Composition(parts).epsilon(DELTA)
