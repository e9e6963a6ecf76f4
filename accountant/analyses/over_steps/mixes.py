"""ε after every release of a history of different kinds: the least of all that is known.

Rényi divergences bound every prefix, and so does the exact composition of a longer one. Gaussian
steps are composed exactly along the way where the other releases have bounded losses, which are
added (Theorem L11). Exact compositions, which cost up to seconds each, are asked for where the
curve is widest.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from accountant._typing import FloatArray
from accountant.analyses.over_steps import by_renyi, gaussian
from accountant.analyses.over_steps.divergences import gaussian_setting, gaussian_settings
from accountant.analyses.over_steps.prefixes import (
    Steps,
    composed_bounds,
    counts_after,
    first,
    monotone,
)

# Exact compositions of one call; fewer where every one has many different sampled parts.
MOST, MOST_PARTS = 16, 24
# A relative width that needs no further composition, and the share of the end's ε that matters.
WIDE, SMALL = 0.04, 0.01
# Of δ, what infinite losses may take away before the Gaussian steps are read off anew.
LEVELS = (0.0, 0.5, 1.0)


def bounds(history: Steps, delta: float) -> FloatArray:
    """Bound ε(delta) of every prefix of releases of different kinds."""
    settings = gaussian_settings(history)
    curve = _known(history, settings, delta)
    if None in settings:
        _refine(curve, history, delta)
    return curve


def known(history: Steps, delta: float) -> FloatArray:
    """Bound ε(delta) of every prefix without composing any exactly on a grid."""
    return _known(history, gaussian_settings(history), delta)


def _known(
    history: Steps, settings: Sequence[tuple[float, float] | None], delta: float
) -> FloatArray:
    if None not in settings:
        return gaussian.bounds(history, delta, settings)
    curve = by_renyi.pointwise(history, delta)
    plain = [setting is not None for setting in settings]
    if any(plain):
        _lower_by_blocks(curve, history, plain, delta)
    monotone(curve)
    return curve


def _lower_by_blocks(
    curve: FloatArray, history: Steps, are_gaussian: Sequence[bool], delta: float
) -> None:
    """Lower ``curve`` to the Gaussian steps' exact ε plus the largest losses of the others."""
    repeats = [item.count for item in history]
    others = [item for item, plain in zip(history, are_gaussian, strict=True) if not plain]
    steps = [item for item, plain in zip(history, are_gaussian, strict=True) if plain]
    # The number of Gaussian steps, and of others, in each prefix.
    taken = np.cumsum(np.repeat(np.array(are_gaussian, dtype=np.int64), repeats))
    rest = np.arange(1, taken.size + 1) - taken
    added = np.concatenate([[0.0], by_renyi.largest_losses(others)])[rest]
    masses = by_renyi.infinite_masses(others)
    lost = np.zeros(taken.size) if masses is None else np.concatenate([[0.0], masses])[rest]
    done = 0
    for level in LEVELS:
        # Both grow, so the prefixes meant are the first ones.
        size = int(np.count_nonzero((lost <= level * delta) & (added < math.inf)))
        if size <= done:
            continue
        done = size
        left = delta - float(lost[size - 1])
        if lost[size - 1] > 0.0:
            left = math.nextafter(left, 0.0)
        if not left > 1e-3 * delta:
            continue
        exact = np.concatenate([[0.0], gaussian.bounds(first(steps, int(taken[size - 1])), left)])
        found = np.nextafter(exact[taken[:size]] + added[:size], np.inf)
        np.minimum(curve[:size], found, out=curve[:size])


def _refine(curve: FloatArray, history: Steps, delta: float) -> None:
    """Lower ``curve`` by exact compositions of some prefixes, each where it is widest.

    A prefix costs no more than a longer one, and no less than a shorter one, so two compositions
    enclose what is between them.
    """
    ends = list(accumulate(item.count for item in history))
    left = _affordable(history)
    lengths, lower, upper = [0], [0.0], [0.0]

    def ask(length: int) -> None:
        place = bisect_left(lengths, length)
        low, high = composed_bounds(counts_after(history, length), delta)
        lengths.insert(place, length)
        lower.insert(place, max(low, lower[place - 1]))
        upper.insert(place, high)

    def width(k: int) -> float:
        """Return the relative width just before the length of number k."""
        if lengths[k] - lengths[k - 1] < 2:
            return 0.0
        high = min(float(curve[lengths[k] - 2]), upper[k])
        if high == math.inf:
            return math.inf
        return (high - lower[k - 1]) / max(high, SMALL * lower[-1], math.ulp(0.0))

    if left:
        ask(ends[-1])
    for _ in range(left - 1):
        widest = max(range(1, len(lengths)), key=width)
        if not width(widest) > WIDE:
            break
        ask(_between(ends, lengths[widest - 1], lengths[widest]))
    for done, length, bound in zip(lengths, lengths[1:], upper[1:], strict=False):
        np.minimum(curve[done:length], bound, out=curve[done:length])
    monotone(curve)


def _between(ends: Sequence[int], low: int, high: int) -> int:
    """Return a length within (low, high), at the end of an entry where there is one.

    ε of equal steps grows like a root of their number: the geometric mean halves its logarithm.
    """
    wanted = max(low + 1, min(high - 1, math.isqrt(low * high) if low else -(-high // 4)))
    place = bisect_left(ends, wanted)
    near = [end for end in ends[max(place - 1, 0) : place + 1] if low < end < high]
    return min(near, key=lambda end: abs(end - wanted), default=wanted)


def _affordable(history: Steps) -> int:
    """Return how many exact compositions the history is worth."""
    mechanisms = dict.fromkeys(item.mechanism for item in history)
    settings = {gaussian_setting(mechanism) for mechanism in mechanisms}
    sampled = sum(setting is not None and setting[0] < 1.0 for setting in settings)
    return min(MOST, MOST_PARTS // (1 + sampled))
