"""Both directions of one composition of Gaussian releases, asked at once.

The direction that removes a record nearly always costs more. Chernoff's bound then shows at a
fraction of the price that the other one costs less, and no line is built for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from accountant.analyses import mixed
from accountant.analyses.brackets import is_within
from accountant.analyses.solvers import WIDE, Contour, Solver
from accountant.bounds import Bounds


def epsilon_bounds(solvers: Sequence[Solver], delta: float) -> Bounds | None:
    """Bracket the worst ε(delta), or return None where the solvers are to be asked one by one.

    They are where they are not the two directions of one composition of different parts, or where
    the bracket is wide: a grid may then be narrower.
    """
    if len(solvers) != 2 or type(solvers[0]) is not Contour or delta == 0.0:
        return None
    if solvers[0].variation <= delta:
        return None
    (first, one_adds), (second, other_adds) = (_rows(one) for one in solvers)
    if not first or first != second or one_adds == other_adds:
        return None
    return narrow_bracket(first, delta)


def narrow_bracket(rows: tuple[mixed.Part, ...], delta: float) -> Bounds | None:
    """Bracket ε(delta) of different parts in both directions; None where it is wide."""
    found = _bracket(rows, delta)
    return found if is_within(found, WIDE) else None


def _rows(solver: Solver) -> tuple[tuple[mixed.Part, ...], bool]:
    """Return what a line is built for, and whether it adds; a plain part is its own reverse.

    Nothing where the ends of a bracket need different lines.
    """
    if type(solver) is not Contour or len(solver.parts) < 2:
        return (), False
    if not all(pair.exact for pair, _ in solver.parts):
        return (), False
    rows = tuple([mixed.Part(q, sigma, n) for (q, sigma, _), n in solver.upper])
    return rows, any(part.add for part, _ in solver.upper)


@lru_cache(maxsize=256)
def _bracket(rows: tuple[mixed.Part, ...], delta: float) -> Bounds:
    return Bounds(*mixed.epsilon_bounds(rows, delta, mixed.EITHER))
