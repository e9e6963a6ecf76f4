"""AboveThreshold, the sparse vector technique: a stream of queries against a noisy threshold."""

from __future__ import annotations

import numpy as np

from accountant import checks
from accountant.errors import BudgetExceeded
from accountant.learn.secrecy import private_scalar
from accountant.learn.selection.noisy_max import (
    SCORES,
    UNIT,
    Generator,
    floor_to_grid,
    generator_of,
    in_steps,
)
from accountant.mechanisms import AboveThreshold
from accountant.noise.exact_samplers import rounded_laplace
from accountant.relations import NeighbouringRelation


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
        value = self._on_grid(private_scalar(SCORES.renamed("answer"), answer))
        above = value + self._noise(self.mechanism.query_scale) >= self._threshold
        self.remaining -= int(above)
        return bool(above)

    def _on_grid(self, value: float) -> float:
        return float(floor_to_grid(np.array([value]), self._unit)[0])

    def _noise(self, scale: float) -> float:
        return float(rounded_laplace(self._generator, 1, in_steps(scale, self._unit))[0])
