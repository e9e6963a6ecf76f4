"""What is claimed, as a certified trade-off curve, and what an audit found."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from accountant._basics.arrays import FloatArray
from accountant._basics.display import text_down, text_up
from accountant.audit.one_run import Curve
from accountant.audit.two_sample import (
    ErrorRates,
    epsilon_from_rates,
    error_rates,
    gaussian_epsilon,
    mu_from_rates,
)
from accountant.errors import DomainError
from accountant.mechanisms.base import Mechanism
from accountant.quick import epsilon_bounds, get_delta, get_epsilon
from accountant.search import narrow

BISECTIONS = 8  # Steps of the search for the noise that is refuted: each is an account.


@dataclass(frozen=True)
class NoiseFamily:
    """DP-SGD with the noise left open: Poisson sampling, Gaussian noise, a number of steps.

    Parameters
    ----------
    sampling_probability : float
        q; 1 for full batches, and for a plain Gaussian mechanism.
    steps : int
        Releases.
    noise_multiplier : float
        The one claimed.

    Notes
    -----
    *Guarantee.* :meth:`epsilon_lower` is the ε of the family's member with the least noise that the
    observations refute, so it exceeds the claimed ε only if they refute the claimed curve
    (docs/theorems_audit.md, Theorems A4 and A6). It is no statement about mechanisms outside the
    family beyond that.
    """

    sampling_probability: float
    steps: int
    noise_multiplier: float

    @property
    def curve(self) -> TradeoffCurve:
        """The certified curve of the claim."""
        return _certified(self.sampling_probability, self.noise_multiplier, self.steps)

    def __call__(self, fpr: object) -> Any:
        """Return the claim's certified bound on the false-negative rate; slow the first time."""
        return self.curve(fpr)

    def epsilon_lower(self, rates: Sequence[ErrorRates], delta: float) -> float:
        """Return the ε at ``delta`` that the error rates refute, rounded down."""
        if self.sampling_probability == 1.0:
            mu = max(mu_from_rates(rate.fpr, rate.fnr) for rate in rates)
            return gaussian_epsilon(mu, delta)
        return self.least_refuted(lambda curve: any(curve(r.fpr) > r.fnr for r in rates), delta)

    def least_refuted(self, refuted: Callable[[Curve], bool], delta: float) -> float:
        """Return ε at ``delta`` of the least noise whose curve is refuted, 0 if none is."""

        def fails(sigma: float) -> bool:
            return refuted(_certified(self.sampling_probability, sigma, self.steps))

        low = high = self.noise_multiplier
        searches = BISECTIONS
        if fails(high):
            # The claim is refuted. By how much matters less, and accounts of little noise are slow.
            searches = 4
            low = 0.8 * high
            while low > 1e-2 and fails(low):
                low, high = 0.8 * low, low
        else:
            while not fails(high):
                low, high = high, 2.0 * high
                if high > 1e4 * self.noise_multiplier:
                    return 0.0
        high, _ = narrow(fails, high, low, searches, geometric=True)
        return float(epsilon_bounds(self.sampling_probability, high, self.steps, delta).lower)


def two_sample_bound(
    without: object, with_canary: object, family: NoiseFamily | None, delta: float, **given: Any
) -> tuple[float, tuple[ErrorRates, ...]]:
    """Return the ε at ``delta`` that two samples refute, and the error rates it is read off.

    By the curve of a family where there is one (A6), else by Clopper-Pearson (A5); other arguments
    are those of :func:`~accountant.audit.error_rates`.
    """
    goal = None if family is not None else partial(epsilon_from_rates, delta=delta)
    rates = error_rates(without, with_canary, objective=goal, **given)
    if family is not None:
        return family.epsilon_lower(rates, delta), rates
    return max(epsilon_from_rates(rate.fpr, rate.fnr, delta) for rate in rates), rates


@lru_cache(maxsize=512)  # repeated audits of one setting bisect through the same noises
def _certified(q: float, noise_multiplier: float, steps: int) -> TradeoffCurve:
    return TradeoffCurve.of_dp_sgd(q, noise_multiplier, steps)


LINES = 48  # Supporting lines of a curve, evenly spaced in ε: any number is sound.
FAR = 1e-7  # Lines of smaller δ matter only to a test with millions of observations.
# The value of a line, in [0, 1], is off by less.
SLACK = 1e-14


class TradeoffCurve:
    """A lower bound on the false-negative rate of every test between neighbours.

    Parameters
    ----------
    epsilons, deltas : array_like of shape (k,)
        Guarantees: the mechanism is (epsilons[j], deltas[j])-differentially private, for all j, in
        both directions.

    Notes
    -----
    *Guarantee.* At false-positive rate x, ``curve(x)`` is at most what any test must miss, for it
    is the largest of the bounds by the single guarantees (docs/theorems_audit.md, Theorem A4).
    The bounds are their own inverses, so the curve bounds both directions.

    Examples
    --------
    >>> curve = TradeoffCurve([0.0, 1.0], [0.5, 0.0])
    >>> round(float(curve(0.2)), 6)
    0.456344
    """

    def __init__(self, epsilons: ArrayLike, deltas: ArrayLike) -> None:
        self.epsilons = np.asarray(epsilons, dtype=np.float64).ravel()
        self.deltas = np.asarray(deltas, dtype=np.float64).ravel()
        good = (
            self.epsilons.size == self.deltas.size > 0
            and bool((self.epsilons >= 0.0).all())
            and bool(((self.deltas >= 0.0) & (self.deltas <= 1.0)).all())
        )
        if not good:
            raise DomainError("a curve needs guarantees with epsilon >= 0 and delta in [0, 1]")
        with np.errstate(over="ignore"):
            self._steep = np.exp(self.epsilons)
        self._flat = np.exp(-self.epsilons)

    @classmethod
    def of(cls, mechanism: Mechanism) -> TradeoffCurve:
        """Return the curve of a mechanism, from its certified profile."""
        return cls._of_profile(
            lambda e: np.array([mechanism.delta(x) for x in e.tolist()]), mechanism.epsilon(FAR)
        )

    @classmethod
    def of_dp_sgd(cls, q: float, noise_multiplier: float, steps: int) -> TradeoffCurve:
        """Return the curve of DP-SGD under Poisson sampling, from its certified profile."""
        return cls._of_profile(
            lambda e: np.asarray(get_delta(q, noise_multiplier, steps, e)),
            get_epsilon(q, noise_multiplier, steps, FAR),
        )

    @classmethod
    def _of_profile(cls, profile: Callable[[FloatArray], FloatArray], far: float) -> TradeoffCurve:
        far = min(far, 700.0) if math.isfinite(far) else 700.0
        # Dense where the curve bends: a uniform grid, and a geometric one near zero.
        epsilons = np.unique(
            np.concatenate([[0.0], np.geomspace(1e-3, 1.0, 20) * far, np.linspace(0, far, LINES)])
        )
        return cls(epsilons, np.minimum(1.0, profile(epsilons)))

    def __call__(self, fpr: object) -> Any:
        """Return the lower bound at false-positive rates in [0, 1], of the same shape."""
        x = np.asarray(fpr, dtype=np.float64)[..., None]
        top = 1.0 - self.deltas
        with np.errstate(invalid="ignore"):
            steep = np.where(x > 0.0, top - self._steep * x, top)
        best = np.maximum(steep, self._flat * (top - x)).max(axis=-1)
        bound = np.maximum(0.0, best - SLACK)
        return float(bound) if bound.ndim == 0 else bound


_LOOKED = {
    "both": "scores looked at both ways",
    "higher": "high scores accused",
    "lower": "low scores accused",
}


@dataclass(frozen=True, eq=False)
class Observations:
    """Scores under the two data sets, for the picture and for further analysis.

    Attributes
    ----------
    without, with_canary : ndarray
        Of which either the high or the low ones indicate the canary.
    """

    without: FloatArray
    with_canary: FloatArray

    def empirical_tradeoff(self) -> tuple[FloatArray, FloatArray]:
        """Return false-positive and false-negative rates of all thresholds, as observed.

        Of tests that accuse high scores, or low ones where those with the canary are lower.
        """
        way = 1.0 if np.median(self.with_canary) >= np.median(self.without) else -1.0
        low, high = np.sort(way * self.without), np.sort(way * self.with_canary)
        cuts = np.unique(np.concatenate([[-np.inf], low, high]))
        alarms = low.size - np.searchsorted(low, cuts, side="right")
        misses = np.searchsorted(high, cuts, side="right")
        return alarms / low.size, misses / high.size


@dataclass(frozen=True)
class AuditReport:
    """The lower bound on ε and the claimed ε.

    Attributes
    ----------
    name : str
        What was audited.
    epsilon_lower : float
        In nats; a lower confidence bound, or for an exact audit a lower bound.
    epsilon_claimed : float
        The claim at the same δ.
    delta : float
        Of both.
    confidence : float
        An honest mechanism has ``epsilon_lower <= epsilon_claimed`` with at least this
        probability; 1 for exact audits.
    method : str
        The bound, with its theorem in docs/theorems_audit.md.
    observations : Observations, optional
        The scores.
    rates : tuple of ErrorRates
        The bounded error rates the result is read off.
    curve : callable, optional
        The claim's certified bound on the false-negative rate at a false-positive rate.
    direction : {"both", "higher", "lower", ""}
        Which scores were taken to indicate the canary; empty for exact audits, which have none.
    seeded : bool
        Whether the randomness came from a seed, so that the audit can be repeated.
    """

    name: str
    epsilon_lower: float
    epsilon_claimed: float
    delta: float
    confidence: float
    method: str
    observations: Observations | None = field(default=None, repr=False)
    rates: tuple[ErrorRates, ...] = field(default=(), repr=False)
    curve: Callable[[Any], Any] | None = field(default=None, repr=False)
    direction: str = ""
    seeded: bool = False

    @property
    def flagged(self) -> bool:
        """Whether the claim is refuted."""
        return not (self.epsilon_lower <= self.epsilon_claimed)

    @property
    def ratio(self) -> float:
        """``epsilon_lower / epsilon_claimed``."""
        if self.epsilon_claimed == 0.0:
            return float("inf") if self.epsilon_lower > 0.0 else 1.0
        return self.epsilon_lower / self.epsilon_claimed

    def __str__(self) -> str:
        """Return one line: the lower bound rounded down, the claim rounded up."""
        verdict = "REFUTED" if self.flagged else "not refuted"
        sure = "exact" if self.confidence == 1.0 else f"{100 * self.confidence:g} % confidence"
        looked = f", {_LOOKED[self.direction]}" if self.direction else ""
        return (
            f"{self.name}: ε ≥ {text_down(self.epsilon_lower, 4)} beside claimed"
            f" ε = {text_up(self.epsilon_claimed, 4)} at δ = {self.delta:g} ({sure},"
            f" {self.method}{looked}): {verdict}"
        )

    def plot(self, path: Path) -> None:
        """Save the observed trade-off beside the certified curve. Needs matplotlib.

        Raises
        ------
        UnsupportedError
            Without matplotlib, or for an audit without observations.
        """
        from accountant.errors import UnsupportedError
        from accountant.plots import save_tradeoff

        if self.observations is None:
            raise UnsupportedError(f"the audit of {self.name} has no observations to plot")
        grid = np.concatenate([np.geomspace(1e-6, 1e-2, 200), np.linspace(0.01, 1.0, 400)])
        save_tradeoff(
            path,
            observed=self.observations.empirical_tradeoff(),
            certified=None if self.curve is None else (grid, self.curve(grid)),
            bounded=[(rate.fpr, rate.fnr) for rate in self.rates],
            title=f"{self.name}: ε ≥ {text_down(self.epsilon_lower, 4)},"
            f" claimed {text_up(self.epsilon_claimed, 4)}",
        )
