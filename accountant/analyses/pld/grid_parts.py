"""The parts of a composition: where their knots are, and their laws on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from accountant._rounding import sum_up, times_up, up
from accountant.analyses.pld.loss_grid import GridLaw, LossGrid, discretise
from accountant.analyses.pld.saddle_point import CoarseLaw, Saddle
from accountant.errors import PrecisionError
from accountant.pairs.base import DominatingPair

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
