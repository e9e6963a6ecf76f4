"""The result of an audit: the lower bound on ε and the claimed ε."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.display import text_down, text_up
from accountant.audit.two_sample import ErrorRates

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
