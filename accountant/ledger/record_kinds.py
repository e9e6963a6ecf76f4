"""Kinds fixed in advance for each record apart: which kind a contribution is, and its units."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from accountant._basics.rounding import fraction_up
from accountant.errors import DomainError
from accountant.ledger import kinds
from accountant.ledger.budget import Budget
from accountant.ledger.evaluation import dp_sgd_step
from accountant.relations import NeighbouringRelation


class RecordKinds:
    """The kinds of a budget, for many records at once (Theorem L16)."""

    def __init__(self, budget: Budget) -> None:
        self._levels = kinds.levels_of(budget)
        if any(
            level.kind.relation is not NeighbouringRelation.ADD_OR_REMOVE for level in self._levels
        ):
            raise DomainError(
                "kinds must have the relation add-or-remove for individual accounting; got"
                f" {budget!r:.160}"
            )
        self.capacity = kinds.certified(self._levels, budget.epsilon, budget.delta)

    def __len__(self) -> int:
        return len(self._levels)

    def units(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the units of the packets that hold ``counts``, of shape (kinds, n)."""
        # Exact: what is beyond 2**40 releases is beyond any capacity.
        return np.asarray(
            sum(
                np.ceil(row / level.releases) * level.units
                for row, level in zip(counts, self._levels, strict=True)
            )
        )

    def releases(
        self, norms: NDArray[np.float64], sigma: float, probability: float
    ) -> NDArray[np.float64]:
        """Return one release of the cheapest kind that dominates each contribution.

        The shape is (kinds, n); a contribution that no kind dominates has infinitely many.
        """
        counts = np.zeros((len(self), *norms.shape))
        if probability == 0.0 or sigma == math.inf:
            return counts
        waiting = norms > 0.0
        by_price = sorted(range(len(self)), key=lambda j: self._price(j))
        for j in by_price:
            fitting = waiting & (norms <= self._largest(j, sigma, probability))
            counts[j, fitting] = 1.0
            waiting &= ~fitting
        counts[0, waiting] = np.inf
        return counts

    def _price(self, index: int) -> Fraction:
        level = self._levels[index]
        return Fraction(level.units, level.releases)

    def _largest(self, index: int, sigma: float, probability: float) -> float:
        """Return the largest norm whose release is a post-processing of a kind; -1 if none."""
        kind = self._levels[index].kind
        parts = [pair.gaussian_part for pair in kind.pairs()]
        noises = [part.noise_multiplier for part in parts if part is not None]
        if len(noises) < len(parts) or not 0.0 < max(noises) < math.inf:
            return -1.0
        if not kinds.dominates(kind, dp_sgd_step(max(noises), probability)):
            return -1.0
        return -fraction_up(-Fraction(sigma) / Fraction(max(noises)))
