"""Gaussian noise scaled to a smooth bound on the local sensitivity."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field

from accountant import checks
from accountant._basics.rounding import U, lift
from accountant.checks import Argument
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.fields import set_fields
from accountant.pairs.base import DominatingPair
from accountant.relations import NeighbouringRelation

SMOOTHNESS = Argument(
    "smoothness",
    "a finite number > 0",
    lambda x: (x > 0.0) & (x < math.inf),
    "It is β: neighbours' bounds on the sensitivity differ by a factor of at most e^β",
)


@dataclass(frozen=True, repr=False)
class SmoothSensitivityGaussian(Mechanism):
    """A number released with normal noise of σ times a β-smooth bound on its local sensitivity.

    Parameters
    ----------
    noise_multiplier : float
        σ > 0.
    smoothness : float
        β > 0.
    relation : NeighbouringRelation, keyword only
        The relation of the local sensitivity.

    Notes
    -----
    *Guarantee.* D_α <= α/(2σ²v) + max over t = ±β of (2αt - log(1 - α + αe^{2t}))/(2(α-1)), where
    v = 1 - α + αe^{-2β} must be > 0: orders below about 1/(2β) (docs/theorems_selection.md, Theorem
    P12).
    """

    theorems = ("P12",)
    about = (
        "A number released with normal noise of σ times a β-smooth bound on its local sensitivity."
    )

    noise_multiplier: float
    _: KW_ONLY
    smoothness: float
    relation: NeighbouringRelation = field(default=NeighbouringRelation.ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        set_fields(self, checks.NOISE_MULTIPLIER, SMOOTHNESS)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the Rényi curve, which holds in both directions."""
        return (SmoothPair(self.noise_multiplier, self.smoothness),)


@dataclass(frozen=True)
class SmoothPair(DominatingPair):
    """Two normal laws whose means and variances differ."""

    noise_multiplier: float
    smoothness: float

    def rdp(self, order: float) -> float:
        """Return the bound of Theorem P12, rounded up; infinite where there is none."""
        shrunk = 1.0 + order * math.expm1(-2.0 * self.smoothness) * (1.0 + 8.0 * U) - 8.0 * U
        if not (shrunk > 1e-9):
            return math.inf
        # Divided one by one: no square overflows. The last term covers underflow.
        noise = lift(self.noise_multiplier)
        moved = order / shrunk / 2.0 / noise / noise + 1e-320
        spread = max(self._spread(order, t) for t in (self.smoothness, -self.smoothness))
        return (moved + spread) * (1.0 + 64.0 * U)

    def _spread(self, order: float, t: float) -> float:
        inside = order * math.expm1(2.0 * t)
        value = 2.0 * order * t - math.log1p(inside)
        # Both terms are nearly 2αt; near 1 + inside = 0 the logarithm magnifies what it is given.
        error = 16.0 * U * (abs(inside) / (1.0 + inside) + abs(value) + 2.0 * order * abs(t))
        return (max(value, 0.0) + error) / (2.0 * (order - 1.0))
