"""The accountant inside opacus: real runs on the CPU; skipped where opacus is not installed."""

import json
import math
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import accountant as ac

torch = pytest.importorskip("torch")
opacus = pytest.importorskip("opacus")
adapter = pytest.importorskip("accountant.adapters.opacus")

from support import opacus_worker  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore:Full backward hook"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

RECORDS, BATCH, NOISE, DELTA = 930, 10, 1.3, 1e-5  # 1 / (1 / 93) is 92 to an int


def coin(rate):
    """The share of torch's words of 24 bits below a rate, which is compared as a float32."""
    word = struct.unpack("f", struct.pack("f", rate))[0] * 2**24
    return math.ceil(word) / 2**24


def toy(records=RECORDS):
    rows = torch.randn(records, 5, generator=torch.Generator().manual_seed(3))
    return torch.utils.data.TensorDataset(rows, (rows[:, 0] > 0).long())


def digits():
    data = pytest.importorskip("sklearn.datasets").load_digits()
    rows = torch.tensor(data.data / 16.0, dtype=torch.float32)
    return torch.utils.data.TensorDataset(rows, torch.tensor(data.target))


def network(data):
    classes = int(data.tensors[1].max()) + 1
    with torch.random.fork_rng():  # batches and noise must not come again
        torch.manual_seed(11)
        return torch.nn.Sequential(
            torch.nn.Linear(data.tensors[0].shape[1], 16),
            torch.nn.Tanh(),
            torch.nn.Linear(16, classes),
        )


def private(data, batch_size=BATCH, engine=None, loader=None, epsilon=None, **options):
    engine = engine or opacus.PrivacyEngine(accountant="exact")
    model = network(data)
    loader = loader or torch.utils.data.DataLoader(data, batch_size=batch_size)
    known = {
        "module": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.5),
        "data_loader": loader,
        "max_grad_norm": 1.0,
    }
    if epsilon is not None:
        known |= {"target_epsilon": epsilon, "target_delta": DELTA}
        return engine, *engine.make_private_with_epsilon(**known, **options)
    return engine, *engine.make_private(**{"noise_multiplier": NOISE} | known | options)


def train(model, optimizer, loader, steps=None):
    for step, (x, y) in enumerate(loader):
        if step == steps:
            break
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def theirs(name, history):
    other = opacus.accountants.create_accountant(name)
    other.history = history
    return other.get_epsilon(DELTA)


def test_one_import_registers_the_accountant():
    made = opacus.accountants.create_accountant("exact")
    assert isinstance(made, adapter.ExactAccountant)
    assert isinstance(made, opacus.accountants.IAccountant)
    assert made.mechanism() == "exact"
    assert len(made) == 0
    assert made.get_epsilon(DELTA) == 0.0


def test_digits_same_noise_and_steps_exact_epsilon():
    data = digits()
    engine, model, optimizer, loader = private(data, batch_size=128)
    for _ in range(4):
        train(model, optimizer, loader)
    steps = 4 * len(loader)
    rate = coin(1 / math.ceil(len(data) / 128))
    assert engine.accountant.history == [(NOISE, rate, steps)]
    assert len(engine.accountant) == steps
    epsilon = engine.get_epsilon(DELTA)
    assert epsilon == ac.get_epsilon(rate, NOISE, steps, DELTA)
    assert epsilon < theirs("prv", [(NOISE, rate, steps)])
    assert epsilon < theirs("rdp", [(NOISE, rate, steps)])
    bounds = engine.accountant.get_epsilon_bounds(DELTA)
    assert bounds.lower <= epsilon == bounds.upper
    with torch.no_grad():  # it trains
        right = (model(data.tensors[0]).argmax(1) == data.tensors[1]).float().mean()
    assert right > 0.3


def test_a_run_resumed_from_a_checkpoint_keeps_its_epsilon(tmp_path):
    data = digits()
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
    whole = ac.get_epsilon(coin(1 / math.ceil(len(data) / 128)), NOISE, steps, DELTA)
    assert resumed.get_epsilon(DELTA) == engine.get_epsilon(DELTA) == whole


def test_target_epsilon_goes_through_our_calibration():
    data = toy()
    engine, model, optimizer, loader = private(data, epsilon=2.0, epochs=3)
    rate = coin(BATCH / RECORDS)
    steps = int(3 / (BATCH / RECORDS))
    assert optimizer.noise_multiplier == ac.calibrate_sigma(2.0, DELTA, rate, steps)
    for _ in range(3):
        train(model, optimizer, loader)
    # Opacus' loader is a step shorter than 1 / rate, and its hook would say 1/92.
    assert engine.accountant.history == [(optimizer.noise_multiplier, rate, 3 * 92)]
    assert engine.get_epsilon(DELTA) <= 2.0


@pytest.mark.parametrize("name", ["rdp", "prv"])
def test_other_accountants_calibrate_as_before(name):
    _, _, optimizer, _ = private(
        toy(), engine=opacus.PrivacyEngine(accountant=name), epsilon=2.0, epochs=1
    )
    original = opacus.accountants.utils.get_noise_multiplier.__wrapped__
    wanted = original(
        target_epsilon=2.0, target_delta=DELTA, sample_rate=BATCH / RECORDS, epochs=1,
        accountant=name,
    )  # fmt: skip
    assert optimizer.noise_multiplier == wanted


def test_calibration_without_an_engine():
    find = opacus.accountants.utils.get_noise_multiplier
    known = {"target_epsilon": 1.0, "target_delta": DELTA, "sample_rate": 0.3}
    found = find(accountant="exact", epsilon_tolerance=0.1, steps=40, **known)
    assert found == ac.calibrate_sigma(1.0, DELTA, coin(0.3), 40)
    # Ten epochs are int(10 / 0.3) steps to opacus, and three batches each to its loader.
    assert find(accountant="exact", epochs=10, **known) == ac.calibrate_sigma(
        1.0, DELTA, coin(0.3), 33
    )
    with pytest.raises(ValueError, match="either steps or epochs"):
        find(accountant="exact", epochs=1, steps=1, **known)


def test_physical_batches_are_one_logical_step():
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    engine, model, optimizer, loader = private(toy(), batch_size=100)
    physical = 0
    with BatchMemoryManager(
        data_loader=loader, max_physical_batch_size=16, optimizer=optimizer
    ) as parts:
        for x, y in parts:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            physical += 1
    assert physical > 3 * len(loader)
    assert engine.accountant.history == [(NOISE, coin(1 / 10), len(loader))]


def test_a_poisson_loader_of_the_users_own_is_accounted_at_its_own_rate():
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler

    data = toy()
    coins = UniformWithReplacementSampler(num_samples=len(data), sample_rate=0.3, steps=20)
    loader = torch.utils.data.DataLoader(data, batch_sampler=coins)
    # Opacus itself would record one over the number of steps, 0.05.
    engine, model, optimizer, loader = private(data, loader=loader, poisson_sampling=False)
    train(model, optimizer, loader)
    assert engine.accountant.history == [(NOISE, coin(0.3), 20)]
    assert engine.get_epsilon(DELTA) == ac.get_epsilon(coin(0.3), NOISE, 20, DELTA)


def test_batches_that_are_no_poisson_samples_are_refused():
    data = toy()
    model = network(data)
    with pytest.raises(ac.UnsupportedError, match="needs Poisson batches"):
        opacus.PrivacyEngine(accountant="exact").make_private(
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
    private(data, engine=opacus.PrivacyEngine(accountant="rdp"), poisson_sampling=False)


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
    with pytest.raises(ac.UnsupportedError, match="rand_on_empty"):
        private(data, rand_on_empty=True)
    with pytest.raises(ac.UnsupportedError, match="rand_on_empty"):
        private(data, epsilon=1.0, epochs=1, rand_on_empty=True)
    own = opacus.data_loader.DPDataLoader(data, sample_rate=0.1, rand_on_empty=True)
    with pytest.raises(ac.UnsupportedError, match="rand_on_empty"):
        private(data, loader=own, poisson_sampling=False)
    private(data, rand_on_empty=False)
    # Opacus' own accountants still take it.
    private(data, engine=opacus.PrivacyEngine(accountant="rdp"), rand_on_empty=True)


def test_several_poisson_batches_in_one_step_are_refused():
    engine, model, optimizer, loader = private(toy())
    model.allow_grad_accumulation()
    batches = iter(loader)
    for _ in range(2):
        x, y = next(batches)
        torch.nn.functional.cross_entropy(model(x), y).backward()
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(ac.UnsupportedError, match="one Poisson batch"):
        optimizer.step()
    assert len(engine.accountant) == 0
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


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
    assert engine.accountant.history == [(NOISE, coin(BATCH / RECORDS), len(rest[-1]))]


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
    assert engine.accountant.history == [(noise, coin(BATCH / RECORDS), 1) for noise in noises]
    parts = [(ac.PoissonSampled(ac.Gaussian(noise), coin(BATCH / RECORDS)), 1) for noise in noises]
    assert engine.get_epsilon(DELTA) == ac.Composition(parts).epsilon(DELTA)


def recorded(*rows):
    made = adapter.ExactAccountant()
    made.history = rows
    return made


def test_states_round_trip_and_are_refused_when_they_do_not_fit():
    made = recorded((1.0, 0.1, 5), (2.0, 0.1, 3))
    state = made.state_dict()
    fresh = adapter.ExactAccountant()
    fresh.load_state_dict(state)
    assert fresh.history == made.history == [(1.0, 0.1, 5), (2.0, 0.1, 3)]
    assert len(fresh) == 8
    for damaged in (
        None,
        {},
        {"history": []},
        state | {"mechanism": "rdp"},
        state | {"history": [(1.0, 0.1, 5)]},
        state | {"ledger": state["ledger"].replace("0.1", "0.2")},
    ):
        with pytest.raises(ValueError, match=r"state_dict|ledger"):
            adapter.ExactAccountant().load_state_dict(damaged)


@pytest.mark.parametrize(
    ("rows", "fits"),
    [
        ([(1.0, 0.1, 5)], True),
        ([(1.0, 0.1, 5), (2.0, 0.1, 3)], True),
        ([(1.0, 0.1, 5), (2.0, 0.1, 4)], False),
        ([(1.0, 0.1, 4), (2.0, 0.1, 1)], False),
        ([(1.0, 0.2, 1)], False),
        ([(1.0, 0.1, 5), (2.0, 0.1, 3), (1.0, 0.1, 1)], False),
    ],
)
def test_going_back_to_a_checkpoint_forgets_nothing(rows, fits):
    state = recorded((1.0, 0.1, 5), (2.0, 0.1, 3)).state_dict()
    made = recorded(*rows)
    if fits:
        made.load_state_dict(state)
        assert len(made) == 8
    else:
        with pytest.raises(ValueError, match="What was released stays released"):
            made.load_state_dict(state)
        assert made.history == rows


def test_history_can_be_assigned_as_opacus_does_and_stays_on_failure():
    made = recorded((1.0, 0.1, 5))
    with pytest.raises(ac.DomainError, match="sampling_probability"):
        made.history = [(1.0, 0.1, 1), (1.0, 1.1, 1)]
    assert made.history == [(1.0, 0.1, 5)]


def test_no_noise_is_no_privacy():
    made = recorded((0.0, 0.01, 1))
    assert made.history == [(0.0, 0.01, 1)]
    assert made.get_epsilon(DELTA) == math.inf
    with pytest.raises(ac.DomainError, match="noise_multiplier"):
        made.step(noise_multiplier=-1.0, sample_rate=0.1)
    with pytest.raises(ac.DomainError, match="noise_multiplier"):
        made.step(noise_multiplier=math.nan, sample_rate=0.1)


def test_options_of_their_numerics_are_ignored_and_others_refused():
    made = recorded((1.0, 0.1, 5))
    assert made.get_epsilon(DELTA, alphas=[2.0]) == made.get_epsilon(DELTA)
    with pytest.raises(ac.UnsupportedError, match="poisson"):
        made.get_epsilon(DELTA, poisson=False)


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    """Pairs of what two workers report of each of five runs."""
    meeting = tmp_path_factory.mktemp("workers") / "meeting"
    root = str(Path(ac.__file__).parents[1])
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": root}
    script = opacus_worker.__file__
    started = [
        subprocess.Popen(
            [sys.executable, script, str(rank), "2", str(meeting)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        for rank in range(2)
    ]  # fmt: skip
    ends = []
    for one in started:
        out, err = one.communicate(timeout=120)
        assert one.returncode == 0, err
        ends.append(json.loads(out.splitlines()[-1]))
    return list(zip(*ends, strict=True))


def test_two_workers_have_the_epsilon_of_one(workers):
    first, second = workers[0]
    assert first["optimizer"] == "DistributedDPOptimizer"
    assert first["weights"] == second["weights"]  # one model
    assert first["history"] == second["history"] == [[1.1, coin(1 / 9), 9]]
    alone = opacus_worker.run(0, 200, wrapped=lambda model: model)
    assert first["epsilon"] == second["epsilon"] == alone["epsilon"]
    assert alone["epsilon"] == ac.get_epsilon(coin(1 / 9), 1.1, 9, DELTA)
    # Together they draw what one worker would: 9 batches of 200 on average, within 6 deviations.
    assert abs(first["seen"] + second["seen"] - 1800) < 6 * math.sqrt(1800 * 8 / 9)


def test_workers_that_draw_the_same_coins_are_refused(workers):
    for found in workers[1]:
        assert "draw their batches independently" in found["refused"]


def test_workers_that_are_seeded_alike_afterwards_are_refused(workers):
    for found in workers[3]:
        assert "seeded after make_private" in found["refused"]
        assert found["epsilon"] == 0.0


def test_two_workers_with_physical_batches_have_the_epsilon_of_one(workers):
    whole = workers[0][0]
    for found in workers[4]:
        assert found["weights"] == workers[4][0]["weights"]
        assert (found["history"], found["epsilon"]) == (whole["history"], whole["epsilon"])


def test_shards_so_small_that_batches_are_empty_are_refused(workers):
    for found in workers[2]:
        assert "empty batch" in found["refused"]


# Other releases on the same records, charged to the engine's ledger.


def with_a_count():
    engine_side = adapter.ExactAccountant()
    for _ in range(3):
        engine_side.step(noise_multiplier=NOISE, sample_rate=0.1)
    engine_side.ledger.compose(ac.Laplace(2.0), label="a count")
    engine_side.step(noise_multiplier=NOISE, sample_rate=0.1)
    return engine_side


def test_other_releases_in_the_ledger_are_counted_and_kept():
    found = with_a_count()
    assert len(found) == 5
    whole = 4 * ac.PoissonSampled(ac.Gaussian(NOISE), 0.1) + ac.Laplace(2.0)
    assert found.get_epsilon(DELTA) == whole.epsilon(DELTA)
    with pytest.raises(ac.UnsupportedError, match=r"Laplace\(2.0\).*ledger.history"):
        found.history  # noqa: B018
    again = adapter.ExactAccountant()
    again.load_state_dict(json.loads(json.dumps(found.state_dict())))
    assert again.ledger.history == found.ledger.history
    again.step(noise_multiplier=NOISE, sample_rate=0.1)
    with pytest.raises(ac.DomainError, match="must continue the 6 steps"):
        again.load_state_dict(found.state_dict())
    lie = found.state_dict() | {"history": [(NOISE, 0.1, 4)]}
    with pytest.raises(ac.DomainError, match="equal to its ledger"):
        adapter.ExactAccountant().load_state_dict(lie)


@pytest.mark.parametrize(
    "release",
    [
        ac.PoissonSampled(ac.Gaussian(NOISE, 3.0), 0.1),
        ac.PoissonSampled(ac.Laplace(NOISE), 0.1),
        ac.Gaussian(NOISE),
    ],
    ids=repr,
)
def test_what_looks_like_a_step_and_is_none_has_no_row(release):
    found = adapter.ExactAccountant()
    found.ledger.compose(release)
    with pytest.raises(ac.UnsupportedError, match="cannot say"):
        found.history  # noqa: B018
    assert found.state_dict()["history"] is None
