"""scikit-learn estimators whose ``fit`` is differentially private.

``data_norm`` is a public bound on the rows' Euclidean norm: longer rows are scaled down to it, and
it is never read from the data. ``privacy_`` says what a fit has spent, ``spent()`` what all of them
have, and a ``ledger`` adds them up. The set of class labels and the number of columns are public. A
record that cannot be read (text, None, NaN, another length, a label that is not in ``classes``)
adds nothing, and nothing says so.

What scikit-learn does around a fit is not the estimator's to pay for. Whatever chooses by scores
(searches, feature selection, thresholds, calibration, stacking) is refused: :class:`DPSearch` pays
for its choice. Exact held-out scores, and a preprocessor fitted to the same records, are told of by
an :class:`UnpaidReleaseWarning`, once. Predictions scale long rows down as ``fit`` does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import FloatArray
from accountant.adapters import _sklearn_base as base
from accountant.adapters._sklearn_base import Classifier, Privacy, Probabilities, UnsetBoundWarning
from accountant.adapters._sklearn_inside import UnpaidReleaseWarning
from accountant.adapters._sklearn_search import DPSearch
from accountant.learn.convex.fit import MOST_RECORDS, PrivateResult
from accountant.learn.convex.losses import HuberHinge, Logistic, Softmax
from accountant.learn.convex.perturbation import perturb_objective
from accountant.learn.convex.rows import clip_rows
from accountant.learn.convex.statistics import ada_ssp, private_ridge
from accountant.learn.dp_sgd import Watch, train_dp_sgd
from accountant.learn.models import MultilayerPerceptron, SoftmaxRegression
from accountant.learn.models.network import Network
from accountant.learn.optimizers import SGD
from accountant.learn.plan import Batches, Noise, Plan
from accountant.learn.validation import numbers

__all__ = [
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPMLPClassifier",
    "DPRidge",
    "DPSGDClassifier",
    "DPSearch",
    "UnpaidReleaseWarning",
    "UnsetBoundWarning",
]


@dataclass(eq=False, repr=False)
class _Linear(Classifier):
    """A linear classifier by objective perturbation."""

    _sparse = True

    regularization: float | None = field(default=None, kw_only=True)
    fit_intercept: bool = field(default=True, kw_only=True)
    max_records: int = field(default=MOST_RECORDS, kw_only=True)

    def _perturbed(
        self, rows: FloatArray, y: Any, norm: float, loss: Any, share: float = 1.0, head: int = 0
    ) -> PrivateResult:
        return perturb_objective(
            rows,
            y,
            epsilon=self.epsilon / share,
            delta=self.delta / share,
            data_norm=norm,
            loss=loss,
            regularization=self.regularization,
            max_records=self.max_records,
            ledger=self._book(),
            rng=None if self.random_state is None else self.random_state + 1000 * head,
        )

    def _store(self, coefficients: FloatArray, scale: float) -> None:
        if self.fit_intercept:
            self.coef_, self.intercept_ = coefficients[:, :-1], coefficients[:, -1] * scale
        else:
            self.coef_, self.intercept_ = coefficients, np.zeros(len(coefficients))


@dataclass(eq=False, repr=False)
class DPLogisticRegression(Probabilities, _Linear):
    """Logistic regression by objective perturbation; softmax for more than two classes.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of one fit, in nats; δ = 0 for pure differential privacy.
    data_norm : float, optional
        Public bound on the rows' norm; 1, with a warning, if left out.
    ledger : Accountant, optional
        Charged by every fit before its noise is drawn; a budget refuses. Clones share it. An
        estimator without one keeps its own, ``ledger_``, through all of its fits.
    regularization : float, optional
        λ of the sum form, (λ/2)|θ|²; by default the one that costs no noise.
    fit_intercept : bool
        Append a constant column of size ``data_norm``.
    classes : array-like, optional
        The public labels; by default the set of labels in ``y`` is taken to be public.
    max_records : int
        A public bound on the number of records; more are refused, without their number.
    random_state : int, optional
        For tests only: the fit is then not private.

    Attributes
    ----------
    coef_, intercept_ : ndarray
        Of shapes (1, d) and (1,) for two classes, (K, d) and (K,) for K.
    privacy_ : Privacy
        What the last fit has spent.
    ledger_ : Accountant
        What all fits have spent; :meth:`spent` is its ε.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy under add-or-remove
    (docs/theorems_convex.md, Theorems V3, V4, V6, V9 and V10). Sparse matrices are taken, and are
    made dense: their release is the same.
    """

    def fit(self, X: Any, y: Any) -> DPLogisticRegression:  # noqa: N803
        """Fit the model privately."""
        rows, labels = self._classified(X, y)
        rows, norm = base.with_intercept(rows, self._norm, self.fit_intercept)
        binary = len(self.classes_) == 2
        y = 2.0 * labels - 1.0 if binary else labels  # -1 is no label, and -3 is none
        loss = Logistic() if binary else Softmax(len(self.classes_))
        result = self._perturbed(rows, y, norm, loss)
        self._store(result.value[None, :] if binary else result.value.T, self._norm)
        self.privacy_ = Privacy.of(result)
        return self


@dataclass(eq=False, repr=False)
class DPLinearSVC(_Linear):
    """A linear support vector machine, its hinge smoothed within 1/2 of 1, by perturbation.

    More than two classes are fitted one against the rest, each with its share of (ε, δ).

    Parameters
    ----------
    epsilon, delta, data_norm, ledger, regularization, fit_intercept, classes
        As in :class:`DPLogisticRegression`.
    max_records, random_state
        As in :class:`DPLogisticRegression`.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy under add-or-remove
    (docs/theorems_convex.md, Theorems V5, V6, V9 and V10), by basic composition over the classes.
    """

    def fit(self, X: Any, y: Any) -> DPLinearSVC:  # noqa: N803
        """Fit the model privately."""
        rows, labels = self._classified(X, y)
        rows, norm = base.with_intercept(rows, self._norm, self.fit_intercept)
        heads = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        share = len(heads) * (1.0 + 1e-12)
        results = [
            self._perturbed(
                rows,
                np.where(labels < 0, np.nan, np.where(labels == head, 1.0, -1.0)),
                norm,
                HuberHinge(),
                share,
                head,
            )
            for head in heads
        ]
        self._store(np.array([result.value for result in results]), self._norm)
        entry = tuple(mechanism for result in results for mechanism in result.mechanisms)
        self.privacy_ = Privacy(self.epsilon, self.delta, entry, results[0].private)
        return self


@dataclass(eq=False, repr=False)
class _Regressor(base.RegressorMixin, base.PrivateEstimator):
    _sparse = True

    target_bound: float | None = field(default=None, kw_only=True)
    fit_intercept: bool = field(default=True, kw_only=True)

    def __sklearn_tags__(self) -> Any:
        """Say that noise makes scores on a handful of records poor."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def predict(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the predicted target of each row."""
        return np.asarray(self._features(X) @ self.coef_ + self.intercept_)

    def _fit(self, x: Any, y: Any, method: Any, **options: Any) -> None:
        rows, labels = self._checked(x, y)
        lost = base.unread(rows)
        rows, norm = base.with_intercept(rows, self._norm, self.fit_intercept)
        result = method(
            rows,
            np.where(lost, np.nan, numbers("y", labels, ())),
            epsilon=self.epsilon,
            delta=self.delta,
            data_norm=norm,
            target_bound=1.0 if self.target_bound is None else self.target_bound,
            ledger=self._book(),
            rng=self.random_state,
            **options,
        )
        value = result.value
        self.coef_ = value[:-1] if self.fit_intercept else value
        self.intercept_ = float(value[-1] * self._norm) if self.fit_intercept else 0.0
        self.privacy_ = Privacy.of(result)


@dataclass(eq=False, repr=False)
class DPLinearRegression(_Regressor):
    """Linear regression by adaptive sufficient statistics perturbation (AdaSSP).

    Parameters
    ----------
    epsilon, delta, data_norm, ledger, fit_intercept, random_state
        As in :class:`DPLogisticRegression`; δ in (0, 1).
    target_bound : float, optional
        Targets are clipped to [-target_bound, target_bound], a public range; 1, with a warning, if
        left out.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy under add-or-remove
    (docs/theorems_convex.md, Theorem V16).
    """

    def fit(self, X: Any, y: Any) -> DPLinearRegression:  # noqa: N803
        """Fit the model privately."""
        self._fit(X, y, ada_ssp)
        return self


@dataclass(eq=False, repr=False)
class DPRidge(_Regressor):
    """Ridge regression from one release of noisy sufficient statistics.

    Parameters
    ----------
    epsilon, delta, data_norm, ledger, target_bound, fit_intercept, random_state
        As in :class:`DPLinearRegression`.
    regularization : float, optional
        λ of the sum form; by default the size of the noise.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy under add-or-remove
    (docs/theorems_convex.md, Theorem V16).
    """

    regularization: float | None = field(default=None, kw_only=True)

    def fit(self, X: Any, y: Any) -> DPRidge:  # noqa: N803
        """Fit the model privately."""
        self._fit(X, y, private_ridge, regularization=self.regularization)
        return self


class _Planned(Exception):  # noqa: N818 (nothing went wrong)
    """A run was planned, as far as a rehearsal goes."""


def _stop(plan: Plan) -> None:
    raise _Planned


@dataclass(eq=False, repr=False)
class _Trained(Probabilities, Classifier, ABC):
    """A classifier on the DP-SGD trainer."""

    clipping_norm: float = field(default=1.0, kw_only=True)
    batch_size: int = field(default=256, kw_only=True)
    steps: int = field(default=200, kw_only=True)
    learning_rate: float = field(default=1.0, kw_only=True)
    momentum: float = field(default=0.9, kw_only=True)
    sampling_probability: float | None = field(default=None, kw_only=True)

    @abstractmethod
    def _model(self, features: int, classes: int) -> Network:
        """Return the untrained model."""

    def fit(self, X: Any, y: Any) -> _Trained:  # noqa: N803
        """Fit the model privately."""
        self.result_ = self._train(*self._classified(X, y))
        steps = (self.result_.plan.charges(self.result_.steps) * self.result_.plan.mechanism,)
        self.privacy_ = Privacy(self.result_.run_epsilon, self.delta, steps, self.result_.private)
        return self

    def _rehearse(self, shape: base.PublicShape) -> None:
        """Raise what ``fit`` raises for public numbers: plan a run, and make no step."""
        count = shape.records if self.sampling_probability is None else len(shape.classes)
        zeros = np.zeros((count, shape.features))
        with suppress(_Planned):
            self._train(*self._classified(zeros, np.resize(shape.classes, count)), _stop)

    def _train(
        self,
        rows: FloatArray,
        labels: NDArray[np.intp],
        on_plan: Callable[[Plan], object] | None = None,
    ) -> Any:
        _, norm = base.with_intercept(rows, self._norm, fit=False)
        model = self._model(rows.shape[1], len(self.classes_))
        # A batch size beyond a public number of records would be no probability; a secret one is
        # not looked at.
        rate = self.sampling_probability
        batch = min(self.batch_size, len(rows)) if rate is None else self.batch_size
        # Rows of norm one, so that one learning rate serves whatever the unit of the features.
        return train_dp_sgd(
            model,
            clip_rows(rows, norm) / norm,
            labels,
            batches=Batches(batch, steps=self.steps, sampling_probability=rate),
            noise=Noise(target_epsilon=self.epsilon),
            clipping_norm=self.clipping_norm,
            delta=self.delta,
            optimizer=SGD(self.learning_rate, momentum=self.momentum),
            averaging="mean",
            ledger=self._book(),
            rng=self.random_state,
            watch=Watch(progress=not getattr(self, "_quiet", False), on_plan=on_plan),
        )

    def decision_function(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the scores: (n,) for two classes, (n, K) for more."""
        rows = self._features(X) / self._norm
        z = np.asarray(self.result_.model.outputs(rows), dtype=np.float64)
        return np.asarray(z[:, 1] - z[:, 0] if z.shape[1] == 2 else z)


@dataclass(eq=False, repr=False)
class DPSGDClassifier(_Trained):
    """Softmax regression by DP-SGD with Poisson sampling.

    Parameters
    ----------
    epsilon, delta, data_norm, ledger, classes, random_state
        As in :class:`~accountant.adapters.sklearn.DPLogisticRegression`; δ in (0, 1).
    clipping_norm : float
        Bound on one record's gradient, for rows scaled by ``data_norm``.
    batch_size : int
        Expected batch size, a public constant. Without ``sampling_probability`` the sampling rate
        is ``batch_size`` over the number of records: this declares that number public, for the
        noise is calibrated by it.
    sampling_probability : float, optional
        The sampling rate, when the number of records is a secret. Nothing then depends on that
        number, which may be 0 to 2²⁴; name the ``classes``, for the labels at hand are public
        otherwise.
    steps : int
        Number of noisy steps.
    learning_rate, momentum : float
        Of the optimiser.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy under add-or-remove, by the DP-SGD trainer's
    account.
    """

    def _model(self, features: int, classes: int) -> Network:
        return SoftmaxRegression(features, classes)


@dataclass(eq=False, repr=False)
class DPMLPClassifier(_Trained):
    """A multilayer perceptron by DP-SGD with Poisson sampling.

    Parameters
    ----------
    epsilon, delta, data_norm, ledger, clipping_norm, batch_size, steps
        As in :class:`DPSGDClassifier`.
    learning_rate, momentum, sampling_probability, classes, random_state
        As in :class:`DPSGDClassifier`.
    hidden_layer_sizes : tuple of int
        Widths of the hidden layers, with tanh between them.

    Notes
    -----
    *Guarantee.* As :class:`DPSGDClassifier`; the initial weights do not depend on the data.
    """

    hidden_layer_sizes: tuple[int, ...] = field(default=(32,), kw_only=True)

    def _model(self, features: int, classes: int) -> Network:
        return MultilayerPerceptron((features, *self.hidden_layer_sizes, classes))
