"""The scikit-learn estimators: everything a fitted one holds, and what its fit warned of."""

from fractions import Fraction

import numpy as np

from accountant.adapters import sklearn as estimators
from accountant.learn.convex import HuberHinge, Logistic, Softmax
from support.twins import pairs
from support.twins.cases_convex import ROOM, of_mechanisms
from support.twins.cases_descent import of_the_plan
from support.twins.comparison import Charge
from support.twins.pairs import Pair
from support.twins.registry import case

D = 3
FEW = ("ordinary", "duplicates", "half of the rows times 1e+30", "two rows", "integers")


def _fit(make, **given):
    def run(data):
        return make(random_state=1, **given).fit(*data)

    return run


def _several(X):
    return np.arange(len(X)) % 3


def _minima(*losses):
    """One minimum for each loss: rows of norm √2 with the intercept's column, default λ."""

    def charges(result, pair):
        found = []
        for loss in losses:
            lam = Fraction(2 if isinstance(loss, Logistic) else 16) * Fraction(loss.curvature_bound)
            lam = Fraction(2) if isinstance(loss, Logistic) else lam
            # The default λ is a multiple of the squared norm, over ε = 1 or a share of it.
            found.append(Charge(1, length=Fraction(loss.slope_bound) * Fraction(3, 2) / lam * ROOM))
        return found

    return charges


def _sizes():
    """Numbers of records around those at which scikit-learn counts classes, and a batch fills."""
    for n in (2, 3, 4, 5, 256, 257):
        X = pairs.features(n + 1, D)
        yield pairs.without(f"{n} and {n + 1} records", (X, pairs.labels(X)), n)


for name, make, target, given, charges in (
    ("DPLogisticRegression", estimators.DPLogisticRegression, pairs.labels, {"classes": [0, 1]},
     _minima(Logistic())),
    ("DPLogisticRegression, three classes", estimators.DPLogisticRegression, _several,
     {"classes": [0, 1, 2]}, _minima(Softmax(3))),
    ("DPLinearSVC", estimators.DPLinearSVC, pairs.labels, {"classes": [0, 1]},
     _minima(HuberHinge())),
    ("DPLinearSVC, three classes", estimators.DPLinearSVC, _several, {"classes": [0, 1, 2]},
     _minima(*[HuberHinge()] * 3)),
):  # fmt: skip
    case(
        name=name,
        run=_fit(make, **given),
        pairs=lambda target=target: [*pairs.add_or_remove(D, target, only=FEW), *_sizes()],
        charges=charges,
    )


def _entry_price(result, pair):
    class Result:
        mechanisms = result.privacy_.entry

    return of_mechanisms(Result, pair)[::-1]


for name in ("DPLinearRegression", "DPRidge"):
    case(
        name=name,
        run=_fit(getattr(estimators, name), target_bound=2.0),
        pairs=lambda: [
            p for size in (1.0, 1e30) for p in pairs.add_or_remove(D, pairs.numbers(size), only=FEW)
        ],
        charges=_entry_price,
    )


for name in ("DPSGDClassifier", "DPMLPClassifier"):
    make = getattr(estimators, name)
    case(
        name=name,
        run=_fit(make, classes=[0, 1], steps=2, batch_size=8, sampling_probability=0.25),
        pairs=lambda: [*pairs.add_or_remove(D, pairs.labels, only=FEW), *_sizes()],
        charges=lambda result, pair: of_the_plan()(result.result_, pair),
    )


def _classes():
    """Around two records a class scikit-learn warns of many classes for few records."""
    for n in (22, 23, 24):
        X = pairs.features(n, D)
        yield pairs.without(f"{n} records of twelve classes", (X, np.arange(n) % 12), n - 1)


case(
    name="DPLogisticRegression, twelve classes",
    run=_fit(estimators.DPLogisticRegression, classes=list(range(12))),
    pairs=_classes,
    charges=_minima(Softmax(12)),
)


def _search(data):
    X = pairs.features(12, D)
    space = {"regularization": [2.0, 3.0]}
    model = estimators.DPLogisticRegression(classes=[0, 1], data_norm=1.0)
    return estimators.DPSearch(model, space, mean_runs=2.0, random_state=1).fit(X, pairs.labels(X))


case(
    name="DPSearch",
    # What is private about it: its estimators have their cases, and the sensitivity of its score
    # and its cost are tested in tests/adapters/test_sklearn_search.py.
    run=_search,
    pairs=lambda: [Pair("no data", (), (), (), (), 0, "add or remove")],
    # Both settings are tried on records that are all zero before anything is charged.
    charges=_minima(*[Logistic()] * 3),
)
