"""Both directions of one composition of Gaussian releases, asked at once.

The direction that removes a record nearly always costs more. Chernoff's bound then shows at a
fraction of the price that the other one costs less, and no line is built for it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from accountant.analyses import mixed
from accountant.analyses.brackets import is_within
from accountant.analyses.gaussian_parts import gaussian_part
from accountant.analyses.solvers import WIDE, Contour, Solver
from accountant.bounds import Bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["epsilon_bounds"]


def epsilon_bounds(solvers: Sequence[Solver], delta: float) -> Bounds | None:
    """Bracket the worst ε(delta), or return None where the solvers are to be asked one by one.

    They are where they are not the two directions of one composition of different parts, or where
    the bracket is wide: a grid may then be narrower.
    """
    if len(solvers) != 2 or delta == 0.0 or solvers[0].variation <= delta:
        return None
    first, second = (_rows(one) for one in solvers)
    if first is None or first != second or len({_adds(one) for one in solvers}) != 2:
        return None
    found = _bracket(first, delta)
    return found if is_within(found, WIDE) else None


def _adds(solver: Solver) -> bool:
    """Tell the direction; a plain part is its own reverse."""
    return any(gaussian_part(pair).add for pair, _ in solver.parts)


def _rows(solver: Solver) -> tuple[mixed.Part, ...] | None:
    """Return what a line is built for; None where the ends of a bracket need different ones."""
    if type(solver) is not Contour or len(solver.parts) < 2:
        return None
    rows = []
    for pair, n in solver.parts:
        if not pair.exact:
            return None
        part = gaussian_part(pair)
        rows.append(mixed.Part(part.sampling_probability, part.noise_multiplier, n))
    return tuple(rows)


@lru_cache(maxsize=256)
def _bracket(rows: tuple[mixed.Part, ...], delta: float) -> Bounds:
    return Bounds(*mixed.epsilon_bounds(rows, delta, mixed.EITHER))
