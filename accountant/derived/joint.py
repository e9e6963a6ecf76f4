"""Several releases on one sample as one release, with the pair of their joint profile."""

from __future__ import annotations

from dataclasses import dataclass

from accountant.analyses.profile import joint_pair
from accountant.composition.problems import problems_of
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.fields import Wrapper, mechanism_of
from accountant.pairs.base import DominatingPair


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
