"""Mechanisms known by a Rényi curve: zCDP, truncated CDP, a user's, smooth sensitivity."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field

from accountant import checks
from accountant._basics.rounding import U, lift, up
from accountant.checks import Argument
from accountant.environment import to_nearest
from accountant.errors import DomainError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.fields import Stated, set_fields
from accountant.pairs.base import DominatingPair
from accountant.relations import ADD_OR_REMOVE, NeighbouringRelation

OMEGA = checks.OMEGA.renamed("omega", "The bound ρα holds for the orders 1 < α < ω")
RHO = checks.FINITE_EPSILON.renamed("rho")


@dataclass(frozen=True, repr=False, init=False)
class ZCDP(Stated):
    """Any ρ-zero-concentrated mechanism: D_α <= ρα at every order (Bun, Steinke 2016).

    Parameters
    ----------
    rho : float
        The parameter ρ >= 0, finite.
    relation : NeighbouringRelation, keyword only
        The relation under which it holds.

    Notes
    -----
    *Guarantee.* By definition; what follows from it is in Theorems M12 and C15.
    """

    theorems = ("M12", "C15")
    about = "Any ρ-zero-concentrated mechanism: D_α <= ρα at every order (Bun, Steinke 2016)."
    power = 2
    claim = "a ρ"

    rho0: float = field(metadata={"argument": "rho"})
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __init__(self, rho: float, *, relation: NeighbouringRelation = ADD_OR_REMOVE) -> None:
        set_fields(self, rho0=checks.number(RHO, rho), relation=relation)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the curve, which holds in both directions."""
        return (ConcentratedPair(self.rho0),)


@dataclass(frozen=True, repr=False, init=False)
class TruncatedCDP(Mechanism):
    """Any (ρ, ω)-truncated concentrated mechanism: D_α <= ρα for 1 < α < ω.

    Parameters
    ----------
    rho : float
        The parameter ρ >= 0, finite.
    omega : float
        The order ω > 1 below which the bound holds (``inf`` is zCDP).
    relation : NeighbouringRelation, keyword only
        The relation under which it holds.

    Notes
    -----
    *Guarantee.* By definition (Bun, Dwork, Rothblum, Steinke 2018); what follows from it is in
    Theorems M12 and C15.
    """

    theorems = ("M12", "C15")
    about = "Any (ρ, ω)-truncated concentrated mechanism: D_α <= ρα for 1 < α < ω."
    claim = "a (ρ, ω)"

    rho0: float = field(metadata={"argument": "rho"})
    _: KW_ONLY
    omega: float
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __init__(
        self, rho: float, *, omega: float, relation: NeighbouringRelation = ADD_OR_REMOVE
    ) -> None:
        set_fields(
            self, rho0=checks.number(RHO, rho), omega=checks.number(OMEGA, omega), relation=relation
        )

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the curve, which holds in both directions."""
        return (ConcentratedPair(self.rho0, self.omega),)


@dataclass(frozen=True)
class ConcentratedPair(DominatingPair):
    """A line ρα below an order ω; ``is_symmetric`` where a bijection exchanges P and Q."""

    slope: float
    omega: float = math.inf
    is_symmetric: bool = False

    @property
    def rho(self) -> float:
        """ρ, when it holds at every order."""
        return self.slope if self.omega == math.inf else math.inf

    def rdp(self, order: float) -> float:
        """Return ρα, rounded up; infinite from ω on."""
        return up(self.slope * order, 1.0) if order < self.omega else math.inf


@dataclass(frozen=True, repr=False)
class RenyiCurve(Mechanism):
    """A Rényi curve of the user's own: a function, or a table of orders.

    Parameters
    ----------
    curve : callable
        ``curve(order)`` bounds D_order in both directions at every real order > 1, in nats; it may
        return ``inf``. Use a named function, and not a lambda, if ``repr`` is to mean something;
        :meth:`from_table` makes one that hashes and prints by value.
    relation : NeighbouringRelation, keyword only
        The relation under which it holds.

    Notes
    -----
    *Guarantee.* That of the curve, the user's claim; what follows from it is in Theorem M12.
    """

    theorems = ("M12",)
    about = "A Rényi curve of the user's own: a function, or a table of orders."
    claim = "a Rényi curve"

    curve: Callable[[float], float]
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        advice = "A table of orders goes to RenyiCurve.from_table"
        checks.function("curve", self.curve, "the order", advice)
        set_fields(self)

    @classmethod
    @to_nearest
    def from_table(
        cls,
        orders: Sequence[float],
        divergences: Sequence[float],
        *,
        relation: NeighbouringRelation = ADD_OR_REMOVE,
    ) -> RenyiCurve:
        """Return the curve through bounds at some orders, valid at all of them (Theorem M14).

        Parameters
        ----------
        orders, divergences : sequences of float
            Orders > 1 and bounds >= 0 on the divergence at each, in nats.
        """
        return cls(RenyiTable(tuple(orders), tuple(divergences)), relation=relation)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the curve, which holds in both directions."""
        return (CurvePair(self.curve),)

    def __repr__(self) -> str:
        """Return the constructor call; that of a table evaluates back."""
        if not isinstance(self.curve, RenyiTable):
            return super().__repr__()
        rest = "" if self.relation is ADD_OR_REMOVE else f", relation={self.relation!r}"
        table = self.curve
        return f"RenyiCurve.from_table({table.orders!r}, {table.divergences!r}{rest})"


@dataclass(frozen=True)
class RenyiTable:
    """Bounds at some orders, carried to all real ones by convexity of (α - 1)·D_α.

    Parameters
    ----------
    orders, divergences : tuple of float
        As in :meth:`RenyiCurve.from_table`; stored in increasing order.
    """

    orders: tuple[float, ...]
    divergences: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.orders) != len(self.divergences) or not self.orders:
            raise DomainError(
                "orders and divergences must have one common length >= 1;"
                f" got {len(self.orders)} and {len(self.divergences)}"
            )
        bound = checks.FINITE_EPSILON.renamed("divergences")
        rows = sorted(
            (checks.number(checks.ORDER, a), checks.number(bound, d))
            for a, d in zip(self.orders, self.divergences, strict=True)
        )
        object.__setattr__(self, "orders", tuple(a for a, _ in rows))
        object.__setattr__(self, "divergences", tuple(d for _, d in rows))

    def __call__(self, order: float) -> float:
        """Return the bound at any real order > 1; infinite beyond the last."""
        place = bisect_left(self.orders, order)
        if place == len(self.orders):
            return math.inf
        high, d = self.orders[place], self.divergences[place]
        if order == high:
            return d
        # K(α) = (α-1)·D_α is convex and vanishes at 1: it lies below chords.
        low, before = (self.orders[place - 1], self.divergences[place - 1]) if place else (1.0, 0.0)
        share = (order - low) / (high - low)
        chord = (low - 1.0) * before * (1.0 - share) + (high - 1.0) * d * share
        # D_α does not decrease with the order either.
        return min(up(chord / (order - 1.0), 16.0), d)


@dataclass(frozen=True)
class CurvePair(DominatingPair):
    """A pair of which only a Rényi curve is known."""

    curve: Callable[[float], float]

    def rdp(self, order: float) -> float:
        """Return what the curve says, checked."""
        value = self.curve(order)
        if not (float(value) >= 0.0):
            raise DomainError(
                f"a Rényi curve must return a number >= 0; it returned {value!r} at order {order!r}"
            )
        return float(value)


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
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

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
