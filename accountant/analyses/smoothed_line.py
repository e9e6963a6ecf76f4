"""Parts of different kinds, by their transforms on one vertical line (Theorem 21).

The loss is smoothed by one Gaussian of width s, which ends the line at y ≈ 9/s whatever the
transforms do. The profile of the smoothed loss is an upper end, and what the smoothing adds is of
second order in s where the losses look smooth at that scale: the lower end subtracts it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant._core import answers as core
from accountant.analyses.line_ends import Enumerated, crossing, delta_of, epsilon_of, listed_laws
from accountant.analyses.line_laws import (
    MANY,
    Aliases,
    Doubt,
    Laws,
    SampledLine,
    doubt_of,
    line_laws,
    rows_of,
)
from accountant.analyses.solver import Question, Solver, is_within
from accountant.bounds import Bounds
from accountant.errors import AccountantError, PrecisionError
from accountant.mechanisms.gaussian import GaussianPair
from accountant.pairs.base import ATOMS, LATTICE, SAMPLED, DominatingPair, LineLaw, Parts

# Relative widths that the smoothing is chosen for, tried in turn, and how many nodes times parts
# may be evaluated in full for each, some 40 ns each. Only widths and speed depend on them.
WIDTHS = {2e-9: 50_000, 3e-8: 150_000, 4e-7: 4_000_000}
# Nodes of a line, of which most are left out at 10 to 50 ns each where parts decay.
MOST_NODES = 500_000
# Beyond y with s²y²/2 equal to this, no node is evaluated.
LAST_EXPONENT = 46.0
# Of b·ε, where widths are chosen for an ε next to zero.
LEAST_SCALE = 0.1
# Windows of sampled steps are made for a δ of e to these powers; only widths depend on them.
LEVELS = (-30.0, -100.0, -300.0, -745.0)
# Bits of the step between nodes, so that its multiples are exact.
STEP_BITS = 24
# Lines that are made until one is next to its own answer; this and the next move widths alone.
MOST_LINES = 4
# How far the logarithm of δ at the line's own place may be from the answer's.
FAR = 1.0
# The native core leaves out nodes whose product is below this (smoothed_line.h).
LINE_CUT = 4e-18


def covers_line(parts: Parts) -> bool:
    """Tell whether all parts have a transform, and no lattice holds the losses of them all.

    Nor does one help where randomised response alone runs very often. Few sums of losses are
    listed.
    """
    if listed_laws(parts) is not None:
        return not _on_one_lattice(parts)
    if len(parts) == 1 and parts[0][1] < MANY:
        return False  # before its law is asked for, which may take long to make
    sampled, law = set(), None
    for pair, _ in parts:
        law = pair.line
        if law is None:
            return False
        if law.kind == SAMPLED and pair.gaussian_part is not None:
            sampled.add(pair.gaussian_part.add)
    if len(parts) == 1:
        return law is not None and law.kind == ATOMS and law.spread > 0.0
    return len(sampled) < 2 and not _on_one_lattice(parts)


def _on_one_lattice(parts: Parts) -> bool:
    """Tell whether one lattice holds the losses of all parts."""
    lattices = [pair.lattice for pair, _ in parts]
    spacings = [each[1] for each in lattices if each is not None]
    if len(spacings) < len(parts):
        return False
    least = min(spacings)
    if not max(spacings) < 1e15 * least:
        return True  # no double holds their ratio
    ratios = [each / least for each in spacings]
    return not any(abs(ratio - round(ratio)) > 1e-9 * ratio for ratio in ratios)


class SmoothedLine(Solver):
    """The product of the transforms, smoothed by one Gaussian and inverted on a line."""

    name = "smoothed line"
    reason = "every part has a transform, and their product is inverted on a smoothed line"

    def __init__(self, parts: Parts, otherwise: Callable[[Parts], Solver]) -> None:
        super().__init__(parts)
        self._fallback = otherwise
        if self._sums is not None:
            self.name, self.reason = "sums", "the sums of all parts' losses are few, and listed"
        self._known_laws: dict[tuple[float, bool, bool], Laws] = {}
        self._found: dict[tuple[str, float], Bounds] = {}

    @cached_property
    def _line_laws(self) -> tuple[LineLaw, ...]:
        """The law of every part."""
        return line_laws(self.parts)

    @cached_property
    def _other(self) -> Solver:
        return self._fallback(self.parts)

    def _least(self) -> float:
        return self._other._least()

    def _laws(self, log_delta: float, direct: bool, *, most_noise: bool = False) -> Laws:
        """Return the laws with windows for such a δ; with ``most_noise``, for lower ends."""
        level = next((each for each in LEVELS if each <= log_delta), LEVELS[-1])
        most_noise = most_noise and any(_most_noise(pair) is not pair for pair, _ in self.parts)
        key = level, direct, most_noise
        if key not in self._known_laws:
            parts, laws = self.parts, self._line_laws
            if most_noise:
                parts = tuple([(_most_noise(pair), n) for pair, n in parts])
                laws = line_laws(parts)
            self._known_laws[key] = Laws(parts, laws, level, direct=direct)
        return self._known_laws[key]

    def quick(self, asked: Question) -> float:
        """Return the upper end of the line alone."""
        if asked.kind == "epsilon" and asked.at == 0.0:
            return math.inf
        return float(self._own(asked).upper)

    def _answer(self, asked: Question) -> Bounds:
        """Intersect a bracket that is wide with that of another analysis."""
        known = self._own(asked)
        listed = self._sums is not None and known.upper < math.inf
        if listed or is_within(known, asked.width):
            return known
        try:
            found = self._other.answer(asked)
        except AccountantError:
            if known.upper == math.inf:
                raise
            return known
        upper = min(float(found.upper), float(known.upper))
        lower = max(float(found.lower) if asked.both else 0.0, float(known.lower))
        return Bounds(min(lower, upper), upper)

    def _own(self, asked: Question) -> Bounds:
        """Return the bracket of a line, or of all sums; computed once."""
        key = asked.kind, asked.at
        if key not in self._found:
            self._found[key] = self._tried(asked)
        return self._found[key]

    def _tried(self, asked: Question) -> Bounds:
        about_epsilon = asked.kind == "epsilon"
        if self._sums is not None:
            ask = self._sum_epsilon if about_epsilon else self._sum_delta
            with suppress(PrecisionError):
                return ask(asked.at)
            return Bounds(0.0, asked.most)
        line = self._line_epsilon if about_epsilon else self._line_delta
        sampled = any(law.kind == SAMPLED for law in self._line_laws)
        for direct in (False, True) if sampled else (False,):
            with suppress(PrecisionError):
                return line(asked.at, direct)
        return Bounds(0.0, asked.most)

    def _line_epsilon(self, delta: float, direct: bool = False) -> Bounds:
        """Bracket ε(delta) on a line."""
        laws = self._laws(math.log(delta), direct)
        b, guess = laws.guess(laws.doubt.listed(delta, 0.0))
        for _ in range(MOST_LINES):
            line = _finest(laws, b, guess)
            least = laws.doubt.listed(delta, line.outside)
            upper = max(crossing(line, guess, least, at_most=True), 0.0)
            if abs(upper - guess) * b < FAR:
                break
            b, guess = laws.saddle(upper)[0], upper  # where atoms are heavy the first is far off
        below = self._laws(math.log(delta), direct, most_noise=True)
        under = line if below is laws else _finest(below, b, guess)
        return epsilon_of(laws.doubt, line, under, upper, delta)

    def _line_delta(self, epsilon: float, direct: bool = False) -> Bounds:
        """Bracket δ(epsilon) on a line."""
        laws = self._laws(LEVELS[0], direct)
        b, log_delta = laws.saddle(epsilon)
        laws = self._laws(log_delta, direct)
        line = _finest(laws, b, epsilon)
        below = self._laws(log_delta, direct, most_noise=True)
        under = line if below is laws else _finest(below, b, epsilon)
        return delta_of(laws.doubt, line, under, epsilon)

    @cached_property
    def _sums(self) -> tuple[Enumerated, Doubt] | None:
        """All sums of losses, where they are few."""
        found = listed_laws(self.parts)
        if found is None:
            return None
        sums, doubt = Enumerated(*found), doubt_of(self.parts, found[0])
        return sums, doubt._replace(shift=doubt.shift + sums.rounding)

    def _sum_epsilon(self, delta: float) -> Bounds:
        assert self._sums is not None
        sums, doubt = self._sums
        start = 0.5 * max(self.largest_loss if self.largest_loss < math.inf else 1.0, 1e-9)
        upper = crossing(sums, start, doubt.listed(delta, 0.0), at_most=True)
        return epsilon_of(doubt, sums, sums, upper, delta)

    def _sum_delta(self, epsilon: float) -> Bounds:
        assert self._sums is not None
        return delta_of(self._sums[1], self._sums[0], self._sums[0], epsilon)


def _most_noise(pair: DominatingPair) -> DominatingPair:
    """Return the pair with no less noise than the true one, where its own is not exact."""
    if not isinstance(pair, GaussianPair) or pair.exact:
        return pair
    return replace(pair, noise_multiplier=pair.gaussian_part.most_noise, exact=True)


def _finest(laws: Laws, b: float, epsilon: float) -> _Line:
    """Return the finest line at the distance b that is not too long, for ε near this one."""
    b = (1.0 + b) - 1.0  # so that the order 1 + b is exact
    # δ is off by the width times b·ε, or where that is little by a share of the width.
    scale = max(b * epsilon, LEAST_SCALE) / (b * (1.0 + b))
    widths = [math.sqrt(width * scale) for width in WIDTHS]
    aliases = Aliases(laws, b, epsilon)
    step = _few_digits(2.0 * math.pi / aliases.period)
    if not (widths[0] > 0.0 and widths[-1] < math.inf and b > 0.0 and step > 0.0):
        raise PrecisionError("the line is out of the range of numbers")
    lasts = [math.ceil(math.sqrt(2.0 * LAST_EXPONENT) / (s * step)) for s in widths]
    table = laws.sampled.on_line(b, aliases, step, lasts[-1], laws.gaussian_end)
    decays = bool(np.any(laws.kind <= LATTICE))
    # Where all parts decay few of them show that a node may be left out.
    quick = bool(np.all(laws.kind <= LATTICE)) and not laws.atoms
    for s, last, factors in zip(widths, lasts, WIDTHS.values(), strict=True):
        size = last + 1
        if table.nodes is not None and last >= table.nodes.shape[1]:
            if not table.decays:
                continue
            size = table.nodes.shape[1]
        room = factors // (1 + laws.count)
        # Without a part that decays no node is left out.
        most = MOST_NODES if quick or s == widths[-1] else MOST_NODES // 6
        if size > most or (size > room and not decays):
            continue
        try:
            return _Line(laws, aliases, table, s, step, last, min(size, room))
        except PrecisionError:
            continue
    raise PrecisionError("the line is too long")


class _Line:
    """The nodes of one line, from which the profile is bounded at any ε."""

    def __init__(
        self,
        laws: Laws,
        aliases: Aliases,
        table: SampledLine,
        s: float,
        step: float,
        last: int,
        room: int,
    ) -> None:
        b = aliases.b
        self.b, self._s, self._step, self.outside = b, s, step, table.outside
        orders = np.array([b, aliases.right, aliases.left])
        value, error = laws.log_transform(orders)
        smooth = 0.5 * s * s * orders * (1.0 + orders)
        value, error = value + table.value + smooth, error + table.error + 8.0 * U * smooth
        self._log_scale, self._log_error = float(value[0]), float(error[0])
        self._aliases = aliases.sizes(value, error, 2.0 * math.pi / step)
        rows, losses, weights = rows_of(laws, b, s)
        nodes = np.empty((5, room))
        kept, pruned = core.fill_line_nodes(
            rows, losses, weights, 1.0 + b, step, last, nodes, table.nodes
        )
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
        b, s = self.b, self._s
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
        added = math.fsum(
            math.exp(min(size - order * epsilon, 700.0))
            for order, size, end in self._aliases
            if epsilon < end
        )
        return lower - added * (1.0 + 1e-6), upper


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
