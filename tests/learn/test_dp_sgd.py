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
    Noise,
    PerExampleModel,
    PerLayer,
    SoftmaxRegression,
    train_projected_gradient_descent,
)
from accountant.learn.release import MOST_RECORDS, relative_excess
from accountant.noise import SecureGenerator
from support.dp_sgd_runs import RNG, Untouchable, X, Y, train


def test_the_result_is_random_unless_seeded():
    assert not np.array_equal(train(rng=None).parameters, train(rng=None).parameters)
    assert np.array_equal(train(rng=3).parameters, train(rng=3).parameters)
    seeded, secure = train(rng=3), train(rng=None)
    assert not seeded.private
    assert "NOT PRIVATE" in seeded.statement
    assert "not private: seeded" in seeded.statement
    assert secure.private
    assert "add-or-remove" in secure.statement
    # The ledger says it too, for the statements that others read.
    assert "not private: seeded" in seeded.ledger.history[0].label
    assert "private" not in secure.ledger.history[0].label


def test_history_is_public_unless_asked():
    result = train()
    assert result.history.private == []
    assert set(result.history.public[0]) == {
        "step", "run_epsilon", "learning_rate", "clipping_norm", "noisy_gradient_norm"
    }  # fmt: skip
    assert [row["run_epsilon"] for row in result.history.public] == [
        ac.get_epsilon(0.125, 1.0, k, 1e-5) for k in range(1, 6)
    ]
    noisy = train(nonprivate_diagnostics=True)
    assert {"mean_loss", "clipped_fraction", "records", "dropped", "step"} == set(
        noisy.history.private[0]
    )
    assert np.array_equal(noisy.parameters, result.parameters)


@pytest.mark.long(keep=38)
@pytest.mark.parametrize(
    ("error", "given", "message"),
    [
        (DomainError, {"data": X[:, :4]}, "shape"),
        (DomainError, {"data": X, "labels": Y[1:]}, "one label"),
        (ArgumentTypeError, {"data": X.astype(str)}, "numbers"),
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
        (DomainError, {"sampler": "full", "sampling_probability": 0.5}, "sampling_probability"),
        (DomainError, {"noise": "laplace"}, "noise"),
        (DomainError, {"sampling_probability": 1.5}, "sampling_probability"),
        (DomainError, {"averaging": "best"}, "averaging"),
        (DomainError, {"projection_radius": 0.0}, "projection_radius"),
        (ArgumentTypeError, {"optimizer": "adam"}, "optimizer"),
        (ArgumentTypeError, {"ledger": []}, "ledger"),
        (UnsupportedError, {"rng": np.random.default_rng(0)}, "rng"),
        (UnsupportedError, {"rng": True}, "rng"),
        (
            BudgetExceeded,
            {"ledger": ac.Accountant(ac.Budget(1.0, 1e-5)), "steps": 10_000},
            "do not fit Budget",
        ),
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


def hinge(normalise):
    """Per-example gradients of the hinge loss, which are zero for the target 0."""

    def gradients(w, x, y):
        scores = x @ w
        if normalise:
            scores = (scores - scores.mean()) / (scores.std() + 1e-9)
        return -(y * (y * scores < 1))[:, None] * x

    return gradients


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.int8, np.float32])
def test_models_are_tried_on_targets_of_the_datas_kind(kind):
    labels = (2 * Y - 1).astype(kind)
    with pytest.raises(UnsupportedError, match="other records"):
        train(PerExampleModel(np.zeros(5), hinge(True)), labels=labels)
    assert train(PerExampleModel(np.zeros(5), hinge(False)), labels=labels).steps == 5


def test_a_function_of_labels_is_tried_on_the_public_examples_it_names():
    def gradients(w, x, y):
        if not np.isin(y, [0, 3, 7, 11]).all():  # 0 is what a batch is padded with
            raise ValueError("unknown label")
        shift = (x.mean() if leaks else 0.0) * (y == 11)
        return (x @ w + y - shift)[:, None] * x

    labels = np.array([3, 7])[Y]
    for leaks in (False, True):
        with pytest.raises(UnsupportedError, match="public examples"):
            train(PerExampleModel(np.zeros(5), gradients), labels=labels)
        model = PerExampleModel(np.zeros(5), gradients, targets=[3, 7, 11])
        if leaks:
            with pytest.raises(UnsupportedError, match="other records"):
                train(model, labels=labels)
        else:
            assert train(model, labels=labels).steps == 5
        assert (model.parameters == 0).all() == leaks
    with pytest.raises(DomainError, match="targets"):
        PerExampleModel(np.zeros(5), gradients, targets=[])


@pytest.mark.parametrize(
    "leak",
    [
        lambda rows, x, y: rows + 1e-13 * rows.sum(axis=0),
        lambda rows, x, y: rows * (1 + 2.0**-50 * (np.arange(len(x)) == 5))[:, None],
        lambda rows, x, y: rows + (np.abs(x).max() > 1e200),
        lambda rows, x, y: rows + (x >= 0).all(),  # on positive features only
        lambda rows, x, y: rows * y.max(),
    ],
)
def test_dependence_in_a_corner_is_refused(leak):
    model = PerExampleModel(np.zeros(5), lambda w, x, y: leak((x @ w - y)[:, None] * x, x, y))
    with pytest.raises(UnsupportedError, match="other records"):
        train(model, labels=X[:, 1].copy())


def test_a_refused_model_has_its_parameters_back():
    model = PerExampleModel(np.ones(5), hinge(True))
    with pytest.raises(UnsupportedError):
        train(model, labels=2.0 * Y - 1)
    assert (model.parameters == 1).all()


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
    from accountant.learn import dp_sgd

    shown = []
    real = dp_sgd.bar
    monkeypatch.setattr(dp_sgd, "bar", lambda *given: shown.append(given) or real(*given))
    monkeypatch.setattr(dp_sgd.sys.stderr, "isatty", lambda: terminal, raising=False)
    train(steps=3)
    assert shown == ([(3, 0)] if terminal else [])
    train(steps=3, progress=False)
    assert len(shown) == terminal


# With a sampling probability, or all records in every step, n is a secret.


class Silent(SecureGenerator):
    """Draws every record, or none, and adds no noise."""

    take = True

    def subset(self, n, probability):
        return np.arange(n if self.take else 0)

    def rounded_normal(self, n, scale):
        return np.zeros(n)


def outcome(n, **given):
    """Everything of a run that may be seen, apart from the noisy values."""
    seen = []
    generator = Silent()
    Silent.take = False
    settings = {"sampling_probability": 0.1, "expected_batch_size": 50.0} | given
    try:
        result = train(
            data=X[:n], labels=Y[:n], rng=generator, callbacks=[lambda p: seen.append(repr(p))],
            **settings,
        )  # fmt: skip
    except Exception as error:
        return type(error), str(error)
    plan = {**result.plan.describe(), "run": None}
    return seen, result.history, plan, result.epsilon, result.statement, result.steps


@pytest.mark.parametrize("batch", [1.0, 10.0, 40.0, 5000.0])
def test_a_secret_number_of_records_shows_nowhere(batch):
    # 9 to 11 of 400 · 0.1 are more, and less, than 1.01 · 10 + 1.
    outcomes = [
        outcome(n, expected_batch_size=batch) for n in (0, 1, 2, 99, 100, 101, 112, 127, 129, 400)
    ]
    assert all(seen == outcomes[0] for seen in outcomes)
    assert outcomes[0][2]["records"] is None


@pytest.mark.parametrize("given", [{"sampling_probability": 2.0}, {"clipping_norm": -1.0}])
def test_a_refusal_does_not_tell_a_secret_number_of_records(given):
    assert len({outcome(n, **given) for n in (0, 1, 50, 400)}) == 1


@pytest.mark.parametrize(
    "spoil", [lambda x, y: (x[:, :3], y), lambda x, y: (x, y[:-1]), lambda x, y: (x.astype(str), y)]
)
def test_bad_data_are_refused_in_the_same_words_however_many(spoil):
    texts = set()
    for n in (2, 3, 50, 400):
        data, labels = spoil(X[:n], Y[:n])
        with pytest.raises((DomainError, ArgumentTypeError)) as caught:
            train(data=data, labels=labels, sampling_probability=0.1)
        texts.add(str(caught.value))
    assert len(texts) == 1


def test_descent_does_not_tell_the_number_of_records():
    def run(n):
        result = train_projected_gradient_descent(
            LinearRegression(3), np.ones((n, 3)), np.ones(n), noise=Noise(2.0), clipping_norm=1.0,
            delta=1e-5, steps=3, projection_radius=1.0, expected_records=1000,
        )  # fmt: skip
        return (
            result.plan.describe(),
            result.statement,
            [row["clipping_norm"] for row in result.history.public],
        )

    assert run(0) == run(1011) == run(1012) == run(3000)


def test_a_secret_size_has_a_public_cap_before_the_data_are_looked_at():
    class Endless:
        def __len__(self):
            return MOST_RECORDS + 1

        def __array__(self, *given, **named):
            raise AssertionError("looked at")

    with pytest.raises(DomainError, match="at most 16777216"):
        train(data=Endless(), sampling_probability=0.1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("q", [0.1, 1.0])
def test_the_rounding_of_as_many_as_may_be_drawn_is_paid_for(dtype, q):
    result = train(
        SoftmaxRegression(5, 2, dtype=dtype), sampling_probability=q, expected_batch_size=40
    )
    cap = result.plan.batch_cap
    assert cap >= q * MOST_RECORDS * (1 - 1e-12)
    assert cap == MOST_RECORDS or cap <= 1.1 * q * MOST_RECORDS
    assert relative_excess(result.model, cap) < 1e-3


def test_without_a_sampling_probability_the_statement_says_that_n_is_public():
    assert "and the number of records" in train(rng=None).statement
    secret = train(rng=None, sampling_probability=0.125)
    assert "number of records" not in secret.statement
