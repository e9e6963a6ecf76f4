"""Bounds on attackers, from finitely many certified points of the profile."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from accountant.analyses import tradeoff

# False-positive rates and priors of the plain-language part.
FPRS = (0.001, 0.01, 0.05)
PRIORS = (0.01, 0.1, 0.5)
# The share of releases of which the posterior may be higher.
FAILURE = 0.05


@dataclass(frozen=True)
class Attack:
    """An upper bound on the true-positive rate at one false-positive rate."""

    false_positive_rate: float
    true_positive_rate: float


@dataclass(frozen=True)
class Guess:
    """Bounds on what an attacker learns who has a prior probability.

    Attributes
    ----------
    prior : float
        Probability that the record was used, before the release.
    accuracy : float
        Bound on the probability of guessing right with the release; max(prior, 1 - prior) without.
    posterior : float
        Bound on the posterior, that a release exceeds with probability at most ``failure``.
    failure : float
        See above.
    """

    prior: float
    accuracy: float
    posterior: float
    failure: float


class SampledProfile:
    """An upper bound on a privacy profile, from upper bounds at some points.

    The profile is convex in e^ε, so a chord between two upper bounds is one; beyond the last point
    the profile only falls (Theorem R1 of docs/theorems_report.md).

    Parameters
    ----------
    points : iterable of (float, float)
        ε >= 0 and an upper bound on δ(ε); points at an infinite ε are left out.
    """

    def __init__(self, points: Iterable[tuple[float, float]]) -> None:
        least: dict[float, float] = {0.0: 1.0}
        for epsilon, delta in points:
            if epsilon < math.inf:
                least[epsilon] = min(delta, least.get(epsilon, 1.0))
        self._epsilons = sorted(least)
        bounds = [least[epsilon] for epsilon in self._epsilons]
        # The profile does not increase: an earlier bound holds for all that follow.
        for k in range(1, len(bounds)):
            bounds[k] = min(bounds[k], bounds[k - 1])
        self._deltas = bounds

    def __call__(self, epsilon: float) -> float:
        """Return an upper bound on δ(epsilon), epsilon >= 0."""
        right = bisect.bisect_left(self._epsilons, epsilon)
        if right == len(self._epsilons):
            return self._deltas[-1]
        if self._epsilons[right] == epsilon:
            return self._deltas[right]
        a, b = self._epsilons[right - 1], self._epsilons[right]
        # (e^ε - e^a) / (e^b - e^a), rounded down: a smaller weight of the smaller end is safe.
        weight = math.expm1(epsilon - a) / math.expm1(b - a) if b - a < 700.0 else 0.0
        weight = max(weight * (1.0 - 1e-12), 0.0)
        high, low = self._deltas[right - 1], self._deltas[right]
        return min((high - weight * (high - low)) * (1.0 + 1e-15), high)


def attacks(profile: SampledProfile, rates: Sequence[float]) -> tuple[Attack, ...]:
    """Bound the true-positive rate at each false-positive rate."""
    return tuple(Attack(fpr, tradeoff.attack_tpr(fpr, profile)) for fpr in rates)


def guesses(profile: SampledProfile) -> tuple[Guess, ...]:
    """Bound the accuracy and the posterior for each prior of PRIORS."""
    return tuple(
        Guess(
            prior,
            tradeoff.bayes_accuracy(prior, profile),
            tradeoff.posterior_bound(prior, FAILURE, profile),
            FAILURE,
        )
        for prior in PRIORS
    )
