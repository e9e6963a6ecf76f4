"""Ledgers of the scikit-learn estimators: every fit is charged, and no copy can spend."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import accountant as ac
from accountant.adapters import sklearn as private
from accountant.adapters.sklearn import DPLogisticRegression, DPRidge
from accountant.errors import BudgetExceeded, UnsupportedError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) / 4.0
Y = (X[:, 0] > 0).astype(int)
ESTIMATORS = [
    DPLogisticRegression(data_norm=1.0),
    private.DPLinearSVC(data_norm=1.0),
    private.DPLinearRegression(data_norm=1.0, target_bound=1.0),
    DPRidge(data_norm=1.0, target_bound=1.0),
    private.DPSGDClassifier(data_norm=1.0, steps=3),
    private.DPMLPClassifier(data_norm=1.0, steps=3),
]
NAMES = [type(estimator).__name__ for estimator in ESTIMATORS]


@pytest.mark.long
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
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


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
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


def test_a_search_is_refused_at_the_top_of_the_message():
    with pytest.raises(UnsupportedError) as refused:
        GridSearchCV(DPRidge(data_norm=1.0, target_bound=1.0), {"epsilon": [1, 2]}).fit(X, Y)
    assert str(refused.value).startswith("hyper-parameter search over private fits must be paid")
    assert "DPSearch" in str(refused.value)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
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


@pytest.mark.parametrize("estimator", ESTIMATORS[:4], ids=NAMES[:4])
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_sparse_rows_give_the_same_release(estimator, kind):
    rows = np.where(np.abs(X) > 0.2, X, 0.0)
    with pytest.warns(UserWarning, match="not private"):
        thick = clone(estimator).set_params(random_state=1).fit(rows, Y)
    with pytest.warns(UserWarning, match="not private"):
        thin = clone(estimator).set_params(random_state=1).fit(kind(rows), Y)
    np.testing.assert_array_equal(thick.coef_, thin.coef_)
    np.testing.assert_array_equal(thick.predict(rows), thin.predict(kind(rows)))
