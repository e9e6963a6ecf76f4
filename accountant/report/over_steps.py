"""Brackets of ε after some prefixes of a history, by exact composition where it is fast."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from accountant.analyses import contour, mixed, renyi_conversion
from accountant.errors import AccountantError
from accountant.ledger import Entry, schedule
from accountant.ledger.evaluation import composed
from accountant.report.spending import MOST_OFTEN, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from accountant.bounds import Bounds
    from accountant.mechanisms import Mechanism

__all__ = ["coarser", "over_steps", "prefixes"]

Counts: TypeAlias = "Sequence[tuple[Mechanism, int]]"
Settings: TypeAlias = "dict[Mechanism, tuple[float, float] | None]"
FloatArray: TypeAlias = "NDArray[np.float64]"

# Numbers of releases at which ε is given; fewer where each takes a composition on a grid.
POINTS, FEW_POINTS = 24, 10
# With more different sampled steps, or other mechanisms, a grid at every point takes too long.
MOST_SAMPLED, MOST_OTHERS = 2, 12
# Brackets of this width count as exact.
NEAR = 0.999
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
    history: Sequence[Entry], counts: Counts, headline: Bounds, delta: float
) -> list[tuple[int, float, float]]:
    """Bracket ε(delta) of some prefixes: their numbers of releases, lower and upper bounds.

    Each bracket holds by itself, for parameters fixed in advance (Theorem L8). The ends agree where
    the composition is exact. Elsewhere the lower end shows how loose the upper end may be. The
    last bracket is ``headline``.
    """
    costly = coarser(history, counts, MOST_OFTEN, True)
    found = _brackets(costly, delta)
    cheap = costly if costly is history else coarser(history, counts, MOST_OFTEN, False)
    lower = found if cheap is costly else _brackets(cheap, delta)
    steps = [length for length, _, _ in found]
    low = np.minimum([one for _, one, _ in lower], float(headline.lower))
    high = np.minimum([one for _, _, one in found], float(headline.upper))
    low[-1], high[-1] = float(headline.lower), float(headline.upper)
    # The ε of a prefix is at most that of a longer one, and at least that of a shorter one.
    high = np.minimum.accumulate(high[::-1])[::-1]
    low = np.minimum(np.maximum.accumulate(low), high)
    return list(zip(steps, low.tolist(), high.tolist(), strict=True))


def _brackets(history: Sequence[Entry], delta: float) -> list[tuple[int, float, float]]:
    """Bracket ε(delta) of prefixes, each on its own."""
    mechanisms = dict.fromkeys(item.mechanism for item in history)
    settings = {mechanism: schedule.gaussian_setting(mechanism) for mechanism in mechanisms}
    points = POINTS if all(settings.values()) else FEW_POINTS
    found = [(length, tuple(counts)) for length, counts in prefixes(history, points)]
    result = []
    for (length, counts), bound in zip(
        found, _by_renyi([counts for _, counts in found], delta), strict=True
    ):
        low, high = _exactly(counts, settings, delta)
        result.append((length, low, min(high, float(bound))))
    return result


def _exactly(counts: Counts, settings: Settings, delta: float) -> tuple[float, float]:
    """Bracket ε(delta) of counted mechanisms, exactly if that is fast."""
    steps = [mixed.Part(*found, n) for m, n in counts if (found := settings[m]) is not None]
    plain = len(steps) == len(counts)
    bracket = _by_contour(steps, delta)
    if plain and bracket[0] >= NEAR * bracket[1]:
        return bracket
    sampled = sum(part.sampling_probability < 1.0 for part in steps)
    try:
        if sampled <= MOST_SAMPLED and len(counts) - sampled <= MOST_OTHERS:
            bounds = composed(tuple(counts)).epsilon_bounds(delta)
            return float(bounds.lower), float(bounds.upper)
    except AccountantError:
        pass
    if plain:
        return bracket
    # The Gaussian steps, and what the others add to them at most (Theorem L11).
    others = [Entry(m, n) for m, n in counts if settings[m] is None]
    added = float(schedule.largest_losses(others)[-1])
    masses = schedule.infinite_masses(others)
    left = delta if masses is None else math.nextafter(delta - float(masses[-1]), -math.inf)
    if not (added < math.inf and left > 0.0):
        return bracket[0], math.inf
    return bracket[0], math.nextafter(_by_contour(steps, left)[1] + added, math.inf)


def _by_contour(parts: Sequence[mixed.Part], delta: float) -> tuple[float, float]:
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


def _by_renyi(parts: Sequence[Counts], delta: float) -> FloatArray:
    """Convert the divergences of each list of parts at the best of a few orders (Theorem L8)."""
    mechanisms = list(dict.fromkeys(mechanism for counts in parts for mechanism, _ in counts))
    places = {mechanism: k for k, mechanism in enumerate(mechanisms)}
    table = schedule.divergences(mechanisms, ORDERS, len(mechanisms), finite=True)
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
        masses = schedule.infinite_masses([Entry(m, n) for m, n in counts])
        left = delta if masses is None else math.nextafter(delta - float(masses[-1]), -math.inf)
        if not left > 0.0:
            result.append(math.inf)
            continue
        # What the conversion adds to a divergence; one more rounding, of the sum.
        added = np.array([renyi_conversion.excess_upper(order, left) for order in ORDERS])
        converted = np.nextafter(spent + added[:, None], np.inf)
        # The best order of each direction, and the worse direction.
        result.append(max(float(converted.min(axis=0).max()), 0.0))
    return np.array(result)


def coarser(history: Sequence[Entry], counts: Counts, most: int, costly: bool) -> Sequence[Entry]:
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
        result.append(Entry(seen[key], item.count))
    return result
