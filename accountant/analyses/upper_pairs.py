"""The analysis of parts without a loss distribution, by pairs that dominate them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from accountant.analyses import renyi_conversion
from accountant.analyses.solver import Question, Solver
from accountant.analyses.solvers import TOLERANCES, Grid, Renyi
from accountant.bounds import Bounds
from accountant.errors import AccountantError, UnsupportedError
from accountant.pairs.base import DominatingPair, Parts, has_pld, has_rdp
from accountant.pairs.product import total
from accountant.pairs.profile_pair import ProfilePair

# A conversion of Rényi curves loses parts in a thousand: grids beside it need no more digits.
ROOMY = (1e-5, *TOLERANCES[1:])


@dataclass(frozen=True)
class CurveBounds:
    """Bounds on the profile of a composition by Rényi curves alone."""

    parts: Parts

    def delta(self, epsilon: float) -> float:
        """Bound the profile."""
        return renyi_conversion.delta_upper(self.parts, epsilon, _curve(self.parts), floats=True)

    def rdp(self, order: float) -> float:
        """Bound the Rényi divergence."""
        return total((pair.rdp(order), n) for pair, n in self.parts)

    @property
    def pure_epsilon(self) -> float:
        """Bound the loss."""
        return total((pair.pure_epsilon, n) for pair, n in self.parts)


@lru_cache(maxsize=8)
def _curve(parts: Parts) -> Callable[[float], float]:
    # Hundreds of values of the profile scan the same orders.
    return lru_cache(maxsize=4096)(renyi_conversion.curve_of(parts))


def dominating(parts: Parts) -> Parts:
    """Return parts with a loss distribution that dominate the given ones.

    A pair may know one from other answers. The divergences of all others add up, and convert to a
    bound on their joint profile (Theorems M12 and C10), whose chords are a loss distribution
    (Theorem P7).
    """
    found: list[tuple[DominatingPair, int]] = []
    curves: list[tuple[DominatingPair, int]] = []
    for pair, n in parts:
        upper = pair if has_pld(pair) else _upper_pair(pair)
        if upper is not None:
            found.append((upper, n))
        elif has_rdp(pair):
            curves.append((pair, n))
        else:
            raise UnsupportedError(
                f"{type(pair).__name__} has no capability that an analysis uses: a loss"
                " distribution (masses), a Rényi curve (rdp) or the parameters of Gaussian noise"
                " (gaussian_part)"
            )
    if curves:
        found.append((ProfilePair(CurveBounds(tuple(curves))), 1))
    return tuple(found)


def _upper_pair(pair: DominatingPair) -> DominatingPair | None:
    try:
        return pair.pld_upper_pair()
    except AccountantError:
        # The profile could not be computed. Rényi divergences remain, as without such a pair.
        return None


class UpperPairs(Solver):
    """The smaller of two bounds: dominating pairs on a grid, and Rényi curves.

    A dominating pair bounds the profile from above only, so the lower end is 0.
    """

    name = "grid"
    reason = (
        "what shares a sample, has no order or is known by its Rényi curve alone has a pair that"
        " dominates its profile, on one grid"
    )

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        pairs = dominating(parts)
        has_curve = any(isinstance(pair, ProfilePair) for pair, _ in pairs)
        self._grid = Grid(pairs, ROOMY if has_curve else TOLERANCES)
        self._curves = Renyi(parts) if all(has_rdp(pair) for pair, _ in parts) else None

    def quick(self, asked: Question) -> float:
        """Evaluate the coarsest grid of the dominating pairs."""
        return self._grid.quick(asked)

    def answer(self, asked: Question) -> Bounds:
        """Return the lesser of the bounds by the dominating pairs and by the curves, and 0."""
        asked = asked._replace(both=False)
        try:
            known = math.inf if self._curves is None else float(self._curves.answer(asked).upper)
        except UnsupportedError:  # some part has a dominating pair and no curve
            known = math.inf
        try:
            known = min(float(self._grid.answer(asked).upper), known)
        except AccountantError:
            if known == math.inf:
                raise
        return Bounds(0.0, known)
