"""Parts of different kinds, by their transforms on one vertical line (Theorem 21).

The loss is smoothed by one Gaussian of width s, which ends the line at y ≈ 9/s whatever the
transforms do. The profile of the smoothed loss is an upper end, and what the smoothing adds is of
second order in s where the losses look smooth at that scale: the lower end subtracts it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant._core import answers as core
from accountant.analyses.brackets import is_within
from accountant.analyses.line_laws import DISTANCES, MANY, Laws, rows_of
from accountant.analyses.solver import Solver
from accountant.bounds import Bounds
from accountant.errors import AccountantError, PrecisionError
from accountant.pairs.base import Parts
from accountant.pairs.line import ATOMS, LATTICE

# Relative widths that the smoothing is chosen for, tried in turn, and how many nodes times parts
# may be evaluated in full for each, some 40 ns each. Only widths and speed depend on them.
WIDTHS = {2e-9: 300_000, 3e-8: 1_000_000, 4e-7: 4_000_000}
# Nodes of a line, of which most are left out at 10 ns each where parts decay.
MOST_NODES = 500_000
# A bracket as narrow as this is not narrowed by the grid.
NARROW = 1e-6
# Beyond y with s²y²/2 equal to this, no node is evaluated.
LAST_EXPONENT = 46.0
# Bits of the step between nodes, so that its multiples are exact.
STEP_BITS = 24
# The native core leaves out nodes whose product is below this (smoothed_line.h).
LINE_CUT = 4e-18


def covers_line(parts: Parts) -> bool:
    """Tell whether all parts have a transform, and no lattice holds the losses of them all.

    Nor does one help where randomised response alone runs very often.
    """
    if any(pair.line is None for pair, _ in parts):
        return False
    if len(parts) == 1:
        ((pair, count),) = parts
        law = pair.line
        return law is not None and law.kind == ATOMS and law.spread > 0.0 and count >= MANY
    lattices = [pair.lattice for pair, _ in parts]
    spacings = [each[1] for each in lattices if each is not None]
    if len(spacings) < len(parts):
        return True
    least = min(spacings)
    if not max(spacings) < 1e15 * least:
        return False  # no double holds their ratio
    ratios = [each / least for each in spacings]
    return any(abs(ratio - round(ratio)) > 1e-9 * ratio for ratio in ratios)


class SmoothedLine(Solver):
    """The product of the transforms, smoothed by one Gaussian and inverted on a line."""

    name = "smoothed line"
    reason = "every part has a transform, and their product is inverted on a smoothed line"

    def __init__(self, parts: Parts, otherwise: Callable[[Parts], Solver]) -> None:
        super().__init__(parts)
        self._fallback = otherwise

    @cached_property
    def _other(self) -> Solver:
        return self._fallback(self.parts)

    def _least(self) -> float:
        return self._other._least()

    @cached_property
    def _laws(self) -> Laws:
        return Laws(self.parts)

    def _epsilon(self, delta: float) -> Bounds:
        known = self._or_nothing(partial(self._line_epsilon, delta), math.inf)
        return self._beside(known, lambda other: other.epsilon_bounds(delta))

    def _upper_epsilon(self, delta: float) -> Bounds:
        known = self._or_nothing(partial(self._line_epsilon, delta), math.inf)
        return self._beside(known, lambda other: Bounds(0.0, other.epsilon_upper(delta)))

    def _upper_delta(self, epsilon: float) -> Bounds:
        known = self._or_nothing(partial(self._line_delta, epsilon), 1.0)
        return self._beside(known, lambda other: Bounds(0.0, other.delta_upper(epsilon)))

    def _delta(self, epsilon: float) -> Bounds:
        known = self._or_nothing(partial(self._line_delta, epsilon), 1.0)
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
        try:
            found = ask(self._other)
        except AccountantError:
            if known.upper == math.inf:
                raise
            return known
        upper = min(float(found.upper), float(known.upper))
        return Bounds(min(max(float(found.lower), float(known.lower)), upper), upper)

    def _line_epsilon(self, delta: float) -> Bounds:
        """Bracket ε(delta) on a line."""
        laws = self._laws
        least = (delta - laws.infinite - laws.unlisted) * (1.0 - laws.mass_error) * (1.0 - 4.0 * U)
        if not least > 0.0:
            raise PrecisionError("δ is not above the mass of infinite losses")
        b, guess = laws.guess(least)
        if not guess > 0.0:
            raise PrecisionError("ε is next to zero")
        line = self._line(b, guess)
        upper = _crossing(line, guess, least, at_most=True)
        most = delta * (1.0 + 2.0 * laws.mass_error) * (1.0 + 4.0 * U)
        # Of what is infinite an unknown part is none: a lower end has none at all.
        lower = _crossing(line, upper, most, at_most=False)
        upper = math.nextafter(upper + laws.shift, math.inf)
        return Bounds(max(math.nextafter(lower - laws.shift, -math.inf), 0.0), max(upper, 0.0))

    def _line_delta(self, epsilon: float) -> Bounds:
        """Bracket δ(epsilon) on a line, ε > 0."""
        laws = self._laws
        if not epsilon > 2.0 * laws.shift:
            raise PrecisionError("ε is next to zero")
        line = self._line(laws.saddle(epsilon), epsilon)
        upper = line.ends(epsilon - laws.shift)[1] * (1.0 + 2.0 * laws.mass_error)
        lower = line.ends(epsilon + laws.shift)[0] * (1.0 - laws.mass_error)
        upper = (upper + laws.infinite + laws.unlisted) * (1.0 + 8.0 * U)
        return Bounds(min(max(lower * (1.0 - 8.0 * U), 0.0), upper), min(upper, 1.0))

    def _line(self, b: float, epsilon: float) -> _Line:
        """Return the finest line at the distance b that is not too long, for ε near this one."""
        laws = self._laws
        b = (1.0 + b) - 1.0  # so that the order 1 + b is exact
        widths = [math.sqrt(width * epsilon / (1.0 + b)) for width in WIDTHS]
        aliases = _Aliases(laws, b, widths[-1])
        step = _few_digits(2.0 * math.pi / aliases.period(epsilon))
        for s, factors in zip(widths, WIDTHS.values(), strict=True):
            if not (0.0 < s < math.inf and b > 0.0 and step > 0.0):
                break
            last = math.ceil(math.sqrt(2.0 * LAST_EXPONENT) / (s * step))
            room = factors // (1 + laws.runs.size + len(laws.atoms))
            # Without a part that decays no node is left out.
            if last > MOST_NODES or (last > room and not np.any(laws.kind <= LATTICE)):
                continue
            try:
                return _Line(laws, aliases, s, step, last, min(last + 1, room))
            except PrecisionError:
                continue
        raise PrecisionError("the line is too long")


class _Line:
    """The nodes of one line, from which the profile is bounded at any ε."""

    def __init__(
        self, laws: Laws, aliases: _Aliases, s: float, step: float, last: int, room: int
    ) -> None:
        b = aliases.b
        self._b, self._s, self._step, self._aliases = b, s, step, aliases
        value, error = laws.log_transform(np.array([b]))
        self._log_scale = float(value[0]) + 0.5 * s * s * b * (1.0 + b)
        self._log_error = float(error[0]) + 8.0 * U * s * s * b * (1.0 + b)
        rows, losses, weights = rows_of(laws, b, s)
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
        return lower - self._aliases.sum(epsilon, 2.0 * math.pi / self._step), upper


class _Aliases:
    """Bounds on what the trapezoid sum adds: the profile at ε ± multiples of the period."""

    def __init__(self, laws: Laws, b: float, s: float) -> None:
        self.b = b
        with np.errstate(over="ignore", invalid="ignore"):
            # The values are off by far less than 1e-6 where they are of any use.
            value = laws.on_distances() + 0.5 * s * s * DISTANCES * (1.0 + DISTANCES) + 1e-6
        good = np.isfinite(value) & (np.abs(value) < 1e6)
        other = np.concatenate([[0.0], DISTANCES[good]])
        value = np.concatenate([[0.0], value[good]])
        further, nearer = other > 1.02 * b, other < 0.98 * b
        if not (further.any() and nearer[1:].any()):
            raise PrecisionError("no bound on the aliases of a line is known")
        self._further = other[further], value[further]
        self._nearer = other[nearer], value[nearer]

    def period(self, epsilon: float) -> float:
        """Return a period at which aliases are below a billionth of the profile at ε."""
        longest = 0.0
        # log of the profile at the saddle point, or below it
        target = self._log_profile(epsilon) - 21.0
        for other, value in (self._further, self._nearer):
            needed = (value - other * epsilon - target) / np.abs(other - self.b)
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
            gap = np.abs(other - self.b) * period
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


def _few_digits(value: float) -> float:
    """Return a number of few digits that is at most ``value``."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.floor(math.ldexp(mantissa, STEP_BITS)), exponent - STEP_BITS)
