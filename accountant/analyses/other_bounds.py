"""Bounds on ε that hold whatever the analysis: by the largest finite losses, and by GDP."""

from __future__ import annotations

import math

from accountant._core import answers as core
from accountant._rounding import ratio_down
from accountant.pairs.base import Parts
from accountant.pairs.sums import root_of_squares, total


def bounded_otherwise(parts: Parts, delta: float, failing: float) -> float:
    """Bound ε(delta), 0 < delta < 1, from above; infinite where neither bound is known.

    ``failing`` is at least the probability of an infinite loss.
    """
    known = math.inf
    if failing <= delta:
        # Above every finite loss the profile is the mass of the infinite ones.
        known = total((max(pair.support[1], 0.0), n) for pair, n in parts)
    if known == math.inf:
        mu = root_of_squares((pair.mu, n) for pair, n in parts)
        if 0.0 < mu < math.inf:
            least = ratio_down(1.0, mu)
            known = float(core.epsilon_bounds(1.0, least, 1.0, delta, core.REMOVE)[1])
    return known
