"""Upper bounds on ε after every release of a history: the least of all that is known.

Rényi divergences bound every prefix, and so does the exact composition of a longer one. Gaussian
steps are composed exactly along one contour, or nearly so where that is slow; beside them the
largest losses of other releases are added (Theorem L11). Exact compositions, which cost up to
seconds each, are asked for where the curve is widest.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant.analyses import contour, mixed
from accountant.analyses.over_steps import by_renyi
from accountant.analyses.over_steps.by_renyi import at_prefixes, infinite_masses, largest_losses
from accountant.analyses.over_steps.history import (
    WORKERS,
    Counts,
    Part,
    Steps,
    check_length,
    composed_bounds,
    counts_after,
    counts_at,
    evenly,
    first,
    gaussian_setting,
    gaussian_settings,
    monotone,
    spread,
)
from accountant.composition import composed
from accountant.errors import AccountantError
from accountant.mechanisms.base import Mechanism

Settings: TypeAlias = "Sequence[tuple[float, float] | None]"

# Readings of the exact odometer, a quarter of a millisecond each, and pieces of repetitions.
_MAX_EXACT = 50_000
_MAX_PIECES = 2_000

# A relative width beyond which Rényi divergences are asked as well.
_GAP = 1e-3

# Different steps that use a record less often than this together have a transform that decays too
# slowly for a contour to be quick.
LEAST_PARTICIPATION = 10.0


def gaussian_bounds(history: Steps, delta: float, settings: Settings | None = None) -> FloatArray:
    """Bound ε(delta) of every prefix of Gaussian releases, exactly where digits suffice.

    ``settings`` are those of :func:`gaussian_settings`, if they are known.
    """
    check_length(history)
    settings = gaussian_settings(history) if settings is None else settings
    exact = _exactly(history, settings, delta)
    if exact is None:
        return by_renyi.pointwise(history, delta)
    lower, curve = exact
    with np.errstate(invalid="ignore"):
        rough = np.flatnonzero(~((curve < np.inf) & (lower >= (1.0 - _GAP) * curve)))
    if rough.size:
        # Short schedules, where the transform of the loss decays slowly, in two more ways.
        entries = int(np.searchsorted(np.cumsum([item.count for item in history]), rough[-1] + 1))
        early = history[: entries + 1]
        for other in (
            by_renyi.pointwise(early, delta, by_renyi.FEW),
            _as_equal_steps(early, settings, delta),
        ):
            np.minimum(curve[: other.size], other, out=curve[: other.size])
        monotone(curve)
    return curve


def _as_equal_steps(history: Steps, settings: Settings, delta: float) -> FloatArray:
    """Bound ε of every prefix of subsampled Gaussians by as many of its worst step (Theorem L8).

    That is, of the largest q and the least σ so far; for numbers of steps not far apart.
    """
    counts = [item.count for item in history]
    known_settings = [setting or (1.0, 0.0) for setting in settings[: len(history)]]
    q = np.repeat(np.maximum.accumulate([q for q, _ in known_settings]), counts)
    sigma = np.repeat(np.minimum.accumulate([sigma for _, sigma in known_settings]), counts)
    lengths = np.array(spread(q.size, 1.4))
    found = np.full(lengths.size, math.inf)
    known = sigma[lengths - 1] > 0.0
    at = lengths[known]
    _, found[known] = contour.each_epsilon_bounds(
        at.shape, q[at - 1], sigma[at - 1], at.astype(float), np.array(delta), WORKERS
    )
    # Each prefix costs no more than the next one asked about.
    return np.repeat(found, np.diff(lengths, prepend=0))


def _exactly(
    history: Steps, settings: Settings, delta: float
) -> tuple[FloatArray, FloatArray] | None:
    """Bracket every prefix of (Poisson-subsampled) Gaussian releases; None for others, or many."""
    parts: list[mixed.Part] = []
    for item, setting in zip(history, settings, strict=True):
        if setting is None:
            return None
        if item.count == 1:
            parts.append(mixed.Part(setting[0], setting[1], 1))
        else:
            parts.extend(mixed.Part(*setting, steps) for steps in _pieces(item.count, len(history)))
    if len(parts) > _MAX_EXACT:
        return None
    # A step within a piece costs no more than the whole piece, and no less than those before.
    lower, upper = mixed.odometer(parts, delta)
    steps = [part.steps for part in parts]
    least = np.repeat(np.concatenate([[0.0], lower])[:-1], steps)
    least[np.cumsum(steps, dtype=np.int64) - 1] = lower
    return least, np.repeat(upper, steps)


def _pieces(count: int, entries: int) -> list[int]:
    """Divide a repetition into a number of pieces that keeps all entries' within reason."""
    pieces = min(count, max(_MAX_PIECES // entries, 1))
    return [count * (k + 1) // pieces - count * k // pieces for k in range(pieces)]


def by_contour(parts: Sequence[mixed.Part], delta: float) -> tuple[float, float]:
    """Bracket ε(delta) of Gaussian steps."""
    if not parts:
        return 0.0, 0.0
    try:
        if len(parts) == 1:
            return contour.epsilon_bounds(*parts[0], delta)
        if sum(part.steps * part.sampling_probability for part in parts) >= LEAST_PARTICIPATION:
            return mixed.bracket("epsilon", parts, delta)
        # As many of the worst step bound ε from above, and each part alone from below (Theorem L8).
        low = max(contour.epsilon_bounds(*part, delta)[0] for part in parts)
        worst = mixed.Part(
            max(part.sampling_probability for part in parts),
            min(part.noise_multiplier for part in parts),
            sum(part.steps for part in parts),
        )
        return low, contour.epsilon_bounds(*worst, delta)[1]
    except AccountantError:
        return 0.0, math.inf


# Exact compositions that one call makes at most.
MOST = 16
# Different sampled parts of all these compositions together, at most.
MOST_PARTS = 24
# A relative width that needs no further composition.
WIDE = 0.04
# An ε below this share of the last one counts as that share: its width matters less.
SMALL = 0.01
# Shares of δ that infinite losses may take away before the Gaussian steps are read off anew.
LEVELS = (0.0, 0.5, 1.0)


def mixed_bounds(history: Steps, delta: float) -> FloatArray:
    """Bound ε(delta) of every prefix of releases of different kinds."""
    settings = gaussian_settings(history)
    curve = _known(history, settings, delta)
    if None in settings:
        _refine(curve, history, delta)
    return curve


def known_bounds(history: Steps, delta: float) -> FloatArray:
    """Bound ε(delta) of every prefix without composing any exactly on a grid."""
    return _known(history, gaussian_settings(history), delta)


def _known(
    history: Steps, settings: Sequence[tuple[float, float] | None], delta: float
) -> FloatArray:
    if None not in settings:
        return gaussian_bounds(history, delta, settings)
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
        exact = np.concatenate([[0.0], gaussian_bounds(first(steps, int(taken[size - 1])), left)])
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


def upper_curve(history: Steps, delta: float, checkpoints: int | None = None) -> FloatArray:
    """Bound ε(delta) after each release; element k holds for the first k + 1 alone.

    ``checkpoints`` is the number of prefixes, evenly spaced, that are composed exactly as well; 0
    for Rényi bounds alone, None for as many as are worth it.
    """
    one = all(item.mechanism == history[0].mechanism for item in history)
    if one or checkpoints == 0:
        curve = by_renyi.pointwise(history, delta)
    else:
        curve = (mixed_bounds if checkpoints is None else known_bounds)(history, delta)
    if checkpoints:
        _sharpen(curve, history, delta, evenly(len(curve), checkpoints))
    elif checkpoints is None and one and len(curve):
        _sharpen(curve, history, delta, spread(len(curve)))
    return curve


def _sharpen(curve: FloatArray, history: Steps, delta: float, lengths: Sequence[int]) -> None:
    """Lower ``curve`` to the exact compositions of some prefixes, in place.

    A prefix costs no more than a longer one, so each is bounded by the next one evaluated.
    """
    done = 0
    for length, counts in counts_at(history, lengths):
        _, exact = composed_bounds(counts, delta)
        np.minimum(curve[done:length], exact, out=curve[done:length])
        done = length
    monotone(curve)


Found: TypeAlias = "dict[Mechanism, tuple[float, float] | None]"

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
        low, high = _bracket(counts, settings, delta, width)
        result.append((length, low, min(high, float(bound))))
    return result


def _bracket(counts: Counts, settings: Found, delta: float, width: float) -> tuple[float, float]:
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
