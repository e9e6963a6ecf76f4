"""Strategies with a band (Choquette-Choo et al. 2023), or whose inverse has one.

An inverse with a band is noise that cancels a part of the noise of earlier steps.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from decimal import Context, Decimal
from functools import cached_property

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, up
from accountant.checks import Argument
from accountant.environment import to_nearest
from accountant.errors import DomainError
from accountant.matrix.strategy import BufferStream, Participation, WindowStream
from accountant.matrix.toeplitz import (
    REACH,
    Series,
    ToeplitzStrategy,
    as_steps,
    checked_coefficients,
    quotient,
    reciprocal,
)


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

    def stream(self, size: int, *, whole: bool = False) -> WindowStream:
        """Return the stream of noise, which keeps ``bands - 1`` vectors."""
        return WindowStream(self.column[1:], size, self.steps, whole=whole)

    def _column(self) -> Series:
        return Series(np.pad(self.column, (0, self.steps - self.bands)))

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
    return BandedToeplitz(_of_root(steps, bands, 1.0), steps=steps)


def _of_root(steps: int, bands: int, less: float) -> tuple[float, ...]:
    """Return the first coefficients of (1 - x)^{-1/2} (``less`` 1), or of (1 - x)^{1/2} (3)."""
    j = np.arange(1.0, checks.integer("bands", bands, 1, as_steps(steps)))
    return (1.0, *np.cumprod((2.0 * j - less) / (2.0 * j)).tolist())


def input_perturbation(steps: int) -> BandedToeplitz:
    """Return the identity: independent noise in every step, that of DP-SGD."""
    return BandedToeplitz((1.0,), steps=steps)


CANCELLED = Argument(
    "cancelled",
    "a number in [0, 1)",
    lambda x: (x >= 0.0) & (x < 1.0),
    "It is the part of the last step's noise that is taken back",
)


@dataclass(frozen=True, repr=False)
class BandedInverse(ToeplitzStrategy):
    """A Toeplitz strategy C whose inverse has few bands (Kalinin, McKenna, Upadhyay, Lampert 2025).

    Parameters
    ----------
    inverse_column : sequence of float
        The first entries 1, h_1, …, h_{p-1} of the first column of C⁻¹; the others are zero. The
        noise of step t is z_t + h_1 z_{t-1} + …
    steps : int, keyword only
        Number of steps T.

    Examples
    --------
    >>> from accountant.matrix import lambda_cgd
    >>> lambda_cgd(4, cancelled=0.5).coefficients()
    array([1.   , 0.5  , 0.25 , 0.125])
    """

    inverse_column: tuple[float, ...]
    _: KW_ONLY
    steps: int

    @to_nearest
    def __post_init__(self) -> None:
        steps = as_steps(self.steps)
        object.__setattr__(self, "steps", steps)
        given = checked_coefficients("inverse_column", self.inverse_column, steps)
        object.__setattr__(self, "inverse_column", given)

    @property
    def bands(self) -> int:
        """As many as steps, except for the identity: C itself is full."""
        return self.steps if len(self.inverse_column) > 1 else 1

    def stream(self, size: int, *, whole: bool = False) -> WindowStream:
        """Return the stream of noise, which keeps one vector less than the inverse has bands."""
        return WindowStream(self.inverse_column[1:], size, self.steps, whole=whole, inverse=True)

    @cached_property
    def _series(self) -> Series:
        return reciprocal(self.inverse_column, self.steps)

    def _column(self) -> Series:
        return self._series

    def _inverse(self) -> Series:
        return Series(np.pad(self.inverse_column, (0, self.steps - len(self.inverse_column))))

    def _drift(self, scale: float, participation: Participation | None) -> float:
        width = len(self.inverse_column)
        if width == 1:
            return 0.0
        total = math.fsum(abs(h) for h in self.inverse_column)
        computed = (width + 2) * U * total * REACH * (scale + 1.0)
        # What was rounded differently passes through C.
        column = self._column()
        low = float(np.abs(column.values).sum()) * (1.0 + self.steps * U)
        most = column.widened(0.0, low)[1]
        return up(most * (1.0 + 2.0 * computed) * math.sqrt(self.steps), 16.0)


@to_nearest
def banded_inverse_square_root(steps: int, *, bands: int) -> BandedInverse:
    """Return the strategy whose inverse has the first bands of (1 - x)^{1/2}.

    Those are the coefficients of the inverse of the prefix sums' square root (Kalinin, McKenna,
    Upadhyay, Lampert 2025), rounded to doubles.
    """
    return BandedInverse(_of_root(steps, bands, 3.0), steps=steps)


@to_nearest
def lambda_cgd(steps: int, *, cancelled: float) -> BandedInverse:
    """Return DP-λCGD: each step takes back λ times the fresh noise of the step before.

    The coefficients of C are λ^j (Kalinin, McKenna, Pagh, Lampert 2026, without their scaling of
    the columns to equal norms).

    Parameters
    ----------
    steps : int
        Number of steps.
    cancelled : float
        λ in [0, 1).
    """
    part = checks.number(CANCELLED, cancelled)
    return BandedInverse((1.0, -part) if as_steps(steps) > 1 else (1.0,), steps=steps)


def output_perturbation(steps: int) -> BandedInverse:
    """Return the prefix sums themselves: every one is released with noise of its own."""
    return BandedInverse((1.0, -1.0) if as_steps(steps) > 1 else (1.0,), steps=steps)


WEIGHT = Argument(
    "weights", "numbers in [0, 1e100]", lambda x: (x >= 0.0) & (x <= 1e100), "One a buffer"
)
DECAY = Argument("decays", "numbers in [0, 1]", lambda x: (x >= 0.0) & (x <= 1.0), "One a buffer")
_BLOCK = 1024
_DIGITS = Context(prec=60, Emin=-(10**9), Emax=10**9)


@dataclass(frozen=True, repr=False)
class BufferedToeplitz(ToeplitzStrategy):
    """A Toeplitz strategy whose coefficients are sums of geometric series (BLT).

    Parameters
    ----------
    weights, decays : sequence of float
        ω_j >= 0 and θ_j in [0, 1], one of each a buffer: c_0 = 1 and c_t = Σ_j ω_j θ_j^{t-1}.
    steps : int, keyword only
        Number of steps T.

    Examples
    --------
    >>> from accountant.matrix import BufferedToeplitz
    >>> strategy = BufferedToeplitz(weights=(0.3, 0.2), decays=(0.9, 0.5), steps=1_000_000)
    >>> round(strategy.sensitivity_bounds(min_separation=1000, max_participations=10).upper, 3)
    4.178
    """

    _: KW_ONLY
    weights: tuple[float, ...]
    decays: tuple[float, ...]
    steps: int

    @to_nearest
    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", as_steps(self.steps))
        for name, argument in (("weights", WEIGHT), ("decays", DECAY)):
            given = getattr(self, name)
            given = given.tolist() if isinstance(given, np.ndarray) else given
            values = tuple(checks.number(argument, value) for value in checks.sequence(name, given))
            object.__setattr__(self, name, values)
        if len(self.weights) != len(self.decays):
            raise DomainError(
                f"weights and decays must be as many; got {len(self.weights)} and"
                f" {len(self.decays)}. Each buffer has one of each"
            )

    @property
    def bands(self) -> int:
        """As many as steps, where a buffer is used."""
        return self.steps if any(w > 0.0 for w in self.weights) else 1

    def stream(self, size: int, *, whole: bool = False) -> BufferStream:
        """Return the stream of noise, which keeps a vector for every buffer."""
        return BufferStream(self.weights, self.decays, size, self.steps, whole=whole)

    def _column(self) -> Series:
        values = np.zeros(self.steps)
        for weight, decay in zip(self.weights, self.decays, strict=True):
            values[1:] += weight * _powers(decay, self.steps - 1)
        values[0] = 1.0
        # Non-negative terms, each with a relative error: so have the norms of their sums.
        return Series(values, (len(self.weights) + 8) * U)

    @cached_property
    def _quotient(self) -> Series:
        denominator = np.ones(1)
        for decay in self.decays:
            denominator = np.convolve(denominator, (1.0, -decay))
        numerator = denominator.copy()
        for j, weight in enumerate(self.weights):
            others = np.full(1, weight)
            for i, decay in enumerate(self.decays):
                if i != j:
                    others = np.convolve(others, (1.0, -decay))
            numerator[1:] += others
        column = self._column()
        found = quotient(denominator.tolist(), numerator.tolist(), column.values, self.steps)
        # The column's own error, times the inverse.
        size = float(np.abs(column.values).sum()) * float(np.abs(found.values).sum())
        return Series(found.values, up(found.error + 1.01 * column.error * size, 16.0))

    def _inverse(self) -> Series:
        return self._quotient

    def _drift(self, scale: float, participation: Participation | None) -> float:
        if self.bands == 1:
            return 0.0
        rounding = 0.0
        for weight, decay in zip(self.weights, self.decays, strict=True):
            memory = self.steps if decay == 1.0 else min(self.steps, up(1.0 / (1.0 - decay)))
            # A buffer is at most memory times a noise; two roundings a step stay for as long.
            rounding += weight * memory * U * (2.0 * memory + len(self.weights) + 4.0)
        computed = rounding * self._largest_noise(scale, rounding)
        return up((1.0 + 2.0 * computed) * math.sqrt(self.steps), 16.0)


def _powers(base: float, count: int) -> FloatArray:
    """Return base^0 … base^{count-1}, each within 4 units of roundoff (and 1e-300 absolutely)."""
    exact, one = Decimal(base), Decimal(1)
    small = [one]
    for _ in range(min(_BLOCK, count) - 1):
        small.append(_DIGITS.multiply(small[-1], exact))
    step = _DIGITS.multiply(small[-1], exact)
    large = [one]
    for _ in range((count - 1) // _BLOCK if count else 0):
        large.append(_DIGITS.multiply(large[-1], step))
    low, high = (np.array([float(x) for x in each]) for each in (small, large))
    return np.asarray(np.multiply.outer(high, low).ravel()[:count], dtype=np.float64)
