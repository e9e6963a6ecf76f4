"""How far apart the knots of a composition are. Nothing here touches validity."""

from __future__ import annotations

import math
from collections.abc import Sequence

from accountant.analyses.pld.grid_parts import GridPart
from accountant.analyses.pld.lattice import common_spacing, fitting_spacing
from accountant.analyses.pld.saddle_point import Saddle

# Share of the tolerance on ε, by the square of the spacing, over tilt and count: the chords of a
# density take half of the tolerance there (Theorem G8).
DENSITY = 5.5
# A grid of few knots is this many times finer: nothing refines the upper end that it gives.
CLOSER = 3.0
# Knots up to which they are few: such a grid takes a fraction of a second.
FEW = 2**20
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
        """Return the spacing at which discretisation takes half of the tolerance (Theorem G8)."""
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
