"""Parts of different kinds, by their transforms on one vertical line (Theorem 17).

The loss is smoothed by one Gaussian of width s, which ends the line at y ≈ 9/s whatever the
transforms do. The profile of the smoothed loss is an upper end, and what the smoothing adds is of
second order in s where the losses look smooth at that scale: the lower end subtracts it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from accountant._core import answers as core
from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.analyses.brackets import is_within
from accountant.analyses.solvers import Solver
from accountant.bounds import Bounds
from accountant.errors import AccountantError, PrecisionError
from accountant.pairs.base import Parts
from accountant.pairs.line import ATOMS, GAUSSIAN, LAPLACE, LATTICE, LineLaw
from accountant.pairs.sums import infinite_mass

# The relative width that the smoothing is chosen for. Only widths and speed depend on it.
SMOOTHING = 2e-9
# Where that takes too many nodes, the smoothing grows by this factor, up to MOST_SMOOTHING.
COARSER = 20.0
MOST_SMOOTHING = 1e-6
# Nodes of a line, and nodes times parts that are evaluated in full: some 20 ms each.
MOST_NODES = 500_000
MOST_FACTORS = 1_000_000
# A bracket as narrow as this is not narrowed by the grid.
NARROW = 1e-6
# Distances b = c - 1 that are looked at, for the line itself and for the bounds on aliases.
DISTANCES = np.geomspace(1e-4, 1e9, 400)
# Beyond y with s²y²/2 equal to this, no node is evaluated.
LAST_EXPONENT = 46.0
# Bits of the step between nodes, so that its multiples are exact.
STEP_BITS = 24
# The native core leaves out nodes whose product is below this (smoothed_line.h).
LINE_CUT = 4e-18


def covers_line(parts: Parts) -> bool:
    """Tell whether all parts have a transform, and no lattice holds the losses of them all."""
    if len(parts) < 2 or any(pair.line is None for pair, _ in parts):
        return False
    lattices = [pair.lattice for pair, _ in parts]
    spacings = [each[1] for each in lattices if each is not None]
    if len(spacings) < len(parts):
        return True
    least = min(spacings)
    ratios = [each / least for each in spacings]
    return any(abs(ratio - round(ratio)) > 1e-9 * ratio for ratio in ratios)


class SmoothedLine(Solver):
    """The product of the transforms, smoothed by one Gaussian and inverted on a line."""

    name = "smoothed line"
    reason = "every part has a transform, and their product is inverted on a smoothed line"

    def __init__(self, parts: Parts, otherwise: Callable[[Parts], Solver]) -> None:
        super().__init__(parts)
        self._laws = _Laws(parts)
        self._otherwise = otherwise
        self._other: Solver | None = None

    def _epsilon(self, delta: float) -> Bounds:
        known = self._or_nothing(partial(self._laws.epsilon_bounds, delta), math.inf)
        return self._beside(known, lambda other: other.epsilon_bounds(delta))

    def _delta(self, epsilon: float) -> Bounds:
        known = self._or_nothing(partial(self._laws.delta_bounds, epsilon), 1.0)
        return self._beside(known, lambda other: other.delta_bounds(epsilon))

    def _or_nothing(self, ask: Callable[[], Bounds], most: float) -> Bounds:
        try:
            return ask()
        except PrecisionError:
            return Bounds(0.0, most)

    def _beside(self, known: Bounds, ask: Callable[[Solver], Bounds]) -> Bounds:
        """Intersect a wide bracket with that of another analysis."""
        if is_within(known, NARROW):
            return known
        self._other = self._other or self._otherwise(self.parts)
        try:
            found = ask(self._other)
        except AccountantError:
            if known.upper == math.inf:
                raise
            return known
        upper = min(float(found.upper), float(known.upper))
        return Bounds(min(max(float(found.lower), float(known.lower)), upper), upper)


class _Laws:
    """The laws of all parts, as arrays."""

    def __init__(self, parts: Parts) -> None:
        laws = [(law, float(n)) for pair, n in parts if (law := pair.line) is not None]
        # Those that decay come first: a node is left out as soon as their product is small.
        laws.sort(key=lambda each: (each[0].kind, -each[0].spread * each[1]))
        self.infinite = infinite_mass(parts)
        self.shift = math.fsum(law.loss_error * n for law, n in laws) * (1.0 + 1e-9)
        self.mass_error = math.fsum(law.relative_error * n for law, n in laws) * (1.0 + 1e-9)
        self.unlisted = math.fsum(law.unlisted * n for law, n in laws) * (1.0 + 1e-9)
        self.smooth = [(law, n) for law, n in laws if law.kind != ATOMS]
        self.atoms = [(law, n) for law, n in laws if law.kind == ATOMS]
        columns = np.array([(law.kind, n, *law[1:4]) for law, n in self.smooth]).reshape(-1, 5)
        self.kind, self.runs, self.spread, self.damping, self.distance = columns.T
        self._on_distances: FloatArray | None = None

    def log_transform(self, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return K(1 + b) = log F(1 + b) of all parts, and a bound on its error, for an array."""
        total, error = np.zeros(b.size), np.zeros(b.size)
        for start in range(0, self.runs.size, 256):
            part = slice(start, start + 256)
            value, doubt = _of_smooth(
                b,
                *(each[part, None] for each in (self.kind, self.spread, self.damping)),
                self.distance[part, None],
            )
            total += self.runs[part] @ value
            error += self.runs[part] @ doubt
        for law, n in self.atoms:
            assert law.loss is not None and law.p is not None
            exponents = np.log(law.p)[:, None] + b * law.loss[:, None]
            top = exponents.max(axis=0)
            size = np.abs(exponents).max(axis=0)
            value = top + np.log(np.exp(exponents - top).sum(axis=0))
            total += n * value
            error += n * (32.0 + law.p.size + 8.0 * size) * U
        count = self.runs.size + len(self.atoms)
        return total, (error + (count + 2.0) * U * np.abs(total)) * (1.0 + 1e-9)

    def on_distances(self) -> FloatArray:
        """Return K on the distances that are looked at; computed once."""
        if self._on_distances is None:
            with np.errstate(over="ignore", invalid="ignore"):
                self._on_distances = self.log_transform(DISTANCES)[0]
        return self._on_distances

    def line(self, b: float, epsilon: float) -> _Line:
        """Return the finest line at the distance b that is not too long, for ε near this one."""
        width = SMOOTHING
        while True:
            try:
                return _Line(self, b, epsilon, math.sqrt(width * epsilon / (1.0 + b)))
            except PrecisionError:
                width *= COARSER
                if width > MOST_SMOOTHING:
                    raise

    def saddle(self, epsilon: float) -> float:
        """Return the b at which the integrand is least, among those that are looked at."""
        b = DISTANCES
        return float(b[np.nanargmin(self.on_distances() - b * epsilon - np.log(b * (1.0 + b)))])

    def epsilon_bounds(self, delta: float) -> Bounds:
        """Bracket ε(delta)."""
        least = (delta - self.infinite - self.unlisted) * (1.0 - self.mass_error) * (1.0 - 4.0 * U)
        if not least > 0.0:
            raise PrecisionError("δ is not above the mass of infinite losses")
        b, guess = self._guess(least)
        if not guess > 0.0:
            raise PrecisionError("ε is next to zero")
        line = self.line(b, guess)
        upper = _crossing(line, guess, least, at_most=True)
        most = delta * (1.0 + self.mass_error) * (1.0 + 4.0 * U)
        # Of what is infinite an unknown part is none: a lower end has none at all.
        lower = _crossing(line, upper, most, at_most=False)
        upper = math.nextafter(upper + self.shift, math.inf)
        return Bounds(max(math.nextafter(lower - self.shift, -math.inf), 0.0), max(upper, 0.0))

    def delta_bounds(self, epsilon: float) -> Bounds:
        """Bracket δ(epsilon), ε > 0."""
        if not epsilon > 2.0 * self.shift:
            raise PrecisionError("ε is next to zero")
        line = self.line(self.saddle(epsilon), epsilon)
        upper = line.ends(epsilon - self.shift)[1] * (1.0 + 2.0 * self.mass_error)
        lower = line.ends(epsilon + self.shift)[0] * (1.0 - self.mass_error)
        upper = (upper + self.infinite + self.unlisted) * (1.0 + 8.0 * U)
        return Bounds(min(max(lower * (1.0 - 8.0 * U), 0.0), upper), min(upper, 1.0))

    def _guess(self, delta: float) -> tuple[float, float]:
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
        if where.size == 0 or where[-1] + 1 >= b.size or not good[where[-1] + 1]:
            raise PrecisionError("no line is known to be near the saddle point")
        i = int(where[-1])
        share = (log_delta[i] - math.log(delta)) / (log_delta[i] - log_delta[i + 1])
        guess = epsilon[i] + share * (epsilon[i + 1] - epsilon[i])
        return float(b[i] * (b[i + 1] / b[i]) ** share), float(guess)


class _Line:
    """The nodes of one line, from which the profile is bounded at any ε."""

    def __init__(self, laws: _Laws, b: float, epsilon: float, s: float) -> None:
        if not (0.0 < s < math.inf):
            raise PrecisionError("no smoothing is small beside ε")
        self._b, self._s = b, s
        self._aliases = _Aliases(laws, b, s)
        step = _few_digits(2.0 * math.pi / self._aliases.period(epsilon))
        self._period = 2.0 * math.pi / step
        last = math.ceil(math.sqrt(2.0 * LAST_EXPONENT) / (s * step))
        if not last <= MOST_NODES:
            raise PrecisionError("the line is too long")
        value, error = laws.log_transform(np.array([b]))
        self._log_scale = float(value[0]) + 0.5 * s * s * b * (1.0 + b)
        self._log_error = float(error[0]) + 8.0 * U * s * s * b * (1.0 + b)
        rows, losses, weights = _rows(laws, b, s)
        room = max(min(last + 1, MOST_FACTORS // rows.shape[0]), 64)
        nodes = np.empty((5, room))
        kept, pruned = core.fill_line_nodes(rows, losses, weights, 1.0 + b, step, last, nodes)
        y, re, im, err, most = nodes[:, :kept]
        # z(z - 1) = c·b - y² + iy(2c - 1), and its modulus is at least b(1 + b) and y².
        pole_re, pole_im = b * (1.0 + b) - y * y, y * (1.0 + 2.0 * b)
        norm = pole_re * pole_re + pole_im * pole_im
        self._y = y
        self._smooth = np.array([re, im])  # of D
        self._smooth_err = err, most
        self._call = np.array([re * pole_re + im * pole_im, im * pole_re - re * pole_im]) / norm
        inverse = 1.0 / np.sqrt(norm)
        self._call_err = err * inverse, most * inverse
        if kept and y[0] == 0.0:
            for each in (self._smooth, self._call):
                each[:, 0] *= 0.5
        self._step = step
        # What is left out: nodes below the cut, and beyond the last.
        end = step * last
        beyond = math.exp(-0.5 * (s * end) ** 2) / (s * s * end * step) * (1.0 + 1e-9)
        cut = LINE_CUT * pruned
        self._call_rest = cut / (b * (1.0 + b)) * (1.0 + 1e-9) + beyond / (end * end)
        self._smooth_rest = cut + beyond

    def ends(self, epsilon: float) -> tuple[float, float]:
        """Return a lower and an upper bound on the profile at ε."""
        b, s = self._b, self._s
        exponent = self._log_scale - b * epsilon
        error = self._log_error + (16.0 + 8.0 * (abs(self._log_scale) + abs(b * epsilon))) * U
        if not (exponent < 700.0 and error < 0.1):
            raise PrecisionError("the scale of the line is lost to round-off")
        front = math.exp(exponent) * self._step / math.pi
        angle = epsilon * self._y
        cosine, sine = np.cos(angle), np.sin(angle)
        call, doubt = _sum(self._call, *self._call_err, cosine, sine, angle)
        smooth, unsure = _sum(self._smooth, *self._smooth_err, cosine, sine, angle)
        upper = front * (call + doubt + self._call_rest) * (1.0 + 1.2 * error)
        most = max(smooth + unsure + self._smooth_rest, 0.0)
        least = call - doubt - self._call_rest - s * s * math.exp(s * s / 8.0) * most
        lower = front * least * (1.0 - 1.2 * error) if least > 0.0 else 0.0
        return lower - self._aliases.sum(epsilon, self._period), upper


class _Aliases:
    """Bounds on what the trapezoid sum adds: the profile at ε ± multiples of the period."""

    def __init__(self, laws: _Laws, b: float, s: float) -> None:
        self._b = b
        with np.errstate(over="ignore", invalid="ignore"):
            # The values are off by far less than 1e-6 where they are of any use.
            value = laws.on_distances() + 0.5 * s * s * DISTANCES * (1.0 + DISTANCES) + 1e-6
        good = np.isfinite(value) & (np.abs(value) < 1e6)
        other = np.concatenate([[0.0], DISTANCES[good]])
        value = np.concatenate([[0.0], value[good]])
        further, nearer = other > 1.02 * b, other < 0.98 * b
        self._further = other[further], value[further]
        self._nearer = other[nearer], value[nearer]

    def period(self, epsilon: float) -> float:
        """Return a period at which aliases are below a billionth of the profile at ε."""
        longest = 0.0
        # log of the profile at the saddle point, or below it
        target = self._log_profile(epsilon) - 21.0
        for other, value in (self._further, self._nearer):
            if other.size == 0:
                raise PrecisionError("no bound on the aliases of a line is known")
            needed = (value - other * epsilon - target) / np.abs(other - self._b)
            longest = max(longest, float(needed.min()))
        return max(longest, 1e-300)

    def _log_profile(self, epsilon: float) -> float:
        """Return about the logarithm of the profile at ε, or less: its saddle-point value."""
        other = np.concatenate([self._nearer[0][1:], self._further[0]])
        value = np.concatenate([self._nearer[1][1:], self._further[1]])
        # The curvature at the saddle point, which is left out, takes a factor of some 5 to 100.
        return float((value - other * epsilon - np.log(other * (1.0 + other))).min()) - 5.0

    def sum(self, epsilon: float, period: float) -> float:
        """Return an upper bound on all aliases together, at ε."""
        total = 0.0
        for other, value in (self._further, self._nearer):
            gap = np.abs(other - self._b) * period
            good = gap > 1.0
            if not good.any():
                return math.inf
            # a geometric series of ratio e^{-gap}
            terms = value - other * epsilon - gap
            total += math.exp(min(float(terms[good].min()) + 0.5, 700.0))
        return total * (1.0 + 1e-6)


def _crossing(line: _Line, start: float, delta: float, *, at_most: bool) -> float:
    """Return an ε whose upper end is at most δ, or whose lower end is above it, next to the best.

    Newton's method on log δ finds it, whose slope is near -b; only the last evaluation counts.
    """
    place, epsilon, step = (1 if at_most else 0), start, 0.0
    slope, before = -line._b, None
    for attempt in range(40):
        value = line.ends(epsilon)[place]
        if not value > 0.0:
            if at_most:
                return epsilon
            epsilon -= max(abs(step), 1e-9 * start) * 2.0
            if epsilon <= 0.0:
                return 0.0
            continue
        gap = math.log(value / delta)
        holds = value <= delta if at_most else value > delta
        if holds and abs(gap) <= 1e-12 * max(1.0, line._b * start) * 2.0**attempt:
            return epsilon
        if before is not None and before[0] != epsilon:
            secant = (gap - before[1]) / (epsilon - before[0])
            if 0.2 * slope > secant > 5.0 * slope:
                slope = secant
        before = epsilon, gap
        nudge = 2e-13 * max(1.0, line._b * start) * 2.0**attempt
        step = (gap + (nudge if at_most else -nudge)) / -slope
        epsilon += step
        if epsilon <= 0.0:
            if at_most:
                raise PrecisionError("ε is next to zero")
            return 0.0
    raise PrecisionError("the crossing of a line was not found")


def _sum(
    terms: FloatArray,
    err: FloatArray,
    most: FloatArray,
    cosine: FloatArray,
    sine: FloatArray,
    angle: FloatArray,
) -> tuple[float, float]:
    """Return Re Σ terms·e^{-i·angle} and a bound on its error."""
    value = float((terms[0] * cosine + terms[1] * sine).sum())
    # Every node has its own error, that of the angle, and that of the sum.
    doubt = err + most * ((64.0 + terms.shape[1] + 4.0 * np.abs(angle)) * U)
    return value, float(doubt.sum()) * (1.0 + 1e-9)


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
    if laplace.any():
        twice = 1.0 + 2.0 * b
        far = np.exp(-twice * spread)
        at_c = 1.0 + 1.0 / twice + far * (1.0 - 1.0 / twice)
        exact = b * spread + np.log(0.5 * at_c)
        value = np.where(laplace, exact, value)
        error = np.where(laplace, (64.0 + 8.0 * b * spread + 8.0 * twice * spread * far) * U, error)
    return value, error


def _rows(laws: _Laws, b: float, s: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the parts, with the smoothing first, as the native core takes them."""
    rows = [(GAUSSIAN, 1.0, s * s, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)]
    for law, n in laws.smooth:
        turns = law.spread / (2.0 * math.pi * law.distance) if law.kind == LATTICE else 0.0
        rows.append((law.kind, n, law.spread, law.damping, law.distance, turns, 0.0, 0.0, 0.0))
    losses, weights = [np.zeros(1)], [np.zeros(1)]
    first = 1
    for law, n in laws.atoms:
        assert law.loss is not None and law.p is not None
        exponents = np.log(law.p) + b * law.loss
        tilted = np.exp(exponents - exponents.max())
        # A weight carries the round-off of its exponent and of the sum.
        doubt = (64.0 + law.p.size + 8.0 * float(np.abs(exponents).max())) * U
        losses.append(law.loss)
        weights.append(tilted / tilted.sum())
        rows.append((ATOMS, n, 0.0, 0.0, 0.0, 1.0, first, law.p.size, doubt))
        first += law.p.size
    return np.array(rows), np.concatenate(losses), np.concatenate(weights)


def _few_digits(value: float) -> float:
    """Return a number of few digits that is at most ``value``."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.floor(math.ldexp(mantissa, STEP_BITS)), exponent - STEP_BITS)
