"""What is answered without a grid: one release, and few releases of finitely many losses."""

from __future__ import annotations

from accountant.analyses.few_losses import SumOfLosses, sum_of_losses
from accountant.analyses.single_release import (
    ends_of,
    epsilon_between_losses,
    epsilon_of_one,
    profile_of_one,
)
from accountant.bounds import Bounds
from accountant.pairs.base import Parts

# Masses left out of sums, in all: those for a δ of at least COMMON, and those for any other.
COMMON = 1e-12
UNSEEN = {True: 1e-26, False: 1e-285}


class Direct:
    """The profile of parts by theorem G9 or G12, where one of them applies.

    ``is_lone`` tells that the parts are one release.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.is_lone = sum(n for _, n in parts) == 1
        self._sums: dict[bool, SumOfLosses | None] = {}

    def is_known(self) -> bool:
        """Tell whether an answer costs no more than a first guess would."""
        return self.is_lone or self._sum(True) is not None

    def epsilon_bounds(self, delta: float) -> Bounds | None:
        """Bracket ε(delta), 0 < delta < 1; None where no theorem decides it."""
        if self.is_lone:
            return epsilon_of_one(self._parts[0][0], delta)
        found = self._sum(delta >= COMMON)
        if found is None:
            return None
        return epsilon_between_losses(found.losses, ends_of(found.profile), delta)

    def delta_bounds(self, epsilon: float) -> Bounds | None:
        """Bracket δ(epsilon), epsilon >= 0; None where no theorem decides it."""
        if self.is_lone:
            return profile_of_one(self._parts[0][0], epsilon)
        bounds = None
        for common in UNSEEN:
            found = self._sum(common)
            if found is None:
                break
            bounds = found.profile(epsilon).intersection(bounds)
            if bounds.upper >= COMMON:
                break
        return bounds

    @property
    def loss_error(self) -> float:
        """How far the losses may be off, in nats."""
        if self.is_lone:
            return self._parts[0][0].loss_error
        found = self._sum(True)
        return 0.0 if found is None else found.losses.loss_error

    def _sum(self, common: bool) -> SumOfLosses | None:
        if common not in self._sums:
            self._sums[common] = sum_of_losses(self._parts, UNSEEN[common])
        return self._sums[common]
