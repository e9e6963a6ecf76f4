"""Shared by the scikit-learn estimators: validation, scaling, the intercept, the record."""

from __future__ import annotations

import math
import re
import sys
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from accountant import checks
from accountant.errors import DomainError, UnsupportedError
from accountant.learn.convex.public_bounds import DATA_NORM
from accountant.learn.convex.result import PrivateResult, clip_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from accountant.mechanisms.base import Mechanism

__all__ = ["Classifier", "Privacy", "PrivateEstimator", "Probabilities", "with_intercept"]

FloatArray: TypeAlias = "NDArray[np.float64]"

# What scikit-learn and NumPy say about refused data, and what of it may be said.
_PRIVATE = (
    (re.compile(r"\(\d+,(?=\)| \d)"), "(,"),  # a shape's number of records
    (re.compile(r"(numbers of samples).*"), r"\1"),
    (re.compile(r"array=.*?\nReshape", re.DOTALL), "Reshape"),
    (re.compile(r"(could not convert [^:]*):.*", re.DOTALL), r"\1"),
    (re.compile(r"(Complex data not supported).*", re.DOTALL), r"\1"),
)


@dataclass(frozen=True)
class Privacy:
    """What a fit has spent.

    Attributes
    ----------
    epsilon, delta : float
        The guarantee, under add-or-remove.
    entry : tuple of Mechanism
        What a ledger records.
    private : bool
        False when ``random_state`` was given: whoever knows the seed can subtract the noise.
    """

    epsilon: float
    delta: float
    entry: tuple[Mechanism, ...]
    private: bool

    @classmethod
    def of(cls, result: PrivateResult) -> Privacy:
        """Return the record of one result."""
        return cls(result.epsilon, result.delta, result.mechanisms, result.private)


@dataclass(eq=False, repr=False)
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """Refuses to be tuned for free; everything else is scikit-learn's.

    Constructors are those of dataclasses: they store their arguments, as scikit-learn asks.
    """

    epsilon: float = 1.0
    delta: float = field(default=1e-5, kw_only=True)
    data_norm: float = field(default=1.0, kw_only=True)
    random_state: int | None = field(default=None, kw_only=True)

    def _checked(self, x: Any, y: Any) -> tuple[FloatArray, NDArray[Any]]:
        _refuse_search()
        if self.random_state is not None:
            warnings.warn(
                "random_state makes this fit not private: whoever knows it can subtract the noise."
                " Leave it out except in tests",
                UserWarning,
                stacklevel=4,
            )
        # Where the number of records is a secret, none is a data set like any other.
        secret = getattr(self, "sampling_probability", None) is not None
        least = 0 if secret else 1
        refusal: Exception | None = None
        try:
            rows, labels = validate_data(self, x, y, dtype=np.float64, ensure_min_samples=least)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            refusal = kind(_without_records(str(error)))
        if refusal is not None:  # raised here, where the first message is no context of it
            raise refusal
        # In one layout, for sums over a row round by it, and one row alone has both.
        return np.require(rows, requirements=["C", "A"]), labels

    def _features(self, x: Any) -> FloatArray:
        check_is_fitted(self)
        rows = validate_data(self, x, dtype=np.float64, reset=False, order="C")
        return np.asarray(clip_rows(rows, float(self.data_norm)))


@dataclass(eq=False, repr=False)
class Classifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """A classifier whose set of labels is public."""

    classes: Any = field(default=None, kw_only=True)

    def __sklearn_tags__(self) -> Any:
        """Say that noise makes scores on a handful of records poor."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def _classified(self, x: Any, y: Any) -> tuple[FloatArray, NDArray[np.intp]]:
        """Check the data and number the classes."""
        rows, labels = self._checked(x, y)
        with warnings.catch_warnings():
            # That there are many classes for so few records says how many records there are.
            warnings.simplefilter("ignore", UserWarning)
            if len(labels):
                check_classification_targets(labels)
        public = np.unique(labels) if self.classes is None else np.unique(self.classes)
        if not np.isin(labels, public).all():
            raise DomainError("y must hold only the labels named in classes")
        if len(public) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes; got one class. Name them all in"
                " classes"
            )
        self.classes_ = public
        return rows, np.searchsorted(public, labels)

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the most likely label of each row."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def decision_function(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the scores: (n,) for two classes, (n, K) for more."""
        rows = self._features(X)
        scores = rows @ self.coef_.T + self.intercept_
        return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)


class Probabilities:
    """Class probabilities of scores of shape (n,) or (n, K)."""

    def predict_proba(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the probability of every class."""
        scores = self.decision_function(X)  # type: ignore[attr-defined]
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    def predict_log_proba(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


def with_intercept(rows: FloatArray, norm: float, fit: bool) -> tuple[FloatArray, float]:
    """Append a constant column of size ``norm``; return the rows and the bound that holds then.

    The column is inside the norm, so the intercept is perturbed like every other coefficient.
    """
    checks.number(checks.positive("data_norm", DATA_NORM.advice), norm)
    if not fit:
        return rows, norm
    # Clipped before the column is added: a long row must not shrink its intercept.
    kept = clip_rows(rows, norm)
    column = np.full((len(rows), 1), norm)
    return np.hstack([kept, column]), norm * math.sqrt(2.0) * (1.0 + 1e-12)


def _without_records(message: str) -> str:
    """Return scikit-learn's message about data without their number, and without a value."""
    for pattern, kept in _PRIVATE:
        message = pattern.sub(kept, message)
    return message


def _refuse_search() -> None:
    """Refuse a fit that is one of many candidates of a search.

    The best of many private fits has spent what all of them spent, and its score on held-out
    records spends more; a search object records neither.
    """
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "_fit_and_score" and frame.f_locals.get("parameters"):
            raise UnsupportedError(
                "hyper-parameter search over private fits must be paid for: every candidate spends"
                " its own epsilon and so does the choice. Fix the parameters publicly, or use"
                " private selection with its own account"
            )
        frame = frame.f_back  # type: ignore[assignment]
