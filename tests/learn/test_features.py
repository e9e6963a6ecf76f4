"""Extractors work row by row; projected descent is a setting of the loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accountant as ac
from accountant._core import training
from accountant.errors import DomainError, UnsupportedError
from accountant.learn import (
    Batches,
    Chain,
    Frozen,
    LogisticRegression,
    Noise,
    OrientedGradients,
    PrincipalComponents,
    RandomFourierFeatures,
    UnitNorm,
    Watch,
    train_one_example_sgd,
    train_projected_gradient_descent,
)

RNG = np.random.default_rng(0)
PUBLIC = RNG.normal(size=(100, 36)) * np.linspace(3, 0.1, 36)
X = RNG.normal(size=(50, 36)) * np.linspace(3, 0.1, 36)
EXTRACTORS = [
    PrincipalComponents(PUBLIC, 5),
    PrincipalComponents(PUBLIC, 5, whiten=True),
    RandomFourierFeatures(36, 33, 4.0),
    RandomFourierFeatures(36, 1, 4.0),
    OrientedGradients(6, 6, cell=2),
    UnitNorm(0.5),
    UnitNorm(0.3),
    Frozen(np.tanh),
    Chain(OrientedGradients(6, 6, cell=3), UnitNorm()),
    Chain(PrincipalComponents(PUBLIC, 5), UnitNorm(), Frozen(np.exp)),
]


def bits(rows):
    return np.ascontiguousarray(rows).view(np.uint64)


EXTREMES = X.copy()
EXTREMES[3] = 1e308
EXTREMES[11] = -np.finfo(float).max
EXTREMES[20] = 5e-324
EXTREMES[29] = 0.0
EXTREMES[30:34] *= 1e160
EXTREMES[34:38] *= 1e-170


@pytest.mark.parametrize("data", [X, EXTREMES], ids=["ordinary", "extreme"])
@pytest.mark.parametrize("extractor", EXTRACTORS, ids=lambda e: type(e).__name__)
def test_a_record_is_mapped_by_itself(extractor, data):
    together = extractor(data)
    assert np.isfinite(together).all()  # so that no record makes a trainer refuse the features
    alone = np.concatenate([extractor(data[i : i + 1]) for i in range(len(data))])
    assert np.array_equal(bits(together), bits(alone))
    assert extractor(data[:0]).shape == (0, together.shape[1])


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("extractor", EXTRACTORS, ids=lambda e: type(e).__name__)
def test_neither_neighbours_nor_place_nor_memory_change_a_bit(extractor):
    rng = np.random.default_rng(1)
    pool = np.concatenate([X, EXTREMES])
    wanted = bits(extractor(pool))
    for size in (2, 3, 5, 7, 8, 9, 31, 33, 127, 128, 129, 255, 257, 1023, 1025, 2500):
        chosen = rng.integers(len(pool), size=size)
        some = pool[chosen]
        loose = np.zeros(size * 36 + 5)[int(rng.integers(5)) :][: size * 36].reshape(size, 36)
        loose[:] = some
        for form in (loose, np.asfortranarray(some), some[::-1][::-1]):
            assert np.array_equal(bits(extractor(form)), wanted[chosen])


def test_threads_do_not_change_a_bit(monkeypatch):
    from accountant.learn import features

    data = np.random.default_rng(2).normal(size=(5000, 36))
    for extractor in EXTRACTORS:
        monkeypatch.setattr(features, "THREADS", 1)
        one = extractor(data)
        monkeypatch.setattr(features, "THREADS", 3)
        assert np.array_equal(bits(extractor(data)), bits(one))


@given(st.integers(0, 2**31), st.integers(0, 40), st.integers(0, 70), st.integers(0, 70))
def test_the_native_product_is_a_function_of_its_row(seed, n, inner, outer):
    rng = np.random.default_rng(seed)
    for dtype in (np.float64, np.float32):
        x = rng.normal(size=(n, inner)).astype(dtype)
        w = rng.normal(size=(inner, outer)).astype(dtype)
        out = np.empty((n, outer), dtype)
        training.products(x, w, out)
        a, b = x.astype(float), w.astype(float)
        error = np.abs(a) @ np.abs(b) * (inner + 1) * np.finfo(dtype).eps
        assert (np.abs(out - a @ b) <= error).all()
        turned = np.empty_like(out)
        training.products(x, np.asfortranarray(w), turned)
        assert np.array_equal(out, turned)
        poisoned = x.copy()
        poisoned[::2] = np.nan
        poisoned[1::4] = np.inf
        other = np.empty_like(out)
        training.products(poisoned, w, other)
        assert np.array_equal(other[3::4], out[3::4])
        for i in range(n):
            single = np.empty((1, outer), dtype)
            training.products(x[i : i + 1], w, single)
            assert np.array_equal(single[0], out[i])


def test_projections_near_zero_do_not_amplify_other_records():
    # UnitNorm makes everything of what a projection loses: the noise of the trainer is calibrated
    # for one record, whose features must not move those of the others.
    rng = np.random.default_rng(1)
    extractor = Chain(PrincipalComponents(PUBLIC, 5), UnitNorm())
    axes = extractor.extractors[0].axes
    data = rng.normal(size=(32, 36))
    data -= (data @ axes) @ np.linalg.pinv(axes)
    data += extractor.extractors[0].mean
    model = LogisticRegression(5)
    labels = rng.integers(2, size=32)
    whole = model.clipped_gradient_sum(extractor(data), labels, 1.0)
    for gone in range(32):
        rest = np.delete(data, gone, axis=0)
        less = model.clipped_gradient_sum(extractor(rest), np.delete(labels, gone), 1.0)
        assert np.linalg.norm(whole - less) <= 1.0 + 1e-9


def test_principal_components_are_those_of_the_public_data():
    ours = PrincipalComponents(PUBLIC, 3)
    _, vectors = np.linalg.eigh(np.cov(PUBLIC.T))
    for k in range(3):
        assert abs(ours.axes[:, k] @ vectors[:, -1 - k]) == pytest.approx(1.0)
    white = PrincipalComponents(PUBLIC, 3, whiten=True)(PUBLIC)
    assert np.allclose(white.std(axis=0), 1.0)


def test_random_features_approximate_the_kernel():
    features = RandomFourierFeatures(36, 20_000, 5.0)(X[:10])
    distances = np.square(X[:10, None] - X[None, :10]).sum(axis=2)
    assert np.allclose(features @ features.T, np.exp(-distances / 50), atol=0.05)
    assert (np.linalg.norm(features, axis=1) <= 1 + 1e-12).all()


def test_rows_have_norm_one():
    assert np.allclose(np.linalg.norm(UnitNorm(0.5)(X), axis=1), 1.0)


def test_an_extractor_that_looks_across_records_is_refused():
    with pytest.raises(UnsupportedError, match="other records"):
        Frozen(lambda x: x - x.mean(axis=0))(X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1e-9 * x.sum(),  # less than any tolerance
        lambda x: np.cumsum(x * 0 + 1, axis=0) * x,  # by place
        lambda x: x / max(1.0, np.abs(x).max() / 1e300),  # only when another one is huge
        lambda x: x + (x[-1] == 0).all(),  # whether the last row is padding
        lambda x: x * np.float64(1 + 2**-52 * (np.arange(len(x)) == 17))[:, None],  # one bit
    ],
)
def test_a_function_of_other_rows_is_refused_however_little_it_sees_of_them(function):
    with pytest.raises(UnsupportedError, match="other records"):
        Frozen(function)(X)


def test_a_users_function_may_use_a_matrix_library():
    weights = np.random.default_rng(0).normal(size=(36, 7))

    def layer(x):
        np.multiply(x, 2.0, out=x)  # it may write into its argument, too
        return np.tanh(x @ weights)

    together = Frozen(layer)(X)
    assert np.allclose(together, np.tanh(2 * X @ weights))
    assert np.array_equal(bits(Frozen(layer)(X[7:8])), bits(together[7:8]))


def test_a_refusal_says_nothing_about_the_number_of_records():
    texts = set()
    for n in (3, 4):
        for make in (lambda: OrientedGradients(5, 5), lambda: Frozen(lambda x: x[:, 0])):
            with pytest.raises(DomainError) as caught:
                make()(X[:n])
            texts.add(str(caught.value))
    assert len(texts) == 2


@pytest.mark.parametrize("extractor", EXTRACTORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("shape", [(5,), (1,), (0,), (36, 2), (36, 1), (1, 1)])
def test_other_shapes_are_refused_without_the_number_of_records(extractor, shape):
    seen = set()
    for n in (0, 1, 2, 37, 1025):
        try:
            extractor(np.ones((n, *shape)))
            seen.add("")
        except Exception as refusal:
            seen.add(f"{type(refusal).__name__}: {refusal}")
    assert len(seen) == 1
    if len(shape) == 2 or extractor.columns is not None:
        assert "record" in seen.pop()


def test_a_factor_at_odd_strides_is_not_read_as_another():
    weights = np.zeros((5, 3), [("a", "f8"), ("b", "f4")])["a"]
    with pytest.raises(ValueError, match="do not fit"):
        training.products(np.ones((4, 5)), weights, np.empty((4, 3)))


def test_bad_extractors():
    for build in (
        lambda: PrincipalComponents(PUBLIC, 0),
        lambda: PrincipalComponents(PUBLIC, 101),
        lambda: RandomFourierFeatures(3, 4, 0.0),
        lambda: OrientedGradients(2, 2, cell=4),
        lambda: UnitNorm(0.0),
        lambda: OrientedGradients(5, 5)(X),
        lambda: PrincipalComponents(X * np.nan, 1),
        lambda: Frozen(lambda x: x[:, 0])(X),
    ):
        with pytest.raises(DomainError):
            build()


Y = (X[:, 0] > 0).astype(int)


def test_projected_gradient_descent():
    result = train_projected_gradient_descent(
        LogisticRegression(36), X, Y, noise=Noise(target_epsilon=8.0), clipping_norm=1.0,
        delta=1e-3, steps=40, projection_radius=2.0, expected_records=50, rng=1,
    )  # fmt: skip
    assert result.epsilon == ac.get_epsilon(1.0, result.plan.noise_multiplier, 40, 1e-3) <= 8.0
    assert np.linalg.norm(result.parameters) <= 2.0 + 1e-9
    assert result.model.score(X, Y) > 0.8


def test_one_example_sgd():
    seen = []
    result = train_one_example_sgd(
        LogisticRegression(36), X, Y, noise=Noise(0.5), clipping_norm=1.0, delta=1e-3, steps=300,
        projection_radius=3.0, rng=1,
        watch=Watch([lambda p: seen.append(np.linalg.norm(p.parameters))]),
    )  # fmt: skip
    assert max(seen) <= 3.0 + 1e-9
    assert result.plan.sampling_probability == 1 / 50
    assert result.epsilon == ac.get_epsilon(1 / 50, 0.5, 300, 1e-3)


def test_what_is_fixed_cannot_be_given():
    with pytest.raises(DomainError, match="batches"):
        train_one_example_sgd(
            LogisticRegression(36), X, Y, noise=Noise(0.5), clipping_norm=1.0, delta=1e-3,
            steps=3, projection_radius=3.0, batches=Batches(1.0, steps=3),
        )  # fmt: skip
