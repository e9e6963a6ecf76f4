"""Removal under random allocation to several of T steps, by two moments in every cell.

A record takes part in k of T Gaussian steps. The likelihood ratio is the k-th elementary symmetric
polynomial of the steps' ratios Y over its number of terms. A sum R of one function of every step
comes near its logarithm; on the cells of R, which is rounded to a lattice, the masses and the first
two moments of the ratio are convolutions. docs/theorems_sampling.md, Theorem S28.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant._core import tools as core
from accountant.bounds import Bounds
from accountant.mechanisms.normal_masses import cells
from accountant.sampling.several_plan import RATES, TILTS, Plan, log_moments, plan_of, shared

ComplexArray: TypeAlias = "NDArray[np.complex128]"

# Any sum is valid: the numbers move widths and times, and were chosen by trial.
# The transform is left out where its modulus is smaller by this factor, which is counted.
NEGLIGIBLE = 1e-22
# The least r, of the strike: for cells where rounding leaves no variance.
LEAST = 1e-6
# Values of 1/σ for which the plan's scores suffice, and for which moments are doubles.
SHIFTS = (0.02, 3.0)
# The most steps: errors of masses grow with them.
MOST_STEPS = 10**5
# The least δ: below it the errors of the transforms are all there is.
LEAST_DELTA = 1e-13
# The largest ε.
MOST_LOSS = 60.0
# The ε for which a law is made, over that of allocations of one step.
USUAL = 0.985
# Evaluations of either end at most.
ROUNDS = 6
# How far, relatively, an end is put beyond the place where its bound is δ.
CLOSE = 1e-6
# Rows of a sum, which is taken row by row.
BLOCK = 512
# Groups of values in such a bound.
GROUPS = 4096
# The least edge of a cell: below it there is next to no mass.
FARTHEST = -10.0
# The widest cell of the noise, in its deviations: wider ones have larger errors.
WIDEST = 0.02


class Kind(NamedTuple):
    """The points of a lattice, whose rounding is noise, and the weight over a plan's own."""

    points: int
    more: float


# For an upper end: a quarter of the points makes brackets several times as wide.
ABOVE = Kind(2**20, 1.115)
# For a lower end, which gains nothing from more points.
BELOW = Kind(2**18, 1.06)


class Law:
    """Masses of R without the record, and both moments of the ratio on its cells.

    Parameters
    ----------
    mu : float
        1/σ.
    steps, picks : int
        T and k, 2k < T.
    near : float
        An ε for which the law is made, in nats.
    delta : float
        About the δ there.
    kind : Kind
        ``ABOVE`` or ``BELOW``; both ends are valid for either.
    """

    def __init__(
        self, mu: float, steps: int, picks: int, near: float, delta: float, kind: Kind
    ) -> None:
        self._steps, self._picks = steps, picks
        plan, points = plan_of(mu, steps, picks, near, delta, kind.more), kind.points
        spacing = (plan.high - plan.low) / points
        first, masses, relative = _one(mu, plan, spacing)
        values: FloatArray = np.asarray(spacing * (first + np.arange(masses[0].size)), float)
        counts = shared(steps, picks)
        self._begin = math.floor(plan.low / spacing)
        self._loss = spacing * (self._begin + np.arange(points))
        self._unit = np.exp(-self._loss)
        self._parts: list[FloatArray] = []
        self._errors: list[float] = []
        for order, tilt in enumerate(TILTS):
            grown = np.exp(tilt * values)
            tilted = [mass * grown for mass in masses[: order + 1]]
            part, error = _convolved(tilted, counts, steps, picks, points)
            shift = (self._begin - steps * first) % points
            self._parts.append(np.roll(part, -shift) * self._unit**tilt)
            self._errors.append(error)
        ends = float(self._loss[0]), float(self._loss[-1]) + spacing
        self._beyond = _beyond(masses, values, counts, steps, picks, ends)
        self._units = [self._unit * self._unit, self._unit, np.ones(points)]
        # Masses and the exponentials of every step, sums, and the exponentials that are taken back.
        self._doubt = steps * (relative + 8.0 * U * (2.0 + 2.0 * float(np.abs(values).max())))
        self._doubt += U * (2.0 * BLOCK + points / BLOCK + 16.0 * max(map(abs, ends)) + 64.0)
        self._doubt *= 1.01

    def removal(self, epsilon: float, *, upper: bool) -> tuple[float, float]:
        """Bound E(LR - e^ε)₊, LR the likelihood ratio, from one side; and about its derivative."""
        strike, (q, p, s) = math.exp(epsilon), self._parts
        above = (p > strike * q) & (self._loss > epsilon - 2.0)
        slope = -strike * float(q @ above)
        if not upper:
            total, doubt = self._total([np.where(above, -strike, 0.0), np.where(above, 1.0, 0.0)])
            worst = math.exp(2.0 - epsilon)
            return max(total - doubt - worst * float(self._beyond[0][1]) - 4.0 * U, 0.0), slope
        # Any r > 0, chosen first: the root of the mean square, where the masses are resolved.
        square = s - strike * (2.0 * p - strike * q)
        known = (q > 0.03 * self._errors[0] * self._units[0]) & (square > 0.0)
        r = np.abs(strike - np.exp(np.minimum(self._loss, epsilon + 3.0)))
        r = np.sqrt(np.divide(square, q, out=r * r, where=known))
        r = np.maximum(r, LEAST * strike)
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
        doubt += float(alias[1]) * float(np.max(np.maximum(-factors[1], 0.0) * self._unit))
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
            noise += error * float(np.linalg.norm(factor * unit))
        return total, size * self._doubt + noise * (1.0 + 1e-9)


@functools.lru_cache(maxsize=4)
def _law(mu: float, steps: int, picks: int, near: float, delta: float, kind: Kind) -> Law:
    return Law(mu, steps, picks, near, delta, kind)


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
    near = USUAL * most
    ends = [0.0, most]
    for side, kind in ((0, BELOW), (1, ABOVE)) if lower else ((1, ABOVE),):
        law, at = _law(1.0 / noise, steps, picks, near, delta, kind), near
        for _ in range(ROUNDS):
            value, slope = law.removal(at, upper=bool(side))
            holds = value <= delta if side else value > delta
            if holds:
                ends[side] = min(ends[1], at) if side else max(ends[0], at)
            if not (slope < 0.0 < value):
                break
            # δ is nearly log-linear: Newton's step, to the safe side of the end.
            move = math.log(value / delta) * delta / -slope + CLOSE * near * (1.0 if side else -1.0)
            if holds and abs(move) <= 3.0 * CLOSE * near:
                break
            at = min(max(at + move, 0.5 * at), most)
    return Bounds(min(ends), ends[1])


def _one(mu: float, plan: Plan, spacing: float) -> tuple[int, list[FloatArray], float]:
    """Return the first knot of one step's function, its laws under Q, P and P²/Q, and their error.

    The cells of the noise are those of the doubles that come out: rounding belongs to the function.
    """
    weight = plan.weight
    first, last = math.floor(math.log1p(-weight) / spacing), math.ceil(plan.top / spacing)
    middles = spacing * (np.arange(first, last) + 0.5)
    ratios = (np.expm1(middles) + weight) / weight
    # A cell below the least value of the function has no mass.
    first += int(np.count_nonzero(ratios <= 0.0))
    scores = np.log(ratios[ratios > 0.0]) / mu + 0.5 * mu
    scores = np.maximum.accumulate(np.maximum(scores, FARTHEST))
    gaps = np.append(np.diff(scores), 0.0)
    more = np.ceil(gaps / WIDEST).astype(int).clip(1)
    start = np.concatenate([[0], np.cumsum(more)])[:-1]
    inside = np.arange(int(more.sum())) - np.repeat(start, more)
    edges = np.repeat(scores, more) + np.repeat(gaps / more, more) * inside
    edges = np.maximum.accumulate(edges)
    joined = np.concatenate([[0], start + 1])
    masses, relative = [], 16.0 * U
    for shift, factor in ((0.0, 1.0), (mu, 1.0), (2.0 * mu, math.exp(mu * mu))):
        found, error = cells(edges, shift)
        masses.append(factor * np.add.reduceat(found, joined))
        relative = max(relative, error + 64.0 * U * (1.0 + mu * mu))
    return first, masses, relative


def _convolved(
    laws: list[FloatArray], counts: FloatArray, steps: int, picks: int, points: int
) -> tuple[FloatArray, float]:
    """Return masses on the lattice, and a bound on the root of their errors' sum of squares.

    Of one law its power, of two k of the second and T - k of the first, of three the mixture of
    Theorem S28.
    """
    transforms = []
    for law in laws:
        around = np.zeros(-(-law.size // points) * points)
        around[: law.size] = law
        transforms.append(np.fft.rfft(around.reshape(-1, points).sum(axis=0)))
    totals = [float(law.sum()) for law in laws]
    unit = 8.0 * U * (math.log2(points) + 2.0)
    with np.errstate(divide="ignore"):
        falls = (steps - 2.0 * picks) * np.log(np.abs(transforms[0]) / totals[0])
    some = falls > math.log(NEGLIGIBLE)
    seen = [transform[some] for transform in transforms]
    power = _mixture(seen, counts, steps, picks)
    sizes = [np.abs(x).astype(np.complex128) for x in seen]
    plain = _mixture(sizes, counts, steps, picks).real
    grown = [x + unit * total for x, total in zip(sizes, totals, strict=True)]
    most = _mixture(grown, counts, steps, picks).real
    largest = float(most[0]) * 1.01
    error = np.maximum(most - plain, 0.0) + 8.0 * U * (steps + 4.0 * picks + 8.0) * most
    spectrum = np.zeros(transforms[0].size, np.complex128)
    spectrum[some] = power
    found = np.fft.irfft(spectrum, points)
    rest = 2.0 * float(error @ error) / points
    rest = math.sqrt(rest) + NEGLIGIBLE * largest + 2.0 * unit * float(np.linalg.norm(found))
    return found, rest * (1.0 + 1e-9)


def _mixture(
    values: list[ComplexArray], counts: FloatArray, steps: int, picks: int
) -> ComplexArray:
    base = np.ones(values[0].size, np.complex128)
    if len(values) == 1:
        core.multiply_power(values[0], steps, base)
    elif len(values) == 2:
        core.multiply_power(values[0], steps - picks, base)
        core.multiply_power(values[1], picks, base)
    else:
        core.multiply_power(values[0], steps - 2 * picks, base)
        twice, both = values[1] * values[1], values[0] * values[2]
        total, apart = np.full(base.size, counts[-1], np.complex128), np.ones_like(base)
        for share in counts[-2::-1]:
            apart = apart * twice
            total = total * both + share * apart
        base = base * total
    return base


def _beyond(
    masses: list[FloatArray],
    values: FloatArray,
    counts: FloatArray,
    steps: int,
    picks: int,
    ends: tuple[float, float],
) -> tuple[FloatArray, float, float]:
    """Bound the tilted masses outside the ends, LR² to their left and LR to their right."""
    starts = np.arange(0, values.size, -(-values.size // GROUPS))
    starts = np.unique(np.concatenate([starts, np.arange(min(GROUPS, values.size))]))
    groups = [np.add.reduceat(mass, starts) for mass in masses]
    around = values[starts], values[np.append(starts[1:], values.size) - 1]
    below, above = (
        np.exp(
            np.min(
                [
                    log_moments(groups, around, counts, steps, picks, sign * rate)
                    - sign * rate * end
                    for rate in RATES
                ],
                axis=0,
            )
            + 1e-6
        )
        for sign, end in zip((-1.0, 1.0), ends, strict=True)
    )
    return below + above, float(below[2]), float(above[1]) * math.exp(-TILTS[1] * ends[1])
