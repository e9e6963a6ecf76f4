"""The profile of shuffled reports: from above by the blanket, from below by actual other users.

Between two answers, from above for all that the others may have answered.
docs/theorems_shuffling.md, Theorems H1, H2 and H4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from accountant._basics.rounding import U
from accountant.analyses.solver import above_crossing, below_crossing
from accountant.bounds import Bounds
from accountant.derived import binary_reports
from accountant.derived.binary_reports import ReportLaw, excess, two_answers
from accountant.derived.report_sum import Fineness, are_few, multisets
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.laplace import Laplace
from accountant.mechanisms.stated_guarantees import RandomizedResponse
from accountant.pairs.atoms import AtomicPair, Atoms
from accountant.pairs.base import DominatingPair
from accountant.sampling.allocation_table import Table, shared_spacing, tangent_law
from accountant.search import narrow

Randomizer = RandomizedResponse | Laplace | Gaussian

# How finely laws are resolved for the answer.
FINE = Fineness(0.001, 300, 1e-6, 2000)
# The same where an answer is only looked for.
ROUGH = Fineness(0.006, 80, 1e-2, 200)
# Deviations of a normal loss at which its tail is left out, in turn.
TAILS = (7.0, 9.5, 13.4)
# Deviations within which the knots of a normal loss are dense.
DENSE = 4.0
# How close the two sides of a crossing come, relatively.
CLOSE = 5e-7
# The ε that are tried first, in nats.
LADDER = tuple(1e-3 * 2.0**k for k in range(20))
# Halvings of the interval below the first of them that costs little enough; then a crossing is
# looked for.
HALVINGS = 10
# The ε that are tried where none is found, each four times as far from the guess.
TRIES = 12


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
            found = min(
                found, binary_reports.excess(law, self.users, epsilon, fineness, upper=True)
            )
            if law.left_out <= fineness.negligible * found:
                break
        return found

    def _laws(self, knots: int) -> tuple[ReportLaw, ...]:
        one, pair = self.randomizer, self.local
        if isinstance(one, RandomizedResponse):
            return (binary_reports.kary_blanket(one.epsilon0, one.k),)
        if isinstance(one, Laplace):
            most = self.pure_epsilon * (1.0 + 1e-12)
            return (binary_reports.blanket(pair, most, most, knots),)
        mu = pair.mu
        middle = 0.5 * mu * mu + DENSE * mu
        return tuple(
            binary_reports.blanket(pair, middle, 0.5 * mu * mu + tail * mu, knots) for tail in TAILS
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
        """Return infinity: the atoms of the profile give the curve."""
        return math.inf


def others_law(randomizer: RandomizedResponse | Laplace, knots: int, *, reverse: bool) -> ReportLaw:
    """Return the law of a report when all other users have one value (Theorem H2)."""
    if isinstance(randomizer, RandomizedResponse):
        return binary_reports.kary_others(randomizer.epsilon0, randomizer.k, reverse=reverse)
    pair = randomizer.pairs()[0]
    most = float(pair.pure_epsilon)
    return binary_reports.others(pair, most, most, knots, reverse=reverse)


def epsilon_at(
    delta: float, rough: Callable[[float], float], fine: Callable[[float], float], *, upper: bool
) -> float | None:
    """Return an ε where ``fine`` is at most ``delta``, or for a lower end is above it, or None.

    Where a crossing is looked for first goes by ``rough``, which need not fall everywhere.
    """
    high = next((at for at in LADDER if rough(at) <= delta), None)
    if high is None:
        return None
    guess, _ = narrow(lambda at: rough(at) <= delta, high, 0.0, HALVINGS)
    search, side = (above_crossing, 1.0) if upper else (below_crossing, -1.0)
    found = search(fine, delta, guess, LADDER[-1], close=CLOSE)
    tried = (guess * (1.0 + side * CLOSE * 4.0**k) for k in range(TRIES))
    return found or next((at for at in tried if at > 0.0 and (fine(at) <= delta) == upper), None)


# Knots within one deviation of the loss.
KNOTS = 8
# Deviations of the loss that the knots reach.
REACH = 9.0
# Relative error of masses with which a law is worth having.
MOST_ERROR = 1e-3
# Losses of few users that are told apart.
MOST_LOSSES = 2**12


@dataclass(frozen=True)
class DataPair(AtomicPair):
    """A user's report among those of users who all have one value.

    Parameters
    ----------
    randomizer : RandomizedResponse or Laplace
        Of one user.
    users : int
        n >= 2.
    """

    randomizer: RandomizedResponse | Laplace
    users: int

    def atoms(self) -> Atoms:
        """Return the atoms of few multisets, or of a pair below: lines under the profile (S17)."""
        laws = _heavier_first(self)
        if are_few(laws[0].masses.size, self.users):
            return _atoms_of_few(laws[0], self.users)
        law = tangent_law(_table(self, laws))
        if not law.mass_error < MOST_ERROR:  # nothing is told
            return Atoms(np.zeros(1), np.ones(1), np.ones(1), 0.0, 0.0, 0.0, 0.0)
        kept = law.values > 0.0
        loss = np.log(law.values[kept]) - 2.0 * law.value_error - 8.0 * U
        p = law.masses[kept] * law.values[kept]
        q = p * np.exp(-loss)
        error = law.mass_error + law.value_error + 64.0 * U
        seen = p > 1e-290
        lost = max(0.0, 1.0 - float(q.sum()))
        moved = 32.0 * U * (1.0 + float(np.abs(loss).max(initial=0.0)))
        return Atoms(loss[seen], p[seen], q[seen], 0.0, lost, error, moved)

    def profile(self, epsilon: float) -> Bounds:
        """Return a bound from below at any real ``epsilon``, in the better order."""
        found = _bound(self, abs(epsilon), fineness=FINE)
        if epsilon < 0.0:
            found = (math.exp(epsilon) * found - math.expm1(epsilon)) * (1.0 - 1e-15)
        return Bounds(found, found)

    def inverse_profile(self, delta: float) -> Bounds | None:
        """Return an ε at which one release has more than ``delta``."""
        found = _epsilon_at(self, delta)
        return Bounds(found, found)

    @property
    def pure_epsilon(self) -> float:
        """That of one report."""
        return float(self.randomizer.pairs()[0].pure_epsilon)

    @property
    def infinite_mass(self) -> float:
        """None."""
        return 0.0


@lru_cache(maxsize=1024)
def _bound(pair: DataPair, epsilon: float, fineness: Fineness) -> float:
    laws = _laws(pair, fineness)
    return max(excess(law, pair.users, epsilon, fineness, upper=False) for law in laws)


def _laws(pair: DataPair, fineness: Fineness) -> list[ReportLaw]:
    return [others_law(pair.randomizer, fineness.knots, reverse=way) for way in (False, True)]


@lru_cache(maxsize=256)
def _epsilon_at(pair: DataPair, delta: float) -> float:
    rough, fine = (partial(_bound, pair, fineness=how) for how in (ROUGH, FINE))
    if fine(0.0) <= delta:
        return 0.0
    found = epsilon_at(delta, rough, fine, upper=False)
    return 0.0 if found is None else found


def _width(pair: DataPair) -> float:
    return max(2.5 * _bound(pair, 0.0, fineness=ROUGH), 1e-12)


def _heavier_first(pair: DataPair) -> list[ReportLaw]:
    """Return the laws of both orders, that with more of large losses first."""
    laws, far = _laws(pair, ROUGH), min(4.0 * _width(pair), 0.5 * pair.pure_epsilon)
    tails = [excess(law, pair.users, far, ROUGH, upper=False) for law in laws]
    return laws[::-1] if tails[1] > tails[0] else laws


def _atoms_of_few(law: ReportLaw, users: int) -> Atoms:
    """Return the losses of all multisets of reports and their probabilities (H1, H3)."""
    every = multisets(tuple(law.masses.tolist()), users)
    one, two = every.numbers @ law.one, every.numbers @ law.two
    loss = np.log(one / two)
    p, q = every.chances * (one / users), every.chances * (two / users)
    ratio_error = law.ratio_error + (law.one.size + 4.0) * U
    slip = math.expm1(users * math.log1p(law.mass_error) + every.slip)
    moved = 2.0 * ratio_error + 8.0 * U * (1.0 + float(np.abs(loss).max()))
    error = slip + ratio_error + 16.0 * U
    # What is left out only makes the profile smaller.
    seen = (p > 1e-290) & (q > 1e-290)
    loss, p, q = loss[seen], p[seen], q[seen]
    if loss.size > MOST_LOSSES:
        # Multisets of nearly the same loss are not told apart: post-processing.
        least, reach = float(loss.min()), float(np.ptp(loss))
        cell = np.floor((loss - least) * ((MOST_LOSSES - 1) / reach)).astype(np.int64)
        p, q = (np.bincount(cell, weights=mass).astype(np.float64) for mass in (p, q))
        p, q = p[p > 0.0], q[p > 0.0]
        error += loss.size * U
        loss, moved = np.log(p / q), 4.0 * error + moved
    order = np.argsort(loss)
    lost = max(0.0, 1.0 - float(q.sum()))
    return Atoms(loss[order], p[order], q[order], 0.0, lost, error, moved)


def _table(pair: DataPair, laws: list[ReportLaw]) -> Table:
    """Return options on the ratio of the two laws at strikes around 1, in the heavier order."""
    width = _width(pair)
    reach = min(REACH * width, pair.pure_epsilon)
    spacing = shared_spacing(width / KNOTS)
    most = 2 * math.ceil(reach / spacing)
    places = np.arange(-most, most + 1)
    ends: list[tuple[float, float]] = []
    for place in places.tolist():
        loss = 0.5 * spacing * place
        law, scale = (laws[0], 1.0) if place >= 0 else (laws[1], math.exp(loss))
        low, high = (
            scale * excess(law, pair.users, abs(loss), ROUGH, upper=upper)
            for upper in (False, True)
        )
        ends.append((low * (1.0 - 8.0 * U), high * (1.0 + 8.0 * U)))
    lower, upper = np.array(ends).T
    return Table(spacing, places.astype(np.int64), lower, upper)
