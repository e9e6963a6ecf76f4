"""How far apart the knots of a composition are, so that its atoms are knots where they can be.

Nothing here touches validity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from accountant.analyses.pld.loss_grid import GridPart, LossGrid, edges_around
from accountant.analyses.pld.saddle_point import CoarseLaw, Saddle
from accountant.pairs.base import DominatingPair

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
