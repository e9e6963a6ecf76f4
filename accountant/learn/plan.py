"""The public settings of a run, checked before any gradient is computed."""

from __future__ import annotations

import math
from collections.abc import Sized
from dataclasses import KW_ONLY, dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from accountant import checks
from accountant._basics.display import text_up
from accountant._basics.rounding import fraction_up
from accountant.errors import AccountantError, BudgetExceeded, DomainError, UnsupportedError
from accountant.learn.account import (
    affordable_steps,
    calibrated_noise_multiplier,
    count_charged,
    step_mechanism,
    unaffordable,
)
from accountant.learn.clipping import Clipping
from accountant.learn.release import (
    MOST_RECORDS,
    batch_cap,
    classes_for,
    noise_kind,
    require_constant,
)
from accountant.ledger import Accountant
from accountant.matrix import Strategy
from accountant.mechanisms.base import Mechanism
from accountant.quick import get_epsilon
from accountant.sampling.spaced_poisson import class_rate

NOISE_MULTIPLIER = checks.nonnegative(
    "noise_multiplier",
    "It is the noise standard deviation over the sensitivity; 0 adds none and is not private",
)
TARGET_EPSILON = checks.positive("target_epsilon", "It is the privacy loss to stay within, in nats")
BATCH = checks.positive(
    "expected_batch_size", "It is the public constant the noisy sum is divided by"
)
EPOCHS = checks.nonnegative("epochs", "One epoch is 1 / q steps")
SAMPLERS = ("poisson", "full", "cyclic")
NO_STEPS = "give steps or epochs, or a noise_multiplier and a ledger with a budget"


@dataclass(frozen=True)
class Batches:
    """Which records each step uses, and how many steps there are.

    Parameters
    ----------
    expected_batch_size : float
        A public constant, which the noisy sum is divided by. Without ``sampling_probability``
        records are sampled with probability ``expected_batch_size / n``: this declares the number
        of records n public.
    steps : int, optional
        Number of steps; or ``epochs``; or neither, with a ledger whose budget says how many.
    epochs : float, optional
        Passes over the data: 1 / q steps each, rounded up.
    sampling_probability : float, optional
        q, when n is itself a secret. Then, and with ``sampler="full"``, nothing before, during or
        after the run depends on n, which may be 0 to 2²⁴.
    sampler : {"poisson", "full", "cyclic"}
        Every record with probability q, or all of them in every step. With correlated noise,
        "poisson" is cyclic Poisson sampling: each record draws one of as many classes as the
        strategy has bands, and step t samples from class t modulo that number; "cyclic" takes all
        records of one of ⌈1/q⌉ classes.
    """

    expected_batch_size: float | None = None
    _: KW_ONLY
    steps: int | None = None
    epochs: float | None = None
    sampling_probability: float | None = None
    sampler: str = "poisson"

    @property
    def secret(self) -> bool:
        """Whether the number of records is a secret: whether nothing public depends on it."""
        return self.sampler == "full" or self.sampling_probability is not None


@dataclass(frozen=True)
class Noise:
    """How much noise each step adds, and of which law.

    Parameters
    ----------
    noise_multiplier, target_epsilon : float
        Exactly one: the standard deviation over the sensitivity, or the ε for which it is
        calibrated, that of this run alone.
    law : {"gaussian", "discrete_gaussian"} or Strategy
        Gaussian noise rounded to a grid, accounted exactly; or exact discrete Gaussian noise,
        accounted by Rényi divergences; or a strategy of :mod:`accountant.matrix`, which correlates
        Gaussian noise between steps (DP-FTRL). Then ``noise_multiplier`` is relative to the
        encoding's sensitivity, and the steps are those of the strategy, or the first of them.
    """

    noise_multiplier: float | None = None
    _: KW_ONLY
    target_epsilon: float | None = None
    law: str | Strategy = "gaussian"


@dataclass(frozen=True)
class Plan:
    """What will run, all of it public.

    Attributes
    ----------
    sampler : str
        ``"poisson"``, ``"full"`` or ``"cyclic"``.
    sampling_probability, expected_batch_size : float
        q, and the constant the noisy sum is divided by.
    steps : int
        How many.
    noise : str
        ``"gaussian"`` or ``"discrete_gaussian"``.
    noise_multiplier : float
        Of the whole step, as the ledger records it. With a strategy, over the sensitivity of the
        encoding.
    delta, epsilon : float
        The guarantee of all these steps, alone: what a ledger holds besides is in the result.
    records : int or None
        The number of records where it was declared public, by giving no sampling probability;
        None where it is a secret, and nothing here depends on it.
    run : str
        The label of the run's charges, which a resumed run keeps: no setting.
    strategy : Strategy or None
        How the noise of the steps is correlated.
    classes : int
        Step t uses records of class t modulo this.
    """

    sampler: str
    sampling_probability: float
    expected_batch_size: float
    steps: int
    noise: str
    noise_multiplier: float
    delta: float
    epsilon: float
    records: int | None = None
    run: str = ""
    strategy: Strategy | None = None
    classes: int = 1

    @property
    def rate(self) -> float:
        """The probability with which a record that may take part in a step does."""
        if self.strategy is None:
            return self.sampling_probability
        return class_rate(self.sampling_probability, self.classes) if self.sampled else 1.0

    @property
    def sampled(self) -> bool:
        """Whether every participation is a coin, with an account of its own."""
        return self.sampler == "poisson"

    @cached_property
    def mechanism(self) -> Mechanism:
        """What is charged at once: a step; with a strategy a block of steps, or the whole run."""
        return step_mechanism(self.noise, self.noise_multiplier, self.rate)

    def charges(self, steps: int) -> int:
        """Return how often :attr:`mechanism` is charged for the first ``steps`` steps."""
        if self.strategy is None:
            return steps
        return -(-steps // self.classes) if self.sampled else min(steps, 1)

    def epsilon_after(self, steps: int) -> float:
        """Return the certified ε of ``steps`` of these steps, alone."""
        sigma, count = self.noise_multiplier, self.charges(steps)
        try:
            if self.noise == "gaussian" and sigma > 0.0:
                return get_epsilon(self.rate, sigma, count, self.delta)  # the fastest way to it
            return (count * self.mechanism).epsilon(self.delta) if steps else 0.0
        except AccountantError:
            return math.inf

    @property
    def batch_cap(self) -> int:
        """A public number that a batch exceeds with probability below e⁻⁷⁰⁰ (Theorem T4)."""
        if self.records is not None:
            return batch_cap(self.expected_batch_size)
        return min(MOST_RECORDS, batch_cap(self.sampling_probability * MOST_RECORDS))

    def describe(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        for name in ("run", "strategy", "classes"):
            values.pop(name)
        if self.strategy is not None:
            values |= {"strategy": repr(self.strategy), "classes": self.classes}
        return values


def make_plan(
    *,
    records: int,
    clipping: Clipping,
    groups: int,
    batches: Batches,
    noise: Noise,
    delta: object,
    ledger: Accountant,
    run: str,
) -> Plan:
    """Check the settings together and fill in what follows from them.

    What the ledger holds under the label ``run`` already is this run's own: it was resumed.
    """
    kind, strategy = noise_kind(noise.law)
    require_constant(clipping, strategy)
    name = require_sampler(batches.sampler)
    batch, q = _sampling(name, records, batches)
    privacy_delta = checks.number(checks.DELTA, delta)
    if (noise.noise_multiplier is None) == (noise.target_epsilon is None):
        raise DomainError(
            "give exactly one of noise_multiplier and target_epsilon; got"
            f" {'neither' if noise.noise_multiplier is None else 'both'}"
        )
    count = _steps(batches, q)
    if strategy is not None:
        count = _steps_of(strategy, count)
    # Without steps until the ledger has said how many there are.
    plan = Plan(
        name, q, batch, count or 0, kind, 0.0, privacy_delta, math.inf,
        None if batches.secret else records, run,
        strategy, classes_for(name, strategy, q),
    )  # fmt: skip
    if noise.target_epsilon is None:
        multiplier = checks.number(NOISE_MULTIPLIER, noise.noise_multiplier)
    else:
        goal = checks.number(TARGET_EPSILON, noise.target_epsilon)
        if not count:
            why = "steps must be >= 1 to calibrate the noise; got 0"
            raise DomainError(NO_STEPS if count is None else why)
        multiplier = calibrated_noise_multiplier(
            kind, goal, privacy_delta, plan.rate, plan.charges(count)
        )
    _require_bounded(clipping, groups, multiplier)
    plan = replace(plan, noise_multiplier=multiplier)
    if count is None and ledger.budget is None:
        raise DomainError(NO_STEPS)
    count = _admitted(plan, ledger, count)
    return replace(plan, steps=count, epsilon=plan.epsilon_after(count))


def require_sampler(name: object) -> str:
    """Return the name of a sampler that has an account here, or raise."""
    if isinstance(name, str) and name in SAMPLERS:
        return name
    raise UnsupportedError(
        f"sampler must be 'poisson', 'full' or, with a strategy, 'cyclic'; got {name!r}. A shuffled"
        " or fixed-size loader is another mechanism: its ε can be larger by far than Poisson"
        " sampling's, and it has no account here"
    )


def _admitted(plan: Plan, ledger: Accountant, count: int | None) -> int:
    """Return the steps that the ledger admits: those wanted, or as many as it can."""
    charged = count_charged(ledger, plan.mechanism, plan.run)
    needed = None if count is None else plan.charges(count)
    if needed is not None and needed <= charged:
        return count or 0
    wanted = None if needed is None else needed - charged
    found = affordable_steps(ledger, plan.mechanism, wanted, plan.run)
    if not found and not (count is None and charged):
        if plan.strategy is not None:
            raise BudgetExceeded(
                f"{count} steps with {plan.strategy!r:.60} do not fit {ledger.budget!r}: they cost"
                f" ε = {text_up(plan.epsilon_after(count or 0), 4)} at delta = {plan.delta:g}"
                " alone. Give more noise or fewer steps. Nothing was charged, and no step was made"
            )
        raise BudgetExceeded(
            unaffordable(
                ledger, plan.noise, plan.noise_multiplier, plan.rate, plan.expected_batch_size,
                wanted,
            )
        )  # fmt: skip
    return charged + found if count is None else count


def _steps_of(strategy: Strategy, count: int | None) -> int:
    """Return the steps of a run with correlated noise: those of its strategy, or the first."""
    if count is None:
        return strategy.steps
    if count > strategy.steps:
        raise DomainError(
            f"steps must be at most {strategy.steps}, those of the strategy; got {count}."
            " Give noise a strategy of as many steps"
        )
    return count


def require_size(X: object, batches: Batches) -> None:
    """Raise for more records than a run with a secret number of them accepts, unseen."""
    if batches.secret and isinstance(X, Sized) and len(X) > MOST_RECORDS:
        raise DomainError(
            f"X must hold at most {MOST_RECORDS} records where their number is a secret. Leave out"
            " sampling_probability to declare it public"
        )


def _require_bounded(clipping: Clipping, groups: int, multiplier: float) -> None:
    """Refuse noise for a record's influence that nothing bounds, or that the rule cannot add."""
    rule = clipping.rule(groups)
    if multiplier > 0.0:
        if not math.isfinite(rule.sensitivity):
            raise DomainError(
                "clipping_norm must be finite when there is noise; got inf. Nothing would bound"
                " one record's influence"
            )
        clipping.gradient_noise(multiplier)


def _sampling(sampler: str, records: int, batches: Batches) -> tuple[float, float]:
    batch = checks.number(BATCH, batches.expected_batch_size)
    probability = batches.sampling_probability
    if sampler == "full":
        if probability is not None and probability != 1.0:
            raise DomainError(
                f"sampling_probability must be 1 for the full sampler; got {probability!r}"
            )
        q = 1.0
    elif probability is not None:
        q = checks.number(checks.SAMPLING_PROBABILITY, probability)
    else:
        if records == 0:
            raise DomainError(
                "X must hold at least one record; got none. With sampling_probability their number"
                " is a secret, and none is a data set like any other"
            )
        if not (batch <= records):
            raise DomainError(
                f"expected_batch_size must be at most the number of records, {records};"
                f" got {batch:g}"
            )
        q = fraction_up(Fraction(batch) / records)  # the account may only err upwards
    return batch, q


def _steps(batches: Batches, q: float) -> int | None:
    """Return the number of steps; None where the ledger's budget is to say it."""
    if batches.steps is not None and batches.epochs is not None:
        raise DomainError("give at most one of steps and epochs; got both")
    if batches.steps is not None:
        return checks.whole(checks.STEPS, batches.steps)
    if batches.epochs is None:
        return None
    passes = checks.number(EPOCHS, batches.epochs)
    if q == 0.0:
        raise DomainError("epochs need sampling_probability > 0; got 0")
    return math.ceil(Fraction(passes) / Fraction(q))
