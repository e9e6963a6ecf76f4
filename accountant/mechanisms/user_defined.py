"""A user's dominating pair: two PMFs, or the distribution functions of the loss."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, up
from accountant.errors import DomainError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.fields import set_fields
from accountant.pairs.atoms import AtomicPair, Atoms
from accountant.pairs.base import DominatingPair, Masses
from accountant.relations import ADD_OR_REMOVE, NeighbouringRelation

NORMALISED = 1e-9  # how far the sum of a PMF may be from one
CHANCE = checks.Argument(
    "p",
    "probabilities in [0, 1]",
    lambda x: (x >= 0.0) & (x <= 1.0),
    "Each is the mass of one outcome",
)


@dataclass(frozen=True, repr=False)
class DominatingPMFs(Mechanism):
    """A mechanism dominated by two probability mass functions on the same outcomes.

    Parameters
    ----------
    p, q : sequence of float
        Masses of the outcomes with the record and without it, of one length; each sums to one to
        within 1e-9. The reversed pair (q, p) is used for the other direction.
    infinite_loss : bool, keyword only
        Allow outcomes possible under one of the two alone. Their mass is a δ that no ε removes, and
        more often a sign of supports that do not match.
    relation : NeighbouringRelation, keyword only
        The relation under which the pair dominates.

    Notes
    -----
    *Guarantee.* That the pair dominates is the user's claim. A sum that misses one by rounding is
    part of the error carried (docs/theorems_mechanisms.md, Theorem M2).
    """

    theorems = ("M2",)
    about = "A mechanism dominated by two probability mass functions on the same outcomes."
    claim = "a dominating pair"

    p: tuple[float, ...]
    q: tuple[float, ...]
    infinite_loss: bool = field(default=False, kw_only=True)
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        checks.flag("infinite_loss", self.infinite_loss)
        p, q = _pmf("p", self.p), _pmf("q", self.q)
        if len(p) != len(q):
            raise DomainError(
                f"p and q must list the same outcomes; got {len(p)} and {len(q)} of them."
                " Give an impossible outcome the mass 0"
            )
        alone = [i for i, (a, b) in enumerate(zip(p, q, strict=True)) if (a > 0.0) != (b > 0.0)]
        if alone and not self.infinite_loss:
            raise DomainError(
                f"p and q must have one support; outcome {alone[0]} has masses {p[alone[0]]!r} and"
                f" {q[alone[0]]!r}. If its loss is meant to be infinite, say infinite_loss=True"
            )
        set_fields(self, p=p, q=q)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the pair and its reverse; one when exchanging outcomes exchanges them."""
        pair = PMFPair(self.p, self.q)
        rows = sorted(zip(self.p, self.q, strict=True))
        if rows == sorted(zip(self.q, self.p, strict=True)):
            return (pair,)
        return pair, PMFPair(self.q, self.p)


@dataclass(frozen=True)
class PMFPair(AtomicPair):
    """Two PMFs; ``p`` against ``q``."""

    p: tuple[float, ...]
    q: tuple[float, ...]

    def atoms(self) -> Atoms:
        """Return one atom for every outcome possible under both."""
        pairs = list(zip(self.p, self.q, strict=True))
        loss, p, q = _in_columns(pairs)
        # fsum rounds once, so these have all their digits.
        off = max(abs(math.fsum([*self.p, -1.0])), abs(math.fsum([*self.q, -1.0])))
        apart = abs(math.fsum([a for a, _ in pairs] + [-b for _, b in pairs]))
        most = max(-float(loss[0]), float(loss[-1]))
        # Normalising moves every mass by the same factor, and every loss by log(Σq / Σp).
        error = off + off * off + 8.0 * U
        return Atoms(
            loss,
            p,
            q,
            math.fsum([a for a, b in pairs if b == 0.0]),
            math.fsum([b for a, b in pairs if a == 0.0]),
            error,
            up(16.0 * U * most + apart * (1.0 + 4.0 * NORMALISED)),
        )


def _in_columns(pairs: list[tuple[float, float]]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return losses, in order, and masses of the outcomes possible under both; 0 if none is."""
    p, q = np.array(pairs).T
    both = (p > 0.0) & (q > 0.0)
    if not both.any():
        return np.zeros(1), np.zeros(1), np.zeros(1)
    loss = _log_ratio(p[both], q[both])
    order = np.argsort(loss, kind="stable")
    return loss[order], p[both][order], q[both][order]


def _log_ratio(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return log(p/q) to a relative 16 U; 0 where p = q."""
    with np.errstate(over="ignore", divide="ignore", under="ignore", invalid="ignore"):
        # Within a factor of two the difference is exact, and keeps the digits of a loss near 0.
        gap = (p - q) / q
        ratio = p / q
        far = (ratio < 1e-300) | (ratio > 1e300)
        loss = np.log(np.where(far, 1.0, ratio))
        if far.any():
            loss[far] = np.log(p[far]) - np.log(q[far])
        return np.where(np.abs(gap) < 0.5, np.log1p(gap), loss)


@dataclass(frozen=True, repr=False)
class LossDistribution(Mechanism):
    """A mechanism known by the distribution functions of its privacy loss.

    Parameters
    ----------
    below_p, below_q : callable
        ``below_p(t)`` is P{L <= t} for an array of t, and ``below_q(t)`` Q{L <= t}, where
        L = log dP/dQ; vectorised, accurate to ``relative_error`` in the lower tail.
    above_p, above_q : callable
        P{L > t} and Q{L > t}, accurate in the upper tail.
    losses : tuple of float
        An enclosure of the finite losses; ends may be infinite.
    relative_error : float, keyword only
        Claimed for all four.
    infinite_mass : float, keyword only
        P{L = +∞}, which ``above_p`` includes.
    relation : NeighbouringRelation, keyword only
        The relation. The reversed pair, whose loss is -L, is used for the other direction.

    Notes
    -----
    *Guarantee.* That the pair dominates, and that the four functions are its own, is the user's
    claim; what follows from it is in Theorem M2.
    """

    theorems = ("M2",)
    about = "A mechanism known by the distribution functions of its privacy loss."
    claim = "a loss distribution"

    below_p: Callable[[FloatArray], FloatArray]
    above_p: Callable[[FloatArray], FloatArray]
    below_q: Callable[[FloatArray], FloatArray]
    above_q: Callable[[FloatArray], FloatArray]
    losses: tuple[float, float] = field(default=(-math.inf, math.inf), kw_only=True)
    relative_error: float = field(default=1e-14, kw_only=True)
    infinite_mass: float = field(default=0.0, kw_only=True)
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("below_p", "above_p", "below_q", "above_q"):
            checks.function(name, getattr(self, name), "an array of losses")
        low, high = self.losses
        if not (low <= 0.0 <= high):
            raise DomainError(f"losses must enclose 0; got {self.losses!r}")
        bound = checks.FINITE_EPSILON.renamed("relative_error", "It is that of the functions")
        mass = checks.STATED_DELTA.renamed("infinite_mass")
        set_fields(
            self,
            losses=(float(low), float(high)),
            relative_error=checks.number(bound, self.relative_error),
            infinite_mass=checks.number(mass, self.infinite_mass),
        )

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the pair of the four functions, and its reverse."""
        functions = (self.below_p, self.above_p, self.below_q, self.above_q)
        pair = GivenLossPair(functions, self.losses, self.relative_error, self.infinite_mass)
        low = max(math.nextafter(self.losses[0], -math.inf), -sys.float_info.max)
        # What Q has below all finite losses is lost to it alone.
        only_q = float(np.asarray(self.below_q(np.array([low])), dtype=np.float64)[0])
        atom = min(only_q * (1.0 + self.relative_error), 1.0)
        return pair, replace(pair, atom=atom, reverse=True)


@dataclass(frozen=True)
class GivenLossPair(DominatingPair):
    """Masses as differences of given distribution functions.

    Parameters
    ----------
    functions, losses, relative_error
        As in :class:`LossDistribution`, of the loss L under P and Q.
    atom : float
        Mass of the infinite loss.
    reverse : bool
        The pair (Q, P), of loss -L.
    """

    functions: tuple[Callable[[Any], Any], ...]
    losses: tuple[float, float]
    relative_error: float
    atom: float
    reverse: bool = False

    @property
    def support(self) -> tuple[float, float]:
        """As given, or mirrored."""
        low, high = self.losses
        return (-high, -low) if self.reverse else (low, high)

    @property
    def infinite_mass(self) -> float:
        """As given."""
        return self.atom

    def masses(self, edges: FloatArray) -> Masses:
        """Return differences, on the side where they lose least; their error is measured."""
        edges = np.asarray(edges, dtype=np.float64)
        if self.reverse:
            return replace(self, reverse=False).masses(-edges[::-1]).reverse()
        below_p, above_p, below_q, above_q = self.functions
        p, lost_p = _differences(below_p(edges), above_p(edges))
        q, lost_q = _differences(below_q(edges), above_q(edges))
        lost = max(lost_p, lost_q)
        return Masses(p, q, (self.relative_error + 2.0 * U) * lost + 4.0 * U)


def _pmf(name: str, values: Sequence[float]) -> tuple[float, ...]:
    chance = CHANCE.renamed(name)
    masses = tuple(checks.number(chance, value) for value in checks.sequence(name, values))
    total = math.fsum(masses)
    if not (abs(total - 1.0) <= NORMALISED):
        raise DomainError(f"{name} must sum to one, to within {NORMALISED}; got {total!r}")
    return masses


def _differences(below: object, above: object) -> tuple[FloatArray, float]:
    """Return the masses of the cells and the factor by which differences enlarge errors."""
    below = np.asarray(below, dtype=np.float64)
    above = np.asarray(above, dtype=np.float64)
    if below.size == 0:
        return np.ones(1), 1.0
    left = np.diff(below)
    right = -np.diff(above)
    use_left = below[1:] <= above[:-1]
    inner = np.maximum(np.where(use_left, left, right), 0.0)
    size = np.where(use_left, below[1:] + below[:-1], above[:-1] + above[1:])
    lost = float(np.max(size[inner > 1e-300] / inner[inner > 1e-300], initial=1.0))
    return np.concatenate([below[:1], inner, above[-1:]]), lost
