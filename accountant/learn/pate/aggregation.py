"""Noisy votes: GNMax, Confident-GNMax, the interactive variant, LNMax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant.errors import BudgetExceeded, DomainError
from accountant.learn.account import charged
from accountant.learn.pate.bounds import (
    LAPLACE_STEP,
    SIGMA,
    STEP,
    gaussian_data_dependent_rdp,
    laplace_data_dependent_rdp,
    log_probability_of_another,
    vote_table,
)
from accountant.learn.selection.noisy_max import Generator, generator_of
from accountant.ledger import Accountant
from accountant.mechanisms import Gaussian, ReportNoisyMax
from accountant.mechanisms.base import Described, Mechanism
from accountant.mechanisms.fields import set_fields
from accountant.noise import Grid, SecureGenerator
from accountant.noise.exact_samplers import rounded_laplace
from accountant.relations import NeighbouringRelation

ADD_OR_REMOVE = NeighbouringRelation.ADD_OR_REMOVE
ROOT_2_UP = math.nextafter(math.sqrt(2.0), 2.0)


class Refusal(Enum):
    """The answer to a query whose vote was not clear enough."""

    UNCLEAR = "unclear"


@dataclass(frozen=True, repr=False)
class GNMax(Described):
    """The class with the largest count after Gaussian noise; with a threshold, Confident-GNMax.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on every count.
    threshold : int, optional
        Answer only if the largest count, with noise of its own, reaches it.
    threshold_sigma : float, optional
        Standard deviation of that noise; needed with a threshold.
    relation : NeighbouringRelation, keyword only
        Under which one record reaches one teacher: add-or-remove (or zero-out), and replace-one if
        a record's replacement stays with its teacher, as it does in shards by position.

    Notes
    -----
    *Guarantee.* One record moves one vote, hence two counts by one: a Gaussian mechanism of
    sensitivity √2, whatever else the records do to that teacher; the threshold test has sensitivity
    1 (docs/theorems_selection.md, Theorem P9).
    """

    sigma: float
    threshold: int | None = None
    threshold_sigma: float | None = None
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        set_fields(self, sigma=checks.number(SIGMA, self.sigma))
        if (self.threshold is None) != (self.threshold_sigma is None):
            raise DomainError("threshold and threshold_sigma must be given together")
        if self.threshold is not None:
            checks.integer("threshold", self.threshold, 0)
            name = SIGMA.renamed("threshold_sigma")
            set_fields(self, threshold_sigma=checks.number(name, self.threshold_sigma))

    @property
    def answer_mechanism(self) -> Mechanism:
        """The cost of one answer."""
        return Gaussian(self.sigma, sensitivity=ROOT_2_UP * self._share, relation=self.relation)

    @property
    def test_mechanism(self) -> Mechanism | None:
        """The cost of one threshold test; None without a threshold."""
        if self.threshold_sigma is None:
            return None
        return Gaussian(self.threshold_sigma, sensitivity=self._share, relation=self.relation)

    @property
    def _share(self) -> float:
        # The mechanism doubles its sensitivity under replace-one; one vote moves all the same.
        return 0.5 if self.relation is NeighbouringRelation.REPLACE_ONE else 1.0

    def winner(self, counts: FloatArray, generator: SecureGenerator) -> int:
        """Return the noisy winner of one vote."""
        return int(np.argmax(_gaussian(counts, self.sigma, generator)))

    def is_clear(
        self, counts: FloatArray, generator: SecureGenerator, offset: FloatArray | float = 0.0
    ) -> bool:
        """Test whether the largest count, less a public ``offset``, reaches the threshold."""
        if self.threshold is None or self.threshold_sigma is None:
            return True
        largest = np.array([np.max(counts - offset)])
        return bool(_gaussian(largest, self.threshold_sigma, generator)[0] >= self.threshold)

    def data_dependent_rdp(self, counts: NDArray[np.int64], order: float) -> float:
        """Bound the divergence of one answer, given the votes: private, see the module's bounds."""
        log_q = float(log_probability_of_another(counts, self.sigma)[0])
        return gaussian_data_dependent_rdp(log_q, self.sigma, order)


@dataclass(frozen=True, repr=False)
class LNMax(Described):
    """The class with the largest count after Laplace noise.

    Parameters
    ----------
    scale : float
        Scale of the noise on every count.
    relation : NeighbouringRelation, keyword only
        As in :class:`GNMax`.

    Notes
    -----
    *Guarantee.* 2/scale-differential privacy for each answer (Papernot et al. 2017), by noise on
    the integers' own grid, which is finer (docs/theorems_selection.md, Theorems P3 and P9).
    """

    scale: float
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)
    threshold: ClassVar[None] = None

    def __post_init__(self) -> None:
        set_fields(self, scale=checks.number(checks.SCALE, self.scale))

    @property
    def answer_mechanism(self) -> Mechanism:
        """The cost of one answer."""
        share = 0.5 if self.relation is NeighbouringRelation.REPLACE_ONE else 1.0
        return ReportNoisyMax(self.scale, "laplace", sensitivity=share, relation=self.relation)

    @property
    def test_mechanism(self) -> None:
        """There is no threshold."""
        return None

    def winner(self, counts: FloatArray, generator: SecureGenerator) -> int:
        """Return the noisy winner of one vote."""
        steps = 1.0 / LAPLACE_STEP
        noise = rounded_laplace(generator, counts.size, self.scale * steps)
        return int(np.argmax(counts * steps + noise))

    def is_clear(
        self, counts: FloatArray, generator: SecureGenerator, offset: FloatArray | float = 0.0
    ) -> bool:
        """Return True: every query is answered."""
        return True

    def data_dependent_rdp(self, counts: NDArray[np.int64], order: float) -> float:
        """Bound the divergence of one answer, given the votes: private, see the module's bounds."""
        log_q = float(log_probability_of_another(counts, self.scale, noise="laplace")[0])
        return laplace_data_dependent_rdp(log_q, self.scale, order)


class VoteStream:
    """A stream of queries to the teachers, paid for when it is opened.

    Parameters
    ----------
    aggregator : GNMax or LNMax
        How votes become answers.
    max_answers : int
        Answers that may be given.
    max_queries : int, optional
        Queries that may be asked, with a threshold; as many as answers without one.
    ledger : Accountant, optional
        Charged at once for all of them.
    rng : SecureGenerator, int or None
        A seed is for tests only.

    Attributes
    ----------
    mechanism : Composition
        The cost of the stream whatever happens in it: all tests and all answers.
    ledger : Accountant
        The ledger given, or the stream's own, with the mechanism charged.
    queries, answers : int
        Asked and answered so far; public.
    private : bool
        False for a seeded stream.

    Notes
    -----
    *Guarantee.* Queries may depend on all earlier answers. Which step comes next depends on
    answers too; the number of steps of each kind does not exceed what was paid, so the stream costs
    no more (docs/theorems_ledger.md, Theorem L5, for Gaussian noise, and L2 for the rest).
    """

    def __init__(
        self,
        aggregator: GNMax | LNMax,
        max_answers: int,
        *,
        max_queries: int | None = None,
        ledger: Accountant | None = None,
        rng: Generator = None,
    ) -> None:
        checks.instance("aggregator", aggregator, (GNMax, LNMax), "a GNMax or an LNMax")
        self.aggregator = aggregator
        self.max_answers = checks.integer("max_answers", max_answers, 1)
        if max_queries is None and aggregator.test_mechanism is not None:
            raise DomainError("max_queries must be given: every threshold test costs")
        most = max_answers if max_queries is None else max_queries
        self.max_queries = checks.integer("max_queries", most, 1)
        test = aggregator.test_mechanism
        self.mechanism = min(self.max_answers, self.max_queries) * aggregator.answer_mechanism
        if test is not None:
            self.mechanism = self.mechanism + self.max_queries * test
        self._generator = generator_of(rng)
        self.ledger = charged(ledger, (self.mechanism,), "teachers' answers", self._generator)
        self.private = not self._generator.seeded
        self.queries = self.answers = 0
        self._votes: list[NDArray[np.int64]] = []

    def ask(
        self,
        votes: Sequence[int] | NDArray[np.integer],
        *,
        prediction: object = None,
        confidence: float = 0.9,
    ) -> int | Refusal:
        """Answer one query with a class, or refuse.

        Parameters
        ----------
        votes : array_like of int, shape (classes,)
            The teachers' counts.
        prediction : array_like of shape (classes,), optional
            The student's probabilities for the query. Then the interactive variant is run: the
            teachers answer if they are clearly of another opinion, and the student's own class is
            returned if not, and it is sure.
        confidence : float
            How sure the student must be.

        Raises
        ------
        BudgetExceeded
            All answers were given, or all queries asked.
        """
        counts = vote_table(votes)
        if counts.shape[0] != 1:
            raise DomainError(f"votes must have shape (classes,); got {np.shape(votes)}")
        if self.queries >= self.max_queries or self.answers >= self.max_answers:
            raise BudgetExceeded(
                f"this stream has asked {self.queries} of {self.max_queries} queries and answered"
                f" {self.answers} of {self.max_answers}; open another one"
            )
        offset, own = self._opinion(prediction, counts)
        self.queries += 1
        if not self.aggregator.is_clear(counts[0], self._generator, offset):
            return int(np.argmax(own)) if own is not None and own.max() > confidence else _UNCLEAR
        self.answers += 1
        self._votes.append(counts[0].astype(np.int64))
        return self.aggregator.winner(counts[0], self._generator)

    def data_dependent_rdp(self, order: float) -> float:
        """Bound the divergence of the answers given, by their votes; tests at their full cost.

        It depends on private data: not to be published, and no entry for a ledger.
        """
        total = math.fsum(self.aggregator.data_dependent_rdp(v, order) for v in self._votes)
        total = min(total, self.answers * self.aggregator.answer_mechanism.rdp(order))
        test = self.aggregator.test_mechanism
        tests = 0.0 if test is None else self.queries * test.rdp(order)
        return total + tests

    @property
    def votes(self) -> NDArray[np.int64]:
        """The votes that were answered, shape (answers, classes): private."""
        return np.array(self._votes)

    @staticmethod
    def _opinion(
        prediction: object, counts: FloatArray
    ) -> tuple[FloatArray | float, FloatArray | None]:
        if prediction is None:
            return 0.0, None
        own = np.asarray(prediction, dtype=np.float64)
        if own.shape != counts.shape[1:] or not (np.isfinite(own).all() and (own >= 0.0).all()):
            raise DomainError(
                f"prediction must be probabilities of shape {counts.shape[1:]}; got {own!r:.60}"
            )
        # The number of teachers is public; integers keep the difference on the grid.
        return np.rint(own * counts.sum()), own


_UNCLEAR = Refusal.UNCLEAR


def _gaussian(counts: FloatArray, sigma: float, generator: SecureGenerator) -> FloatArray:
    # Counts are integers, and the step divides one: they are on the grid as they are.
    grid = Grid.at_most(min(sigma * STEP, 1.0))
    return grid.release_gaussian(counts, sigma, generator)
