"""The exact analysis of compositions whose steps differ, such as a noise schedule.

The parts are subsampled Gaussians (a plain one has sampling probability 1) with counts, and steps
with a random shift (docs/theorems_mixtures.md, Theorem D9). Arguments are already checked.
``direction`` is REMOVE or ADD, one pair for all parts alike, or EITHER, the larger of the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._core import answers as core
from accountant.environment import to_nearest

Brackets: TypeAlias = "tuple[FloatArray, FloatArray]"

REMOVE: Final = core.REMOVE
ADD: Final = core.ADD
EITHER: Final = core.EITHER

# Smaller sampling probabilities are rounded up to this for upper bounds; the lower ones are 0.
LEAST_Q = 1e-280
# The native core's exponents need more noise than this.
LEAST_SIGMA = 1e-100
# The relative width on δ at which an odometer reads the direction that seldom decides. This and the
# next four affect speed alone.
ROUGHLY = 1e-3
# Where the ends of the other direction's bracket are within this ratio, the direction that is not
# seen to be below is read to all digits.
NARROW = 1.001
# An odometer of more parts is read in two pieces at once.
MANY = 1500
# Parts of the first piece, which take longer than the others.
FEW = 500
# Before a record is used this often, in expectation, lines are long, and few of them help.
PARTICIPATIONS = 3.0


class Part(NamedTuple):
    """``steps`` repetitions at one sampling probability and noise multiplier."""

    sampling_probability: float
    noise_multiplier: float
    steps: int


class Mixture(NamedTuple):
    """``steps`` repetitions of noise whose mean a record moves by a random one of the shifts.

    The shifts are positive and increasing. ``no_shift`` is the weight of 0, and ``weight_error``
    the relative error of all weights; both are 0 where it is exactly what the others leave of one,
    and ``no_shift`` alone is where there is always a shift.
    """

    noise_multiplier: float
    shifts: FloatArray
    weights: FloatArray
    steps: float
    no_shift: float = 0.0
    weight_error: float = 0.0


def bracket(
    kind: str,
    parts: Iterable[Part],
    at: float,
    direction: int = EITHER,
    mixtures: tuple[Mixture, ...] = (),
) -> tuple[float, float]:
    """Bracket ε at a δ or δ at an ε, of one kind of release by the core's own entry for it."""
    spending, epsilon = _merged(parts), kind == "epsilon"
    if len(spending) == 1 and not mixtures and at < math.inf:
        alone = core.epsilon_bounds if epsilon else core.delta_bounds
        return alone(*spending[0], at, direction)
    if not spending and len(mixtures) == 1 and direction != EITHER and at < math.inf:
        one = core.mixture_epsilon_bounds if epsilon else core.mixture_delta_bounds
        return one(*mixtures[0][:4], at, direction, *mixtures[0][4:])
    several = epsilon_bounds if epsilon else delta_bounds
    return several(spending, at, direction, mixtures)


def epsilon_bounds(
    parts: Iterable[Part], delta: float, direction: int = EITHER, mixtures: tuple[Mixture, ...] = ()
) -> tuple[float, float]:
    """Bracket ε(delta) of the composition, 0 < delta < 1."""
    spending = _merged(parts)
    if not spending and not mixtures:
        return 0.0, 0.0
    if not _bounded(spending):
        return 0.0, math.inf
    lower, upper = core.heterogeneous_epsilon_bounds(
        *_columns(spending), delta, direction, mixtures
    )
    return (lower, upper) if _resolved(spending) else (0.0, upper)


def delta_bounds(
    parts: Iterable[Part],
    epsilon: float,
    direction: int = EITHER,
    mixtures: tuple[Mixture, ...] = (),
) -> tuple[float, float]:
    """Bracket δ(epsilon) of the composition, epsilon >= 0."""
    spending = _merged(parts)
    if not (spending or mixtures) or epsilon == math.inf:
        return 0.0, 0.0
    if not _bounded(spending):
        return 0.0, 1.0
    lower, upper = core.heterogeneous_delta_bounds(
        *_columns(spending), epsilon, direction, mixtures
    )
    return (lower, upper) if _resolved(spending) else (0.0, upper)


@to_nearest
def odometer(
    parts: Sequence[Part], delta: float, direction: int = EITHER
) -> tuple[FloatArray, FloatArray]:
    """Bracket ε(delta) after each of the parts, in their order.

    Every bracket holds on its own. All together hold for a schedule fixed in advance.
    """
    size = len(parts)
    lower, upper = np.zeros(size), np.zeros(size)
    # Trivial parts (nothing sampled, or infinite noise) repeat the answer before them.
    active = np.array([_is_active(part) for part in parts], dtype=bool)
    spending = [part for part, is_active in zip(parts, active.tolist(), strict=True) if is_active]
    if not spending:
        return lower, upper
    after = np.cumsum(active) - 1
    low, high = np.zeros(len(spending)), np.full(len(spending), math.inf)
    # The first part without a finite bound ends all finite bounds.
    unbounded = (i for i, part in enumerate(spending) if part.noise_multiplier <= LEAST_SIGMA)
    good = next(unbounded, len(spending))
    if good:
        low[:good], high[:good] = _directions(spending[:good], delta, direction)
        low[good:] = low[good - 1]
    if not _resolved(spending):
        low[:] = 0.0
    return np.where(after >= 0, low[after], 0.0), np.where(after >= 0, high[after], 0.0)


def _directions(spending: Sequence[Part], delta: float, direction: int) -> Brackets:
    columns, size = _columns(spending), len(spending)

    def read(one: int, wide: float, first: int, last: int) -> Brackets:
        lower, upper = np.empty(size), np.empty(size)
        core.fill_heterogeneous_odometer(*columns, delta, one, lower, upper, wide, first, last)
        return lower, upper

    if direction != EITHER:
        return read(direction, 0.0, 0, size)
    # Adding nearly always costs less than removing, by far, so that a few digits show it.
    used = few = 0
    if size > MANY:
        few = FEW
        used = int(np.searchsorted(np.cumsum(columns[0] * columns[2]), PARTICIPATIONS))
        used = min(used, size - 1)
    asked = [(REMOVE, 0.0, few, size), (ADD, ROUGHLY, used, size)]
    if few:
        asked.insert(0, (REMOVE, 0.0, 0, few))  # takes longest
    # The native loop releases the GIL, so two run at the same time.
    with ThreadPoolExecutor(2) as pool:
        *removed, added = pool.map(lambda one: read(*one), asked)
    low, high = _intersection(removed)
    # Where the few digits do not show it; where no narrow bracket is known, they have to do.
    for wide, where in ((ROUGHLY, np.arange(size) < used), (0.0, high <= NARROW * low)):
        unsettled = np.flatnonzero((added[1] > high) & where)
        if unsettled.size:
            more = read(ADD, wide, int(unsettled[0]), int(unsettled[-1]) + 1)
            added = _intersection((added, more))
    return np.maximum(low, added[0]), np.maximum(high, added[1])


def _intersection(brackets: Sequence[Brackets]) -> Brackets:
    lower, upper = zip(*brackets, strict=True)
    return np.max(lower, axis=0), np.min(upper, axis=0)


def _is_active(part: Part) -> bool:
    return part.steps > 0 and part.sampling_probability > 0.0 and part.noise_multiplier < math.inf


def _merged(parts: Iterable[Part]) -> list[Part]:
    # The condition of _is_active, of which a call for every part takes longer.
    active = [part for part in parts if part[2] > 0 and part[0] > 0.0 and part[1] < math.inf]
    if len({part[:2] for part in active}) == len(active):
        return active
    counts: dict[tuple[float, float], int] = {}
    for q, sigma, steps in active:
        counts[q, sigma] = counts.get((q, sigma), 0) + steps
    return [Part(*key, steps) for key, steps in counts.items()]


def _bounded(parts: Sequence[Part]) -> bool:
    """Tell whether the noise is large enough for the native core's exponents."""
    return min((sigma for _, sigma, _ in parts), default=math.inf) > LEAST_SIGMA


def _resolved(parts: Sequence[Part]) -> bool:
    return min((q for q, _, _ in parts), default=1.0) >= LEAST_Q


def _columns(parts: Sequence[Part]) -> tuple[FloatArray, FloatArray, FloatArray]:
    q, sigma, steps = (
        np.array(one, dtype=np.float64) for one in (zip(*parts, strict=True) if parts else [()] * 3)
    )
    return np.maximum(q, LEAST_Q), sigma, steps
