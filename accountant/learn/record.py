"""What a run has spent: releases of one kind, and the ε they add up to."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from accountant import checks
from accountant.errors import AccountantError, ArgumentTypeError, BudgetExceeded, DomainError
from accountant.quick import calibrate_sigma, calibrate_steps, get_epsilon, get_rdp
from accountant.search import DOUBLES, boundary

if TYPE_CHECKING:
    from collections.abc import Callable

    from accountant.ledger import Accountant
    from accountant.mechanisms.base import Mechanism

__all__ = ["Release", "TrainingRecord", "as_record"]

MOST_STEPS = 2**30
ORDERS = np.unique(np.concatenate([np.arange(2, 65), np.round(np.geomspace(64, 4096, 60))]))


@dataclass(frozen=True)
class Release:
    """One step: a noisy sum over a Poisson sample.

    Attributes
    ----------
    noise : {"gaussian", "discrete_gaussian"}
        The law of the noise; it decides which analysis applies.
    sampling_probability, noise_multiplier : float
        q, and the noise's standard deviation over the sensitivity.
    """

    noise: str
    sampling_probability: float
    noise_multiplier: float

    def epsilon(self, steps: int, delta: float) -> float:
        """Return the certified ε of ``steps`` such releases."""
        q, sigma = self.sampling_probability, self.noise_multiplier
        if steps and sigma == 0.0:
            return math.inf
        if self.noise == "gaussian" or steps == 0:
            return get_epsilon(q, max(sigma, 5e-324), steps, delta)
        return float((steps * self.mechanism()).epsilon(delta))

    def mechanism(self) -> Mechanism:
        """Return the release as a mechanism, for a ledger of all kinds of them."""
        from accountant.mechanisms import DiscreteGaussianVector, Gaussian
        from accountant.sampling.poisson import PoissonSampled

        kind = Gaussian if self.noise == "gaussian" else DiscreteGaussianVector
        step = kind(self.noise_multiplier)
        q = self.sampling_probability
        return step if q == 1.0 else PoissonSampled(step, q)

    @classmethod
    def calibrated(cls, noise: str, epsilon: float, delta: float, q: float, steps: int) -> Release:
        """Return the release with the least noise whose ``steps`` uses stay within ``epsilon``."""
        if noise == "gaussian":
            return cls(noise, q, calibrate_sigma(epsilon, delta, q, steps))
        checks.real(checks.TARGET_EPS, epsilon)
        checks.real(checks.TARGET_DELTA, delta)

        def cost(sigma: float) -> float:
            return cls(noise, q, sigma).epsilon(steps, delta)

        guess = _first_guess(epsilon, delta, q, steps)
        rank = boundary(
            cost, epsilon, DOUBLES, guess, DOUBLES.rank(1e12), DOUBLES.rank(guess * 1e-3)
        )
        if rank is None:
            raise DomainError(f"no noise multiplier reaches epsilon = {epsilon!r}")
        return cls(noise, q, DOUBLES.value(rank))


def _first_guess(epsilon: float, delta: float, q: float, steps: int) -> float:
    """Return a noise multiplier near the one wanted, by a curve that is evaluated fast."""
    low, high = 1e-2, 1.0
    while high < 1e9 and _renyi_epsilon(q, high, steps, delta) > epsilon:
        low, high = high, 2.0 * high
    for _ in range(20):
        middle = math.sqrt(low * high)
        fits = _renyi_epsilon(q, middle, steps, delta) <= epsilon
        low, high = (low, middle) if fits else (middle, high)
    return high


def _renyi_epsilon(q: float, sigma: float, steps: int, delta: float) -> float:
    """Return ε of Poisson-sampled discrete Gaussians, by integer Rényi orders (Theorem T7).

    Fast and all but that of :class:`~accountant.mechanisms.DiscreteGaussianVector`: for a search.
    """
    orders = ORDERS
    divergence = np.asarray(get_rdp(q, sigma, steps, orders.astype(np.float64)))
    # Canonne, Kamath and Steinke (2020), Proposition 12.
    epsilon = divergence + np.log1p(-1.0 / orders) - np.log(delta * orders) / (orders - 1.0)
    return max(0.0, float(np.min(epsilon)) * (1.0 + 1e-12) + 1e-12)


def _most_steps(fits: Callable[[int], bool]) -> int:
    """Return the largest number of steps, up to a billion, that ``fits``."""
    low, high = 0, 1
    while high < MOST_STEPS and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@dataclass
class TrainingRecord:
    """The ledger of training runs: how many releases of each kind were made.

    Parameters
    ----------
    budget_epsilon, budget_delta : float, optional
        A budget; a charge that would exceed it is refused with
        :class:`~accountant.errors.BudgetExceeded` and nothing is charged.
    counts : dict, optional
        What was spent before.
    accountant : Accountant, optional
        A ledger that is charged along, and may refuse by its own budget. What ``counts`` holds at
        first is taken to be no part of it.
    """

    budget_epsilon: float | None = None
    budget_delta: float | None = None
    counts: dict[Release, int] = field(default_factory=dict)
    accountant: Accountant | None = None
    # Those of the counts that the accountant holds as well.
    _shared: dict[Release, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if (self.budget_epsilon is None) != (self.budget_delta is None):
            raise DomainError("a budget needs both epsilon and delta")

    @property
    def has_budget(self) -> bool:
        """Whether something says how much may be spent."""
        own = self.budget_epsilon is not None
        return own or (self.accountant is not None and self.accountant.budget is not None)

    def charge(
        self, release: Release, steps: int = 1, label: str = "DP-SGD", delta: float = 0.0
    ) -> None:
        """Record ``steps`` releases, before they are made, and the δ they are stated at if any."""
        self._require_own(release, steps)
        if self.accountant is not None:
            if delta > 0.0:
                self.accountant.note_delta(delta)
            self.accountant.compose(release.mechanism(), steps, label)
            self._shared[release] = self._shared.get(release, 0) + steps
        self.counts[release] = self.counts.get(release, 0) + steps

    def require(self, release: Release, steps: int) -> None:
        """Raise when ``steps`` more releases would exceed a budget."""
        self._require_own(release, steps)
        if self.accountant is None or self.accountant.budget is None or not steps:
            return
        allowed = self.accountant.affordable(release.mechanism())
        if steps > allowed:
            raise BudgetExceeded(
                f"{steps} steps would exceed {self.accountant.budget!r}, which allows {allowed}"
                " such steps more; nothing was charged. Use fewer steps or more noise"
            )

    def catch_up(self, release: Release, steps: int) -> None:
        """Take over ``steps`` releases that a resumed run has made, unless they are here already.

        They have happened: no budget is asked.
        """
        self.counts[release] = max(steps, self.counts.get(release, 0))

    def catch_up_accountant(self, release: Release, steps: int, label: str) -> None:
        """Charge the accountant for those of a resumed run's steps that it does not know of.

        Another run's steps of the same kind do not count: the label tells them apart.
        """
        if self.accountant is None:
            return
        known = sum(entry.count for entry in self.accountant.history if entry.label == label)
        if steps > known:
            self.accountant.compose(release.mechanism(), steps - known, label)
        self._shared[release] = max(steps, self._shared.get(release, 0))

    def _require_own(self, release: Release, steps: int) -> None:
        if self.budget_epsilon is None or self.budget_delta is None:
            return
        after = self.counts | {release: self.counts.get(release, 0) + steps}
        spent = _total(after, self.budget_delta)
        if not (spent <= self.budget_epsilon):
            raise BudgetExceeded(
                f"{steps} steps would spend epsilon = {spent:.6g} in all, more than the budget of"
                f" {self.budget_epsilon:g} at delta = {self.budget_delta:g}; nothing was charged."
                " Use fewer steps or more noise"
            )

    def affordable(self, release: Release) -> int:
        """Return how many such releases the budget still allows."""
        if self.accountant is not None and self.accountant.budget is not None:
            return self.accountant.affordable(release.mechanism())
        if self.budget_epsilon is None or self.budget_delta is None:
            raise DomainError("this ledger has no budget, so it allows any number of steps")
        epsilon, delta = self.budget_epsilon, self.budget_delta
        others = {kind: n for kind, n in self.counts.items() if n and kind != release}
        if not others and release.noise == "gaussian":
            allowed = calibrate_steps(
                epsilon, delta, q=release.sampling_probability, sigma=release.noise_multiplier
            )
        elif release.sampling_probability == 0.0:
            allowed = MOST_STEPS
        else:
            allowed = _most_steps(lambda n: _total(others | {release: n}, delta) <= epsilon)
        return max(0, allowed - self.counts.get(release, 0))

    def epsilon(self, delta: float) -> float:
        """Return the certified ε of everything recorded, under add-or-remove.

        That is of all that ``accountant`` holds, by whomever it was charged, and of what this
        record knows besides; infinite where no bound can be certified.
        """
        rest = {kind: n - self._shared.get(kind, 0) for kind, n in self.counts.items()}
        held = () if self.accountant is None else self.accountant.counts
        try:
            return _total(rest, delta, held)
        except AccountantError:
            # A run has been made by now; what it cost may be too dear, but it is not nothing.
            return math.inf

    def describe(self) -> list[dict[str, Any]]:
        """Return the entries as JSON values."""
        return [
            {
                "noise": release.noise,
                "sampling_probability": release.sampling_probability,
                "noise_multiplier": release.noise_multiplier,
                "steps": steps,
            }
            for release, steps in self.counts.items()
        ]


def as_record(ledger: object) -> TrainingRecord:
    """Return a record for the ``ledger`` argument of a trainer."""
    if ledger is None:
        return TrainingRecord()
    if isinstance(ledger, TrainingRecord):
        return ledger
    from accountant.ledger import Accountant

    if isinstance(ledger, Accountant):
        return TrainingRecord(accountant=ledger)
    raise ArgumentTypeError(
        f"ledger must be an Accountant or a TrainingRecord; got a {type(ledger).__name__}"
    )


def _total(
    counts: dict[Release, int], delta: float, held: tuple[tuple[Mechanism, int], ...] = ()
) -> float:
    """Bound ε(delta) of the steps in ``counts``, together with counted mechanisms."""
    from accountant.ledger import evaluation

    made = {release: steps for release, steps in counts.items() if steps > 0}
    if not held and len(made) <= 1:
        return max((release.epsilon(steps, delta) for release, steps in made.items()), default=0.0)
    if any(release.noise_multiplier == 0.0 for release in made):
        return math.inf
    parts = [(release.mechanism(), steps) for release, steps in made.items()]
    return evaluation.epsilon((*held, *parts), delta)
