"""Random allocation of any mechanism whose loss distribution is known.

A record takes part in one of T runs, picked uniformly; S is the mean of T likelihood ratios of one
run (docs/theorems_sampling.md, Theorem S23). A run of few losses has its law exactly.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from itertools import combinations
from typing import TypeGuard

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import TINY, U
from accountant.bounds import Bounds
from accountant.checks import describe
from accountant.errors import ArgumentTypeError, UnsupportedError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.fields import set_fields
from accountant.pairs.atoms import AtomicPair, Atoms
from accountant.pairs.base import DominatingPair, has_pld
from accountant.relations import NeighbouringRelation
from accountant.sampling.random_allocation import ALLOCATION, FromBelow
from accountant.sampling.ratio_pair import FARTHEST, MechanismPair, is_resolved

# The most vectors of counts that are listed; only speed depends on it.
MOST_COUNTS = 2**14


@dataclass(frozen=True)
class CountsPair(MechanismPair):
    """One of several runs of few losses, exactly: by how many runs have each of them."""

    lattice = AtomicPair.lattice
    rdp = AtomicPair.rdp

    def atoms(self) -> Atoms:
        """Return one atom for every vector of counts."""
        table, times = self.one.loss_atoms, self.steps
        assert table is not None
        masses, loss = _outcomes(table)
        bars = np.array(list(combinations(range(times + masses.size - 1), masses.size - 1)), int)
        ends = np.full((bars.shape[0], 1), -1), np.full((bars.shape[0], 1), times + masses.size - 1)
        counts = np.diff(np.hstack([ends[0], bars, ends[1]])) - 1
        factorials = np.array([math.lgamma(k + 1.0) for k in range(times + 1)])
        ways = factorials[counts].sum(axis=1)
        logs = factorials[times] - ways + counts @ np.log(masses)
        sizes = factorials[times] + ways + counts @ np.abs(np.log(masses))
        q = np.exp(logs)
        ratio, excess = counts @ np.exp(loss) / times, counts @ np.expm1(loss) / times
        # Near 1 the logarithm needs the distance from it; a mean is between the least and largest.
        with np.errstate(divide="ignore"):
            found = np.where(
                np.abs(excess) < 0.5, np.log1p(np.maximum(excess, -0.9)), np.log(ratio)
            )
        found = np.where(ratio > 0.0, np.clip(found, *self._within), -math.inf)
        order = np.argsort(found)
        order = order[ratio[order] > 0.0]
        none = float(q[ratio == 0.0].sum()) + (TINY if (ratio == 0.0).any() else 0.0)
        unit = min(float(np.abs(np.expm1(loss)).max()), 3.0) + float(np.abs(found[order]).max())
        error = table.loss_error * 1.01 + 32.0 * U * unit
        relative = times * (table.relative_error * 1.01 + 4.0 * U)
        # At most eight losses occur in so few vectors: their logarithms are added one by one.
        relative += 16.0 * U * (float(sizes[logs > -800.0].max()) + 4.0)
        absolute = max(times * table.absolute_error, TINY)
        found, q = found[order], q[order]
        p = q * ratio[order]
        rest = relative, error, absolute
        if self.add:
            return Atoms(-found[::-1], q[::-1], p[::-1], none, table.infinite_p, *rest)
        return Atoms(found, p, q, table.infinite_p, none, *rest)

    @property
    def _within(self) -> tuple[float, float]:
        """The ends of the losses of removal: a mean lies between the least and the largest ratio.

        One that is 0 may leave a single run of the least other one.
        """
        low, high = self.one.support
        nil = self.one.has_negative_infinite_loss
        return (low - 1.01 * math.log(self.steps) - 1e-9 if nil else low), high

    def _losses_within(self) -> tuple[float, float]:
        low, high = self._within
        return (-high, -low) if self.add else (low, high)

    def _bracket(self, epsilon: float, tilts: tuple[float, ...]) -> Bounds:
        return AtomicPair.profile(self, epsilon)


def _outcomes(table: Atoms) -> tuple[FloatArray, FloatArray]:
    """Return the masses without the record, none of them 0, and the losses, of which one is -∞."""
    masses, loss = np.append(table.q, table.infinite_q), np.append(table.loss, -math.inf)
    return masses[masses > 0.0], loss[masses > 0.0]


def _has_few(pair: DominatingPair, steps: int) -> TypeGuard[AtomicPair]:
    """Tell whether a run has so few losses that every vector of counts is an atom."""
    if not isinstance(pair, AtomicPair) or pair.loss_atoms.loss.size > MOST_COUNTS:
        return False
    kinds = _outcomes(pair.loss_atoms)[0].size
    within = max(map(abs, pair.support)) < FARTHEST
    return kinds > 1 and within and math.comb(steps + kinds - 1, kinds - 1) <= MOST_COUNTS


_RELATIONS = (NeighbouringRelation.ADD_OR_REMOVE, NeighbouringRelation.ZERO_OUT)


@dataclass(frozen=True, repr=False)
class AllocatedMechanism(Mechanism):
    """``steps`` runs of a mechanism, of which a record takes part in exactly one, picked uniformly.

    For Gaussian noise :class:`~accountant.sampling.Allocated` is faster and narrower.

    Parameters
    ----------
    mechanism : Mechanism
        One run, with a known loss distribution: Laplace or discrete Gaussian noise, say, or a loss
        distribution of one's own. Under add-or-remove or zero-out.
    steps : int
        Number of runs T.

    Raises
    ------
    UnsupportedError
        The mechanism has no loss distribution, or another relation.

    Notes
    -----
    *Guarantee.* Theorem S23: the pair that picks its step, attained where that of one run is.
    A run of few losses is answered exactly, and no answer is above the pure ε of one run. Else
    brackets of ε are about 3e-5 wide for a hundred runs and more where likelihood ratios are
    bounded or nearly so, and below 1 % where they have heavy tails; upper ends are narrower than
    that, and with few runs lower ends say little. Where no lattice resolves the ratios the pair of
    a single run is used: not telling which run it was only hides.

    Examples
    --------
    >>> import accountant as ac
    >>> one = ac.sampling.AllocatedMechanism(ac.Laplace(1.0), steps=1000)
    >>> one.epsilon(1e-6) < 0.12 < ac.Laplace(1.0).epsilon(1e-6)
    True
    """

    theorems = ("S23",)
    about = "Several runs of a mechanism; a record takes part in exactly one, picked uniformly."
    selection = ALLOCATION

    mechanism: Mechanism
    _: KW_ONLY
    steps: int

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise ArgumentTypeError(
                f"mechanism must be a mechanism; got {describe(self.mechanism)}. For example"
                " ac.Laplace(1.0)"
            )
        set_fields(self, steps=checks.integer("steps", self.steps, 1))
        checks.supported_relation("random allocation", self.mechanism.relation, _RELATIONS)
        pairs = self.mechanism.pairs()
        if len(pairs) > 2 or not all(has_pld(pair) for pair in pairs):
            raise UnsupportedError(
                "random allocation needs a mechanism with a loss distribution and one pair in each"
                f" direction; {self.mechanism!r} has none. Use ac.LossDistribution if you know one"
            )

    @property
    def relation(self) -> NeighbouringRelation:
        """The relation of the mechanism."""
        return self.mechanism.relation

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return (remove, add)."""
        return self.bounding_pairs(upper=True)

    def bounding_pairs(self, *, upper: bool) -> tuple[DominatingPair, ...]:
        """Return pairs that are nowhere below the mechanism's, or nowhere above them."""
        from accountant.mechanisms.gaussian import Gaussian

        pairs = self.mechanism.pairs()
        one, reverse = pairs[0], pairs[-1]
        if self.steps == 1:
            return tuple(pairs)
        if _has_few(one, self.steps):
            return tuple(CountsPair(one, reverse, self.steps, add) for add in (False, True))
        if not is_resolved(one, self.steps):
            return tuple(pairs) if upper else Gaussian(math.inf).pairs()
        return tuple(MechanismPair(one, reverse, self.steps, add, upper) for add in (False, True))

    def from_below(self) -> Mechanism:
        """Return a mechanism whose profile is nowhere above this one's (for lower bounds)."""
        one = self.mechanism.from_below()
        return FromBelow(self if one is None else AllocatedMechanism(one, steps=self.steps))
