"""Poisson sampling: each record is used with probability q, independently of the others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from accountant import checks
from accountant._rounding import LEAST, times_up
from accountant.errors import ArgumentTypeError, UnsupportedError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.fields import raise_unsupported
from accountant.mechanisms.gaussian import Gaussian, GaussianPair
from accountant.mechanisms.mixture import MixtureOfGaussians
from accountant.pairs.base import DominatingPair
from accountant.relations import NeighbouringRelation
from accountant.sampling.sampled_pairs import sampled

if TYPE_CHECKING:
    pass

__all__ = ["PoissonSampled"]


@dataclass(frozen=True, repr=False, init=False)
class PoissonSampled(Mechanism):
    """A mechanism run on a Poisson sample of the records.

    Parameters
    ----------
    mechanism : Mechanism
        What is run on the sample. Its relation is add-or-remove or zero-out. The parts of a
        composition share the sample; with a sample of its own, each is sampled by itself.
    sampling_probability : float
        q in [0, 1].

    Raises
    ------
    UnsupportedError
        Under replace-one, which has pairs of its own: for Gaussian noise
        :class:`~accountant.sampling.poisson_replacement.PoissonReplacement`.

    Notes
    -----
    *Guarantee.* With (P, Q) dominating the mechanism, (1-q)Q + qP against Q dominates the removal
    of a record, and P against (1-q)P + qQ its addition, for the pair (P, Q) of that direction (Zhu,
    Dong, Wang 2022, Theorem 11; docs/theorems_mechanisms.md, Theorem M6). Of a mechanism known by
    its Rényi curve alone the curve at integer orders is amplified (Zhu, Wang 2019; M16); of a
    composition that, and a pair made of its joint profile (docs/theorems_adapters.md, Theorem E1).

    Examples
    --------
    >>> import accountant as ac
    >>> ac.PoissonSampled(ac.Laplace(1.0), 0.1).epsilon(0.0) < 0.17
    True
    """

    mechanism: Mechanism
    sampling_probability: float

    def __init__(self, mechanism: Mechanism, sampling_probability: float) -> None:
        if not isinstance(mechanism, Mechanism):
            raise ArgumentTypeError(
                f"mechanism must be a Mechanism, such as Gaussian(1.1); got {mechanism!r}"
            )
        if mechanism.relation is NeighbouringRelation.REPLACE_ONE:
            raise_unsupported(
                "Poisson sampling",
                mechanism.relation,
                "state the mechanism under add-or-remove or zero-out",
            )
        object.__setattr__(self, "mechanism", mechanism)
        q = checks.number(checks.SAMPLING_PROBABILITY, sampling_probability)
        object.__setattr__(self, "sampling_probability", q)

    @property
    def relation(self) -> NeighbouringRelation:
        """That of the mechanism."""
        return self.mechanism.relation

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the sampled pairs (remove, add)."""
        q, found = self.sampling_probability, self.mechanism.pairs()
        if q == 1.0:
            return found
        if q == 0.0:
            return (GaussianPair(math.inf),)
        remove, add = found[0], found[-1]
        return sampled(remove, q), sampled(add, q, remove)

    def from_below(self) -> PoissonSampled | None:
        """Return the sample of what bounds the inner mechanism from below."""
        inner = self.mechanism.from_below()
        return None if inner is None else PoissonSampled(inner, self.sampling_probability)

    def group(self, size: int) -> Mechanism:
        """Return the mechanism for a group: a binomial number of its records is used.

        For Gaussian noise alone: a mixture of Gaussians (Ganesh 2024; Theorem M15). The records of
        the group are all removed (blanked), or all added (filled in); a group of which some leave
        while others come is not covered.
        """
        records = checks.integer("size", size, 1)
        if records == 1:
            return self
        inner = self.mechanism
        if not isinstance(inner, Gaussian):
            raise UnsupportedError(
                f"no theorem gives {type(self).__name__} of {type(inner).__name__} a group"
                " guarantee; sample a Gaussian, or take the group of the mechanism unsampled"
            )
        q = self.sampling_probability
        if q in (0.0, 1.0):
            return PoissonSampled(inner.group(records), q)
        shifts = [times_up(inner.sensitivity, k) for k in range(records + 1)]
        # Exact fractions, rounded once each; what underflows is still counted.
        used, unused = Fraction(q), 1 - Fraction(q)
        chances = tuple(
            max(float(math.comb(records, k) * used**k * unused ** (records - k)), LEAST)
            for k in range(records + 1)
        )
        return MixtureOfGaussians(
            inner.noise_multiplier,
            tuple(shifts),
            chances,
            relation=self.relation,
        )

    def under(self, relation: NeighbouringRelation) -> PoissonSampled:
        """Return the same release under another relation, where the mechanism allows it."""
        return PoissonSampled(
            self.mechanism.under(checks.relation(relation)), self.sampling_probability
        )
