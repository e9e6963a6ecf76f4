"""Teachers: models of any kind, each fitted to a shard of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant.errors import DomainError, UnsupportedError
from accountant.learn.secrecy import silence
from accountant.learn.selection.noisy_max import Generator, generator_of
from accountant.learn.validation import as_records, class_labels, records_at
from accountant.noise.exact_samplers import uniform_index
from accountant.relations import NeighbouringRelation

Array: TypeAlias = "NDArray[Any]"


def assign_shards(
    dataset_size: int, shards: int, *, balanced: bool = False, rng: Generator = None
) -> NDArray[np.int64]:
    """Return the shard of every record.

    Parameters
    ----------
    dataset_size, shards : int
        Numbers of records and of shards.
    balanced : bool
        False: every record draws its shard independently, so that adding or removing a record
        leaves all others where they are. True: shards of equal size by a random permutation of
        positions, for relations that keep the number of records (zero-out, replace-one).
    rng : SecureGenerator, int or None
        A seed is for tests only.
    """
    count = checks.integer("dataset_size", dataset_size, 0)
    ways = checks.integer("shards", shards, 1)
    drawn = uniform_index(generator_of(rng), 2**62 if balanced else ways, count)
    if not balanced:
        return drawn
    place = np.empty(count, np.int64)
    place[np.argsort(drawn, kind="stable")] = np.arange(count)
    return place % ways


class TeacherEnsemble:
    """Models fitted to disjoint shards, and their votes.

    Parameters
    ----------
    make_model : callable
        ``make_model()`` returns a fresh model with ``fit(X, y)`` and ``predict(X)``, such as a
        scikit-learn classifier. It must not have seen the data, and models must share nothing that
        changes, such as one random generator of a known seed: a record of one teacher would move
        the random numbers of the next.
    teachers : int
        Their number.
    classes : int
        Labels are integers in [0, classes); the number is public.
    balanced : bool
        As in :func:`assign_shards`.
    n_jobs : int
        Processes for fitting and predicting, through joblib when it is not 1; whatever backend is
        set by ``joblib.parallel_config`` is used (loky here, dask or ray on a cluster).
    rng : SecureGenerator, int or None
        For the shards; a seed is for tests only.

    Notes
    -----
    *Guarantee.* None of its own: votes are private. One record reaches one teacher, so it moves one
    vote of every query (docs/theorems_selection.md, Theorem P9). A teacher whose ``fit`` or
    ``predict`` fails, or whose shard is empty, votes for its shard's commonest label, or for 0:
    an error must not say what the data are. What a model library prints or logs is not covered.
    """

    def __init__(
        self,
        make_model: Callable[[], Any],
        teachers: int,
        classes: int,
        *,
        balanced: bool = False,
        n_jobs: int = 1,
        rng: Generator = None,
    ) -> None:
        checks.function("make_model", make_model, "no arguments")
        self.teachers = checks.integer("teachers", teachers, 1)
        self.classes = checks.integer("classes", classes, 2)
        self._make, self._balanced, self._rng = make_model, balanced, rng
        self._jobs = n_jobs
        self._models: list[tuple[Any, int]] = []

    def require(self, relation: NeighbouringRelation) -> None:
        """Refuse a relation under which one record would reach more than one teacher."""
        if self._balanced and relation is NeighbouringRelation.ADD_OR_REMOVE:
            raise UnsupportedError(
                "balanced shards move many records when one is added; state the aggregator's"
                " relation as ZERO_OUT or REPLACE_ONE, or use balanced=False"
            )

    def fit(self, X: object, y: object) -> TeacherEnsemble:
        """Fit every teacher to its shard.

        Parameters
        ----------
        X : array_like, shape (n, …)
            The private records. Of a list, a teacher sees an array of the type of its own records:
            of numbers, or of objects.
        y : array_like of int, shape (n,)
            Their labels; a record whose label is no class reaches no teacher.
        """
        rows = as_records("X", X)
        labels = class_labels(y, len(rows), self.classes)
        place = assign_shards(len(rows), self.teachers, balanced=self._balanced, rng=self._rng)
        shards = (np.flatnonzero((place == t) & (labels >= 0)) for t in range(self.teachers))
        data = ((records_at(rows, shard), labels[shard]) for shard in shards)
        jobs = ((_fit_one, (self._make, *own, self.classes)) for own in data)
        self._models = run_jobs(jobs, self._jobs)
        return self

    def votes(self, X: Array) -> NDArray[np.int64]:
        """Return how many teachers vote for each class, shape (len(X), classes); every row sums
        to the number of teachers. Private.
        """
        if not self._models:
            raise DomainError("the teachers must be fitted first; call fit")
        queries = np.asarray(X)
        jobs = (
            (_predict_one, (model, rest, queries, self.classes)) for model, rest in self._models
        )
        ballots = np.array(run_jobs(jobs, self._jobs))
        counts = np.zeros((len(queries), self.classes), np.int64)
        for ballot in ballots:
            counts[np.arange(len(queries)), ballot] += 1
        return counts


def run_jobs(jobs: Iterable[tuple[Callable[..., Any], tuple[Any, ...]]], n_jobs: int) -> list[Any]:
    """Call functions with their arguments, in this process or through joblib, in order."""
    if n_jobs == 1:
        return [function(*values) for function, values in jobs]
    import joblib

    return list(joblib.Parallel(n_jobs=n_jobs)(joblib.delayed(f)(*values) for f, values in jobs))


def _fit_one(make: Callable[[], Any], X: Array, y: Array, classes: int) -> tuple[Any, int]:
    commonest = int(np.argmax(np.bincount(y, minlength=classes)))
    try:
        with silence():
            model = make()
            model.fit(X, y)
    except Exception:
        return None, commonest
    return model, commonest


def _predict_one(model: Any, rest: int, X: Array, classes: int) -> Array:
    if model is None:
        return np.full(len(X), rest)
    try:
        with silence():
            labels = np.asarray(model.predict(X)).astype(np.int64)
        valid = (labels >= 0) & (labels < classes)
        return np.where(valid, labels, rest).reshape(len(X))
    except Exception:
        return np.full(len(X), rest)
