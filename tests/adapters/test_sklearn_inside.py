"""What stands around a private fit: choices by scores are refused, the rest is told of."""

import inspect
import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("sklearn")

import sklearn
from sklearn import model_selection as selection
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer
from sklearn.linear_model import RANSACRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.utils import all_estimators

import accountant as ac
from accountant.adapters import sklearn as private
from accountant.adapters._sklearn_inside import _caller
from accountant.adapters.sklearn import DPLogisticRegression, DPRidge, DPSearch
from accountant.errors import UnsupportedError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) / 4.0
Y = (X[:, 0] > 0).astype(int)


def classifier(**given):
    return private.DPSGDClassifier(data_norm=1.0, steps=2, **given)


def ridge(**given):
    return DPRidge(data_norm=1.0, target_bound=1.0, **given)


def choosing():
    """Return every estimator of estimators in scikit-learn that is told how to score them."""
    found = {}
    for name, kind in all_estimators():
        parameters = inspect.signature(kind.__init__).parameters
        if {"estimator", "estimators"} & set(parameters) and {"cv", "scoring"} & set(parameters):
            found[name] = kind
    return found


SETTINGS = {
    "param_grid": {"steps": [2, 3]},
    "param_distributions": {"steps": [2, 3]},
    "n_features_to_select": 1,
    "cv": 2,
    "n_iter": 2,
}


@pytest.mark.long(keep=6)
@pytest.mark.parametrize("name", choosing())
def test_whatever_chooses_by_scores_is_refused_before_a_fit(name):
    ledger = ac.Accountant()
    kind = choosing()[name]
    inner = ridge(ledger=ledger) if name.endswith("Regressor") else classifier(ledger=ledger)
    parameters = inspect.signature(kind.__init__).parameters
    given = {k: v for k, v in SETTINGS.items() if k in parameters}
    if "regularization" in inner.get_params():
        given |= {k: {"regularization": [1.0]} for k in given if k.startswith("param_")}
    given |= {"estimators": [("a", inner)]} if "estimators" in parameters else {"estimator": inner}
    y = Y[:, None] if name.endswith("Chain") else Y
    for wrapped in (kind(**given), make_pipeline(FunctionTransformer(), kind(**given))):
        with pytest.raises(UnsupportedError, match="must be paid for"):
            wrapped.fit(X, y)
    assert len(ledger) == 0


def test_the_list_holds_what_the_issue_names():
    named = {"GridSearchCV", "HalvingGridSearchCV", "RFECV", "SequentialFeatureSelector"}
    assert named <= set(choosing())
    for search in (
        SequentialFeatureSelector(make_pipeline(Normalizer(), ridge()), n_features_to_select=1),
        RFECV(ridge()),
        RANSACRegressor(ridge(), min_samples=5),
        selection.HalvingGridSearchCV(classifier(), {"steps": [2, 3]}),
        GridSearchCV(classifier(), {"steps": [2, 3]}),
    ):
        with pytest.raises(UnsupportedError, match="DPSearch"):
            search.fit(X, Y)


SCORED = {
    "cross_val_score": lambda model: selection.cross_val_score(model, X, Y, cv=2),
    "cross_validate": lambda model: selection.cross_validate(model, X, Y, cv=2),
    "cross_val_predict": lambda model: selection.cross_val_predict(model, X, Y, cv=2),
    "learning_curve": lambda model: selection.learning_curve(model, X, Y, cv=2, train_sizes=[0.5]),
    "validation_curve": lambda model: selection.validation_curve(
        model, X, Y, param_name="steps", param_range=[2, 3], cv=2
    ),
    "permutation_test_score": lambda model: selection.permutation_test_score(
        model, X, Y, cv=2, n_permutations=2
    ),
}


def told(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        call()
    return [w for w in caught if w.category is private.UnpaidReleaseWarning]


@pytest.mark.parametrize("name", SCORED)
def test_exact_held_out_scores_are_told_of_once(name):
    ledger = ac.Accountant()
    found = told(lambda: SCORED[name](classifier(ledger=ledger)))
    assert [str(w.message).partition(" ")[0] for w in found] == [name]
    assert "no ledger is charged" in str(found[0].message)
    assert found[0].filename == __file__
    assert len(ledger) > 0  # the fits themselves are paid for
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", private.UnpaidReleaseWarning)
        SCORED[name](classifier())


def test_a_fitted_preprocessor_is_told_of():
    public = StandardScaler().fit(RNG.normal(size=(50, 3)))
    for model in (classifier(), DPSearch(classifier(), {"steps": [2, 3]}, mean_runs=1.0)):
        (found,) = told(lambda model=model: make_pipeline(StandardScaler(), model).fit(X, Y))
        assert str(found.message).startswith("StandardScaler is fitted to the private records")
        assert found.filename == __file__
        for step in (FrozenEstimator(public), FunctionTransformer(), Normalizer(), "passthrough"):
            assert not told(lambda step=step, model=model: make_pipeline(step, model).fit(X, Y))
    inside = TransformedTargetRegressor(ridge(), transformer=StandardScaler())
    assert "StandardScaler" in str(told(lambda: inside.fit(X, X[:, 0]))[0].message)
    assert not told(lambda: classifier().fit(X, Y))


def test_several_fits_on_the_same_records_are_told_of():
    found = told(lambda: OneVsRestClassifier(classifier()).fit(X, Y))
    assert "OneVsRestClassifier may fit several" in str(found[0].message)


@pytest.mark.parametrize(
    "meta",
    [
        lambda model, n: BaggingClassifier(model, n_estimators=2, n_jobs=n),
        lambda model, n: OneVsRestClassifier(model, n_jobs=n),
        lambda model, n: OneVsOneClassifier(model, n_jobs=n),
        lambda model, n: VotingClassifier([("a", model), ("b", classifier())], n_jobs=n),
    ],
    ids=["bagging", "one-rest", "one-one", "voting"],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_several_fits_are_told_of_in_whatever_process_they_are(meta, jobs):
    three = np.arange(len(X)) % 3
    model = DPLogisticRegression(data_norm=1.0)
    found = told(lambda: meta(model, jobs).fit(X, three))
    assert found
    assert all("may fit several" in str(each.message) for each in found)
    # What a worker process says may be said again by another one.
    assert len(found) == 1 or jobs == 2
    assert found[0].filename == __file__
    assert not told(lambda: pickle.dumps(model))


def test_the_caller_is_who_entered_scikit_learn_whatever_it_waits_for():
    files = "multiprocessing/connection.py", "joblib/parallel.py", sklearn.__file__, __file__
    stack = [SimpleNamespace(f_code=SimpleNamespace(co_filename=file)) for file in files]
    for waiting in range(3):
        assert _caller(stack[waiting:]).f_code.co_filename == __file__


def test_a_fits_privacy_says_whose_it_is():
    model = make_pipeline(Normalizer(), DPLogisticRegression(data_norm=1.0)).fit(X, Y)
    shown = repr(model[-1].privacy_)
    assert "private=True, scope='this estimator alone" in shown


@pytest.mark.parametrize("fit", ["fit", "fit_transform"])
def test_an_imputer_around_a_private_model_is_told_of(fit):
    gaps = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    with pytest.warns(private.UnpaidReleaseWarning, match="IterativeImputer may fit several"):
        getattr(IterativeImputer(ridge(), max_iter=1, tol=1e9), fit)(gaps)
