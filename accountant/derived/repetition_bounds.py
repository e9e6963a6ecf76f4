"""Bounds on the best of a random number of runs, from bounds on one run (Theorems P4 to P6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from accountant._rounding import U, lift, up
from accountant.analyses.profile import Profile
from accountant.analyses.renyi_conversion import log_deltas
from accountant.environment import to_nearest
from accountant.pairs.profile_pair import ProfileBounds, least_point, rdp_bound

# Rényi orders at which Theorems P5 and P6 are converted for the profile.
ORDERS = tuple(1.0 + math.exp(0.12 * k) for k in range(-25, 60))


@dataclass(frozen=True)
class BestOfRunsBounds:
    """Bounds on the best of a negative binomial number of runs, from bounds on one run.

    Parameters
    ----------
    profile : Profile
        Of one run.
    gamma, eta : float
        Of the distribution of the number of runs.
    """

    profile: Profile
    gamma: float
    eta: float

    def rdp(self, order: float) -> float:
        """Bound D_order by Theorem P5."""
        one = self.profile.rdp(order)
        most = excess(self.profile, self.gamma, self.eta)
        term = _rdp_term(self.profile, self.gamma)
        choice = min(most, up((1.0 + self.eta) * term, 4.0))
        return up(one + math.log(mean_runs(self.gamma, self.eta)) / (order - 1.0) + choice, 16.0)

    def delta(self, epsilon: float) -> float:
        """Bound the profile at ``epsilon`` by Theorem P4, or P5."""
        shifted = epsilon - excess(self.profile, self.gamma, self.eta)
        runs = mean_runs(self.gamma, self.eta)
        near = runs * self.profile.delta(shifted) if shifted >= 0.0 else 1.0
        pure = response_delta(self.pure_epsilon, epsilon)
        return up(min(near, pure, _converted(self, epsilon)), 4.0)

    @property
    def pure_epsilon(self) -> float:
        """A bound on the loss: one run's, plus the excess."""
        pure = self.profile.pure_epsilon
        if pure == math.inf:
            return pure
        return up(pure + excess(self.profile, self.gamma, self.eta), 4.0)


@dataclass(frozen=True)
class BestOfPoissonRunsBounds:
    """Bounds on the best of a Poisson number of runs, from bounds on one run.

    Parameters
    ----------
    profile : Profile
        Of one run.
    mean : float
        Of the number of runs.
    """

    profile: Profile
    mean: float

    def rdp(self, order: float) -> float:
        """Bound D_order by Theorem P6."""
        one = self.profile.rdp(order)
        below, m = order - 1.0, self.mean
        distance = self.profile.delta(max(math.log1p(1.0 / below) * (1.0 - 8.0 * U), 0.0))
        exponent = below * (one + m * distance) + math.log(m)
        # The fixed output of no run has mass e^{-m} and no loss.
        total = max(exponent, -m) + math.log1p(math.exp(-abs(exponent + m)))
        size = below * (one + m * distance) + abs(math.log(m)) + m + 1.0
        return max((total + 16.0 * U * size) / below * (1.0 + 4.0 * U), 0.0)

    def delta(self, epsilon: float) -> float:
        """Bound the profile at ``epsilon`` by Theorem P6."""
        shifted = epsilon - up(self.mean * self.profile.delta(0.0), 4.0)
        near = self.mean * self.profile.delta(shifted) if shifted >= 0.0 else 1.0
        pure = response_delta(self.pure_epsilon, epsilon)
        return up(min(near, pure, _converted(self, epsilon)), 4.0)

    @property
    def pure_epsilon(self) -> float:
        """Return a bound on the loss: one run's, plus m times the total variation."""
        return up(self.profile.pure_epsilon + self.mean * self.profile.delta(0.0), 8.0)


@dataclass(frozen=True)
class FirstAboveThresholdBounds:
    """Bounds on the first run that reaches a threshold, from bounds on one run (Theorem P19).

    Parameters
    ----------
    profile : Profile
        Of one run.
    gamma : float
        The probability of stopping after a run that has not reached it.
    """

    profile: Profile
    gamma: float

    @property
    def excess(self) -> float:
        """Return c, the loss that the runs before the last one add."""
        return excess(self.profile, self.gamma, 0.0)

    def rdp(self, order: float) -> float:
        """Bound D_order."""
        runs = -math.log(self.gamma) / (order - 1.0)
        return up(self.profile.rdp(order) + self.excess + runs, 16.0)

    def delta(self, epsilon: float) -> float:
        """Bound the profile at ``epsilon``."""
        shifted = epsilon - self.excess
        near = self.profile.delta(shifted) / self.gamma if shifted >= 0.0 else 1.0
        pure = response_delta(self.pure_epsilon, epsilon)
        return up(min(near, pure, _converted(self, epsilon)), 4.0)

    @property
    def pure_epsilon(self) -> float:
        """A bound on the loss: one run's, plus the excess."""
        return up(self.profile.pure_epsilon + self.excess, 4.0)


@dataclass(frozen=True)
class AnyOfBounds:
    """The largest bound of several mechanisms (Theorem P18)."""

    profiles: tuple[Profile, ...]

    def rdp(self, order: float) -> float:
        """Bound D_order of each."""
        return max(each.rdp(order) for each in self.profiles)

    def delta(self, epsilon: float) -> float:
        """Bound the profile of each at ``epsilon``."""
        return max(each.delta(epsilon) for each in self.profiles)

    @property
    def pure_epsilon(self) -> float:
        """A bound on the loss of each."""
        return max(each.pure_epsilon for each in self.profiles)


@to_nearest
def mean_runs(gamma: float, eta: float) -> float:
    """Return E[K] of the truncated negative binomial distribution, rounded up."""
    log = -math.log(gamma)
    if log == 0.0:
        return 1.0
    # η(1-γ)/(γ(1-γ^η)), and its limit at η = 0, or next to it.
    share = log if abs(eta * log) < 1e-20 else -math.expm1(-eta * log) / eta
    return max(up((1.0 - gamma) / (gamma * share), 32.0 + 8.0 * abs(eta) * log), 1.0)


@lru_cache(maxsize=64)
def excess(profile: Profile, gamma: float, eta: float) -> float:
    """Return (1+η)·c, rounded up (Theorem P4)."""
    return up((1.0 + eta) * _contrast(profile, gamma), 4.0)


@lru_cache(maxsize=64)
def _contrast(profile: Profile, gamma: float) -> float:
    """Return a c with δ(c) <= γ(e^c - 1)/(1 - γ), nearly the least."""
    odds = gamma / (1.0 - gamma) * (1.0 - 8.0 * U)

    def holds(c: float) -> bool:
        return profile.delta(c) <= odds * math.expm1(min(c, 700.0)) * (1.0 - 8.0 * U)

    return least_point(holds)


@lru_cache(maxsize=64)
def _rdp_term(profile: Profile, gamma: float) -> float:
    """Return the least of (1 - 1/λ)·D_λ + log(1/γ)/λ over orders λ >= 1, rounded up."""
    log = -math.log(gamma)

    def term(x: float) -> float:
        order = 1.0 + math.exp(x)
        return (1.0 - 1.0 / order) * profile.rdp(order) + log / order

    best = min((-6.0 + 0.5 * k for k in range(33)), key=term)
    fine = [best + 0.05 * k for k in range(-10, 11)]
    return up(min(log, *(term(x) for x in fine)), 32.0)


@lru_cache(maxsize=64)
def _curve(bounds: ProfileBounds) -> NDArray[np.float64]:
    """Return rows of order - 1 and a bound on the divergence, where the bound is finite."""
    rows = [(order - 1.0, rdp_bound(bounds, order)) for order in ORDERS]
    return np.array([row for row in rows if row[1] < 1e300]).reshape(-1, 2)


def response_delta(bound: float, epsilon: float) -> float:
    """Bound δ(epsilon), epsilon >= 0, of losses of at most ``bound`` either way (Theorem M10)."""
    if not epsilon < bound < 600.0:
        return 0.0 if epsilon >= bound else 1.0
    # (e^b - e^ε)/(1 + e^b).
    return up(-math.expm1(epsilon - bound) / (1.0 + math.exp(-bound)), 8.0)


def _converted(bounds: ProfileBounds, epsilon: float) -> float:
    """Bound the profile by the Rényi divergences at a list of orders (Theorem C10)."""
    below, rho = _curve(bounds).T
    exponents = log_deltas(rho, 1.0 + below, epsilon)
    # A logarithm above -745 is the sum of terms of that size, so it is wrong by less than 1e-12;
    # below that exp underflows, and lift covers the error.
    return lift(math.exp(min([0.0, *exponents.tolist()])) * (1.0 + 5e-10))
