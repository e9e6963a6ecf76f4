"""What Toeplitz strategies share: all follows from one column, and one column of the inverse."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from accountant import checks
from accountant._rounding import U, up
from accountant._typing import FloatArray
from accountant.bounds import Bounds
from accountant.checks import Argument
from accountant.environment import to_nearest
from accountant.errors import DomainError
from accountant.matrix.series import Series, norm_bounds, pattern_sum
from accountant.matrix.strategy import Strategy

if TYPE_CHECKING:
    from accountant.matrix.strategy import Participation


# A normal variable beyond so many standard deviations is left out, as in Theorem T4.
REACH = 40.0
COEFFICIENT = Argument(
    "coefficients",
    "finite numbers of size at most 1e100, the first of them 1",
    lambda x: np.abs(x) <= 1e100,
    "Divide all by the first, and the noise with them",
)


def checked_coefficients(name: str, values: object, steps: int) -> tuple[float, ...]:
    """Return the leading coefficients of a series that begins with 1, without zeros at the end."""
    argument = COEFFICIENT.renamed(name)
    given = values.tolist() if isinstance(values, np.ndarray) else values
    found = [checks.number(argument, value) for value in checks.sequence(name, given)]
    if not found or found[0] != 1.0:
        raise DomainError(f"{name} must begin with 1; got {found[:1]!r}. {argument.advice}")
    if len(found) > steps:
        raise DomainError(f"{name} must be at most steps = {steps}; got {len(found)} of them")
    while found[-1] == 0.0:
        found.pop()
    return tuple(found)


class ToeplitzStrategy(Strategy):
    """A strategy whose entries depend on the distance of their step and row alone."""

    @abstractmethod
    def _column(self) -> Series:
        """Return the first column of C."""

    @abstractmethod
    def _inverse(self) -> Series:
        """Return the first column of C⁻¹."""

    def coefficients(self) -> FloatArray:
        """Return the first column of C, of shape (steps,), in double precision."""
        return self._column().values.copy()

    def inverse_coefficients(self) -> FloatArray:
        """Return the first column of C⁻¹, of shape (steps,), in double precision."""
        return self._inverse().values.copy()

    @to_nearest
    def rms_error_bounds(self) -> Bounds:
        """Bracket the root mean square error of the prefix sums, for noise of deviation one."""
        inverse = self._inverse()
        rows, slack = _prefix_sums(inverse.values)
        weights = np.sqrt(np.arange(self.steps, 0, -1) / self.steps)
        return Bounds(*inverse.widened(*norm_bounds(rows * weights, 8.0 * U, slack)))

    @to_nearest
    def max_error_bounds(self) -> Bounds:
        """Bracket the error of the last prefix sum, the largest, for noise of deviation one."""
        inverse = self._inverse()
        rows, slack = _prefix_sums(inverse.values)
        return Bounds(*inverse.widened(*norm_bounds(rows, 0.0, slack)))

    def _sensitivity(self, participation: Participation) -> tuple[float, float]:
        column = self._column()
        separation, most, cyclic = participation
        size = np.abs(column.values)
        rounding = (2.0 * math.log2(most) + 4.0) * U
        apart = most == 1 or separation >= self.bands
        # Theorem X2 (i), (ii); else (iii)
        larger = size if apart or cyclic else np.maximum.accumulate(size[::-1])[::-1]
        low, high = norm_bounds(pattern_sum(larger, separation, most), rounding)
        signed = bool((column.values < 0.0).any())
        if not apart and (signed or (larger is not size and bool((larger > size).any()))):
            low = _reached(column.values, size, separation, most, rounding)
            high = min(high, *_coarse(size, most))
        return column.widened(low, high)

    def _noise_growth(self) -> float:
        inverse = self._inverse()
        return inverse.widened(*norm_bounds(inverse.values))[1]

    def _largest_noise(self, scale: float, rounding: float) -> float:
        """Bound a noise on the grid, where what earlier steps add has the error 1/2 + rounding·it.

        But for an event of probability below e⁻⁷⁰⁰ (Theorem X5).
        """
        inverse = self._inverse()
        total = float(np.abs(inverse.values).sum()) * (1.0 + self.steps * U)
        total = inverse.widened(0.0, total)[1]
        room = 1.0 - total * rounding
        return (
            up((REACH * scale * self._noise_growth() + total) / room, 32.0)
            if room > 0.0
            else math.inf
        )


def _prefix_sums(column: FloatArray) -> tuple[FloatArray, float]:
    """Return the running sums, and a bound on their error in ℓ2."""
    sums = np.cumsum(column)
    total = float(np.abs(column).sum()) * (1.0 + column.size * U)
    return sums, up(column.size * U * math.sqrt(column.size) * total, 16.0)


def _reached(
    values: FloatArray, size: FloatArray, separation: int, most: int, rounding: float
) -> float:
    """Return what equal or alternating contributions reach with the packed pattern."""
    total = pattern_sum(size, separation, most)
    error = norm_bounds(total, rounding)[1] * rounding
    equal = pattern_sum(values, separation, most)
    pairs = values.copy()
    if separation < pairs.size:
        pairs[separation:] -= values[: pairs.size - separation]
    alternating = pattern_sum(pairs, 2 * separation, most // 2)
    error = max(error, norm_bounds(2.0 * total, rounding)[1] * (rounding + U))
    return max(norm_bounds(each, 0.0, error)[0] for each in (equal, alternating))


def _coarse(size: FloatArray, most: int) -> tuple[float, float]:
    """Return two bounds on any pattern: by the triangle inequality, and by the operator norm."""
    total = float(size.sum()) * (1.0 + size.size * U)
    return up(most * norm_bounds(size)[1], 8.0), up(math.sqrt(most) * total, 16.0)


def as_steps(value: object) -> int:
    """Check the number of steps of a strategy."""
    return checks.integer("steps", value, 1, 2**31, advice="It counts releases")
