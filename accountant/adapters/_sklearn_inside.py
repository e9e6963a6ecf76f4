"""What a fit stands inside of: scikit-learn's searches, scores, and steps of a pipeline.

An estimator accounts for its own fits. What scikit-learn does around them with the same records is
seen on the stack of calls: what chooses by scores is refused, the rest is told of in one sentence.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import sklearn
from sklearn.base import BaseEstimator
from sklearn.linear_model import RANSACRegressor
from sklearn.utils import get_tags

from accountant.errors import UnsupportedError

SEARCH = (
    "hyper-parameter search over private fits must be paid for: every candidate spends its own"
    " epsilon and so does the choice. Fix the parameters publicly, or search with"
    " accountant.adapters.sklearn.DPSearch, which pays for it"
)
# Functions that return scores or predictions of held-out records.
SCORES = (
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "learning_curve",
    "permutation_test_score",
    "validation_curve",
)
FITS = ("fit", "fit_transform")  # an imputer's fit calls the other
# What an estimator of estimators has that scores them on held-out records, and chooses or combines
# them by that: searches, feature selection, thresholds, calibration, stacking.
CHOOSES = ("cv", "scoring")
HOME = tuple(
    str(path) + os.sep for path in (Path(sklearn.__file__).parent, Path(__file__).parents[1])
)

# What was told of the last call of the user's: its frame, its line, and the text.
_ALREADY: set[tuple[int, int, str]] = set()


class UnpaidReleaseWarning(UserWarning):
    """Something around a private fit uses the same records, and no ledger pays for it."""


def look_around(estimator: object, *, passing: bool = False) -> None:
    """Refuse a fit, or a clone to be fitted, inside a choice by scores; warn of what is unpaid.

    ``passing`` is for an estimator that is asked about, or sent to another process, whose warnings
    nobody sees: the thread that sends it is not the one that fits, so all threads are looked at.
    """
    stack = list(_frames())
    told = _found(estimator, stack)
    for inner in sys._current_frames().values() if passing and not told else ():
        stack = list(_frames(inner))
        with suppress(UnsupportedError):  # a search of other threads' is not this estimator's
            told = _found(estimator, stack)
        if told:
            break
    place = _caller(stack)
    key = (id(place), place.f_lineno)
    for text in told.values():
        if (*key, text) not in _ALREADY:  # one call clones and fits anew for every fold
            warnings.warn_explicit(
                text, UnpaidReleaseWarning, place.f_code.co_filename, place.f_lineno,
                registry=place.f_globals.setdefault("__warningregistry__", {}),
            )  # fmt: skip
    if told or not passing:
        _ALREADY.clear()
        _ALREADY.update((*key, text) for text in told.values())


def _found(estimator: object, frames: list[FrameType]) -> dict[str, str]:
    """Return what is said of a stack of calls; refuse one that chooses by scores."""
    told: dict[str, str] = {}
    for frame in frames:
        name, owner = frame.f_code.co_name, frame.f_locals.get("self")
        # A worker of a search knows its candidate, and nothing of the search.
        if name == "_fit_and_score" and frame.f_locals.get("parameters") and not _scored():
            raise UnsupportedError(SEARCH)
        if name in SCORES and frame.f_globals.get("__name__", "").startswith("sklearn."):
            told["scores"] = (  # of the outermost
                f"{name} gives exact results on held-out private records, for which no ledger is"
                " charged, and fits one model a fold, which only a ledger= of yours adds up"
            )
        own = owner is estimator or type(owner).__module__.startswith("accountant.")
        if name in FITS and isinstance(owner, BaseEstimator) and not own:
            if isinstance(owner, RANSACRegressor) or any(hasattr(owner, word) for word in CHOOSES):
                raise UnsupportedError(SEARCH)
            told |= _of_fit(owner, estimator)
    return told


def _of_fit(owner: Any, estimator: object) -> dict[str, str]:
    """Return what leaves unpaid when an estimator of scikit-learn fits the private one."""
    around = [step for _, step in getattr(owner, "steps", [])]
    if not around and not hasattr(owner, "transformer"):
        return {
            "several": f"{type(owner).__name__} may fit several private models to the same records,"
            " which only a ledger= of yours adds up"
        }
    for step in (*around[:-1], getattr(owner, "transformer", None)):
        if not isinstance(step, BaseEstimator) or step is estimator:
            continue
        if type(step).__name__ != "FrozenEstimator" and get_tags(step).requires_fit:
            return {
                "in front": f"{type(step).__name__} is fitted to the private records in front of a"
                " private estimator, whose epsilon does not cover it: fit it to public data and"
                " wrap it in sklearn.frozen.FrozenEstimator, or leave it out"
            }
    return {}


def _frames(inner: FrameType | None = None) -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1) if inner is None else inner
    while frame is not None:
        yield frame
        frame = frame.f_back


def _scored() -> bool:
    """Whether a function whose curve the user looks at set the candidate, and no search."""
    return any(frame.f_code.co_name == "validation_curve" for frame in _frames())


def _caller(frames: list[FrameType]) -> FrameType:
    """Return the call that entered scikit-learn, whatever its own calls wait for by now."""
    inside = [i for i, frame in enumerate(frames) if frame.f_code.co_filename.startswith(HOME)]
    for frame in frames[min(inside, default=0) :]:
        file = frame.f_code.co_filename
        if not file.startswith(HOME) and "joblib" not in file:
            return frame
    return frames[0]
