"""One composition at one tilt and one spacing, and the brackets it certifies (Theorem G7)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.analyses.pld.atom_spacing import MOST_LOOKED_AT
from accountant.analyses.pld.chord_excess import (
    ChordExcess,
    GridPower,
    Tilt,
    chord_excess,
    tilted_atoms,
)
from accountant.analyses.pld.fft import (
    Tilted,
    Total,
    compose,
    fft_size,
    inverse,
    product_of,
    total_sums,
)
from accountant.analyses.pld.grid_parts import (
    STEEPEST,
    GridPart,
    GridPlan,
    is_looked_at,
    largest_loss,
    on_grid,
    place,
    without_top,
)
from accountant.analyses.pld.loss_grid import GridLaw
from accountant.analyses.pld.saddle_point import reach
from accountant.analyses.pld.spectrum import (
    Spectrum,
    few_frequencies,
    loud_frequencies,
    node_count,
)

# Bytes at the peak: two composed laws, a spectrum and its factor; and what a part's cells take.
BYTES_PER_KNOT = 48
BYTES_WITH_ATOMS = 72
BYTES_PER_CELL = 200
# And what is needed for each cell to find the few frequencies that matter.
BYTES_PER_NODE = 1000
# Factors below exp(-SMALLEST) count as zero.
SMALLEST = 708.0
# A δ from which on an upper end of 1 is near enough.
NEARLY_ONE = 1.0 - 1e-6
# Knots of all sums of losses so far apart that one of them rules.
MOST_STEEP = 2**20


class TooLarge(Exception):  # noqa: N818 (a signal inside this package)
    """The grid would not fit into the memory cap."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class _ManyFrequencies(Exception):  # noqa: N818 (a signal inside this module)
    """Losses that are looked at one by one would be at too many frequencies."""


class _Side(NamedTuple):
    total: Total | Spectrum
    infinite: float
    excess: ChordExcess | None  # of the law over the profile it stands for


class ComposedLaw:
    """Brackets of the profile around the saddle point of ``plan``."""

    def __init__(self, parts: Sequence[GridPart], plan: GridPlan, memory_cap: int) -> None:
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
        low = min(low, plan.saddle.epsilon - 4.0 / self._tilt) - plan.spacing - moved
        high = max(high, plan.saddle.epsilon) + plan.spacing + moved
        begin = max(first, math.floor((low - self._offset) / plan.spacing))
        end = min(last, math.ceil((high - self._offset) / plan.spacing))
        if self._tilt * plan.spacing > STEEPEST and last - first < MOST_STEEP:
            begin, end = first, last  # one knot may carry all: no window is narrower
        widest = max(t.last - t.first + 1 for t in knots)
        self.size = fft_size(max(end - begin + 1, widest, 2))
        self._fits = self.size * BYTES_PER_KNOT + widest * BYTES_PER_CELL <= memory_cap
        # A few frequencies need no array of all knots.
        if not self._fits and widest * BYTES_PER_NODE > memory_cap:
            raise TooLarge(self.size)
        if last - first < self.size:  # everything fits: no mass is omitted or wraps around
            begin = first
        self._last = last
        self._upper_alone = plan.upper_alone
        # Characteristic functions of atoms are held beside the law; without them it is a rough one.
        most = math.inf if self.size * BYTES_WITH_ATOMS > memory_cap else float(self.size)
        looked_at = [most]
        if not plan.upper_alone and node_count(widest, self.size) is not None:
            # More of them are, if they are asked for at a few frequencies alone.
            given = list(zip(parts, knots, strict=True))
            if any(
                is_looked_at(part, t, self._tilt, MOST_LOOKED_AT)
                and not is_looked_at(part, t, self._tilt, most)
                for part, t in given
            ):
                looked_at = [MOST_LOOKED_AT, most]
        for number in looked_at:
            laws = [
                without_top(on_grid(part, t, plan, number), plan.log_tail, part.times)
                for part, t in zip(parts, knots, strict=True)
            ]
            self._scales(laws, counts, parts)
            self._upper = self._side(laws, counts, begin, orders, True)
            self._lower = self._upper  # read only where it is the lower one
            try:
                if not plan.upper_alone:
                    self._lower = self._side(laws, counts, begin, orders, False, number == most)
                break
            except _ManyFrequencies:
                continue
        self._begin = self._upper.total.first
        self._low = self._offset + (self._begin + 1) * self._spacing
        # The profile can be read up to the window's last knot, or a little beyond the law's last.
        end = self._begin + self._upper.total.size - 1
        self.high = self._offset + (end - 0.5 if end < last else last + 0.5) * self._spacing
        self.off_grid_mass = sum(law.off_grid_mass for law in laws)
        self._top = math.nextafter(largest_loss(parts) + self._shift, math.inf)

    def _scales(
        self, laws: Sequence[GridLaw], counts: Sequence[int], parts: Sequence[GridPart]
    ) -> None:
        """Choose the centre and the scale of every tilted law, and add up the losses' errors."""
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

    def _side(
        self,
        laws: Sequence[GridLaw],
        counts: Sequence[int],
        begin: int,
        orders: Sequence[float],
        upper: bool,
        every: bool = True,
    ) -> _Side:
        """Compose one of the laws; its chords are bounded at ``every`` frequency if need be."""
        tilted, exponents, log_finite, rare, total = [], [0.0, 0.0], 0.0, 0.0, 0.0
        powers: list[GridPower] = []
        for law, k, centre, scale in zip(
            laws, counts, self._centres, self._log_scales, strict=True
        ):
            tilt = Tilt(self._tilt, centre, scale)
            distance = law.knots.losses() - centre
            weights, error = tilt.weigh(law.upper if upper else law.lower, distance)
            if not upper:  # the upper law's weights add up to one
                weights[np.isinf(weights)] = 0.0  # with less mass it is still below
            weights *= 1.0 + error if upper else 1.0 - np.minimum(error, 1.0)
            tilted.append(Tilted(weights, law.knots.first, k))
            if not upper:
                origin = self._origin(law, centre)
                exact = law.atoms and tilted_atoms(law.atoms, law.knots, origin, tilt)
                powers.append(GridPower(tilted[-1], origin, exact))
            # The mass far below may be moved to the lowest knot.
            lowest = k * float(weights[0])
            skipped = int(lowest <= self._rare)
            rare += skipped * lowest
            total += k * max(_log_moment(weights, 0.0 * distance), 0.0)
            for i, order in enumerate(orders):
                skip = skipped if i == 0 else 0
                exponents[i] += k * _log_moment(weights[skip:], order * distance[skip:])
            mass = law.infinite_upper if upper else law.infinite_lower
            log_finite += k * math.log1p(-min(mass, 1.0)) if mass < 1.0 else -math.inf
        first = sum(k * law.knots.first for law, k in zip(laws, counts, strict=True))
        outside = self._outside(begin, begin > first, exponents, orders)
        if begin > first and rare > 0.0:
            outside += (1.0 + 1e-6) * rare * _exp(total)
        infinite = -math.expm1(log_finite) * (1.0 + (4e-15 if upper else -4e-15))
        # What does not fit is refused before the chords are bounded, which takes longest.
        total_law = self._total(tilted, begin, outside)
        return _Side(total_law, infinite, self._excess(powers, every))

    def _total(self, tilted: Sequence[Tilted], begin: int, outside: float) -> Total | Spectrum:
        given = begin, self.size, outside
        if len(tilted) == 1 and tilted[0].times == 1:
            return compose(tilted, *given)
        found = few_frequencies(tilted, *given)
        if found is not None:
            return found
        if not self._fits:
            raise TooLarge(self.size)
        product = product_of(tilted, self.size)
        return loud_frequencies(product, *given) or inverse(product, *given)

    def _outside(
        self, begin: int, is_cut_below: bool, exponents: Sequence[float], orders: Sequence[float]
    ) -> float:
        """Return Chernoff bounds on the mass below and above the window."""
        low = self._offset + begin * self._spacing - self._centre
        ends = low, low + self.size * self._spacing
        cut = is_cut_below, begin + self.size <= self._last
        return (1.0 + 1e-6) * math.fsum(
            _exp(exponent - order * end)
            for is_cut, exponent, order, end in zip(cut, exponents, orders, ends, strict=True)
            if is_cut
        )

    def _excess(self, powers: Sequence[GridPower], every: bool) -> ChordExcess | None:
        """Bound what chords add to the lower law, if any do."""
        if not any(one.atoms is not None and bool(one.atoms.bumps.any()) for one in powers):
            return None
        # where its distances are taken from
        self._origins = self._offset + self._spacing * sum(
            one.law.times * (one.law.first + one.origin) for one in powers
        )
        found = chord_excess(powers, self._spacing, self.size, fits=every and self._fits)
        if found is None:
            raise TooLarge(self.size) if every else _ManyFrequencies
        return found

    def _origin(self, law: GridLaw, centre: float) -> int:
        """Return the knot next to the centre, counted from the first."""
        place = round((centre - law.knots.offset) / self._spacing) - law.knots.first
        return min(max(place, 0), law.knots.last - law.knots.first)

    def _evaluate(self, side: _Side, epsilon: float) -> tuple[float, float, float]:
        """Return value, error and slope of the finite part of the profile of ``side``.

        Beyond the window: at its end.
        """
        epsilon = min(epsilon, self.high)
        value, error, slope, nearest = self._sums(side, epsilon)
        error += self._chords(side, epsilon, nearest)
        scale = self._log_scale - self._tilt * (epsilon + nearest - self._centre)
        if not (scale < 600.0):  # far from the saddle point there is no bound
            return 0.0, math.inf, 0.0
        if not (scale > -SMALLEST):  # below the doubles that keep their relative accuracy
            return 0.0, 1.01 * math.exp(-SMALLEST) * (value + error), 0.0
        factor = math.exp(scale)
        size = abs(scale) + self._tilt * (abs(epsilon) + nearest + self._steps)
        rounding = self._rounding + 16.0 * U * size
        return factor * value, factor * (error + (value + error) * 2.0 * rounding), factor * slope

    def _sums(self, side: _Side, epsilon: float) -> tuple[float, float, float, float]:
        given = self._offset, self._spacing, self._tilt, epsilon, self._last
        if isinstance(side.total, Spectrum):
            return side.total.sums(*given)
        return total_sums(side.total, *given)

    def _chords(self, side: _Side, epsilon: float, nearest: float) -> float:
        """Bound what chords add to the value of ``side``, in its units."""
        if side.excess is None:
            return 0.0
        doubt = 8.0 * U * (abs(epsilon) + self._steps)
        bumps = side.excess.at(epsilon - self._origins, doubt)
        return bumps * _exp(self._tilt * nearest) * (1.0 + 1e-9)

    @property
    def infinite_upper(self) -> float:
        """A bound on the mass at infinite loss: no smaller δ has a finite ε here."""
        return self._upper.infinite

    @property
    def held(self) -> int:
        """Bytes of the two laws."""
        held = 0
        for side in (self._upper, self._lower):
            held += side.total.held
            held += 0 if side.excess is None else 16 * side.excess.spectrum.size
        return held

    def omitted_share(self, epsilon: float) -> float:
        """Return the share of the bracket that tails and round-off have; none is the spacing's."""
        if not self._inside(epsilon) or epsilon > self.high:
            return 1.0
        upper, lower = self._upper, self._lower
        high, above, _ = self._evaluate(upper, epsilon)
        low, below, _ = self._evaluate(lower, epsilon)
        _, alone, _ = self._evaluate(lower._replace(excess=None), epsilon)  # without chords
        infinite = upper.infinite - lower.infinite
        omitted, whole = above + alone + infinite, high - low + above + below + infinite
        return omitted / whole if 0.0 < whole < math.inf else 1.0

    def delta_upper(self, epsilon: float) -> float:
        """Return a number not below the profile at ``epsilon``."""
        epsilon -= self._shift
        if not self._inside(epsilon):
            return 1.0
        value, error, _ = self._evaluate(self._upper, epsilon)
        return min((value + error + self._upper.infinite) * (1.0 + 1e-15) + 5e-324, 1.0)

    def is_nearly_one(self, epsilon: float) -> bool:
        """Tell whether the profile of the upper law, and not its error, is nearly one."""
        epsilon -= self._shift
        if not self._inside(epsilon):
            return False
        value, error, _ = self._evaluate(self._upper, epsilon)
        return value + self._upper.infinite > NEARLY_ONE and error < 1.0 - NEARLY_ONE

    def delta_lower(self, epsilon: float) -> float:
        """Return a number not above the profile at ``epsilon``."""
        if self._upper_alone:
            return 0.0
        epsilon += self._shift
        finite = 0.0
        if epsilon < self.high:
            # Below the window the profile is no lower than at its start.
            inside = epsilon if self._inside(epsilon) else self._low
            value, error, _ = self._evaluate(self._lower, inside)
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
        epsilon = min(self._root(self._upper, delta, self._shift), self._top)
        step = max(resolution, 4.0 * U * abs(epsilon))
        while epsilon < self._top:
            if epsilon > 0.0 and self.delta_upper(epsilon) <= delta:
                return epsilon
            if epsilon - self._shift > self.high:  # there is no further bound from here on
                break
            epsilon, step = max(epsilon, 0.0) + step, 4.0 * step
        return max(self._top, 0.0)

    def epsilon_lower(self, delta: float, resolution: float) -> float:
        """Return an ε >= 0 below which the profile is certified to exceed ``delta``."""
        if self._upper_alone:
            return 0.0
        if delta < self._lower.infinite:
            return math.inf
        epsilon = min(self._root(self._lower, delta, -self._shift, resolution), self._top)
        step = max(resolution, 4.0 * U * abs(epsilon))
        while epsilon > 0.0 and self.covers(epsilon):
            if self.delta_lower(epsilon) > delta:
                return epsilon
            epsilon, step = epsilon - step, 4.0 * step
        return 0.0

    def _root(self, side: _Side, delta: float, shift: float, resolution: float = 0.0) -> float:
        """Return roughly where ``side`` crosses ``delta``: Newton's method on the logarithm."""
        if side.excess is None:
            resolution = 0.0
        sign = 1.0 if side is self._upper else -1.0
        low = self._low + 2.0 * abs(shift)
        if side.total.whole:
            low = min(low, 0.0) - 2.0 * self._spacing
        high = min(self.high, self._offset + self._last * self._spacing)
        low = min(low, high)
        epsilon = min(max(self._saddle.epsilon, low), high)
        misses, widths = 0, high - low
        for _ in range(100):
            close = max(4.0 * U * abs(epsilon) + 1e-11 * self._spacing, 0.5 * resolution)
            value, error, slope = self._evaluate(side, epsilon - shift)
            # Where round-off dominates, far below the saddle point, only the value is usable.
            total = value + side.infinite + (sign * error if error < 0.5 * value else 0.0)
            if total > delta or not math.isfinite(error):
                low = epsilon
            else:
                high = epsilon
            following = _newton(epsilon, total, slope, delta)
            if abs(following - epsilon) <= close or high - low <= close:
                return epsilon
            misses, widths = (misses + 1 if high - low > 0.5 * widths else 0), high - low
            if misses >= 3 or not (low < following < high):
                following = 0.5 * (low + high)
                misses = 0
            epsilon = following
        return epsilon


def _newton(epsilon: float, total: float, slope: float, delta: float) -> float:
    """Return the next point: Newton's method on the logarithm from afar, on the profile nearby."""
    if not (total > 0.0 and slope > 0.0):
        return math.nan
    if abs(total - delta) < 0.5 * delta:
        return epsilon + math.log1p(max((total - delta) / slope, -0.999))
    return epsilon + math.log(total / delta) * total / slope


def _exp(x: float) -> float:
    return math.exp(x) if x < 700.0 else math.inf


def _log_moment(weights: FloatArray, exponent: FloatArray) -> float:
    """Bound log of the sum of weights times e^exponent, from above."""
    if not exponent.size:
        return -math.inf
    top = float(exponent.max())
    total = float(weights @ np.exp(exponent - top))
    return top + math.log(total + 1e-300) + 1e-12 * (1.0 + abs(top))
