"""The pairs of noise on the integers (Theorems M13, M21 and M22)."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, half_square, ratio_up, up
from accountant.errors import UnsupportedError
from accountant.pairs.atoms import AtomicPair, Atoms, ResponsePair
from accountant.pairs.base import LATTICE, LineLaw

# Atoms of a table, at most: three columns of them take 96 MB.
MOST_ATOMS = 4_000_000
# Deviations that a table reaches: e^{-38.8²/2} is below 1e-325.
REACH = 38.8
# Noise below this parameter hides nothing: a loss is 1/2σ² at least.
HIDES = 1e-150
# The least parameter for which six terms of a theta function do: 2π²σ² is at least 1.7.
LEAST_DAMPED = 0.3
# The sensitivity from which the divergence of discrete Laplace noise is that of its pure ε.
LARGEST_LISTED = 20_000


@dataclass(frozen=True)
class IntegerPair(AtomicPair):
    """One noise on the integers around ``shift`` and around 0: x ↦ shift - x exchanges the two.

    Subclasses say which: a symmetric law that falls with the modulus. ``spread`` is infinite where
    nothing is told apart.
    """

    spread: float
    shift: int

    is_symmetric = True

    @property
    def _tells_all(self) -> bool:
        """Whether the noise is nearly always 0, and losses are beyond the doubles."""
        return False

    @property
    def _nothing(self) -> Atoms | None:
        """The one atom, where nothing is told apart or all is."""
        told = self.infinite_mass
        if not (told or self.shift == 0 or self.spread == math.inf):
            return None
        mass = np.full(1, 1.0 - told)
        return Atoms(np.zeros(1), mass, mass.copy(), told, told, 0.0, 0.0)

    def atoms(self) -> Atoms:
        """Return one atom for every integer within reach of either centre."""
        return self._nothing or self._listed(0)

    def centred(self) -> Atoms:
        """Return them on cells that x ↦ -x exchanges: as many on the left as on the right."""
        return self._nothing or self._listed(self.shift)

    @abstractmethod
    def _listed(self, further: int) -> Atoms:
        """Return the atoms of the integers within reach, and of ``further`` ones on the left."""

    @property
    def infinite_mass(self) -> float:
        """None, but for noise that hides nothing."""
        return 1.0 if self.shift and self._tells_all else 0.0

    @property
    def support(self) -> tuple[float, float]:
        """The ends of the atoms where losses are bounded, or no ends."""
        bounded = self._nothing or self.pure_epsilon < math.inf
        return super().support if bounded else (-math.inf, math.inf)

    @property
    def lattice(self) -> tuple[float, float] | None:
        """None is known."""
        return None

    @property
    def pure_epsilon(self) -> float:
        """Infinite, but for noise that tells nothing."""
        return 0.0 if self._nothing and not self.infinite_mass else math.inf


@dataclass(frozen=True)
class GeometricPair(IntegerPair):
    """The discrete Laplace law, P(x) ∝ exp(-|x|/b), b its ``spread``."""

    @property
    def _tells_all(self) -> bool:
        return not self.shift / self.spread < math.inf

    def _listed(self, further: int) -> Atoms:
        """Return the integers from 0, or from -Δ, to Δ, the ends with their tails."""
        b, shift = self.spread, self.shift
        if not (shift < MOST_ATOMS):
            raise UnsupportedError(
                f"the loss distribution of {self!r} has more than {MOST_ATOMS} atoms; account"
                " PureDP(sensitivity / scale)"
            )
        most, rate = shift / b, 1.0 / b
        x = np.arange(shift + 1, dtype=np.float64)
        # q(x) = tanh(1/2b)·e^{-x/b}; the end at 0 has all x <= 0, the end at Δ all x >= Δ.
        q = math.tanh(0.5 * rate) * np.exp(-x / b)
        q[0] = 1.0 / (1.0 + math.exp(-rate))
        q[-1] = math.exp(-shift / b) / (1.0 + math.exp(-rate))
        loss = (2.0 * x - shift) / b
        error = (32.0 + 4.0 * min(most, 700.0)) * U
        p = q[::-1].copy()
        if further:
            # To the left of 0 the ratio is e^{-Δ/b}; to the right of Δ it is its inverse.
            loss = np.concatenate([np.full(shift, loss[0]), loss])
            q = np.concatenate([q[:0:-1], [math.tanh(0.5 * rate)], q[1:]])
            p = np.concatenate([q[: shift + 1] * math.exp(-shift / b), p[1:]])
        return Atoms(loss, p, q, 0.0, 0.0, error, 4.0 * U * most)

    @property
    def lattice(self) -> tuple[float, float] | None:
        """Steps of 2/b from -Δ/b."""
        spacing = 2.0 / self.spread
        fits = self._nothing is None and spacing < math.inf
        return (-self.shift / self.spread, spacing) if fits else None

    @property
    def pure_epsilon(self) -> float:
        """Δ/b."""
        return super().pure_epsilon if self._nothing else ratio_up(float(self.shift), self.spread)

    def finite_rdp(self, order: float) -> float:
        """Return the divergence, of the pure ε where there are too many atoms, rounded up."""
        if self._nothing or self.shift < LARGEST_LISTED:
            return super().finite_rdp(order)
        return ResponsePair(self.pure_epsilon).finite_rdp(order)


# Terms of the correction of small noises, at most; beyond, an oscillation is kept as an error.
MOST_WORK = 50_000_000
# Minus the logarithm of the terms left out of a sum, next to the others.
LEFT_OUT = 45.0
# The least value of a correction that doubles hold well.
LEAST_FACTOR = 1e-250
# Deviations within which all outcomes are atoms: below √(2·600).
LISTED = 34.0
# The largest relative error of a mass; it keeps the bounds on oscillations valid as well.
MOST_ERROR = 0.01
# The exponent beyond which an oscillation e^-x is below all rounding.
UNIFORM = 45.0


def atoms_within_reach(deviation: float, shift: int) -> int:
    """Return about how many integers are within reach of either centre; no fewer than the shift."""
    return 2 * math.ceil(min(REACH * deviation, MOST_ATOMS)) + shift


@dataclass(frozen=True)
class GaussianSumPair(IntegerPair):
    """The law of a sum of discrete Gaussians, P(x) ∝ exp(-x²/2σ²) each; σ is its ``spread``."""

    clients: int = 1

    @property
    def _variance(self) -> float:
        return self.spread * self.spread * self.clients

    @property
    def _tells_all(self) -> bool:
        return self.spread < HIDES

    def _listed(self, further: int) -> Atoms:
        """Return one atom for every integer."""
        variance, shift = self._variance, self.shift
        factor, error = self._correction()
        log_factor = np.log(factor)
        # Masses beyond are below e^-750.
        reach = math.sqrt(REACH * REACH + 2.0 * float(np.ptp(log_factor)))
        span = math.ceil(reach * math.sqrt(variance)) + 1
        # With the noise's own mass on either side of 0 for the total.
        noise = np.arange(-span, span + 1)
        total = math.fsum(np.exp(-0.5 * noise**2.0 / variance) * factor[noise % factor.size])
        x = np.arange(-span - further, span + shift + 1, dtype=np.float64)
        wave = log_factor[x.astype(np.int64) % factor.size]
        moved = log_factor[(x - shift).astype(np.int64) % factor.size]
        p = np.exp(-0.5 * (x - shift) ** 2 / variance + moved) / total
        q = np.exp(-0.5 * x**2 / variance + wave) / total
        # The ratio of a log-concave law and its shift increases: so does its running maximum.
        loss = np.maximum.accumulate(shift * (2.0 * x - shift) / (2.0 * variance) + (moved - wave))
        seen = (p > 0.0) | (q > 0.0)
        if further:
            seen |= seen[::-1]
        loss, p, q = loss[seen], p[seen], q[seen]
        most = float(np.abs(loss).max()) + float(np.abs(log_factor).max())
        # The exponent, at most half of reach² but for the factor, carries four roundings. Below the
        # normal doubles each mass is a few of the least off; those that are less than one are a
        # hundredth of all, at most.
        mass_error = 3.0 * error + 4.0 * reach * reach * U
        loss_error = 2.0 * error + 12.0 * U * most
        return Atoms(loss, p, q, 0.0, 0.0, mass_error, loss_error, 4e-323 + 5e-326 * x.size)

    def _correction(self) -> tuple[FloatArray, float]:
        """Return the correction, where a table of the law has room and digits."""
        if atoms_within_reach(math.sqrt(self._variance), self.shift) > MOST_ATOMS:
            raise UnsupportedError(
                f"the loss distribution of {self!r} has more than {MOST_ATOMS} atoms; use"
                " discrete_gaussian_sum_of_vectors, which needs none"
            )
        factor, error = correction(self.spread, self.clients)
        if not (error <= MOST_ERROR):
            raise UnsupportedError(
                f"the law of a sum of {self.clients} discrete Gaussians of sigma = {self.spread!r}"
                f" is known to a factor of {1.0 + error:g} only; use a finer unit"
            )
        return factor, error

    @property
    def lattice(self) -> tuple[float, float] | None:
        """Steps of Δ/σ², of one noise."""
        spacing = self.shift / self.spread / self.spread
        offset = -0.5 * self.shift * spacing
        fits = self.clients == 1 and spacing > 0.0 and math.isfinite(offset)
        return (offset, spacing) if fits and self._nothing is None else None

    @property
    def line(self) -> LineLaw | None:
        """A quotient of theta functions, of one noise where six terms of them do."""
        if not (self.clients == 1 and self.shift and LEAST_DAMPED <= self.spread < math.inf):
            return super().line
        ratio, apart = self.shift / self.spread, float(self.shift)
        return LineLaw(LATTICE, ratio * ratio, 2.0 * (math.pi * self.spread) ** 2, apart)

    @property
    def rho(self) -> float:
        """Δ²/2σ² of one noise (Canonne, Kamath, Steinke 2020, Theorem 4)."""
        known = super().rho
        if self.clients > 1:
            return known
        return min(known, half_square(ratio_up(float(self.shift), self.spread)))

    def finite_rdp(self, order: float) -> float:
        """Return αΔ²/2σ² of one noise, exact where αΔ is an integer, or of high orders (M22)."""
        if self._nothing:
            return super().finite_rdp(order)
        if self.clients == 1:
            return up(order * self.rho)
        variance, shift = self._variance, self.shift
        factor, error = self._correction()
        swing = float(np.ptp(np.log(factor))) + 4.0 * error
        # Where what is in no atom adds nothing.
        inside = LISTED * math.sqrt(variance) - (order - 1.0) * shift
        needed = math.sqrt(2.0 * variance * (100.0 + swing + 2.0 * order * swing))
        if swing <= 50.0 and inside >= needed:
            return super().finite_rdp(order)
        bent = (4.0 * order - 2.0) / (order - 1.0) * (0.5 * swing)
        return up(order * shift * (shift / (2.0 * variance)) + bent, 16.0)


@lru_cache(maxsize=64)
def correction(sigma: float, clients: int) -> tuple[FloatArray, float]:
    """Return θ with P(sum = k) ∝ e^{-k²/2nσ²} θ(k mod n), and a bound on its relative error.

    By halves: for a + b clients θ(k) = Σ_x e^{-(x - ka/n)²/2s²} θ_a(x) θ_b(k - x), s² = σ² a b / n
    (Theorem M22). Where both halves are constant and s is large, so is the sum, to within
    2.1 e^{-2π²s²}.
    """
    if clients == 1:
        return np.ones(1), 0.0
    a = clients // 2
    b = clients - a
    first, error_a = correction(sigma, a)
    second, error_b = correction(sigma, b)
    spread = sigma * math.sqrt(a / clients * b)
    decay = 2.0 * (math.pi * spread) ** 2
    inherited = (1.0 + error_a) * (1.0 + error_b) - 1.0
    if first.size == second.size == 1 and decay > UNIFORM:
        return np.ones(1), inherited * (1.0 + 4.0 * U) + 2.2 * math.exp(-decay) + 4.0 * U
    ranges = [math.log(float(half.max() / half.min())) for half in (first, second)]
    window = math.sqrt(2.0 * (LEFT_OUT + sum(ranges)))
    most = math.ceil(window * spread) + 2
    if clients * (2 * most + 1) > MOST_WORK:
        # The halves' oscillation is kept as an error.
        wide = math.exp(min(sum(ranges), 600.0)) * (1.0 + inherited)
        return np.ones(1), wide * (1.0 + 2.1 * math.exp(-decay) + 8.0 * U) - 1.0
    theta = np.zeros(clients)
    k = np.arange(clients)
    centre = k * a // clients
    # Relative to the centre, so that the window is the same for every k.
    offset = centre - k * (a / clients)
    for step in range(-most, most + 1):
        x = centre + step
        weight = np.exp(-0.5 * ((offset + step) / spread) ** 2)
        theta += weight * first[x % first.size] * second[(k - x) % second.size]
    if not (float(theta.min()) > LEAST_FACTOR):
        raise UnsupportedError(
            f"a sum of {clients} discrete Gaussians of sigma = {sigma!r} is out of reach of the"
            " doubles; use a finer unit"
        )
    tail = 2.0 * (1.0 + 1.3 * spread) * math.exp(-0.5 * ((most - 1) / spread) ** 2)
    left_out = tail * float(first.max() * second.max() / theta.min())
    # An exponent carries ten roundings and that of the offset, which is less than `clients` units.
    exponent = 0.5 * ((most + 1) / spread) ** 2
    own = (2.0 * most + 8.0 + 12.0 * exponent) * U
    own += 2.0 * (most + 1) / spread**2 * clients * U + 1.1 * left_out
    mean = float(theta.mean())
    return theta / mean, (1.0 + inherited) * (1.0 + own) - 1.0
