"""Laws of noise on the integers: what one pair asks for of each (Theorems M13, M21 and M22)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, half_square, ratio_up, up
from accountant.errors import UnsupportedError
from accountant.pairs.atoms import Atoms, ResponsePair
from accountant.pairs.base import LATTICE, LineLaw
from accountant.search import narrow

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
class IntegerLaw:
    """A symmetric law on the integers that falls with the modulus; subclasses say which.

    What a method does not say is None, and then follows from the atoms. ``spread`` is infinite
    where nothing is told apart.
    """

    spread: float

    def tells_all(self, shift: int) -> bool:
        """Whether the noise is nearly always 0, and losses are beyond the doubles."""
        return False

    def atoms(self, shift: int, further: int) -> Atoms:
        """Return the atoms of the integers within reach, and of ``further`` ones on the left."""
        raise NotImplementedError

    def lattice(self, shift: int) -> tuple[float, float] | None:
        """Return the first loss and the spacing, where losses are on a lattice."""
        return None

    def line(self, shift: int) -> LineLaw | None:
        """Return the law of the loss whose transform is known."""
        return None

    def rho(self, shift: int) -> float:
        """Return a ρ with D_α <= ρα."""
        return math.inf

    def pure_epsilon(self, shift: int) -> float:
        """Return the largest loss."""
        return math.inf

    def divergence(self, shift: int, order: float) -> float | None:
        """Return the divergence where the atoms do not give it, rounded up."""
        return None


@dataclass(frozen=True)
class GeometricLaw(IntegerLaw):
    """The discrete Laplace law, P(x) ∝ exp(-|x|/b), b its ``spread``."""

    def tells_all(self, shift: int) -> bool:
        """Whether the largest loss is beyond the doubles."""
        return not shift / self.spread < math.inf

    def atoms(self, shift: int, further: int) -> Atoms:
        """Return the integers from 0, or from -Δ, to Δ, the ends with their tails."""
        b = self.spread
        if not (shift < MOST_ATOMS):
            raise UnsupportedError(
                f"the loss distribution of {self!r} on integers {shift} apart has more than"
                f" {MOST_ATOMS} atoms; account PureDP(sensitivity / scale)"
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

    def lattice(self, shift: int) -> tuple[float, float] | None:
        """Return steps of 2/b from -Δ/b."""
        return (-shift / self.spread, 2.0 / self.spread) if 2.0 / self.spread < math.inf else None

    def pure_epsilon(self, shift: int) -> float:
        """Return Δ/b."""
        return ratio_up(float(shift), self.spread)

    def divergence(self, shift: int, order: float) -> float | None:
        """Return that of the pure ε where there are too many atoms."""
        if shift < LARGEST_LISTED:
            return None
        return ResponsePair(self.pure_epsilon(shift)).finite_rdp(order)


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
class GaussianSumLaw(IntegerLaw):
    """The law of a sum of discrete Gaussians, P(x) ∝ exp(-x²/2σ²) each; σ is its ``spread``."""

    clients: int = 1

    @property
    def _variance(self) -> float:
        return self.spread * self.spread * self.clients

    def tells_all(self, shift: int) -> bool:
        """Whether σ hides nothing."""
        return self.spread < HIDES

    def atoms(self, shift: int, further: int) -> Atoms:
        """Return one atom for every integer."""
        variance = self._variance
        factor, error = self._correction(shift)
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
        mass_error, loss_error = (
            3.0 * error + 4.0 * reach * reach * U,
            2.0 * error + 12.0 * U * most,
        )
        return Atoms(loss, p, q, 0.0, 0.0, mass_error, loss_error, 4e-323 + 5e-326 * x.size)

    def _correction(self, shift: int) -> tuple[FloatArray, float]:
        """Return the correction, where a table of the law has room and digits."""
        if atoms_within_reach(math.sqrt(self._variance), shift) > MOST_ATOMS:
            raise UnsupportedError(
                f"the loss distribution of {self!r} on integers {shift} apart has more than"
                f" {MOST_ATOMS} atoms; use discrete_gaussian_sum_of_vectors, which needs none"
            )
        factor, error = correction(self.spread, self.clients)
        if not (error <= MOST_ERROR):
            raise UnsupportedError(
                f"the law of a sum of {self.clients} discrete Gaussians of sigma = {self.spread!r}"
                f" is known to a factor of {1.0 + error:g} only; use a finer unit"
            )
        return factor, error

    def lattice(self, shift: int) -> tuple[float, float] | None:
        """Return steps of Δ/σ², of one noise."""
        spacing = shift / self.spread / self.spread
        offset = -0.5 * shift * spacing
        fits = self.clients == 1 and spacing > 0.0 and math.isfinite(offset)
        return (offset, spacing) if fits else None

    def line(self, shift: int) -> LineLaw | None:
        """Return a quotient of theta functions, of one noise where six terms of them do."""
        if not (self.clients == 1 and shift and LEAST_DAMPED <= self.spread < math.inf):
            return None
        ratio = shift / self.spread
        return LineLaw(LATTICE, ratio * ratio, 2.0 * (math.pi * self.spread) ** 2, float(shift))

    def rho(self, shift: int) -> float:
        """Return Δ²/2σ² of one noise (Canonne, Kamath, Steinke 2020, Theorem 4)."""
        return half_square(ratio_up(float(shift), self.spread)) if self.clients == 1 else math.inf

    def divergence(self, shift: int, order: float) -> float | None:
        """Return αΔ²/2σ² of one noise, exact where αΔ is an integer, or of high orders (M22)."""
        if self.clients == 1:
            return up(order * self.rho(shift))
        variance = self._variance
        factor, error = self._correction(shift)
        swing = float(np.ptp(np.log(factor))) + 4.0 * error
        # Where what is in no atom adds nothing.
        inside = LISTED * math.sqrt(variance) - (order - 1.0) * shift
        needed = math.sqrt(2.0 * variance * (100.0 + swing + 2.0 * order * swing))
        if swing <= 50.0 and inside >= needed:
            return None
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


# Of Skellam noise: the largest variance whose table is made.
MOST_VARIANCE = 1e9
# The largest sensitivity that is listed though the noise does not reach so far.
FARTHEST = 4096
# The least logarithm of a mass that is listed; all others together are below the doubles.
LEAST_LOG = -760.0
# Bits of the fixed-point ratios, beside those of the variance.
BITS = 128


@dataclass(frozen=True)
class SkellamLaw(IntegerLaw):
    """The law of the difference of two Poisson counts of equal means, of variance ``spread``."""

    def atoms(self, shift: int, further: int) -> Atoms:
        """Return one atom for every integer."""
        reach = self._reach()
        if not (self.spread <= MOST_VARIANCE and shift <= max(reach, FARTHEST)):
            raise UnsupportedError(
                f"Skellam must have a variance of at most {MOST_VARIANCE:g} and a sensitivity"
                f" within reach of the noise; got variance = {self.spread!r} and sensitivity"
                f" {shift}"
            )
        log_mass, error = self._log_masses(reach + shift + further)
        x = np.arange(-reach - further, reach + shift + 1)
        log_p, log_q = log_mass[np.abs(x - shift)], log_mass[np.abs(x)]
        # The ratio of a log-concave law and its shift increases: so does its running maximum, which
        # is as close to the truth as the ratios are.
        loss = np.maximum.accumulate(log_p - log_q).astype(np.float64)
        p, q = (np.exp(log.astype(np.float64)) for log in (log_p, log_q))
        mass_error = error + (2.0 * float(np.abs(log_mass[-1])) + 8.0) * U
        loss_error = 2.0 * error + 2.0 * U * float(np.abs(loss).max())
        return Atoms(loss, p, q, 0.0, 0.0, mass_error, loss_error, 4e-323)

    def divergence(self, shift: int, order: float) -> float | None:
        """Return the bound by one Poisson count for high orders (Theorem M21)."""
        k, power = self._reach(), (order - 1.0) * shift
        most = 1.0 + 2.0 * (k + shift) / self.spread  # P/Q to the power 1/Δ, k beyond the centre
        # Where outcomes that are in no atom add less than e^-100 to E[e^{αL}].
        if (
            power * (2.0 / self.spread) / most <= 0.99 * math.asinh(k / self.spread)
            and power * math.log(most) + self._log_tail(float(k)) <= -101.0
        ):
            return None
        return _poisson_rdp(0.5 * self.spread, shift, order)

    def _log_tail(self, k: float) -> float:
        """Bound log P{X >= k} (Chernoff)."""
        ratio = min(k / self.spread, 1e300)
        # √(1 + r²) - 1 without cancellation.
        return k * (ratio / (1.0 + math.hypot(1.0, ratio))) - k * math.asinh(ratio)

    def _reach(self) -> int:
        """Return an integer beyond which all masses are below e^LEAST_LOG."""
        high = 1.0
        while self._log_tail(high) > LEAST_LOG - 1.0:  # a unit for the rounding of the bound
            high *= 1.1
        return math.ceil(high)

    def _log_masses(self, largest: int) -> tuple[np.ndarray, float]:
        """Return log P(k) for k = 0..largest, and a bound on the errors.

        The ratios r_k = I_{k+1}/I_k of successive masses satisfy r_k = 1 / (r_{k+1} + 2(k+1)/V)
        (V the variance). Backwards the recursion forgets where it starts: an error at k + 1 is
        multiplied by at most r_k² < 1 up to second order. It runs in integers, in units of 2^-bits.
        """
        small = max(0, math.ceil(-math.log2(self.spread)))
        bits = BITS + 2 * small
        one = 1 << bits
        numerator, denominator = self.spread.as_integer_ratio()
        start = largest + 64 + math.ceil(math.sqrt(max(1600.0, 4.0 * self.spread)))
        ratio, forgotten = one >> 1, 1.0  # the true one is in (0, 1)
        ratios = np.empty(largest)  # times 2^small, so that none is below the normal doubles
        for k in range(start, -1, -1):
            ratio = (one << bits) // (ratio + 2 * (k + 1) * denominator * one // numerator)
            if k >= largest:
                forgotten *= (ratio / one) ** 2
            else:
                ratios[k] = (ratio << small) / one
        # Two quotients are cut by less than a unit each, the first times r_k² < 1: less than
        # 2·start units in all. The start is off by less than 1/2, and 1/(r + c) moves by at most
        # twice what its derivative says while r is off by so little.
        steps = np.log(ratios.astype(np.longdouble)) - small * np.log(np.longdouble(2.0))
        log = np.concatenate([np.zeros(1, np.longdouble), np.cumsum(steps)])
        total = np.longdouble(1.0) + 2.0 * np.exp(log[1:]).sum()
        log -= np.log(total)
        unit = float(np.finfo(np.longdouble).eps)
        # What is forgotten is a power of at least 64 of V/2 where V is small: over 2^-small it is
        # less than its root.
        least = float(ratios.min(initial=1.0))
        in_ratio = (math.sqrt(forgotten) + 8.0 * start * 2.0 ** (small - bits)) / least + 2.0 * U
        size = float(np.abs(log[-1])) + 1.0
        error = largest * (in_ratio + 2.0 * unit * size) + 8.0 * unit * size
        # The total's error is at most that of the masses in it.
        return log, 2.0 * error


def _poisson_rdp(mean: float, shift: int, order: float) -> float:
    """Bound the divergence by that of one of the two counts, moved by ``shift`` (Theorem M21)."""
    power = (order - 1.0) * shift
    if not power < 1e300:
        return math.inf

    def below(s: float) -> bool:
        return s * (shift + mean * math.exp(s)) < power

    s, _ = narrow(below, math.exp(-60.0), 700.0, 60, geometric=True)  # a mere choice
    # Logarithms one by one: the mean may be below all quotients.
    logs = shift * (math.log(power) - math.log(s) - math.log(mean) - 1.0)
    rest = (s * shift + mean * math.expm1(s)) / (order - 1.0)
    size = shift * (abs(math.log(power)) + abs(math.log(s)) + abs(math.log(mean)) + 1.0) + rest
    return max(up(logs + rest + 32.0 * U * size), 0.0)
