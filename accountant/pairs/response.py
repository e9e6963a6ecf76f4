"""The pair of randomised response, which dominates every pure or approximate guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accountant._basics.rounding import U, lift, up
from accountant.pairs.atoms import AtomicPair, Atoms
from accountant.pairs.base import LineLaw
from accountant.pairs.excess import divergence


@dataclass(frozen=True)
class ResponsePair(AtomicPair):
    """Losses ε, 0 and -ε, and an infinite one.

    Parameters
    ----------
    bound : float
        ε >= 0.
    others : int
        Number of outcomes of loss 0 beside the two of loss ±ε.
    infinite : float
        Mass of the infinite losses, in [0, 1].
    """

    bound: float
    others: int = 0
    infinite: float = 0.0

    def atoms(self) -> Atoms:
        """Return three atoms at most."""
        if self.bound == math.inf:  # a quotient beyond the doubles: its losses dominate it
            return ResponsePair(0.0, self.others, 1.0).atoms()
        e, k = self.bound, float(self.others)
        down = math.exp(-e)
        most = (1.0 - self.infinite) / (1.0 + down + k * down)
        # A mass that underflows is below 1e-300, which `Masses` allows to ignore.
        masses, loss = [down * most, most], [-e, e]
        if self.others:
            masses.insert(1, k * down * most)
            loss.insert(1, 0.0)
        p, q = np.array(masses), np.array(masses[::-1])
        return Atoms(np.array(loss), p, q, self.infinite, self.infinite, 32.0 * U, 0.0)

    @property
    def support(self) -> tuple[float, float]:
        """From -ε to ε, exactly."""
        return (-self.bound, self.bound) if self.bound < math.inf else (0.0, 0.0)

    @property
    def pure_epsilon(self) -> float:
        """The ε, where no loss is infinite."""
        return math.inf if self.infinite > 0.0 else self.bound

    @property
    def infinite_mass(self) -> float:
        """As given, exactly."""
        return self.infinite if self.bound < math.inf else 1.0

    @property
    def line(self) -> LineLaw | None:
        """The atoms; two of opposite losses alone have a transform whose powers have all digits."""
        found = super().line
        if found is None or self.others or self.infinite or not self.bound > 0.0:
            return found
        return found._replace(spread=self.bound)

    @property
    def lattice(self) -> tuple[float, float] | None:
        """Multiples of ε, or of 2ε when 0 is not among them."""
        spacing = self.bound if self.others else 2.0 * self.bound
        return (-self.bound, spacing) if 0.0 < spacing < math.inf else None

    def finite_rdp(self, order: float) -> float:
        """Return the divergence of the finite part in closed form, rounded up."""
        e = self.bound
        if e == 0.0 or e == math.inf:  # the loss beyond the doubles is not a finite one
            return 0.0
        # A - 1 = (e^{(α-1)ε} - 1)(1 - e^{-αε}) / (1 + (k-1)e^{-ε}), all factors positive.
        weight = 1.0 / (1.0 + (self.others + 1.0) * math.exp(-e))
        small = (order - 1.0) * e
        if small < 600.0:
            excess = weight * math.expm1(small) * -math.expm1(-order * e)
            return divergence(lift(excess) * (1.0 + 64.0 * U), order)
        return up(e, 4.0)
