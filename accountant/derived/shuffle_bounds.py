"""The profile of shuffled reports: from above by the blanket, from below by actual other users.

Between two answers, from above for all that the others may have answered.
docs/theorems_shuffling.md, Theorems H1, H2 and H4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from accountant.derived import report_laws
from accountant.derived.binary_reports import two_answers
from accountant.derived.report_laws import ReportLaw
from accountant.derived.report_sum import Fineness
from accountant.errors import UnsupportedError
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.laplace import Laplace
from accountant.mechanisms.stated_guarantees import RandomizedResponse
from accountant.pairs.base import DominatingPair

Randomizer = RandomizedResponse | Laplace | Gaussian

FINE, ROUGH = Fineness(0.001, 300, 1e-6, 2000), Fineness(0.006, 80, 1e-2, 200)
# Deviations of a normal loss at which its tail is left out, in turn, and where knots are dense.
TAILS, DENSE = (7.0, 9.5, 13.4), 4.0
# Of the search for an ε: rounds, the relative step of slopes, first distance, and when to stop.
STEPS, TRIES, STEP, CLOSE, SURE, FARTHEST = 60, 14, 1e-3, 1e-7, 1e-4, 600.0


@dataclass(frozen=True)
class BlanketBounds:
    """Upper bounds on the profile of ``users`` shuffled reports (Theorems H1 and H4).

    Parameters
    ----------
    randomizer : RandomizedResponse, Laplace or Gaussian
        Of one user.
    users : int
        n.
    """

    randomizer: Randomizer
    users: int

    def delta(self, epsilon: float) -> float:
        """Bound the profile at ``epsilon`` >= 0, roughly."""
        return self.bound(epsilon, ROUGH)

    def bound(self, epsilon: float, fineness: Fineness) -> float:
        """Bound the profile at ``epsilon`` >= 0 from above."""
        if epsilon >= self.pure_epsilon:
            return 0.0
        # What one user reports tells more than where it is among the others' reports.
        alone = float(self.local.profile(epsilon).upper)
        return min(alone, self._evaluated(epsilon, fineness))

    def _evaluated(self, epsilon: float, fineness: Fineness) -> float:
        one = self.randomizer
        if isinstance(one, RandomizedResponse) and one.k == 2:
            return two_answers(one.epsilon0, self.users, epsilon, fineness.groups)
        found = 1.0
        for law in self._laws(fineness.knots):
            found = report_laws.excess(law, self.users, epsilon, fineness, upper=True)
            if law.left_out <= fineness.negligible * found:
                break
        return found

    def _laws(self, knots: int) -> tuple[ReportLaw, ...]:
        one, pair = self.randomizer, self.local
        if isinstance(one, RandomizedResponse):
            return (report_laws.kary_blanket(one.epsilon0, one.k),)
        if isinstance(one, Laplace):
            most = self.pure_epsilon * (1.0 + 1e-12)
            return (report_laws.blanket(pair, most, most, knots),)
        mu = pair.mu
        middle = 0.5 * mu * mu + DENSE * mu
        return tuple(
            report_laws.blanket(pair, middle, 0.5 * mu * mu + tail * mu, knots) for tail in TAILS
        )

    @property
    def local(self) -> DominatingPair:
        """The pair of one report."""
        return self.randomizer.pairs()[0]

    @property
    def pure_epsilon(self) -> float:
        """The bound on the loss of one report."""
        return float(self.local.pure_epsilon)

    def rdp(self, order: float) -> float:
        """Refuse: the atoms of the profile give the curve."""
        raise UnsupportedError("the curve is that of the profile")


def others_law(randomizer: RandomizedResponse | Laplace, knots: int, *, reverse: bool) -> ReportLaw:
    """Return the law of a report when all other users have one value (Theorem H2)."""
    if isinstance(randomizer, RandomizedResponse):
        return report_laws.kary_others(randomizer.epsilon0, randomizer.k, reverse=reverse)
    pair = randomizer.pairs()[0]
    most = float(pair.pure_epsilon)
    return report_laws.others(pair, most, most, knots, reverse=reverse)


def epsilon_at(
    delta: float, rough: Callable[[float], float], fine: Callable[[float], float], *, upper: bool
) -> float | None:
    """Return an ε where ``fine`` is at most ``delta``, or for a lower end is above it.

    The search goes by ``rough``; None where it finds none.
    """
    guess = _crossing(delta, rough)
    if guess is None:
        return None
    here, beside = fine(guess), rough(guess * (1.0 + STEP))
    known = rough(guess)
    if min(here, beside, known) > 0.0 and known > beside:
        slope = math.log(known / beside) / STEP
        guess *= 1.0 + min(max(math.log(here / delta) / slope, -0.5), 1.0)
    for k in range(TRIES):
        moved = CLOSE * 4.0**k
        at = guess * (1.0 + moved if upper else 1.0 - moved)
        if at <= 0.0:
            break
        value = fine(at)
        if value <= delta if upper else value > delta:
            return at
    return None


def _crossing(delta: float, rough: Callable[[float], float]) -> float | None:
    """Return roughly where a falling function is ``delta``."""

    def height(epsilon: float) -> float:
        return math.log(max(rough(epsilon), 1e-300) / delta)

    low, high, at = 0.0, math.inf, 1e-3
    above, below = height(0.0), -math.inf
    for _ in range(STEPS):
        value = height(at)
        if value > 0.0:
            low, above = at, value
        else:
            high, below = at, value
        if abs(value) < SURE or high - low <= SURE * low:
            return at
        if high == math.inf:
            at *= 2.0
            if at > FARTHEST:
                return None
        else:
            # Regula falsi, and halves where the profile falls off.
            part = above / (above - below) if below > -20.0 else 0.5
            at = low + (high - low) * min(max(part, 0.05), 0.95)
    return high if high < math.inf else None
