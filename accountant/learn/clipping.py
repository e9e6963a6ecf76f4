"""Clipping rules: how one record's gradient is bounded.

Every rule bounds the contribution of one record to the sum by a public number, the rule's
sensitivity: ``clipping_norm``, or the root of the sum of squares for one norm a layer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from accountant import checks
from accountant._basics.rounding import U
from accountant.checks import Argument
from accountant.errors import DomainError

CLIPPING_NORM = Argument(
    "clipping_norm",
    "a number in [1e-18, 1e18], or inf without noise",
    lambda x: ((x >= 1e-18) & (x <= 1e18)) | (x == math.inf),
    "It bounds the norm of one record's gradient",
)
STABILITY = Argument(
    "stability",
    "a number in [1e-18, 1e18]",
    lambda x: (x >= 1e-18) & (x <= 1e18),
    "It is added to every norm; 0.01 is usual",
)
# Automatic clipping multiplies no gradient by more: Theorem T3 depends on it.
LARGEST_FACTOR = 1e20
QUANTILE = checks.TARGET_DELTA.renamed(
    "quantile", "It is the fraction of records that should not be clipped; 0.5 is usual"
)
QUANTILE_RATE = checks.positive(
    "learning_rate", "The norm moves by at most this much on the logarithmic scale; 0.2 is usual"
)
COUNT_NOISE = checks.positive(
    "count_noise",
    "It is the standard deviation of the noise on the count, in records; a twentieth of the batch"
    " is usual",
)


class Rule(NamedTuple):
    """What a block of records is clipped by.

    Attributes
    ----------
    norms : tuple of float
        One bound for the whole gradient, or one for each parameter group.
    stability : float
        Negative: scale by min(1, C / n). Otherwise scale by C / (n + stability).
    """

    norms: tuple[float, ...]
    stability: float = -1.0

    @property
    def sensitivity(self) -> float:
        """An upper bound on the norm of one record's contribution, in real arithmetic."""
        if len(self.norms) == 1:
            return self.norms[0]
        return math.sqrt(math.fsum(norm * norm for norm in self.norms)) * (1.0 + 2.0**-50)


UNCLIPPED = Rule((math.inf,))


@dataclass(frozen=True)
class Clipping:
    """A clipping rule with its state, if it has one.

    Parameters
    ----------
    clipping_norm : float
        The bound on one record's gradient.
    """

    clipping_norm: float

    def __post_init__(self) -> None:
        checks.real(CLIPPING_NORM, self.clipping_norm)

    def rule(self, groups: int) -> Rule:
        """Return the rule of the next step for a model with ``groups`` parameter groups."""
        return Rule((float(self.clipping_norm),))

    def require_finite(self) -> None:
        """Refuse an infinite norm."""
        if math.isinf(self.clipping_norm):
            raise DomainError(f"{type(self).__name__} needs a finite clipping_norm; got inf")

    def gradient_noise(self, noise_multiplier: float) -> float:
        """Return the multiplier of the gradient's noise, when the step may spend the given one."""
        return noise_multiplier

    def describe(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def restored(self, state: Mapping[str, Any]) -> Clipping:
        """Return this rule with another state."""
        return replace(self, **state)


@dataclass(frozen=True)
class Flat(Clipping):
    """Scale a gradient of norm n by min(1, clipping_norm / n): DP-SGD (Abadi et al. 2016)."""


@dataclass(frozen=True)
class Automatic(Clipping):
    """Scale a gradient of norm n by clipping_norm / (n + stability) (Bu et al. 2022).

    Parameters
    ----------
    clipping_norm : float
        The bound, finite.
    stability : float
        In [1e-18, 1e18], and at least 1e-20 times the bound: a smaller one would scale up what
        floating point no longer measures.
    """

    stability: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.real(STABILITY, self.stability)
        self.require_finite()
        if not (self.clipping_norm <= LARGEST_FACTOR * self.stability):
            raise DomainError(
                f"stability must be at least clipping_norm / {LARGEST_FACTOR:g} ="
                f" {self.clipping_norm / LARGEST_FACTOR:g}; got {self.stability!r}. A gradient too"
                " short to be measured would be scaled up beyond the bound"
            )

    def rule(self, groups: int) -> Rule:
        """Return the rule, the same in every step."""
        return Rule((float(self.clipping_norm),), float(self.stability))


@dataclass(frozen=True)
class PerLayer(Clipping):
    """Clip the gradient of every parameter group (layer) to its own norm.

    Parameters
    ----------
    clipping_norm : float
        The sensitivity: the root of the sum of the squared norms, which are equal.
    """

    def rule(self, groups: int) -> Rule:
        """Return one norm for each group."""
        return Rule((self.clipping_norm / math.sqrt(groups),) * groups)


@dataclass(frozen=True)
class AdaptiveQuantile(Clipping):
    """Move the norm to a quantile of the gradient norms (Andrew et al. 2021, Algorithm 1).

    Every step also releases a noisy count of the records that were not clipped, from the same
    sample. The step as a whole spends the ``noise_multiplier`` of the run: the gradient gets the
    larger noise that pays for the count.

    Parameters
    ----------
    clipping_norm : float
        The norm of the first step.
    quantile : float
        The fraction of records that should not be clipped.
    learning_rate : float
        The norm is multiplied by exp(-learning_rate (fraction - quantile)).
    count_noise : float
        Standard deviation of the noise on the count, in records.
    """

    quantile: float = 0.5
    learning_rate: float = 0.2
    count_noise: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.real(QUANTILE, self.quantile)
        checks.real(QUANTILE_RATE, self.learning_rate)
        checks.real(COUNT_NOISE, self.count_noise)
        self.require_finite()

    def gradient_noise(self, noise_multiplier: float) -> float:
        """Return (σ⁻² - (2 count_noise)⁻²)^(-1/2), rounded up (Theorem T8)."""
        # The units are σ⁻², so that no square leaves the doubles; four roundings are taken away.
        ratio = 0.5 * (noise_multiplier / self.count_noise)
        rest = 1.0 - ratio * ratio - 4.0 * U
        if not (rest > 0.0):
            raise DomainError(
                f"count_noise must be above half the noise multiplier {noise_multiplier:g};"
                f" got {self.count_noise!r}. The count alone would spend the whole step"
            )
        return math.nextafter(noise_multiplier * (rest**-0.5 * (1.0 + 1e-12)), math.inf)

    def updated(self, noisy_fraction: float) -> AdaptiveQuantile:
        """Return the rule of the next step, the norm kept inside its domain."""
        factor = math.exp(
            -self.learning_rate * (min(1.0, max(0.0, noisy_fraction)) - self.quantile)
        )
        return replace(self, clipping_norm=min(1e18, max(1e-18, self.clipping_norm * factor)))


ClippingLike: TypeAlias = "float | Clipping"


def as_clipping(value: ClippingLike) -> Clipping:
    """Return the rule itself, or flat clipping for a number."""
    if isinstance(value, Clipping):
        return value
    wanted, advice = "a number or a clipping rule", "For one norm a layer use PerLayer"
    number = checks.real(CLIPPING_NORM, value)
    return Flat(checks.instance("clipping_norm", number, float, wanted, advice))
