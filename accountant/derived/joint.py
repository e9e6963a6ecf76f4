"""All of several mechanisms on one sample, any of them, or one on a sample under replace-one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from accountant import checks
from accountant._basics.rounding import LEAST, U, ratio_down, ratio_up, up
from accountant.analyses.profile import joint_pair
from accountant.composition.problems import problems_of
from accountant.errors import DomainError, UnsupportedError
from accountant.mechanisms.base import Mechanism, Profile, Selection
from accountant.mechanisms.fields import Wrapper, mechanism_of, set_fields
from accountant.mechanisms.gaussian import Gaussian, GaussianPair
from accountant.mechanisms.stated_guarantees import OnePair, nothing
from accountant.pairs.base import DominatingPair
from accountant.pairs.excess import loss_of_sample, loss_of_sample_inverse
from accountant.pairs.profile_pair import two_sided
from accountant.relations import REPLACE_ONE, ZERO_OUT, NeighbouringRelation
from accountant.sampling.replacement_pair import LEAST_DISTANCE, ReplacementPair
from accountant.sampling.sampled_pairs import sampled


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
    return mechanism_of(base, "base")


_RELATIONS = (REPLACE_ONE, ZERO_OUT)


@dataclass(frozen=True, repr=False)
class SampledReplacement(Mechanism):
    """A release on a sample of fixed size that holds the record with probability q.

    Under replace-one. For Poisson samples, which reach less than its lower ends, use
    :class:`~accountant.sampling.PoissonSampled`, which is tighter and checks the theorem.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism that runs on the sample, under replace-one. Its bound must cover every way in
        which a sample that holds the record may differ from one that holds the other record, and
        from one that holds neither. For batches of fixed size it must cover replacing a record.
    sampling_probability : float
        An upper bound q in [0, 1] on the probability of being in the sample.
    relation : NeighbouringRelation, keyword only
        Replace-one; or zero-out, when a blank is drawn like a record and contributes nothing.

    Notes
    -----
    *Guarantee.* The symmetric pair with profile q·δ(log(1 + (e^ε - 1)/q)) at ε >= 0, δ that of the
    mechanism (docs/theorems_adapters.md, Theorem E2). Lower ends are those of batches of fixed size
    that hold the record with probability q.

    Examples
    --------
    >>> import accountant as ac
    >>> from accountant.derived.joint import SampledReplacement
    >>> noise = ac.Gaussian(1.0, relation=ac.NeighbouringRelation.REPLACE_ONE)
    >>> SampledReplacement(noise, 0.01).epsilon(1e-5) < noise.epsilon(1e-5) / 2
    True
    """

    theorems = ("E2",)
    about = "A release on a sample of fixed size that holds the record with probability q."
    selection = Selection(
        "a random sample of fixed size: each record is in it with probability at most q",
        "Every step draws a fresh sample as a uniform subset of fixed size; where records are"
        " blanked, blanks are drawn like records. Independent coins are PoissonSampled.",
    )

    mechanism: Mechanism
    sampling_probability: float
    relation: NeighbouringRelation = field(default=REPLACE_ONE, kw_only=True)

    def __post_init__(self) -> None:
        mechanism_of(self.mechanism)
        if self.mechanism.relation is not REPLACE_ONE:
            raise UnsupportedError(
                f"mechanism must be bounded under {REPLACE_ONE!r}; got one under"
                f" {self.mechanism.relation!r}. Poisson sampling under any relation is"
                " PoissonSampled"
            )
        set_fields(
            self,
            sampling_probability=checks.number(
                checks.SAMPLING_PROBABILITY, self.sampling_probability
            ),
            relation=checks.supported_relation("sampled replacement", self.relation, _RELATIONS),
        )

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the symmetric pair."""
        q, release = self.sampling_probability, self.mechanism
        if q == 0.0:
            return (GaussianPair(np.inf),)
        if q == 1.0 and len(found := release.pairs()) == 1:
            return found
        if not isinstance(release, Gaussian):
            return sampled_pairs(release, q)
        noise = ratio_down(release.noise_multiplier, release.sensitivity or 1.0)
        distance = ratio_up(2, noise) if noise < np.inf else 0.0
        if distance < LEAST_DISTANCE or release.sensitivity == 0.0:
            # Sampling never increases the profile, and the profile is already negligible.
            return release.pairs()
        return (ReplacementPair(q, (1.0,), (distance,)),)

    def from_below(self) -> Mechanism:
        """Return the loss of a record among others that are all like the one in its place.

        A sample without the record is then one with its replacement; a blank is like no record.
        """
        if self.relation is not REPLACE_ONE:
            return nothing(self.relation)
        pair = (self.mechanism.from_below() or self.mechanism).pairs()[0]
        q = self.sampling_probability
        found = GaussianPair(np.inf) if q == 0.0 else pair if q == 1.0 else sampled(pair, q)
        return OnePair(found, relation=self.relation)


def sampled_pairs(mechanism: Mechanism, q: float) -> tuple[DominatingPair, ...]:
    """Return the symmetric pair of Theorem E2, made of the mechanism's profile; q in (0, 1)."""
    return (two_sided(SampledBounds(mechanism.profile(), q)),)


@dataclass(frozen=True)
class SampledBounds:
    """Bounds on the release on a sample, from bounds on the release itself (Theorem E2).

    Parameters
    ----------
    profile : Profile
        Of the release.
    q : float
        An upper bound on the probability of being in the sample.
    """

    profile: Profile
    q: float

    def delta(self, epsilon: float) -> float:
        """Bound the profile at ``epsilon`` >= 0 (Theorem E2)."""
        q = self.q
        inner = float(loss_of_sample_inverse(q, np.array([epsilon]))[0])
        inner = max(inner - 64.0 * U * (1.0 + inner), 0.0)
        found = self.profile.delta(inner)
        # A product below the doubles is not nothing.
        return min(up(max(q * found, LEAST), 4.0), 1.0) if found > 0.0 else 0.0

    def rdp(self, order: float) -> float:
        """Bound the Rényi divergence: that of the mechanism, by joint quasi-convexity."""
        return self.profile.rdp(order)

    @property
    def pure_epsilon(self) -> float:
        """Bound the loss; infinite when unbounded."""
        pure = self.profile.pure_epsilon
        if pure in (0.0, np.inf):
            return pure
        sampled = float(loss_of_sample(self.q, np.array([pure]))[0])
        return min(up(max(sampled, LEAST), 64.0), pure)
