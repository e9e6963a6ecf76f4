"""ε along (subsampled) Gaussian steps: exactly on one contour, or nearly so where that is slow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from accountant._typing import FloatArray
from accountant.analyses import contour, mixed
from accountant.analyses.over_steps import by_renyi
from accountant.analyses.over_steps.divergences import WORKERS, gaussian_settings
from accountant.analyses.over_steps.prefixes import Steps, check_length, monotone, spread
from accountant.errors import AccountantError

Settings: TypeAlias = "Sequence[tuple[float, float] | None]"

# Readings of the exact odometer, a quarter of a millisecond each, and pieces of repetitions.
_MAX_EXACT = 50_000
_MAX_PIECES = 2_000

# A relative width beyond which Rényi divergences are asked as well.
_GAP = 1e-3

# Different steps that use a record less often than this together have a transform that decays too
# slowly for a contour to be quick.
LEAST_PARTICIPATION = 10.0


def bounds(history: Steps, delta: float, settings: Settings | None = None) -> FloatArray:
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
            return mixed.epsilon_bounds(parts, delta)
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
