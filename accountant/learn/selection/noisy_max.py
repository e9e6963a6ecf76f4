"""Selection by score: noisy maxima, the exponential mechanism, permute-and-flip, AboveThreshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, cast

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import up
from accountant.errors import BudgetExceeded, DomainError, UnsupportedError
from accountant.learn.validation import private
from accountant.ledger.basic import rate
from accountant.mechanisms import (
    AboveThreshold,
    ExponentialMechanism,
    Gaussian,
    PureDP,
    ReportNoisyMax,
)
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.selection import Noise
from accountant.noise import Grid, SecureGenerator
from accountant.noise.exact_samplers import (
    bernoulli_exp,
    rounded_laplace,
    uniform_below,
    uniform_index,
)
from accountant.relations import NeighbouringRelation

Generator: TypeAlias = "SecureGenerator | int | None"

ADD_OR_REMOVE = NeighbouringRelation.ADD_OR_REMOVE
NOISE = ("gumbel", "exponential", "laplace", "gaussian")
STEPS = 2**20  # A sensitivity is this many steps of the grid of scores (Theorem P3).
SCORES = checks.FINITE.renamed("scores", "One for each candidate")
UNIT = checks.positive("sensitivity", "It is how far one record moves a score")
FINITE_SCALE = checks.positive("scale", checks.SCALE.advice)
EPSILON = checks.positive("epsilon", "It is in nats")


@dataclass(frozen=True)
class Selection:
    """The candidate chosen, and what choosing it cost.

    Attributes
    ----------
    index : int
        Position of the candidate among the scores.
    mechanism : Mechanism
        The entry for a ledger.
    private : bool
        False when the noise came from a known seed; then there is no guarantee at all.
    """

    index: int
    mechanism: Mechanism
    private: bool


def report_noisy_max(
    scores: object,
    scale: float,
    *,
    noise: str = "gumbel",
    sensitivity: float = 1.0,
    monotonic: bool = False,
    relation: NeighbouringRelation = ADD_OR_REMOVE,
    rng: Generator = None,
) -> Selection:
    """Add noise to every score and return the index of the largest.

    Parameters
    ----------
    scores : array_like of shape (k,)
        Finite.
    scale : float
        Scale of the noise; for Gaussian noise its standard deviation.
    noise : {"gumbel", "exponential", "laplace", "gaussian"}
        Gumbel noise is the exponential mechanism, exponential noise permute-and-flip: they are
        drawn as such.
    sensitivity : float
        How far adding or removing one record moves a score, > 0: the vector of k scores by √k
        times that.
    monotonic : bool
        Whether adding a record moves all scores in one direction.
    relation : NeighbouringRelation
        Replacing a record moves scores twice as far.
    rng : SecureGenerator, int or None
        A seed is for tests only.

    Returns
    -------
    Selection

    Notes
    -----
    *Guarantee.* That of :class:`~accountant.mechanisms.ReportNoisyMax`, for Gaussian noise that of
    :class:`~accountant.mechanisms.Gaussian` on the whole vector, of which the index is a function.
    The law is exact (docs/theorems_selection.md, Theorems P1 to P3): no float rounding of scores or
    noise is outside it.
    """
    values = _scores(scores)
    b = checks.number(FINITE_SCALE, scale)
    unit = checks.number(UNIT, sensitivity)
    checks.choice("noise", noise, NOISE)
    generator = generator_of(rng)
    if noise == "gaussian":
        norm = checks.number(UNIT, up(math.sqrt(values.size) * unit, 4.0))
        grid = Grid.at_most(b * 2.0**-30)
        # Rounding either data set's scores moves the vector by at most half a step a coordinate.
        factor = 2.0 if relation is NeighbouringRelation.REPLACE_ONE else 1.0
        norm = up(norm + math.sqrt(values.size) * grid.step / factor, 4.0)
        limit = 2.0**51 * grid.step
        noisy = grid.release_gaussian(np.clip(values, -limit, limit), b, generator)
        whole = Gaussian(b, sensitivity=norm, relation=relation)
        return _chosen(int(np.argmax(noisy)), whole, generator)
    mechanism = ReportNoisyMax(
        b, cast("Noise", noise), sensitivity=unit, monotonic=monotonic, relation=relation
    )
    if noise == "laplace":
        on_grid = floor_to_grid(values, unit)
        noisy = on_grid + rounded_laplace(generator, values.size, in_steps(b, unit))
        return _chosen(int(np.argmax(noisy)), mechanism, generator)
    draw = _softmax_draw if noise == "gumbel" else _flip_draw
    return _drawn(draw, values, 1 / Fraction(b), mechanism, generator)


def select_exponential(
    scores: object,
    epsilon: float,
    *,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    relation: NeighbouringRelation = ADD_OR_REMOVE,
    rng: Generator = None,
) -> Selection:
    """Choose a candidate with probability proportional to exp(ε·score/2Δ).

    Parameters
    ----------
    scores, rng
        As in :func:`report_noisy_max`.
    epsilon : float
        The guarantee, > 0.
    sensitivity : float
        Δ > 0: how far a change of one record, by ``relation``, moves a score.
    monotonic : bool
        Whether such a change moves all scores in one direction: then weights are exp(ε·score/Δ).
    relation : NeighbouringRelation
        Replacing a record is not monotonic.

    Notes
    -----
    *Guarantee.* The exponential mechanism: ε-bounded range (docs/theorems_mechanisms.md, Theorem
    M8), by a sampler exact in law (docs/theorems_selection.md, Theorem P2): candidates drawn
    uniformly are accepted with probability exp(-ε·(best - score)/2Δ).
    """
    mechanism = ExponentialMechanism(checks.number(EPSILON, epsilon), relation=relation)
    rate = _rate(epsilon, sensitivity, monotonic, relation)
    return _drawn(_softmax_draw, _scores(scores), rate, mechanism, generator_of(rng))


def permute_and_flip(
    scores: object,
    epsilon: float,
    *,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    relation: NeighbouringRelation = ADD_OR_REMOVE,
    rng: Generator = None,
) -> Selection:
    """Choose a candidate by permute-and-flip, never worse than the exponential mechanism.

    Parameters
    ----------
    scores, epsilon, sensitivity, monotonic, relation, rng
        As in :func:`select_exponential`.

    Notes
    -----
    *Guarantee.* ε-differential privacy (McKenna, Sheldon 2020), exact in law
    (docs/theorems_selection.md, Theorem P2).
    """
    mechanism = PureDP(checks.number(EPSILON, epsilon), relation=relation)
    rate = _rate(epsilon, sensitivity, monotonic, relation)
    return _drawn(_flip_draw, _scores(scores), rate, mechanism, generator_of(rng))


def generator_of(rng: Generator) -> SecureGenerator:
    """Return the generator given, or a new one."""
    return rng if isinstance(rng, SecureGenerator) else SecureGenerator(rng)


def floor_to_grid(values: FloatArray, sensitivity: float) -> FloatArray:
    """Return values in steps of sensitivity/2^20, rounded down exactly, as float64 integers.

    Neighbours no further apart than the sensitivity are at most 2^20 steps apart (Theorem P3).
    """
    factor = STEPS / Fraction(sensitivity)
    limit = 2**51
    steps = [min(max((Fraction(value) * factor) // 1, -limit), limit) for value in values.tolist()]
    return np.array(steps, dtype=np.float64)


def in_steps(scale: float, sensitivity: float) -> float:
    """Return a scale in steps of the grid, rounded up."""
    return up(scale / sensitivity, 1.0) * STEPS


def _rate(
    epsilon: float, sensitivity: float, monotonic: bool, relation: NeighbouringRelation
) -> Fraction:
    if monotonic and relation is NeighbouringRelation.REPLACE_ONE:
        raise UnsupportedError(
            "replacing a record moves scores in both directions; use monotonic=False, with the"
            " sensitivity under replace-one"
        )
    unit = checks.number(UNIT, sensitivity)
    return rate(epsilon) / (Fraction(unit) * (1 if monotonic else 2))


def _scores(scores: object) -> FloatArray:
    values = np.atleast_1d(np.asarray(private(checks.real, SCORES, scores), dtype=np.float64))
    if values.ndim != 1 or values.size == 0:
        raise DomainError(f"scores must have shape (k,), k >= 1; got {values.shape}")
    return values


def _drawn(
    draw: Any, values: FloatArray, rate: Fraction, mechanism: Mechanism, generator: SecureGenerator
) -> Selection:
    best = Fraction(float(values.max()))
    exponents = [(best - Fraction(value)) * rate for value in values.tolist()]
    return _chosen(draw(generator, exponents), mechanism, generator)


def _softmax_draw(generator: SecureGenerator, exponents: list[Fraction]) -> int:
    """Return i with probability proportional to exp(-exponents[i]), by rejection."""
    k = len(exponents)
    while True:
        proposals = uniform_index(generator, k, 2 * k)
        coins = bernoulli_exp(generator, [exponents[i] for i in proposals.tolist()])
        accepted = np.flatnonzero(coins)
        if accepted.size:
            return int(proposals[accepted[0]])


def _flip_draw(generator: SecureGenerator, exponents: list[Fraction]) -> int:
    """Flip all coins at once; the first head of a random permutation is a uniform head."""
    heads = np.flatnonzero(bernoulli_exp(generator, exponents))
    return int(heads[uniform_below(generator, heads.size)])


def _chosen(index: int, mechanism: Mechanism, generator: SecureGenerator) -> Selection:
    return Selection(index, mechanism, not generator.seeded)


class AboveThresholdStream:
    """Answers "above" or "below" to any number of queries, until it has said "above" c times.

    Parameters
    ----------
    threshold : float
        What the answers are compared with.
    threshold_scale, query_scale : float
        Scales of the Laplace noise on the threshold, drawn once, and on every query.
    positives : int
        c >= 1.
    sensitivity : float
        How far adding or removing a record moves a query's answer, > 0.
    monotonic : bool
        Whether a record moves all answers in one direction.
    relation : NeighbouringRelation
        Replacing a record moves answers twice as far.
    rng : SecureGenerator, int or None
        A seed is for tests only.

    Attributes
    ----------
    mechanism : AboveThreshold
        The cost of the whole stream, paid when it is opened: record it once.
    remaining : int
        Answers "above" that are left.
    private : bool
        False for a seeded stream.

    Notes
    -----
    *Guarantee.* That of :class:`~accountant.mechanisms.AboveThreshold`, whatever the queries, which
    may depend on earlier answers. Answers and threshold are rounded down to a grid that divides the
    sensitivity, and the noise is rounded to it (docs/theorems_selection.md, Theorem P3).

    Examples
    --------
    >>> stream = AboveThresholdStream(100.0, 1.0, 2.0)
    >>> stream.is_above(1000.0)
    True
    >>> stream.remaining
    0
    """

    def __init__(
        self,
        threshold: float,
        threshold_scale: float,
        query_scale: float,
        *,
        positives: int = 1,
        sensitivity: float = 1.0,
        monotonic: bool = False,
        relation: NeighbouringRelation = NeighbouringRelation.ADD_OR_REMOVE,
        rng: Generator = None,
    ) -> None:
        unit = checks.number(UNIT, sensitivity)
        self.mechanism = AboveThreshold(
            threshold_scale,
            query_scale=query_scale,
            positives=positives,
            sensitivity=unit,
            monotonic=monotonic,
            relation=relation,
        )
        self._generator = generator_of(rng)
        self.private = not self._generator.seeded
        self.remaining = self.mechanism.positives
        self._unit = unit
        level = self._on_grid(checks.number(SCORES.renamed("threshold"), threshold))
        self._threshold = level + self._noise(self.mechanism.threshold_scale)

    def is_above(self, answer: float) -> bool:
        """Tell whether the answer to a query, given without noise, is above the threshold.

        Raises
        ------
        BudgetExceeded
            The stream has said "above" c times already.
        """
        if self.remaining == 0:
            raise BudgetExceeded(
                f"this stream has answered 'above' {self.mechanism.positives} times, all it may;"
                " open another one"
            )
        value = self._on_grid(private(checks.number, SCORES.renamed("answer"), answer))
        above = value + self._noise(self.mechanism.query_scale) >= self._threshold
        self.remaining -= int(above)
        return bool(above)

    def _on_grid(self, value: float) -> float:
        return float(floor_to_grid(np.array([value]), self._unit)[0])

    def _noise(self, scale: float) -> float:
        return float(rounded_laplace(self._generator, 1, in_steps(scale, self._unit))[0])
