"""The Flower strategy and mod, on a grid in this process; skipped where Flower is not installed."""

import numpy as np
import pytest

pytest.importorskip("flwr")
pytest.importorskip("flwr.serverapp")
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

import accountant as ac
from accountant.adapters import flower
from accountant.adapters.flower import CentralNoise, SecureSumNoise
from accountant.learn import AdaptiveQuantile
from accountant.ledger import Budget
from accountant.noise import SecureGenerator
from support.flower_grid import CrashError, Grid, as_in_a_run

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

DELTA = 1e-5
NAMES = {1000 + i: f"site-{i}" for i in range(20)}
CENTRAL = CentralNoise(1.0, 1.0, sampling_probability=0.5)
SECURE = SecureSumNoise(3.0, 1.0, least_survivors=15, levels=2**12)
MOVING = SecureSumNoise(
    1.0, AdaptiveQuantile(5.0, count_noise=2.0), 15, levels=2**10, distribution="skellam"
)
START = {"weight": np.zeros((2, 2), np.float32), "bias": np.zeros(3, np.float64)}


def initial():
    return ArrayRecord({name: Array(value) for name, value in START.items()})


@pytest.fixture(autouse=True)
def _as_in_a_run(monkeypatch):
    as_in_a_run(monkeypatch)


def app(noise=CENTRAL, metrics=True):
    found = ClientApp(mods=[flower.secure_sum_mod(noise)] if noise is not CENTRAL else None)
    flower.answer_names(found, lambda context: NAMES[context.node_config["partition-id"]])

    @found.train()
    def train(message, context):
        arrays = message.content["arrays"]
        new = ArrayRecord(
            {k: Array(a.numpy() + 0.5 * (1.0 - a.numpy())) for k, a in arrays.items()}
        )
        told = {"arrays": new} | ({"metrics": MetricRecord({"loss": 0.1})} if metrics else {})
        return Message(RecordDict(told), reply_to=message)

    return found


def strategy(place, noise=CENTRAL, epsilon=30.0, planned=20):
    budgets = dict.fromkeys(NAMES.values(), Budget(epsilon, DELTA))
    return flower.PrivateFedAvg(
        place, noise, budgets, planned_rounds=planned, generator=SecureGenerator(1)
    )


@pytest.mark.parametrize("noise", [CENTRAL, SECURE, MOVING], ids=["central", "secure", "moving"])
def test_a_run_learns_and_is_charged_round_by_round(noise, tmp_path):
    one = strategy(tmp_path, noise)
    result = one.start(Grid(app(noise), NAMES), initial(), num_rounds=12)
    assert one.rounds.rounds == 12
    assert one.rounds.epsilon(DELTA) == (12 * noise.mechanism(7)).epsilon(DELTA)
    arrays = result.arrays
    assert {k: (a.shape, a.dtype) for k, a in arrays.items()} == {
        "weight": ((2, 2), "float32"), "bias": ((3,), "float64"),
    }  # fmt: skip
    flat = np.concatenate([a.ravel() for a in arrays.to_numpy_ndarrays()])
    # The clients draw their own noise, unseeded: the widest of the three deviates by .08.
    assert np.mean(flat) == pytest.approx(1.0, abs=0.5)
    if noise is MOVING:  # clients were told each round's norm
        assert one.rounds.begin().clipping_norm < 4.0
    # Nobody pays for what clients say about their data.
    assert result.train_metrics_clientapp == {}
    assert list(one.configure_evaluate(1, arrays, ConfigRecord(), None)) == []


def test_a_run_stops_at_the_budget(tmp_path):
    one = strategy(tmp_path, epsilon=6.0)
    grid = Grid(app(), NAMES)
    one.start(grid, initial(), num_rounds=100)
    spent = one.rounds.rounds
    assert grid.trained <= spent < 100
    assert (
        ac.get_epsilon(0.5, 1.0, spent, DELTA) <= 6.0 < ac.get_epsilon(0.5, 1.0, spent + 1, DELTA)
    )
    again = strategy(tmp_path, epsilon=6.0)
    result = again.start(grid, initial(), num_rounds=100)
    assert again.rounds.rounds == spent
    assert np.array_equal(_flat(result.arrays), again.rounds.model.astype(np.float32))


def _flat(arrays):
    return np.concatenate([a.ravel() for a in arrays.to_numpy_ndarrays()]).astype(np.float32)


def test_a_server_that_died_is_followed_by_another(tmp_path):
    one = strategy(tmp_path)
    with pytest.raises(CrashError):
        one.start(Grid(app(), NAMES, dies_at=4), initial(), num_rounds=6)
    # The fourth round was charged, and asked for, but not released.
    again = strategy(tmp_path)
    result = again.start(Grid(app(), NAMES), initial(), num_rounds=6)
    assert again.rounds.rounds == 6
    assert again.rounds.epsilon(DELTA) == ac.get_epsilon(0.5, 1.0, 6, DELTA)
    assert np.mean(_flat(result.arrays)) > 0.5


def test_clients_that_fail_have_dropped_out(tmp_path):
    one = strategy(tmp_path)
    one.start(Grid(app(), NAMES, failing=set(NAMES)), initial(), num_rounds=2)
    assert one.rounds.rounds == 2
    few = strategy(tmp_path / "few", SECURE)
    few.start(Grid(app(SECURE), NAMES, failing=list(NAMES)[:6]), initial(), num_rounds=3)
    assert few.rounds.rounds == 0
    assert few.rounds.epsilon(DELTA) == (3 * SECURE.mechanism(7)).epsilon(DELTA)


def test_what_nodes_say_of_themselves_cannot_stop_a_run(tmp_path, caplog):
    """A client comes back on another node, one gives no name, one sends what is no record."""
    strange = app(metrics=False)
    strange._registered_funcs = {
        key: each for key, each in strange._registered_funcs.items() if "query" not in str(key)
    }
    answers = {1003: {"name": "site-4"}, 1005: {"other": "site-5"}, 1006: {"name": [1, 2]}}

    def answer(message, context):
        node = context.node_config["partition-id"]
        told = {"name": ConfigRecord(answers.get(node, {"name": NAMES[node]}))}
        return Message(RecordDict({} if node == 1007 else told), reply_to=message)

    strange.query("client_name")(answer)
    everyone = CentralNoise(1.0, 1.0)
    one = strategy(tmp_path, everyone)
    asked = []
    grid = Grid(strange, NAMES)
    send = grid.send_and_receive
    grid.send_and_receive = lambda messages, **options: send(
        [asked.append((m.metadata.message_type, m.metadata.dst_node_id)) or m for m in messages],
        **options,
    )
    one.start(grid, initial(), num_rounds=2)
    assert one.rounds.rounds == 2
    assert one.rounds.epsilon(DELTA) == (2 * everyone.mechanism(7)).epsilon(DELTA)
    trained = {node for kind, node in asked if kind == "train"}
    assert trained == set(NAMES) - {1003, 1004, 1005, 1006, 1007}
    assert "2 nodes call themselves 'site-4'" in caplog.text


def test_the_mod_sends_nothing_but_noisy_integers():
    message = Message(
        RecordDict({"arrays": initial(), "config": ConfigRecord()}),
        dst_node_id=1000,
        message_type="train",
    )
    message.metadata._message_id = "1"
    reply = app(SECURE)(message, type("Context", (), {"node_config": {"partition-id": 1000}})())
    (record,) = reply.content.values()
    (sent,) = record.to_numpy_ndarrays()
    assert sent.dtype == np.int64
    assert sent.shape == (7,)
    assert np.max(np.abs(sent)) < 2**12 + 12 * SECURE.scale


def test_what_cannot_be_private_is_refused(tmp_path):
    whole = ArrayRecord({"steps": Array(np.zeros(3, np.int64))})
    with pytest.raises(ac.UnsupportedError, match="floating-point"):
        strategy(tmp_path).start(Grid(app(), NAMES), whole, num_rounds=1)
    with pytest.raises(ac.errors.DomainError, match="was not opened"):
        strategy(tmp_path).aggregate_train(1, [])


def test_other_noise_after_a_restart_and_a_seed_are_logged(tmp_path, caplog):
    caplog.set_level("INFO", logger="flwr")
    one = strategy(tmp_path, CentralNoise(1.0, 1.0), planned=5)
    one.start(Grid(app(), NAMES), initial(), num_rounds=5)
    before = one.rounds.epsilon(DELTA)
    assert before == (5 * ac.Gaussian(1.0)).epsilon(DELTA)
    again = strategy(tmp_path, CentralNoise(10.0, 1.0, 0.01), planned=5)
    again.start(Grid(app(), NAMES), initial(), num_rounds=6)
    both = 5 * ac.Gaussian(1.0) + ac.PoissonSampled(ac.Gaussian(10.0), 0.01)
    assert again.rounds.epsilon(DELTA) == both.epsilon(DELTA) > before
    assert f"round 6: ε = {both.epsilon(DELTA):.4f}" in caplog.text
    assert "the models are not private: seeded" in caplog.text
    caplog.clear()
    flower.secure_sum_mod(SECURE, SecureGenerator(1))
    assert "a client's messages are not private: seeded" in caplog.text
