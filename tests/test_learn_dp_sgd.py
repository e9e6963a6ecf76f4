"""The loop of DP-SGD: what it refuses before any gradient, what it reveals, and that it trains."""

import math

import numpy as np
import pytest

import accountant as ac
from accountant.errors import ArgumentTypeError, BudgetExceeded, DomainError, UnsupportedError
from accountant.learn import (
    SGD,
    AdaptiveQuantile,
    Automatic,
    LinearRegression,
    MultilayerPerceptron,
    PerExampleModel,
    PerLayer,
    SoftmaxRegression,
    TrainingRecord,
)
from dp_sgd_runs import RNG, Untouchable, X, Y, train


def test_the_result_is_random_unless_seeded():
    assert not np.array_equal(train(rng=None).parameters, train(rng=None).parameters)
    assert np.array_equal(train(rng=3).parameters, train(rng=3).parameters)
    seeded, secure = train(rng=3), train(rng=None)
    assert not seeded.private
    assert "NOT PRIVATE" in seeded.statement
    assert "not private: seeded" in seeded.statement
    assert secure.private
    assert "add-or-remove" in secure.statement


def test_history_is_public_unless_asked():
    result = train()
    assert result.history.private == []
    assert set(result.history.public[0]) == {
        "step", "epsilon", "learning_rate", "clipping_norm", "noisy_gradient_norm"
    }  # fmt: skip
    assert [row["epsilon"] for row in result.history.public] == [
        ac.get_epsilon(0.125, 1.0, k, 1e-5) for k in range(1, 6)
    ]
    noisy = train(nonprivate_diagnostics=True)
    assert {"mean_loss", "clipped_fraction", "records", "dropped", "step"} == set(
        noisy.history.private[0]
    )
    assert np.array_equal(noisy.parameters, result.parameters)


NAN = X.copy()
NAN[7, 2] = np.nan
LABELS = Y.copy()
LABELS[3] = 2


@pytest.mark.parametrize(
    ("error", "given", "message"),
    [
        (DomainError, {"data": NAN}, "finite"),
        (DomainError, {"data": X * np.inf}, "finite"),
        (DomainError, {"labels": LABELS}, "classes"),
        (DomainError, {"data": X[:0], "labels": Y[:0]}, "at least one"),
        (DomainError, {"expected_batch_size": 401}, "at most"),
        (DomainError, {"expected_batch_size": 0}, "expected_batch_size"),
        (DomainError, {"expected_batch_size": math.nan}, "expected_batch_size"),
        (DomainError, {"clipping_norm": 0.0}, "clipping_norm"),
        (DomainError, {"clipping_norm": -1.0}, "clipping_norm"),
        (DomainError, {"clipping_norm": math.nan}, "clipping_norm"),
        (DomainError, {"clipping_norm": math.inf}, "clipping_norm"),
        (ArgumentTypeError, {"clipping_norm": "1"}, "clipping_norm"),
        (ArgumentTypeError, {"clipping_norm": None}, "clipping_norm"),
        (DomainError, {"clipping_norm": PerLayer(1.0, (1.0, 2.0))}, "weights"),
        (DomainError, {"clipping_norm": AdaptiveQuantile(1.0, count_noise=0.4)}, "count_noise"),
        (DomainError, {"target_epsilon": 1.0}, "exactly one"),
        (DomainError, {"noise_multiplier": None}, "exactly one"),
        (DomainError, {"noise_multiplier": -1.0}, "noise_multiplier"),
        (DomainError, {"noise_multiplier": None, "target_epsilon": 0.0}, "target_epsilon"),
        (DomainError, {"noise_multiplier": None, "target_epsilon": 1.0, "steps": 0}, "steps"),
        (DomainError, {"delta": 1.0}, "delta"),
        (DomainError, {"delta": -1e-5}, "delta"),
        (ArgumentTypeError, {"steps": 5.0}, "steps"),
        (ArgumentTypeError, {"steps": True}, "steps"),
        (DomainError, {"steps": -1}, "steps"),
        (DomainError, {"epochs": 1}, "at most one"),
        (DomainError, {"steps": None}, "steps"),
        (UnsupportedError, {"sampler": "shuffle"}, "sampler"),
        (UnsupportedError, {"sampler": None}, "sampler"),
        (DomainError, {"sampler": "full"}, "expected_batch_size"),
        (DomainError, {"noise": "laplace"}, "noise"),
        (DomainError, {"sampling_probability": 1.5}, "sampling_probability"),
        (DomainError, {"sampling_probability": 0.9}, "expected_batch_size"),
        (DomainError, {"averaging": "best"}, "averaging"),
        (DomainError, {"projection_radius": 0.0}, "projection_radius"),
        (ArgumentTypeError, {"optimizer": "adam"}, "optimizer"),
        (ArgumentTypeError, {"ledger": []}, "ledger"),
        (UnsupportedError, {"rng": np.random.default_rng(0)}, "rng"),
        (UnsupportedError, {"rng": True}, "rng"),
        (BudgetExceeded, {"ledger": TrainingRecord(1.0, 1e-5), "steps": 10_000}, "budget"),
    ],
)
def test_refused_before_any_gradient(error, given, message):
    with pytest.raises(error, match=message):
        train(Untouchable(5), **given)


@pytest.mark.parametrize("poison", [1e300, -1e308, 1e160])
def test_records_that_overflow_raise_nothing(poison):
    data = X.copy()
    data[5] = poison
    result = train(
        MultilayerPerceptron((5, 4, 2), activation="relu"), data, sampler="full",
        expected_batch_size=400, nonprivate_diagnostics=True,
    )  # fmt: skip
    assert np.isfinite(result.parameters).all()
    assert result.history.private[0]["dropped"] == 1


def test_models_that_look_across_records_are_refused():
    def centred(w, x, t):
        rows = (x @ w - t)[:, None] * x
        return rows - rows.mean(axis=0)

    with pytest.raises(UnsupportedError, match="other records"):
        train(PerExampleModel(np.zeros(5), centred))


def test_clipping_rules_train():
    for rule in (Automatic(0.5), PerLayer(1.0), AdaptiveQuantile(1.0)):
        result = train(
            MultilayerPerceptron((5, 6, 2)), clipping_norm=rule, steps=60,
            noise_multiplier=0.5, optimizer=SGD(1.0, 0.9),
        )  # fmt: skip
        assert result.model.score(X, Y) > 0.85
        assert result.epsilon == ac.get_epsilon(0.125, 0.5, 60, 1e-5)


def test_adaptive_clipping_finds_the_quantile():
    norms = np.abs(RNG.normal(size=400)) * 3 + 0.1
    model = PerExampleModel(np.zeros(1), lambda w, x, t: x[:, :1])
    result = train(
        model, norms[:, None], np.zeros(400), clipping_norm=AdaptiveQuantile(0.1, 0.5, 0.3),
        sampler="full", expected_batch_size=400, steps=100, noise_multiplier=1.0,
    )  # fmt: skip
    last = np.mean([row["clipping_norm"] for row in result.history.public[-20:]])
    assert last == pytest.approx(np.median(norms), rel=0.1)


def test_data_are_not_changed():
    before = X.copy(), Y.copy()
    train()
    assert np.array_equal(before[0], X)
    assert np.array_equal(before[1], Y)


def test_a_regression_trains_privately():
    y = X @ np.array([1.0, -2.0, 0.0, 0.5, 0.0])
    result = train(
        LinearRegression(5), X, y, sampler="full", expected_batch_size=400, steps=60,
        noise_multiplier=4.0, clipping_norm=2.0, optimizer=SGD(0.3), averaging="mean",
    )  # fmt: skip
    assert result.model.score(X, y) > 0.95


def test_softmax_in_single_precision():
    model = SoftmaxRegression(5, 3, dtype=np.float32)
    result = train(model, optimizer=SGD(1.0), steps=40)
    assert result.parameters.dtype == np.float32
    assert result.model.score(X, Y) > 0.8


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_is_shown_on_a_terminal_only(monkeypatch, terminal):
    from accountant.learn import dp_sgd, progress

    shown = []
    real = progress.bar
    monkeypatch.setattr(progress, "bar", lambda *given: shown.append(given) or real(*given))
    monkeypatch.setattr(dp_sgd.sys.stderr, "isatty", lambda: terminal, raising=False)
    train(steps=3)
    assert shown == ([(3, 0)] if terminal else [])
    train(steps=3, progress=False)
    assert len(shown) == terminal
