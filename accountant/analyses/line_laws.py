"""The transforms of all parts at real orders, and bounds on a line's aliases by them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant._core import answers as core
from accountant.errors import PrecisionError
from accountant.pairs.base import (
    ATOMS,
    GAUSSIAN,
    LAPLACE,
    LATTICE,
    RESPONSE,
    SAMPLED,
    DominatingPair,
    LineLaw,
    Parts,
    gaussian_part,
    has_pld,
)
from accountant.pairs.product import infinite_mass, total

# Distances b = c - 1 that are looked at, for the line itself and for the bounds on aliases.
DISTANCES = np.geomspace(1e-4, 1e9, 150)
# Nodes of a line on which sampled steps are evaluated, at most; some 0.2 µs each where none is left
# out.
MOST_POINTS = 120_000
# Distances that are looked at beside a line's own, relative to it: where sampled steps are rare
# their transform may grow a thousandfold from 38 to 39.
NEAR = np.outer([-1.0, 1.0], 2.0 ** -np.arange(3.0, 9.0)).ravel()
# Bounds on aliases are at no order that is relatively nearer; only widths depend on it.
CLOSEST = 2.0**-9
# How far beyond a line's order those of the bounds on aliases may be: sums of sampled steps are
# longer there.
FARTHEST = 50.0
# Logarithm of the relative error of a profile that sampled steps may add; only widths depend on it.
LOG_ERROR = math.log(1e-12)
# This many runs of randomised response have losses as good as dense beside their deviation.
MANY = 10**9


class Doubt(NamedTuple):
    """What laws of losses leave open.

    Attributes
    ----------
    infinite, least_infinite : float
        Bounds on the mass of infinite losses.
    unlisted, mass_error, shift : float
        Of all parts together: mass that is in no law, the relative error of masses, and that of
        losses, in nats.
    """

    infinite: float
    least_infinite: float
    unlisted: float
    mass_error: float
    shift: float

    def listed(self, delta: float, outside: float) -> float:
        """Return what is left of δ beside what no law has, and beside errors of masses."""
        left = delta - self.infinite - self.unlisted - outside
        left *= (1.0 - self.mass_error) * (1.0 - 4.0 * U)
        if not left > 0.0:
            raise PrecisionError("δ is not above the mass of infinite losses")
        return left


def line_laws(parts: Parts) -> tuple[LineLaw, ...]:
    """Return the law of every part, which takes a while to make."""
    return tuple([law for pair, _ in parts if (law := pair.line) is not None])


def doubt_of(parts: Parts, laws: Sequence[tuple[LineLaw, float]]) -> Doubt:
    """Return what the laws leave open of the parts."""
    found = Doubt(
        infinite_mass(parts),
        -math.expm1(math.fsum(n * _no_infinite(pair) for pair, n in parts)),
        *(
            math.fsum(each * n for each, n in terms) * (1.0 + 1e-9)
            for terms in (
                [(law.unlisted, n) for law, n in laws],
                [(law.relative_error, n) for law, n in laws],
                [(law.loss_error, n) for law, n in laws],
            )
        ),
    )
    if not found.mass_error < 0.1:
        raise PrecisionError("the masses of the losses have no digits")
    return found


class Laws:
    """The laws of all parts (``every`` one's own), as arrays.

    Outcomes of sampled steps that are rare beside e^``log_delta`` are left out of their windows;
    with ``direct`` there are none, and a step may decay as slowly as it likes.
    """

    def __init__(
        self, parts: Parts, every: Sequence[LineLaw], log_delta: float, *, direct: bool = False
    ) -> None:
        self.sampled = _Sampled(parts, every, log_delta, direct)
        laws = [(_many(law, n), float(n)) for law, (_, n) in zip(every, parts, strict=True)]
        # Those that decay come first: a node is left out as soon as their product is small.
        laws.sort(key=lambda each: (each[0].kind, -each[0].spread * each[1]))
        self.doubt = doubt_of(parts, laws)
        self.largest = total((max(pair.support[1], 0.0), n) for pair, n in parts) + self.doubt.shift
        alike: dict[int, list[tuple[LineLaw, float]]] = {}
        for law, n in laws:
            if law.kind == ATOMS:
                alike.setdefault(law.p.size, []).append((law, n))
        # Counts, logarithms of masses and losses of those of equally many atoms.
        self.atoms = [
            (
                np.array([n for _, n in group]),
                np.log([law.p for law, _ in group]),
                np.array([law.loss for law, _ in group]),
            )
            for group in alike.values()
        ]
        rows = [(law.kind, n, *law[1:4]) for law, n in laws if law.kind not in (ATOMS, SAMPLED)]
        self.count = len(rows) + sum(runs.size for runs, _, _ in self.atoms)
        self.columns = np.array(rows, dtype=np.float64).reshape(-1, 5)
        self.kind, self.runs, self.spread, self.damping, self.distance = self.columns.T
        # Beyond it plain Gaussian noise alone is below the cut, e^{-42}.
        rate = float(self.runs[self.kind == GAUSSIAN] @ self.spread[self.kind == GAUSSIAN])
        self.gaussian_end = math.sqrt(84.0 / rate) if rate > 0.0 else math.inf
        self._on_distances: FloatArray | None = None

    def log_transform(self, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return K(1 + b) = log F(1 + b), and a bound on its error, for an array.

        Sampled steps are not among the parts of which it is.
        """
        total, error = np.zeros(b.size), np.zeros(b.size)
        for start in range(0, self.runs.size, 256):
            part = slice(start, start + 256)
            columns = (self.kind, self.spread, self.damping, self.distance)
            kind, spread, damping, distance = (each[part, None] for each in columns)
            value, doubt = _of_smooth(b, kind, spread, damping, distance)
            total += self.runs[part] @ value
            error += self.runs[part] @ doubt
        for runs, logs, losses in self.atoms:
            exponents = logs[..., None] + b * losses[..., None]
            top = exponents.max(axis=1)
            size = np.maximum(top, -exponents.min(axis=1))
            exponents -= top[:, None]
            value = top + np.log(np.exp(exponents, out=exponents).sum(axis=1))
            total += runs @ value
            error += runs @ (32.0 + losses.shape[1] + 8.0 * size) * U
        return total, (error + (self.count + 2.0) * U * np.abs(total)) * (1.0 + 1e-9)

    def on_distances(self) -> FloatArray:
        """Return about K of all parts on the distances that are looked at; computed once."""
        if self._on_distances is None:
            self._on_distances = self.about(DISTANCES)
        return self._on_distances

    def about(self, b: FloatArray) -> FloatArray:
        """Return about K of all parts at distances."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.log_transform(b)[0] + self.sampled.about(b)

    def saddle(self, epsilon: float) -> tuple[float, float]:
        """Return the b at which the integrand is least, and its logarithm there."""
        value = self.on_distances() - DISTANCES * epsilon - np.log(DISTANCES * (1.0 + DISTANCES))
        i = np.nanargmin(value)
        return float(DISTANCES[i]), float(value[i])

    def guess(self, delta: float) -> tuple[float, float]:
        """Return the distance b of the line, and ε, by the saddle-point approximation."""
        b, value = DISTANCES, self.on_distances()
        with np.errstate(all="ignore"):
            slope = np.gradient(value, b)
            epsilon = slope - 1.0 / b - 1.0 / (1.0 + b)
            bend = np.gradient(slope, b) + b**-2.0 + (1.0 + b) ** -2.0
            log_delta = value - b * epsilon - np.log(b * (1.0 + b) * np.sqrt(2.0 * np.pi * bend))
        good = np.isfinite(log_delta)
        # δ falls as b grows
        where = np.flatnonzero(good & (log_delta >= math.log(delta)))
        if where.size == 0:
            return self.saddle(0.0)[0], 0.0
        if where[-1] + 1 >= b.size or not good[where[-1] + 1]:
            raise PrecisionError("no line is known to be near the saddle point")
        i = int(where[-1])
        share = (log_delta[i] - math.log(delta)) / (log_delta[i] - log_delta[i + 1])
        guess = float(epsilon[i] + share * (epsilon[i + 1] - epsilon[i]))
        if not guess > 0.0:
            return self.saddle(0.0)[0], 0.0
        return float(b[i] * (b[i + 1] / b[i]) ** share), guess


def _no_infinite(pair: DominatingPair) -> float:
    """Return at least the logarithm of the probability of a finite loss."""
    if not pair.infinite_mass > 0.0 or not has_pld(pair):
        return 0.0
    above = pair.support[1] + 1.0
    if not above < math.inf:
        return 0.0
    masses = pair.masses(np.array([above]))
    known = float(masses.p[-1]) * (1.0 - masses.relative_error) - pair.left_out - 1e-299
    return math.log1p(-max(known * (1.0 - 8.0 * U), 0.0)) * (1.0 - 8.0 * U)


class _Sampled:
    """The sampled steps among the parts, all in one direction, as the native core takes them."""

    def __init__(
        self, parts: Parts, every: Sequence[LineLaw], log_delta: float, direct: bool
    ) -> None:
        found = [
            (gaussian_part(pair), n)
            for (pair, n), law in zip(parts, every, strict=True)
            if law.kind == SAMPLED
        ]
        self.log_delta, self.direct = log_delta, direct
        self.direction = core.ADD if any(part.add for part, _ in found) else core.REMOVE
        rows = np.array([(part[0], part[1], n) for part, n in found], dtype=np.float64)
        q, sigma, steps = np.ascontiguousarray(rows.reshape(-1, 3).T)
        self.columns: tuple[FloatArray, FloatArray, FloatArray] = q, sigma, steps

    def __bool__(self) -> bool:
        return self.columns[0].size > 0

    def about(self, b: FloatArray) -> FloatArray:
        """Return about the logarithm of their transform at distances."""
        value = np.zeros(b.size)
        if self:
            core.sampled_line_logs(*self.columns, self.direction, self.log_delta, b, value)
        if self.direct and self.direction == core.REMOVE:
            # That of a record that is in a sample for certain: most of it beyond windows.
            q, sigma, steps = (each[:, None] for each in self.columns)
            drawn = (1.0 + b) * (np.log(q) + 0.5 * b * sigma**-2.0)
            value += (steps * np.logaddexp(0.0, drawn)).sum(axis=0)
        return value

    def on_line(
        self, b: float, aliases: Aliases, step: float, last: float, end: float
    ) -> SampledLine:
        """Return their product at the nodes of a line that count: none after ``last``, ``end``."""
        if not self:
            return SampledLine(None, True, np.zeros(3), np.zeros(3), 0.0)
        enough = math.ceil(min(last, end / step)) + 1
        nodes = np.empty((4, min(int(enough), MOST_POINTS)))
        wanted = aliases.log_share + LOG_ERROR
        orders = aliases.right, aliases.left or 0.5 * b
        setting = self.direction, self.direct, self.log_delta
        kept, decays, logs = core.sampled_line(
            *self.columns, *setting, b, orders, step, wanted, nodes
        )
        value, error = np.array(logs[:6:2]), np.array(logs[1:6:2])
        if not aliases.left:
            value[2] = error[2] = 0.0
        decays = decays or (kept - 1) * step >= end
        return SampledLine(np.ascontiguousarray(nodes[:, :kept]), decays, value, error, logs[6])


class SampledLine(NamedTuple):
    """The product of sampled steps on one line.

    Attributes
    ----------
    nodes : float64 array of shape (4, m) or None
        Real and imaginary part, error and modulus at the first m nodes; None where none is sampled.
    decays : bool
        Whether it is as good as nothing at further nodes.
    value, error : float64 arrays of shape (3,)
        Its logarithm at the distances of the line and of both aliases.
    outside : float
        An upper bound on the mass that windows leave out.
    """

    nodes: FloatArray | None
    decays: bool
    value: FloatArray
    error: FloatArray
    outside: float


class Aliases:
    """What the trapezoid sum adds: the profile at ε ± multiples of the period.

    Attributes
    ----------
    b : float
        The distance of the line.
    period : float
        A period at which they are below a billionth of the profile.
    right, left : float
        The distances at which bounds on them are small; left may be 0.
    log_share : float
        About the logarithm of the integral, where the integrand is 1 at the real order.
    """

    def __init__(self, laws: Laws, b: float, epsilon: float) -> None:
        self.b = b
        near = b * (1.0 + NEAR)
        other = np.concatenate([DISTANCES, near])
        value = np.concatenate([laws.on_distances(), laws.about(near)])
        order = np.argsort(other)
        order = order[np.isfinite(value[order]) & (np.abs(value[order]) < 1e6)]
        other = np.concatenate([[0.0], (1.0 + other[order]) - 1.0])
        value = np.concatenate([[0.0], value[order]]) - other * epsilon
        further = (other > (1.0 + CLOSEST) * b) & (other < FARTHEST * (1.0 + b))
        nearer = other < (1.0 - CLOSEST) * b
        if not (further.any() and nearer[1:].any()):
            raise PrecisionError("no bound on the aliases of a line is known")
        away = np.concatenate([np.flatnonzero(nearer)[1:], np.flatnonzero(further)])
        front = np.log(other[away] * (1.0 + other[away]))
        # The curvature at the saddle point, which is left out, takes a factor of some 5 to 100.
        target = float((value[away] - front).min()) - 5.0
        self.log_share = min(target - float(np.interp(b, other, value)), 0.0)
        gap = np.maximum(np.abs(other - b), 1e-300)
        needed = (value - target + 21.0) / gap
        # None is to the right of the largest loss.
        right = min(float(needed[further].min()), 1.001 * max(laws.largest - epsilon, 0.0))
        self.largest = laws.largest
        self.period = max(right, float(needed[nearer].min()), 1e-300)
        # Beside sampled steps the nearest order that will do: they are evaluated for the line's.
        left = value - gap * self.period
        least = target - 20.0 if laws.sampled else -math.inf
        self.right, self.left = (
            float(other[min(where, key=lambda i: (max(left[i], least), gap[i]))])
            for where in (np.flatnonzero(further), np.flatnonzero(nearer))
        )

    def sizes(
        self, value: FloatArray, error: FloatArray, period: float
    ) -> tuple[tuple[float, float, float], ...]:
        """Return (order, a, end): the sum of e^{a - order·ε} over ε < end bounds all aliases at ε.

        ``value`` and ``error`` are K on the line, at ``right`` and at ``left``.
        """
        found = []
        for i, other, end in ((1, self.right, self.largest - period), (2, self.left, math.inf)):
            gap = abs(other - self.b) * period
            # A geometric series of ratio e^{-gap} adds up to less than e^{1/2} of its first term.
            size = float(value[i] + error[i]) - gap + 0.5 if gap > 1.0 else math.inf
            found.append((other, size, end * (1.0 + 4.0 * U)))
        return tuple(found)


def _of_smooth(
    b: FloatArray, kind: FloatArray, spread: FloatArray, damping: FloatArray, distance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return log F(1 + b) of every law without atoms, and a bound on its error."""
    value = 0.5 * spread * b * (1.0 + b)
    error = 16.0 * U * np.abs(value)
    lattice, laplace = kind == LATTICE, kind == LAPLACE
    # Theta differs from one by less than 1e-25 where 2π²σ² is above 60.
    near = np.flatnonzero(lattice[:, 0] & (damping[:, 0] < 60.0))
    if near.size:
        g, d = damping[near], distance[near]
        at_c, at_zero = np.ones((near.size, b.size)), np.ones(g.shape)
        doubt = np.full(at_c.shape, 32.0)
        for m in range(1, 7):
            small, angle = np.exp(-g * m * m), 2.0 * np.pi * m * d * (1.0 + b)
            at_c += 2.0 * small * np.cos(angle)
            at_zero += 2.0 * small
            doubt += small * (32.0 + 16.0 * (angle + g * m * m))
        value[near] += np.log(at_c) - np.log(at_zero)
        # Theta is at least 0.6, so that an error of it is at most doubled.
        error[near] += 4.0 * doubt * U
    error = error + np.where(lattice, 1e-19, 0.0)
    response = np.flatnonzero(kind == RESPONSE)
    if response.size:
        # F = 1 + 2 sinh(cv/2) sinh(bv/2) / cosh(v/2), of which every digit counts
        half = 0.5 * spread[response]
        with np.errstate(over="ignore", invalid="ignore"):
            excess = 2.0 * np.sinh((1.0 + b) * half) * np.sinh(b * half)
            exact = np.log1p(excess / np.cosh(half))
        value[response], error[response] = exact, 32.0 * U * exact
    laplace = np.flatnonzero(kind == LAPLACE)
    if laplace.size:
        v, twice = spread[laplace], 1.0 + 2.0 * b
        far = np.exp(-twice * v)
        at_c = 1.0 + 1.0 / twice + far * (1.0 - 1.0 / twice)
        value[laplace] = b * v + np.log(0.5 * at_c)
        error[laplace] = (64.0 + 8.0 * b * v + 8.0 * twice * v * far) * U
    return value, error


def _many(law: LineLaw, count: int) -> LineLaw:
    """Return the law, by its logarithms where it runs very often."""
    if law.kind == ATOMS and law.spread > 0.0 and count >= MANY:
        return LineLaw(RESPONSE, law.spread)
    return law


def rows_of(laws: Laws, b: float, s: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the parts, with the smoothing first, as the native core takes them."""
    rows = np.zeros((1 + laws.count, 9))
    rows[:, 5] = 1.0
    rows[0, :3] = GAUSSIAN, 1.0, s * s
    last = 1 + laws.runs.size
    rows[1:last, :5] = laws.columns
    lattice = np.flatnonzero(rows[:, 0] == LATTICE)
    rows[lattice, 5] = rows[lattice, 2] / (2.0 * math.pi * rows[lattice, 4])
    losses, weights = [np.zeros(1)], [np.zeros(1)]
    first = 1
    for runs, logs, loss in laws.atoms:
        exponents = logs + b * loss
        tilted = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        losses.append(loss.ravel())
        weights.append((tilted / tilted.sum(axis=1, keepdims=True)).ravel())
        row, size = rows[last : last + runs.size], loss.shape[1]
        row[:, 0], row[:, 1], row[:, 7] = ATOMS, runs, size
        row[:, 6] = first + size * np.arange(runs.size)
        # A weight carries the round-off of its exponent and of the sum.
        row[:, 8] = (64.0 + size + 8.0 * np.abs(exponents).max(axis=1)) * U
        first, last = first + loss.size, last + runs.size
    return rows, np.concatenate(losses), np.concatenate(weights)
