"""Sparse histograms beside anything else: the worst number of new keys, by branch and bound.

An alternative of a plan says how many of a user's keys are new in each histogram. Given it, the
loss is that of all other keys and parts, moved by the logarithm of the probability that the new
ones stay hidden, and infinite where one is shown (Theorem N1). A box of alternatives is dominated
by the most hidden and the most old keys in it (Theorem N12), so the box with the largest bound is
split until it is one alternative.
"""

from __future__ import annotations

import contextlib
import heapq
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from accountant._basics.rounding import U, times_up, up
from accountant.analyses.by_groups import UpperPairs
from accountant.analyses.solver import Question, Solver, bracket_crossing
from accountant.analyses.solvers import MergedGaussian, Nothing
from accountant.bounds import Bounds
from accountant.errors import AccountantError
from accountant.mechanisms.hidden_keys import Logs, sums_of
from accountant.mechanisms.laplace import LaplacePair
from accountant.mechanisms.sparse_histogram import HistogramPair
from accountant.pairs.atoms import ResponsePair
from accountant.pairs.base import DominatingPair, Parts
from accountant.pairs.product import infinite_mass
from accountant.search import narrow

# Boxes that are split in plans of Gaussian noise alone, each in closed form. What is left has the
# bound of its box, so the width depends on it, and no proof.
MOST_BOXES = 4096
# The same in all other plans, where a box may take a grid.
MOST_ON_GRIDS = 160
# Solvers kept from one question to the next, each of which may hold a grid.
MOST_KEPT = 64
# Halvings of an interval of ε, to the last digits, where the other keys have a smaller δ even at 0.
HALVINGS = 60

Ends: TypeAlias = tuple[tuple[int, int], ...]
Bound: TypeAlias = "Callable[[Moved, int], float]"
Exceeds: TypeAlias = "Callable[[Moved, float], bool]"


class Moved(NamedTuple):
    """The loss of some parts, moved by hidden keys.

    Attributes
    ----------
    first, second : Logs
        Minus the logarithm of the probability that all keys stay hidden that the first data set
        alone has, and the second alone: at least (side 0), and at most (side 1).
    failing : float
        At most the same of keys whose loss is taken to be 0 or infinite, as that of a (0, δ)
        guarantee.
    rest : Solver
        Of all other keys and parts.
    """

    first: Logs
    second: Logs
    failing: float
    rest: Solver

    def delta(self, epsilon: float, side: int) -> float:
        """Bound δ(ε) from below (side 0) or above (side 1)."""
        first, second = self.first[side], self.second[side]
        gone = first + self.failing
        if gone == math.inf or second == math.inf:
            return 1.0
        at = epsilon + first - second + (4.0 - 8.0 * side) * U * (epsilon + first + second)
        found = -math.expm1(-gone) + math.exp(-gone) * self._profile(at, side)
        if side == 0:
            return max(found * (1.0 - 32.0 * U), 0.0)
        return min(up(found, 32.0), 1.0) if found else 0.0

    def epsilon(self, delta: float, side: int) -> float:
        """Bound ε(δ), 0 < δ < 1, from below (side 0) or above (side 1)."""
        first, second = self.first[side], self.second[side]
        gone = first + self.failing
        if gone == math.inf or second == math.inf:
            return math.inf
        # δ(ε) <= δ where the rest's profile, further on, is at most (δ - lost) / (1 - lost).
        # The margin is less than that of a δ, so that every ε has at most itself at its own δ.
        lost, away = -math.expm1(-gone), 2.0 * side - 1.0
        left = (delta - lost - away * 8.0 * U * (delta + lost)) / math.exp(-gone)
        if not left > 0.0:
            return math.inf
        moved = second - first
        at = _end(self.rest.epsilon_bounds(left), side) if left < 1.0 else 0.0
        if at > 0.0:
            return max(at + moved + away * 8.0 * U * (at + first + second), 0.0)
        if moved <= 0.0 or self.delta(0.0, side) <= delta:
            return 0.0
        good, bad = narrow(lambda x: self.delta(x, side) <= delta, moved, 0.0, HALVINGS)
        return good if side else bad

    def _profile(self, epsilon: float, side: int) -> float:
        """Bound the profile of the rest at any real ε."""
        if epsilon >= 0.0:
            return _end(self.rest.delta_bounds(epsilon), side)
        rest, scale = -math.expm1(epsilon), math.exp(epsilon)
        if all(_is_own_reverse(pair) for pair, _ in self.rest.parts):
            return rest + scale * _end(self.rest.delta_bounds(-epsilon), side)
        # (P - e^ε Q)(E) is (P - Q)(E) and at most 1 - e^ε.
        at_zero = _end(self.rest.delta_bounds(0.0), side)
        return at_zero + rest if side else max(at_zero, rest)


class HiddenKeys(Solver):
    """Sparse histograms beside other parts.

    Parameters
    ----------
    parts : tuple of (DominatingPair, int)
        All parts.
    solve : callable
        Returns the solver of parts without histograms.
    """

    name = "hidden keys"
    reason = (
        "keys may be new or old; the worst number of new ones is found by branch and bound, each"
        " by the analysis of the other keys"
    )

    def __init__(self, parts: Parts, solve: Callable[[Parts], Solver]) -> None:
        super().__init__(parts)
        self._solve = solve
        self._rest = [(p, n) for p, n in parts if not isinstance(p, HistogramPair)]
        # Nothing comes before the only release that it could depend on.
        self._alone = len(parts) == 1 and parts[0][1] == 1
        self._fixed: list[tuple[HistogramPair, int, Ends]] = []
        self._adaptive: list[tuple[HistogramPair, int]] = []
        for pair, n in parts:
            if not isinstance(pair, HistogramPair):
                continue
            axes = () if pair.mechanism.adaptive and not self._alone else pair.mechanism.axes(n)
            if axes:
                self._fixed.append((pair, n, axes))
            else:
                self._adaptive.append((pair, n))
        self._known: dict[Ends, Moved | None] = {}
        self._solvers: dict[Parts, Solver] = {}
        self._other: Solver | None = None

    def answer(self, asked: Question) -> Bounds:
        """Return the worst alternative's."""
        if not asked.both:
            return super().answer(asked)
        if asked.kind == "epsilon" and asked.at == 0.0:
            return Bounds(0.0, math.inf)
        if asked.kind == "delta" and asked.at == math.inf:
            return Bounds(0.0, infinite_mass(self.parts))
        return self._once(asked)

    def _epsilon(self, delta: float) -> Bounds:
        return self._worst(
            lambda one, side: one.epsilon(delta, side),
            # An ε is searched for; whether it is larger than another one is a single δ.
            lambda one, reached: reached < math.inf and one.delta(reached, 1) > delta,
            lambda solver: solver.epsilon_bounds(delta),
        )

    def _delta(self, epsilon: float) -> Bounds:
        return self._worst(
            lambda one, side: one.delta(epsilon, side),
            lambda one, reached: reached < 1.0,
            lambda solver: solver.delta_bounds(epsilon),
        )

    def _worst(self, bound: Bound, exceeds: Exceeds, ask: Callable[[Solver], Bounds]) -> Bounds:
        """Return the worst alternative's bracket."""
        lower, upper, settled = self._searched(bound, exceeds)
        if len(self._solvers) > MOST_KEPT:
            self._known.clear()
            self._solvers.clear()
        if not self._alone and (self._adaptive or not settled):
            if self._other is None:
                self._other = UpperPairs(self.parts)
            with contextlib.suppress(AccountantError):  # one bound is enough
                upper = min(upper, float(ask(self._other).upper))
        return Bounds(min(lower, upper), upper)

    def _searched(self, bound: Bound, exceeds: Exceeds) -> tuple[float, float, bool]:
        """Search for the worst alternative; tell whether one has the upper bound."""
        whole: Ends = tuple(axis for _, _, axes in self._fixed for axis in axes)
        lower = reached = 0.0
        boxes: list[tuple[float, Ends]] = []
        ends_alone = [tuple((axis[side], axis[side]) for axis in whole) for side in (0, 1)]
        fresh: list[Ends] = list(dict.fromkeys([*ends_alone, whole]))
        closed, count = True, 0
        while True:
            for ends in fresh:
                moved = self._moved(ends)
                if moved is None:
                    continue
                closed &= isinstance(moved.rest, (MergedGaussian, Nothing))
                if reached and not exceeds(moved, reached):
                    continue
                found = bound(moved, 1)
                if all(low == high for low, high in ends):
                    if not self._adaptive:
                        lower = max(lower, bound(moved, 0))
                    reached = max(reached, found)
                elif found > reached:
                    heapq.heappush(boxes, (-found, ends))
            if not boxes or -boxes[0][0] <= reached:
                return lower, reached, True
            count += 1
            if count >= (MOST_BOXES if closed else MOST_ON_GRIDS):
                return lower, -boxes[0][0], False
            fresh = _halves(heapq.heappop(boxes)[1])

    def _moved(self, ends: Ends) -> Moved | None:
        """Return what dominates a box of alternatives; None where it is empty."""
        if ends not in self._known:
            self._known[ends] = self._built(ends)
        return self._known[ends]

    def _built(self, ends: Ends) -> Moved | None:
        boxes, parts, place = [], list(self._rest), 0
        for pair, n, axes in self._fixed:
            box = pair.mechanism.box(pair.direction, n, ends[place : place + len(axes)])
            place += len(axes)
            if box is None:
                return None
            boxes.append(box)
            parts += box.old
        failing = 0.0
        for pair, n in self._adaptive:
            # In either direction, as a guarantee (0, δ) is charged (Theorem N2).
            whole = pair.whole
            failing = up(failing + times_up(up(whole.first.largest + whole.second.largest), n))
            parts += [(one, n * count) for one, count in whole.old]
        first, second = sums_of(boxes)
        return Moved(first, second, failing, self._solved(_merged(parts)))

    def _solved(self, parts: Parts) -> Solver:
        if parts not in self._solvers:
            sums = LaplaceSum.covers(parts)
            self._solvers[parts] = LaplaceSum(parts) if sums else self._solve(parts)
        return self._solvers[parts]


def _end(bounds: Bounds, side: int) -> float:
    return float(bounds.upper if side else bounds.lower)


def _halves(ends: Ends) -> list[Ends]:
    """Split a box at the middle of its widest side."""
    place = max(range(len(ends)), key=lambda i: ends[i][1] - ends[i][0])
    low, high = ends[place]
    middle = (low + high) // 2
    return [
        (*ends[:place], half, *ends[place + 1 :]) for half in ((low, middle), (middle + 1, high))
    ]


def _merged(parts: Sequence[tuple[DominatingPair, int]]) -> Parts:
    """Merge equal pairs and drop those without a loss."""
    found: dict[DominatingPair, int] = {}
    for pair, n in parts:
        if n and pair.pure_epsilon > 0.0:
            found[pair] = found.get(pair, 0) + n
    return tuple(found.items())


def _is_own_reverse(pair: DominatingPair) -> bool:
    """Tell whether the profile of the reversed pair is that of the pair."""
    part = pair.gaussian_part
    if part is not None:
        return part.sampling_probability == 1.0
    return pair.is_symmetric or isinstance(pair, (LaplacePair, ResponsePair))


def has_hidden_keys(parts: Parts) -> bool:
    """Tell whether a part is a sparse histogram."""
    return any(isinstance(pair, HistogramPair) for pair, _ in parts)


# The largest count, and the largest sum of the losses: beyond them a grid is faster.
MOST_RELEASES = 64
LARGEST_SUM = 64.0
# The profile is near 0 where losses are smaller, and the absolute error would be felt.
LEAST_REACH = 1e-9
# Binary digits of the numbers, beyond those that the sums may lose.
DIGITS = 200
# At least the absolute error of a profile that is left: 2^-DIGITS, with room.
LEFT = 1e-50


class LaplaceSum(Solver):
    """Equal releases of Laplace noise (Theorem N15), in integers of some 400 binary digits."""

    name = "laplace"
    reason = "all parts are equal Laplace noise, whose sum has a profile in closed form"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        ((pair, self._count),) = parts
        assert isinstance(pair, LaplacePair)
        # The reach was rounded up by one unit at most.
        self._reach = math.nextafter(pair.reach * (1.0 - 2.0 * U), 0.0), pair.reach

    @staticmethod
    def covers(parts: Parts) -> bool:
        """Tell whether the parts are equal Laplace noise of moderate losses."""
        if len(parts) != 1 or type(parts[0][0]) is not LaplacePair:
            return False
        reach, n = parts[0][0].reach, parts[0][1]
        return n <= MOST_RELEASES and reach > LEAST_REACH and n * reach <= LARGEST_SUM

    def _least(self) -> float:
        return self._count * self._reach[0] * (1.0 - 4.0 * U)

    def _delta(self, epsilon: float) -> Bounds:
        low, high = (self._profile(epsilon, side) for side in (0, 1))
        return Bounds(min(low, high), high)

    def _epsilon(self, delta: float) -> Bounds:
        if self._profile(0.0, 1) <= delta:
            return Bounds(0.0, 0.0)
        most = self._count * self._reach[1] * (1.0 + 8.0 * U)
        found = bracket_crossing(self._profile, delta, 0.5 * most, most)
        return Bounds(0.0, most) if found is None else found

    def _profile(self, epsilon: float, side: int) -> float:
        """Bound the profile at ε >= 0 from below or above."""
        k, reach = self._count, self._reach[side]
        most = k * reach
        if epsilon >= most * (1.0 + 4.0 * U):
            return 0.0
        bits = DIGITS + 4 * k + math.ceil(3.0 * most)
        step, start = _fixed(reach, bits), _fixed(epsilon, bits)
        # Coefficients have the weights 2^{-k-m}.
        sums = [0] * (k + 1)
        for index in range(k + 1):
            place = k - 2 * index
            w = place * step - start
            if w <= 0:
                break
            for m, value in enumerate(_series(w, bits, k)):
                sums[m] += _weights(k)[m][index] * value
        whole = sum(value << (k - m) for m, value in enumerate(sums))
        scale = math.exp(0.5 * (epsilon - most))
        shift = max(whole.bit_length() - 64, 0) if whole > 0 else 0
        found = math.ldexp(float(max(whole, 0) >> shift), shift - bits - 2 * k) * scale
        error = (32.0 + 4.0 * most) * U
        if side == 0:
            return max(found * (1.0 - error) - LEFT, 0.0)
        return min(up(found * (1.0 + error) + LEFT), 1.0)


def _fixed(value: float, bits: int) -> int:
    """Return value * 2^bits, rounded down."""
    numerator, denominator = value.as_integer_ratio()
    return (numerator << bits) // denominator


@lru_cache(maxsize=MOST_RELEASES)
def _weights(k: int) -> tuple[tuple[int, ...], ...]:
    """Return for each m the coefficients of C(k, m)·(X + 1/X)^{k-m}·(X - 1/X)^m, from X^k down."""
    rows = []
    for m in range(k + 1):
        row = [math.comb(k, m)]
        for sign in [1] * (k - m) + [-1] * m:
            row = [a + sign * b for a, b in zip([*row, 0], [0, *row], strict=True)]
        rows.append(tuple(row))
    return tuple(rows)


def _series(w: int, bits: int, most: int) -> list[int]:
    """Return K_m(w) = Σ over odd n of 2^{1-n} w^{n+m} / (n+m)!, for m up to ``most``."""
    powers, term, j = [1 << bits], 1 << bits, 0
    while term or j < most + 3:
        j += 1
        term = (term * w >> bits) // j
        powers.append(term)
    powers += [0, 0]
    values = [0] * (len(powers) + 2)
    for m in range(len(powers) - 2, -1, -1):
        values[m] = powers[m + 1] + (values[m + 2] >> 2)
    return values[: most + 1]
