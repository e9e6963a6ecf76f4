"""Banded Toeplitz strategies (Choquette-Choo et al. 2023)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from accountant import checks
from accountant._rounding import U, up
from accountant.environment import to_nearest
from accountant.matrix.series import Series, reciprocal
from accountant.matrix.stream import FeedbackStream
from accountant.matrix.toeplitz import ToeplitzStrategy, as_steps, checked_coefficients

if TYPE_CHECKING:
    from accountant.matrix.strategy import Participation


@dataclass(frozen=True, repr=False)
class BandedToeplitz(ToeplitzStrategy):
    """A Toeplitz strategy with few bands.

    Parameters
    ----------
    column : sequence of float
        The first entries 1, c_1, …, c_{b-1} of the first column; the others are zero.
    steps : int, keyword only
        Number of steps T.

    Notes
    -----
    Columns ``bands`` or more apart do not overlap, so a record whose participations are that far
    apart pays for each of them alone, and sampling amplifies (Theorem X4).

    Examples
    --------
    >>> from accountant.matrix import banded_square_root
    >>> strategy = banded_square_root(1000, bands=4)
    >>> strategy.column
    (1.0, 0.5, 0.375, 0.3125)
    >>> round(strategy.sensitivity_bounds().upper, 4)
    1.22
    """

    column: tuple[float, ...]
    _: KW_ONLY
    steps: int

    @to_nearest
    def __post_init__(self) -> None:
        steps = as_steps(self.steps)
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "column", checked_coefficients("column", self.column, steps))

    @property
    def bands(self) -> int:
        """The number of coefficients."""
        return len(self.column)

    def stream(self, size: int, *, whole: bool = False) -> FeedbackStream:
        """Return the stream of noise, which keeps ``bands - 1`` vectors."""
        return FeedbackStream(self.column[1:], size, self.steps, whole=whole)

    def _column(self) -> Series:
        values = np.zeros(self.steps)
        values[: self.bands] = self.column
        return Series(values)

    def _inverse(self) -> Series:
        return reciprocal(self.column, self.steps)

    def _drift(self, scale: float, participation: Participation | None) -> float:
        if self.bands == 1:
            return 0.0
        total = math.fsum(abs(c) for c in self.column)
        rounding = (self.bands + 2) * U * total
        computed = rounding * self._largest_noise(scale, rounding)
        reached = self.bands - 1
        if participation is not None:
            reached = min(self.steps, participation.most * reached)
        return up((1.0 + 2.0 * computed) * math.sqrt(reached), 16.0)


@to_nearest
def banded_square_root(steps: int, *, bands: int) -> BandedToeplitz:
    """Return the first bands of the square root of the prefix-sum matrix.

    Its coefficients are binom(2j, j) / 4^j, rounded to doubles: the strategy is that of the rounded
    numbers (Fichtenberger, Henzinger, Upadhyay 2023; Kalinin, Lampert 2024).
    """
    count = checks.integer("bands", bands, 1, as_steps(steps))
    j = np.arange(1.0, count)
    return BandedToeplitz((1.0, *np.cumprod((2.0 * j - 1.0) / (2.0 * j)).tolist()), steps=steps)


def input_perturbation(steps: int) -> BandedToeplitz:
    """Return the identity: independent noise in every step, that of DP-SGD."""
    return BandedToeplitz((1.0,), steps=steps)
