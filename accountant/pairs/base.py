"""Ordered dominating pairs, and the capabilities that a pair offers to an analysis.

A :class:`DominatingPair` (P, Q) bounds one direction of a mechanism. It implements one or more of
the capabilities below. An analysis checks for the one it needs (:func:`offers`), and
:class:`~accountant.errors.UnsupportedError` names what is missing.

====================  ==========================================================================
``rdp``               the Rényi curve: an upper bound on D_α(P‖Q) at every real α > 1
``masses``            the privacy loss distribution: masses of cells of the loss under P and Q
``gaussian_part``     the loss of a Poisson-subsampled Gaussian, whose transform is known
``gaussian_mixture``  Gaussian noise that a record shifts at random, whose transform is known, too
``profile``           the privacy profile in closed form
``pld_upper_pair``    a dominating pair with a loss distribution, computed from other answers
====================  ==========================================================================

A user-defined mechanism needs only one of the first five.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import TINY, U, half_square, lift, up
from accountant.bounds import Bounds
from accountant.errors import UnsupportedError
from accountant.pairs.excess import mu_of_pure

# One direction of a composition: pairs, and how often each is released.
Parts: TypeAlias = "tuple[tuple[DominatingPair, int], ...]"
# One entry for every direction of every alternative; the worst answer is the result.
Problems: TypeAlias = "tuple[Parts, ...]"


class GaussianPart(NamedTuple):
    """Poisson-subsampled Gaussian: sampling probability and noise multiplier; q = 1 is plain."""

    sampling_probability: float
    noise_multiplier: float
    add: bool  # the reversed pair: N(0, σ²) against the mixture
    exact: bool = True  # whether the noise multiplier is the true one, not rounded down

    @property
    def most_noise(self) -> float:
        """At least the true noise multiplier, for lower ends."""
        return self.noise_multiplier * (1.0 if self.exact else 1.0 + 8.0 * U)


class GaussianMixture(NamedTuple):
    """Σ_j w_j·N(d_j, σ²) against N(0, σ²), d_0 = 0, or the reverse.

    Attributes
    ----------
    noise_multiplier : float
        σ.
    shifts, weights : tuple of float
        The positive d_j, increasing, and their w_j > 0; d_0 has the rest.
    add : bool
        The reversed pair.
    no_shift : float
        w_0 with the same relative error as the others; 0 where it is known as the rest alone, or
        where there is none.
    always_shifted : bool
        There is none: w_0 is exactly 0.
    weight_error, shift_error : float
        Relative errors of the weights and of the shifts.
    remainder : float
        An upper bound on the weight of larger shifts, which are not listed.
    """

    noise_multiplier: float
    shifts: tuple[float, ...]
    weights: tuple[float, ...]
    add: bool
    no_shift: float = 0.0
    weight_error: float = 0.0
    shift_error: float = 0.0
    remainder: float = 0.0
    always_shifted: bool = False


class Masses(NamedTuple):
    """Masses of consecutive cells of the privacy loss L = log(dP/dQ).

    Attributes
    ----------
    p, q : float64 array of shape (m + 1,)
        For edges t₀ < … < t_{m-1}: the masses under P and Q of L ≤ t₀, t₀ < L ≤ t₁, …, L > t_{m-1}.
        The last entry of ``p`` includes P{L = +∞}, the first of ``q`` includes Q{L = -∞}.
    relative_error : float
        The truth lies within this relative error (and within 1e-300 absolutely) of every mass, for
        edges within :attr:`DominatingPair.loss_error` of those given.
    """

    p: FloatArray
    q: FloatArray
    relative_error: float

    @classmethod
    def at(cls, loss: float, edges: FloatArray) -> Masses:
        """Return those of one loss that is certain under both laws."""
        mass = np.zeros(edges.size + 1)
        mass[int(np.searchsorted(edges, loss, side="left"))] = 1.0
        return cls(mass, mass.copy(), 0.0)

    def reverse(self) -> Masses:
        """Return those of the reversed pair, of loss -L, between the edges of opposite sign.

        The half-open ends of cells change sides, which no bound on a cell minds.
        """
        return Masses(self.q[::-1].copy(), self.p[::-1].copy(), self.relative_error)


class Atoms(NamedTuple):
    """The losses that carry mass, in increasing order, and their masses.

    Attributes
    ----------
    loss : float64 array of shape (m,)
        Finite losses; equal ones are allowed.
    p, q : float64 array of shape (m,)
        Their masses under P and Q, each to within ``relative_error``.
    infinite_p, infinite_q : float
        Upper bounds on P{L = +∞} and Q{L = -∞}, to the same relative error.
    relative_error, loss_error : float
        As in :class:`Masses`.
    absolute_error : float
        What underflow adds to the error of a mass. No more mass than that is not listed.
    """

    loss: FloatArray
    p: FloatArray
    q: FloatArray
    infinite_p: float
    infinite_q: float
    relative_error: float
    loss_error: float
    absolute_error: float = TINY

    @property
    def doubtful(self) -> float:
        """Masses below it have lost digits to underflow."""
        return (1e10 if self.absolute_error >= TINY else 1e16) * self.absolute_error


# Laws of a loss on a vertical line, as the native core numbers them.
GAUSSIAN, LATTICE, LAPLACE, ATOMS, RESPONSE, SAMPLED = range(6)
NONE: FloatArray = np.zeros(0)


class LineLaw(NamedTuple):
    """One law of a loss whose transform F(z) = E_Q e^{zL} is known on a vertical line.

    Attributes
    ----------
    kind : int
        ``GAUSSIAN``: F = e^{v z(z-1)/2}. ``LATTICE``: a discrete Gaussian, F = e^{v z(z-1)/2} times
        a quotient of theta functions. ``LAPLACE``: the loss of Laplace noise, between -v and v.
        ``ATOMS``: finitely many losses. ``RESPONSE``: very many runs of two, v and -v.
        ``SAMPLED``: the Poisson-subsampled Gaussian of the pair's ``gaussian_part``.
    spread : float
        v, to three units of roundoff; of atoms, that of ``RESPONSE`` where it may take their place.
    damping, distance : float
        Of a lattice: 2π²σ², at least 1.7, and how far apart the centres are, an integer.
    loss, p : float64 arrays of shape (m,)
        Of atoms: their losses and their masses under P.
    relative_error, loss_error : float
        As in :class:`Masses` and of each loss, in nats.
    unlisted : float
        An upper bound on the mass under P of atoms that are not listed.
    """

    kind: int
    spread: float = 0.0
    damping: float = 0.0
    distance: float = 0.0
    loss: FloatArray = NONE
    p: FloatArray = NONE
    relative_error: float = 0.0
    loss_error: float = 0.0
    unlisted: float = 0.0


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
    def left_out(self) -> float:
        """How much of :attr:`infinite_mass` is no infinite loss, but was not listed.

        It counts in upper ends alone.
        """
        return 0.0

    @property
    def loss_error(self) -> float:
        """How far, in nats, round-off may move a loss across the edges given to :meth:`masses`.

        The returned masses belong to edges within this distance of the given ones, so ``count``
        repetitions may change ε by ``count * loss_error`` (Theorem M2). It is a few units in the
        last place of the largest relevant loss.
        """
        return 0.0

    @property
    def lattice(self) -> tuple[float, float] | None:
        """``(offset, spacing)`` when all finite losses are ``offset + k * spacing``, k an integer.

        A grid that contains the lattice has no discretisation error. None if there is no lattice.
        For a density with atoms (Laplace) it is a lattice that contains the atoms.
        """
        return None

    @property
    def loss_atoms(self) -> Atoms | None:
        """The finitely many losses that carry mass, where the loss is discrete; None elsewhere."""
        return None

    @property
    def gaussian_part(self) -> GaussianPart | None:
        """The parameters, when the loss is that of a (Poisson-subsampled) Gaussian."""
        return None

    @property
    def gaussian_mixture(self) -> GaussianMixture | None:
        """The shifts and their weights, when the loss is that of Gaussian noise with such."""
        return None

    @property
    def line(self) -> LineLaw | None:
        """The law of the loss, where its transform is known on every vertical line."""
        return None

    @property
    def is_symmetric(self) -> bool:
        """Whether a bijection of the outcomes, its own inverse, exchanges P and Q.

        Then a sampled addition has at most the Rényi divergences of a sampled removal (Mironov,
        Talwar, Zhang 2019, Theorem 5).
        """
        return False

    @property
    def sharper_rdp(self) -> bool:
        """Whether :meth:`rdp` is a bound on the mechanism that is below the pair's own curve.

        Then the Rényi analysis may be sharper than the grid, and both are computed.
        """
        return False

    def pld_upper_pair(self) -> DominatingPair | None:
        """Return a dominating pair with a loss distribution, for a pair that has none itself.

        None if none is known. The Rényi curve may be sharper than that pair, so the analysis uses
        both.
        """
        return None

    def rdp(self, order: float) -> float:
        """Return an upper bound on the Rényi divergence D_order(P‖Q), ``order`` > 1, in nats.

        A pair that has mass at infinity implements :meth:`finite_rdp` instead.
        """
        if not offers(self, "finite_rdp"):
            raise UnsupportedError(f"{type(self).__name__} has no Rényi curve")
        return math.inf if self.infinite_mass > 0.0 else self.finite_rdp(order)

    def finite_rdp(self, order: float) -> float:
        """Return :meth:`rdp` of the finite losses alone, without the mass at infinity.

        It bounds log(∫ p^α q^{1-α}) / (α - 1) over the outcomes of finite loss (Theorem M12).
        """
        return self.rdp(order)

    @property
    def has_negative_infinite_loss(self) -> bool:
        """Whether Q may have outcomes that P has not, Q{L = -∞} > 0, below a bounded loss."""
        low = self.support[0]
        if low == -math.inf:
            return False
        if not has_pld(self):
            return True  # unknown; a curve of P against Q does not decide it either
        below = low - 1.0 - 1e-9 * abs(low)
        return bool(self.masses(np.array([below])).q[0] > 0.0)

    @property
    def pure_epsilon(self) -> float:
        """An upper bound on every ``|L|``: the pair is that of an ε-private mechanism (M10).

        Infinite if P or Q has outcomes that are impossible under the other.
        """
        low, high = self.support
        most = max(-low, high, 0.0)
        if self.infinite_mass > 0.0:
            return math.inf
        return math.inf if most < math.inf and self.has_negative_infinite_loss else most

    @property
    def variation(self) -> float:
        """An upper bound on the total variation distance of P and Q: no δ is above it (M1)."""
        pure = self.pure_epsilon
        if not 0.0 < pure < 40.0:
            return 0.0 if pure == 0.0 else 1.0
        return up(lift(math.tanh(0.5 * pure)))

    @property
    def _unhidden(self) -> DominatingPair | None:
        """The pair without a coin that is not seen: its ρ and its μ are no smaller (Theorem M6)."""
        return None

    @property
    def rho(self) -> float:
        """The least ρ known with D_α ≤ ρα at every order; infinite when none is known."""
        own = half_square(min(self.pure_epsilon, self.mu))  # Theorems M10 and C8
        return own if self._unhidden is None else min(own, self._unhidden.rho)

    @property
    def mu(self) -> float:
        """A μ such that N(μ, 1) against N(0, 1) dominates; infinite when none is known."""
        own = mu_of_pure(self.pure_epsilon)
        return own if self._unhidden is None else min(own, self._unhidden.mu)

    def masses(self, edges: FloatArray) -> Masses:
        """Return the masses of the cells between increasing ``edges`` of the loss."""
        raise UnsupportedError(f"{type(self).__name__} has no loss distribution")

    def profile(self, epsilon: float) -> Bounds:
        """Bracket H(ε) = E_P[(1 - e^{ε - L})₊] at any real ``epsilon``."""
        raise UnsupportedError(f"{type(self).__name__} has no closed-form privacy profile")

    def inverse_profile(self, delta: float) -> Bounds | None:
        """Bracket the ε >= 0 of one release at ``delta`` in (0, 1), where there is a quick way."""
        return None


def offers(pair: DominatingPair, capability: str) -> bool:
    """Tell whether a pair has a capability: a method of this name that is its own."""
    return getattr(type(pair), capability) is not getattr(DominatingPair, capability)


def has_pld(pair: DominatingPair) -> bool:
    """Tell whether a pair has a privacy loss distribution."""
    return offers(pair, "masses")


def has_rdp(pair: DominatingPair) -> bool:
    """Tell whether a pair has a Rényi curve."""
    return offers(pair, "rdp") or offers(pair, "finite_rdp")


def gaussian_part(pair: DominatingPair) -> GaussianPart:
    """Return the parameters of a pair that is Gaussian."""
    part = pair.gaussian_part
    if part is None:  # pragma: no cover (chosen by the caller)
        raise UnsupportedError(f"{pair!r} is not Gaussian")
    return part
