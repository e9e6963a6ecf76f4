"""The parts of a composition on a grid: their knots, and two laws that enclose each (G1-G3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
