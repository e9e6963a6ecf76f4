"""The randomness of this package, all of it from one secure generator."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.errors import DomainError
from accountant.noise import Grid, SecureGenerator
from accountant.noise.exact_samplers import (
    bernoulli_exp,
    discrete_laplace,
    uniform_below,
    weighted_index,
)

# Noise that is not itself released lies on a grid of sigma / 2**36: whoever uses it pays for the
# rounding as a shift of at most half a step a coordinate.
FINE_BITS = 36
# A released value's Gaussian noise has a grid of sigma / 2**30: its rounding costs next to nothing.
GRID_BITS = 30
# The finest grid of a pure release, and of a Gaussian one: normal variables are rounded exactly
# below 2**40 steps.
MOST_PURE_BITS = 40
MOST_BITS = 39
# Values are cut to this many steps of a grid: with noise they stay integers that doubles hold.
LARGEST_INTEGER = 2.0**51
# The share of (ε, δ) that pays for releasing an approximate minimum, or the rounding of pure noise.
RELEASE_SHARE = 1e-3
# The share of that for the grid of a pure release: its own noise is tiny, and its values are not.
COARSE = 0.25


class NoiseSource:
    """Noise for releases, keyed from the operating system unless told otherwise.

    Parameters
    ----------
    rng : None or int
        None draws a fresh key and forgets it. An integer makes the noise repeatable, for tests:
        whoever knows it can subtract the noise, so :attr:`private` is False.
    """

    def __init__(self, rng: int | None = None) -> None:
        self.generator = SecureGenerator(rng)
        self.private = not self.generator.seeded

    def normal(
        self, shape: tuple[int, ...], sigma: float = 1.0, bits: int = FINE_BITS
    ) -> FloatArray:
        """Return N(0, sigma²) variables, each rounded to a grid of at least sigma / 2**bits."""
        step = Grid.at_most(sigma * 2.0**-bits).step
        integers = self.generator.rounded_normal(math.prod(shape), sigma / step)
        return (integers * step).reshape(shape)

    def coins(self, exponents: FloatArray) -> NDArray[np.bool_]:
        """Return independent coins of probability exp(-exponents[i]), exactly."""
        return bernoulli_exp(self.generator, [Fraction(x) for x in exponents.tolist()])

    def weighted_index(
        self, scores: NDArray[np.int64], rate: Fraction, widths: NDArray[np.int64] | None = None
    ) -> int:
        """Return i with probability proportional to widths[i] exp(-rate scores[i]), exactly."""
        return weighted_index(self.generator, scores, rate, widths)

    def multivariate_laplace(self, shape: tuple[int, ...]) -> tuple[FloatArray, float]:
        """Return a vector near one of density proportional to exp(-|b|), and how near.

        Notes
        -----
        *Guarantee.* b = |g| z with g, z standard normal in d + 1 and d dimensions has that density;
        the vector returned is within the second result of it, but for an event of probability below
        e^-2000 (docs/theorems_convex.md, Theorem V6).
        """
        d = math.prod(shape)
        z, g = self.normal((d,)), self.normal((d + 1,))
        # Norms beyond √d + 64 are the event left out; each coordinate is off by half a grid step.
        longest = (math.sqrt(d) + 64.0, math.sqrt(d + 1) + 64.0)
        apart = longest[1] * rounded_shift(d, FINE_BITS) + longest[0] * rounded_shift(
            d + 1, FINE_BITS
        )
        computed = longest[0] * longest[1] * (d + 16) * U
        b = z * math.sqrt(float(np.vdot(g, g)))
        return b.reshape(shape), (apart + computed) * (1.0 + 1e-6)

    def below(self, n: int) -> int:
        """Return a uniform integer in [0, n), 1 <= n <= 2**63."""
        return uniform_below(self.generator, n)

    def permutation(self, n: int) -> NDArray[np.intp]:
        """Return a uniform permutation of n items."""
        return np.argsort(self.generator.words(n), kind="stable")

    def release_pure(
        self, values: FloatArray, distance: float, epsilon: float, lost: float = 2.0**-12
    ) -> FloatArray:
        """Return values plus exact discrete Laplace noise on a grid: ``epsilon``-private.

        ``distance`` bounds how far neighbours' values lie apart in absolute sum. Rounding to the
        grid adds a step a coordinate to it, and the last operation that made a value another half
        (values within 2**51 steps are off by a quarter), which the noise includes; neither value
        nor noise has a digit below the grid, so nothing of floating point is outside the guarantee.
        ``lost`` is the share of ``epsilon`` for that: a larger one gives a coarser grid, on which
        larger values fit.
        """
        bits = pure_bits(values.size, epsilon, lost)
        remaining = epsilon - 2.0 * values.size * 2.0**-bits
        scale = distance / remaining * (1.0 + 1e-12)
        step = Grid.at_most(scale * 2.0**-bits).step
        limit = LARGEST_INTEGER * step
        kept = np.rint(np.clip(values.ravel(), -limit, limit) / step)
        integer = math.ceil(scale / step)
        noise = [discrete_laplace(integer, self.below) for _ in range(kept.size)]
        return np.asarray((kept + np.array(noise, dtype=np.float64)) * step).reshape(values.shape)

    def release(self, values: FloatArray, sigma: float, bits: int) -> FloatArray:
        """Return values + N(0, sigma²) noise on a grid of at least sigma / 2**bits.

        The Gaussian mechanism on the *rounded* values, exactly in law; rounding moves them by at
        most half a step a coordinate, which the caller's account pays for.
        """
        grid = Grid.at_most(sigma * 2.0**-bits)
        # Clipping moves no two values apart, and keeps every sum below exact.
        limit = LARGEST_INTEGER * grid.step
        kept = np.clip(values.ravel(), -limit, limit)
        return grid.release_gaussian(kept, sigma, self.generator).reshape(values.shape)


def pure_bits(size: int, epsilon: float, lost: float) -> int:
    """Return how fine the grid of a pure release is, or refuse these public numbers."""
    share = lost * epsilon
    bits = math.ceil(math.log2(2.0 * size / share)) if share > 0.0 else MOST_PURE_BITS + 1
    if not (bits <= MOST_PURE_BITS):
        raise DomainError(f"epsilon = {epsilon!r} is too small for {size} coordinates on one grid")
    return max(bits, 10)


def gaussian_bits(size: int, mu: float) -> int:
    """Return how fine the grid of a ``mu``-GDP release is, or refuse these public numbers."""
    bits = max(20, math.ceil(math.log2(8.0 * math.sqrt(size) / mu)))
    if not (bits <= MOST_BITS):
        raise DomainError(
            f"epsilon and delta are too small for {size} coordinates on one grid: a thousandth of"
            f" them allows {mu:.6g}-GDP"
        )
    return bits


def remaining_after_rounding(dimension: int, bits: int, multiplier: float) -> float:
    """Return the share of a Gaussian's sensitivity that rounding to its grid leaves to the data."""
    remaining = 1.0 - 2.0 * multiplier * rounded_shift(dimension, bits)
    if not (remaining > 0.25):
        raise DomainError(
            f"epsilon and delta are too small for {dimension} coordinates on one grid: they ask for"
            f" noise of {multiplier:.6g} sensitivities"
        )
    return remaining


def rounded_shift(dimension: int, bits: int) -> float:
    """Return a bound on how far rounding to the grid moves a vector, in units of sigma."""
    return 0.5 * math.sqrt(dimension) * 2.0**-bits
