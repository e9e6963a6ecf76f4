"""The explanation of an answer: its analysis, the reason, and the account of each part."""

from __future__ import annotations

import math
from typing import NamedTuple

from accountant import checks
from accountant.analyses import renyi_conversion
from accountant.analyses.by_groups import Apart, ByGroups
from accountant.analyses.dispatch import cached_solver
from accountant.analyses.replacement_beside import BesideGame
from accountant.analyses.replacement_steps import ReplacementGame
from accountant.analyses.solver import Solver
from accountant.analyses.solvers import BesideGrid, MergedGaussian, Nothing, OneRelease, Renyi
from accountant.bounds import Bounds
from accountant.composition.problems import counted_alternatives, directions, symmetrised_pairs
from accountant.environment import to_nearest
from accountant.errors import AccountantError
from accountant.mechanisms.base import Contribution, Counted, Explanation, Mechanism, relative_width
from accountant.pairs.base import DominatingPair, Parts, has_pld, has_rdp, offers

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
    if isinstance(solver, OneRelease):
        return PROFILE
    if not has_pld(pair):
        is_alone = not offers(pair, "pld_upper_pair")
        return CURVE if is_alone else UPPER_PAIR
    if pair.loss_atoms is None:
        return DENSITY
    return ATOMS if pair.lattice is None else LATTICE


# Parts of which each is left out once, to see how much narrower the bracket is without it.
MOST_PARTS = 8


@to_nearest
def explain(mechanism: Mechanism, delta: object) -> Explanation:
    """Say which analysis answers ε(delta), why, and what each part contributes."""
    delta = checks.number(checks.DELTA, delta)
    whole = mechanism.epsilon_bounds(delta)
    rows = []
    for alternative in counted_alternatives(mechanism):
        ways = directions(alternative)
        for i, parts in enumerate(ways):
            spent = float(cached_solver(parts).epsilon_bounds(delta).upper)
            rows.append((spent, -i, alternative, parts, ways))
    _, index, alternative, parts, ways = max(rows, key=lambda row: row[:2])
    used = cached_solver(parts)
    names = ("both",) if len(ways) == 1 else ("remove", "add")
    shares = _shares(alternative, -index, parts, delta)
    widths = _widths(alternative, whole, delta)
    found, lone = [], sum(n for _, n in alternative) == 1
    for (m, n), share, width in zip(alternative, shares, widths, strict=True):
        account = account_of(
            used,
            _pair(m, -index, alternative),
            relative_width(whole),
            width,
            attained=m.attained_alone if lone else m.attained,
        )
        alone = float((n * m).epsilon(delta)) if n else 0.0
        found.append(Contribution(m, n, alone, share, account.account, width, account.narrower))
    found.sort(key=lambda row: -(row.share if row.share is not None else row.epsilon))
    return Explanation(
        used.name, used.reason, names[-index], whole, delta, mechanism.relation.words, tuple(found)
    )


def _pair(mechanism: Mechanism, direction: int, alternative: Counted) -> DominatingPair:
    """Return the mechanism's pair of a direction, as it composes with the others."""
    lone = sum(n for _, n in alternative) == 1
    pairs = mechanism.pairs() if lone else symmetrised_pairs(mechanism)
    return pairs[-1] if direction else pairs[0]


def _widths(alternative: Counted, whole: Bounds, delta: float) -> list[float | None]:
    """Return by how much of its width the bracket narrows without each part."""
    width = float(whole.width)
    if len(alternative) == 1:
        return [1.0 if 0.0 < width < math.inf else None]
    if not 0.0 < width < math.inf or len(alternative) > MOST_PARTS:
        return [None] * len(alternative)
    found: list[float | None] = []
    for left_out in alternative:
        first, *rest = [part for part in alternative if part is not left_out]
        others = sum((n * m for m, n in rest), first[1] * first[0])
        try:
            without = float(others.epsilon_bounds(delta).width)
        except AccountantError:
            found.append(None)
            continue
        found.append(min(max(1.0 - without / width, 0.0), 1.0))
    return found


def _shares(alternative: Counted, direction: int, parts: Parts, delta: float) -> list[float | None]:
    """Return each mechanism's share of the divergence at the best order."""
    if not parts or not all(has_rdp(pair) for pair, _ in parts):
        return [None] * len(alternative)
    order = renyi_conversion.best_order(parts, max(delta, 1e-12))
    if order == math.inf:
        return [None] * len(alternative)
    each = [n * _divergence(m.pairs(), direction, order) for m, n in alternative]
    whole = math.fsum(each)
    return [x / whole if 0.0 < whole < math.inf else None for x in each]


def _divergence(pairs: tuple[DominatingPair, ...], direction: int, order: float) -> float:
    pair = pairs[-1] if direction else pairs[0]
    return pair.finite_rdp(order) if pair.pure_epsilon > 0.0 else 0.0
