"""Which account one part of a composition gets, and what would narrow it."""

from __future__ import annotations

from typing import NamedTuple

from accountant.analyses.apart import Apart
from accountant.analyses.by_groups import ByGroups
from accountant.analyses.closed_forms import MergedGaussian, Nothing
from accountant.analyses.inverted_profile import InvertedProfile
from accountant.analyses.replacement_beside import BesideGame
from accountant.analyses.replacement_steps import ReplacementGame
from accountant.analyses.solvers import BesideGrid, Renyi, Solver
from accountant.pairs.base import DominatingPair, has_pld

# Brackets no wider than this, relatively, are as narrow as rounding leaves them.
ROUNDED = 1e-9
# The width, relatively, that the spacing of a grid may account for.
GRID = 1e-5
EXACT = "nothing: the bracket is exact to round-off"
# A part without which the bracket is as wide, nearly.
SMALL = 0.01
OTHERS = "nothing of its own: the width is that of other parts"


class PartAccount(NamedTuple):
    """The account of a part, and what would narrow it, as sentences."""

    account: str
    narrower: str


CLOSED = PartAccount("closed form", EXACT)
FAILS = PartAccount("its δ alone, set apart exactly", EXACT)
CONTOUR = PartAccount(
    "its transform, inverted on a contour",
    "a larger δ, or more releases of this kind: the transform of few releases decays slowly",
)
LATTICE = PartAccount(
    "its atoms, on a grid that contains their lattice where all parts share one",
    "parts whose losses lie on one lattice, or fewer kinds of parts",
)
ATOMS = PartAccount(
    "its atoms, on a grid with chords between the knots",
    "fewer kinds of parts, or more releases of this kind: few heavy atoms fall between knots",
)
DENSITY = PartAccount(
    "its loss distribution, on a grid with chords between the knots",
    "a larger δ, or fewer kinds of parts: the grid is then finer",
)
PROFILE = PartAccount(
    "its own profile, inverted",
    "a larger δ: the round-off of the profile is then smaller beside it",
)
ATTAINED = PartAccount(
    "a pair that dominates it and that no data are known to reach, from below what some do reach",
    "the loss distribution of the mechanism itself, by LossDistribution or DominatingPMFs: what"
    " other data sets reach lies between the ends",
)
UPPER_PAIR = PartAccount(
    "a pair that dominates its profile from above only, on a grid",
    "a release whose own loss distribution is known: a sample for each release in place of one"
    " that several share, or sets of records that are fixed in advance",
)
GAME = PartAccount(
    "the profile of its best adversary, from below a record that stands out",
    "nothing known: what other data sets reach lies between the ends",
)
UNPLAYED = PartAccount(
    "a pair that dominates its steps, on a grid, from below a record that stands out",
    "at most 5,000 steps, and noise of a third to ten contributions: their adversary is followed",
)
CURVE = PartAccount(
    "its Rényi curve, converted from above only",
    "its loss distribution in place of the curve: the mechanism itself, DominatingPMFs or"
    " LossDistribution",
)


def account_of(
    solver: Solver, pair: DominatingPair, width: float, share: float | None, *, attained: bool
) -> PartAccount:
    """Return the account that a pair gets from the solver of its composition.

    ``width`` is that of the bracket of ε, relative to its upper end, and ``share`` how much of it
    is gone without the part, where known. ``attained`` tells whether data sets reach the pair.
    """
    found = _account(solver, pair)
    if not attained and width > GRID and found in (DENSITY, ATOMS, LATTICE):
        found = ATTAINED
    if width <= ROUNDED:
        return found._replace(narrower=EXACT)
    return found._replace(narrower=OTHERS) if share is not None and share < SMALL else found


def _account(solver: Solver, pair: DominatingPair) -> PartAccount:
    if isinstance(solver, Apart):
        failing = any(pair == each for each, _ in solver.failing)
        return FAILS if failing else _account(solver.rest, pair)
    if isinstance(solver, ByGroups):
        return _account(solver.together, pair)
    if isinstance(solver, (MergedGaussian, Nothing)):
        return CLOSED
    if isinstance(solver, ReplacementGame):
        return GAME if solver.is_played else UNPLAYED
    if isinstance(solver, BesideGame):
        if pair == solver.played:
            return GAME if solver.is_played else UNPLAYED
        return _account(solver.together, pair)
    if isinstance(solver, BesideGrid):
        return CONTOUR
    if isinstance(solver, Renyi):
        return CURVE
    if isinstance(solver, InvertedProfile):
        return PROFILE
    if not has_pld(pair):
        is_alone = type(pair).pld_upper_pair is DominatingPair.pld_upper_pair
        return CURVE if is_alone else UPPER_PAIR
    if pair.loss_atoms is None:
        return DENSITY
    return ATOMS if pair.lattice is None else LATTICE
