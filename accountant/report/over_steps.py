"""Brackets of ε after some releases, of ledgers with any number of different steps."""

from __future__ import annotations

import numpy as np

from accountant.analyses.over_steps.curve import brackets
from accountant.analyses.over_steps.history import Counts, Part, Steps
from accountant.bounds import Bounds
from accountant.mechanisms import Mechanism
from accountant.report.spending import MOST_OFTEN, ROUGHLY, rounded


def over_steps(
    history: Steps, counts: Counts, headline: Bounds, delta: float
) -> list[tuple[int, float, float]]:
    """Bracket ε(delta) of some prefixes: their numbers of releases, lower and upper bounds.

    Each bracket holds by itself, for parameters fixed in advance (Theorem L8). The ends agree where
    the composition is exact. Elsewhere the lower end shows how loose the upper end may be. The
    last bracket is ``headline``.
    """
    costly = coarser(history, counts, MOST_OFTEN, True)
    if costly is history:
        found = lower = brackets(history, delta)
    else:
        found = brackets(costly, delta, ROUGHLY)
        lower = brackets(coarser(history, counts, MOST_OFTEN, False), delta, ROUGHLY)
    steps = [length for length, _, _ in found]
    low = np.minimum([one for _, one, _ in lower], float(headline.lower))
    high = np.minimum([one for _, _, one in found], float(headline.upper))
    low[-1], high[-1] = float(headline.lower), float(headline.upper)
    # The ε of a prefix is at most that of a longer one, and at least that of a shorter one.
    high = np.minimum.accumulate(high[::-1])[::-1]
    low = np.minimum(np.maximum.accumulate(low), high)
    return list(zip(steps, low.tolist(), high.tolist(), strict=True))


def coarser(history: Steps, counts: Counts, most: int, costly: bool) -> Steps:
    """Return a history of few different mechanisms that costs no less, or no more, at each step."""
    if len(counts) <= most:
        return history
    mechanisms = [mechanism for mechanism, _ in counts]
    other = dict(zip(mechanisms, rounded(mechanisms, most, costly), strict=True))
    seen: dict[int, Mechanism] = {}
    result = []
    for item in history:
        key = id(item.mechanism)
        if key not in seen:
            seen[key] = other[item.mechanism]
        result.append(Part(seen[key], item.count))
    return result
