"""Removal under random allocation to several of T steps, by two moments around every place.

A record takes part in k of T Gaussian steps. A sum R of one function of every step comes near the
logarithm of the likelihood ratio; R moves to one of the two places of a lattice around it, and
there masses and the first two moments of the ratio come from one-dimensional transforms.
docs/theorems_sampling.md, Theorem S28.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.bounds import Bounds
from accountant.sampling.several_sums import (
    REACH,
    TILTS,
    ComplexArray,
    Sum,
    log_mixture,
    mixed,
    turns_of,
)

# Any sum and any lattice are valid: the numbers move widths and times, and were chosen by trial.
# The last score in the sums for the lattice's ends: farther, squares leave the doubles.
FARTHEST = 37.0
# Spacing of the scores there, over the smaller of 1 and the noise.
COARSE = 0.05
# Exponents of the bounds on what is outside the lattice.
RATES = np.geomspace(0.1, 3e3, 32)
# The logarithm of the tilted mass outside the lattice over δ, which is counted, too.
OUTSIDE = -20.0
# The logarithm of a modulus at which a transform ends; what is beyond is counted.
NEGLIGIBLE = -48.0
# Frequencies of a transform: where it falls too slowly for the most, noise is added to R.
COUNTS = np.unique(np.geomspace(8, 2**9, 24).astype(int))
# How often such noise may make the lattice longer.
WIDENED = 4
# Values of 1/σ for which moments are doubles.
SHIFTS = (0.02, 3.0)
# The most steps: errors of transforms grow with them.
MOST_STEPS = 10**5
# The least δ: below it the errors of the transforms are all there is.
LEAST_DELTA = 1e-13
# The largest ε.
MOST_LOSS = 60.0
# The ε for which the first law is made, over that of allocations of one step.
USUAL = 0.985
# The first weight over the one that the loss suggests.
START = 1.18
# The ratio of weights that are tried.
LADDER = 1.12
# The largest weight.
MOST_WEIGHT = 0.9
# Places of the lattice: more make brackets hardly narrower.
POINTS = 2**16
# The most laws that are made on the way.
MOST_LAWS = 9
# Rounds of trials, each at the end of the last.
ROUNDS = 3
# How far, relatively, an end may be from where its weight was found.
AWAY = 0.03
# Evaluations of either end with one law at most.
TRIES = 7
# How far, relatively, an end is put beyond the place where its bound is δ.
CLOSE = 1e-6
# A place's mean square is taken to be at least its round-off, which is about so much of the mean.
NOISY = 10.0
# A place whose mass is less far above its round-off has r by its loss.
KNOWN = 1e3
# The least r, of the strike.
LEAST = 1e-6
# Rows of a sum, which is taken row by row.
BLOCK = 128


class Law:
    """Masses of R without the record, and both moments of the ratio, at the places of a lattice.

    Parameters
    ----------
    mu : float
        1/σ.
    steps, picks : int
        T and k, 2k < T.
    weight : float
        w, in (0, 1).
    delta : float
        A δ beside which what is outside the lattice is negligible.
    points : int
        Places of the lattice, a power of two of at least 2^10.
    """

    # What resolves nothing has infinite errors.
    @np.errstate(all="ignore")
    def __init__(
        self, mu: float, steps: int, picks: int, weight: float, delta: float, points: int = POINTS
    ) -> None:
        self._at = steps, picks
        coarse = Sum(mu, weight, COARSE / max(mu, 1.0), FARTHEST)
        self._sizes = [log_mixture(coarse.logs(sign * RATES), steps, picks) for sign in (-1.0, 1.0)]
        own = log_mixture(coarse.logs(np.zeros(1)), steps, picks)[0]
        noise, least = 0.0, steps * math.log1p(-weight) - 1e-6
        for _ in range(WIDENED):
            low, high = self._ends(noise, own + math.log(delta) + OUTSIDE)
            low = low if noise > 0.0 else max(low, least)
            # Short, so that its multiples are exact; a cell more at either end.
            step = _short(2.0 * math.pi / (high - low) * (1.0 - 4.0 / points))
            frequencies = step * COUNTS
            falls = log_mixture(coarse.falls(frequencies), steps, picks).min(axis=1)
            rest = (falls - own).max(axis=1) - NEGLIGIBLE
            place = min(int(np.count_nonzero(rest > 0.0)), COUNTS.size - 1)
            last, more = float(frequencies[place]), float(rest[place])
            if more <= 0.5 * (noise * frequencies[place]) ** 2:
                break
            noise = 1.01 * math.sqrt(2.0 * more) / last
        self._lattice(low, step, points)
        beyond = falls[place] + 0.5 * noise * noise * (TILTS**2 - last * last)
        self._invert(coarse, noise, beyond, step * np.arange(COUNTS[place] + 1.0))
        self._outside(noise)

    def _ends(self, noise: float, wanted: FloatArray) -> tuple[float, float]:
        """Return where the lattice begins and ends: little is farther out."""
        low, high = (
            np.nanmin((self._grown(side, noise) - wanted) / RATES[:, None], axis=0).max()
            for side in (0, 1)
        )
        return -float(low), float(high)

    def _grown(self, side: int, noise: float) -> FloatArray:
        """Bound log E e^{(tilt ± rate)(R + noise)} under Q, with LR and with LR²: [rate, tilt]."""
        powers = np.add.outer(RATES if side else -RATES, TILTS)
        return np.asarray(self._sizes[side] + 0.5 * (noise * powers) ** 2)

    def _lattice(self, low: float, step: float, points: int) -> None:
        self._width = 2.0 * math.pi / step / points
        self._begin = math.floor(low / self._width)
        self._loss = self._width * (self._begin + np.arange(points))
        self._units = [np.exp(-tilt * self._loss) for tilt in TILTS]
        ends = float(np.abs(self._loss[[0, -1]]).max())
        self._doubt = U * (2.0 * BLOCK + points / BLOCK + 16.0 * ends + 64.0)

    def _invert(
        self, coarse: Sum, noise: float, beyond: FloatArray, frequencies: FloatArray
    ) -> None:
        """Set masses and moments at the places, and bounds on the norms of their errors."""
        mu, last = coarse.mu, float(frequencies[-1])
        points, width, count = self._loss.size, self._width, frequencies.size
        spacing = _short(2.0 * math.pi / (last * mu + 12.0 + 16.0 * mu))
        fine = Sum(mu, coarse.weight, spacing, REACH + 2.0 * mu)
        turns, tilted = turns_of(frequencies, fine), fine.tilted()
        missed = fine.relative + 2.0 * fine.moved + fine.strip(last, 0.0) + 1e-36
        self._parts: list[FloatArray] = []
        self._errors: list[float] = []
        for order, tilt in enumerate(TILTS):
            masses = tilted[: order + 1, order]
            blocks = masses.reshape(-1, *turns.shape[1:])
            values = list(np.einsum("mhij,nhij->nmhi", turns, blocks).sum(axis=3).sum(axis=2))
            errors = [
                float(mass @ missed) + frequencies * float(mass @ fine.moved) for mass in masses
            ]
            spectrum, error = mixed(values, errors, *self._at)
            kernel = _kernel(tilt + 1j * frequencies, width, noise)
            whole = np.zeros(points // 2 + 1, np.complex128)
            whole[:count] = (spectrum * kernel).conj()
            part = np.roll(np.fft.irfft(whole, points), -(self._begin % points))
            norm = math.sqrt(2.0 / points) * _norm(error * np.abs(kernel))
            norm += 16.0 * U * (math.log2(points) + 2.0) * _norm(part)
            # Frequencies beyond the last: the kernel falls with the square.
            rest = math.exp(min(beyond[order], 700.0)) * math.cosh(0.5 * tilt * width) ** 2
            norm += math.sqrt(points) * rest * 4.0 / (math.pi * width * last)
            self._parts.append(part * self._units[order])
            self._errors.append(norm * (1.0 + 1e-9))

    def _outside(self, noise: float) -> None:
        """Bound the tilted masses outside the ends, LR² to their left and LR to their right."""
        first, last, slack = float(self._loss[0]), float(self._loss[-1]), 2.0 * self._width + 1e-6
        below = np.nanmin(self._grown(0, noise) + RATES[:, None] * first, axis=0) + slack
        above = np.nanmin(self._grown(1, noise) - RATES[:, None] * last, axis=0) + slack
        right = math.exp(above[1] - TILTS[1] * last)
        self._beyond = np.exp(below) + np.exp(above), math.exp(below[2]), right

    @np.errstate(all="ignore")
    def removal(self, epsilon: float, *, upper: bool) -> tuple[float, float]:
        """Bound E(LR - e^ε)₊, LR the likelihood ratio, from one side; and about its derivative."""
        strike, (q, p, s) = math.exp(epsilon), self._parts
        above = (p > strike * q) & (self._loss > epsilon - 2.0)
        slope = -strike * float(q[above].sum())
        if not upper:
            total, doubt = self._total([np.where(above, -strike, 0.0), np.where(above, 1.0, 0.0)])
            worst = math.exp(2.0 - epsilon)
            return max(total - doubt - worst * float(self._beyond[0][1]) - 4.0 * U, 0.0), slope
        # Any r > 0, chosen first: the root of the mean square, where the masses are resolved.
        square = s - strike * (2.0 * p - strike * q)
        terms = zip((strike * strike, 2.0 * strike, 1.0), self._errors, self._units, strict=True)
        noise = sum(factor * error * unit for factor, error, unit in terms)
        noise = noise / math.sqrt(q.size)
        known = q * strike * strike > KNOWN * noise
        square = np.maximum(square, NOISY * noise)
        r = np.abs(strike - np.exp(np.minimum(self._loss, epsilon + 3.0)))
        r = np.maximum(np.sqrt(np.divide(square, q, out=r * r, where=known)), LEAST * strike)
        c = strike - r
        # Far above the strike all that counts is the mass itself.
        whole = (self._loss > epsilon) & (p < (s - c * (2.0 * p - c * q)) / (4.0 * r))
        quarter: FloatArray = np.where(whole, 0.0, 0.25 / r)
        factors: list[FloatArray] = [
            c * c * quarter,
            np.where(whole, 1.0, -2.0 * c * quarter),
            quarter,
        ]
        total, doubt = self._total(factors)
        alias, left, right = self._beyond
        doubt += float(alias[1]) * float((np.maximum(-factors[1], 0.0) * self._units[1]).max())
        return (total + doubt) * (1.0 + 1e-12) + left / (4.0 * strike) + right + 4.0 * U, slope

    def _total(self, factors: list[FloatArray]) -> tuple[float, float]:
        """Return Σ factor·part and its error: a transform's have a known sum of squares."""
        total = size = noise = 0.0
        for factor, part, error, unit in zip(
            factors, self._parts, self._errors, self._units, strict=False
        ):
            products = (factor * part).reshape(BLOCK, -1)
            total += float(products.sum(axis=1).sum())
            size += float(np.abs(products).sum())
            noise += error * _norm(factor * unit)
        return total, size * self._doubt + noise * (1.0 + 1e-9)


def _norm(values: FloatArray) -> float:
    return math.sqrt(float((values * values).sum()))


def _short(value: float) -> float:
    """Round down to twenty binary digits, so that multiples are exact."""
    fraction, exponent = math.frexp(value)
    return math.ldexp(math.floor(math.ldexp(fraction, 20)), exponent - 20)


def _kernel(z: ComplexArray, width: float, noise: float) -> ComplexArray:
    """Return E e^{-zV}, V the distance from a place to R, of a triangular law, with the noise."""
    half = 0.5 * width * z
    ratio = np.divide(np.sinh(half), half, out=np.ones_like(half), where=half != 0.0)
    return np.asarray(ratio * ratio * np.exp(0.5 * (noise * z) ** 2))


def removal_bounds(
    noise: float, steps: int, picks: int, delta: float, most: float, *, lower: bool = True
) -> Bounds:
    """Bracket ε(delta) of removing a record, in nats; without ``lower`` from above alone.

    Parameters
    ----------
    noise : float
        σ.
    steps, picks : int
        T and k >= 2.
    delta : float
        In (0, 1).
    most : float
        An upper bound on ε, which is returned where no better one is found.
    """
    known = SHIFTS[0] <= 1.0 / noise <= SHIFTS[1] and 2 * picks < steps <= MOST_STEPS
    if not (known and delta >= LEAST_DELTA and MOST_LOSS >= most > 0.0):
        return Bounds(0.0, most)
    return _search(1.0 / noise, steps, picks, delta, most, lower)


@functools.lru_cache(maxsize=16)
def _search(mu: float, steps: int, picks: int, delta: float, most: float, lower: bool) -> Bounds:
    """Try weights around the one that the loss suggests: laws of either are valid."""
    at, best, place = USUAL * most, most, 0
    # Two steps move the sum by about the ratio that they move the loss by, near the strike.
    suggested = START * (picks - 1.0) / (steps * math.exp(at / picks))
    made = functools.cache(functools.partial(_weighted, mu, steps, picks, suggested, delta))

    def height(index: int) -> float:
        value = made(index).removal(at, upper=True)[0]
        return math.log(value) if 0.0 < value < math.inf else math.inf

    def lower_end(index: float) -> float:
        return _end(made(index), delta, at, most, upper=False)[1]

    for _ in range(ROUNDS):
        place, beside = _lowest(height, place)
        found, held = _end(made(place), delta, at, most, upper=True)
        best = min(best, held)
        if abs(found - at) <= AWAY * at:
            break
        at = found
    best = min(best, _end(made(_vertex(beside)), delta, at, most, upper=True)[1])
    if not lower:
        return Bounds(0.0, best)
    place, beside = _lowest(lambda index: -lower_end(index), place)
    return Bounds(min(max(-beside[place], lower_end(_vertex(beside))), best), best)


def _weighted(mu: float, steps: int, picks: int, weight: float, delta: float, index: float) -> Law:
    """Return the law at a place of the ladder of weights."""
    return Law(mu, steps, picks, min(weight * LADDER**index, MOST_WEIGHT), delta)


def _lowest(height: Callable[[int], float], place: int) -> tuple[int, dict[int, float]]:
    """Return about where a function is least, from ``place`` on, and the values that are known."""
    known: dict[int, float] = {}
    while True:
        for index in (place - 1, place, place + 1):
            if index not in known:
                known[index] = height(index)
        lowest = min(known, key=lambda index: known[index])
        if lowest == place or len(known) >= MOST_LAWS:
            return place, known
        place = lowest


def _vertex(heights: dict[int, float]) -> float:
    """Return about where a function of an index is least."""
    place = min(heights, key=lambda index: heights[index])
    left, right = heights.get(place - 1, math.inf), heights.get(place + 1, math.inf)
    bend = left - 2.0 * heights[place] + right
    return place + (0.5 * (left - right) / bend if 0.0 < bend < math.inf else 0.0)


def _end(law: Law, delta: float, at: float, most: float, *, upper: bool) -> tuple[float, float]:
    """Return about where a bound is ``delta``, and the best ε that it certifies."""
    held, sign = (most, 1.0) if upper else (0.0, -1.0)
    last: tuple[float, float] | None = None
    for _ in range(TRIES):
        value, slope = law.removal(at, upper=upper)
        holds = value <= delta if upper else value > delta
        if holds:
            held = min(held, at) if upper else max(held, at)
        if not (slope < 0.0 < value < math.inf):
            break
        # δ is nearly log-linear: Newton's step, then secants, to the safe side of the end.
        miss, fall = math.log(value / delta), slope / delta
        if last is not None and (last[1] - miss) * (last[0] - at) < 0.0:
            fall = (last[1] - miss) / (last[0] - at)
        last = at, miss
        move = -miss / fall + CLOSE * at * sign
        if holds and abs(move) <= 3.0 * CLOSE * at:
            break
        at = min(max(at + move, 0.6 * at), most)
    return at, held
