"""Models: gradients by finite differences, clipped sums by a literal loop over records."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.errors import ArgumentTypeError, DomainError
from accountant.learn import (
    Automatic,
    ConvolutionalNetwork,
    LinearRegression,
    LogisticRegression,
    MultilayerPerceptron,
    PerExampleModel,
    PerLayer,
    RidgeRegression,
    SoftmaxRegression,
)
from accountant.learn.clipping import Flat
from accountant.learn.models.base import BLOCK_ROWS, Totals

ACTIVATIONS = ("tanh", "relu", "sigmoid", "leaky_relu")


@st.composite
def problems(draw, dtypes=(np.float64,)):
    """A model with random parameters, and data that fit it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    n, d, k = draw(st.integers(1, 300)), draw(st.integers(1, 40)), draw(st.integers(2, 6))
    dtype = draw(st.sampled_from(dtypes))
    kind = draw(st.sampled_from(("linear", "ridge", "logistic", "softmax", "mlp", "conv")))
    y = rng.integers(k, size=n)
    if kind == "linear":
        model, y = LinearRegression(d, k, dtype=dtype), rng.normal(size=(n, k))
    elif kind == "ridge":
        model, y = RidgeRegression(d, penalty=0.1, dtype=dtype), rng.normal(size=n)
    elif kind == "logistic":
        model, y = LogisticRegression(d, bias=draw(st.booleans()), dtype=dtype), y % 2
    elif kind == "softmax":
        model = SoftmaxRegression(d, k, dtype=dtype)
    elif kind == "mlp":
        hidden = draw(st.lists(st.integers(1, 20), min_size=0, max_size=3))
        model = MultilayerPerceptron(
            (d, *hidden, k), activation=draw(st.sampled_from(ACTIVATIONS)), dtype=dtype
        )
    else:
        side, d, n = 8, 64, min(n, 140)
        y = y[:n]
        model = ConvolutionalNetwork(
            (side, side), k, kernels=(2,), hidden=draw(st.integers(0, 5)), dtype=dtype
        )
    model.parameters[:] = rng.normal(size=model.size) * 0.5
    X = rng.normal(size=(n, d)) * 10.0 ** draw(st.integers(-3, 3))
    return model, X, y


def one_by_one(model, X, y):
    """The gradient of every record by itself."""
    return np.array([model.gradient_sum(X[i : i + 1], y[i : i + 1]) for i in range(len(X))])


def loop_of_clipped_gradients(problem, log_norm, rounding):
    model, X, y = problem
    norm = 10.0**log_norm
    rows = one_by_one(model, X, y)
    norms = np.linalg.norm(rows, axis=1)
    expected = (rows * np.minimum(1.0, norm / np.maximum(norms, 1e-300))[:, None]).sum(axis=0)
    ours = model.clipped_gradient_sum(X, y, norm)
    assert np.linalg.norm(ours - expected) <= rounding * len(X) * norm


@pytest.mark.long
@given(problems(), st.floats(-3, 3))
def test_clipped_sum_is_the_loop(problem, log_norm):
    loop_of_clipped_gradients(problem, log_norm, 1e-12)


@pytest.mark.long
@given(problems((np.float32,)), st.floats(-2, 2))
def test_clipped_sum_in_single_precision(problem, log_norm):
    loop_of_clipped_gradients(problem, log_norm, 1e-4)


@pytest.mark.parametrize(
    ("dtype", "size", "stability"),
    [(np.float64, 1e-165, 1e-200), (np.float32, 1e-45, 1e-45), (np.float64, 0.0, 1e-300)],
)
def test_automatic_clipping_does_not_scale_up_what_it_cannot_measure(dtype, size, stability):
    # The squares of such a gradient vanish: its norm is measured as 0.
    with pytest.raises(DomainError, match="stability must be"):
        Automatic(1.0, stability=stability)
    for norm, least in ((1.0, 1e-18), (1e18, 1e-2)):
        model = LogisticRegression(1, bias=False, dtype=dtype)
        total = model.clipped_gradient_sum(np.full((1, 1), size), [1], Automatic(norm, least))
        assert abs(float(total[0])) <= norm
    with pytest.raises(DomainError, match=r"stability must be at least .* 0.01"):
        Automatic(1e18, stability=9e-3)


@pytest.mark.long
@given(problems())
def test_automatic_and_per_layer_clipping_are_the_loop(problem):
    model, X, y = problem
    rows = one_by_one(model, X, y)
    norms = np.linalg.norm(rows, axis=1)
    expected = (rows * (0.7 / (norms + 0.01))[:, None]).sum(axis=0)
    ours = model.clipped_gradient_sum(X, y, Automatic(0.7))
    assert np.linalg.norm(ours - expected) <= 1e-12 * len(X)
    expected = np.zeros(model.size)
    for part in model.groups:
        own = np.linalg.norm(rows[:, part], axis=1)
        bound = 0.7 / math.sqrt(len(model.groups))
        factors = np.minimum(1.0, bound / np.maximum(own, 1e-300))
        expected[part] = (rows[:, part] * factors[:, None]).sum(axis=0)
    ours = model.clipped_gradient_sum(X, y, PerLayer(0.7))
    assert np.linalg.norm(ours - expected) <= 1e-12 * len(X)


SMALL = [
    (LinearRegression(3, 2), lambda r, n: r.normal(size=(n, 2))),
    (LogisticRegression(3), lambda r, n: r.integers(2, size=n)),
    (SoftmaxRegression(3, 4), lambda r, n: r.integers(4, size=n)),
    *[
        (MultilayerPerceptron((3, 5, 4), activation=name), lambda r, n: r.integers(4, size=n))
        for name in ACTIVATIONS
    ],
    (MultilayerPerceptron((3, 4, 2), task="regression"), lambda r, n: r.normal(size=(n, 2))),
    (ConvolutionalNetwork((9, 10), 3, kernels=(2, 3), kernel_width=2), None),
]


@pytest.mark.parametrize(("model", "targets"), SMALL, ids=lambda m: type(m).__name__)
def test_gradients_are_derivatives_of_the_losses(model, targets):
    rng = np.random.default_rng(0)
    columns = model.columns
    X = rng.normal(size=(6, columns))
    y = rng.integers(3, size=6) if targets is None else targets(rng, 6)
    model.parameters[:] = rng.normal(size=model.size) * 0.5
    ours, h = model.gradient_sum(X, y), 1e-6
    for i in rng.permutation(model.size)[:60]:
        kept = model.parameters[i]
        model.parameters[i] = kept + h
        above = model.losses(X, y).sum()
        model.parameters[i] = kept - h
        below = model.losses(X, y).sum()
        model.parameters[i] = kept
        assert ours[i] == pytest.approx((above - below) / (2 * h), abs=1e-6)


@given(problems(), st.integers(0, 5))
def test_records_that_are_not_finite_add_nothing(problem, seed):
    model, X, y = problem
    model.parameters[:] = np.clip(model.parameters, -1, 1)
    clean = model.clipped_gradient_sum(X, y, 1.0)
    rng = np.random.default_rng(seed)
    data, targets = model.check(X, y)
    where = rng.permutation(len(data) + 1)[:1]
    for poison in (np.nan, np.inf, 1e308):
        dirty = np.insert(data, where, poison, axis=0)
        labels = np.insert(targets, where, targets[:1], axis=0)
        totals = Totals(np.zeros(model.size))
        model.add_rows(dirty, labels, None, Flat(1.0).rule(1), totals)
        # A huge record may saturate every unit: then its gradient is finite, and clipped.
        assert totals.dropped == 1 or poison == 1e308
        allowed = 0.0 if totals.dropped else 1.0
        assert np.linalg.norm(totals.gradient - clean) <= allowed + 1e-10 * len(data)


def test_infinite_clipping_is_no_clipping():
    rng = np.random.default_rng(1)
    model = MultilayerPerceptron((7, 5, 3))
    X, y = rng.normal(size=(500, 7)) * 100, rng.integers(3, size=500)
    assert np.array_equal(model.clipped_gradient_sum(X, y, math.inf), model.gradient_sum(X, y))


def test_a_users_model_needs_only_gradients():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 4)), rng.normal(size=300)

    def gradients(w, x, t):
        return (x @ w - t)[:, None] * x

    user = PerExampleModel(np.ones(4), gradients, lambda w, x: x @ w)
    own = LinearRegression(4, bias=False)
    own.parameters[:] = 1
    ours = user.clipped_gradient_sum(X, y, 0.8)
    assert np.allclose(ours, own.clipped_gradient_sum(X, y, 0.8), atol=1e-12)
    assert user.outputs(X).shape == (300,)


def test_no_gradient_of_one_record_is_formed_for_dense_layers():
    import tracemalloc

    model = MultilayerPerceptron((400, 300, 10))
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1024, 400)), rng.integers(10, size=1024)
    tracemalloc.start()
    model.clipped_gradient_sum(X, y, 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * model.size * 8  # 1024 gradients would be 1024 times


@pytest.mark.parametrize(
    ("X", "y", "error"),
    [
        (np.zeros((3, 5)), [0, 1, 0], DomainError),
        (np.zeros(3), [0, 1, 0], DomainError),
        (np.zeros((3, 2)), [0, 1], DomainError),
        (np.zeros((2, 2)), np.array(["0", "1"]), ArgumentTypeError),
        (np.array([["a", "b"]]), [0], ArgumentTypeError),
        (np.eye(2) * 1j, [0, 1], ArgumentTypeError),
    ],
)
def test_bad_data(X, y, error):
    with pytest.raises(error, match="shape" if error is DomainError else "numbers"):
        LogisticRegression(2).check(X, y)


def test_bad_models():
    for build in (
        lambda: MultilayerPerceptron((3,)),
        lambda: MultilayerPerceptron((3, 2), activation="gelu"),
        lambda: MultilayerPerceptron((3, 2), task="ranking"),
        lambda: LinearRegression(3, dtype=np.float16),
        lambda: RidgeRegression(3, penalty=-1.0),
        lambda: ConvolutionalNetwork((3, 3), 2),
    ):
        with pytest.raises(DomainError):
            build()


@pytest.mark.parametrize("kind", ["dense", "convolution"])
def test_a_trained_model_holds_no_records(kind: str) -> None:
    # Neither rows nor the unnoised sum of the last block may end up in a saved model.
    generator = np.random.default_rng(0)
    X = generator.standard_normal((200, 36))
    y = generator.integers(0, 2, 200)
    model = (
        MultilayerPerceptron((36, 5, 2))
        if kind == "dense"
        else ConvolutionalNetwork((6, 6), 2, kernels=(2,), hidden=3)
    )
    fresh = len(pickle.dumps(model))
    model.clipped_gradient_sum(X, y, 1.0)
    model.predict(X)
    saved = pickle.dumps(model)
    assert len(saved) <= fresh + 200
    assert not any(row.tobytes() in saved for row in X)
    for layer in model.layers:
        assert not np.any(getattr(layer, "_product", 0.0))


def test_a_model_learns_after_a_pickle() -> None:
    # Its layers' weights are the parameters a trainer writes into, and not a copy of them.
    for model in (MultilayerPerceptron((4, 3, 2)), ConvolutionalNetwork((4, 4), 2, kernels=(2,))):
        again = pickle.loads(pickle.dumps(model))
        x = np.random.default_rng(0).normal(size=(5, model.columns))
        assert np.array_equal(again.outputs(x), model.outputs(x))
        again.parameters[:] = 0
        assert not again.outputs(x).any()


def test_a_function_writes_into_no_parameters():
    """How often it is called depends on whether a record raises."""

    def moves(w, x, t):
        w += 0.001
        if (x == 7.25).any():
            raise ValueError
        return x - t[:, None]

    X = np.ones((BLOCK_ROWS, 2))
    for entry in (1.0, 7.25):
        X[3, 0] = entry
        model = PerExampleModel(np.zeros(2), moves)
        model.clipped_gradient_sum(X, np.ones(BLOCK_ROWS), 1.0)
        assert not model.parameters.any()
