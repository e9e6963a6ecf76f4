"""The privacy profile of one of T Gaussian steps, and its inverse.

S is the mean of T independent copies of Y = exp(μt - μ²/2), t ~ N(0, 1). The profile of removal is
the call E(S - e^ε)₊, that of addition e^ε times the put E(e^{-ε} - S)₊. Where steps are few, a put
is the integral of e^{zK} E[e^{-zS}] / z² along the parabola z = c(1 + iu)² around the negative
numbers: the first factor falls like e^{-cKu²}, and a few dozen nodes do where a line needs
thousands. docs/theorems_sampling.md, Theorems S4, S15 and S27.
"""

from __future__ import annotations

import functools
import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.bounds import Bounds
from accountant.mechanisms.gaussian import GaussianPair
from accountant.sampling.allocation_line import Contour, contour
from accountant.sampling.allocation_plan import MOST_TERMS
from accountant.search import narrow

ComplexArray: TypeAlias = "NDArray[np.complex128]"
Ends: TypeAlias = "tuple[float, float]"

# A line serves other ε while its brackets are narrower than this; only times depend on it.
NARROW = 1e-9
# Beyond it exponentials of ε leave the doubles.
FARTHEST = 300.0
# Where the δ of the plain Gaussian is below it, no line is made.
NEGLIGIBLE = 1e-250
# A bent path's bracket that is this narrow, relatively, needs no line: ε is known to 1e-6 of it.
SETTLED = 1e-6
# A line with more terms takes long.
LONG = 3000
# The most lines of that kind in a search for an ε: without a limit some take seconds.
MOST_LONG = 3
# A bent path's bracket that is wider, relatively, does not take the place of a line.
ENOUGH = 1e-2
# Doublings of the distance from a root to either end.
MOST_DOUBLINGS = 40
# The most steps of the search for an ε.
MOST_STEPS = 60
SQRT_HALF = math.sqrt(0.5)
# Answers that a profile remembers.
MOST_ANSWERS = 512
# A larger T·σ² leaves so much to the bound of the integrand that a line is as fast.
MOST_SPREAD = 60.0
# The largest 1/σ: exponentials of scores are doubles.
MOST_SHIFT = 7.0
# Scores beyond it, of a mass below 1e-34, are left out of the sums and counted in their error.
REACH = 12.5
# The least strike: puts below it are smaller than any δ that is asked for.
LEAST = 1e-9
# The argument of zY stays this far, in radians, from those whose real part is negative.
TURN = 1.0
# The logarithm of the error, relative to the largest term, for which steps are chosen.
TARGET = -41.0
# Distances of the lines above the path on which the integrand is bounded: all below 1 are valid.
ABOVE = np.array([0.7, 0.85, 0.93])
# The same below it, where every distance is valid.
BELOW = np.array([0.4, 1.0, 1.8, 3.0])
# Ends of the cells of such a line; what is beyond the last has a bound of its own.
CELLS = np.concatenate([np.linspace(0.0, 2.0, 25), np.geomspace(2.15, 12.0, 16)])
# By how much more than it must the path of a bound turns; all of them are valid.
FARTHER = np.array([0.0, 0.15, 0.4, 0.9])
# Rates of the table of E e^{-rY}, a falling function: the next smaller one is taken.
RATES = np.concatenate([[0.0], np.geomspace(1e-9, 1e6, 240)])
# Steps that are tried, the longest first.
STEPS = np.geomspace(0.5, 0.02, 50)


@functools.lru_cache(maxsize=64)
def profile_of(noise_multiplier: float, steps: int) -> AllocationProfile:
    """Return the profile, from a small cache: lines serve several questions."""
    return AllocationProfile(noise_multiplier, steps)


class AllocationProfile:
    """Brackets of both profiles of one of ``steps`` >= 2 Gaussian releases."""

    def __init__(self, noise_multiplier: float, steps: int) -> None:
        self._mu, self._steps = 1.0 / noise_multiplier, steps
        # Not telling which step was picked only hides (Theorem S2).
        self._plain = GaussianPair(noise_multiplier)
        self._hard = {True: math.inf, False: math.inf}  # |κ| from which lines are long
        self._recent: dict[bool, tuple[Contour, float]] = {}
        self._long = -1000  # lines made so far that took long
        self._answers: dict[tuple[float, bool], Bounds | None] = {}

    def delta_bounds(self, epsilon: float, add: bool) -> Bounds:
        """Bracket δ at any real ``epsilon``."""
        plain = min(float(self._plain.profile(epsilon).upper), 1.0)
        least = max(-math.expm1(epsilon), 0.0) if epsilon < 0.0 else 0.0
        least *= 1.0 - 8.0 * U
        if not abs(epsilon) < FARTHEST or plain < least + NEGLIGIBLE:
            return Bounds(min(least, plain), plain)
        lower, upper = self._option(math.expm1(-epsilon if add else epsilon))
        scale = math.exp(epsilon) if add else 1.0
        # The option out of the money, and by parity what the other one is worth more.
        low = (lower * scale + least) * (1.0 - 16.0 * U)
        high = (upper * scale + least * (1.0 + 16.0 * U)) * (1.0 + 16.0 * U)
        high = min(high, plain)
        return Bounds(min(low, high), high)

    def epsilon_bounds(self, delta: float, add: bool) -> Bounds | None:
        """Bracket ε at ``delta`` in (0, 1); None where the profile is not known well enough."""
        if (delta, add) not in self._answers:
            if len(self._answers) > MOST_ANSWERS:
                self._answers.clear()
            self._long = 0
            self._answers[delta, add] = self._epsilon_bounds(delta, add)
            self._long = -1000  # single questions about δ are answered at any length
        return self._answers[delta, add]

    def _epsilon_bounds(self, delta: float, add: bool) -> Bounds | None:
        found = self._root(delta, add)
        if found is None:
            return Bounds(0.0, 0.0) if self.delta_bounds(0.0, add).upper <= delta else None
        epsilon, slope, doubt = found
        step = max(1e-11, 1.1 * doubt) / slope + 4.0 * U * epsilon
        ends = [0.0, math.inf]
        for side, sign in enumerate((-1.0, 1.0)):
            for k in range(MOST_DOUBLINGS):
                at = epsilon + sign * step * 2.0**k
                if at <= 0.0:
                    break
                bounds = self.delta_bounds(at, add)
                if bounds.upper <= delta if side else bounds.lower > delta:
                    ends[side] = at
                    break
        return Bounds(ends[0], ends[1]) if ends[1] < math.inf else None

    def _root(self, delta: float, add: bool) -> tuple[float, float, float] | None:
        """Return about where the profile is ``delta``, and its logarithm's slope and half width."""
        low, high, positive = 0.0, FARTHEST, False
        epsilon = narrow(
            lambda at: self._roughly(at) <= delta, FARTHEST, 1e-12, MOST_STEPS, geometric=True
        )[1]
        last, before = epsilon * (1.0 + 1e-3), math.inf  # the point before, and its value
        if 0.0 < self._roughly(last) < self._roughly(epsilon):
            before = math.log(self._roughly(last) / self._roughly(epsilon))
        for tried in range(MOST_STEPS):
            found = self._log_middle(epsilon, add)
            if found is None:
                if not self.delta_bounds(epsilon, add).upper <= delta:
                    return None
                high = epsilon
                epsilon = 0.5 * (low + high)
                continue
            miss = found[0] - math.log(delta)
            positive = positive or miss > 0.0
            if not positive and not self.delta_bounds(0.0, add).lower > delta:
                return None
            positive = True
            low, high = (epsilon, high) if miss > 0.0 else (low, epsilon)
            if tried == 0:
                before += miss  # the rough slope
            slope = (before - miss) / (epsilon - last) if before < math.inf else 0.0
            if slope > 0.0 and abs(miss) < max(1e-6, 0.1 * found[1]):
                return epsilon + miss / slope, slope, found[1]
            if before == math.inf:
                following = epsilon * (1.0 + 1e-4)
            else:
                following = epsilon + miss / slope if slope > 0.0 else 0.5 * (low + high)
            # Far steps only as far as doubling or halving.
            following = min(max(following, 0.4 * epsilon), 2.5 * epsilon)
            last, before = epsilon, miss
            epsilon = following if low < following < high else 0.5 * (low + high)
        return None

    def _roughly(self, epsilon: float) -> float:
        """Return about the profile of removal: of one large ratio, and of a normal sum."""
        mu, excess = self._mu, math.expm1(epsilon)
        spread = math.sqrt(math.expm1(min(mu * mu, 3.0)) / self._steps)
        # One of the steps has all of the excess.
        loss = math.log1p(self._steps * excess) / mu
        one = math.erfc((loss - 0.5 * mu) * SQRT_HALF)
        one -= (1.0 + self._steps * excess) * math.erfc((loss + 0.5 * mu) * SQRT_HALF)
        score = min(excess / spread, 1e9)
        normal = math.exp(-0.5 * score * score) / math.sqrt(2.0 * math.pi)
        normal -= 0.5 * score * math.erfc(score * SQRT_HALF)
        return max(0.5 * one, 0.0) + max(spread * normal, 0.0)

    def _log_middle(self, epsilon: float, add: bool) -> Ends | None:
        """Return the middle of the logarithms of the ends of δ, and half their distance."""
        bounds = self.delta_bounds(epsilon, add)
        if not 0.0 < bounds.lower <= bounds.upper <= 1.1 * bounds.lower:
            return None
        ends = math.log(bounds.lower), math.log(bounds.upper)
        return 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0])

    def _option(self, kappa: float) -> Ends:
        """Bracket the put at κ < 0, the call at κ >= 0, κ within a few units of the true one."""
        side = kappa < 0.0
        bent = _bent(self._mu, self._steps, kappa)
        if _is_narrow(bent, SETTLED):
            return bent
        if side in self._recent:
            recent, width = self._recent[side]
            found = _ends(recent, kappa, side)
            if _is_narrow(found, width):
                return max(found[0], bent[0]), min(found[1], bent[1])
        # Where a line is long for want of decay, it is for all strikes beyond, too.
        short = _is_narrow(bent, ENOUGH) or (self._long >= 0 and bent[1] < math.inf)
        if self._long > MOST_LONG or (short and abs(kappa) >= self._hard[side]):
            return bent
        made = contour(
            self._mu, self._steps, kappa, side, longest=MOST_TERMS if short else math.inf
        )
        if made is None and short:
            self._hard[side] = min(self._hard[side], abs(kappa))
            return bent
        found = (0.0, math.inf) if made is None else _ends(made, kappa, side)
        if made is not None and found[0] > 0.0:
            self._recent[side] = made, max(NARROW, 4.0 * (found[1] / found[0] - 1.0))
        self._long += made is None or made.terms > LONG
        if kappa > 0.0 and not _is_narrow(found, SETTLED) and bent[1] == math.inf:
            # Few steps with much noise have shorter lines for puts.
            other = contour(self._mu, self._steps, kappa, True)
            bent = bent if other is None else _call(_ends(other, kappa, True), kappa)
        return max(found[0], bent[0]), min(found[1], bent[1])


def _is_narrow(ends: Ends, width: float) -> bool:
    return ends[0] > 0.0 and ends[1] <= ends[0] * (1.0 + width)


def _call(put: Ends, kappa: float) -> Ends:
    """Return the call by parity."""
    return put[0] - kappa - 8.0 * U * kappa, put[1] - kappa + 8.0 * U * kappa


def _bent(mu: float, steps: int, kappa: float) -> Ends:
    """Bracket the option by a bent path, where ratios are few (Theorem S27)."""
    found = put(mu, steps, kappa)
    if found is None:
        return 0.0, math.inf
    return found if kappa < 0.0 else _call(found, kappa)


def _ends(one: Contour, kappa: float, put: bool) -> Ends:
    """Evaluate at both ends of what κ may be: puts grow with it, calls fall."""
    around = np.array([kappa * (1.0 - 8.0 * U), kappa * (1.0 + 8.0 * U)])
    around.sort()
    lower, upper = one.bounds(around)
    low, high = (0, 1) if put else (1, 0)
    return float(lower[low]), float(upper[high])


def put(mu: float, steps: int, kappa: float) -> tuple[float, float] | None:
    """Bracket E(K - S)₊ at K = 1 + ``kappa`` > 0, S of ``steps`` ratios; None where a line does.

    κ may be off by 8 units of itself.
    """
    strike = 1.0 + kappa
    if not (mu <= MOST_SHIFT and steps <= MOST_SPREAD * mu * mu and strike > LEAST):
        return None
    times, table = float(steps), _table(mu)
    # Any vertex is valid: where the integrand is least on the axis, or a little farther out.
    costs = strike * times * RATES[1:] + times * table[1:] - np.log(RATES[1:])
    c = times * float(RATES[1:][int(np.argmin(costs))]) * (2.5 if kappa > 0.0 else 1.0)
    height, base = (
        strike * c,
        strike * c + times * float(log_moments(mu, np.array([c / times]))[0][0].real),
    )
    widest = times * (math.pi / mu) ** 2 / 8.0 - base
    if not height < 600.0:
        return None
    around = [
        _around(mu, times, height, c, base, vertex, widest) for vertex in (1.0 - ABOVE, 1.0 + BELOW)
    ]
    step, error = _step(around)
    count = math.ceil(math.sqrt(1.0 + max(widest - TARGET, 1.0) / height) / step)
    last = step * count
    error += math.exp(height * (1.0 - last * last) + widest) / last**2
    u = step * np.arange(count + 1)
    z = np.asarray(c * (1.0 + 1j * u) ** 2, np.complex128)
    logs, doubts = log_moments(mu, z / times)
    exponents = strike * z + times * logs
    relative = times * doubts + U * (8.0 * (1.0 + abs(kappa) / strike) * np.abs(strike * z) + 32.0)
    relative += U * 8.0 * times * np.abs(logs)
    terms = np.exp(exponents - base) * (1.0 + 1j * u) ** -3
    # A node whose value is not known is at most as large as its bound.
    known = relative < 1.0
    errors = np.abs(terms) * np.where(known, 1.01 * np.expm1(np.minimum(relative, 1.0)), 1.01)
    errors += np.abs(terms) * (count + 8.0) * U
    terms[0] *= 0.5
    total = 2.0 * step * float(terms.real[known].sum())
    error = (error + 2.0 * step * float(errors.sum())) * (1.0 + 1e-9)
    error += abs(total) * 8.0 * U * (4.0 + abs(base))
    scale = math.exp(min(base, 700.0)) / (math.pi * c)
    return max(scale * (total - error), 0.0), scale * (total + error)


def _step(around: list[FloatArray]) -> tuple[float, float]:
    """Return the longest step whose error is small enough, and the error of the rule."""
    errors = sum(
        (
            bound[:, None]
            / np.expm1(np.minimum(2.0 * math.pi * np.divide.outer(away, STEPS), 700.0))
        ).min(axis=0)
        for bound, away in zip(around, (ABOVE, BELOW), strict=True)
    )
    place = min(int(np.count_nonzero(errors > math.exp(TARGET))), STEPS.size - 1)
    return float(STEPS[place]), float(errors[place])


def _around(
    mu: float, times: float, height: float, c: float, base: float, vertex: FloatArray, widest: float
) -> FloatArray:
    """Bound the integral of |f| along lines whose z is c(vertex + iv)², v real, e^base less."""
    a, low, high = vertex[:, None, None], CELLS[:-1, None], CELLS[1:, None]
    # The argument grows along the line; a path that turns by θ has |e^{-zY}| = e^{-Re(ze^{-iθ})Y}.
    turn = np.maximum(2.0 * np.arctan2(high, a) - 0.5 * math.pi, 0.0) + FARTHER
    turn = np.minimum(turn, 0.5 * math.pi)
    rates = [(a * a - v * v) * np.cos(turn) + 2.0 * a * v * np.sin(turn) for v in (low, high)]
    rate = np.maximum(np.minimum(*rates), 0.0) * (c / times) * (1.0 - 1e-9)
    bound = _table(mu)[np.searchsorted(RATES, rate, side="right") - 1]
    least = (0.5 * (turn / mu) ** 2 + bound).min(axis=2)
    edge, far = vertex[:, None] ** 2, CELLS[:-1] ** 2
    logs = height * (edge - far) + times * least - base - 1.5 * np.log(edge + far)
    with np.errstate(over="ignore"):
        inside = np.exp(logs) @ np.diff(CELLS)
        beyond = np.exp(height * (vertex**2 - CELLS[-1] ** 2) + widest)
    return np.asarray(2.0 * (inside + beyond / CELLS[-1] ** 2) * (1.0 + 1e-9))


@functools.lru_cache(maxsize=64)
def _table(mu: float) -> FloatArray:
    """Return upper bounds on log E e^{-rY} at the rates of the table."""
    width = min(1.5 / mu, 3.0)
    step = 2.0 * math.pi * width / (25.0 + 0.5 * width * width)
    t = np.arange(-REACH, REACH, step)
    values = np.exp(-np.multiply.outer(RATES, np.exp(mu * t - 0.5 * mu * mu)))
    found = values @ np.exp(-0.5 * t * t) * (step / math.sqrt(2.0 * math.pi)) * (1.0 + 1e-12)
    strip = 2.0 * math.exp(0.5 * width * width) / math.expm1(2.0 * math.pi * width / step)
    return np.asarray(np.log(np.minimum(found + strip + 1e-33, 1.0)))


def log_moments(mu: float, z: ComplexArray | FloatArray) -> tuple[ComplexArray, FloatArray]:
    """Return log E e^{-zY} at ``z`` of an argument in [0, π), and errors.

    The path t - iv turns Y by -μv, and the trapezoid rule on it errs by what the integrand has on
    two parallel paths. The error is infinite, and the logarithm that of a bound, where it is large.
    """
    turn = np.maximum(np.angle(z) - 0.5 * math.pi + TURN, 0.0)
    v, width = turn / mu, min(TURN / mu * (1.0 - 1e-9), 3.0)
    most = float(v.max()) + width
    step = 2.0 * math.pi * width / (-TARGET + 0.5 * most * most)
    block = math.ceil(math.sqrt(2.0 * REACH / step + 2.0))
    t = step * (np.arange(block * block) - block * block // 2)
    exponent = mu * t - 0.5 * mu * mu
    y = np.exp(exponent)
    density = np.exp(0.5 * (v * v)[:, None] - 0.5 * t * t + 1j * np.multiply.outer(v, t))
    density *= step / math.sqrt(2.0 * math.pi)
    x = np.multiply.outer(-z * np.exp(-1j * turn), y)
    # Small arguments keep the digits of e^x - 1: that of a density is known, 1.
    is_small = bool(np.abs(z).max() < 1.0)
    if is_small:
        half = np.sin(0.5 * x.imag)
        real = np.expm1(x.real) * np.cos(x.imag) - 2.0 * half * half
        terms = density * (real + 1j * (np.exp(x.real) * np.sin(x.imag)))
    else:
        terms = density * np.exp(x)
    sizes = np.abs(terms)
    doubts = sizes @ (3.0 * t * t + 2.0 * block + 48.0) + v * (sizes @ (4.0 * np.abs(t)) + 4.0 * v)
    moved = np.abs(density) * np.exp(x.real) * np.abs(x)
    doubts += moved @ (24.0 + 4.0 * np.abs(exponent) + 4.0 * mu * mu)
    strip = np.exp(0.5 * (v + width) ** 2) / math.expm1(2.0 * math.pi * width / step)
    doubts = doubts * U + 4.0 * strip + np.exp(0.5 * v * v) * 1e-33
    total = terms.reshape(-1, block, block).sum(axis=2).sum(axis=1)
    a, b = (total.real, total.imag) if is_small else (total.real - 1.0, total.imag)
    sizes = np.abs(1.0 + total) if is_small else np.abs(total)
    with np.errstate(divide="ignore", invalid="ignore"):
        small = np.abs(a) < 0.5
        log_size = np.where(
            small, 0.5 * np.log1p(np.where(small, a * (2.0 + a), 0.0) + b * b), np.log(sizes)
        )
        known = sizes > 2.0 * doubts
        logs = np.where(known, log_size, np.log(sizes + doubts)) + 1j * np.arctan2(b, 1.0 + a)
        relative = np.log1p(doubts / (sizes - doubts)) + 8.0 * U * np.abs(logs)
    return logs, np.where(known, relative, math.inf)
