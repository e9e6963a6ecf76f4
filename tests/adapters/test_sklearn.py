"""The scikit-learn estimators: its own checks, pipelines, and what they must refuse."""

import pickle
import re
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import accountant as ac
from accountant.adapters import sklearn as private
from accountant.adapters.sklearn import DPLinearSVC, DPLogisticRegression, DPRidge
from accountant.errors import BudgetExceeded, DomainError, UnsupportedError
from accountant.learn.convex.rows import clip_rows

ESTIMATORS = [
    DPLogisticRegression(),
    DPLinearSVC(),
    private.DPLinearRegression(),
    DPRidge(),
    private.DPSGDClassifier(steps=20),
    private.DPMLPClassifier(steps=20),
]
CLASSIFIERS = [e for e in ESTIMATORS if hasattr(e, "classes")]


def told_by_no_exception(estimator):
    """Return the one check that asks for what would tell of a record."""
    why = "a target that is no number adds nothing, and whether a fit raises depends on no record"
    return {} if hasattr(estimator, "classes") else {"check_supervised_y_no_nan": why}


@pytest.mark.long(keep=29)
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=told_by_no_exception)
def test_scikit_learns_own_checks(estimator, check):
    # All others, without exceptions; poor scores are allowed by the estimators' own tag.
    check(estimator)


def breast_cancer():
    x, y = load_breast_cancer(return_X_y=True)
    # Public ranges, rounded up from the data set's description.
    top = [30, 40, 200, 2600, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1]
    top += [3, 5, 22, 550, 0.04, 0.15, 0.4, 0.06, 0.08, 0.03]
    top += [37, 50, 260, 4300, 0.25, 1.1, 1.3, 0.3, 0.7, 0.21]
    x = 2 * x / top - 1
    return x / np.linalg.norm(x, axis=1, keepdims=True), y


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_pipelines_learn_something(estimator):
    x, y = breast_cancer()
    model = make_pipeline(FunctionTransformer(), estimator.set_params(epsilon=8.0, random_state=1))
    model.fit(x, y)
    assert model.score(x, y) > 0.85
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(x[:5])
        assert p.shape == (5, 2)
        assert np.allclose(p.sum(axis=1), 1)
    privacy = model[-1].privacy_
    assert privacy.epsilon <= 8.0 * (1 + 1e-9)
    assert privacy.delta == 1e-5
    assert not privacy.private
    estimator.set_params(random_state=None, epsilon=1.0)


def test_three_classes():
    x, y = load_iris(return_X_y=True)
    for model in (DPLogisticRegression, DPLinearSVC):
        fitted = model(epsilon=50.0, data_norm=10.0, random_state=0).fit(x, y)
        assert fitted.coef_.shape == (3, 4)
        assert fitted.score(x, y) > 0.6
    entry = fitted.privacy_.entry
    assert len(entry) == 6  # three heads, each with its correction
    assert len({m.noise for m in entry[::2]}) == 1


def test_one_against_the_rest_shares_out_what_was_asked_for():
    x, y = load_iris(return_X_y=True)
    entry = DPLinearSVC(epsilon=3.0, delta=1e-5, data_norm=10.0).fit(x, y).privacy_.entry
    # Basic composition (C1): what each class's perturbation keeps at what is left of its ε.
    spent = sum(
        release.delta0 + perturbed.delta(1.0 - release.epsilon0)
        for perturbed, release in zip(entry[::2], entry[1::2], strict=True)
    )
    # The account of a mechanism may be a millionth above what its calibration shows.
    assert 0.9e-5 < spent <= 1e-5 * (1.0 + 1e-6)


def test_data_norm_is_public_and_long_rows_are_scaled():
    x, y = breast_cancer()
    a = DPLogisticRegression(data_norm=0.5, random_state=1).fit(x, y)
    b = DPLogisticRegression(data_norm=0.5, random_state=1).fit(x * 0.5, y)
    assert np.allclose(a.coef_, b.coef_, rtol=1e-3, atol=1e-3)
    assert (a.predict(x) == a.predict(x * 9)).all()
    for bad in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(DomainError, match="data_norm"):
            DPLogisticRegression(data_norm=bad).fit(x, y)


def test_public_classes_may_be_named():
    x, y = breast_cancer()
    model = DPLogisticRegression(classes=[0, 1, 2], random_state=0).fit(x, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.coef_.shape[0] == 3
    # A label that is not among them adds nothing, and nothing says so.
    few = DPLogisticRegression(classes=[0, 5], random_state=0).fit(x, y)
    kept = np.where((y == 0)[:, None], x, np.nan)
    other = DPLogisticRegression(classes=[0, 5], random_state=0).fit(kept, np.zeros(len(y)))
    assert few.classes_.tolist() == [0, 5]
    assert np.array_equal(few.coef_, other.coef_)


def test_fits_differ_and_without_a_seed_are_private():
    x, y = breast_cancer()
    a, b = (DPLogisticRegression().fit(x, y) for _ in range(2))
    assert (a.coef_ != b.coef_).any()
    assert a.privacy_.private


def test_regressors_predict():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(20_000, 3)) / 2
    y = x @ [0.5, -0.3, 0.2] + 0.3
    for model in (private.DPLinearRegression, DPRidge):
        fitted = model(epsilon=2.0, random_state=0).fit(x, y)
        assert fitted.score(x, y) > 0.95
        assert fitted.intercept_ == pytest.approx(0.3, abs=0.05)
    bare = DPRidge(epsilon=2.0, fit_intercept=False, random_state=0).fit(x, y)
    assert bare.intercept_ == 0.0


def test_a_fit_does_not_warn_of_few_records_a_class():
    rows = np.random.default_rng(0).normal(size=(23, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # scikit-learn warns at 22 records and not at 24
        for n in (22, 23):
            DPLogisticRegression(classes=range(12), data_norm=1.0).fit(rows[:n], np.arange(n) % 12)


def test_a_seed_warns():
    x, y = breast_cancer()
    for estimator in (
        private.DPSGDClassifier(steps=2, data_norm=1.0),
        DPLogisticRegression(data_norm=1.0),
    ):
        with pytest.warns(UserWarning, match="not private"):
            estimator.set_params(random_state=1).fit(x, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            estimator.set_params(random_state=None).fit(x, y)


@pytest.mark.parametrize("kind", [private.DPSGDClassifier, private.DPMLPClassifier])
def test_a_secret_number_of_records_shows_nowhere(kind):
    x, y = breast_cancer()
    seen = []
    for n in (0, 1, 2, 200, 255, 257, 569):
        made = kind(
            steps=5, batch_size=64, sampling_probability=0.1, classes=[0, 1], epsilon=2.0
        ).fit(x[:n], y[:n])
        plan = made.result_.plan.describe()
        seen.append((plan, made.privacy_.epsilon, made.result_.statement, len(made.predict(x))))
        assert made.privacy_.private
    assert all(one == seen[0] for one in seen)
    assert seen[0][0]["records"] is None
    public = kind(steps=5, batch_size=64).fit(x, y).result_
    assert public.plan.records == len(x)
    assert "number of records" in public.statement


REFUSED = {
    "more labels": lambda n: (np.ones((n, 3)), np.zeros(n + 1)),
    "two columns of labels": lambda n: (np.ones((n, 3)), np.ones((n, 2))),
    "no columns": lambda n: (np.ones((n, 0)), np.arange(n) % 2),
    "one dimension": lambda n: (np.ones(n), np.arange(n) % 2),
    "words": lambda n: (np.array([[f"word {n}"]] * n), np.arange(n) % 2),
    "complex numbers": lambda n: (np.full((n, 2), n * 1j), np.arange(n) % 2),
}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_refusals_do_not_say_how_many_records_there_are(estimator, data):
    seen = set()
    for n in (22, 23):
        with pytest.raises((TypeError, ValueError)) as caught:
            estimator.fit(*data(n))
        assert caught.value.__context__ is None
        seen.add(f"{type(caught.value).__name__}: {caught.value}")
    assert len(seen) == 1
    assert not re.search("2[2-4]", seen.pop())


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_a_record_is_the_same_number_alone_and_among_others(estimator):
    # Columns in memory one after the other: sums over a row take another order, but not for one.
    x = 3 * np.random.default_rng(0).normal(size=(50, 200))
    all_rows, _ = estimator._checked(np.asfortranarray(x), np.arange(50) % 2)
    for n in (1, 2, 9):
        rows, _ = estimator._checked(np.asfortranarray(x[:n]), np.arange(n) % 2)
        assert np.array_equal(clip_rows(rows, 1.0), clip_rows(all_rows, 1.0)[:n])


# Ledgers: every fit is charged, and no copy can spend.

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) / 4.0
Y = (X[:, 0] > 0).astype(int)
NAMES = [type(estimator).__name__ for estimator in ESTIMATORS]


def bounded(estimator):
    """Return a copy whose public bounds are set, and which is quick."""
    given = {"data_norm": 1.0, "target_bound": 1.0, "steps": 3}
    return clone(estimator).set_params(**{k: v for k, v in given.items() if hasattr(estimator, k)})


BOUNDED = [bounded(estimator) for estimator in ESTIMATORS]


@pytest.mark.long
@pytest.mark.parametrize("estimator", BOUNDED, ids=NAMES)
def test_every_fit_is_charged(estimator):
    ledger = ac.Accountant()
    model = clone(estimator).set_params(ledger=ledger).fit(X, Y)
    once, count = model.spent(), len(ledger)
    assert ledger.epsilon(1e-5) == once
    assert once <= model.privacy_.epsilon * (1 + 1e-6)
    model.fit(X, Y)
    assert model.privacy_.epsilon <= 1.0 + 1e-6
    assert len(ledger) == 2 * count
    if not hasattr(model, "regularization") or hasattr(model, "target_bound"):
        # Objective perturbation composes on a grid, in seconds.
        assert model.spent() > 1.2 * once
    # Without a ledger of the caller's, an estimator keeps its own through its refits.
    alone = clone(estimator).fit(X, Y).fit(X, Y)
    assert len(alone.ledger_) == 2 * count
    assert alone.privacy_.epsilon == pytest.approx(model.privacy_.epsilon)


@pytest.mark.parametrize("estimator", BOUNDED, ids=NAMES)
def test_a_budget_refuses_before_anything_is_fitted(estimator):
    ledger = ac.Accountant(ac.Budget(0.3, 1e-5, filter="approximate"))
    model = clone(estimator).set_params(ledger=ledger)
    with pytest.raises((BudgetExceeded, UnsupportedError)):
        model.fit(X, Y)
    assert len(ledger) == 0
    assert not hasattr(model, "privacy_")


def test_clones_share_the_ledger_and_folds_are_charged():
    ledger = ac.Accountant()
    model = DPRidge(data_norm=1.0, target_bound=1.0, ledger=ledger)
    assert clone(model).ledger is ledger
    cross_val_score(model, X, Y, cv=3)
    charged = len(ledger)
    assert charged == 3 * len(model.fit(X, Y).privacy_.entry)


def test_a_copy_in_another_process_cannot_spend():
    ledger = ac.Accountant()
    model = DPLogisticRegression(data_norm=1.0, ledger=ledger).fit(X, Y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    with pytest.raises(UnsupportedError, match="its ledger stayed there"):
        copy.fit(X, Y)
    own = pickle.loads(pickle.dumps(DPLogisticRegression(data_norm=1.0)))
    assert own.fit(X, Y).spent() > 0


@pytest.mark.parametrize("estimator", BOUNDED, ids=NAMES)
def test_bounds_that_are_not_set_are_warned_of(estimator):
    bare = type(estimator)()
    bare.set_params(**({"steps": 2} if hasattr(bare, "steps") else {}))
    with pytest.warns(private.UnsetBoundWarning, match="data_norm was not set") as told:
        bare.fit(X, Y)
    texts = [str(one.message) for one in told]
    assert any("target_bound" in text for text in texts) == hasattr(bare, "target_bound")
    assert all(
        one.filename == __file__ for one in told if one.category is private.UnsetBoundWarning
    )


@pytest.mark.parametrize("estimator", BOUNDED[:4], ids=NAMES[:4])
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_sparse_rows_give_the_same_release(estimator, kind):
    rows = np.where(np.abs(X) > 0.2, X, 0.0)
    with pytest.warns(UserWarning, match="not private"):
        thick = clone(estimator).set_params(random_state=1).fit(rows, Y)
    with pytest.warns(UserWarning, match="not private"):
        thin = clone(estimator).set_params(random_state=1).fit(kind(rows), Y)
    np.testing.assert_array_equal(thick.coef_, thin.coef_)
    np.testing.assert_array_equal(thick.predict(rows), thin.predict(kind(rows)))
