"""The pair of a Poisson-sampled discrete pair: the same atoms, at other losses."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accountant._rounding import TINY, U, lift, product_up, up
from accountant.pairs.atoms import AtomicPair, Atoms
from accountant.pairs.base import DominatingPair
from accountant.pairs.sampled_loss import loss_of_sample, loss_of_the_rest
from accountant.sampling.sampled_curve import curve_of_sample

__all__ = ["SampledAtoms"]


@dataclass(frozen=True)
class SampledAtoms(AtomicPair):
    """A Poisson-sampled discrete pair: its atoms, at their new losses."""

    inner: AtomicPair
    q: float
    add: bool
    reverse: DominatingPair | None = None

    def atoms(self) -> Atoms:
        """Return the inner atoms carried forward; those of one law alone become finite."""
        table, q = self.inner.loss_atoms, self.q
        loss, p, mass_q = table.loss, table.p, table.q
        if self.add:
            new = -loss_of_sample(q, -loss)
            second = (1.0 - q) * p + q * mass_q
            first, extra = p, table.infinite_p
            end, at_end = -math.log1p(-q), (extra, (1.0 - q) * extra)
            infinite_p, infinite_q = 0.0, q * table.infinite_q
        else:
            new = loss_of_sample(q, loss)
            first = (1.0 - q) * mass_q + q * p
            second, extra = mass_q, table.infinite_q
            end, at_end = math.log1p(-q), ((1.0 - q) * extra, extra)
            infinite_p, infinite_q = q * table.infinite_p, 0.0
        if extra > 0.0:
            place = new.size if self.add else 0
            new = np.insert(new, place, end)
            first = np.insert(first, place, at_end[0])
            second = np.insert(second, place, at_end[1])
        new = np.maximum.accumulate(new)
        # Losses are in order: the largest is at an end.
        error = table.loss_error + 16.0 * U * max(-float(new[0]), float(new[-1]))
        # A loss may have underflowed to 0.
        error = max(error, TINY) if loss[0] != 0.0 or loss[-1] != 0.0 else error
        return Atoms(
            new,
            first.copy(),
            second.copy(),
            infinite_p,
            infinite_q,
            table.relative_error + 8.0 * U,
            error,
            table.absolute_error + 1e-323,
        )

    @property
    def infinite_mass(self) -> float:
        """Only a record that was used can be lost, however seldom."""
        return 0.0 if self.add else product_up(self.q, self.inner.infinite_mass)

    @property
    def support(self) -> tuple[float, float]:
        """The ends of the atoms, or of what inner losses without bound are mapped to."""
        own: dict[str, tuple[float, float]] = self.__dict__
        if "_support" not in own:
            own["_support"] = self._ends()
        return own["_support"]

    def _ends(self) -> tuple[float, float]:
        low, high = super().support
        inner_low, inner_high = self.inner.support
        if self.add:
            low = -math.inf if inner_low == -math.inf else low
            return low, (max(high, -loss_of_the_rest(self.q)) if inner_high == math.inf else high)
        low = min(low, loss_of_the_rest(self.q)) if inner_low == -math.inf else low
        return low, (math.inf if inner_high == math.inf else high)

    def finite_rdp(self, order: float) -> float:
        """Return the divergence of the finite losses, rounded up.

        A high order is ruled by outcomes too rare to be among the atoms, so with an unbounded inner
        loss it is the inner curve that is amplified (Theorem M16).
        """
        if all(map(math.isfinite, self.inner.support)):
            return super().finite_rdp(order)
        return curve_of_sample(self.inner, self.reverse, self.q, self.add, order)

    @property
    def variation(self) -> float:
        """Only a record that was used is seen."""
        inner = self.inner.variation
        return up(lift(self.q * inner), 2.0) if inner > 0.0 else 0.0

    @property
    def rho(self) -> float:
        """No more than that of the inner pair (Theorem M6)."""
        return min(self.inner.rho, super().rho)

    @property
    def mu(self) -> float:
        """No more than that of the inner pair (Theorem M6)."""
        return min(self.inner.mu, super().mu)
