"""The parts of a composition on a grid: their knots, and two laws that enclose each (G1-G3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, sum_up, times_up, up
from accountant._core import tools as core
from accountant.analyses.pld.saddle_point import CoarseLaw, Saddle
from accountant.errors import PrecisionError
from accountant.pairs.base import DominatingPair

# Atoms are looked for within this relative distance of their lattice point, far above round-off.
NEAR = 2.0**-40


class LossGrid(NamedTuple):
    """The knots ``offset + index * spacing`` for ``first <= index <= last``."""

    offset: float
    spacing: float
    first: int
    last: int

    def losses(self) -> FloatArray:
        """Return the knots, in nats, each within ``loss_error`` of its exact value."""
        index = np.arange(self.first, self.last + 1, dtype=np.float64)
        return self.offset + index * self.spacing

    def reach(self) -> float:
        """Return the largest absolute value of a knot or the offset."""
        ends = (self.offset, self.first * self.spacing, self.last * self.spacing)
        return abs(self.offset) + max(map(abs, ends))

    def margin(self) -> float:
        """Return the distance from a knot within which an atom is searched."""
        return min(NEAR * self.reach(), self.spacing / 16.0)


class GridLaw(NamedTuple):
    """Masses under P at the knots.

    With e = ``loss_error``, the profile of ``upper``, with ``infinite_upper`` at +∞, is at least
    H(ε + e) at every ε, and that of ``lower``, with ``infinite_lower``, at most H(ε - e).
    """

    knots: LossGrid
    upper: FloatArray
    lower: FloatArray
    infinite_upper: float
    infinite_lower: float
    loss_error: float


def edges_around(knots: FloatArray, margin: float) -> FloatArray:
    """Return, for each knot, the edges ``margin`` below and above it."""
    return np.stack([knots - margin, knots + margin], axis=1).ravel()


def discretise(pair: DominatingPair, knots: LossGrid, has_atoms: bool) -> GridLaw:
    """Return the two laws of ``pair`` on the grid.

    ``has_atoms`` means that atoms may lie on knots. They are then separated from the cells, because
    only the masses of a cell are known, not their positions.
    """
    t = knots.losses()
    cells = t.size - 1
    middle = t[:-1] + 0.5 * knots.spacing
    loss_error = 16.0 * U * knots.reach()
    if has_atoms:
        margin = knots.margin()
        loss_error += margin
        around = edges_around(t, margin)
        edges = np.empty(3 * cells + 2)
        edges[0::3], edges[1::3], edges[2::3] = around[0::2], around[1::2], middle
        masses = pair.masses(edges)
        p, q = (np.asarray(m, dtype=np.float64)[1:-1] for m in (masses.p, masses.q))
        atoms = p[0::3].copy()
        halves = (p[1::3], q[1::3], p[2::3], q[2::3])
    else:
        edges = np.empty(2 * cells + 1)
        edges[0::2], edges[1::2] = t, middle
        masses = pair.masses(edges)
        p, q = (np.asarray(m, dtype=np.float64)[1:-1] for m in (masses.p, masses.q))
        atoms = np.zeros(cells + 1)
        halves = (p[0::2], q[0::2], p[1::2], q[1::2])
    below, above, error = float(masses.p[0]), float(masses.p[-1]), float(masses.relative_error)
    # Beyond the end of the support there is only the mass at +∞.
    ends = pair.support[1] <= edges[-1]
    p_low, q_low, p_high, q_high = map(np.ascontiguousarray, halves)
    upper, lower = np.empty(cells + 1), np.empty(cells + 1)
    core.grid_laws(
        knots.spacing,
        error,
        below,
        0.0 if ends else above,
        t,
        atoms,
        p_low,
        q_low,
        p_high,
        q_high,
        upper,
        lower,
    )
    return GridLaw(
        knots,
        upper,
        lower,
        above * (1.0 + error) + (1e-300 if above > 0.0 or not ends else 0.0),
        above * (1.0 - 2.0 * error) if ends else 0.0,
        loss_error,
    )


# Sums of losses beyond it are refused: the tilts of larger ones have squares below the doubles.
MOST_LOSS = 1e150
# An atom within this share of a cell from an end of the grid counts as at the end: it is a knot,
# not in the cell beyond it. It affects the number of knots alone.
END_MARGIN = 1e-9
# Lattices with more points than this between the offset and the largest loss have no last point
# that a double tells from its neighbours.
MOST_STEPS = 2.0**40


class GridPart(NamedTuple):
    """A pair, how often it runs, its coarse law, and its lattice where the grid contains it."""

    pair: DominatingPair
    times: int
    law: CoarseLaw
    offset: float | None
    pure: bool  # all finite losses are on that lattice

    def without_rare(self, mass: float) -> GridPart:
        """Return the part, of ``mass`` in all its releases less at the top of its coarse law."""
        law = self.law
        beyond = np.cumsum(np.exp(law.log_mass[::-1]))[::-1]
        kept = max(int(np.count_nonzero(beyond * self.times > mass)), 1)
        left = law._replace(
            loss=law.loss[:kept],
            log_mass=law.log_mass[:kept],
            low=law.low[:kept],
            high=law.high[:kept],
        )
        return self._replace(law=left)


class GridPlan(NamedTuple):
    """The plan of a composition: saddle point, spacing, and limits on the omitted masses."""

    saddle: Saddle
    spacing: float
    log_tail: float  # of the mass above the grid, relative to one
    log_loss: float  # of the tilted mass outside the grid or the window


def largest_loss(parts: Sequence[GridPart]) -> float:
    """Return an ε beyond every finite loss; infinite where there is none."""
    ends = [times_up(up(part.pair.support[1] + part.pair.loss_error), part.times) for part in parts]
    return sum_up(ends)


def refuse_huge(parts: Sequence[tuple[DominatingPair, int]]) -> None:
    """Raise PrecisionError where sums of losses leave the range in which tilts have squares."""
    ends = [(abs(end), n) for pair, n in parts for end in pair.support if math.isfinite(end)]
    most = max((end * n for end, n in ends), default=0.0)
    if most > MOST_LOSS:
        raise PrecisionError(
            f"losses must add up to at most {MOST_LOSS:g} on a grid; got {most:.3g}"
        )


def place(part: GridPart, plan: GridPlan, parts: int) -> LossGrid:
    """Choose the knots of one part so that the mass outside is negligible."""
    law = part.law
    mass = np.exp(law.log_mass)
    rare = math.exp(plan.log_tail) / parts / part.times
    beyond = np.cumsum(mass[::-1])[::-1]
    high = law.high[min(int(np.searchsorted(-beyond, -rare)), law.high.size - 1)]
    low = _lowest(law, plan.saddle.tilt, plan.log_loss - math.log(parts * part.times))
    offset = part.offset or 0.0
    if part.offset is not None:
        offset = _lattice_knot(part, offset, plan.spacing)
    # Without a lattice nothing is on knots, and a cell as narrow as that may hold all the mass.
    margin = 0.0 if part.offset is None else END_MARGIN
    first = math.floor((low - offset) / plan.spacing + margin)
    last = math.ceil((high - offset) / plan.spacing - margin)
    over_least = offset + first * plan.spacing - part.pair.support[0]
    nearly = END_MARGIN * plan.spacing + 2.0 * part.pair.loss_error
    if part.offset is None and 0.0 <= over_least <= nearly:
        # The least loss may have mass, which a law from below has only if it is in a cell.
        first -= 1
    return LossGrid(offset, plan.spacing, first, max(last, first + 1))


def _lattice_knot(part: GridPart, offset: float, spacing: float) -> float:
    """Return a point of the part's lattice for a knot: the last one, where the grid misses some.

    In any other cell an atom costs little more than a density, but no loss may be rounded up.
    """
    step, high = part.pair.lattice[1] if part.pair.lattice else 0.0, part.pair.support[1]
    ratio = step / spacing
    if part.pure or not high < math.inf or not 0.0 < ratio < MOST_STEPS or ratio == round(ratio):
        return offset
    steps = (high - offset) / step
    return offset + round(steps) * step if steps < MOST_STEPS else offset


def _lowest(law: CoarseLaw, tilt: float, log_rare: float) -> float:
    """Return the highest loss to which all mass below may move without tilted weight."""
    below = np.log(np.cumsum(np.exp(law.log_mass)))[:-1]
    # mass below, at loss t, weighs e^{tilt t} times itself
    limit = (law.cumulants(tilt)[0] + log_rare - below) / tilt
    candidates = np.minimum(limit, law.low[1:])
    candidates = candidates[candidates >= law.high[:-1]]
    return float(max(candidates.max(initial=-math.inf), law.low[0]))


def on_grid(part: GridPart, knots: LossGrid) -> GridLaw:
    """Return the laws of one part; atoms of its lattice may lie on knots."""
    return discretise(part.pair, knots, part.offset is not None)


# A lattice is kept if its spacing is a ratio of integers up to this times the finest one's.
MOST = 64


def common_spacing(spacings: Sequence[float]) -> float | None:
    """Return the largest spacing whose grid contains lattices of all ``spacings``; None if none.

    Equality is up to rounding: a few units in the last place, which the loss error covers.
    """
    finest = min(spacings)
    denominator = 1
    for spacing in spacings:
        ratio = spacing / finest
        if ratio == math.inf:
            return None
        fraction = Fraction(ratio).limit_denominator(MOST)
        if not abs(float(fraction) - ratio) <= 4e-16 * ratio:
            return None
        denominator = math.lcm(denominator, fraction.denominator)
    return finest / denominator if denominator <= MOST**2 else None


def fitting_spacing(
    spacings: Sequence[float], most: float, least: float, tolerance: float
) -> float:
    """Return a spacing in [least, most] that divides all of ``spacings`` nearly, from below.

    A lattice whose spacing is a little more than a multiple of the grid's is rounded down to the
    grid; what that costs, relative to the lattice's spacing, is at most ``tolerance`` if possible.
    """
    longest = max(spacings)
    first = max(math.ceil(longest / most), 1)
    tries = min(max(int(longest / least) - first, 1), 2**18)
    parts = np.arange(first, first + tries)
    worst = np.zeros(tries)
    for spacing in spacings:
        ratio = parts * (spacing / longest)
        whole = np.floor(ratio * (1.0 + 4e-16))
        # Ratios below the doubles are zero.
        lost = np.divide(ratio - whole, ratio, out=np.ones(tries), where=whole > 0)
        worst = np.maximum(worst, lost)
    good = np.flatnonzero(worst <= tolerance)
    # Otherwise the rounding error, for all candidates, by how much finer they are.
    chosen = good[0] if good.size else int(np.argmin(worst))
    return longest / float(parts[chosen])


def lattice_parts(
    used: Sequence[tuple[DominatingPair, int]], laws: Sequence[CoarseLaw]
) -> tuple[tuple[float, ...], tuple[GridPart, ...]]:
    """Return the distinct spacings of the lattices, and the parts."""
    parts, spacings = [], set()
    for (pair, n), law in zip(used, laws, strict=True):
        lattice = pair.lattice
        if lattice is None:
            parts.append(GridPart(pair, n, law, None, False))
        else:
            spacings.add(lattice[1])
            offset = math.remainder(*lattice)
            pure = _is_pure(pair, law, offset, lattice[1])
            parts.append(GridPart(pair, n, law, offset, pure))
    return tuple(sorted(spacings)), tuple(parts)


def _is_pure(pair: DominatingPair, law: CoarseLaw, offset: float, spacing: float) -> bool:
    """Tell whether all masses of the loss are on its lattice."""
    heavy = law.log_mass > -80.0
    if not heavy.any():  # all mass is at infinity
        return False
    low, high = float(law.low[heavy][0]), float(law.high[heavy][-1])
    if not max(abs(low - offset), abs(high - offset)) < 2.0**52 * spacing:
        return False
    first, last = math.floor((low - offset) / spacing), math.ceil((high - offset) / spacing)
    if last - first > 2**17:
        return False
    knots = LossGrid(offset, spacing, first, last)
    masses = pair.masses(edges_around(knots.losses(), knots.margin()))
    return float(np.asarray(masses.p)[2:-1:2].sum()) <= 1e-13


# Share of the tolerance on ε, by the square of the spacing, over tilt and count: the chords of a
# density take a quarter of the tolerance there (Theorem G8). Only widths and speed depend on it.
DENSITY = 2.5
# A grid of few knots is this many times finer: nothing refines the upper end that it gives.
CLOSER = 3.0
# Knots up to which they are few: such a grid takes a fraction of a second.
FEW = 2**21
# A coarser tolerance is rough: its grid is not made finer.
ROUGH = 1e-5
# Deviations of the total loss that a grid spans, about.
DEVIATIONS = 20.0
# Up to this many lattices without a common one have a grid that contains them nearly.
MOST_FITTED = 2


class Spacings:
    """The spacings of the grids of some parts, for a relative width of the answer."""

    def __init__(
        self, lattices: tuple[float, ...], parts: Sequence[GridPart], tolerance: float
    ) -> None:
        self.lattices = lattices
        self.finest = common_spacing(lattices) if lattices else None
        self.pure = all(part.pair.lattice is not None and part.pure for part in parts)
        self._times = sum(part.times for part in parts)
        self._loose = sum(part.times for part in parts if not part.pure) or self._times
        self._tolerance = tolerance

    def needed(self, saddle: Saddle, scale: float) -> float:
        """Return the spacing at which discretisation takes a quarter of the tolerance."""
        allowed = DENSITY * self._tolerance * scale / (saddle.tilt + 1.0)
        # A lattice that is itself the grid has no error, unless it is needlessly fine.
        if self.pure and self.finest and self.finest >= 0.1 * math.sqrt(allowed / self._times):
            return self.finest
        return self.fitted(min(math.sqrt(allowed / self._loose), 0.3 / (saddle.tilt + 1.0)))

    def first(self, saddle: Saddle, scale: float) -> float:
        """Return the spacing of the grid whose upper end is the answer."""
        spacing = self.needed(saddle, scale)
        if (self.pure and spacing == self.finest) or self._tolerance > ROUGH:
            return spacing
        few = CLOSER * DEVIATIONS * saddle.deviation / spacing < FEW
        return self.fitted(spacing / CLOSER) if few else spacing

    def fitted(self, spacing: float) -> float:
        """Return a spacing of at most ``spacing`` whose grid fits the lattices."""
        if not self.lattices or max(self.lattices) < 4.0 * spacing:
            return spacing
        if self.finest is None:
            if len(self.lattices) > MOST_FITTED and not self.pure:
                return spacing  # no grid fits all; the largest losses lie on knots anyway
            return fitting_spacing(self.lattices, spacing, 0.1 * spacing, 0.2 * self._tolerance)
        if self.finest >= spacing:
            return self.finest / math.ceil(self.finest / spacing)
        return self.finest * math.floor(spacing / self.finest)
