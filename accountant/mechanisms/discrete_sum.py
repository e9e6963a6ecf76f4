"""The sum of the discrete Gaussian noises of many clients, on one integer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NoReturn

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, up
from accountant.errors import UnsupportedError
from accountant.mechanisms.discrete import MOST_ATOMS, IntegerNoise, IntegerPair
from accountant.pairs.atoms import Atoms
from accountant.pairs.base import DominatingPair
from accountant.relations import NeighbouringRelation

ADD_OR_REMOVE = NeighbouringRelation.ADD_OR_REMOVE
CLIENTS = checks.integers("contributors", 1, 2**20, "Count those who surely add their noise")
LEAST_SIGMA = 0.2
MOST_WORK = 50_000_000  # terms of the correction of small noises
LEFT_OUT = 45.0  # minus the logarithm of the terms left out of a sum, next to the others
LEAST_FACTOR = 1e-250
LISTED = 34.0  # deviations within which all outcomes are atoms, below √(2·600)
LEAST_REACH = 37.0  # deviations, below √(2·710)
MOST_ERROR = 0.01  # of a mass, relatively; it keeps the bounds on oscillations valid as well
UNIFORM = 45.0  # exponents beyond which an oscillation e^-x is below all rounding


@dataclass(frozen=True, repr=False)
class DiscreteGaussianSum(IntegerNoise):
    """Discrete Gaussian noises of several clients on one integer (the distributed one).

    Parameters
    ----------
    noise_multiplier : float
        The parameter σ of each client's noise, >= 0.2, in the unit of ``sensitivity``.
    contributors : int
        How many clients surely add their noise: of n clients of whom at most a share f drops out
        or looks at its own noise, (1 - f) n. More only add noise.
    sensitivity : int, optional
        How far one record (or one client) can move the integer, >= 0.
    relation : NeighbouringRelation, keyword only
        As in :class:`~accountant.mechanisms.gaussian.Gaussian`.

    Notes
    -----
    *Guarantee.* The pair of two integers ``sensitivity`` apart under the law of the sum itself,
    which is not a discrete Gaussian, attained (docs/theorems_mechanisms.md, Theorem M22). For a
    vector see :func:`~accountant.sampling.discrete_gaussian_sum_of_vectors`.

    *Source.* Kairouz, Liu, Steinke 2021, who bound its concentrated divergence.

    Examples
    --------
    >>> import accountant as ac
    >>> round_of_a_federation = ac.DiscreteGaussianSum(2.0, contributors=80)
    >>> f"{(1000 * round_of_a_federation).epsilon(1e-6):.3f}"
    '9.482'
    """

    theorems = ("M22",)
    about = "Discrete Gaussian noises of several clients on one integer (the distributed one)."

    # A convolution of symmetric log-concave laws is symmetric and log-concave (Theorem M22).
    numbers = (checks.NOISE_MULTIPLIER,)

    noise_multiplier: float
    contributors: int = field(kw_only=True)
    sensitivity: int = field(default=1, kw_only=True)
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "contributors", checks.whole(CLIENTS, self.contributors))
        if not (self.noise_multiplier >= LEAST_SIGMA):
            raise UnsupportedError(
                f"DiscreteGaussianSum must have noise_multiplier >= {LEAST_SIGMA}; got"
                f" {self.noise_multiplier!r}. Noise that is almost always 0 hides nothing: use a"
                " finer unit"
            )

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the one pair, which is its own reverse by reflection."""
        return (
            DiscreteGaussianSumPair(self.noise_multiplier, self.contributors, int(self.distance)),
        )


@dataclass(frozen=True)
class DiscreteGaussianSumPair(IntegerPair):
    """The law of a sum of discrete Gaussians around ``shift`` and around 0."""

    sigma: float
    clients: int
    shift: int

    @property
    def _silent(self) -> bool:
        return self.shift == 0 or self.sigma == math.inf

    def _from(self, further: int) -> Atoms:
        shift, variance = self.shift, self.sigma * self.sigma * self.clients
        if not (LEAST_REACH * math.sqrt(variance) <= MOST_ATOMS):
            self._refuse()
        factor, error = correction(self.sigma, self.clients)
        if not (error <= MOST_ERROR):
            raise UnsupportedError(
                f"the law of a sum of {self.clients} discrete Gaussians of sigma = {self.sigma!r}"
                f" is known to a factor of {1.0 + error:g} only; use a finer unit"
            )
        log_factor = np.log(factor)
        # Masses beyond are below e^-700.
        reach = math.sqrt(2.0 * (710.0 + float(np.ptp(log_factor))))
        span = math.ceil(min(reach * math.sqrt(variance), MOST_ATOMS)) + 1
        if not (2 * span + shift <= MOST_ATOMS):
            self._refuse()
        # With the noise's own mass on either side of 0 for the total.
        noise = np.arange(-span, span + 1)
        mass = np.exp(-0.5 * noise**2.0 / variance) * factor[noise % factor.size]
        total = math.fsum(mass.tolist())

        def wave(x: FloatArray) -> FloatArray:
            return np.asarray(log_factor[x.astype(np.int64) % factor.size])

        x, p, q = self._seen(
            further, span, lambda x: np.exp(-0.5 * x**2.0 / variance + wave(x)) / total, 1e-305
        )
        loss = shift * (2.0 * x - shift) / (2.0 * variance) + (wave(x - shift) - wave(x))
        # The ratio of a log-concave law and its shift increases; so does its running maximum.
        loss = np.maximum.accumulate(loss)
        most = float(np.abs(loss).max()) + float(np.abs(log_factor).max())
        # The exponent carries four roundings.
        return Atoms(
            loss, p, q, 0.0, 0.0, 3.0 * error + 8.0 * reach * reach * U,
            2.0 * error + 12.0 * U * most,
        )  # fmt: skip

    def finite_rdp(self, order: float) -> float:
        """Return the divergence, rounded up; of high orders that of a discrete Gaussian nearby."""
        shift, variance = self.shift, self.sigma * self.sigma * self.clients
        if shift == 0 or not (LEAST_REACH * math.sqrt(variance) <= MOST_ATOMS):
            return super().finite_rdp(order)
        factor, error = correction(self.sigma, self.clients)
        swing = float(np.ptp(np.log(factor))) + 4.0 * error
        # Where what is in no atom adds nothing (Theorem M22).
        inside = LISTED * math.sqrt(variance) - (order - 1.0) * shift
        needed = math.sqrt(2.0 * variance * (100.0 + swing + 2.0 * order * swing))
        if swing <= 50.0 and inside >= needed:
            return super().finite_rdp(order)
        return up(
            order * shift * (shift / (2.0 * variance))
            + (4.0 * order - 2.0) / (order - 1.0) * (0.5 * swing),
            16.0,
        )

    def _refuse(self) -> NoReturn:
        raise UnsupportedError(
            f"the loss distribution of {self!r} has more than {MOST_ATOMS} atoms; use"
            " discrete_gaussian_sum_of_vectors, which needs none"
        )


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
