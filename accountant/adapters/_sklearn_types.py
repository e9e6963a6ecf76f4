"""scikit-learn's base classes, as a type checker should see them: scikit-learn has no types.

Without types every attribute of an estimator is ``Any``, and no misspelt one is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    from sklearn.base import (  # noqa: F401 (for the estimators' modules)
        BaseEstimator,
        ClassifierMixin,
        MetaEstimatorMixin,
        RegressorMixin,
    )
