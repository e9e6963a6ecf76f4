"""The shuffle model: the reports of many users, each from a local randomiser, in random order.

The profile is bounded from above by the blanket, between two answers for all that the others may
have answered, and from below by actual other users (docs/theorems_shuffling.md).
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache, partial

import numpy as np

from accountant import checks
from accountant._basics.rounding import U
from accountant.bounds import Bounds
from accountant.derived import binary_reports
from accountant.derived.binary_reports import Randomizer, atoms_of_few, others_law, two_answers
from accountant.derived.report_sum import Fineness, ReportLaw, are_few, epsilon_at, excess
from accountant.errors import DomainError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.laplace import Laplace
from accountant.mechanisms.stated_guarantees import RandomizedResponse
from accountant.pairs.atoms import AtomicPair, Atoms, ResponsePair
from accountant.pairs.base import DominatingPair, gaussian_part
from accountant.pairs.excess import reflected
from accountant.pairs.profile_pair import TwoSidedPair
from accountant.relations import REPLACE_ONE, NeighbouringRelation
from accountant.sampling.allocation_pair import AllocationPair
from accountant.sampling.allocation_table import Table, shared_spacing, tangent_law

# How finely laws are resolved for the answer.
FINE = Fineness(0.001, 300, 1e-6, 2000)
# The same where an answer is only looked for.
ROUGH = Fineness(0.006, 80, 1e-2, 200)
# Deviations of a normal loss at which its tail is left out, in turn.
TAILS = (7.0, 9.5, 13.4)
# Deviations within which the knots of a normal loss are dense.
DENSE = 4.0


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
            found = min(found, excess(law, self.users, epsilon, fineness, upper=True))
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


# Knots within one deviation of the loss.
KNOTS = 8
# Deviations of the loss that the knots reach.
REACH = 9.0
# Relative error of masses with which a law is worth having.
MOST_ERROR = 1e-3


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
            return atoms_of_few(laws[0], self.users)
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
        both = Bounds(found, found)
        return reflected(both, epsilon) if epsilon < 0.0 else both

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


KINDS = (RandomizedResponse, Laplace, Gaussian)
LEFT_OUT = 1e-20
# The least loss of one report, or μ of it, for which the blanket is computed.
LEAST = 1e-6
# The largest one.
LARGEST = 20.0


@dataclass(frozen=True, repr=False)
class ShuffleModel(Mechanism):
    """The reports of ``dataset_size`` users, each through one local randomiser, in random order.

    Parameters
    ----------
    randomizer : RandomizedResponse, Laplace or Gaussian
        What every user applies to his own value. A value of ``Laplace`` and ``Gaussian`` is a
        number from a public interval whose length is the randomiser's ``sensitivity``, twice that
        if its relation is replace-one.
    dataset_size : int
        The number of users n, in [1, 2**30]; public.

    Notes
    -----
    *Guarantee.* Replace-one: the value of one user is replaced. The upper end is the blanket of
    Balle, Bell, Gascón, Nissim (2019), evaluated exactly, and with two answers the largest value
    over all answers of the others; the lower end of brackets is reached when all other users have
    one value (docs/theorems_shuffling.md, Theorems H1 to H4).

    *Assumptions.* All users apply the same randomiser, once, with noise of their own, and only the
    multiset of the reports is seen.

    Examples
    --------
    >>> import accountant as ac
    >>> model = ac.ShuffleModel(ac.RandomizedResponse(1.0, k=4), dataset_size=10_000)
    >>> model.epsilon(1e-6) < 0.04
    True
    """

    theorems = ("H1", "H4")
    about = "The reports of dataset_size users, each through one local randomiser, in random order."

    randomizer: Randomizer
    _: KW_ONLY
    dataset_size: int

    def __post_init__(self) -> None:
        one = checks.instance(
            "randomizer", self.randomizer, KINDS, "a RandomizedResponse, Laplace or Gaussian"
        )
        size = checks.integer("dataset_size", self.dataset_size, 1, 2**30)
        object.__setattr__(self, "dataset_size", size)
        if not _loss(one) <= LARGEST:
            raise DomainError(
                f"randomizer must have a loss (of Gaussian noise, a distance of means over the"
                f" noise) of at most {LARGEST:g}; got {one!r}. Beyond it shuffling is of no use:"
                f" account for the randomizer itself"
            )

    @property
    def relation(self) -> NeighbouringRelation:
        """One user's value is replaced."""
        return REPLACE_ONE

    @property
    def _hides(self) -> bool:
        """Whether shuffling is worth an evaluation."""
        return self.dataset_size > 1 and _loss(self.randomizer) >= LEAST

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the pair of the blanket, which is its own reverse."""
        if not self._hides:
            return (self.randomizer.pairs()[0],)
        return (ShufflePair(BlanketBounds(self.randomizer, self.dataset_size)),)

    def from_below(self) -> Mechanism:
        """Return the mechanism of data sets whose other users all have one value."""
        return _OneValueOtherwise(self)


@dataclass(frozen=True, repr=False)
class _OneValueOtherwise(Mechanism):
    """Two neighbouring data sets: what they lose is lost by the shuffle model, too."""

    model: ShuffleModel

    @property
    def relation(self) -> NeighbouringRelation:
        """That of the model."""
        return self.model.relation

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the pair of these data sets, in one order."""
        one, users = self.model.randomizer, self.model.dataset_size
        if users == 1:
            return (one.pairs()[0],)
        if _loss(one) < LEAST:
            return (ResponsePair(0.0),)
        if not isinstance(one, Gaussian):
            return (DataPair(one, users),)
        # One report has another mean than all others, which one is random: an allocation.
        noise = gaussian_part(one.pairs()[0]).most_noise
        return (AllocationPair(noise, users, upper=False),)


@dataclass(frozen=True)
class ShufflePair(TwoSidedPair):
    """The pair of the bound by the blanket; where it composes, chords between its values."""

    bounds: BlanketBounds
    sharper_rdp = False

    def profile(self, epsilon: float) -> Bounds:
        """Return the bound at any real ``epsilon``, which is the profile of this pair."""
        found = _above(self.bounds, abs(epsilon))
        both = Bounds(found, found)
        return reflected(both, epsilon) if epsilon < 0.0 else both

    def inverse_profile(self, delta: float) -> Bounds | None:
        """Return the ε of one release."""
        found = _epsilon_above(self.bounds, delta)
        return None if found is None else Bounds(found, found)

    @property
    def infinite_mass(self) -> float:
        """What the table counts as infinite loss, without its computation."""
        return 0.0 if self.pure_epsilon < math.inf else LEFT_OUT

    def finite_rdp(self, order: float) -> float:
        """Return the divergence of the finite losses: of all where none is called infinite."""
        if self._table.infinite_p > self.infinite_mass:
            return self.rdp(order)
        return super().finite_rdp(order)

    @property
    def support(self) -> tuple[float, float]:
        """All losses of one report."""
        return -self.pure_epsilon, self.pure_epsilon

    @property
    def mu(self) -> float:
        """That of one report: the others' only hide it."""
        return self.bounds.local.mu


@lru_cache(maxsize=256)
def _above(bounds: BlanketBounds, epsilon: float) -> float:
    return bounds.bound(epsilon, FINE)


@lru_cache(maxsize=256)
def _epsilon_above(bounds: BlanketBounds, delta: float) -> float | None:
    if _above(bounds, 0.0) <= delta:
        return 0.0
    found = epsilon_at(delta, bounds.delta, lambda at: _above(bounds, at), upper=True)
    # The other reports only hide the user's.
    least = min(math.inf if found is None else found, bounds.randomizer.epsilon(delta))
    return least if least < math.inf else None


def _loss(randomizer: Randomizer) -> float:
    """Return the largest loss of a report; of Gaussian noise, the distance of means."""
    pair = randomizer.pairs()[0]
    return float(pair.mu if isinstance(randomizer, Gaussian) else pair.pure_epsilon)
