"""One record changes the computed, rounded sum by no more than the noise is made for."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant._core import training
from accountant.errors import DomainError
from accountant.learn import (
    Automatic,
    ConvolutionalNetwork,
    LogisticRegression,
    MultilayerPerceptron,
    PerLayer,
    SoftmaxRegression,
)
from accountant.learn.clipping import Flat, Rule
from accountant.learn.models.base import Totals
from accountant.learn.release import (
    Privatiser,
    batch_cap,
    grid_for,
    relative_excess,
    rounded_sensitivity,
)
from accountant.learn.run import require_row_independence
from accountant.noise import SecureGenerator


def exact_norm(v):
    """The Euclidean norm in exact arithmetic, rounded up a little."""
    square = sum(Fraction(float(x)) ** 2 for x in v)
    with mpmath.workdps(40):
        return mpmath.sqrt(mpmath.mpf(square.numerator) / square.denominator)


def total(model, X, y, rule):
    totals = Totals(np.zeros(model.size))
    model.add_rows(X, y, None, rule, totals)
    return totals.gradient


MODELS = [
    lambda t: LogisticRegression(6, dtype=t),
    lambda t: SoftmaxRegression(6, 3, dtype=t),
    lambda t: MultilayerPerceptron((6, 5, 3), dtype=t),
    lambda t: MultilayerPerceptron((6, 5, 4, 3), activation="relu", dtype=t),
    lambda t: ConvolutionalNetwork((6, 1), 3, kernels=(2,), kernel_width=1, pool=1, dtype=t),
]


@pytest.mark.long
@settings(max_examples=150)
@given(
    st.sampled_from(MODELS), st.sampled_from((np.float64, np.float32)), st.integers(0, 2**31),
    st.integers(0, 300), st.floats(-4, 4),
    st.sampled_from((Flat(0.7), Automatic(0.7), PerLayer(0.7))),
)  # fmt: skip
def test_one_record_changes_the_rounded_sum_by_at_most_the_bound(
    build, dtype, seed, n, log_scale, clipping
):
    rng = np.random.default_rng(seed)
    model = build(dtype)
    model.parameters[:] = rng.normal(size=model.size)
    X = (rng.normal(size=(n + 1, 6)) * 10.0**log_scale).astype(dtype)
    y = rng.integers(2, size=n + 1)
    _, y = model.check(X, y)
    rule = clipping.rule(len(model.groups))
    at = int(rng.integers(n + 1))
    cap = batch_cap(max(n, 1))
    grid = grid_for(rule, model.size, 1.0, 2.0**40)
    bound = rounded_sensitivity(rule, relative_excess(model, cap), grid, model.size, cap)
    with_it = grid.round(total(model, X, y, rule)) * grid.step
    without = np.delete(X, at, axis=0), np.delete(y, at, axis=0)
    without_it = grid.round(total(model, *without, rule)) * grid.step if n else np.zeros(model.size)
    difference = [Fraction(a) - Fraction(b) for a, b in zip(with_it, without_it, strict=True)]
    square = sum(d * d for d in difference)
    assert square <= Fraction(bound) ** 2
    # The bound is not slack either: at most a few per cent above the clipping norm.
    assert bound <= rule.sensitivity * (1.03 if dtype == np.float32 else 1.0021)


def test_the_excess_is_needed():
    # In single precision a clipped gradient can come out longer than the clipping norm.
    worst = 0.0
    rng = np.random.default_rng(0)
    for _ in range(200):
        model = SoftmaxRegression(6, 3, dtype=np.float32)
        X = rng.normal(size=(1, 6)).astype(np.float32) * 100
        summed = total(model, X, np.array([1]), Rule((0.7,)))
        worst = max(worst, float(exact_norm(summed) / mpmath.mpf(0.7)))
    assert 1.0 < worst <= 1.0 + relative_excess(model, 1)


@given(st.integers(1, 400), st.integers(1, 60), st.integers(-140, 140), st.integers(0, 2**31))
def test_computed_norms_are_within_their_error(columns, outputs, exponent, seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(1, columns)) * 2.0**exponent
    g = rng.normal(size=(1, outputs)) * 2.0**-exponent
    norms2 = np.zeros(1)
    training.add_ghost_norms(a, g, 1.0, 1e200, norms2)
    exact = (sum(Fraction(v) ** 2 for v in a[0]) + 1) * sum(Fraction(v) ** 2 for v in g[0])
    error = abs(Fraction(norms2[0]) - exact) / exact
    assert error <= (max(columns, outputs) / 4 + 40) * Fraction(1, 2**53)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e101])
def test_norms_beyond_the_limit_drop_the_record(bad):
    a, g = np.ones((2, 3)), np.ones((2, 2))
    a[0, 1] = bad
    norms2, factors = np.zeros(2), np.zeros(2)
    training.add_ghost_norms(a, g, 1.0, 1e200, norms2)
    training.clip_factors(norms2, 2, 100.0, -1.0, factors)
    assert factors.tolist() == [0.0, 1.0]
    training.scale_rows(a, factors)
    assert a.tolist() == [[0, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize("batch", [0.01, 1.0, 100.0, 1024.0, 1e6])
def test_the_cap_is_exceeded_with_probability_below_e_to_minus_700(batch):
    cap, mean = batch_cap(batch), 1.01 * batch + 2
    with mpmath.workdps(30):
        # Chernoff again, at the cap itself; Poisson's tail bounds that of the trials.
        x = mpmath.mpf(cap) / mpmath.mpf(mean) - 1
        assert mean * ((1 + x) * mpmath.log(1 + x) - x) >= 700
    assert cap <= 3 * batch + 2000


def test_noise_needs_a_bound():
    model = LogisticRegression(3)
    rule = Rule((math.inf,))
    with pytest.raises(DomainError, match="clipping_norm"):
        rounded_sensitivity(rule, 0.0, grid_for(Rule((1.0,)), 3, 1.0, 2.0**40), model.size, 10)


@pytest.mark.parametrize("noise", ["gaussian", "discrete_gaussian"])
@pytest.mark.parametrize("size", [1, 1000, 200_000])
def test_the_noise_is_never_below_the_multiplier_times_the_sensitivity(noise, size):
    model = LogisticRegression(size)
    privatiser = Privatiser(model, noise, 1.3, 100.0)
    grid, deviation = privatiser.settings(Rule((0.5,)))
    bound = rounded_sensitivity(
        Rule((0.5,)), relative_excess(model, batch_cap(100.0)), grid, model.size, batch_cap(100.0)
    )
    assert 1.3 * bound <= deviation <= 1.3 * 0.5 * 1.01


def test_a_released_sum_does_not_betray_its_last_bits():
    # Two sums that differ only below the grid release the very same values.
    model = LogisticRegression(50, bias=False)
    privatiser = Privatiser(model, "gaussian", 1.0, 100.0)
    rule = Rule((1.0,))
    step = privatiser.settings(rule)[0].step
    value = np.random.default_rng(0).integers(-1000, 1000, 50) * step
    one, _ = privatiser.release(value, rule, SecureGenerator(1))
    two, _ = privatiser.release(value + 0.4 * step, rule, SecureGenerator(1))
    assert np.array_equal(one, two)
    assert np.array_equal(one / step, np.rint(one / step))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("build", MODELS)
def test_rows_are_independent(build, dtype):
    model = build(dtype)
    X = np.zeros((1, 6), dtype)
    _, y = model.check(X, [0])
    require_row_independence(model, X, y)


@pytest.mark.long
def test_a_mechanism_audit_on_the_trainers_own_release():
    # Two-sample: the released first coordinate with and without one clipped record of norm C.
    model = LogisticRegression(1, bias=False)
    privatiser = Privatiser(model, "gaussian", 1.0, 10.0)
    rule, generator, n = Rule((0.5,)), SecureGenerator(11), 20_000
    out = np.array([privatiser.release(np.array([0.0]), rule, generator)[0][0] for _ in range(n)])
    into = np.array([privatiser.release(np.array([0.5]), rule, generator)[0][0] for _ in range(n)])
    threshold = 0.25
    false_positive = (out > threshold).mean()
    true_positive = (into > threshold).mean()
    mu = mpmath.sqrt(2) * (
        mpmath.erfinv(2 * float(true_positive) - 1) - mpmath.erfinv(2 * float(false_positive) - 1)
    )
    # 1-GDP is claimed; the estimate's standard error is about 0.013.
    assert 0.93 <= float(mu) <= 1.05
