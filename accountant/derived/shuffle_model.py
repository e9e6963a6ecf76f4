"""The shuffle model: the reports of many users, each from a local randomiser, in random order."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache

from accountant import checks
from accountant.bounds import Bounds
from accountant.derived.shuffle_bounds import FINE, BlanketBounds, DataPair, Randomizer, epsilon_at
from accountant.errors import DomainError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.laplace import Laplace
from accountant.mechanisms.stated_guarantees import RandomizedResponse
from accountant.pairs.atoms import ResponsePair
from accountant.pairs.base import DominatingPair, gaussian_part
from accountant.pairs.profile_pair import TwoSidedPair
from accountant.relations import REPLACE_ONE, NeighbouringRelation
from accountant.sampling.allocation_pair import AllocationPair

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
        found = _bound(self.bounds, abs(epsilon))
        if epsilon < 0.0:
            found = min((math.exp(epsilon) * found - math.expm1(epsilon)) * (1.0 + 1e-15), 1.0)
        return Bounds(found, found)

    def inverse_profile(self, delta: float) -> Bounds | None:
        """Return the ε of one release."""
        found = _epsilon_at(self.bounds, delta)
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
def _bound(bounds: BlanketBounds, epsilon: float) -> float:
    return bounds.bound(epsilon, FINE)


@lru_cache(maxsize=256)
def _epsilon_at(bounds: BlanketBounds, delta: float) -> float | None:
    if _bound(bounds, 0.0) <= delta:
        return 0.0
    found = epsilon_at(delta, bounds.delta, lambda at: _bound(bounds, at), upper=True)
    # The other reports only hide the user's.
    least = min(math.inf if found is None else found, bounds.randomizer.epsilon(delta))
    return least if least < math.inf else None


def _loss(randomizer: Randomizer) -> float:
    """Return the largest loss of a report; of Gaussian noise, the distance of means."""
    pair = randomizer.pairs()[0]
    return float(pair.mu if isinstance(randomizer, Gaussian) else pair.pure_epsilon)
