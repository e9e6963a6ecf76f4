"""The parts of a composition: where their knots are, and their laws on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from accountant._rounding import TINY, sum_up, times_up, up
from accountant.analyses.pld.atom_grid import discretise_atoms
from accountant.analyses.pld.atom_spacing import has_few_atoms, heaviest_atom
from accountant.analyses.pld.loss_grid import GridLaw, LossGrid, discretise
from accountant.analyses.pld.narrow_law import discretise_narrow
from accountant.analyses.pld.saddle_point import FAR, CoarseLaw, Saddle
from accountant.analyses.pld.tail_grid import discretise_tails
from accountant.errors import PrecisionError
from accountant.pairs.atoms import Atoms
from accountant.pairs.base import DominatingPair

# Tilts of a cell, in nats, beyond which chords over its losses say nothing and one knot rules.
STEEPEST = 50.0
# The tilts of larger losses have squares below the doubles.
MOST_LOSS = 1e150
# So many times the mass above the grid, all that is moved down to its last knot is rare.
RARE = 100.0
# A grid so much coarser than a lattice misses it. Its losses are looked at one by one where that
# costs a 25th of what is allowed elsewhere, since many in a cell are as good as a density.
COARSER, CHEAPER = 0.75, 25.0
# The logarithm of a δ beside which masses that are off by 1e-300 are looked at.
FAINT = -620.0
# Knots up to which a narrow law has its few cells divided.
MOST_CELLS = 64


class GridPart(NamedTuple):
    """A pair, how often it runs, its coarse law, and its lattice where the grid contains it."""

    pair: DominatingPair
    times: int
    law: CoarseLaw
    offset: float | None
    pure: bool  # all finite losses are on that lattice
    spacing: float = 0.0  # of the lattice
    dense: bool = False  # finitely many losses in cells, as those of a density

    @property
    def has_atoms(self) -> bool:
        """Whether each of its losses is looked at."""
        return not self.dense and self.pair.loss_atoms is not None

    def off_lattice(self, *, dense: bool) -> GridPart:
        """Return the part with losses anywhere in the cells, looked at unless they are dense."""
        return self._replace(offset=None, pure=False, dense=dense)

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

    def seen_atoms(self) -> Atoms | None:
        """Return the atoms that the coarse law has, where the loss is discrete."""
        table = self.pair.loss_atoms if self.has_atoms else None
        if table is None:
            return None
        seen = table.loss <= self.law.high[-1]
        return table._replace(loss=table.loss[seen], p=table.p[seen], q=table.q[seen])


class GridPlan(NamedTuple):
    """The plan of a composition: saddle point, spacing, and limits on the omitted masses."""

    saddle: Saddle
    spacing: float
    log_tail: float  # of the mass above the grid, relative to one
    log_loss: float  # of the tilted mass outside the grid or the window
    upper_alone: bool = False  # nothing is asked from below


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
    elif (table := part.seen_atoms()) is not None:
        offset = heaviest_atom(table, plan.saddle.tilt)
    margin = 1e-9  # an atom at an end is a knot, not in the cell beyond it
    first = math.floor((low - offset) / plan.spacing + margin)
    last = math.ceil((high - offset) / plan.spacing - margin)
    over_least = offset + first * plan.spacing - part.pair.support[0]
    nearly = margin * plan.spacing + 2.0 * part.pair.loss_error
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
    if part.pure or not high < math.inf or not 0.0 < ratio < 2.0**40 or ratio == round(ratio):
        return offset
    steps = (high - offset) / step
    return offset + round(steps) * step if steps < 2.0**40 else offset


def _lowest(law: CoarseLaw, tilt: float, log_rare: float) -> float:
    """Return the highest loss to which all mass below may move without tilted weight."""
    below = np.log(np.cumsum(np.exp(law.log_mass)))[:-1]
    # mass below, at loss t, weighs e^{tilt t} times itself
    limit = (law.cumulants(tilt)[0] + log_rare - below) / tilt
    candidates = np.minimum(limit, law.low[1:])
    candidates = candidates[candidates >= law.high[:-1]]
    return float(max(candidates.max(initial=-math.inf), law.low[0]))


def on_grid(part: GridPart, knots: LossGrid, plan: GridPlan, size: float) -> GridLaw:
    """Return the laws of one part; ``size`` is the number of knots of the total loss."""
    table, tilt = part.pair.loss_atoms if part.has_atoms else None, plan.saddle.tilt
    missed = part.spacing < COARSER * knots.spacing
    contained = part.pure and not missed
    # Cells of a lattice would do, but for masses under Q that are below the doubles, and for masses
    # of cells, whose error of 1e-300 shows in a δ like that.
    small = table is not None and table.absolute_error < TINY and plan.saddle.log_delta < FAINT
    if table is not None and contained and not small and np.abs(table.loss).max() < FAR:
        table = None
    few = is_looked_at(part, knots, tilt, size)
    if table is not None and (few or (contained and small)):
        bounded = math.isfinite(part.pair.support[1])
        law = discretise_atoms(table, knots, bounded=bounded, snap=part.offset is not None)
        if law.atoms is None or tilt * knots.spacing <= STEEPEST:
            return law
    if part.offset is None or missed:
        narrow = _narrow(part, knots, tilt)
        if narrow is not None:
            return narrow
    law_of_tails = discretise_tails(part.pair, knots) if part.offset is None else None
    return law_of_tails or discretise(part.pair, knots, part.offset is not None)


def is_looked_at(part: GridPart, knots: LossGrid, tilt: float, size: float) -> bool:
    """Tell whether the losses of a part are few enough to be looked at at ``size`` frequencies."""
    missed = part.spacing < COARSER * knots.spacing
    seen, work = part.seen_atoms(), size * (CHEAPER if part.pure and missed else 1.0)
    return seen is not None and has_few_atoms(seen, tilt, work)


def _narrow(part: GridPart, knots: LossGrid, tilt: float) -> GridLaw | None:
    """Return the laws of losses that hardly leave one cell, whose tangents would be far from them.

    None where they do.
    """
    if knots.last - knots.first > MOST_CELLS or not tilt * knots.spacing <= STEEPEST:
        return None
    _, mean, variance = part.law.cumulants(tilt)
    if not 0.0 < variance < knots.spacing**2 or not knots.reach() < FAR:
        return None
    return discretise_narrow(part.pair, knots, mean, math.sqrt(variance))


def without_top(law: GridLaw, log_rare: float, times: int) -> GridLaw:
    """Return the law with the lower one's mass at the top left out where it is rare (Theorem G1).

    It is that of all losses above the grid. Tilted, it would rule the mass outside the window.
    """
    if law.atoms is not None or not times * law.lower[-1] <= RARE * math.exp(log_rare):
        return law
    lower = law.lower.copy()
    lower[-1] = 0.0
    return law._replace(lower=lower)
