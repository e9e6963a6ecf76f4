"""The public settings of a run, checked as a whole before any gradient is computed."""

from __future__ import annotations

import math
from collections.abc import Sized
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from accountant import checks
from accountant.checks import Argument
from accountant.errors import DomainError
from accountant.learn.record import Release
from accountant.learn.sampler import require_sampler
from accountant.learn.sensitivity import MOST_RECORDS, batch_cap

if TYPE_CHECKING:
    from accountant.learn.clipping import Clipping
    from accountant.learn.record import TrainingRecord

__all__ = ["Plan", "is_secret", "make_plan", "require_size"]

NOISE_MULTIPLIER = Argument(
    "noise_multiplier",
    "a finite number >= 0",
    lambda x: (x >= 0.0) & (x < math.inf),
    "It is the noise standard deviation over the sensitivity; 0 adds none and is not private",
)
TARGET_EPSILON = checks.positive("target_epsilon", "It is the privacy loss to stay within, in nats")
BATCH = checks.positive(
    "expected_batch_size", "It is the public constant the noisy sum is divided by"
)
EPOCHS = Argument(
    "epochs",
    "a finite number >= 0",
    lambda x: (x >= 0.0) & (x < math.inf),
    "One epoch is 1 / q steps",
)


@dataclass(frozen=True)
class Plan:
    """What will run, all of it public.

    Attributes
    ----------
    sampler : str
        ``"poisson"`` or ``"full"``.
    sampling_probability, expected_batch_size : float
        q, and the constant the noisy sum is divided by.
    steps : int
        How many.
    noise : str
        ``"gaussian"`` or ``"discrete_gaussian"``.
    noise_multiplier : float
        Of the whole step, as the ledger records it.
    delta, epsilon : float
        The guarantee after the last step, of a training record whole; what an accountant holds
        besides is in the result.
    records : int or None
        The number of records where it was declared public, by giving no sampling probability;
        None where it is a secret, and nothing here depends on it.
    run : str
        A label for charges, which a resumed run keeps: no setting.
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

    @property
    def release(self) -> Release:
        """What one step releases, for the ledger."""
        return Release(self.noise, self.sampling_probability, self.noise_multiplier)

    @property
    def batch_cap(self) -> int:
        """A public number that a batch exceeds with probability below e⁻⁷⁰⁰ (Theorem T4)."""
        if self.records is not None:
            return batch_cap(self.expected_batch_size)
        return min(MOST_RECORDS, batch_cap(self.sampling_probability * MOST_RECORDS))

    def describe(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return {name: value for name, value in asdict(self).items() if name != "run"}


def make_plan(
    *,
    records: int,
    clipping: Clipping,
    groups: int,
    sampler: object,
    noise: object,
    noise_multiplier: object,
    target_epsilon: object,
    delta: object,
    expected_batch_size: object,
    sampling_probability: object,
    steps: object,
    epochs: object,
    ledger: TrainingRecord,
) -> Plan:
    """Check the settings together and fill in what follows from them."""
    kind = checks.choice("noise", noise, ("gaussian", "discrete_gaussian"))
    name = require_sampler(sampler)
    batch, q = _sampling(name, records, expected_batch_size, sampling_probability)
    privacy_delta = checks.number(checks.DELTA, delta)
    if (noise_multiplier is None) == (target_epsilon is None):
        raise DomainError(
            "give exactly one of noise_multiplier and target_epsilon; got"
            f" {'neither' if noise_multiplier is None else 'both'}"
        )
    if target_epsilon is not None:
        goal = checks.number(TARGET_EPSILON, target_epsilon)
        count = _steps_to_calibrate(steps, epochs, q, ledger)
        release = Release.calibrated(kind, goal, privacy_delta, q, count)
    else:
        sigma = checks.number(NOISE_MULTIPLIER, noise_multiplier)
        release = Release(kind, q, sigma)
        count = _steps(steps, epochs, q, release, ledger)
    rule = clipping.rule(groups)
    if release.noise_multiplier > 0.0:
        if not math.isfinite(rule.sensitivity):
            raise DomainError(
                "clipping_norm must be finite when there is noise; got inf. Nothing would bound"
                " one record's influence"
            )
        clipping.gradient_noise(release.noise_multiplier)
    ledger.require(release, count)
    spent = dict(ledger.counts)
    spent[release] = spent.get(release, 0) + count
    epsilon = type(ledger)(counts=spent).epsilon(privacy_delta)
    return Plan(
        name, q, batch, count, kind, release.noise_multiplier, privacy_delta, epsilon,
        None if is_secret(name, sampling_probability) else records,
    )  # fmt: skip


def is_secret(sampler: object, sampling_probability: object) -> bool:
    """Whether the number of records is a secret: whether no public number is computed from it."""
    return sampler == "full" or sampling_probability is not None


def require_size(X: object) -> None:
    """Raise for more records than a run with a secret number of them accepts, unseen."""
    if isinstance(X, Sized) and len(X) > MOST_RECORDS:
        raise DomainError(
            f"X must hold at most {MOST_RECORDS} records where their number is a secret. Leave out"
            " sampling_probability to declare it public"
        )


def _steps_to_calibrate(steps: object, epochs: object, q: float, ledger: TrainingRecord) -> int:
    """Return how many steps the noise is calibrated for."""
    count = _steps(steps, epochs, q, None, ledger)
    if count == 0:
        raise DomainError("steps must be >= 1 to calibrate the noise; got 0")
    if ledger.counts:
        raise DomainError(
            "target_epsilon calibrates a run of its own; with a ledger that has spent already,"
            " give noise_multiplier"
        )
    return count


def _sampling(
    sampler: str, records: int, expected: object, probability: object
) -> tuple[float, float]:
    batch = checks.number(BATCH, expected)
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
        exact = Fraction(batch) / records
        q = float(exact)
        if Fraction(q) < exact:  # the account may only err upwards
            q = math.nextafter(q, math.inf)
    return batch, q


def _steps(
    steps: object, epochs: object, q: float, release: Release | None, ledger: TrainingRecord
) -> int:
    if steps is not None and epochs is not None:
        raise DomainError("give at most one of steps and epochs; got both")
    if steps is not None:
        return checks.whole(checks.STEPS, steps)
    if epochs is not None:
        passes = checks.number(EPOCHS, epochs)
        if q == 0.0:
            raise DomainError("epochs need sampling_probability > 0; got 0")
        return math.ceil(Fraction(passes) / Fraction(q))
    if release is not None and ledger.has_budget:
        return ledger.affordable(release)
    raise DomainError("give steps or epochs, or a noise_multiplier and a ledger with a budget")
