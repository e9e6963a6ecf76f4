"""What is kept of a run: which of its iterates, its history, its ledger, its guarantee in words."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.arrays import Array
from accountant._basics.display import text_up
from accountant.learn.account import Released
from accountant.learn.models.base import Model
from accountant.learn.optimizers import PAST
from accountant.learn.plan import Plan


@dataclass
class History:
    """What was seen along the way.

    Attributes
    ----------
    public : list of dict
        Functions of the noisy gradients and of public settings: may be published. ``run_epsilon``
        is the ε of this run's steps so far, alone.
    private : list of dict
        Filled only under ``nonprivate_diagnostics=True``: batch sizes, clipped fractions, losses.
        These are computed from the data without noise; publishing them voids the guarantee.
    """

    public: list[dict[str, float]] = field(default_factory=list)
    private: list[dict[str, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Progress:
    """What a callback may see: the released iterate and the steps made.

    Attributes
    ----------
    step, steps : int
        Steps made, and planned.
    parameters : ndarray
        A copy of the iterate.
    learning_rate : float
        Of the step just made.
    """

    step: int
    steps: int
    parameters: NDArray[np.floating[Any]]
    learning_rate: float


@dataclass(frozen=True, eq=False)
class TrainingResult(Released):
    """A trained model and what it cost.

    Attributes
    ----------
    parameters : ndarray
        The parameters kept: the last iterate, or an average.
    model : Model
        The model, with those parameters.
    ledger : Accountant
        The ledger given, or the run's own, with the run's steps charged.
    history : History
        Of the run.
    epsilon, delta : float
        The guarantee of everything in the ledger when the run ended, in nats, under add-or-remove:
        of this run and of all that was charged before it, or beside it. Infinite where no bound
        can be certified.
    run_epsilon : float
        The ε of this run's steps alone, at ``delta``, for a number of steps that did not depend on
        outputs. Where a callback ended the run by what it saw, ``plan.epsilon``, of all planned
        steps, is the guarantee: making fewer is a post-processing of making all (L12).
    steps : int
        Steps made.
    private : bool
        False when the run was seeded or had no noise; ``statement`` says why.
    plan : Plan
        The public settings.
    """

    parameters: NDArray[np.floating[Any]]
    model: Model
    history: History
    steps: int
    plan: Plan
    reasons: tuple[str, ...] = ()

    def _charged(self) -> int:
        return 0  # step by step

    @property
    def statement(self) -> str:
        """The guarantee in words, ε rounded up."""
        plan = self.plan
        if not self.private:
            return "NOT PRIVATE: " + "; ".join(self.reasons) + "."
        sampling = (
            "all records in every step"
            if plan.sampler == "full"
            else f"Poisson sampling with probability {plan.sampling_probability:.6g}"
        )
        law = "discrete Gaussian" if plan.noise == "discrete_gaussian" else "rounded Gaussian"
        if plan.strategy is not None:
            law = "correlated Gaussian"
            if plan.sampler == "poisson":
                sampling += f" of {plan.classes} classes in turn"
            elif plan.sampler == "cyclic":
                sampling = f"{plan.classes} classes of records in turn"
        text = (
            f"The parameters of this model are (ε, δ)-differentially private with"
            f" ε = {text_up(self.run_epsilon)} and δ = {self.delta:g} under the add-or-remove"
            f" relation: {self.steps} steps, {sampling}, per-record clipping, {law} noise with"
            f" multiplier {plan.noise_multiplier:.6g} from a cryptographic generator. The sampling"
            " probability is treated as public"
            + (", and the number of records." if plan.records is not None else ".")
        )
        if self.epsilon > self.run_epsilon:
            text = f"{self._whole()} This run alone: {text}"
        if self.steps < plan.steps:
            text += (
                f" The plan was {plan.steps} steps with ε = {text_up(plan.epsilon)}: this is the"
                " guarantee of the run if its end depended on its outputs."
            )
        if self.history.private:
            text += " The private diagnostics of the history are outside this guarantee."
        return text

    def _whole(self) -> str:
        """Say what everything cost, where the model is not all that was released."""
        if not self.epsilon < math.inf:
            return f"No finite ε is certified at δ = {self.delta:g} for everything in this ledger."
        return (
            "Everything in this ledger, the model included, is (ε, δ)-differentially private with"
            f" ε = {text_up(self.epsilon)} and δ = {self.delta:g} under the add-or-remove relation."
        )


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
DECAY = PAST.renamed("decay", "It is the weight that an average keeps in one step")


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
