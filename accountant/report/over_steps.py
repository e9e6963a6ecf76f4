"""ε after some prefixes of a history: Rényi divergences, and one contour where it is in reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from accountant.analyses import contour, mixed
from accountant.errors import AccountantError
from accountant.ledger import Entry, renyi, schedule
from accountant.report.spending import rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from accountant.mechanisms import Mechanism

__all__ = ["coarser", "over_steps", "prefixes"]

Counts: TypeAlias = "Sequence[tuple[Mechanism, int]]"
FloatArray: TypeAlias = "NDArray[np.float64]"

ORDERS = (1.0 + np.geomspace(0.05, 2.0**12, 80)).tolist()
# Different steps that use a record less often than this together have a transform that decays too
# slowly for a contour to be quick.
LEAST_PARTICIPATION = 10.0


def prefixes(history: Sequence[Entry], points: int) -> Iterator[tuple[int, Counts]]:
    """Yield about ``points`` numbers of releases, evenly spaced, with the counts up to there."""
    total = sum(item.count for item in history)
    wanted = sorted({-(-total * k // points) for k in range(1, points + 1)} - {0})
    done, position = 0, 0
    # By identity: a ledger that was loaded holds one object of each mechanism, and hashing a
    # million of them would take longer than all the rest.
    known: dict[int, Mechanism] = {}
    counts: dict[int, int] = {}
    for item in history:
        key = id(item.mechanism)
        known[key] = item.mechanism
        before = counts.get(key, 0)
        while position < len(wanted) and wanted[position] <= done + item.count:
            counts[key] = before + wanted[position] - done
            yield wanted[position], tuple((known[k], n) for k, n in counts.items())
            position += 1
        counts[key] = before + item.count
        done += item.count


def over_steps(
    history: Sequence[Entry], total: float, delta: float, points: int
) -> list[tuple[int, float]]:
    """Bound ε(delta) of some prefixes from above; none exceeds ``total``, that of them all.

    Each holds by itself, for parameters fixed in advance (Theorem L8).
    """
    found = [(steps, tuple(counts)) for steps, counts in prefixes(history, points)]
    bounds = _by_renyi([counts for _, counts in found], delta)
    for k, (_, counts) in enumerate(found):
        bounds[k] = min(bounds[k], _by_contour(counts, delta))
    bounds = np.minimum(bounds, total)
    # A prefix costs no more than a longer one.
    least = np.minimum.accumulate(bounds[::-1])[::-1].tolist()
    return [(steps, value) for (steps, _), value in zip(found, least, strict=True)]


def _by_renyi(parts: Sequence[Counts], delta: float) -> FloatArray:
    """Convert the divergences of each list of parts at the best of a few orders."""
    mechanisms = list(dict.fromkeys(mechanism for counts in parts for mechanism, _ in counts))
    places = {mechanism: k for k, mechanism in enumerate(mechanisms)}
    try:
        table = schedule.divergences(mechanisms, ORDERS, len(mechanisms))
    except AccountantError:
        # A part has no Rényi curve.
        return np.full(len(parts), np.inf)
    # What the conversion adds to a divergence; one more rounding, of the sum.
    added = np.array([-renyi.capacity_lower(order, 0.0, delta) for order in ORDERS])
    result = []
    for counts in parts:
        repeats = np.zeros(len(mechanisms))
        for mechanism, count in counts:
            repeats[places[mechanism]] += float(count)
        used = repeats > 0.0
        # Each term is rounded once for its product and as often as there are terms for the sum.
        with np.errstate(over="ignore"):
            spent = (table[used] * repeats[used, None, None]).sum(axis=0)
        spent *= 1.0 + (used.sum() + 4.0) * 2.0**-52
        converted = np.nextafter(spent + added[:, None], np.inf)
        # The best order of each direction, and the worse direction.
        result.append(max(float(converted.min(axis=0).max()), 0.0))
    return np.array(result)


def _by_contour(counts: Counts, delta: float) -> float:
    """Bound ε(delta) of Gaussian steps; infinite for others, and where a contour would be slow."""
    parts = []
    for mechanism, count in counts:
        found = {pair.gaussian_part and pair.gaussian_part[:2] for pair in mechanism.pairs()}
        # Both directions of a subsampled Gaussian step have one q and one σ.
        setting = found.pop()
        if found or not setting:
            return np.inf
        parts.append(mixed.Part(*setting, count))
    try:
        if len(parts) == 1:
            return float(contour.epsilon_bounds(*parts[0], delta)[1])
        if sum(part.steps * part.sampling_probability for part in parts) < LEAST_PARTICIPATION:
            return np.inf
        return mixed.epsilon_bounds(parts, delta)[1]
    except AccountantError:
        return np.inf


def coarser(history: Sequence[Entry], counts: Counts, most: int) -> Sequence[Entry]:
    """Return a history that costs no less after every release, with few different mechanisms."""
    if len(counts) <= most:
        return history
    mechanisms = [mechanism for mechanism, _ in counts]
    other = dict(zip(mechanisms, rounded(mechanisms, most, True), strict=True))
    seen: dict[int, Mechanism] = {}
    result = []
    for item in history:
        key = id(item.mechanism)
        if key not in seen:
            seen[key] = other[item.mechanism]
        result.append(Entry(seen[key], item.count))
    return result
