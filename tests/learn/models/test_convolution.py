"""Convolutions: ghost norms and instantiated gradients are the per-example loop, and each other."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from accountant.learn import Automatic, Batches, ConvolutionalNetwork, Noise, PerLayer, train_dp_sgd
from accountant.learn.clipping import Flat
from accountant.learn.models import layers as convolution
from accountant.learn.models.base import BLOCK_ROWS, Totals
from accountant.learn.models.layers import SPREAD, Convolution
from accountant.learn.release import (
    batch_cap,
    grid_for,
    relative_excess,
    rounded_sensitivity,
)
from accountant.learn.run import require_row_independence


def convolutions(model):
    return [layer for layer in model.layers if isinstance(layer, Convolution)]


def choose(model, ghost):
    for layer in convolutions(model):
        layer.choose(ghost)
    return model


def loop(x, g):
    """Gradients Σ_t a_t g_tᵀ and Σ_t g_t of every record, position by position."""
    n, height, width, kernels = g.shape
    k = x.shape[1] - height + 1
    out = np.zeros((n, k, k, x.shape[3], kernels))
    for i in range(height):
        for j in range(width):
            out += np.einsum("nabc,nk->nabck", x[:, i : i + k, j : j + k], g[:, i, j])
    return np.concatenate([out.reshape(n, -1), g.sum(axis=(1, 2))], axis=1)


@settings(max_examples=60)
@given(
    st.booleans(), st.integers(1, 4), st.integers(0, 4), st.integers(1, 3), st.integers(1, 4),
    st.integers(0, 2**31),
)  # fmt: skip
def test_norms_and_sums_are_the_loop(ghost, width, more, channels, kernels, seed):
    rng = np.random.default_rng(seed)
    side, n = width + more, 9
    layer = Convolution(channels, kernels, width, (more + 1) ** 2)
    layer.bind(rng.normal(size=layer.size))
    layer.choose(ghost)
    x = rng.normal(size=(n, side, side, channels))
    g = rng.normal(size=layer.forward(x).shape)
    rows = loop(x, g)
    layer.backward(g.copy(), need_input=False)
    norms2, factors = np.zeros(n), rng.uniform(size=n)
    layer.add_norms(norms2)
    exact = (rows**2).sum(axis=1)
    assert np.allclose(norms2, exact, rtol=1e-10, atol=0)
    factors[0] = 0.0
    total = np.zeros(layer.size)
    layer.add_gradient(factors, total)
    assert np.allclose(total, factors @ rows, rtol=0, atol=1e-11)


@pytest.mark.long(keep=6)
@pytest.mark.parametrize("clipping", [Flat(0.3), Automatic(0.7), PerLayer(0.7)])
@pytest.mark.parametrize("n", [1, 40, 300])
def test_both_ways_give_the_same_sums(clipping, n):
    rng = np.random.default_rng(n)
    model = ConvolutionalNetwork((7, 7, 2), 3, kernels=(3, 4), kernel_width=2, pool=1, hidden=5)
    X, y = rng.normal(size=(n, 98)) * 3, rng.integers(3, size=n)
    sums = [choose(model, ghost).clipped_gradient_sum(X, y, clipping) for ghost in (False, True)]
    assert np.allclose(*sums, rtol=0, atol=1e-11 * n)
    rows = np.array([model.gradient_sum(X[i : i + 1], y[i : i + 1]) for i in range(n)])
    if isinstance(clipping, Flat):
        norms = np.linalg.norm(rows, axis=1)
        expected = (rows * np.minimum(1.0, 0.3 / norms)[:, None]).sum(axis=0)
        assert np.allclose(sums[1], expected, rtol=0, atol=1e-11 * n)
    # A sum over positions of the norms, as if they were records, is another thing.
    assert not np.allclose(sums[1], rows.sum(axis=0), atol=1e-3)


def test_each_layer_chooses_what_is_cheaper():
    model = ConvolutionalNetwork((14, 14), 10, kernels=(8, 64, 64), kernel_width=3, pool=1)
    small = ConvolutionalNetwork((10, 10, 16), 10, kernels=(32, 64), kernel_width=3, pool=2)
    assert [layer.ghost for layer in convolutions(model)] == [False, False, False]
    first, second = convolutions(small)
    assert not first.ghost
    assert second.ghost
    assert second.positions == 4
    assert small.terms == 4
    # Single precision has no digits to lose: gradients are formed.
    single = ConvolutionalNetwork(
        (10, 10, 16), 10, kernels=(32, 64), kernel_width=3, pool=2, dtype=np.float32
    )
    assert not any(layer.ghost for layer in convolutions(single))
    assert convolution.COST_OF_MEMORY > 0


@pytest.mark.long
@settings(max_examples=80)
@given(st.integers(0, 2**31), st.integers(0, 200), st.floats(-4, 4))
def test_one_record_changes_a_ghost_sum_by_at_most_the_bound(seed, n, log_scale):
    rng = np.random.default_rng(seed)
    model = choose(
        ConvolutionalNetwork((4, 4), 3, kernels=(2,), kernel_width=2, pool=1, hidden=0), True
    )
    model.parameters[:] = rng.normal(size=model.size)
    X = rng.normal(size=(n + 1, 16)) * 10.0**log_scale
    y = rng.integers(3, size=n + 1)
    _, y = model.check(X, y)
    rule, cap = Flat(0.7).rule(len(model.groups)), batch_cap(max(n, 1))
    excess = relative_excess(model, cap)
    grid = grid_for(rule, model.size, 1.0, 2.0**40)
    bound = rounded_sensitivity(rule, excess, grid, model.size, cap)
    assert 1e-9 < excess < 1e-4
    sums = []
    for part in (slice(n + 1), slice(n)):
        totals = Totals(np.zeros(model.size))
        model.add_rows(X[part], y[part], None, rule, totals)
        sums.append(grid.round(totals.gradient) * grid.step)
    difference = [Fraction(a) - Fraction(b) for a, b in zip(*sums, strict=True)]
    assert sum(d * d for d in difference) <= Fraction(bound) ** 2


@pytest.mark.long
@settings(max_examples=60)
@given(st.integers(0, 2**31), st.floats(0, 15))
def test_what_cancels_within_a_record_is_inside_the_norm(seed, digits):
    """Positions that cancel to a 10^-digits part: the ghost's bound stays above the true norm."""
    rng = np.random.default_rng(seed)
    layer = Convolution(1, 3, 1, 2)
    layer.bind(rng.normal(size=layer.size))
    layer.choose(ghost=True)
    x = np.repeat(rng.normal(size=(1, 1, 1, 1)), 2, axis=2)
    g = rng.normal(size=(1, 1, 2, 3))
    g[0, 0, 1] = -g[0, 0, 0] * (1 + 10.0**-digits * rng.normal(size=3))
    layer.forward(x)
    layer.backward(g, need_input=False)
    (bound,) = layer._squares()
    parts = [
        sum(Fraction(x[0, 0, t, 0]) * Fraction(g[0, 0, t, j]) for t in range(2)) for j in range(3)
    ]
    exact = sum(part * part for part in parts)
    assert Fraction(bound) >= exact
    length = sum(abs(x[0, 0, t, 0]) * np.linalg.norm(g[0, 0, t]) for t in range(2))
    assert math.sqrt(bound) >= length / SPREAD * (1 - 1e-12)
    assume(digits < 2)
    assert float(bound) <= float(exact) * (1 + 1e-6)


def test_records_that_are_not_finite_add_nothing():
    rng = np.random.default_rng(1)
    model = choose(ConvolutionalNetwork((5, 5), 2, kernels=(2,), kernel_width=2, pool=1), True)
    X, y = rng.normal(size=(20, 25)), rng.integers(2, size=20)
    clean = model.clipped_gradient_sum(X, y, 1.0)
    for poison in (1e308, 1e200):
        dirty = np.insert(X, 7, poison, axis=0)
        found = model.clipped_gradient_sum(dirty, np.insert(y, 7, 1), 1.0)
        assert np.isfinite(found).all()
        assert np.linalg.norm(found - clean) <= 1.0 + 1e-9
    for name in ("_patches", "_g", "_offsets"):
        assert name not in vars(convolutions(model)[0])


def test_a_ghost_convolution_trains_and_its_rows_are_independent():
    rng = np.random.default_rng(2)
    model = choose(ConvolutionalNetwork((6, 6), 2, kernels=(2,), kernel_width=3, pool=2), True)
    X = rng.normal(size=(400, 36))
    y = (X[:, 14] > 0).astype(int)
    data, targets = model.check(X, y)
    require_row_independence(model, data, targets)
    result = train_dp_sgd(
        model, X, y, batches=Batches(100, steps=5), noise=Noise(1.0), clipping_norm=1.0,
        delta=1e-4, rng=3,
    )  # fmt: skip
    assert np.isfinite(result.parameters).all()
    assert BLOCK_ROWS == 128


def test_ghosts_whose_squares_vanish_are_dropped_with_their_huge_partners():
    """|a|² = 0 in floating point, |g| = 1e153 and no bias left: the norm computed was 0."""
    layer = Convolution(1, 1, 1, 2)
    layer.bind(np.ones(layer.size))
    layer.choose(ghost=True)
    layer.forward(np.array([[[[1e-162], [3e-162]]]]))
    layer.backward(np.array([[[[1e153], [-1e153]]]]), need_input=False)
    norms2 = np.zeros(1)
    layer.add_norms(norms2)
    assert norms2 == np.inf  # the gradient itself is -2e-9, far above the least clipping norm
