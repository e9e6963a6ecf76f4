"""The mean excess of a sum of independent, equally distributed terms, at a cost without n.

E(S)₊ of S = Z₁ + … + Zₙ is a contour integral of the transform of Z to the n-th power, for terms
of finitely many values. docs/theorems_shuffling.md, Theorem H3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.analyses.solver import above_crossing, below_crossing
from accountant.search import narrow

# Terms whose multisets of values are listed, at most. This and the next affect speed alone.
MOST_TERMS = 512
# Numbers of values in all these multisets, at most: a contour costs as much.
MOST_NUMBERS = 2**20
# What probabilities that underflow may be off by, all together.
LOST = 1e-300


class Multisets(NamedTuple):
    """How often each value occurs, and the probability of that."""

    numbers: FloatArray
    chances: FloatArray
    slip: float  # the chances' relative error


def are_few(values: int, count: int) -> bool:
    """Tell whether ``count`` terms of that number of values have few multisets of values."""
    return count <= MOST_TERMS and values * math.comb(count + values - 1, count) <= MOST_NUMBERS


def excess_of_few(values: FloatArray, masses: FloatArray, count: int) -> tuple[float, float]:
    """Bracket E(Z₁ + … + Z_count)₊, to within the masses' own errors."""
    every = multisets(tuple(masses.tolist()), count)
    sums = every.numbers @ values
    off = (values.size + 4.0) * U * (every.numbers @ np.abs(values))
    slip = every.slip + (sums.size + 16.0) * U
    low = float(every.chances @ np.maximum(sums - off, 0.0)) * (1.0 - slip)
    high = float(every.chances @ np.maximum(sums + off, 0.0)) * (1.0 + slip)
    return max(low - LOST, 0.0), high + LOST * count * float(np.abs(values).max())


@lru_cache(maxsize=4)
def multisets(masses: tuple[float, ...], count: int) -> Multisets:
    """Return all multisets of ``count`` values with these masses."""
    factorials = [math.log(math.factorial(k)) for k in range(count + 1)]
    numbers = _numbers(len(masses), count)
    logs = np.log(np.array(masses))
    exponents = factorials[-1] - np.array(factorials)[numbers].sum(axis=1) + numbers @ logs
    # Of logarithms, their products and sums: a few units of their sizes.
    size = 1.0 + 2.0 * factorials[-1] + count * float(np.abs(logs).max())
    slip = (8.0 * len(masses) + 16.0) * U * size
    return Multisets(numbers.astype(np.float64), np.exp(exponents), slip)


def _numbers(values: int, count: int) -> NDArray[np.int64]:
    """Return every way to write ``count`` as a sum of that number of terms, one a row."""
    rows, rest = np.zeros((1, 0), np.int64), np.array([count])
    for _ in range(values - 1):
        last = np.cumsum(rest + 1)
        following = np.arange(int(last[-1])) - np.repeat(last - rest - 1, rest + 1)
        rows = np.column_stack([np.repeat(rows, rest + 1, axis=0), following])
        rest = np.repeat(rest, rest + 1) - following
    return np.column_stack([rows, rest])


ComplexArray: TypeAlias = "NDArray[np.complex128]"

# The least period of a line, in deviations of the tilted sum. The constants down to SECTIONS choose
# the line; what they leave out is in the bracket.
PERIOD = 20.0
# The least period, in units of the tilt.
DECAY = 40.0
# Aliases are planned to be e^-ALIAS of the value.
ALIAS = 25.0
# Tilts that are tried, over the best one.
TILTS = 2.0 ** -np.arange(0.0, 10.0)
# Tilts that bound the tails, over that of the line.
BEYOND = 1.0 + 2.0 ** np.arange(-3.0, 8.0, 0.5)
# Smoothed transforms are cut where they have fallen to e^{-CUT²/2}.
CUT = 8.5
# The logarithm of the least power that is looked at; the others are counted as error.
FAINTEST = -60.0
# Nodes of a line, at most.
MOST_NODES = 2**17
# The logarithm of the least scale whose exponential is a double.
LOG_LEAST = -690.0
# Where a range of tilts is cut, as shares of it.
SECTIONS = np.arange(1.0, 12.0) / 12.0


class Terms(NamedTuple):
    """The law of one term: values and their masses, the sum of the masses being nearly one.

    Attributes
    ----------
    values, masses : float64 arrays of one length
        Masses are positive.
    """

    values: FloatArray
    masses: FloatArray


class Fineness(NamedTuple):
    """How finely a law is resolved; costs grow with it.

    Attributes
    ----------
    smoothing : float
        The deviation of the noise that smooths a sum, in those of the tilted sum.
    knots : int
        Of a loss, on either side.
    negligible : float
        Part of a δ that tails may take.
    groups : int
        Numbers of other users with one of two answers.
    """

    smoothing: float
    knots: int
    negligible: float
    groups: int = 1


def mean_excess(terms: Terms, count: int, fineness: Fineness) -> tuple[float, float]:
    """Bracket E(Z₁ + … + Z_count)₊ / count, to within the masses' own errors."""
    gains = np.maximum(terms.values, 0.0)
    if not gains.any():
        return 0.0, 0.0
    # Of one term; no sum has more for each, and none has less than its mean.
    alone = math.fsum((gains * terms.masses).tolist()) * (1.0 + 8.0 * U)
    if count == 1 or bool((terms.values >= 0.0).all()):
        return alone * (1.0 - 16.0 * U), alone
    if are_few(terms.values.size, count):
        low, high = excess_of_few(*terms, count)
        return low / count * (1.0 - 4.0 * U), min(high / count * (1.0 + 4.0 * U), alone)
    tilt, length = _plan(terms, count)
    low, high = _Line.at(terms, count, tilt, length, fineness.smoothing).bracket()
    return max(low, 0.0) / count, min(high / count * (1.0 + 4.0 * U), alone)


def _plan(terms: Terms, count: int) -> tuple[float, float]:
    """Return the tilt and the period of the line that needs the fewest nodes; a mere choice."""
    best = _tilt(terms, count)
    spread = _Tilted.of(terms, count, best).deviation
    # About what the excess is, by the saddle point.
    wanted = count * _log_sum(terms, best) - 2.0 * math.log(best) - math.log(spread) - ALIAS
    found: list[tuple[float, float, float]] = []
    for part in TILTS.tolist():
        c = best * part
        deviation = _Tilted.of(terms, count, c).deviation
        farther = count * _log_sums(terms, c * BEYOND) - np.log(c * BEYOND)
        needed = ((farther - wanted) / (c * (BEYOND - 1.0))).min()
        length = max(PERIOD * deviation, DECAY / c, float(needed))
        found.append((length / deviation, c, length))
        if length <= 2.0 * PERIOD * deviation:
            break
    _, tilt, length = min(found)
    return tilt, length


def _tilt(terms: Terms, count: int) -> float:
    """Return roughly where the transform over z² is least on the positive axis."""
    values, masses = terms
    logs = np.log(masses)
    largest = float(np.abs(values).max())
    low, high = -80.0, 80.0  # of log(c · largest)
    while high - low >= 1e-3:
        inside = low + (high - low) * SECTIONS
        c = np.exp(inside) / largest
        exponents = logs + c[:, None] * values
        weights = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        slopes = count * (weights @ values) / weights.sum(axis=1)
        below = int(np.count_nonzero(slopes * c < 2.0))  # the slope rises
        places = [low, *inside.tolist(), high]
        low, high = places[below], places[below + 1]
    return math.exp(0.5 * (low + high)) / largest


class _Line(NamedTuple):
    """The trapezoid sum along Re z = c, with everything that separates it from the integral."""

    tilt: float  # c
    log_scale: float  # of the transform at c
    value: float  # the sum for the excess, in units of that scale
    density: float  # the sum for the density at 0
    error: float
    density_error: float
    aliases: float  # absolute
    deviation: float  # of the smoothing
    excess: float  # how far powers of masses may be off, relatively

    @classmethod
    def at(cls, terms: Terms, count: int, tilt: float, length: float, smoothing: float) -> _Line:
        c, (weights, log_sum, mean, whole, slip) = tilt, _Tilted.of(terms, count, tilt)
        centred, spread = terms.values - mean, whole / math.sqrt(count)
        step = 2.0 * math.pi / length
        tau = max(smoothing * whole, CUT / (MOST_NODES * step))
        nodes = math.ceil(CUT / (tau * step)) + 1
        y = step * np.arange(nodes)
        phi = _transform(centred, weights, step, nodes)
        size = np.abs(phi)
        # What the transform is off by, and what that makes of its power.
        reach = spread + abs(mean) + float(weights @ np.abs(terms.values))
        off = U * (terms.values.size + 64.0 + 16.0 * y * reach)
        end = float(y[-1])
        left = math.exp(-0.5 * (tau * end) ** 2) / (tau * tau * end * math.pi)
        # Most powers are nothing: these nodes add up to half of this, and it is nothing as well.
        log_grown = count * np.log(size + off)
        loud = ~(log_grown <= FAINTEST)
        faint = 2.0 * nodes * math.exp(FAINTEST) * step / math.pi
        y, phi, size, off, log_grown = (a[loud] for a in (y, phi, size, off, log_grown))
        with np.errstate(divide="ignore", under="ignore", invalid="ignore"):
            log_phi = np.log(np.where(size > 0.0, phi, 1e-300))
            z = c + 1j * y
            more = 1j * (count * mean) * y + 0.5 * tau * tau * (z * z - c * c)
            powered = np.exp(count * log_phi + more)
            damp = np.exp(-0.5 * tau * tau * y * y)
            grown = np.exp(np.minimum(log_grown, 600.0))
            share = count * (off / np.maximum(size + off, 1e-300) + 32.0 * U)
            share += U * (64.0 + 8.0 * y * count * abs(mean) + 8.0 * tau * tau * (y + c) ** 2)
            wrong = grown * damp * np.minimum(share * 2.0, 2.0)
        half = np.where(y == 0.0, 0.5, 1.0) * (step / math.pi)
        squares = np.abs(z) ** 2
        rough = (nodes + 16) * U
        log_scale = count * log_sum + 0.5 * (tau * c) ** 2
        sums = half * np.abs(powered)
        return cls(
            c,
            log_scale,
            float(half @ (powered / (z * z)).real),
            float(half @ powered.real),
            float((half * wrong + rough * sums) @ (1.0 / squares)) + left / end**2 + faint / c**2,
            float(half @ wrong) + rough * float(sums.sum()) + left + faint,
            _aliases(terms, count, c, length, tau),
            tau,
            slip + 8.0 * U * (abs(log_scale) + count * abs(log_sum)),
        )

    def bracket(self) -> tuple[float, float]:
        """Return the ends of E(S)₊."""
        if not (self.excess < 1.0 and self.log_scale < -LOG_LEAST):
            return 0.0, math.inf
        if self.log_scale < LOG_LEAST:
            # (s)₊ <= e^{cs}/(ec), and a factor e for what the scale is off by.
            return 0.0, math.exp(LOG_LEAST) / self.tilt * (1.0 + 1e-9)
        scale = math.exp(self.log_scale)
        slip = math.expm1(self.excess * (1.0 + 1e-9)) + 16.0 * U
        high = scale * (self.value + self.error) * (1.0 + slip)
        # Smoothing adds at most the square of its deviation times the smoothed density at 0.
        added = self.deviation**2 * scale * (self.density + self.density_error) * (1.0 + slip)
        low = scale * (self.value - self.error) * (1.0 - slip) - self.aliases * (1.0 + slip) - added
        return low, high


class _Tilted(NamedTuple):
    """Masses e^{cz}·p over their sum, what they are like, and the relative error of powers."""

    weights: FloatArray
    log_sum: float
    mean: float  # of a term
    deviation: float  # of the sum
    slip: float

    @classmethod
    def of(cls, terms: Terms, count: int, c: float) -> _Tilted:
        """Tilt the law of a term by ``c``."""
        logs = np.log(terms.masses)
        log_sum = _log_sum(terms, c)
        weights = np.exp(logs + c * terms.values - log_sum)
        mean = float(weights @ terms.values)
        variance = float(weights @ (terms.values - mean) ** 2)
        # A mass and its exponential are off by a few units of the exponents; n in a product.
        sizes = 1.0 + np.abs(logs) + np.abs(c * terms.values) + abs(log_sum)
        deviation = math.sqrt(max(count * variance, 1e-300))
        return cls(weights, log_sum, mean, deviation, count * 8.0 * U * float(sizes.max()))


def _log_sum(terms: Terms, c: float) -> float:
    return float(_log_sums(terms, np.array([c]))[0])


def _log_sums(terms: Terms, tilts: FloatArray) -> FloatArray:
    """Return the logarithm of the transform at each of the tilts."""
    exponents = np.log(terms.masses) + tilts[:, None] * terms.values
    top = exponents.max(axis=1)
    return np.asarray(top + np.log(np.exp(exponents - top[:, None]).sum(axis=1)))


def _transform(centred: FloatArray, weights: FloatArray, step: float, nodes: int) -> ComplexArray:
    """Return Σ w·e^{iyx} at y = 0, step, 2·step, …: coarse and fine rotations, multiplied."""
    side = math.isqrt(nodes - 1) + 1
    fine = np.exp(1j * np.outer(centred, step * np.arange(side)))
    coarse = np.exp(1j * np.outer(step * side * np.arange(side), centred)) * weights
    return np.asarray((coarse @ fine).ravel()[:nodes])


def _aliases(terms: Terms, count: int, c: float, length: float, tau: float) -> float:
    """Bound the other periods that a trapezoid sum adds to the excess."""
    tilts = c * np.append(1.0, BEYOND)
    logs = count * _log_sums(terms, tilts) + 0.5 * (tau * tilts) ** 2
    x = math.exp(-c * length)
    here = math.exp(min(float(logs[0]), 700.0)) / (math.e * c)
    above = length * x / (1.0 - x) ** 2 + here * x / (1.0 - x)
    moved = c * (BEYOND - 1.0) * length
    sizes = np.exp(np.minimum(logs[1:] - moved - np.log(math.e * tilts[1:]), 700.0))
    below = float((sizes / -np.expm1(-moved)).min())
    return (above + below) * (1.0 + 1e-9)


LARGEST = 600.0  # of exponents


class ReportLaw(NamedTuple):
    """Atoms of a report under a common law, and the ratios of the user's two laws to it.

    Attributes
    ----------
    one, two : float64 arrays of one length
        Ratios of the laws of the user's first and second value.
    masses : float64 array
        Positive masses of the common law; with ``rest`` they add up to one.
    rest : float
        The probability that a report is not drawn from the common law.
    ratio_error, mass_error : float
        Relative errors.
    left_out : float
        Mass of the first law that is in no atom.
    """

    one: FloatArray
    two: FloatArray
    masses: FloatArray
    rest: float
    ratio_error: float
    mass_error: float
    left_out: float


def excess(law: ReportLaw, users: int, epsilon: float, fineness: Fineness, *, upper: bool) -> float:
    """Bound E(Σ(one - e^ε·two))₊ / users from above or below (Theorem H1)."""
    grown = math.exp(min(epsilon, LARGEST))
    sign = 1.0 if upper else -1.0
    slack = (law.one + grown * law.two) * (law.ratio_error + 8.0 * U)
    values = law.one - grown * law.two + sign * slack
    masses = law.masses
    if law.rest > 0.0:
        values, masses = np.append(values, 0.0), np.append(masses, law.rest)
    found = mean_excess(Terms(values, masses), users, fineness)[upper]
    slip = math.expm1(min(users * math.log1p(law.mass_error), LARGEST)) * (1.0 + 1e-9)
    if upper:
        return min(found * (1.0 + slip) + law.left_out, 1.0)
    return max(found * (1.0 - slip), 0.0)


# How close the two sides of a crossing come, relatively.
CLOSE = 5e-7


# The ε that are tried first, in nats.
LADDER = tuple(1e-3 * 2.0**k for k in range(20))


# Halvings of the interval below the first of them that costs little enough; then a crossing is
# looked for.
HALVINGS = 10


# The ε that are tried where none is found, each four times as far from the guess.
TRIES = 12


def epsilon_at(
    delta: float, rough: Callable[[float], float], fine: Callable[[float], float], *, upper: bool
) -> float | None:
    """Return an ε where ``fine`` is at most ``delta``, or for a lower end is above it, or None.

    Where a crossing is looked for first goes by ``rough``, which need not fall everywhere.
    """
    high = next((at for at in LADDER if rough(at) <= delta), None)
    if high is None:
        return None
    guess, _ = narrow(lambda at: rough(at) <= delta, high, 0.0, HALVINGS)
    search, side = (above_crossing, 1.0) if upper else (below_crossing, -1.0)
    found = search(fine, delta, guess, LADDER[-1], close=CLOSE)
    tried = (guess * (1.0 + side * CLOSE * 4.0**k) for k in range(TRIES))
    return found or next((at for at in tried if at > 0.0 and (fine(at) <= delta) == upper), None)
