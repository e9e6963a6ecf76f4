"""Optimisers and learning rates: functions of noisy gradients and steps, so post-processing.

Each keeps its state in named arrays, so that a checkpoint can hold it. ``step`` updates the
parameters in place.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias

import numpy as np

from accountant import checks
from accountant._basics.arrays import Array
from accountant.checks import Argument


@dataclass(frozen=True)
class Schedule:
    """A learning rate for each step 0, 1, …: a function of the step alone, which costs no privacy.

    The functions below make them.

    Parameters
    ----------
    name : str
        What it is, with all of its numbers: a checkpoint is recognised by it.
    rate : callable
        Returns the learning rate of a step.
    """

    name: str
    rate: Callable[[int], float] = field(compare=False)

    def __call__(self, step: int) -> float:
        """Return the learning rate of ``step``."""
        return float(self.rate(step))

    def __repr__(self) -> str:
        """Return the name."""
        return self.name


ScheduleLike: TypeAlias = "float | Schedule"
RATE = checks.nonnegative("learning_rate", "It multiplies the noisy mean gradient")
PAST = Argument("", "a number in [0, 1)", lambda x: (x >= 0.0) & (x < 1.0), "Of what is past")
# The settings of the optimisers below, by name.
SETTINGS = {name: PAST.renamed(name) for name in ("momentum", "decay", "beta1", "beta2")} | {
    "epsilon": checks.nonnegative("epsilon", "Zero leaves it out"),
    "weight_decay": checks.nonnegative("weight_decay", "Zero leaves it out"),
    "floor": checks.positive("floor", "Its root bounds the divisor from below"),
}


def constant(learning_rate: float) -> Schedule:
    """Return the same rate for every step."""
    base = checks.number(RATE, learning_rate)
    return Schedule(f"Constant(learning_rate={base!r})", lambda step: base)


def inverse_square_root(learning_rate: float) -> Schedule:
    """Return learning_rate / √(step + 1), the rate of Bassily, Smith and Thakurta (2014)."""
    base = checks.number(RATE, learning_rate)
    return Schedule(f"inverse_square_root({base!r})", lambda step: base / math.sqrt(step + 1))


def step_decay(learning_rate: float, every: int, factor: float = 0.1) -> Schedule:
    """Return a rate that is multiplied by ``factor`` after each ``every`` steps."""
    base, steps = checks.number(RATE, learning_rate), _steps("every", every)
    return Schedule(
        f"step_decay({base!r}, {steps}, {factor!r})", lambda step: base * factor ** (step // steps)
    )


def cosine(learning_rate: float, steps: int, final: float = 0.0) -> Schedule:
    """Return half a cosine from the rate down to ``final`` over ``steps`` steps."""
    base, count = checks.number(RATE, learning_rate), _steps("steps", steps)

    def rate(step: int) -> float:
        part = 0.5 * (1.0 + math.cos(math.pi * min(1.0, step / count)))
        return final + (base - final) * part

    return Schedule(f"cosine({base!r}, {count}, {final!r})", rate)


def polynomial(
    learning_rate: float, steps: int, power: float = 1.0, final: float = 0.0
) -> Schedule:
    """Return (1 - step/steps)^power from the rate down to ``final``; power 1 is linear."""
    base, count = checks.number(RATE, learning_rate), _steps("steps", steps)

    def rate(step: int) -> float:
        return final + (base - final) * float(max(0.0, 1.0 - step / count) ** power)

    return Schedule(f"polynomial({base!r}, {count}, {power!r}, {final!r})", rate)


def warmup(after: ScheduleLike, steps: int) -> Schedule:
    """Return a schedule that rises linearly to another one over ``steps`` steps."""
    then, count = as_schedule(after), _steps("steps", steps)
    return Schedule(
        f"warmup({then!r}, {count})", lambda step: then(step) * min(1.0, (step + 1) / count)
    )


def as_schedule(value: ScheduleLike) -> Schedule:
    """Return the schedule itself, or a constant one for a number."""
    return value if isinstance(value, Schedule) else constant(value)


def _steps(name: str, value: object) -> int:
    return checks.integer(name, value, 1, advice="It counts steps")


class Optimizer(ABC):
    """Turns noisy mean gradients into steps."""

    def __init__(self, learning_rate: ScheduleLike) -> None:
        self.schedule = as_schedule(learning_rate)
        self.count = 0
        self.state: dict[str, Array] = {}

    def reset(self) -> None:
        """Forget everything: a new run starts."""
        self.count = 0
        self.state = {}

    def restore(self, count: int, state: Mapping[str, Array]) -> None:
        """Continue from a checkpoint."""
        self.count = count
        self.state = {name: np.array(value) for name, value in state.items()}

    def expect_noise(self, variance: float) -> None:  # noqa: B027 (most have no use for it)
        """Take note of the variance of the noise in every entry of the next gradient."""

    def step(self, parameters: Array, gradient: Array) -> None:
        """Update ``parameters`` in place from a gradient of the same dtype."""
        rate = self.schedule(self.count)
        self.count += 1
        self._step(parameters, gradient, rate)

    @abstractmethod
    def _step(self, parameters: Array, gradient: Array, rate: float) -> None: ...

    def _slot(self, name: str, like: Array) -> Array:
        if name not in self.state:
            self.state[name] = np.zeros_like(like)
        return self.state[name]

    def describe(self) -> dict[str, Any]:
        """Return the settings as text, to recognise a checkpoint of another run."""
        left_out = ("count", "state", "learning_rate")  # the schedule says the last
        settings = {k: repr(v) for k, v in vars(self).items() if k not in left_out}
        return {"name": type(self).__name__, **settings}


@dataclass(eq=False, repr=False)
class _Standard(Optimizer):
    """An optimiser whose settings are its fields."""

    learning_rate: ScheduleLike

    def __post_init__(self) -> None:
        Optimizer.__init__(self, self.learning_rate)
        for name, domain in SETTINGS.items():
            if hasattr(self, name):
                setattr(self, name, checks.number(domain, getattr(self, name)))


@dataclass(eq=False, repr=False)
class SGD(_Standard):
    """Gradient descent, with momentum (Polyak's) or Nesterov's momentum.

    Parameters
    ----------
    learning_rate : float or Schedule
        The step length.
    momentum : float
        In [0, 1): v ← momentum v + g.
    nesterov : bool
        Step along g + momentum v instead of v.
    weight_decay : float
        Adds weight_decay θ to the gradient.
    """

    momentum: float = 0.0
    _: KW_ONLY
    nesterov: bool = False
    weight_decay: float = 0.0

    def _step(self, parameters: Array, gradient: Array, rate: float) -> None:
        if self.weight_decay:
            gradient = gradient + self.weight_decay * parameters
        if self.momentum:
            velocity = self._slot("velocity", parameters)
            velocity *= self.momentum
            velocity += gradient
            gradient = gradient + self.momentum * velocity if self.nesterov else velocity
        parameters -= rate * gradient


@dataclass(eq=False, repr=False)
class AdaGrad(_Standard):
    """Divide by the root of the sum of squares (Duchi, Hazan and Singer 2011)."""

    _: KW_ONLY
    epsilon: float = 1e-10

    def _step(self, parameters: Array, gradient: Array, rate: float) -> None:
        total = self._slot("squares", parameters)
        total += gradient * gradient
        parameters -= rate * gradient / (np.sqrt(total) + self.epsilon)


@dataclass(eq=False, repr=False)
class RMSProp(_Standard):
    """Divide by the root of a running mean of squares (Tieleman and Hinton 2012)."""

    decay: float = 0.99
    _: KW_ONLY
    epsilon: float = 1e-8

    def _step(self, parameters: Array, gradient: Array, rate: float) -> None:
        mean = self._slot("squares", parameters)
        mean *= self.decay
        mean += (1.0 - self.decay) * gradient * gradient
        parameters -= rate * gradient / (np.sqrt(mean) + self.epsilon)


@dataclass(eq=False, repr=False)
class Adam(_Standard):
    """Adam (Kingma and Ba 2015).

    Parameters
    ----------
    learning_rate : float or Schedule
        The step length.
    beta1, beta2 : float
        In [0, 1): weights of the past in the means of gradients and of squares.
    epsilon : float
        Added to the root of the mean of squares.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    _: KW_ONLY
    epsilon: float = 1e-8

    def _moments(self, parameters: Array, gradient: Array) -> tuple[Array, Array]:
        first, second = self._slot("first", parameters), self._slot("second", parameters)
        first *= self.beta1
        first += (1.0 - self.beta1) * gradient
        second *= self.beta2
        second += (1.0 - self.beta2) * (gradient * gradient)
        mean = first / (1.0 - self.beta1**self.count)
        square = second / (1.0 - self.beta2**self.count)
        return mean, square

    def _step(self, parameters: Array, gradient: Array, rate: float) -> None:
        mean, square = self._moments(parameters, gradient)
        parameters -= rate * mean / (np.sqrt(square) + self.epsilon)


@dataclass(eq=False, repr=False)
class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    _: KW_ONLY
    weight_decay: float = 0.01

    def _step(self, parameters: Array, gradient: Array, rate: float) -> None:
        parameters -= rate * self.weight_decay * parameters
        super()._step(parameters, gradient, rate)


@dataclass(eq=False, repr=False)
class DPAdam(Adam):
    """Adam with the noise's variance taken off the mean of squares (Tang and Lécuyer 2023, 2024).

    Without it the noise dominates the mean of squares and the step is that of scaled momentum.

    Parameters
    ----------
    floor : float
        The least value of the corrected mean of squares.
    """

    _: KW_ONLY
    epsilon: float = field(default=0.0, init=False)
    floor: float = 1e-8

    def reset(self) -> None:
        """Forget everything: a new run starts."""
        super().reset()
        self.state["variance"] = np.zeros(2)

    def expect_noise(self, variance: float) -> None:
        """Keep the running mean of the noise's variance, which adaptive clipping changes."""
        mean = self.state.setdefault("variance", np.zeros(2))
        mean[0] = self.beta2 * mean[0] + (1.0 - self.beta2) * variance
        mean[1] = mean[0] / (1.0 - self.beta2 ** (self.count + 1))

    def _step(self, parameters: Array, gradient: Array, rate: float) -> None:
        mean, square = self._moments(parameters, gradient)
        variance = float(self.state.setdefault("variance", np.zeros(2))[1])
        parameters -= rate * mean / np.sqrt(np.maximum(square - variance, self.floor))
