"""What Toeplitz strategies share: all follows from one column, and one column of the inverse.

Both are power series, with bounds on their errors (docs/theorems_matrix.md, Theorems X1 and X3).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, up
from accountant.bounds import Bounds
from accountant.checks import Argument
from accountant.environment import to_nearest
from accountant.errors import DomainError
from accountant.matrix.strategy import Participation, Strategy

# A series with more terms is multiplied by a transform.
_SHORT = 64


class Series(NamedTuple):
    """The first coefficients of a power series.

    Attributes
    ----------
    values : float64 array of shape (steps,)
        The computed coefficients.
    error : float
        ρ: the true series is the computed one over 1 - r, with ‖r‖₁ <= ρ. Infinite where nothing
        is known.
    """

    values: FloatArray
    error: float = 0.0

    def widened(self, low: float, high: float) -> tuple[float, float]:
        """Return bounds on a norm of the true series, given those on the computed one's (X1)."""
        if not self.error < 1.0:
            return 0.0, math.inf
        return (
            low / (1.0 + self.error) * (1.0 - 4.0 * U),
            high / (1.0 - self.error) * (1.0 + 8.0 * U),
        )


def reciprocal(series: Sequence[float], terms: int) -> Series:
    """Return 1 / series for an exact one that begins with 1."""
    values = np.asarray(series, dtype=np.float64)
    if values.size <= _SHORT:
        return quotient((1.0,), series, values, terms)
    with np.errstate(all="ignore"):
        found = np.ones(1)
        while found.size < terms:
            # Newton's iteration doubles the terms; the residual is what certifies them.
            size = min(2 * found.size, terms)
            error = _product(values[:size], found, size)
            error[0] -= 1.0
            found = np.concatenate([found, np.zeros(size - found.size)])
            found -= _product(found, error, size)
    return _certified(found, values)


def quotient(
    numerator: Sequence[float], denominator: Sequence[float], series: FloatArray, terms: int
) -> Series:
    """Return numerator / denominator; its product with ``series`` is 1 up to a known residual."""
    from scipy.signal import lfilter

    impulse = np.zeros(terms)
    impulse[0] = 1.0
    with np.errstate(all="ignore"):
        found = lfilter(np.asarray(numerator), np.asarray(denominator), impulse)
    return _certified(found, series)


def _certified(found: FloatArray, series: FloatArray) -> Series:
    """Return a reciprocal of ``series`` with the bound that its residual gives (Theorem X3)."""
    with np.errstate(all="ignore"):
        error = math.inf
        if bool(np.isfinite(found).all()):
            residual, bound = _residual(series, found)
            error = float(np.abs(residual).sum()) * (1.0 + found.size * U) + bound
    # In positive form, so that an overflow has no bound.
    return Series(found, error) if error < 1.0 else Series(np.zeros(found.size), math.inf)


def _residual(one: FloatArray, other: FloatArray) -> tuple[FloatArray, float]:
    """Return 1 - one·other to the length of ``other``, and a bound on its error in ℓ1."""
    terms = other.size
    if one.size <= _SHORT:
        product, size = np.zeros(terms), np.zeros(terms)
        for i, factor in enumerate(one[:terms].tolist()):
            product[i:] += factor * other[: terms - i]
            size[i:] += abs(factor) * np.abs(other[: terms - i])
        product[0] -= 1.0
        bound = (one.size + 4) * U * (float(size.sum()) * (1.0 + 4 * terms * U) + 1.0)
        return product, bound
    product = _product(one, other, terms)
    product[0] -= 1.0
    length = _length(one.size, other.size)
    # Theorems G4 and G5 for one product; what is beyond the first order is in the factor.
    transform = 8.0 * U * (math.log2(length) + 1.0)
    lone, lother = (float(np.abs(a).sum()) for a in (one, other))
    two, tother = (float(np.linalg.norm(a)) for a in (one, other))
    error = 4.0 * transform * (lone * tother + lother * two)
    return product, (error + 2.0 * U) * math.sqrt(terms) * 1.01


def _length(one: int, other: int) -> int:
    return 1 << (one + other - 1).bit_length()


def _product(one: FloatArray, other: FloatArray, terms: int) -> FloatArray:
    length = _length(one.size, other.size)
    spectrum = np.fft.rfft(one, length)
    spectrum *= np.fft.rfft(other, length)
    return np.fft.irfft(spectrum, length)[:terms]


def pattern_sum(values: FloatArray, separation: int, count: int) -> FloatArray:
    """Return Σ_{a < count} values[t - a·separation], in O(steps · log count).

    Windows are doubled, so non-negative terms are added without cancellation: a sum has at most
    2 log₂(count) + 2 roundings.
    """
    total, window, covered, held = np.zeros_like(values), values, 1, 0
    while True:
        if count & covered:
            total = _add_shifted(total, window, held * separation)
            held += covered
        if held >= count:
            return total
        window = _add_shifted(window.copy(), window, covered * separation)
        covered *= 2


def _add_shifted(target: FloatArray, values: FloatArray, shift: int) -> FloatArray:
    if shift < target.size:
        target[shift:] += values[: target.size - shift]
    return target


def norm_bounds(
    values: FloatArray, relative: float = 0.0, absolute: float = 0.0
) -> tuple[float, float]:
    """Bracket the ℓ2 norm of what ``values`` are but for errors.

    They differ by a factor 1 ± ``relative`` each, and by ``absolute`` in norm.
    """
    size = float(np.abs(values).max(initial=0.0))
    if not size > 0.0:
        return 0.0, absolute
    if not size < math.inf:
        return 0.0, math.inf
    # A power of two, so that squares neither overflow nor vanish where they count.
    exponent = math.frexp(size)[1]
    scaled = np.ldexp(values, -exponent)
    norm = math.ldexp(math.sqrt(float(np.dot(scaled, scaled))), exponent)
    # Zeros add no rounding.
    slack = (np.count_nonzero(scaled) + 8) * U + relative
    vanished = math.sqrt(values.size) * math.ldexp(1e-150, exponent)
    low = norm * (1.0 - slack) - absolute - vanished
    high = norm * (1.0 + slack) + absolute + vanished
    return max(low, 0.0) * (1.0 - 4.0 * U), high * (1.0 + 8.0 * U)


# A normal variable beyond this many standard deviations is left out, as in Theorem T4.
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
        if not room > 0.0:
            return math.inf
        return up((REACH * scale * self._noise_growth() + total) / room, 32.0)


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
