"""The private search: its cost is certified and charged first, its scores are bounded and noisy."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import accountant as ac
from accountant.adapters import _sklearn_search as search
from accountant.adapters.sklearn import (
    DPLogisticRegression,
    DPMLPClassifier,
    DPRidge,
    DPSearch,
    DPSGDClassifier,
)
from accountant.errors import ArgumentTypeError, BudgetExceeded, DomainError, UnsupportedError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3)) / 4.0
Y = (X[:, 0] > 0).astype(int)
SPACE = {"regularization": [1.0, 100.0]}


def quick_guarantee(_search, _delta):
    """What a run may cost at the default epsilon and delta, without the seconds that it takes."""
    return ac.ApproximateDP(0.514, delta=1e-8)


def logistic():
    return DPLogisticRegression(data_norm=1.0)


@pytest.mark.long
def test_the_whole_search_keeps_to_its_guarantee():
    ledger = ac.Accountant()
    found = DPSearch(logistic(), SPACE, epsilon=3.0, delta=1e-5, ledger=ledger).fit(X, Y)
    assert ledger.epsilon(1e-5) <= 3.0
    assert found.privacy_.epsilon == pytest.approx(3.0, rel=1e-3)
    assert found.best_params_["regularization"] in SPACE["regularization"]
    assert found.predict(X).shape == (200,)
    assert found.predict_proba(X).shape == (200, 2)
    assert "one fit with its score would have cost" in found.cost_
    # One charge for everything: the candidates' own fits are inside.
    assert len(ledger) == 1
    # A fit and its score together are one run of the bound, with the weaker of both sums.
    run = ledger.counts[0][0].base
    inner = found.best_estimator_.privacy_
    scale = -(-1 // (0.1 * run.epsilon(run.delta(1e9))))
    assert inner.epsilon + 1.0 / scale <= run.epsilon(1e-7)


@pytest.mark.long
def test_a_budget_refuses_before_any_fit(monkeypatch):
    def fitted(_estimator, records, _labels):
        assert not records.any(), "fitted"

    monkeypatch.setattr(DPLogisticRegression, "fit", fitted)
    ledger = ac.Accountant(ac.Budget(1.0, 1e-5, filter="non-adaptive"))
    with pytest.raises(BudgetExceeded):
        DPSearch(logistic(), SPACE, epsilon=3.0, ledger=ledger).fit(X, Y)


def test_one_record_moves_a_score_by_no_more_than_its_part():
    ridge = DPRidge(data_norm=1.0, target_bound=0.5)
    for estimator, labels in ((logistic(), Y), (ridge, Y - 0.5)):
        with pytest.warns(UserWarning, match="not private"):
            model = estimator.set_params(random_state=1).fit(X, labels)
        most = search._parts(model)
        whole = search._score(model, X, labels)
        for k in range(0, 200, 17):
            without = search._score(model, np.delete(X, k, axis=0), np.delete(labels, k))
            assert 0 <= whole - without <= most
    # Far beyond the bound, too.
    assert search._score(model, X[:1], np.array([1e300])) >= 0


def test_a_column_of_labels_counts_every_record_once():
    """It was compared with every prediction: one record moved the score by twice their number."""
    with pytest.warns(UserWarning, match="not private"):
        model = logistic().set_params(random_state=1).fit(X, Y)
    with pytest.warns(UserWarning, match="column-vector"):
        assert search._score(model, X, Y[:, None]) == search._score(model, X, Y)


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("entry", ["secret text", None, float("nan"), 10**400, [1.0, 2.0]])
@pytest.mark.parametrize("model", [logistic(), DPRidge(data_norm=1.0, target_bound=1.0)], ids=repr)
def test_a_record_that_cannot_be_read_moves_a_score_by_no_more(model, entry):
    labels = [*Y.tolist(), entry]
    model = clone(model).set_params(**({"classes": [0, 1]} if hasattr(model, "classes") else {}))
    fitted = model.fit(X, Y)
    most, whole = search._parts(fitted), search._score(fitted, X, Y)
    rows = X.tolist()
    assert 0 <= search._score(fitted, [*rows, rows[0]], labels) - whole <= most
    odd = [entry] * 3
    assert 0 <= search._score(fitted, [*rows, odd], [*Y.tolist(), 1]) - whole <= most
    DPSearch(model, SPACE, mean_runs=1.0).fit([*rows, odd], labels)


@pytest.mark.slow
def test_it_prefers_the_better_setting():
    space = {"regularization": [0.5, 1e6]}
    found = [
        DPSearch(logistic(), space, epsilon=30.0, mean_runs=20.0, random_state=k).fit(X, Y)
        for k in range(6)
    ]
    assert np.mean([f.score(X, Y) for f in found]) > 0.8


@pytest.mark.long
def test_trainers_can_be_searched_quietly(capsys):
    space = {"learning_rate": [0.5, 2.0]}
    trainer = DPSGDClassifier(data_norm=1.0, steps=3)
    assert DPSearch(trainer, space, mean_runs=2.0).fit(X, Y).privacy_.private
    assert capsys.readouterr().err == ""
    seeded = DPSearch(trainer, space, mean_runs=2.0, random_state=1).fit(X, Y)
    assert not seeded.privacy_.private


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"estimator": GridSearchCV(logistic(), SPACE)}, ArgumentTypeError, "estimator"),
        ({"space": {}}, ArgumentTypeError, "space"),
        ({"space": {"epsilon": [1.0]}}, DomainError, "'epsilon'"),
        ({"space": {"classes": [[0, 1]]}}, DomainError, "'classes'"),
        ({"space": {"nothing": [1.0]}}, DomainError, "'nothing'"),
        ({"space": {"regularization": []}}, DomainError, "settings"),
        ({"epsilon": 0.0}, DomainError, "epsilon"),
        ({"delta": 0.0}, DomainError, "delta"),
        ({"mean_runs": 0.5}, DomainError, "mean"),
    ],
)
def test_bad_settings_are_named(settings, error, says):
    ledger = ac.Accountant()
    given = {"estimator": logistic(), "space": SPACE, "ledger": ledger} | settings
    with pytest.raises(error, match=says):
        DPSearch(**given).fit(X, Y)
    assert len(ledger) == 0


@pytest.mark.parametrize(
    ("estimator", "space", "says"),
    [
        (
            logistic(),
            {"regularization": [1.0, 0.5]},
            r"1 of 2 .*0.5\}: regularization must be above",
        ),
        (logistic(), {"regularization": [0.5, 100.0, 0.2]}, r"2 of 3 .*: 0.5\}"),
        (DPRidge(target_bound=1.0, data_norm=1.0), {"regularization": [1.0, -1.0]}, ": -1.0"),
        (DPSGDClassifier(data_norm=1.0), {"learning_rate": [1.0, -1.0]}, "'learning_rate': -1.0"),
        (DPSGDClassifier(data_norm=1.0), {"steps": [3, 0]}, "'steps': 0"),
        (DPMLPClassifier(data_norm=1.0), {"hidden_layer_sizes": [(2,), (0,)]}, r"\(0,\)"),
    ],
)
def test_a_setting_that_no_fit_could_run_with_is_refused_first(estimator, space, says, monkeypatch):
    def drawn(*_arguments, **_options):
        raise AssertionError("the search began")

    monkeypatch.setattr(search, "select_best", drawn)
    monkeypatch.setattr(DPSearch, "_run_guarantee", quick_guarantee)
    ledger = ac.Accountant()
    with pytest.raises(DomainError, match=says) as refusal:
        DPSearch(estimator, space, ledger=ledger).fit(X, Y - 0.5 if says == ": -1.0" else Y)
    assert len(ledger) == 0
    # The same words for other records: nothing about these is in them.
    with pytest.raises(DomainError) as again:
        DPSearch(estimator, space).fit(X[::-1] * 0.3, Y)
    assert str(again.value) == str(refusal.value)


def test_data_that_no_fit_takes_are_refused_before_the_charge(monkeypatch):
    monkeypatch.setattr(DPSearch, "_run_guarantee", quick_guarantee)
    ledger = ac.Accountant()
    space = {"regularization": [100.0]}
    with pytest.raises(ValueError, match="numbers of samples"):
        DPSearch(logistic(), space, ledger=ledger).fit(X, Y[1:])
    few = DPLogisticRegression(data_norm=1.0, max_records=199)
    with pytest.raises(DomainError, match="at most 199 rows"):
        DPSearch(few, space, ledger=ledger).fit(X, Y)
    assert len(ledger) == 0


def test_a_search_over_the_search_is_refused():
    with pytest.raises(UnsupportedError, match="must be paid for"):
        GridSearchCV(DPSearch(logistic(), SPACE), {"epsilon": [1.0, 2.0]}).fit(X, Y)
