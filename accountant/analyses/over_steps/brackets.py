"""Brackets of ε after some prefixes of a history, by exact composition where it is fast."""

from __future__ import annotations

import math
from typing import TypeAlias

from accountant.analyses import mixed
from accountant.analyses.over_steps.by_renyi import at_prefixes, infinite_masses, largest_losses
from accountant.analyses.over_steps.curve import by_contour
from accountant.analyses.over_steps.history import (
    Counts,
    Part,
    Steps,
    counts_at,
    evenly,
    gaussian_setting,
)
from accountant.composition import composed
from accountant.errors import AccountantError
from accountant.mechanisms.base import Mechanism

Settings: TypeAlias = "dict[Mechanism, tuple[float, float] | None]"

# Numbers of releases at which ε is given.
POINTS = 24
# The same where each takes a composition on a grid.
FEW_POINTS = 10
# With more different sampled steps a grid at every point takes too long.
MOST_SAMPLED = 2
# With more other mechanisms it does, too.
MOST_OTHERS = 12
# A bracket whose lower end is this share of its upper one counts as exact.
NEAR = 0.999


def brackets(history: Steps, delta: float, width: float = 1e-6) -> list[tuple[int, float, float]]:
    """Bracket ε(delta) of some prefixes, each on its own: lengths, lower and upper bounds.

    A relative ``width`` will do.
    """
    mechanisms = dict.fromkeys(item.mechanism for item in history)
    settings = {mechanism: gaussian_setting(mechanism) for mechanism in mechanisms}
    points = POINTS if all(settings.values()) else FEW_POINTS
    total = sum(item.count for item in history)
    found = list(counts_at(history, evenly(total, points)))
    result = []
    for (length, counts), bound in zip(
        found, at_prefixes([counts for _, counts in found], delta), strict=True
    ):
        low, high = _exactly(counts, settings, delta, width)
        result.append((length, low, min(high, float(bound))))
    return result


def _exactly(counts: Counts, settings: Settings, delta: float, width: float) -> tuple[float, float]:
    """Bracket ε(delta) of counted mechanisms, exactly if that is fast."""
    steps = [mixed.Part(*found, n) for m, n in counts if (found := settings[m]) is not None]
    plain = len(steps) == len(counts)
    bracket = by_contour(steps, delta)
    if plain and bracket[0] >= NEAR * bracket[1]:
        return bracket
    sampled = sum(part.sampling_probability < 1.0 for part in steps)
    try:
        if sampled <= MOST_SAMPLED and len(counts) - sampled <= MOST_OTHERS:
            bounds = composed(tuple(counts)).profile().roughly("epsilon", delta, width)
            return float(bounds.lower), float(bounds.upper)
    except AccountantError:
        pass
    if plain:
        return bracket
    # The Gaussian steps, and what the others add to them at most (Theorem L11).
    others = [Part(m, n) for m, n in counts if settings[m] is None]
    added = float(largest_losses(others)[-1])
    masses = infinite_masses(others)
    left = delta if masses is None else math.nextafter(delta - float(masses[-1]), -math.inf)
    if not (added < math.inf and left > 0.0):
        return bracket[0], math.inf
    return bracket[0], math.nextafter(by_contour(steps, left)[1] + added, math.inf)
