"""Shared by the scikit-learn estimators: validation, scaling, the intercept, the record."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant.adapters._sklearn_inside import look_around
from accountant.errors import UnsupportedError
from accountant.learn.account import as_ledger
from accountant.learn.convex import fit as convex
from accountant.learn.convex.rows import clip_rows
from accountant.learn.validation import container, labels_among, numbers
from accountant.ledger import Accountant
from accountant.mechanisms.base import Mechanism

# scikit-learn's base classes, as a type checker should see them: it has no types, and without them
# every attribute of an estimator is ``Any``, and no misspelt one is reported.
if TYPE_CHECKING:
    from typing import Self

    class BaseEstimator:
        """Parameters of an estimator."""

        def fit(self, X: Any, y: Any) -> Self: ...  # noqa: N803
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __getstate__(self) -> Any: ...
        def __setstate__(self, state: Any) -> None: ...
        def __sklearn_tags__(self) -> Any: ...

    class _Scored:
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...  # noqa: N803

    class ClassifierMixin(_Scored):
        """The score is an accuracy."""

    class RegressorMixin(_Scored):
        """The score is a coefficient of determination."""

    class MetaEstimatorMixin:
        """An estimator of estimators."""
else:
    from sklearn.base import (  # noqa: F401 (for the other files on estimators)
        BaseEstimator,
        ClassifierMixin,
        MetaEstimatorMixin,
        RegressorMixin,
    )

COMPLEX = (np.complex64, np.complex128)  # which scikit-learn refuses in its own words

# What scikit-learn and NumPy say about refused data, and what of it may be said.
_PRIVATE = (
    (re.compile(r"\(\d+,(?=\)| \d)"), "(,"),  # a shape's number of records
    (re.compile(r"array=.*?\nReshape", re.DOTALL), "Reshape"),
    (re.compile(r"(Complex data not supported).*", re.DOTALL), r"\1"),
)


class UnsetBoundWarning(UserWarning):
    """A public bound on the data was left out, and a default is in its place."""


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
    scope : str
        Whose guarantee this is: not that of a pipeline around the estimator.
    """

    epsilon: float
    delta: float
    entry: tuple[Mechanism, ...]
    private: bool
    scope: str = "this estimator alone, not what stands around it"

    @classmethod
    def of(cls, result: convex.PrivateResult) -> Privacy:
        """Return the record of one result."""
        return cls(result.run_epsilon, result.delta, result.mechanisms, result.private)


@dataclass(frozen=True)
class PublicShape:
    """What a fit may be tried with: no record, and ``records`` only where it is declared public."""

    records: int
    features: int
    classes: Any = None


@dataclass(eq=False, repr=False)
class PrivateEstimator(BaseEstimator):
    """Refuses to be tuned for free; everything else is scikit-learn's.

    Constructors are those of dataclasses: they store their arguments, as scikit-learn asks.
    """

    epsilon: float = 1.0
    delta: float = field(default=1e-5, kw_only=True)
    data_norm: float | None = field(default=None, kw_only=True)
    ledger: Accountant | None = field(default=None, kw_only=True)
    random_state: int | None = field(default=None, kw_only=True)

    # Whether ``fit`` takes SciPy's sparse matrices.
    _sparse = False

    def __sklearn_tags__(self) -> Any:
        """Say what is taken: any record, for one that cannot be read adds nothing."""
        look_around(self, passing=True)
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._sparse
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    def spent(self, delta: float | None = None) -> float:
        """Return the ε of every fit so far: of all that ``ledger_`` holds, at ``delta``.

        ``delta`` is that of the constructor when left out. A second ``fit`` of an estimator spends
        anew, and is added to the first.
        """
        check_is_fitted(self)
        found: float = self.ledger_.epsilon(self.delta if delta is None else delta)
        return found

    def __sklearn_clone__(self) -> Any:
        """Clone the parameters, but never the ledger: a copy would spend its budget twice."""
        return cloned(self)

    def __getstate__(self) -> Any:
        """Leave the ledger where it is: another process must not spend it unseen."""
        look_around(self, passing=True)
        state = dict(super().__getstate__())
        if state.get("ledger") is not None:
            state["ledger"] = _Elsewhere()
        state.pop("ledger_", None)
        return state

    def _book(self) -> Accountant:
        """Return the ledger to charge: the one given, or one of the estimator's own."""
        if isinstance(self.ledger, _Elsewhere):
            raise UnsupportedError(
                "this estimator is a copy from another process, and its ledger stayed there: a fit"
                " would not be charged. Fit with n_jobs=1, or set ledger anew"
            )
        if self.ledger is not None:
            self.ledger_ = as_ledger(self.ledger)
        elif not hasattr(self, "ledger_"):
            self.ledger_ = as_ledger(None)
        return self.ledger_

    @property
    def _norm(self) -> float:
        """The bound on the rows' norm; 1 where none was set."""
        return 1.0 if self.data_norm is None else self.data_norm

    def _warn_of_bounds(self) -> None:
        """Say which public bounds were not set, and what is done in their place."""
        for name, done in (
            ("data_norm", "rows longer than 1 are scaled down to norm 1"),
            ("target_bound", "targets are clipped to [-1, 1]"),
        ):
            if getattr(self, name, 1.0) is None:
                warnings.warn(
                    f"{name} was not set, so {done}. Set it to a bound that you know without"
                    " looking at the data",
                    UnsetBoundWarning,
                    stacklevel=5,
                )

    def _checked(self, x: Any, y: Any) -> tuple[FloatArray, Any]:
        look_around(self)
        self._warn_of_bounds()
        if self.random_state is not None:
            warnings.warn(
                "random_state makes this fit not private: whoever knows it can subtract the noise."
                " Leave it out except in tests",
                UserWarning,
                stacklevel=4,
            )
        # Where the number of records is a secret, none is a data set like any other.
        secret = getattr(self, "sampling_probability", None) is not None
        refusal: Exception | None = None
        try:
            rows = self._rows(x, reset=True, ensure_min_samples=0 if secret else 1)
            labels = self._column(y, len(rows))
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            refusal = kind(_without_records(str(error)))
        if refusal is not None:  # raised here, where the first message is no context of it
            raise refusal
        return rows, labels

    def _rows(self, x: Any, reset: bool, **options: Any) -> FloatArray:
        """Return the records as rows, NaN where one cannot be read; refuse by public facts alone.

        In one layout, for sums over a row round by it, and one row alone has both; dense, for they
        must not round by which zeros are stored (Theorem V12).
        """
        sparse = issparse(x)
        refused = (sparse and not self._sparse) or getattr(x, "dtype", None) in COMPLEX
        width = None if reset else (cast("Any", self).n_features_in_,)
        rows = x if refused else numbers("X", x, width)
        checked = validate_data(
            self, rows, dtype=np.float64, ensure_all_finite=False, reset=reset, **options
        )
        if hasattr(x, "columns"):  # a frame, for the names of its columns
            validate_data(self, x, skip_check_array=True, reset=reset)
        return np.require(checked, requirements=["C", "A"])

    def _column(self, y: Any, records: int) -> Any:
        """Return one target for each record."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")  # its own words
        labels = column(y)
        if len(labels) != records:
            raise ValueError("X and y have different numbers of samples")
        return labels

    def _public_shape(self, x: Any, y: Any) -> PublicShape:
        """Check the data as ``fit`` does, and return what of them is public."""
        rows, _ = self._checked(x, y)
        return PublicShape(len(rows), rows.shape[1])

    def _rehearse(self, shape: PublicShape) -> None:
        """Raise what ``fit`` raises for public numbers: fit records that are all zero."""
        self.fit(np.zeros((1, shape.features)), np.zeros(1))

    def _features(self, x: Any) -> FloatArray:
        check_is_fitted(self)
        return np.asarray(clip_rows(self._rows(x, reset=False), float(self._norm)))


@dataclass(eq=False, repr=False)
class Classifier(ClassifierMixin, PrivateEstimator):
    """A classifier whose set of labels is public."""

    classes: Any = field(default=None, kw_only=True)

    def __sklearn_tags__(self) -> Any:
        """Say that noise makes scores on a handful of records poor."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def _classified(self, x: Any, y: Any) -> tuple[FloatArray, NDArray[np.intp]]:
        """Check the data and number the classes; -1 is a record that cannot be read."""
        rows, labels = self._checked(x, y)
        public = np.unique(self.classes) if self.classes is not None else _labels_held(labels)
        if len(public) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes; got one class. Name them all in"
                " classes"
            )
        self.classes_ = public
        return rows, np.where(unread(rows), -1, labels_among(labels, public.tolist()))

    def _public_shape(self, x: Any, y: Any) -> PublicShape:
        """Check the data as ``fit`` does, and return what of them is public."""
        rows, _ = self._classified(x, y)
        if hasattr(self, "max_records"):
            convex.require_few(rows, convex.record_limit(self.max_records, convex.MOST_EXACT))
        return PublicShape(len(rows), rows.shape[1], self.classes_)

    def _rehearse(self, shape: PublicShape) -> None:
        """Raise what ``fit`` raises for public numbers: fit records that are all zero."""
        self.fit(np.zeros((len(shape.classes), shape.features)), shape.classes)

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the most likely label of each row."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def decision_function(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the scores: (n,) for two classes, (n, K) for more."""
        rows = self._features(X)
        scores = rows @ self.coef_.T + self.intercept_  # type: ignore[attr-defined]
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


def cloned(estimator: BaseEstimator) -> Any:
    """Return another estimator with the same parameters, and the same ledger."""
    look_around(estimator)
    values = estimator.get_params(deep=False)
    return type(estimator)(
        **{k: v if k == "ledger" else clone(v, safe=False) for k, v in values.items()}
    )


def column(y: Any) -> Any:
    """Return targets in one dimension, as a list if they come as one."""
    found = container("y", y)
    return found if isinstance(found, list) else column_or_1d(found, warn=True)


def unread(rows: FloatArray) -> NDArray[np.bool_]:
    """Return which records cannot be read: they add nothing, their intercept included."""
    return np.asarray(~np.isfinite(rows).all(axis=1))


def _is_label(entry: object) -> bool:
    if isinstance(entry, (float, np.floating)):
        return math.isfinite(entry)
    return isinstance(entry, (bool, int, str, np.generic))


def _labels_held(labels: Any) -> NDArray[Any]:
    """Return the different labels in sorted order, which are public where none are named."""
    found = labels.tolist() if isinstance(labels, np.ndarray) else labels
    held = {label for label in found if _is_label(label)}
    if len({isinstance(label, str) for label in held}) > 1:
        raise ValueError("y must hold labels of one type, or classes must name them")
    public = np.unique(list(held))
    with warnings.catch_warnings():
        # That there are many classes for so few records says how many records there are.
        warnings.simplefilter("ignore", UserWarning)
        if len(public):
            check_classification_targets(public)
    return public


def with_intercept(rows: FloatArray, norm: float, fit: bool) -> tuple[FloatArray, float]:
    """Append a constant column of size ``norm``; return the rows and the bound that holds then.

    The column is inside the norm, so the intercept is perturbed like every other coefficient.
    """
    checks.number(checks.positive("data_norm", convex.DATA_NORM.advice), norm)
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


class _Elsewhere:
    """Stands for a ledger that an estimator was separated from."""
