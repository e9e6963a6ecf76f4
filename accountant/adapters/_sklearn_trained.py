"""The scikit-learn estimators on the DP-SGD trainer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import FloatArray
from accountant.adapters._sklearn_base import (
    Classifier,
    Privacy,
    Probabilities,
    PublicShape,
    with_intercept,
)
from accountant.learn.convex.rows import clip_rows
from accountant.learn.dp_sgd import Watch, train_dp_sgd
from accountant.learn.models import MultilayerPerceptron, SoftmaxRegression
from accountant.learn.models.network import Network
from accountant.learn.optimizers import SGD
from accountant.learn.plan import Batches, Noise, Plan


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

    def _rehearse(self, shape: PublicShape) -> None:
        """Raise what ``fit`` raises for public numbers: plan a run, and make no step."""
        public = self.sampling_probability is None
        count = shape.records if public else len(shape.classes)
        zeros = np.zeros((count, shape.features))
        rows, labels = self._classified(zeros, np.resize(shape.classes, count))
        with suppress(_Planned):
            self._train(rows, labels, _stop)

    def _train(
        self,
        rows: FloatArray,
        labels: NDArray[np.intp],
        on_plan: Callable[[Plan], object] | None = None,
    ) -> Any:
        _, norm = with_intercept(rows, self._norm, fit=False)
        model = self._model(rows.shape[1], len(self.classes_))
        # A batch size beyond a public number of records would be no probability; a secret one is
        # not looked at.
        public = self.sampling_probability is None
        batch = min(self.batch_size, len(rows)) if public else self.batch_size
        # Rows of norm one, so that one learning rate serves whatever the unit of the features.
        return train_dp_sgd(
            model,
            clip_rows(rows, norm) / norm,
            labels,
            batches=Batches(
                batch, steps=self.steps, sampling_probability=self.sampling_probability
            ),
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
