"""Buffered linear Toeplitz strategies (Dvijotham, McMahan, Pillutla, Steinke, Thakurta 2024)."""

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
from accountant.matrix.strategy import BufferStream, Participation
from accountant.matrix.toeplitz import Series, ToeplitzStrategy, as_steps, quotient

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
