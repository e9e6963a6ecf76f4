"""Streams of queries to the teachers, and the private release of what their votes cost.

The release is of a sum of data-dependent Rényi bounds, by smooth sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy import special

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant.conversions import rdp_to_epsilon
from accountant.errors import BudgetExceeded, DomainError
from accountant.learn.account import charged
from accountant.learn.pate.votes import (
    STEP,
    GNMax,
    LNMax,
    gaussian_data_dependent_rdp,
    log_of_the_rest,
    vote_table,
)
from accountant.learn.selection.noisy_max import Generator, generator_of
from accountant.ledger import Accountant
from accountant.mechanisms import Gaussian, SmoothSensitivityGaussian
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.concentrated import SMOOTHNESS
from accountant.noise import Grid, SecureGenerator
from accountant.relations import NeighbouringRelation


class Refusal(Enum):
    """The answer to a query whose vote was not clear enough."""

    UNCLEAR = "unclear"


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
            return (
                int(np.argmax(own))
                if own is not None and own.max() > confidence
                else Refusal.UNCLEAR
            )
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


REPLACE_ONE = NeighbouringRelation.REPLACE_ONE


@dataclass(frozen=True)
class DataDependentRelease:
    """A published upper bound on the data-dependent cost of some answers.

    Attributes
    ----------
    rdp : float
        Above the data-dependent Rényi bound of the answers at ``order``, except with probability
        ``failure``.
    order : float
        The order, fixed in advance.
    epsilon, delta : float
        What ``rdp`` converts to.
    failure : float
        The probability that the bound is too low, over the noise of this release.
    mechanism : Mechanism
        What publishing it costs: a further entry for the ledger.
    private : bool
        False for a seeded release.
    """

    rdp: float
    order: float
    epsilon: float
    delta: float
    failure: float
    mechanism: Mechanism
    private: bool


def gap_table(teachers: int, classes: int, sigma: float, order: float) -> FloatArray:
    """Return a bound on one answer's divergence for every gap 0, …, ``teachers``; non-increasing.

    The gap is the largest count less the second largest; q is at most (classes - 1) times the
    chance that the second one wins.
    """
    gaps = np.arange(teachers + 1, dtype=np.float64)
    # A step less, as in log_probability_of_another.
    logs = special.log_ndtr((STEP - gaps / sigma) / math.sqrt(2.0)) + math.log(classes - 1.0)
    logs = np.minimum(logs + 1e-12 * (1.0 + np.abs(logs)), log_of_the_rest(classes))
    table = [gaussian_data_dependent_rdp(min(float(x), 0.0), sigma, order) for x in logs]
    # The bound at a smaller gap is a bound at a larger one.
    return np.array(np.maximum.accumulate(np.array(table)[::-1])[::-1])


def smooth_bound(gaps: NDArray[np.integer], table: FloatArray, smoothness: float) -> float:
    """Return a β-smooth upper bound on the local sensitivity of the sum of ``table[gaps]``.

    Notes
    -----
    *Guarantee.* max over d of e^{-βd}·Σᵢ L_d(gapᵢ), L_d the largest change of the table by a move
    of at most 2 anywhere within 2d (docs/theorems_selection.md, Theorem P11).
    """
    size = table.size
    change = np.zeros(size)
    for step in (1, 2):
        if size > step:
            moved = np.abs(table[step:] - table[:-step])
            change[:-step] = np.maximum(change[:-step], moved)
            change[step:] = np.maximum(change[step:], moved)
    best, reach = 0.0, change
    for distance in range(size // 2 + 2):
        best = max(best, math.exp(-smoothness * distance) * math.fsum(reach[gaps].tolist()))
        padded = np.concatenate([[0.0, 0.0], reach, [0.0, 0.0]])
        reach = np.max([padded[k : k + size] for k in range(5)], axis=0)
    return best * (1.0 + 1e-12)


def release_data_dependent_epsilon(
    votes: object,
    aggregator: GNMax,
    *,
    delta: float,
    order: float = 20.0,
    noise_multiplier: float = 10.0,
    smoothness: float = 0.01,
    failure: float = 1e-3,
    rng: Generator = None,
) -> DataDependentRelease:
    """Publish a bound on the data-dependent cost of answers, with noise for its own sensitivity.

    Parameters
    ----------
    votes : array_like of int, shape (answers, classes)
        The votes that were answered; every row sums to the number of teachers, which is public.
    aggregator : GNMax
        How they were answered. Threshold tests are to be accounted apart.
    delta : float
        Where the bound is converted to ε.
    order : float
        The Rényi order; it must not be chosen by looking at the votes.
    noise_multiplier : float
        σ of the noise on the bound and, in units of β, on the logarithm of its sensitivity.
    smoothness : float
        β.
    failure : float
        The probability that the bound published is too low.
    rng : SecureGenerator, int or None
        A seed is for tests only.

    Notes
    -----
    *Guarantee.* The release is private at the cost of its ``mechanism``, and its ``rdp`` bounds
    D_order of these answers on these data against every neighbour, except with probability
    ``failure`` (docs/theorems_selection.md, Theorems P11 and P12). Which queries were asked and
    answered is taken as given, that is, as chosen without the answers. It does not replace the
    entry of the answers in a ledger: their guarantee for all data sets stays the data-independent
    one. The noise here is scaled by a private number in floating point; ``rdp`` is therefore
    rounded up to a public grid a thousand times finer than the noise, and the chance that a digit
    beyond it decides is outside the guarantee.
    """
    checks.instance("aggregator", aggregator, GNMax, "a GNMax")
    counts = vote_table(votes)
    if not len(counts):
        raise DomainError("votes must have at least one row; got none")
    teachers = int(counts[0].sum())
    if not (counts.sum(axis=1) == teachers).all():
        raise DomainError("every row of votes must sum to the number of teachers")
    alpha = checks.number(checks.ORDER, order)
    target = checks.number(checks.TARGET_DELTA, delta)
    sigma = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
    beta = checks.number(SMOOTHNESS, smoothness)
    chance = checks.number(checks.TARGET_DELTA.renamed("failure"), failure)
    generator = generator_of(rng)
    ordered = np.sort(counts, axis=1)
    gaps = (ordered[:, -1] - ordered[:, -2]).astype(np.intp)
    table = gap_table(teachers, counts.shape[1], aggregator.sigma, alpha)
    total = math.fsum(table[gaps].tolist())
    spread = smooth_bound(gaps, table, beta)
    relation = aggregator.relation
    # The logarithm of the sensitivity, in units of β, moves by one; rounding it adds a step, and
    # its own digits, of a number up to 691, something too.
    moved = 1.0 + 2.0**-28 * sigma + 2.0**-39 / beta
    moved *= 0.5 if relation is REPLACE_ONE else 1.0
    mechanism = SmoothSensitivityGaussian(sigma, smoothness=beta, relation=relation) + Gaussian(
        sigma, sensitivity=moved, relation=relation
    )
    # Above both truths at once, each with half of the failure probability.
    quantile = NormalDist().inv_cdf(1.0 - 0.5 * chance) * sigma * (1.0 + 1e-9)
    level = math.log(max(spread, 1e-300)) / beta
    largest = math.exp(min((_noisy(level, sigma, generator) + quantile) * beta, 700.0))
    value = total + spread * _noisy(0.0, sigma, generator)
    # Rounded up to a grid that is public by now: the digits of the product stay private.
    coarse = Grid.at_most(min(max(largest * quantile, 1e-250), 1e250) * 2.0**-10).step
    rdp = (max(math.ceil((value + largest * quantile) / coarse), 0) + 1) * coarse
    epsilon = rdp_to_epsilon(lambda a: rdp if a <= alpha else math.inf, target, orders=[alpha])
    return DataDependentRelease(
        rdp, alpha, epsilon, target, chance, mechanism, not generator.seeded
    )


def _noisy(value: float, sigma: float, generator: SecureGenerator) -> float:
    grid = Grid.at_most(sigma * 2.0**-30)
    return float(grid.release_gaussian(np.array([value]), sigma, generator)[0])
