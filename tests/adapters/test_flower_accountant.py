"""Flower's own accountant protocol; skipped where Flower is not installed, or is older than it."""

import inspect
import json

import numpy as np
import pytest

serverapp = pytest.importorskip("flwr.serverapp")
if not hasattr(serverapp, "PrivacyAccountant"):
    pytest.skip("this Flower has no PrivacyAccountant", allow_module_level=True)
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict  # noqa: E402
from flwr.clientapp import ClientApp  # noqa: E402
from flwr.serverapp import GaussianPrivacyEvent, NeighboringRelation, PrivacyConfig, SamplingMethod  # noqa: E402
from flwr.serverapp.exception import PrivacyBudgetExhausted  # noqa: E402
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg  # noqa: E402

import accountant as ac  # noqa: E402
from accountant.adapters.flower_accountant import ExactAccountant  # noqa: E402
from accountant.errors import BudgetExceeded, DomainError, UnsupportedError  # noqa: E402
from support.flower_grid import CrashError, Grid, as_in_a_run  # noqa: E402
from support.refusals import refused  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

DELTA = 1e-5
ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
POISSON, FULL = SamplingMethod.POISSON, SamplingMethod.NO_AMPLIFICATION
WITHOUT = SamplingMethod.WITHOUT_REPLACEMENT


def config(method=FULL, population=10_000, most=None):
    relation = REPLACE if method is WITHOUT else ADD
    return PrivacyConfig(DELTA, population, relation, method, most)


def event(noise=4.0, size=100, population=10_000):
    return GaussianPrivacyEvent(noise, size, population)


# Method, noise, rounds, bracket of the truth, and what Flower's own accountant answers.
KNOWN = [
    (FULL, 4.0, 100, (13.20671, 13.20672), 14.132),
    (POISSON, 1.0, 500, (1.326047, 1.326048), 1.6529),
    (WITHOUT, 1.0, 500, (10.338, 10.366), 2.539),
]


@pytest.mark.parametrize(("method", "noise", "rounds", "truth", "theirs"), KNOWN)
def test_known_values(method, noise, rounds, truth, theirs):
    ours = ExactAccountant(config(method), noise_over="clipping norm")
    ours.compose(event(noise), rounds)
    low, high = truth
    assert low <= ours.get_epsilon(DELTA) <= high
    assert ours.num_releases == rounds
    spent = ours.get_privacy_spent()
    assert (spent.epsilon, spent.delta, spent.num_releases) == (
        ours.get_epsilon(DELTA), DELTA, rounds,
    )  # fmt: skip
    assert ours.get_delta(spent.epsilon) <= DELTA * (1 + 1e-6)
    pytest.importorskip("dp_accounting")
    own = serverapp.RdpAccountant(config(method))
    own.compose(event(noise), rounds)
    assert own.get_epsilon(DELTA) == pytest.approx(theirs, rel=1e-3)
    # Below the truth where its noise is over the clipping norm and a client is replaced.
    assert (own.get_epsilon(DELTA) < low) == (method is WITHOUT)


def test_the_unit_of_a_replacement_must_be_said():
    refused(UnsupportedError, "noise_over", ExactAccountant, config(WITHOUT))
    over_norm = ExactAccountant(config(WITHOUT), noise_over="clipping norm")
    over_change = ExactAccountant(config(WITHOUT), noise_over="sensitivity")
    over_norm.compose(event(2.0), 500)
    over_change.compose(event(1.0), 500)
    assert over_norm.get_epsilon(DELTA) == over_change.get_epsilon(DELTA)
    own = 2.539  # Flower's own for noise over the sensitivity
    assert over_change.get_epsilon(DELTA) < own
    refused(DomainError, "noise_over", ExactAccountant, config(), noise_over="norm")


def test_it_has_what_the_protocol_has():
    for name, member in vars(serverapp.PrivacyAccountant).items():
        if name.startswith("_"):
            continue
        found = inspect.getattr_static(ExactAccountant, name)
        assert isinstance(found, property) == isinstance(member, property), name
        if not isinstance(member, property):
            wanted = inspect.signature(member).parameters
            assert list(inspect.signature(found).parameters) == list(wanted), name


@pytest.mark.parametrize(
    ("method", "noise", "most"), [(FULL, 8.0, 3.0), (POISSON, 1.0, 0.9), (WITHOUT, 1.0, 4.5)]
)
def test_the_budget_is_that_of_the_exact_composition(method, noise, most):
    one = ExactAccountant(config(method, most=most), noise_over="clipping norm")
    step = one._mechanism(event(noise))
    rounds = 0
    while not one.would_exceed(event(noise)):
        one.compose(event(noise))
        rounds += 1
    assert rounds > 5
    assert one.num_releases == rounds
    assert one.get_epsilon(DELTA) <= most < ((rounds + 1) * step).epsilon(DELTA)
    refused(BudgetExceeded, "", one.compose, event(noise))


def test_would_exceed_charges_nothing_and_says_what_is_missing():
    free = ExactAccountant(config())
    refused(DomainError, "max_epsilon", free.would_exceed, event())
    assert not free.would_exceed(event(), 13.2068, 100)
    assert free.would_exceed(event(), 13.2067, 100)
    assert free.would_exceed(event(1e-4), 5.0)
    capped = ExactAccountant(config(most=13.2068))
    assert not capped.would_exceed(event(), count=100)
    assert capped.would_exceed(event(), count=101)
    assert capped.num_releases == 0
    refused(DomainError, "population_size", capped.would_exceed, event(population=5_000))
    refused(DomainError, "population_size", capped.compose, event(population=5_000))
    refused(BudgetExceeded, "", capped.compose, event(), 101)
    assert capped.num_releases == 0


def test_the_state_goes_through_json_and_forgets_nothing():
    one = ExactAccountant(config(most=20.0))
    one.compose(event(), 10)
    early = json.loads(json.dumps(one.state_dict()))
    one.compose(event(), 5)
    late = json.loads(json.dumps(one.state_dict()))
    again = ExactAccountant(config(most=20.0))
    again.load_state_dict(late)
    assert again.get_epsilon(DELTA) == one.get_epsilon(DELTA)
    # The plan went with it: as many rounds as before are left.
    rounds = 0
    while not again.would_exceed(event()):
        again.compose(event())
        rounds += 1
    assert ((15 + rounds) * ac.Gaussian(4.0)).epsilon(DELTA) <= 20.0
    refused(DomainError, "does not hold them", one.load_state_dict, early)
    assert one.num_releases == 15
    refused(DomainError, "configuration", ExactAccountant(config(most=21.0)).load_state_dict, late)
    refused(DomainError, "backend", one.load_state_dict, {**late, "backend": "rdp"})


def test_rounds_are_on_the_disk_before_they_are_released(tmp_path):
    place = tmp_path / "rounds.json"
    one = ExactAccountant(config(most=20.0), path=place)
    one.compose(event(), 3)
    again = ExactAccountant(config(most=20.0), path=place)  # after a crash
    assert again.num_releases == 3
    again.compose(event())
    refused(DomainError, "budget", ExactAccountant, config(most=30.0), path=place)
    # A former server cannot go on beside the one that took over.
    refused(ac.errors.LedgerConflict, "", one.compose, event())
    later = ExactAccountant(config(most=20.0))
    later.compose(event(), 5)
    refused(DomainError, "no more rounds", again.load_state_dict, later.state_dict())


# A run of Flower's own strategy.


@pytest.fixture
def client(monkeypatch):
    as_in_a_run(monkeypatch)
    app = ClientApp()

    @app.train()
    def train(message, context):
        new = {k: Array(a.numpy() + 1.0) for k, a in message.content["arrays"].items()}
        told = {"arrays": ArrayRecord(new), "metrics": MetricRecord({"num-examples": 1})}
        return Message(RecordDict(told), reply_to=message)

    return app


def start(client, accountant, rounds, dies_at=None, noise=4.0):
    strategy = DifferentialPrivacyServerSideFixedClipping(
        FedAvg(fraction_evaluate=0.0, min_train_nodes=10, min_available_nodes=10),
        noise,
        1.0,
        10,
        accountant=accountant,
    )
    grid = Grid(client, range(1, 11), dies_at=dies_at)
    strategy.start(grid, ArrayRecord({"w": Array(np.zeros(5))}), num_rounds=rounds)
    return strategy


def test_a_run_of_flower_stops_at_the_budget_by_itself(client):
    accountant = ExactAccountant(config(population=10, most=13.2068))
    refused(PrivacyBudgetExhausted, "", start, client, accountant, 120)
    assert accountant.num_releases == 100  # Flower's own accountant stops after 89
    assert accountant.get_epsilon(DELTA) <= 13.2068


def test_a_killed_server_neither_loses_nor_doubles_a_charge(client, tmp_path):
    place = tmp_path / "rounds.json"
    with pytest.raises(CrashError):
        start(client, ExactAccountant(config(population=10), path=place), 9, dies_at=4)
    after = ExactAccountant(config(population=10), path=place)
    assert after.num_releases == 3  # the fourth was asked for, and never summed
    start(client, after, 6)
    assert ExactAccountant(config(population=10), path=place).num_releases == 9
