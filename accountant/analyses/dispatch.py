"""The solver of one direction of one composition, by what its parts offer."""

from __future__ import annotations

import math
from collections.abc import Callable

from accountant.analyses.solvers import (
    Contour,
    Grid,
    MergedGaussian,
    Nothing,
    Parts,
    Renyi,
    Solver,
)
from accountant.bounds import Bounds
from accountant.errors import AccountantError, UnsupportedError
from accountant.mechanisms.base import offers

__all__ = ["Hulls", "solver"]


class Hulls(Solver):
    """Parts known by a hull, on a grid, and by a curve, by Rényi divergences: the lesser.

    A hull dominates, and its own profile is above that of what it stands for: there is no lower
    end. The curves are None where a part has none.
    """

    name = "grid"
    reason = "what shares a sample, or has no order, has the hull of its profile on one grid"

    def __init__(self, parts: Parts, hulls: Parts, curves: Renyi | None) -> None:
        super().__init__(parts)
        self._grid, self._curves = Grid(hulls), curves

    def epsilon_bounds(self, delta: float) -> Bounds:
        """Bound ε(delta) from above by the hulls, and by the curves."""
        return self._narrower(lambda one: one.epsilon_bounds(delta))

    def delta_bounds(self, epsilon: float) -> Bounds:
        """Bound δ(epsilon) from above by the hulls, and by the curves."""
        return self._narrower(lambda one: one.delta_bounds(epsilon))

    def glance(self, *, delta: float | None = None, epsilon: float | None = None) -> float:
        """Ask the roughest grid of the hulls."""
        return self._grid.glance(delta=delta, epsilon=epsilon)

    def _narrower(self, ask: Callable[[Solver], Bounds]) -> Bounds:
        try:
            known = math.inf if self._curves is None else float(ask(self._curves).upper)
        except UnsupportedError:  # some part has a hull and no curve
            known = math.inf
        try:
            return Bounds(0.0, min(float(ask(self._grid).upper), known))
        except AccountantError:
            if known == math.inf:
                raise
            return Bounds(0.0, known)

    _epsilon, _delta = epsilon_bounds, delta_bounds


def solver(parts: Parts) -> Solver:
    """Choose the analysis for the parts of one direction."""
    if not parts:
        return Nothing(parts)
    gaussian = [pair.gaussian_part for pair, _ in parts]
    if all(part is not None for part in gaussian):
        if all(part.sampling_probability == 1.0 for part in gaussian if part is not None):
            return MergedGaussian(parts)
        if len({part.add for part in gaussian if part and part.sampling_probability < 1.0}) == 1:
            return Contour(parts)
    lacking = [pair for pair, _ in parts if not offers(pair, "masses")]
    if not lacking:
        return Grid(parts)
    mute = [pair for pair, _ in parts if not offers(pair, "rdp")]
    if (found := _of_hulls(parts, bool(mute))) is not None:
        return found
    if mute:
        raise UnsupportedError(
            f"{type(lacking[0]).__name__} is known by its Rényi curve alone and"
            f" {type(mute[0]).__name__} by its loss distribution alone: no analysis takes both."
            " Account them apart, and add up ε and δ"
        )
    return Renyi(parts)


def _of_hulls(parts: Parts, mute: bool) -> Solver | None:
    """Return the analysis of hulls in place of parts without a loss distribution, if all do."""
    try:
        hulls = [(pair if offers(pair, "masses") else pair.hull, n) for pair, n in parts]
        known = tuple((hull, n) for hull, n in hulls if hull is not None)
        if len(known) < len(hulls):
            return None
        return Hulls(parts, known, None if mute else Renyi(parts))
    except AccountantError:
        # A profile out of reach: divergences are left, as without a hull.
        return None
