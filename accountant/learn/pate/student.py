"""The student: public inputs, labelled by noisy votes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant.errors import DomainError
from accountant.learn.account import Released
from accountant.learn.pate.aggregation import GNMax, LNMax, Refusal, VoteStream
from accountant.learn.pate.ensemble import TeacherEnsemble
from accountant.learn.selection.noisy_max import Generator
from accountant.ledger import Accountant
from accountant.mechanisms.base import Mechanism

Array: TypeAlias = "NDArray[Any]"


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

    Raises
    ------
    UnsupportedError
        The ensemble's shards are balanced and the aggregator's relation is add-or-remove.
    """
    inputs = np.asarray(public)
    target = checks.number(checks.TARGET_DELTA, delta)
    asked = np.arange(len(inputs)) if queries is None else np.asarray(queries)
    if asked.ndim != 1 or asked.size == 0 or asked.dtype.kind not in "iu":
        raise DomainError("queries must be positions in the public data, at least one")
    if not ((asked >= 0) & (asked < len(inputs))).all():
        raise DomainError(f"queries must be positions in [0, {len(inputs)})")
    ensemble.require(aggregator.relation)
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
