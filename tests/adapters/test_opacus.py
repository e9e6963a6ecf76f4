"""The exact accountant in real opacus runs on the CPU; skipped where opacus is not installed."""

import math

import pytest

import accountant as ac
from support import opacus_runs as runs
from support.opacus_runs import DELTA, NOISE, private, torch, toy, train
from support.opacus_twins import make, records
from support.refusals import refused

pytestmark = runs.QUIET


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
    bounds = engine.accountant.ledger.epsilon_bounds(DELTA)
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


# The noise that meets a target.


def test_target_epsilon_goes_through_our_calibration():
    data = toy()
    engine, model, optimizer, loader = private(data, epsilon=2.0, epochs=3)
    rate = runs.coin(runs.BATCH / runs.RECORDS)
    steps = int(3 / (runs.BATCH / runs.RECORDS))
    assert optimizer.noise_multiplier == ac.calibrate_sigma(2.0, DELTA, rate, steps)
    for _ in range(3):
        train(model, optimizer, loader)
    # Opacus' loader is a step shorter than 1 / rate, and its hook would say 1/92.
    assert engine.accountant.history == [(optimizer.noise_multiplier, rate, 3 * 92)]
    assert engine.get_epsilon(DELTA) <= 2.0


@pytest.mark.parametrize("name", ["rdp", "prv"])
def test_other_accountants_calibrate_as_before(name):
    _, _, optimizer, _ = private(
        toy(), engine=runs.opacus.PrivacyEngine(accountant=name), epsilon=2.0, epochs=1
    )
    original = runs.opacus.accountants.utils.get_noise_multiplier.__wrapped__
    wanted = original(
        target_epsilon=2.0, target_delta=DELTA, sample_rate=runs.BATCH / runs.RECORDS, epochs=1,
        accountant=name,
    )  # fmt: skip
    assert optimizer.noise_multiplier == wanted


def test_calibration_without_an_engine():
    find = runs.opacus.accountants.utils.get_noise_multiplier
    known = {"target_epsilon": 1.0, "target_delta": DELTA, "sample_rate": 0.3}
    found = find(accountant="exact", epsilon_tolerance=0.1, steps=40, **known)
    assert found == ac.calibrate_sigma(1.0, DELTA, runs.coin(0.3), 40)
    # Ten epochs are int(10 / 0.3) steps to opacus, and three batches each to its loader.
    assert find(accountant="exact", epochs=10, **known) == ac.calibrate_sigma(
        1.0, DELTA, runs.coin(0.3), 33
    )
    with pytest.raises(ValueError, match="either steps or epochs"):
        find(accountant="exact", epochs=1, steps=1, **known)


# What is refused before anything is released.


def test_batches_that_are_no_poisson_samples_are_refused():
    data = toy()
    model = runs.network(data)
    with pytest.raises(ac.UnsupportedError, match="needs Poisson batches"):
        runs.opacus.PrivacyEngine(accountant="exact").make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=torch.utils.data.DataLoader(data, batch_size=10, shuffle=True),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            poisson_sampling=False,
        )
    # Before anything was wrapped.
    assert not any(hasattr(p, "grad_sample") for p in model.parameters())
    with pytest.raises(ac.UnsupportedError, match="needs Poisson batches"):
        private(data, epsilon=1.0, epochs=1, poisson_sampling=False)
    # Opacus' own accountants still take it.
    private(data, engine=runs.opacus.PrivacyEngine(accountant="rdp"), poisson_sampling=False)


def test_adaptive_clipping_is_refused():
    bounds = {"max_clipbound": 10.0, "min_clipbound": 0.1, "unclipped_num_std": 5.0}
    with pytest.raises(ac.UnsupportedError, match="adaptive clipping"):
        private(
            toy(), clipping="adaptive", target_unclipped_quantile=0.5, clipbound_learning_rate=0.2,
            **bounds,
        )  # fmt: skip
    utils = pytest.importorskip("opacus.utils.adaptive_clipping.adaptive_clipping_utils")
    with pytest.raises(ac.UnsupportedError, match="adaptive clipping"):
        private(toy(), engine=utils.PrivacyEngineAdaptiveClipping(accountant="exact"))


def test_random_records_for_empty_batches_are_refused():
    data = toy(20)
    refused(ac.UnsupportedError, "rand_on_empty", private, data, rand_on_empty=True)
    with pytest.raises(ac.UnsupportedError, match="rand_on_empty"):
        private(data, epsilon=1.0, epochs=1, rand_on_empty=True)
    own = runs.opacus.data_loader.DPDataLoader(data, sample_rate=0.1, rand_on_empty=True)
    refused(ac.UnsupportedError, "rand_on_empty", private, data, loader=own, poisson_sampling=False)
    private(data, rand_on_empty=False)
    # Opacus' own accountants still take it.
    private(data, engine=runs.opacus.PrivacyEngine(accountant="rdp"), rand_on_empty=True)


def test_several_poisson_batches_in_one_step_are_refused():
    engine, model, optimizer, loader = private(toy())
    model.allow_grad_accumulation()
    batches = iter(loader)
    for _ in range(2):
        x, y = next(batches)
        torch.nn.functional.cross_entropy(model(x), y).backward()
    before = [p.detach().clone() for p in model.parameters()]
    refused(ac.UnsupportedError, "one Poisson batch", optimizer.step)
    assert len(engine.accountant) == 0
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


# Which optimisers are watched.


def test_two_optimizers_do_not_share_a_batch():
    first = make(records(100, True))
    second = make(first.data, data_loader=first.loader, poisson_sampling=False)
    x, y = next(iter(first.loader))
    first.step(x, y)
    refused(ac.UnsupportedError, "a Poisson batch of its own", second.step, x, y)
    second.step(*next(iter(first.loader)))
    assert len(first.engine.accountant) == len(second.engine.accountant) == 1


def test_an_optimizer_can_be_made_private_again_and_by_others():
    made = make(records(100, True))
    options = {"module": made.model, "data_loader": made.plain}
    for name, steps in (("exact", 5), ("rdp", 1)):
        engine = runs.opacus.PrivacyEngine(accountant=name)
        model, optimizer, loader = engine.make_private(
            optimizer=made.optimizer, noise_multiplier=4.0, max_grad_norm=1.0, **options
        )
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        # Opacus' own count rows.
        assert len(engine.accountant) == steps
    assert made.inner.updates == 10


def test_optimizers_that_are_not_watched_are_refused():
    made = make(records(100, True))
    bare = runs.opacus.optimizers.DPOptimizer(
        made.inner, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=20
    )
    with pytest.raises(ac.UnsupportedError, match="make_private did not return"):
        runs.adapter.ExactAccountant().get_optimizer_hook_fn(sample_rate=0.1)(bare)
    refused(ac.UnsupportedError, "make_private returned", runs.adapter.discard_unfinished, bare)


def test_a_part_left_out_is_noticed_among_parts_of_one_size():
    # A rate of one: every batch is cut into four parts of 25, and sizes tell nothing.
    made = make(records(100, True), batch_size=100)
    with made.parts(25) as parts:
        batches = iter(parts)
        next(batches)
        x, y = next(batches)
        refused(ac.UnsupportedError, "a batch was left out", made.step, x, y)
    assert len(made.engine.accountant) == made.inner.updates == 0
