"""The NVFlare controller and filter, with an engine in this process; skipped without NVFlare."""

import numpy as np
import pytest

pytest.importorskip("nvflare")
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType

import accountant as ac
from accountant.adapters.federated import CentralNoise, SecureSumNoise
from accountant.adapters.nvflare import PrivateFedAvg, SecureSumFilter, flat
from accountant.learn import AdaptiveQuantile

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

DELTA = 1e-5
SITES = [f"site-{i}" for i in range(20)]
START = {"weight": np.zeros((2, 2), np.float32), "bias": np.zeros(3)}


class Named:
    def __init__(self, name):
        self.name = name


class Engine:
    def get_clients(self):
        return [Named(name) for name in SITES[:-1]]  # one is not connected


class Quiet:
    triggered = False


class Controller(PrivateFedAvg):
    """Has sites in this process; ``answer`` says what one of them sends."""

    def __init__(self, *args, answer=None, **options):
        super().__init__(*args, **options)
        self.engine, self.abort_signal = Engine(), Quiet()
        self.answer = answer or self.honest
        self.asked, self.saved, self.said = [], [], []

    def info(self, text):
        self.said.append(text)

    warning = info

    def load_model(self):
        return FLModel(params_type=ParamsType.FULL, params=dict(START))

    def save_model(self, model):
        self.saved.append(model)

    def honest(self, name, params):
        new = {key: value + 0.5 * (1.0 - value) for key, value in params.items()}
        return FLModel(params_type=ParamsType.FULL, params=new, metrics={"loss": 0.1})

    def send_model_and_wait(self, *, targets, data, timeout):
        assert targets
        self.asked.append(targets)
        answers = []
        for name in targets:
            answer = self.answer(name, data.params)
            if answer is not None:
                answer.meta["client_name"] = name
                answers.append(answer)
        return answers


def central(place, **options):
    given = {"rounds": 12, "noise_multiplier": 1.0, "sampling_probability": 0.5} | options
    budgets = dict.fromkeys(SITES, (30.0, DELTA))
    return Controller(str(place), budgets, clipping_norm=1.0, **given)


def test_a_run_learns_and_is_charged_round_by_round(tmp_path):
    one = central(tmp_path)
    one.run()
    assert len(one.saved) == 12
    assert f"ε = {ac.get_epsilon(0.5, 1.0, 12, DELTA):.4f}" in one.said[-1]
    found = one.saved[-1]
    assert {k: (v.shape, str(v.dtype)) for k, v in found.params.items()} == {
        "weight": ((2, 2), "float32"), "bias": ((3,), "float64"),
    }  # fmt: skip
    assert np.mean(flat(found.params)) == pytest.approx(1.0, abs=0.45)
    assert not found.metrics
    assert SITES[-1] not in {name for names in one.asked for name in names}
    again = central(tmp_path)
    again.run()
    assert again.saved == []
    assert "12 rounds were released" in again.said[-1]


def test_a_run_stops_at_the_budget(tmp_path):
    one = central(tmp_path, rounds=100)
    one.budgets = dict.fromkeys(SITES, (6.0, DELTA))
    one.run()
    rounds = len(one.saved)
    costs = [ac.get_epsilon(0.5, 1.0, n, DELTA) for n in (rounds, rounds + 1)]
    assert costs[0] <= 6.0 < costs[1]


STRANGE = {
    "nothing": lambda *_: None,
    "no parameters": lambda *_: FLModel(params_type=ParamsType.FULL, params={}),
    "text": lambda *_: FLModel(params_type=ParamsType.FULL, params={"weight": "x", "bias": "y"}),
    "others": lambda *_: FLModel(params_type=ParamsType.DIFF, params={"weight": np.ones(9)}),
    "not finite": lambda *_: FLModel(
        params_type=ParamsType.DIFF, params={"weight": np.full((2, 2), np.nan), "bias": np.zeros(3)}
    ),
}


@pytest.mark.parametrize("answer", STRANGE.values(), ids=STRANGE)
def test_what_sites_send_cannot_stop_a_run(answer, tmp_path):
    one = central(tmp_path, rounds=2, answer=answer)
    one.run()
    assert len(one.saved) == 2
    assert np.all(np.isfinite(flat(one.saved[-1].params)))


def test_nobody_is_asked_where_nobody_was_drawn(tmp_path):
    # NVFlare sends a task without targets to everybody.
    one = central(tmp_path, rounds=3, sampling_probability=1e-12)
    one.run()
    assert one.asked == []
    assert len(one.saved) == 3


def through(noise, name, params):
    """Return what arrives when a site sends ``params`` through its filter."""
    change = {key: 0.5 * (1.0 - value) for key, value in params.items()}
    dxo = DXO(DataKind.WEIGHT_DIFF, data=change, meta={"loss": 0.1})
    sent = dxo.to_shareable()
    passed = from_shareable(SecureSumFilter(**noise).process(sent, _Context()))
    assert passed.data.keys() == {"message"}
    assert "loss" not in passed.meta
    assert passed.data["message"].dtype == np.int64
    return FLModel(params_type=ParamsType.DIFF, params=passed.data)


class _Context:
    def get_prop(self, *_):
        return None

    def get_engine(self):
        return None


@pytest.mark.parametrize("distribution", ["discrete gaussian", "skellam"])
def test_sites_add_their_own_noise(distribution, tmp_path, monkeypatch):
    monkeypatch.setattr("nvflare.apis.dxo_filter.add_job_audit_event", lambda **_: None)
    noise = {"noise_multiplier": 3.0, "clipping_norm": 1.0, "least_survivors": 15, "levels": 2**12}
    noise["distribution"] = distribution
    budgets = dict.fromkeys(SITES, (30.0, DELTA))
    one = Controller(
        str(tmp_path), budgets, 12, answer=lambda *told: through(noise, *told), **noise
    )
    one.run()
    secure = SecureSumNoise(**noise)
    assert f"ε = {(12 * secure.mechanism(7)).epsilon(DELTA):.4f}" in one.said[-1]
    assert np.mean(flat(one.saved[-1].params)) == pytest.approx(1.0, abs=0.6)


def test_the_filter_passes_only_differences(monkeypatch):
    monkeypatch.setattr("nvflare.apis.dxo_filter.add_job_audit_event", lambda **_: None)
    whole = DXO(DataKind.WEIGHTS, data=dict(START)).to_shareable()
    with pytest.raises(ac.UnsupportedError, match="difference to the global model"):
        SecureSumFilter(1.0, 1.0, 15).process(whole, _Context())


def test_the_arguments_say_which_noise_it_is(tmp_path):
    assert central(tmp_path).noise() == CentralNoise(1.0, 1.0, 0.5)
    adaptive = central(tmp_path, count_noise=2.0).noise()
    assert adaptive == CentralNoise(1.0, AdaptiveQuantile(1.0, count_noise=2.0), 0.5)
    with pytest.raises(ac.UnsupportedError, match="do not see the norm"):
        central(tmp_path, sampling_probability=None, least_survivors=3, count_noise=2.0)
    for wrong in ({"sampling_probability": None}, {"least_survivors": 3}):
        with pytest.raises(ac.UnsupportedError, match="give one of sampling_probability"):
            central(tmp_path, **wrong)


def test_a_job_with_other_noise_tells_what_earlier_rounds_cost(tmp_path):
    central(tmp_path, rounds=5, sampling_probability=1.0).run()
    again = central(tmp_path, rounds=6, noise_multiplier=10.0, sampling_probability=0.01)
    again.run()
    both = 5 * ac.Gaussian(1.0) + ac.PoissonSampled(ac.Gaussian(10.0), 0.01)
    assert any(f"round 6: ε = {both.epsilon(DELTA):.4f}" in each for each in again.said)
    assert any(f"6 rounds were released, ε = {both.epsilon(DELTA):.4f}" in e for e in again.said)
