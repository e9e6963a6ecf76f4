"""One composition at one tilt and one spacing, and the brackets it certifies (Theorem G7)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import TINY, U
from accountant.analyses.pld.fft import Tilted, Total, compose, fft_size, total_sums
from accountant.analyses.pld.loss_grid import (
    GridLaw,
    GridPart,
    GridPlan,
    largest_loss,
    on_grid,
    place,
)
from accountant.analyses.pld.saddle_point import reach
from accountant.analyses.solver import LEAST_EPSILON, above_crossing, below_crossing

# Bytes that a knot of the total loss takes at the peak: two composed laws, a spectrum and its
# factor. Together with the next it decides what fits into memory, and nothing else.
BYTES_PER_KNOT = 48
# Bytes that the masses of one cell of a part take.
BYTES_PER_CELL = 200
# A profile below exp(-SMALLEST) leaves the doubles that keep their relative accuracy: it is bounded
# by that number. The proof of the upper end depends on it.
SMALLEST = 708.0
# The lower law's mass at its top is left out where it is at most this many times the mass above the
# grid that was planned. It affects the width alone.
RARE_TOP = 100.0
# A window that ends within this share of itself from the last attainable knot goes on to it.
NEARLY_ALL = 0.125
# The Chernoff orders planned with coarse laws are too steep where their last loss is heavy: what
# rounding puts into the knots beyond it would rule. None takes more nats than this a knot. Any
# order is sound, and the least bound counts.
MOST_NATS_A_KNOT = 64.0
# Shares of that order that are tried.
GENTLER = (1.0, 1 / 8, 1 / 64, 1 / 512)
# Chernoff bounds are moved up by this share, far above their round-off.
CHERNOFF_MARGIN = 1e-6
# The relative distance at which a search for an ε ends, at most, wherever it began.
NEAR = 1e-9
# The tilt of a mass is a factor of at most e^STEEP in one step, and of e^BEYOND more in a second;
# a larger factor belongs to a mass below the doubles, and counts as infinite.
STEEP = 700.0
BEYOND = 60.0


class TooLarge(Exception):  # noqa: N818 (a signal inside this package)
    """The grid would not fit into the memory cap."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class _Side(NamedTuple):
    total: Total
    infinite: float
    alias: float  # of what lies below the window, in any value of the profile (Theorem G6)


class ComposedLaw:
    """Brackets of the profile around the saddle point of ``plan``."""

    def __init__(self, parts: Sequence[GridPart], plan: GridPlan, memory_cap: int) -> None:
        self.plan = plan
        self._tilt = plan.saddle.tilt
        self._spacing = plan.spacing
        self._saddle = plan.saddle
        self._rare = math.exp(plan.log_loss)
        knots = [place(part, plan, len(parts)) for part in parts]
        counts = [part.times for part in parts]
        first, last = (
            sum(k * end for k, end in zip(counts, ends, strict=True))
            for ends in ([t.first for t in knots], [t.last for t in knots])
        )
        low, high, *orders = reach([part.law for part in parts], self._tilt, plan.log_loss)
        self._offset = math.fsum(k * t.offset for k, t in zip(counts, knots, strict=True))
        # The saddle point is not the answer, which may lie a few scales of the profile below.
        moved = 4.0 * sum(part.times * part.pair.loss_error for part in parts)
        near = plan.saddle.epsilon - 4.0 / self._tilt
        low = min(low, near) - plan.spacing - moved
        high = max(high, plan.saddle.epsilon) + plan.spacing + moved
        # What lies below the window lands a period farther up, where next to nothing is left of it.
        self._skips = self._tilt * (high - near) > -plan.log_tail
        if self._skips:
            low = max(low, near - plan.spacing - moved)
        begin = max(first, math.floor((low - self._offset) / plan.spacing))
        end = min(last, math.ceil((high - self._offset) / plan.spacing))
        if last - end < NEARLY_ALL * (end - begin):  # the coarse laws tell no such ends apart
            end = last
        widest = max(t.last - t.first + 1 for t in knots)
        self.size = fft_size(max(end - begin + 1, widest, 2))
        if self.size * BYTES_PER_KNOT + widest * BYTES_PER_CELL > memory_cap:
            raise TooLarge(self.size)
        begin = max(first, min(begin, end + 1 - self.size))  # all the room that there is
        self._last, self._first, self._start, self._orders = last, first, begin, orders
        self._counts = counts
        self._laws = [
            without_top(on_grid(part, t), plan.log_tail, part.times)
            for part, t in zip(parts, knots, strict=True)
        ]
        self._scales(parts)
        self._upper = self._side(upper=True)
        self._begin = self._upper.total.first
        self._low = self._offset + (self._begin + 1) * self._spacing
        # The profile can be read up to the window's last knot, or a little beyond the law's last.
        end = self._begin + self._upper.total.size - 1
        self.high = self._offset + (end - 0.5 if end < last else last + 0.5) * self._spacing
        self._top = math.nextafter(largest_loss(parts) + self._shift, math.inf)

    @cached_property
    def _lower(self) -> _Side:
        # Composed when a lower end is first asked for: an upper end alone takes half of the time.
        return self._side(upper=False)

    def _scales(self, parts: Sequence[GridPart]) -> None:
        """Choose the centre and the scale of every tilted law, and add up the losses' errors."""
        laws, counts = self._laws, self._counts
        self._centres, self._log_scales = [], []
        for law, part in zip(laws, parts, strict=True):
            centre = part.law.cumulants(self._tilt)[1]
            t = law.knots.losses()
            with np.errstate(divide="ignore"):
                exponent = self._tilt * (t - centre) + np.log(law.upper)
            top = float(exponent.max())
            self._centres.append(centre)
            self._log_scales.append(top + math.log(float(np.exp(exponent - top).sum())))
        self._centre = math.fsum(k * c for k, c in zip(counts, self._centres, strict=True))
        self._log_scale = math.fsum(k * s for k, s in zip(counts, self._log_scales, strict=True))
        size = sum(
            k * (abs(s) + self._tilt * abs(c))
            for k, s, c in zip(counts, self._log_scales, self._centres, strict=True)
        )
        self._rounding = 1e-12 + 16.0 * U * size
        # of the knots of the total loss, offset + index * spacing
        self._steps = steps = abs(self._offset) + (abs(self._last) + self.size) * self._spacing
        self._shift = (
            sum(k * law.loss_error for k, law in zip(counts, laws, strict=True))
            + sum(part.times * part.pair.loss_error for part in parts)
            + 16.0 * U * steps
        ) * (1.0 + 1e-9)

    def _side(self, *, upper: bool) -> _Side:
        """Compose the upper or the lower laws."""
        tilted: list[Tilted] = []
        spread: list[tuple[int, FloatArray, FloatArray, int]] = []
        log_finite = rare = total = log_mass = 0.0
        for law, k, centre, scale in zip(
            self._laws, self._counts, self._centres, self._log_scales, strict=True
        ):
            distance = law.knots.losses() - centre
            masses = law.upper if upper else law.lower
            weights, error = self._weigh(masses, distance, centre, scale)
            log_mass += k * math.log(max(float(masses.sum()), TINY) * (1.0 + 2.0 * error.max()))
            if not upper:  # the upper law's weights add up to one
                weights[np.isinf(weights)] = 0.0  # with less mass it is still below
            weights *= 1.0 + error if upper else 1.0 - np.minimum(error, 1.0)
            tilted.append(Tilted(weights, law.knots.first, k))
            # The mass far below may be moved to the lowest knot.
            lowest = k * float(weights[0])
            skipped = int(lowest <= self._rare)
            rare += skipped * lowest
            total += k * max(_log_moment(weights, 0.0 * distance), 0.0)
            spread.append((k, weights, distance, skipped))
            mass = law.infinite_upper if upper else law.infinite_lower
            log_finite += k * math.log1p(-min(mass, 1.0)) if mass < 1.0 else -math.inf
        is_cut_below = self._start > self._first
        outside = self._outside(spread, is_cut_below and not self._skips)
        if is_cut_below and not self._skips and rare > 0.0:
            outside += (1.0 + CHERNOFF_MARGIN) * rare * _exp(total)
        alias = 0.0
        if is_cut_below and self._skips:
            period = self._tilt * self.size * self._spacing
            alias = (1.0 + CHERNOFF_MARGIN) * _exp(log_mass - period) / -math.expm1(-period)
        infinite = -math.expm1(log_finite) * (1.0 + (4e-15 if upper else -4e-15))
        return _Side(compose(tilted, self._start, self.size, outside), infinite, alias)

    def _weigh(
        self, masses: FloatArray, distance: FloatArray, centre: float, log_scale: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return masses at distances from the centre, tilted, and their relative errors."""
        exponent = self._tilt * distance - log_scale
        size = np.abs(distance) + 2.0 * abs(centre)
        error = U * (24.0 + 8.0 * abs(log_scale) + 8.0 * self._tilt * size)
        weights = masses * np.exp(np.minimum(exponent, STEEP))
        if exponent.max(initial=-math.inf) > STEEP:
            # The tilted mass is at most one: such a factor belongs to a mass below the normal
            # doubles, down to e^-745, or to none.
            weights *= np.exp(np.clip(exponent - STEEP, 0.0, BEYOND))
            weights[(exponent > STEEP + BEYOND) & (masses > 0.0)] = math.inf
        return weights, error

    def _outside(
        self, spread: Sequence[tuple[int, FloatArray, FloatArray, int]], is_cut_below: bool
    ) -> float:
        """Return Chernoff bounds on the mass below and above the window.

        The laws come as counts, weights, distances and the knots skipped below the window.
        """
        low = self._offset + self._start * self._spacing - self._centre
        ends = low, low + self.size * self._spacing
        cut = is_cut_below, self._start + self.size <= self._last
        found = 0.0
        for above, (is_cut, planned, end) in enumerate(zip(cut, self._orders, ends, strict=True)):
            bound = math.inf if is_cut else 0.0
            steepest = min(abs(planned), MOST_NATS_A_KNOT / self._spacing)
            for order in (math.copysign(steepest * share, planned) for share in GENTLER if is_cut):
                exponent = math.fsum(
                    k * _log_moment(w[skip * (1 - above) :], order * d[skip * (1 - above) :])
                    for k, w, d, skip in spread
                )
                before, bound = bound, min(bound, _exp(exponent - order * end))
                if bound <= self._rare or bound == before < math.inf:
                    break
            found += bound
        return (1.0 + CHERNOFF_MARGIN) * found

    def _evaluate(self, side: _Side, epsilon: float) -> tuple[float, float]:
        """Return value and error of the finite part of the profile of ``side``.

        Beyond the window: at its end.
        """
        epsilon = min(epsilon, self.high)
        value, error, nearest = total_sums(
            side.total, self._offset, self._spacing, self._tilt, epsilon, self._last
        )
        scale = self._log_scale - self._tilt * (epsilon + nearest - self._centre)
        if not (scale < 600.0):  # far from the saddle point there is no bound
            return 0.0, math.inf
        if not (scale > -SMALLEST):  # below the doubles that keep their relative accuracy
            return 0.0, 1.01 * math.exp(-SMALLEST) * (value + error) + side.alias
        factor = math.exp(scale)
        size = abs(scale) + self._tilt * (abs(epsilon) + nearest + self._steps)
        rounding = self._rounding + 16.0 * U * size
        error = factor * (error + (value + error) * 2.0 * rounding) + side.alias
        return factor * value, error

    @property
    def infinite_upper(self) -> float:
        """A bound on the mass at infinite loss: no smaller δ has a finite ε here."""
        return self._upper.infinite

    @property
    def held(self) -> int:
        """Bytes of the two laws."""
        return 2 * self._upper.total.held

    def omitted(self, epsilon: float) -> float:
        """Return the share of the upper end that tails and round-off have; none is the spacing's.

        Infinite outside the window.
        """
        if not self.covers(epsilon) or epsilon > self.high:
            return math.inf
        value, error = self._evaluate(self._upper, epsilon - self._shift)
        log_finite = sum(
            k * math.log1p(-min(law.infinite_lower, 1.0 - U))
            for k, law in zip(self._counts, self._laws, strict=True)
        )
        whole = value + self._upper.infinite
        return (error + self._upper.infinite + math.expm1(log_finite)) / whole if whole else 0.0

    def delta_upper(self, epsilon: float) -> float:
        """Return a number not below the profile at ``epsilon``."""
        epsilon -= self._shift
        if not self._inside(epsilon):
            return 1.0
        value, error = self._evaluate(self._upper, epsilon)
        return min((value + error + self._upper.infinite) * (1.0 + 1e-15) + 5e-324, 1.0)

    def delta_lower(self, epsilon: float) -> float:
        """Return a number not above the profile at ``epsilon``."""
        epsilon += self._shift
        finite = 0.0
        if epsilon < self.high:
            # Below the window the profile is no lower than at its start.
            inside = epsilon if self._inside(epsilon) else self._low
            value, error = self._evaluate(self._lower, inside)
            finite = max(value - error, 0.0)
        return max((finite + self._lower.infinite) * (1.0 - 1e-15), 0.0)

    def covers(self, epsilon: float) -> bool:
        """Tell whether ``epsilon`` lies in the window, so that the profile can be read there."""
        return self._inside(epsilon - 2.0 * self._shift)

    def _inside(self, epsilon: float) -> bool:
        return self._upper.total.whole or epsilon >= self._low

    def epsilon_upper(self, delta: float, resolution: float) -> float:
        """Return an ε >= 0 where the profile is certainly at most ``delta``, or infinity."""
        if delta < self._upper.infinite:
            return math.inf
        if self.delta_upper(0.0) <= delta:
            return 0.0
        farthest = min(
            self._top, self.high + self._shift
        )  # there is no further bound from there on
        if not farthest > 0.0:
            return max(self._top, 0.0)
        guess = min(max(self._saddle.epsilon, resolution), farthest)
        close = min(max(resolution / guess, 8.0 * U), NEAR)  # the answer may be far above
        found = above_crossing(self.delta_upper, delta, guess, farthest, close=close)
        return self._top if found is None else found

    def epsilon_lower(self, delta: float, resolution: float) -> float:
        """Return an ε >= 0 below which the profile is certified to exceed ``delta``."""
        if delta < self._lower.infinite:
            return math.inf
        bad = min(self._top, self.high)
        good, step = min(max(self._saddle.epsilon, resolution), bad), 0.1 / self._tilt
        # Far below the saddle point the bound is lost to round-off: from there, step by step.
        while good > LEAST_EPSILON and not self.delta_lower(good) > delta:
            bad, good, step = good, max(good - step, LEAST_EPSILON), 4.0 * step
        if not LEAST_EPSILON <= good < bad or not self.delta_lower(good) > delta:
            return 0.0
        close = min(max(resolution / good, 8.0 * U), NEAR)
        middle = 0.5 * (good + bad)
        found = below_crossing(self.delta_lower, delta, middle, bad, nearest=good, close=close)
        return max(found, good)


def without_top(law: GridLaw, log_rare: float, times: int) -> GridLaw:
    """Return the law with the lower one's mass at the top left out where it is rare (Theorem G1).

    It is that of all losses above the grid. Tilted, it would rule the mass outside the window.
    """
    if not times * law.lower[-1] <= RARE_TOP * math.exp(log_rare):
        return law
    lower = law.lower.copy()
    lower[-1] = 0.0
    return law._replace(lower=lower)


def _exp(x: float) -> float:
    return math.exp(x) if x < 700.0 else math.inf


def _log_moment(weights: FloatArray, exponent: FloatArray) -> float:
    """Bound log of the sum of weights times e^exponent, from above."""
    if not exponent.size:
        return -math.inf
    top = float(exponent.max())
    total = float((weights * np.exp(exponent - top)).sum())  # no BLAS, whose threads wait
    return top + math.log(total + 1e-300) + 1e-12 * (1.0 + abs(top))
