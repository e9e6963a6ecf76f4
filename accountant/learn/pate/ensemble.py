"""Teachers, each fitted to a shard of its own, and the student that noisy votes teach."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.arrays import Array
from accountant.errors import DomainError
from accountant.learn.account import Released
from accountant.learn.pate.aggregation import Refusal, VoteStream
from accountant.learn.pate.votes import GNMax, LNMax
from accountant.learn.selection.noisy_max import Generator, generator_of
from accountant.learn.validation import as_records, class_labels, records_at, silence
from accountant.ledger import Accountant
from accountant.mechanisms.base import Mechanism
from accountant.noise.exact_samplers import uniform_index


def assign_shards(dataset_size: int, shards: int, *, rng: Generator = None) -> NDArray[np.int64]:
    """Return the shard of every record, drawn independently.

    So adding or removing a record leaves all others where they are.

    Parameters
    ----------
    dataset_size, shards : int
        Numbers of records and of shards.
    rng : SecureGenerator, int or None
        A seed is for tests only.
    """
    count = checks.integer("dataset_size", dataset_size, 0)
    ways = checks.integer("shards", shards, 1)
    return uniform_index(generator_of(rng), ways, count)


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
        n_jobs: int = 1,
        rng: Generator = None,
    ) -> None:
        checks.function("make_model", make_model, "no arguments")
        self.teachers = checks.integer("teachers", teachers, 1)
        self.classes = checks.integer("classes", classes, 2)
        self._make, self._rng, self._jobs = make_model, rng, n_jobs
        self._models: list[tuple[Any, int]] = []

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
        place = assign_shards(len(rows), self.teachers, rng=self._rng)
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


@dataclass(frozen=True, eq=False)
class PateResult(Released):
    """A student, the labels it was trained on, and what they cost.

    Attributes
    ----------
    student : object
        The fitted model; a function of the labels and of public data.
    answered : ndarray of int
        Positions of the queries that were answered, in the public data.
    labels : ndarray of int
        Their labels.
    queries : int
        How many were asked.
    mechanism : Mechanism
        All labels, for every data set, not for these votes alone.
    ledger : Accountant
        The ledger given, or the run's own, with the mechanism charged.
    epsilon, delta : float
        The guarantee of everything in the ledger when the run ended.
    run_epsilon : float
        The ε of this run alone, at ``delta``.
    stream : VoteStream
        The stream, with its data-dependent bounds: private.
    private : bool
        False for a seeded stream.
    """

    student: Any
    answered: NDArray[np.int64]
    labels: NDArray[np.int64]
    queries: int
    mechanism: Mechanism
    stream: VoteStream


def train_student(
    ensemble: TeacherEnsemble,
    public: Array,
    fit_student: Callable[[Array, NDArray[np.int64], NDArray[np.int64]], Any],
    aggregator: GNMax | LNMax,
    *,
    delta: float,
    queries: NDArray[np.integer[Any]] | None = None,
    max_answers: int | None = None,
    ledger: Accountant | None = None,
    rng: Generator = None,
) -> PateResult:
    """Have public inputs labelled by the teachers and train a student on them.

    Parameters
    ----------
    ensemble : TeacherEnsemble
        Fitted teachers.
    public : array of shape (m, …)
        Inputs that are not private.
    fit_student : callable
        ``fit_student(public, answered, labels)`` returns a model; it may use the unlabelled inputs.
    aggregator : GNMax or LNMax
        How votes become labels.
    delta : float
        Where ε is reported.
    queries : array of int, optional
        Positions of the inputs to ask about, in order; chosen without the private data. All of
        them by default.
    max_answers : int, optional
        Answers to pay for; as many as queries by default.
    ledger : Accountant, optional
        Charged before anything is asked.
    rng : SecureGenerator, int or None
        A seed is for tests only.

    Notes
    -----
    *Guarantee.* That of :class:`~accountant.learn.pate.VoteStream`: the student is a function of
    its answers (docs/theorems_selection.md, Theorem P9).
    """
    inputs = np.asarray(public)
    target = checks.number(checks.TARGET_DELTA, delta)
    asked = np.arange(len(inputs)) if queries is None else np.asarray(queries)
    if asked.ndim != 1 or asked.size == 0 or asked.dtype.kind not in "iu":
        raise DomainError("queries must be positions in the public data, at least one")
    if not ((asked >= 0) & (asked < len(inputs))).all():
        raise DomainError(f"queries must be positions in [0, {len(inputs)})")
    most = len(asked) if max_answers is None else max_answers
    stream = VoteStream(aggregator, most, max_queries=len(asked), ledger=ledger, rng=rng)
    spent = stream.mechanism.epsilon(target)
    votes = ensemble.votes(inputs[asked])
    answered, labels = [], []
    for position, row in zip(asked.tolist(), votes, strict=True):
        if stream.answers == stream.max_answers:
            break
        answer = stream.ask(row)
        if not isinstance(answer, Refusal):
            answered.append(position)
            labels.append(answer)
    where, names = np.array(answered, np.int64), np.array(labels, np.int64)
    return PateResult(
        fit_student(inputs, where, names), where, names, stream.queries, stream.mechanism, stream,
        ledger=stream.ledger, delta=target, run_epsilon=spent, private=stream.private,
    )  # fmt: skip
