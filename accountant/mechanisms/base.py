"""The protocol between mechanisms and analyses: mathematics, not type names.

A :class:`Mechanism` states one bound per record and one neighbouring relation, and hands out its
ordered *dominating pairs*: two of them (remove, then add) when the directions differ, one when they
do not. A :class:`DominatingPair` offers what it can of the following capabilities; an analysis asks
for the one it needs, and :class:`~accountant.errors.UnsupportedError` names what is missing.

=================  ==============================================================================
``rdp``            the Rényi curve: an upper bound on D_α(P‖Q) at every real α > 1
``masses``         the loss distribution: masses of cells of the loss under P and Q
``gaussian_part``  the loss of a Poisson-subsampled Gaussian, which the native contour inverts
``profile``        the privacy profile in closed form
=================  ==============================================================================

A mechanism of one's own needs only one of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import MISSING, fields
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from accountant.errors import UnsupportedError
from accountant.mechanisms._arithmetic import half_square
from accountant.mechanisms.answers import Answers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from accountant.bounds import Bounds
    from accountant.relations import NeighbouringRelation

__all__ = [
    "DominatingPair",
    "GaussianPart",
    "Masses",
    "Mechanism",
    "mu_of_pure",
    "offers",
    "rho_of_pure",
]

FloatArray: TypeAlias = "NDArray[np.float64]"


class GaussianPart(NamedTuple):
    """Poisson-subsampled Gaussian: sampling probability and noise multiplier; q = 1 is plain."""

    sampling_probability: float
    noise_multiplier: float
    add: bool  # the reversed pair: N(0, σ²) against the mixture


class Masses(NamedTuple):
    """Masses of consecutive cells of the privacy loss L = log(dP/dQ).

    Attributes
    ----------
    p, q : float64 array of shape (m + 1,)
        For edges t₀ < … < t_{m-1}: the masses under P and Q of L ≤ t₀, t₀ < L ≤ t₁, …, L > t_{m-1}.
        The last entry of ``p`` includes P{L = +∞}, the first of ``q`` includes Q{L = -∞}.
    relative_error : float
        Every mass lies within this relative error (and within 1e-300 absolutely) of the truth for
        edges within :attr:`DominatingPair.loss_error` of those given.
    """

    p: FloatArray
    q: FloatArray
    relative_error: float


class DominatingPair:
    """An ordered pair (P, Q) whose privacy profile bounds that of one direction of a mechanism."""

    @property
    def support(self) -> tuple[float, float]:
        """An enclosure of the finite losses, in nats; ends may be infinite."""
        return -math.inf, math.inf

    @property
    def infinite_mass(self) -> float:
        """An upper bound on P{L = +∞}; no δ below it can be reached."""
        return 0.0

    @property
    def loss_error(self) -> float:
        """How far, in nats, round-off may move a loss across the edges handed to :meth:`masses`.

        The masses returned are those of edges that lie within this distance of the ones given, so
        ``count`` repetitions may be off by ``count * loss_error`` in ε (Theorem M2). A few units
        in the last place of the largest loss that matters.
        """
        return 0.0

    @property
    def lattice(self) -> tuple[float, float] | None:
        """``(offset, spacing)`` when all finite losses are ``offset + k * spacing``, k an integer.

        A grid that contains the lattice loses nothing to discretisation. None when there is none;
        for a density with atoms (Laplace) a lattice that contains the atoms.
        """
        return None

    @property
    def gaussian_part(self) -> GaussianPart | None:
        """The parameters, when the loss is that of a (Poisson-subsampled) Gaussian."""
        return None

    @property
    def mirrored(self) -> bool:
        """Whether a bijection of the outcomes, its own inverse, exchanges P and Q.

        Then a sampled addition has at most the Rényi divergences of a sampled removal (Mironov,
        Talwar, Zhang 2019, Theorem 5).
        """
        return False

    @property
    def sharper_rdp(self) -> bool:
        """Whether :meth:`rdp` is a bound on the mechanism that is below the pair's own curve.

        Then the Rényi analysis may beat the grid, and is tried beside it.
        """
        return False

    @property
    def hull(self) -> DominatingPair | None:
        """A pair with a loss distribution that dominates this one, where it has none itself.

        None when none is known. A curve may still be sharper than the hull's: both are asked.
        """
        return None

    def rdp(self, order: float) -> float:
        """Return an upper bound on the Rényi divergence D_order(P‖Q), ``order`` > 1, in nats."""
        raise UnsupportedError(f"{type(self).__name__} has no Rényi curve")

    def finite_rdp(self, order: float) -> float:
        """Return :meth:`rdp` of the finite losses alone; the mass at infinity is kept apart.

        It bounds log(∫ p^α q^{1-α}) / (α - 1) over the outcomes of finite loss (Theorem M12).
        """
        return self.rdp(order)

    @property
    def pure_epsilon(self) -> float:
        """An upper bound on every ``|L|``: the pair is that of an ε-private mechanism (M10)."""
        if self.infinite_mass > 0.0:
            return math.inf
        low, high = self.support
        return max(-low, high, 0.0)

    @property
    def rho(self) -> float:
        """The least ρ known with D_α ≤ ρα at every order; infinite when none is known."""
        return rho_of_pure(self.pure_epsilon)

    @property
    def mu(self) -> float:
        """A μ such that N(μ, 1) against N(0, 1) dominates; infinite when none is known."""
        return mu_of_pure(self.pure_epsilon)

    def masses(self, edges: FloatArray) -> Masses:
        """Return the masses of the cells between increasing ``edges`` of the loss."""
        raise UnsupportedError(f"{type(self).__name__} has no loss distribution")

    def profile(self, epsilon: float) -> Bounds:
        """Bracket H(ε) = E_P[(1 - e^{ε - L})₊] at any real ``epsilon``."""
        raise UnsupportedError(f"{type(self).__name__} has no closed-form privacy profile")


def offers(pair: DominatingPair, capability: str) -> bool:
    """Tell whether a pair overrides ``masses``, ``rdp`` or ``profile``."""
    return getattr(type(pair), capability) is not getattr(DominatingPair, capability)


class Described:
    """A dataclass whose ``repr`` is the shortest constructor call."""

    def parameters(self) -> dict[str, Any]:
        """Return the keyword arguments of the shortest constructor call that makes this value."""
        found: dict[str, Any] = {}
        for name, argument, default in _parts(type(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            if default is MISSING or value != default:
                found[argument] = value
        return found

    def __repr__(self) -> str:
        """Return the shortest constructor call."""
        shown = []
        for name, argument, default in _parts(type(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            if default is MISSING:
                shown.append(repr(value))
            elif value != default:
                shown.append(f"{argument}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


class Mechanism(Described, Answers, ABC):
    """Something that was released: a frozen value that describes, and computes nothing global.

    Subclasses are frozen dataclasses (``repr`` evaluates back; they hash and compare by value) and
    implement :attr:`relation` and :meth:`pairs`. Questions (:meth:`epsilon` and the rest) and the
    algebra (``n * a + b``) come with the class: :class:`~accountant.mechanisms.answers.Answers`.
    """

    @property
    @abstractmethod
    def relation(self) -> NeighbouringRelation:
        """The neighbouring relation of the guarantee."""

    @abstractmethod
    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the dominating pairs: ``(remove, add)``, or one that serves both directions.

        Under replace-one, where neither value of the record comes first, two pairs are those of
        one release in either order; compositions take the worse of them each time.
        """

    def group(self, size: int) -> Mechanism:
        """Return this mechanism as seen by a group of ``size`` records that change together."""
        raise UnsupportedError(
            f"no theorem gives {type(self).__name__} a group guarantee; state one as"
            " PureDP, ApproximateDP or ZCDP and take its group"
        )

    def under(self, relation: NeighbouringRelation) -> Mechanism:
        """Return the same release with its bound stated under another neighbouring relation."""
        if relation is self.relation:
            return self
        raise UnsupportedError(
            f"{self!r} is bounded under {self.relation!r}, and no theorem carries that bound over"
            f" to {relation!r}; derive it for that relation"
        )


@cache
def _parts(kind: Any) -> tuple[tuple[str, str, Any], ...]:
    """Return the name, the argument and the default of every field of a dataclass."""
    # A field cannot have the name of a question (epsilon, delta, mu, rho), an argument can.
    return tuple(
        (part.name, str(part.metadata.get("argument", part.name)), part.default)
        for part in fields(kind)
    )


def rho_of_pure(epsilon: float) -> float:
    """Return ε²/2, rounded up (Theorem M10)."""
    return half_square(epsilon)


def mu_of_pure(epsilon: float) -> float:
    """Return μ = -2 Φ⁻¹(1 / (1 + e^ε)), rounded up (Theorem M11)."""
    if not (0.0 < epsilon < 700.0):
        return 0.0 if epsilon == 0.0 else math.inf
    if epsilon < 1e-290:
        # Φ(μ/2) - 1/2 = tanh(ε/2)/2 <= ε/4, and φ is flat here: μ = ε·√(π/2) to all digits.
        return math.nextafter(1.26 * epsilon, math.inf)
    # A loose guess, then bisection on a test with room for the errors of erf and erfc.
    half = 0.5 * math.tanh(0.5 * epsilon)  # Φ(μ/2) - 1/2
    target = 1.0 / (1.0 + math.exp(epsilon))
    low, high = 2.0 * half, 4.0 * math.sqrt(math.log(4.0) + epsilon) + 1.0
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if _reaches(middle, target, half) else (middle, high)
    return high


def _reaches(mu: float, target: float, half: float) -> bool:
    """Tell whether Φ(-μ/2) ≤ target, with room for the errors of the library functions."""
    root = mu / math.sqrt(8.0)
    if half < 0.25:
        return 0.5 * math.erf(root) * (1.0 - 1e-14) >= half
    return 0.5 * math.erfc(root) * (1.0 + 1e-12) <= target
