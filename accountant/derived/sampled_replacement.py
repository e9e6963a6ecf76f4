"""A release on a random sample under replace-one, from the profile without sampling."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from accountant import checks
from accountant._basics.rounding import LEAST, U, ratio_down, ratio_up, up
from accountant.errors import UnsupportedError
from accountant.mechanisms.base import Mechanism, Profile, Selection
from accountant.mechanisms.fields import mechanism_of, set_fields
from accountant.mechanisms.gaussian import Gaussian, GaussianPair
from accountant.mechanisms.stated_guarantees import OnePair, nothing
from accountant.pairs.base import DominatingPair
from accountant.pairs.excess import loss_of_sample, loss_of_sample_inverse
from accountant.pairs.profile_pair import two_sided
from accountant.relations import REPLACE_ONE, ZERO_OUT, NeighbouringRelation
from accountant.sampling.replacement_pair import LEAST_DISTANCE, ReplacementPair
from accountant.sampling.sampled_pairs import sampled

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
    >>> from accountant.derived.sampled_replacement import SampledReplacement
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
