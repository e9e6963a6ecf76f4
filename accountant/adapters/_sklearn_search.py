"""A search over hyper-parameters that is paid for: the best of a random number of private fits."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from accountant import checks
from accountant.adapters import _sklearn_base as base
from accountant.adapters._sklearn_base import Privacy, PrivateEstimator, column
from accountant.adapters._sklearn_inside import look_around
from accountant.calibration.any_mechanism import calibrate
from accountant.errors import AccountantError, ArgumentTypeError, DomainError
from accountant.learn.account import as_ledger
from accountant.learn.selection.noisy_max import generator_of
from accountant.learn.selection.tuning import SearchResult, search_cost, select_best
from accountant.learn.validation import labels_among, numbers
from accountant.ledger import Accountant
from accountant.mechanisms import ApproximateDP
from accountant.noise.exact_samplers import discrete_laplace, uniform_below

# A record's share of a score, at most: squared errors are counted in so many parts of the largest.
PARTS = 1024
# Parts of ε and of δ: of a run for its score, and of the search for what a run may fail by.
SCORE, FAILURE = 0.1, 0.01
MOST_SETTINGS = 10**6
# What the search itself sets, and public facts about the data, which are no choice.
FIXED = ("epsilon", "delta", "ledger", "random_state", "classes", "max_records")
_RUNS = checks.Argument(
    "mean_runs", "a number >= 1", lambda x: (x >= 1.0) & (x < math.inf), "It is the mean of fits"
)


def _has(name: str) -> Any:
    return lambda search: hasattr(search.estimator, name)


@dataclass(eq=False, repr=False)
class DPSearch(base.MetaEstimatorMixin, base.BaseEstimator):
    """Choose the hyper-parameters of a private estimator, and pay for the choice.

    A random number of settings is fitted, each drawn uniformly from ``space``, and scored with
    noise on the same records; the best model is kept, and nothing else may be published.

    Parameters
    ----------
    estimator : estimator of this module
        Its epsilon, delta, ledger and random_state are set by the search.
    space : mapping of str to sequence
        The public candidates of each parameter, as for scikit-learn's GridSearchCV.
    epsilon, delta : float
        The guarantee of the whole search with its model, in nats; δ in (0, 1).
    mean_runs : float
        The mean number of fits, >= 1.
    ledger : Accountant, optional
        Charged for the whole search before the first fit.
    random_state : int, optional
        For tests only: the search is then not private.

    Attributes
    ----------
    best_estimator_, best_params_
        The model kept, fitted, and its setting.
    privacy_ : Privacy
        What the search has spent.
    cost_ : str
        What it cost, and what one fit would have.
    ledger_ : Accountant
        What was charged.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy under add-or-remove: the best of a random
    number of runs (docs/theorems_selection.md, Theorems P4 and P7), of which each is private by
    basic composition of its fit and its score (C1). A score is a number of right predictions, or of
    1024ths of the largest squared error within ``target_bound``, with discrete Laplace noise. How
    many fits there were, and how long they took, must stay secret. Every setting is first tried on
    records that are all zero: one that no fit could run with is refused before the charge.
    """

    estimator: Any
    space: Mapping[str, Sequence[Any]]
    epsilon: float = field(default=1.0, kw_only=True)
    delta: float = field(default=1e-5, kw_only=True)
    mean_runs: float = field(default=10.0, kw_only=True)
    ledger: Accountant | None = field(default=None, kw_only=True)
    random_state: int | None = field(default=None, kw_only=True)

    def __sklearn_clone__(self) -> Any:
        """Clone the parameters, but never the ledger."""
        return base.cloned(self)

    def fit(self, X: Any, y: Any) -> DPSearch:  # noqa: N803
        """Search privately, and keep the best model."""
        look_around(self)
        settings = list(_settings(self.estimator, self.space))
        self.estimator._warn_of_bounds()
        target = checks.number(checks.TARGET_DELTA, self.delta)
        run = self._run_guarantee(target)
        book = as_ledger(self.ledger)
        generator = generator_of(self.random_state)
        scale = math.ceil(1.0 / (SCORE * run.epsilon0))
        per_fit = run.epsilon0 * (1.0 - SCORE) * (1.0 - 1e-12)

        def model_of(setting: dict[str, Any], seed: int | None) -> Any:
            return clone(self.estimator).set_params(
                **setting, epsilon=per_fit, delta=run.delta0, ledger=None, random_state=seed
            )

        _refuse_infeasible(self.estimator, settings, model_of, X, y)

        def train(setting: dict[str, Any]) -> tuple[Any, int]:
            seed = None if self.random_state is None else uniform_below(generator, 2**31)
            model = model_of(setting, seed)
            model._quiet = True  # bars of progress would count the runs
            with warnings.catch_warnings():
                # One a run would tell how many there were.
                warnings.simplefilter("ignore", UserWarning)
                model.fit(X, y)
            noise = discrete_laplace(scale * _parts(model), lambda n: uniform_below(generator, n))
            return model, _score(model, X, y) + noise

        found: SearchResult[dict[str, Any]] = select_best(
            train, settings, lambda output: float(output[1]), mechanism=run,
            delta=target, mean_runs=self.mean_runs, ledger=book, rng=generator,
        )  # fmt: skip
        assert found.best is not None  # the distribution has no zero
        self.best_estimator_, self.best_params_ = found.best[0], found.setting
        self.ledger_, self.classes_ = book, getattr(self.best_estimator_, "classes_", None)
        self.privacy_ = Privacy(found.run_epsilon, target, (found.mechanism,), found.private)
        self.cost_ = (
            f"The search, with the model it chose, costs ε = {found.run_epsilon:.4g} at"
            f" δ = {target:g}; one fit with its score would have cost {found.single_epsilon:.4g}."
        )
        return self

    def _run_guarantee(self, delta: float) -> ApproximateDP:
        """Return the largest guarantee of one run with which the search keeps to its own."""
        failure = delta * FAILURE / checks.number(_RUNS, self.mean_runs)
        epsilon = checks.number(checks.TARGET_EPS.renamed("epsilon"), self.epsilon)

        def run(scale: float) -> ApproximateDP:
            return ApproximateDP(1.0 / scale, delta=failure)

        def search(scale: float) -> Any:
            return search_cost(run(scale), self.mean_runs, 0.0)

        return run(calibrate(search, epsilon=epsilon, delta=delta, start=2.0 / epsilon))

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the predictions of the model kept."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """Return the score of the model kept; on private records it is a release of its own."""
        check_is_fitted(self, "best_estimator_")
        return float(self.best_estimator_.score(X, y))

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Return the probabilities of the model kept."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)


def _settings(estimator: Any, space: Any) -> Iterator[dict[str, Any]]:
    """Return every setting; all of it is public."""
    private = "one of accountant.adapters.sklearn, whose fits are private"
    checks.instance("estimator", estimator, PrivateEstimator, private)
    if not isinstance(space, Mapping) or not space:
        raise ArgumentTypeError("space must map names of parameters to their candidates")
    for name in space:
        if name in FIXED or name not in estimator.get_params(deep=False):
            raise DomainError(
                f"space must name parameters of the estimator other than {', '.join(FIXED)}; got"
                f" {name!r:.60}"
            )
    values = [list(candidates) for candidates in space.values()]
    count = math.prod(map(len, values))
    if not 1 <= count <= MOST_SETTINGS:
        raise DomainError(f"space must have 1 to {MOST_SETTINGS} settings; got {count}")
    return (dict(zip(space, chosen, strict=True)) for chosen in product(*values))


def _refuse_infeasible(
    estimator: Any,
    settings: Sequence[dict[str, Any]],
    model_of: Callable[[dict[str, Any], int | None], Any],
    x: Any,
    y: Any,
) -> None:
    """Refuse data that no fit takes, and settings that no fit could run with, before any charge.

    Which setting a search comes to is random: a refusal in its midst would tell of the draw, after
    the charge. The settings are tried on records that are all zero, so nothing is learnt of these.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        shape = clone(estimator)._public_shape(x, y)
        refused = []
        for setting in settings:
            try:
                model_of(setting, 0)._rehearse(shape)
            except (AccountantError, TypeError, ValueError) as why:
                refused.append((setting, why))
    if refused:
        first, reason = refused[0]
        raise DomainError(
            f"space must have only settings that one fit's share of the search's epsilon allows;"
            f" {len(refused)} of {len(settings)} cannot be fitted, the first of them {first!r}:"
            f" {reason}. Nothing was charged"
        ) from reason


def _parts(model: Any) -> int:
    """Return how much one record changes a score, at most."""
    return PARTS if is_regressor(model) else 1


def _score(model: Any, x: Any, y: Any) -> int:
    """Return an integer to which every record adds a number between 0 and ``_parts``."""
    predicted, labels = model.predict(x), column(y)
    if not is_regressor(model):
        known = model.classes_.tolist()
        right = labels_among(predicted, known) == labels_among(labels, known)
        return int(np.count_nonzero(right))
    bound = 1.0 if model.target_bound is None else float(model.target_bound)
    ends = -bound, bound
    errors = np.clip(np.asarray(predicted), *ends) - np.clip(numbers("y", labels, ()), *ends)
    # A target that cannot be read is as far off as any.
    shares = np.nan_to_num(np.clip((errors / (2.0 * bound)) ** 2, 0.0, 1.0), nan=1.0)
    return int(np.sum(PARTS - np.floor(PARTS * shares).astype(np.int64)))
