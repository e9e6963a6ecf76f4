"""Optimisers: without noise and clipping DP-SGD is the plain one; averages and projections."""

import math

import numpy as np
import pytest

from accountant.errors import DomainError
from accountant.learn import (
    SGD,
    AdaGrad,
    Adam,
    AdamW,
    DPAdam,
    MultilayerPerceptron,
    RidgeRegression,
    RMSProp,
    cosine,
    inverse_square_root,
    polynomial,
    step_decay,
    warmup,
)
from accountant.noise import SecureGenerator
from support.dp_sgd_runs import X, Y, train

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


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        (step_decay(1.0, 2), (1.0, 1.0, 0.1, 0.1, 0.01)),
        (inverse_square_root(2.0), (2.0, 2.0 / math.sqrt(2.0), 2.0 / math.sqrt(3.0))),
        (cosine(1.0, 4, final=0.2), (1.0, 0.2 + 0.4 * (1.0 + math.sqrt(0.5)), 0.6)),
        (polynomial(1.0, 4, power=2.0), (1.0, 0.5625, 0.25, 0.0625, 0.0, 0.0)),
        (warmup(0.8, 4), (0.2, 0.4, 0.6, 0.8, 0.8)),
        (warmup(step_decay(1.0, 1, factor=0.5), 2), (0.5, 0.5, 0.25)),
    ],
)
def test_a_schedule_has_its_rates(schedule, rates):
    np.testing.assert_allclose([schedule(step) for step in range(len(rates))], rates, rtol=1e-12)


def test_schedules_are_told_apart_by_every_number():
    made = [
        step_decay(1.0, 2), step_decay(1.0, 3), step_decay(1.0, 2, 0.2), step_decay(2.0, 2),
        cosine(1.0, 2), cosine(1.0, 2, 0.1), polynomial(1.0, 2), polynomial(1.0, 2, 2.0),
        polynomial(1.0, 2, 1.0, 0.1), inverse_square_root(1.0), warmup(1.0, 2), warmup(1.0, 3),
        warmup(cosine(1.0, 2), 2),
    ]  # fmt: skip
    names = {str(SGD(schedule).describe()) for schedule in made}
    assert len(names) == len(made) == len(set(made))


@pytest.mark.parametrize(
    "bad",
    [lambda: cosine(-1.0, 3), lambda: cosine(1.0, 0), lambda: warmup(1.0, 0), lambda: SGD(-1.0)],
)
def test_bad_schedules_are_refused(bad):
    with pytest.raises(DomainError):
        bad()
