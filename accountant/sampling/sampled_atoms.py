"""The pair of a Poisson-sampled discrete pair: the same atoms, at other losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from accountant._rounding import TINY, U, lift, product_up, up
from accountant._typing import FloatArray
from accountant.pairs.atoms import LOOPED, AtomicPair, Atoms
from accountant.pairs.base import DominatingPair
from accountant.pairs.excess import loss_of_sample, loss_of_the_rest, one_loss_of_sample
from accountant.sampling.sampled_curve import curve_of_sample


@dataclass(frozen=True)
class SampledAtoms(AtomicPair):
    """A Poisson-sampled discrete pair: its atoms, at their new losses."""

    inner: AtomicPair
    q: float
    add: bool
    reverse: DominatingPair | None = None

    def atoms(self) -> Atoms:
        """Return the inner atoms carried forward; those of one law alone become finite."""
        table = self.inner.loss_atoms
        if table.loss.size <= LOOPED:
            return self._made_of(table, *self._few(table))
        return self._made_of(table, *self._many(table))

    def _few(self, table: Atoms) -> tuple[FloatArray, ...]:
        """Return the new losses and masses of a few atoms, by a loop."""
        q, add = self.q, self.add
        rest = 1.0 - q
        rows = zip(table.loss.tolist(), table.p.tolist(), table.q.tolist(), strict=True)
        if add:
            new = [(-one_loss_of_sample(q, -t), a, rest * a + q * b) for t, a, b in rows]
            if table.infinite_p > 0.0:
                new.append((-math.log1p(-q), table.infinite_p, rest * table.infinite_p))
        else:
            new = [(one_loss_of_sample(q, t), rest * b + q * a, b) for t, a, b in rows]
            if table.infinite_q > 0.0:
                new.insert(0, (math.log1p(-q), rest * table.infinite_q, table.infinite_q))
        loss, first, second = zip(*new, strict=True)
        return np.array(list(accumulate(loss, max))), np.array(first), np.array(second)

    def _many(self, table: Atoms) -> tuple[FloatArray, ...]:
        """Return the new losses and masses, by arrays."""
        q, loss, p, mass_q = self.q, table.loss, table.p, table.q
        if self.add:
            new = -loss_of_sample(q, -loss)
            second = (1.0 - q) * p + q * mass_q
            first, extra = p, table.infinite_p
            end, at_end = -math.log1p(-q), (extra, (1.0 - q) * extra)
        else:
            new = loss_of_sample(q, loss)
            first = (1.0 - q) * mass_q + q * p
            second, extra = mass_q, table.infinite_q
            end, at_end = math.log1p(-q), ((1.0 - q) * extra, extra)
        if extra > 0.0:
            place = new.size if self.add else 0
            new = np.insert(new, place, end)
            first = np.insert(first, place, at_end[0])
            second = np.insert(second, place, at_end[1])
        return np.maximum.accumulate(new), first.copy(), second.copy()

    def _made_of(
        self, table: Atoms, new: FloatArray, first: FloatArray, second: FloatArray
    ) -> Atoms:
        """Return the atoms of these losses and masses, with what is infinite and their errors."""
        return Atoms(
            new,
            first,
            second,
            0.0 if self.add else self.q * table.infinite_p,
            self.q * table.infinite_q if self.add else 0.0,
            table.relative_error + 8.0 * U,
            self._error(table, float(new[0]), float(new[-1])),
            table.absolute_error + 1e-323,
        )

    @staticmethod
    def _error(table: Atoms, low: float, high: float) -> float:
        """Return the error of new losses between two ends: the largest is at one of them."""
        error = table.loss_error + 16.0 * U * max(-low, high)
        # A loss may have underflowed to 0.
        return max(error, TINY) if table.loss[0] != 0.0 or table.loss[-1] != 0.0 else error

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

    @property
    def has_negative_infinite_loss(self) -> bool:
        """Whether Q has outcomes that P has not: of an addition, what the inner Q alone has."""
        return self.add and self.inner.loss_atoms.infinite_q > 0.0

    def _losses_within(self) -> tuple[float, float]:
        """Return the ends of the losses without a table: the new loss rises with the inner one."""
        table = self.inner.loss_atoms
        low, high = float(table.loss[0]), float(table.loss[-1])
        if self.add:
            low, high = -one_loss_of_sample(self.q, -low), -one_loss_of_sample(self.q, -high)
            high = max(high, -math.log1p(-self.q)) if table.infinite_p > 0.0 else high
        else:
            low, high = one_loss_of_sample(self.q, low), one_loss_of_sample(self.q, high)
            low = min(low, math.log1p(-self.q)) if table.infinite_q > 0.0 else low
        error = self._error(table, low, high)
        if error == 0.0:
            return low, high
        return math.nextafter(low - error, -math.inf), math.nextafter(high + error, math.inf)

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
