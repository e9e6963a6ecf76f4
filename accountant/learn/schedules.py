"""Learning rates as functions of the step alone, which cost no privacy."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias

from accountant import checks
from accountant.checks import Argument

RATE = Argument(
    "learning_rate",
    "a finite number >= 0",
    lambda x: (x >= 0.0) & (x < math.inf),
    "It multiplies the noisy mean gradient",
)


@dataclass(frozen=True)
class Schedule(ABC):
    """A learning rate for every step 0, 1, …; it may not look at data."""

    @abstractmethod
    def __call__(self, step: int) -> float:
        """Return the learning rate of ``step``."""


@dataclass(frozen=True)
class _Based(Schedule):
    learning_rate: float

    def __post_init__(self) -> None:
        checks.real(RATE, self.learning_rate)


def _steps(name: str, value: object) -> None:
    checks.integer(name, value, 1, advice="It counts steps")


@dataclass(frozen=True)
class Constant(_Based):
    """The same rate in every step."""

    def __call__(self, step: int) -> float:
        """Return the rate."""
        return self.learning_rate


@dataclass(frozen=True)
class InverseSquareRoot(_Based):
    """learning_rate / √(step + 1), the rate of Bassily, Smith and Thakurta (2014)."""

    def __call__(self, step: int) -> float:
        """Return the rate of ``step``."""
        return self.learning_rate / math.sqrt(step + 1)


@dataclass(frozen=True)
class StepDecay(_Based):
    """Multiply the rate by ``factor`` after every ``every`` steps."""

    every: int
    factor: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        _steps("every", self.every)

    def __call__(self, step: int) -> float:
        """Return the rate of ``step``."""
        return float(self.learning_rate * self.factor ** (step // self.every))


@dataclass(frozen=True)
class Cosine(_Based):
    """Half a cosine from the rate down to ``final`` over ``steps`` steps."""

    steps: int
    final: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _steps("steps", self.steps)

    def __call__(self, step: int) -> float:
        """Return the rate of ``step``."""
        part = 0.5 * (1.0 + math.cos(math.pi * min(1.0, step / self.steps)))
        return self.final + (self.learning_rate - self.final) * part


@dataclass(frozen=True)
class Polynomial(_Based):
    """(1 - step/steps)^power from the rate down to ``final``; power 1 is linear."""

    steps: int
    power: float = 1.0
    final: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _steps("steps", self.steps)

    def __call__(self, step: int) -> float:
        """Return the rate of ``step``."""
        left = max(0.0, 1.0 - step / self.steps)
        return float(self.final + (self.learning_rate - self.final) * left**self.power)


@dataclass(frozen=True)
class Warmup(Schedule):
    """Rise linearly to another schedule over ``steps`` steps."""

    after: Schedule
    steps: int

    def __post_init__(self) -> None:
        _steps("steps", self.steps)

    def __call__(self, step: int) -> float:
        """Return the rate of ``step``."""
        return self.after(step) * min(1.0, (step + 1) / self.steps)


ScheduleLike: TypeAlias = "float | Schedule"


def as_schedule(value: ScheduleLike) -> Schedule:
    """Return the schedule itself, or a constant one for a number."""
    if isinstance(value, Schedule):
        return value
    return Constant(checks.number(RATE, value))
