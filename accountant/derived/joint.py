"""Several mechanisms as one release: all of them on one sample, or any of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accountant.analyses.profile import joint_pair
from accountant.composition.problems import problems_of
from accountant.errors import DomainError
from accountant.mechanisms.base import Mechanism, Profile
from accountant.mechanisms.fields import Wrapper, mechanism_of
from accountant.pairs.base import DominatingPair
from accountant.pairs.profile_pair import two_sided
from accountant.relations import NeighbouringRelation


@dataclass(frozen=True, repr=False)
class JointRelease(Wrapper):
    """A composition as one release, for one draw of a Poisson sample that its parts share.

    Parameters
    ----------
    base : Mechanism
        The releases about the same records, as in ``3 * Gaussian(2.0) + Laplace(4.0)``.

    Notes
    -----
    *Guarantee.* The pair of Theorem E1 (docs/theorems_adapters.md), made of the larger profile of
    both directions.

    *Algorithm.* About five hundred values of the profile of ``base``, joined by chords.

    Examples
    --------
    >>> import accountant as ac
    >>> from accountant.derived.joint import JointRelease
    >>> both = JointRelease(ac.Gaussian(4.0) + ac.Laplace(4.0))
    >>> apart = ac.PoissonSampled(ac.Gaussian(4.0), 0.1) + ac.PoissonSampled(ac.Laplace(4.0), 0.1)
    >>> ac.PoissonSampled(both, 0.1).epsilon(1e-5) > apart.epsilon(1e-5)
    True
    """

    theorems = ("E1",)
    about = "A composition as one release, for one draw of a Poisson sample that its parts share."

    base: Mechanism

    def __post_init__(self) -> None:
        mechanism_of(self.base, "base")

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return one pair for the larger profile of the two directions."""
        return (joint_pair(problems_of(self.base)),)

    def from_below(self) -> Mechanism:
        """Return the composition itself, or what data sets reach of it."""
        return self.base.from_below() or self.base


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


@dataclass(frozen=True, repr=False)
class AnyOf(Mechanism):
    """One release of one of several mechanisms, whichever: a cap on all of them.

    Parameters
    ----------
    mechanisms : sequence of Mechanism
        Of one neighbouring relation, at least one; a run of a search has one of these costs.

    Notes
    -----
    *Guarantee.* The largest profile of all mechanisms and both directions
    (docs/theorems_selection.md, Theorem P18), whatever law draws one, if it does not depend on the
    data.

    *Algorithm.* About five hundred values of that profile, joined by chords (Theorems P7, E1).

    Examples
    --------
    >>> import accountant as ac
    >>> from accountant.derived import AnyOf
    >>> cap = AnyOf([ac.Gaussian(2.0), ac.Laplace(1.0)])
    >>> cap.epsilon(1e-5) >= max(ac.Gaussian(2.0).epsilon(1e-5), ac.Laplace(1.0).epsilon(1e-5))
    True
    """

    theorems = ("P18", "P7", "E1")
    about = "One release of one of several mechanisms, whichever: a cap on all of them."

    mechanisms: tuple[Mechanism, ...]

    def __post_init__(self) -> None:
        mechanisms = tuple(dict.fromkeys(self.mechanisms))
        for each in mechanisms:
            mechanism_of(each, "mechanisms")
        relations = sorted({each.relation.name for each in mechanisms})
        if len(relations) != 1:
            raise DomainError(
                "mechanisms must be at least one mechanism, all of one neighbouring relation; got"
                f" {len(mechanisms)} of {', '.join(relations) or 'none'}"
            )
        object.__setattr__(self, "mechanisms", mechanisms)

    @property
    def relation(self) -> NeighbouringRelation:
        """The relation of all mechanisms."""
        return self.mechanisms[0].relation

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return one pair for the larger profile of all mechanisms and directions."""
        if len(self.mechanisms) == 1:
            return self.mechanisms[0].pairs()
        return (two_sided(AnyOfBounds(tuple(each.profile() for each in self.mechanisms))),)

    def from_below(self) -> Mechanism:
        """Return the one that costs most near ε = 1: it may be drawn every time."""
        worst = max(self.mechanisms, key=lambda each: each.profile().delta(1.0))
        return worst.from_below() or worst

    @property
    def covers_removal(self) -> bool:
        """Whether the bounds of all mechanisms do."""
        return all(each.covers_removal for each in self.mechanisms)

    def group(self, size: int) -> AnyOf:
        """Return the cap on the mechanisms as seen by a group."""
        return AnyOf(tuple(each.group(size) for each in self.mechanisms))

    def under(self, relation: NeighbouringRelation) -> AnyOf:
        """Return the cap on the mechanisms with their bounds stated under another relation."""
        return AnyOf(tuple(each.under(relation) for each in self.mechanisms))


def one_of(base: Mechanism | Sequence[Mechanism]) -> Mechanism:
    """Return the mechanism that bounds one run: the one given, or any of those given."""
    if isinstance(base, (list, tuple)):
        found = AnyOf(tuple(base))
        return found.mechanisms[0] if len(found.mechanisms) == 1 else found
    mechanism_of(base, "base")
    assert isinstance(base, Mechanism)
    return base
