"""Several releases as one: the pair of a composition's profile, for what runs on one sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from accountant.mechanisms._arithmetic import U
from accountant.mechanisms._hull import Point, lower_hull
from accountant.mechanisms.atoms import Atoms
from accountant.mechanisms.base import DominatingPair, Mechanism
from accountant.mechanisms.flat import flat
from accountant.mechanisms.profile_pair import ProfilePair
from accountant.mechanisms.repetition import _settle_base

if TYPE_CHECKING:
    from accountant.relations import NeighbouringRelation

__all__ = ["JointRelease", "TwoSidedPair", "two_sided"]

ROUNDED = 1.0 - 2.0**-40  # of a slope: what rounding may take off


@dataclass(frozen=True, repr=False)
class JointRelease(Mechanism):
    """A composition as one release: what Poisson sampling needs, whose coins its parts share.

    Parameters
    ----------
    base : Mechanism
        What is released about the same records, as in ``3 * Gaussian(2.0) + Laplace(4.0)``.

    Notes
    -----
    *Guarantee.* The pair of Theorem E1 (docs/theorems_adapters.md), made of the larger profile of
    both directions.

    *Algorithm.* Some five hundred values of the profile of ``base``, joined by chords.

    Examples
    --------
    >>> import accountant as ac
    >>> from accountant.mechanisms.joint import JointRelease
    >>> both = JointRelease(ac.Gaussian(4.0) + ac.Laplace(4.0))
    >>> apart = ac.PoissonSampled(ac.Gaussian(4.0), 0.1) + ac.PoissonSampled(ac.Laplace(4.0), 0.1)
    >>> ac.PoissonSampled(both, 0.1).epsilon(1e-5) > apart.epsilon(1e-5)
    True
    """

    base: Mechanism

    def __post_init__(self) -> None:
        _settle_base(self)

    @property
    def relation(self) -> NeighbouringRelation:
        """That of the composition."""
        return self.base.relation

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return one pair, made of the worst of both directions."""
        return (two_sided(self),)

    def group(self, size: int) -> JointRelease:
        """Return the releases as seen by a group."""
        return JointRelease(self.base.group(size))

    def under(self, relation: NeighbouringRelation) -> JointRelease:
        """Return the releases with their bounds stated under another relation."""
        return JointRelease(self.base.under(relation))

    def hockey(self, epsilon: float) -> float:
        """Bound the profile in both directions."""
        return self.base.delta(epsilon)

    def renyi(self, order: float) -> float:
        """Bound the Rényi divergence in both directions."""
        return self.base.rdp(order)

    def pure(self) -> float:
        """Bound the loss; infinite when unbounded."""
        return self.base.epsilon(0.0)


def two_sided(search: Any) -> DominatingPair:
    """Return the pair of what is known by bounds on profile, Rényi divergence and loss (E1)."""
    return flat(search) or TwoSidedPair(search)


@dataclass(frozen=True)
class TwoSidedPair(ProfilePair):
    """Values of a profile that bounds both directions, joined by chords and mirrored (E1)."""

    def atoms(self) -> Atoms:
        """Return atoms at ±ε for the changes of slope, and the rest at 0."""
        grid, values = self._values()
        points = [
            (Fraction(math.exp(x)), Fraction(min(h, 1.0)), x)
            for x, h in zip(grid, values, strict=True)
        ]
        kept = _raised(lower_hull(points))
        # The first chord takes from the mass at 0; a longer one, which is flatter, takes less.
        while len(kept) > 1 and _rest(kept) < 0:
            del kept[1]
        if _rest(kept) < 0:
            return super().atoms()
        slopes = [(a[1] - b[1]) / (b[0] - a[0]) for a, b in pairwise(kept)]
        slopes.append(Fraction(0))
        q = [before - after for before, after in pairwise(slopes)]
        rows = [(x[2], w * x[0], w) for x, w in zip(kept[1:], q, strict=True) if w > 0]
        upper = [tuple(float(entry) for entry in row) for row in rows]
        zero = float(_rest(kept))
        table = np.array(
            [(-loss, below, above) for loss, above, below in reversed(upper)]
            + [(0.0, zero, zero)]
            + upper
        )
        infinite = float(kept[-1][1])
        error = 8.0 * U * (1.0 + grid[-1])
        loss, p, q_mass = (table[:, column].copy() for column in range(3))
        return Atoms(loss, p, q_mass, infinite, infinite, 8.0 * U, error)


def _raised(kept: list[Point]) -> list[Point]:
    """Return the points a little nearer to the first, where its chord is too steep by rounding."""
    start = kept[0][1]
    if len(kept) == 1 or start >= 1 or (rest := _rest(kept)) >= 0:
        return kept
    share = (1 - start) / (1 - start - rest)
    if share < ROUNDED:
        return kept
    return [(x, start - share * (start - h), loss) for x, h, loss in kept]


def _rest(kept: list[Point]) -> Fraction:
    """Return the mass at loss 0: what the mirrored halves leave."""
    start = kept[0][1]
    if len(kept) == 1:
        return 1 - start
    slope = (start - kept[1][1]) / (kept[1][0] - kept[0][0])
    return 1 - start - 2 * slope
