"""The loop: it is the plain optimiser when privacy is off, and its account is get_epsilon's."""

import contextlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accountant as ac
from accountant.errors import (
    ArgumentTypeError,
    BudgetExceeded,
    DomainError,
    UnsupportedError,
)
from accountant.learn import (
    SGD,
    AdaGrad,
    Adam,
    AdamW,
    AdaptiveQuantile,
    Automatic,
    DPAdam,
    LinearRegression,
    LogisticRegression,
    MultilayerPerceptron,
    PerExampleModel,
    PerLayer,
    RidgeRegression,
    RMSProp,
    SoftmaxRegression,
    TrainingRecord,
    train_dp_sgd,
)
from accountant.learn.models.base import Model
from accountant.learn.record import Release
from accountant.noise import SecureGenerator

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 5))
Y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)


def train(model=None, data=X, labels=Y, **given):
    settings = {
        "clipping_norm": 1.0,
        "noise_multiplier": 1.0,
        "delta": 1e-5,
        "expected_batch_size": 50,
        "steps": 5,
        "rng": 1,
    } | given
    return train_dp_sgd(model or LogisticRegression(5), data, labels, **settings)


# Plain optimisers, written out. Each takes (θ, g, state, t) with t from 1.


def plain_sgd(w, g, s, t):
    return w - 0.3 * g


def plain_momentum(w, g, s, t):
    s["v"] = s.get("v", 0 * w) * 0.9 + g
    return w - 0.3 * s["v"]


def plain_nesterov(w, g, s, t):
    s["v"] = s.get("v", 0 * w) * 0.9 + g
    return w - 0.3 * (g + 0.9 * s["v"])


def plain_adagrad(w, g, s, t):
    s["a"] = s.get("a", 0 * w) + g * g
    return w - 0.3 * g / (np.sqrt(s["a"]) + 1e-10)


def plain_rmsprop(w, g, s, t):
    s["a"] = s.get("a", 0 * w) * 0.99 + (1.0 - 0.99) * g * g
    return w - 0.3 * g / (np.sqrt(s["a"]) + 1e-8)


def plain_adam(w, g, s, t):
    s["m"] = s.get("m", 0 * w) * 0.9 + (1.0 - 0.9) * g
    s["a"] = s.get("a", 0 * w) * 0.999 + (1.0 - 0.999) * (g * g)
    return w - 0.3 * (s["m"] / (1.0 - 0.9**t)) / (np.sqrt(s["a"] / (1.0 - 0.999**t)) + 1e-8)


def plain_adamw(w, g, s, t):
    return plain_adam(w - 0.3 * 0.01 * w, g, s, t)


PLAIN = [
    (SGD(0.3), plain_sgd),
    (SGD(0.3, 0.9), plain_momentum),
    (SGD(0.3, 0.9, nesterov=True), plain_nesterov),
    (AdaGrad(0.3), plain_adagrad),
    (RMSProp(0.3), plain_rmsprop),
    (Adam(0.3), plain_adam),
    (AdamW(0.3), plain_adamw),
]


@pytest.mark.parametrize(("optimizer", "plain"), PLAIN, ids=lambda v: getattr(v, "__name__", ""))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sampler", ["full", "poisson"])
def test_without_noise_and_clipping_it_is_the_plain_optimiser(optimizer, plain, dtype, sampler):
    model = MultilayerPerceptron((5, 7, 2), dtype=dtype)
    twin = MultilayerPerceptron((5, 7, 2), dtype=dtype)
    batch = 50.0 if sampler == "poisson" else float(len(X))
    result = train(
        model, optimizer=optimizer, clipping_norm=math.inf, noise_multiplier=0.0, steps=7,
        sampler=sampler, expected_batch_size=batch,
    )  # fmt: skip
    generator, state = SecureGenerator(1), {}
    for t in range(1, 8):
        rows = np.arange(len(X)) if sampler == "full" else generator.subset(len(X), 50 / 400)
        total = twin.gradient_sum(X[rows], Y[rows])
        g = (total / batch).astype(dtype)
        twin.parameters[:] = plain(twin.parameters.copy(), g, state, t)
        generator.erase()
    assert np.array_equal(result.parameters, twin.parameters)
    assert result.epsilon == math.inf
    assert not result.private


def test_ridge_without_noise_reaches_the_closed_form():
    y = X @ np.arange(5.0) + 2
    model = RidgeRegression(5, penalty=0.1, bias=False)
    result = train(
        model, X, y, optimizer=SGD(0.3), clipping_norm=math.inf, noise_multiplier=0.0,
        sampler="full", expected_batch_size=400, steps=400,
    )  # fmt: skip
    exact = np.linalg.solve(X.T @ X / 400 + 0.1 * np.eye(5), X.T @ y / 400)
    assert np.allclose(result.parameters, exact, atol=1e-10)


@settings(max_examples=25)
@given(st.floats(0.3, 20.0), st.integers(0, 40), st.integers(1, 400), st.sampled_from([1e-5, 1e-3]))
def test_the_ledger_is_get_epsilon(sigma, steps, batch, delta):
    result = train(noise_multiplier=sigma, steps=steps, expected_batch_size=batch, delta=delta)
    q = Fraction(result.plan.sampling_probability)
    assert Fraction(batch, 400) <= q <= Fraction(batch, 400) * (1 + Fraction(1, 2**52))
    assert result.epsilon == ac.get_epsilon(result.plan.sampling_probability, sigma, steps, delta)
    assert result.ledger.epsilon(delta) == result.epsilon
    assert result.steps == steps


def test_full_batches_are_accounted_without_amplification():
    result = train(sampler="full", expected_batch_size=400)
    assert result.epsilon == ac.get_epsilon(1.0, 1.0, 5, 1e-5) > train().epsilon


@pytest.mark.parametrize("target", [0.1, 1.0, 8.0])
def test_a_target_is_met(target):
    result = train(noise_multiplier=None, target_epsilon=target, steps=20)
    assert result.epsilon <= target
    assert result.plan.noise_multiplier == ac.calibrate_sigma(target, 1e-5, 0.125, 20)


def test_epochs_are_steps():
    assert train(steps=None, epochs=2).steps == 16
    assert train(steps=None, epochs=2.01).steps == 17


def test_the_noise_has_the_deviation_of_the_account():
    class Still(Model):
        """Zero gradients: what is released is the noise."""

        def __init__(self):
            self.parameters = np.zeros(20_000)
            self.groups = (slice(0, 20_000),)
            self.widest = 20_000

        def check(self, data, labels):
            return np.asarray(data), np.asarray(labels)

        def add_block(self, x, y, filled, rule, totals):
            pass

        def outputs(self, data):
            return data

    for noise in ("gaussian", "discrete_gaussian"):
        model = Still()
        train(
            model, optimizer=SGD(1.0), noise=noise, noise_multiplier=2.0, clipping_norm=0.5,
            steps=1, expected_batch_size=50,
        )  # fmt: skip
        spread = model.parameters.std() * 50
        # The sensitivity is a little above the clipping norm, never below.
        assert 1.0 * 0.98 < spread < 1.0 * 1.03
        assert abs(model.parameters.mean() * 50) < 6 / math.sqrt(20_000)


def test_empty_batches_are_released():
    record = TrainingRecord()
    result = train(sampling_probability=0.0, expected_batch_size=1.0, ledger=record)
    assert result.parameters.any()
    assert result.steps == 5


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


class Untouchable(LogisticRegression):
    """Fails the test when a gradient is computed."""

    def add_block(self, *given):
        raise AssertionError("a gradient was computed")

    def row_results(self, *given):
        raise AssertionError("a gradient was computed")


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


def test_a_budget_says_how_many_steps():
    record = TrainingRecord(2.0, 1e-5)
    result = train(ledger=record, steps=None)
    assert result.steps == ac.calibrate_steps(2.0, 1e-5, q=0.125, sigma=1.0)
    assert result.epsilon <= 2.0
    with pytest.raises(BudgetExceeded):
        train(ledger=record, steps=1)
    assert record.epsilon(1e-5) == result.epsilon


def test_training_stops_when_somebody_else_spends_the_budget():
    record = TrainingRecord(4.0, 1e-5)

    def spend(progress):
        with contextlib.suppress(BudgetExceeded):
            record.charge(Release("gaussian", 0.125, 1.0))

    allowed = ac.calibrate_steps(4.0, 1e-5, q=0.125, sigma=1.0)
    assert allowed > 10
    result = train(ledger=record, steps=allowed - allowed % 2, callbacks=[spend])
    assert result.steps == (allowed + 1) // 2
    assert record.epsilon(1e-5) <= 4.0


def test_an_accountant_is_charged_along():
    ledger_module = pytest.importorskip("accountant.ledger")
    ledger = ledger_module.Accountant(ledger_module.Budget(6.0, 1e-5))
    result = train(ledger=ledger, steps=None)
    assert len(ledger) == result.steps > 0
    with pytest.raises(BudgetExceeded):
        train(Untouchable(5), ledger=ledger, steps=1)


def test_callbacks_stop_training():
    seen = []

    def stop(progress):
        seen.append(progress.step)
        return progress.step == 3

    result = train(steps=10, callbacks=[stop])
    assert seen == [1, 2, 3]
    assert result.steps == 3
    assert result.epsilon == ac.get_epsilon(0.125, 1.0, 3, 1e-5)


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


def test_discrete_gaussian_is_accounted_by_renyi():
    result = train(noise="discrete_gaussian", noise_multiplier=1.5, steps=20)
    exact = ac.get_epsilon(0.125, 1.5, 20, 1e-5)
    rdp = ac.get_epsilon(0.125, 1.5, 20, 1e-5, method="rdp")
    assert exact < rdp <= result.epsilon < 1.1 * rdp
    result = train(noise="discrete_gaussian", noise_multiplier=None, target_epsilon=1.0)
    assert 0.999 < result.epsilon <= 1.0


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


def test_the_adaptive_count_is_paid_for():
    rule = AdaptiveQuantile(1.0, count_noise=2.0)
    gradient = rule.gradient_noise(1.0)
    # Two Gaussian releases of one sample: the squared ratios add up.
    assert gradient**-2 + (2 * 2.0) ** -2 <= 1.0
    assert gradient == pytest.approx((1 - 1 / 16) ** -0.5)


def test_projection():
    result = train(optimizer=SGD(10.0), projection_radius=0.5, steps=20)
    assert np.linalg.norm(result.parameters) <= 0.5 * (1 + 1e-12)


@pytest.mark.parametrize("averaging", ["last", "mean", "ema"])
def test_averages(averaging):
    seen = []
    result = train(
        steps=9, averaging=averaging, callbacks=[lambda p: seen.append(p.parameters) and None]
    )
    if averaging == "last":
        expected = seen[-1]
    elif averaging == "mean":
        expected = np.mean(seen[5:], axis=0)
    else:
        weights = 0.99 ** np.arange(8, -1, -1.0)
        expected = (np.array(seen) * weights[:, None]).sum(axis=0) / weights.sum()
    assert np.allclose(result.parameters, expected, rtol=1e-12)
    assert np.array_equal(result.parameters, result.model.parameters)


def test_dp_adam_takes_the_noise_off():
    # Pure noise of a known variance: Adam takes steps of the size of its rate, DP-Adam divides by
    # the floor only where nothing is left.
    optimizer = DPAdam(1.0, 0.0, 0.5, floor=1e-4)
    optimizer.reset()
    w = np.zeros(3)
    optimizer.expect_noise(4.0)
    optimizer.step(w, np.array([2.0, 3.0, 0.0]))
    assert np.allclose(w, [-2.0 / 1e-2, -3.0 / math.sqrt(5.0), 0.0])


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


@pytest.mark.parametrize("noise", ["gaussian", "discrete_gaussian"])
def test_a_white_box_audit_of_a_whole_run(noise):
    # Canary i moves coordinate i by the clipping norm, and takes part with probability 1/2. After
    # k steps of σ, the released sums separate the worlds by √k/σ: that much and no more.
    canaries, steps, sigma = 4000, 4, 2.0
    rng = np.random.default_rng(3)
    into = rng.random(canaries) < 0.5

    def gradients(w, x, t):
        rows = np.zeros((len(x), canaries))
        rows[np.arange(len(x)), x[:, 0].astype(int)] = 3.0  # clipped to 1
        return rows

    model = PerExampleModel(np.zeros(canaries), gradients)
    index = np.flatnonzero(into)[:, None].astype(float)
    result = train(
        model, index, np.zeros(len(index)), noise=noise, noise_multiplier=sigma, steps=steps,
        sampler="full", expected_batch_size=canaries, optimizer=SGD(canaries), rng=7,
    )  # fmt: skip
    score = -result.parameters
    assert score[into].mean() - score[~into].mean() == pytest.approx(steps, rel=0.05)
    separation = (score[into].mean() - score[~into].mean()) / score[~into].std()
    claimed = math.sqrt(steps) / sigma
    # Four standard errors of the estimate on either side.
    assert 0.87 * claimed < separation < 1.13 * claimed


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
