"""How far apart the knots of a composition are. Nothing here touches validity."""

from __future__ import annotations

import math
from collections.abc import Sequence

from accountant.analyses.pld.atom_spacing import MOST_LOOKED_AT, has_few_atoms, widest_spacing
from accountant.analyses.pld.grid_parts import GridPart
from accountant.analyses.pld.lattice import common_spacing, fitting_spacing
from accountant.analyses.pld.saddle_point import Saddle

# Lattices up to this many, incommensurate, are looked for a grid that contains all nearly.
MOST_FITTED = 2
# Where so many deviations of the total loss are so many knots, a coarser grid is tried first.
DEVIATIONS, LARGE, COARSER = 20.0, 2**15, 6.0
ROUGH = 1e-5  # tolerances of grids that are coarse anyway
# Nothing refines a grid of upper ends alone, so it is so much finer where it has few knots.
CLOSER, FEW = 3.0, 2**20
# Shares of the tolerance on ε, by the square of the spacing, over tilt and count: of densities, and
# of few atoms (Theorem G8).
DENSITY, ATOMS = 5.5, 1.5
# A grid that contains all lattices is given up where another is so many times coarser, though not
# if it has fewer knots than ``MANY``. Losses are dense with so many in a cell.
NEEDLESS, MANY, DENSE, MOST_CELLS = 3.0, 2**21, 4.0, 2.0**40
# Releases of a part whose characteristic function, to that power, is negligible but at a few
# frequencies.
OFTEN = 10_000


class Spacings:
    """The spacings of the grids of some parts, for a relative width of the answer.

    ``upper_alone`` tells that only upper ends matter; ``contained``, that a part with many losses
    is on the one lattice.
    """

    def __init__(
        self,
        lattices: tuple[float, ...],
        parts: Sequence[GridPart],
        tolerance: float,
        *,
        upper_alone: bool,
        contained: bool = False,
    ) -> None:
        self.lattices = lattices
        self.finest = common_spacing(lattices) if lattices else None
        self._parts = parts
        self._tolerance = tolerance
        self._upper_alone = upper_alone
        self._contained = contained
        self.pure = all(part.pure for part in parts)
        self.atoms = any(part.has_atoms and not part.pure for part in parts)

    def _allowed(self, share: float, saddle: Saddle, scale: float) -> float:
        return share * self._tolerance * scale / (saddle.tilt + 1.0)

    def _most(self, saddle: Saddle) -> float:
        return 0.3 / (saddle.tilt + 1.0)

    def loosened(
        self, saddle: Saddle, scale: float
    ) -> tuple[tuple[float, ...], tuple[GridPart, ...]] | None:
        """Return other lattices and parts, where a grid that contains all is needlessly fine.

        Upper ends have chords over any losses. Lower ends have them too where the losses are few or
        dense, as those of all lattices but one must be. None where this gains nothing.
        """
        if not self.pure:
            return self._without_lattices(saddle, scale)
        knots = DEVIATIONS * saddle.deviation / self.finest if self.finest else math.inf
        if len(self.lattices) < 2 or knots < MANY:
            return None
        if self._upper_alone:
            found, kept = self._cells(self._parts, DENSITY, saddle, scale), 0.0
            parts = [part.off_lattice(dense=True) for part in self._parts]
        else:
            found, kept, parts = max(
                (self._beside(each, saddle, scale) for each in self.lattices),
                key=lambda tried: tried[0],
            )
        if found < NEEDLESS * (self.finest or self._common(saddle)):
            return None
        return (kept,) if kept > 0.0 else (), tuple(parts)

    def _without_lattices(
        self, saddle: Saddle, scale: float
    ) -> tuple[tuple[float, ...], tuple[GridPart, ...]] | None:
        """Return all parts with their few losses anywhere, where other losses rule the spacing."""
        tables = [(part.seen_atoms(), part.times) for part in self._parts]
        atoms = [(t, n) for t, n in tables if t is not None and has_few_atoms(t, saddle.tilt, 1)]
        if not self.lattices or len(atoms) < len(tables):
            return None
        cells = self._cells(self._parts, ATOMS, saddle, scale)
        found = min(widest_spacing(atoms, saddle.tilt, cells), self._most(saddle))
        size = self._frequencies(saddle, found)
        if not all(has_few_atoms(table, saddle.tilt, size) for table, _ in atoms):
            return None
        needed = self._needed(self._parts, saddle, scale)
        # Between the knots of a grid that misses a lattice it has few losses, not a density.
        knots = 1.0 if self.finest is None else self.finest / needed
        contained = knots >= 0.5 and abs(knots - round(knots)) <= 1e-9 * knots
        if contained and found < NEEDLESS * needed:
            return None
        return (), tuple(part.off_lattice(dense=False) for part in self._parts)

    def _beside(
        self, kept: float, saddle: Saddle, scale: float
    ) -> tuple[float, float, list[GridPart]]:
        """Return a spacing for all parts on a grid with one lattice, the lattice, and the parts.

        The spacing is 0 where lower ends of some part would be of first order.
        """
        others = [part for part in self._parts if part.spacing != kept]
        cells = self._cells(others, ATOMS, saddle, scale)
        spacing = kept / math.ceil(kept / cells) if kept / cells < MOST_CELLS else cells
        size, parts = self._frequencies(saddle, spacing), []
        for part in self._parts:
            table, dense = part.pair.loss_atoms, DENSE * part.spacing <= spacing
            few = table is not None and has_few_atoms(table, saddle.tilt, size)
            if part.spacing != kept and not (few or dense):
                return 0.0, kept, []
            parts.append(part if part.spacing == kept else part.off_lattice(dense=not few))
        return spacing, kept, parts

    def _frequencies(self, saddle: Saddle, spacing: float) -> float:
        """Return at how many frequencies losses are looked at, roughly (Theorems G10, G11)."""
        size = DEVIATIONS * saddle.deviation / spacing
        often = max(part.times for part in self._parts) >= OFTEN
        return min(size, MOST_LOOKED_AT) if often else size

    def _cells(
        self, parts: Sequence[GridPart], share: float, saddle: Saddle, scale: float
    ) -> float:
        """Return the spacing at which the cells of the parts take half of the tolerance."""
        count = sum(part.times for part in parts)
        return min(math.sqrt(self._allowed(share, saddle, scale) / count), self._most(saddle))

    def _common(self, saddle: Saddle) -> float:
        """Return the spacing of a grid that contains all lattices, nearly."""
        most = self._most(saddle)
        return fitting_spacing(self.lattices, most, 1e-5 * most, 0.2 * self._tolerance)

    def _needed(self, parts: Sequence[GridPart], saddle: Saddle, scale: float) -> float:
        """Return the spacing at which discretisation takes half of the tolerance (Theorem G8)."""
        tables = [(part.seen_atoms(), part.times) for part in parts if not part.pure]
        atoms = [(t, n) for t, n in tables if t is not None and has_few_atoms(t, saddle.tilt, 1)]
        allowed = self._allowed(ATOMS if atoms else DENSITY, saddle, scale)
        most = self._most(saddle)
        everything = sum(part.times for part in self._parts)
        # A lattice that is itself the grid has no error, unless it is needlessly fine.
        if self.pure and self.finest and self.finest >= 0.1 * math.sqrt(allowed / everything):
            return self.finest
        loose = sum(part.times for part in self._parts if not part.pure) or everything
        if self.pure and self.finest is None:
            return self._common(saddle)
        spacing = min(math.sqrt(allowed / loose), most)
        if atoms and not self.lattices:
            spacing = min(widest_spacing(atoms, saddle.tilt, spacing), most)
        return self.fitted(spacing)

    def first(self, parts: Sequence[GridPart], saddle: Saddle, scale: float) -> float:
        """Return a spacing whose bracket tells, at little cost, how fine a large grid must be."""
        spacing = self._needed(parts, saddle, scale)
        knots = DEVIATIONS * saddle.deviation / spacing
        if self._upper_alone:
            contained = self.pure and spacing == self.finest
            few = not contained and self._tolerance <= ROUGH and CLOSER * knots < FEW
            return self.fitted(spacing / CLOSER) if few else spacing
        if knots < LARGE or self._tolerance > ROUGH or self.atoms or self.pure:
            return spacing
        return self.fitted(COARSER * spacing)

    def fitted(self, spacing: float) -> float:
        """Return a spacing of at most ``spacing`` whose grid fits the lattices."""
        if not self.lattices:
            return spacing
        if max(self.lattices) < 4.0 * spacing and not self._contained:
            return spacing
        if self.finest is None:
            if len(self.lattices) > MOST_FITTED and not self.pure:
                return spacing  # no grid fits all; the largest losses lie on knots anyway
            return fitting_spacing(self.lattices, spacing, 0.1 * spacing, 0.2 * self._tolerance)
        if self.finest >= spacing:
            return self.finest / math.ceil(self.finest / spacing)
        return self.finest * math.floor(spacing / self.finest)
