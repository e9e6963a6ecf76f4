"""Tables of pandas and polars are taken as the numbers they hold."""

import numpy as np
import pytest

import accountant as ac
from accountant import learn
from accountant.learn.convex.statistics import private_mean

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) / 4.0
Y = (X[:, 0] > 0).astype(int)
NAMES = ["age", "dose", "weight"]


@pytest.fixture(params=["pandas", "polars"])
def frames(request):
    library = pytest.importorskip(request.param)
    columns = dict(zip(NAMES, X.T, strict=True))
    return library.DataFrame(columns), library.Series(
        name="label", **{"data" if request.param == "pandas" else "values": Y}
    )


@pytest.mark.long(keep=1)
@pytest.mark.filterwarnings("ignore:random_state")
def test_estimators_fit_and_remember_names(frames):
    pytest.importorskip("sklearn")
    from accountant.adapters.sklearn import DPLogisticRegression

    table, labels = frames
    model = DPLogisticRegression(data_norm=1.0, random_state=1).fit(table, labels)
    plain = DPLogisticRegression(data_norm=1.0, random_state=1).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(table), plain.predict(X))
    assert model.feature_names_in_.tolist() == NAMES


def test_trainers_and_moments(frames):
    table, labels = frames
    given = {
        "batches": learn.Batches(6, steps=2), "noise": learn.Noise(1.0), "clipping_norm": 1.0,
        "delta": 1e-5, "rng": 1,
    }  # fmt: skip
    one = learn.train_dp_sgd(learn.LogisticRegression(3), table, labels, **given)
    two = learn.train_dp_sgd(learn.LogisticRegression(3), X, Y, **given)
    np.testing.assert_array_equal(one.parameters, two.parameters)
    mean = private_mean(table, epsilon=1.0, delta=1e-6, bound=2.0, rng=1)
    np.testing.assert_array_equal(
        mean.value, private_mean(X, epsilon=1.0, delta=1e-6, bound=2.0, rng=1).value
    )


def test_numbers_of_a_column_are_arguments(frames):
    _, labels = frames
    deltas = type(labels)([1e-3, 1e-5])
    np.testing.assert_array_equal(
        np.asarray(ac.Gaussian(2.0).epsilon(deltas)), ac.Gaussian(2.0).epsilon([1e-3, 1e-5])
    )
