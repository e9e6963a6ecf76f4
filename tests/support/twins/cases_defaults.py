"""Everything that reads records, with what it requires and every other setting at its default."""

import numpy as np

from accountant.adapters import sklearn as estimators
from accountant.learn import (
    Batches,
    LogisticRegression,
    Noise,
    convex,
    train_dp_sgd,
    train_one_example_sgd,
    train_projected_gradient_descent,
)
from accountant.learn.blocks import block_estimates, private_block_median
from accountant.learn.convex import HuberHinge, Logistic
from accountant.learn.generation import (
    PateGanSettings,
    synthesize_marginals,
    train_dp_gan,
    train_pate_gan,
)
from accountant.learn.pate import GNMax, TeacherEnsemble, train_student
from support.twins import pairs
from support.twins.cases_convex import of_a_minimum, of_mechanisms
from support.twins.cases_descent import of_the_plan
from support.twins.cases_generation import DOMAIN, _label_price, _marginal_price, _records
from support.twins.cases_selection import QUERIES, Nearest, _price, _votes_price
from support.twins.cases_sklearn import _entry_price, _minima
from support.twins.comparison import Charge
from support.twins.registry import case

N, D = 61, 3
BUDGET = {"epsilon": 1.0, "delta": 1e-5, "rng": 1}
ROWS = BUDGET | {"data_norm": 1.0}
SGD = {"noise": Noise(1.0), "clipping_norm": 1.0, "delta": 1e-5, "rng": 1}
BALL = SGD | {"steps": 2, "projection_radius": 1.0}


def _without(target, columns=D):
    def found():
        X = pairs.features(N, columns)
        data = (X,) if target is None else (X, target(X))
        yield pairs.without("every default", data, N // 2)

    return found


def _replaced():
    X = pairs.features(N, D)
    yield pairs.replaced("every default", (X, pairs.signs(X)), N // 2, (np.full(D, 9.0), 1.0))


def _column():
    yield pairs.without("every default", (pairs.features(N, 1)[:, 0],), N // 2)


def _table():
    yield pairs.without("every default", (_records(pairs.features(N, D)),), N // 2)


def _student(data):
    ensemble = TeacherEnsemble(Nearest, 7, 3, rng=1).fit(*data)
    return train_student(
        ensemble, QUERIES, lambda X, where, names: (where, names), GNMax(2.0), delta=1e-5, rng=2
    )


def _median(data):
    estimates = block_estimates(data[0], lambda block: block[:, 0].mean(), 8, (0.0, 1.0), rng=1)
    return private_block_median(estimates, (0.0, 1.0), 0.9, rng=1)


def _one_step(result, pair):
    """All gradients of a descent cost what its one mechanism says."""
    return [Charge(3, squared=of_mechanisms(result, pair)[0].squared)]


def _thirds(X):
    return np.arange(len(X)) % 3


LEARN = "accountant.learn"
CONVEX = "accountant.learn.convex"
GENERATION = "accountant.learn.generation"
SKLEARN = "accountant.adapters.sklearn"
SECRET = Batches(20.0, steps=2, sampling_probability=0.5)

for name, run, made, charges, given in (
    (f"{LEARN}.train_dp_sgd",
     lambda d: train_dp_sgd(LogisticRegression(D), *d, batches=SECRET, **SGD),
     _without(pairs.labels), of_the_plan(), {}),
    (f"{LEARN}.train_projected_gradient_descent",
     lambda d: train_projected_gradient_descent(
         LogisticRegression(D), *d, expected_records=60.0, **BALL
     ), _without(pairs.labels), of_the_plan(), {}),
    (f"{LEARN}.train_one_example_sgd",
     lambda d: train_one_example_sgd(
         LogisticRegression(D), *d, sampling_probability=0.05, **BALL
     ), _without(pairs.labels), of_the_plan(), {}),
    (f"{CONVEX}.perturb_objective", lambda d: convex.perturb_objective(*d, **ROWS),
     _without(pairs.signs), of_a_minimum(Logistic(), 1.0), {}),
    (f"{CONVEX}.perturb_output",
     lambda d: convex.perturb_output(*d, regularization=0.5, **ROWS),
     _without(pairs.signs), of_mechanisms, {}),
    (f"{CONVEX}.bolt_on_sgd", lambda d: convex.bolt_on_sgd(*d, **ROWS), _replaced,
     of_mechanisms, {}),
    (f"{CONVEX}.noisy_gradient_descent",
     lambda d: convex.noisy_gradient_descent(*d, steps=3, step_size=0.1, **ROWS),
     _without(pairs.signs), _one_step, {}),
    (f"{CONVEX}.exponential_mechanism",
     lambda d: convex.exponential_mechanism(*d, epsilon=0.8, data_norm=1.0, radius=2.0, rng=1),
     _without(pairs.signs, 2), of_mechanisms, {}),
    (f"{CONVEX}.gibbs_posterior",
     lambda d: convex.gibbs_posterior(*d, regularization=1.0, **ROWS),
     _without(pairs.signs, 2), lambda result, pair: [], {"replays": False}),
    (f"{CONVEX}.private_mean", lambda d: convex.private_mean(*d, bound=1.5, **BUDGET),
     _without(None), of_mechanisms, {}),
    (f"{CONVEX}.private_covariance",
     lambda d: convex.private_covariance(*d, bound=1.5, **BUDGET), _without(None),
     of_mechanisms, {}),
    (f"{CONVEX}.private_quantile",
     lambda d: convex.private_quantile(*d, 0.3, epsilon=1.0, lower=-1.0, upper=1.0, rng=1),
     _column, of_mechanisms, {"replays": False}),
    (f"{CONVEX}.private_ridge", lambda d: convex.private_ridge(*d, target_bound=1.0, **ROWS),
     _without(pairs.numbers(3.0)), of_mechanisms, {}),
    (f"{CONVEX}.ada_ssp", lambda d: convex.ada_ssp(*d, target_bound=1.0, **ROWS),
     _without(pairs.numbers(3.0)), lambda result, pair: of_mechanisms(result, pair)[::-1], {}),
    (f"{GENERATION}.synthesize_marginals",
     lambda d: synthesize_marginals(d[0], DOMAIN, delta=1e-5, target_epsilon=1.0, rng=1),
     _table, _marginal_price, {}),
    (f"{GENERATION}.train_dp_gan",
     lambda d: train_dp_gan(
         d[0], DOMAIN, batches=SECRET, noise=Noise(1.0), delta=1e-5, rng=1
     ), _table, of_the_plan(), {}),
    # Only the number of iterations is not the default, 400.
    (f"{GENERATION}.train_pate_gan",
     lambda d: train_pate_gan(
         d[0], DOMAIN, delta=1e-5, sigma=4.0, settings=PateGanSettings(iterations=3), rng=1
     ), _table, _label_price, {}),
    (f"{LEARN}.pate.train_student", _student, _without(_thirds), _votes_price,
     {"without": frozenset({"stream"})}),
    (f"{LEARN}.blocks.private_block_median", _median, _without(None), _price(0.9), {}),
    (f"{SKLEARN}.DPLogisticRegression",
     lambda d: estimators.DPLogisticRegression(random_state=1).fit(*d),
     _without(pairs.labels), _minima(Logistic()), {}),
    (f"{SKLEARN}.DPLinearSVC", lambda d: estimators.DPLinearSVC(random_state=1).fit(*d),
     _without(pairs.labels), _minima(HuberHinge()), {}),
    (f"{SKLEARN}.DPRidge", lambda d: estimators.DPRidge(target_bound=2.0, random_state=1).fit(*d),
     _without(pairs.numbers(1.0)), _entry_price, {}),
    (f"{SKLEARN}.DPLinearRegression",
     lambda d: estimators.DPLinearRegression(target_bound=2.0, random_state=1).fit(*d),
     _without(pairs.numbers(1.0)), _entry_price, {}),
    # Without a sampling probability the number of records is public, and one less is told.
    *((f"{SKLEARN}.{kind}",
       lambda d, kind=kind: getattr(estimators, kind)(
           sampling_probability=0.25, random_state=1
       ).fit(*d),
       _without(pairs.labels), lambda result, pair: of_the_plan()(result.result_, pair), {})
      for kind in ("DPSGDClassifier", "DPMLPClassifier")),
):  # fmt: skip
    case(
        name=f"{name.rpartition('.')[2]}, every default",
        run=run,
        pairs=made,
        charges=charges,
        **given,
    )
