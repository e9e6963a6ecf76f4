"""The returned function of the iterates: the last, a mean, or a moving average."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from accountant import checks
from accountant._typing import Array


class Averaging(ABC):
    """Sees every released iterate; post-processing."""

    def __init__(self) -> None:
        self.state: dict[str, Array] = {}

    def reset(self) -> None:
        """Forget everything: a new run starts."""
        self.state = {}

    @abstractmethod
    def see(self, parameters: Array, step: int, steps: int) -> None:
        """Take the iterate after ``step`` (from 1) of ``steps``."""

    def result(self, parameters: Array) -> Array:
        """Return the average, or the last iterate before there is one."""
        return self.state["mean"].astype(parameters.dtype) if "mean" in self.state else parameters

    def describe(self) -> dict[str, Any]:
        """Return the settings, to recognise a checkpoint of another run."""
        settings = {k: repr(v) for k, v in vars(self).items() if k != "state"}
        return {"name": type(self).__name__, **settings}


FRACTION = checks.Argument(
    "fraction",
    "a number in (0, 1]",
    lambda x: (x > 0.0) & (x <= 1.0),
    "It is the share of the steps whose iterates are averaged",
)
DECAY = checks.Argument(
    "decay",
    "a number in [0, 1)",
    lambda x: (x >= 0.0) & (x < 1.0),
    "It is the weight that an average keeps in one step",
)


class LastIterate(Averaging):
    """Keep the last iterate."""

    def see(self, parameters: Array, step: int, steps: int) -> None:
        """Do nothing."""


class MeanOfLast(Averaging):
    """The mean of the iterates of the last ``fraction`` of the steps."""

    def __init__(self, fraction: float = 0.5) -> None:
        super().__init__()
        checks.number(FRACTION, fraction)
        self.fraction = fraction

    def see(self, parameters: Array, step: int, steps: int) -> None:
        """Update the mean."""
        if step <= steps - int(self.fraction * steps) and step < steps:
            return
        if "mean" not in self.state:
            self.state = {"mean": np.zeros(parameters.shape), "count": np.zeros(1)}
        self.state["count"] += 1
        self.state["mean"] += (parameters - self.state["mean"]) / self.state["count"][0]


class MovingAverage(Averaging):
    """The exponential moving average, corrected for its start."""

    def __init__(self, decay: float = 0.99) -> None:
        super().__init__()
        checks.number(DECAY, decay)
        self.decay = decay

    def see(self, parameters: Array, step: int, steps: int) -> None:
        """Update the average."""
        if "mean" not in self.state:
            self.state = {"mean": np.zeros(parameters.shape)}
        # The weight of the newest iterate falls from 1 to 1 - decay.
        weight = (1.0 - self.decay) / (1.0 - self.decay**step)
        self.state["mean"] += weight * (parameters - self.state["mean"])


def as_averaging(value: str | Averaging) -> Averaging:
    """Return the averaging of a name: ``last``, ``mean`` (of the last half) or ``ema``."""
    if isinstance(value, Averaging):
        return value
    named: dict[str, type[Averaging]] = {
        "last": LastIterate,
        "mean": MeanOfLast,
        "ema": MovingAverage,
    }
    return named[checks.choice("averaging", value, tuple(named))]()
