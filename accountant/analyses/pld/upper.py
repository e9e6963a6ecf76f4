"""The privacy loss distribution on a grid: upper ends for any composition of pairs.

Every part gives the masses of cells of its loss. A law on the grid dominates them: its profile is
nowhere lower. The laws are tilted, composed by FFT and evaluated, and the bound includes every
error (docs/theorems_grid.md). A composition is of one direction; the answer of a mechanism is the
larger of its two directions.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from accountant._basics.files import ModuleLock
from accountant.analyses.pld.composed_law import ComposedLaw, TooLarge
from accountant.analyses.pld.loss_grid import (
    GridPart,
    GridPlan,
    Spacings,
    largest_loss,
    lattice_parts,
    refuse_huge,
)
from accountant.analyses.pld.saddle_point import (
    Saddle,
    coarse_law,
    log_share,
    saddle_at_delta,
    saddle_at_epsilon,
)
from accountant.bounds import Bounds
from accountant.checks import EPSILON, MAX_COUNT, Argument, count, real
from accountant.environment import to_nearest
from accountant.errors import PrecisionError
from accountant.pairs.base import DominatingPair

MOST_HELD = 256 * 2**20  # bytes

_lock = ModuleLock()
_holders: list[weakref.ref[Holder]] = []  # the last used comes last


class Holder(Protocol):
    """An object that keeps composed distributions for the next question."""

    @property
    def held(self) -> int:
        """The bytes it keeps."""

    def forget(self) -> None:
        """Free them."""


def keep(holder: Holder) -> None:
    """Mark ``holder`` as most recently used; evict the least recently used above the limit."""
    with _lock:
        alive = [one for ref in _holders if (one := ref()) is not None and one is not holder]
        total = holder.held + sum(one.held for one in alive)
        while alive and total > MOST_HELD:
            oldest = alive.pop(0)
            total -= oldest.held
            oldest.forget()
        _holders[:] = [weakref.ref(one) for one in (*alive, holder)]


# The default limit on the bytes of one evaluation.
MEMORY_CAP = 512 * 2**20
# The share of the tolerance that a plan lets what is left out take, by bounds that are loose.
LEFT_OUT = 1e-6
# And the largest share of the answer itself.
MOST_LEFT_OUT = 1e-6
# Where what is left out shows beside the tolerance, the next grid leaves out this share of it.
TRIM = 1e-3
# What is left out shows where it is more than this share of the tolerance.
SHOWS = 0.05
# An answer further than this many scales of the profile, 1/tilt, from its saddle point is looked
# for again, next to itself.
MISSED = 1.5
# A grid planned for an answer this many scales away is used again.
SIMILAR = 8.0
# The usual logarithm of a profile's share of the tilted law, negative, and the least one planned.
USUAL = 4.0
FAINTEST = -40.0
# The largest width of a bracket on log δ, whatever the tolerance on ε means for it.
MOST_NATS = 3.0
# log δ below which the finite part of a profile is bounded, but not measured.
FARTHEST = -640.0
# A tilt takes at most this many nats from one knot to the next. A heavy largest loss on a lattice
# asks for more, by which what rounding leaves in the knot beyond it would outweigh everything.
MOST_TILT = 20.0
# Grids that are made for one upper end at most.
MOST_GRIDS = 5
# A grid that does not fit into memory is made this many times coarser until one does.
COARSER = 2.0

TARGET = Argument(
    "delta", "a probability in (0, 1)", lambda x: (x > 0.0) & (x < 1.0), "It is a target"
)
TOLERANCE = Argument(
    "tolerance",
    "a number in [1e-12, 0.1]",
    lambda x: (x >= 1e-12) & (x <= 0.1),
    "It is the relative width of the bracket",
)
CAP = Argument("memory_cap", "bytes >= 2**20", lambda x: x >= 2**20, "A smaller grid is useless")
COUNT = Argument(
    "count", "an integer in [0, 2**53]", lambda x: (x >= 0) & (x <= MAX_COUNT), "It counts releases"
)


class TooWide(PrecisionError):  # noqa: N818 (a bracket, not a malfunction)
    """No grid met the tolerance; ``known`` is the intersection of their brackets, or None."""

    def __init__(self, message: str, known: Bounds | None = None) -> None:
        super().__init__(message)
        self.known = known


class Aim(NamedTuple):
    """What a grid is planned for: ε at a δ, or δ at an ε."""

    name: str  # of the answer, "epsilon" or "delta"
    at: float
    parts: Sequence[GridPart]
    saddle: Saddle
    scale: float  # of the answer, in nats
    wanted: float  # of log δ: what the tolerance on ε means for it

    def upper(self, law: ComposedLaw, tolerance: float) -> float:
        """Return the upper end that a law gives."""
        if self.name == "delta":
            return law.delta_upper(self.at)
        return law.epsilon_upper(self.at, 1e-6 * tolerance * self.scale)

    def point(self, found: float) -> float:
        """Return the ε of an answer."""
        return found if self.name == "epsilon" else self.at


class UpperEnds:
    """Upper ends of the privacy profile of a composition of dominating pairs.

    Parameters
    ----------
    parts : sequence of (DominatingPair, int)
        The pairs, all of one direction, and how often each runs (>= 0).
    tolerance : float
        About how far an upper end on ε may lie above the truth, relative to ε, or to a hundredth of
        the standard deviation of the total loss where ε is smaller. One on δ is as near as this
        means for it. Theorem G8 chooses the grid; no lower end confirms it.
    memory_cap : int
        Approximate limit, in bytes, on the memory of one evaluation.
    """

    @to_nearest
    def __init__(
        self,
        parts: Sequence[tuple[DominatingPair, int]],
        *,
        tolerance: float = 1e-6,
        memory_cap: int = MEMORY_CAP,
    ) -> None:
        self._tolerance = float(real(TOLERANCE, tolerance))
        self._memory_cap = int(count(CAP, memory_cap))
        self._used = [(pair, int(count(COUNT, n))) for pair, n in parts if count(COUNT, n)]
        refuse_huge(self._used)
        self._laws = [coarse_law(pair, n) for pair, n in self._used]
        lattices, self._parts = lattice_parts(self._used, self._laws)
        self._spacings = Spacings(lattices, self._parts, self._tolerance)
        infinite = sum(
            law.times * math.log1p(-min(law.infinite, 1.0 - 1e-16)) for law in self._laws
        )
        self._infinite = -math.expm1(infinite)
        self._done: list[ComposedLaw] = []

    @to_nearest
    def epsilon_upper(self, delta: float) -> float:
        """Bound ε(delta), 0 < delta < 1, from above; infinite where nothing finite is known."""
        delta = float(real(TARGET, delta))
        if not self._parts:
            return 0.0
        if delta - self._infinite < -1e-6 * delta:
            return math.inf
        return self._upper(self._about_epsilon(delta))[0]

    @to_nearest
    def delta_upper(self, epsilon: float) -> float:
        """Bound δ(epsilon), epsilon >= 0, from above."""
        epsilon = float(real(EPSILON, epsilon))
        if not self._parts:
            return 0.0
        if epsilon >= largest_loss(self._parts):
            return self._infinite_upper()
        return self._upper(self._about_delta(epsilon))[0]

    @property
    def held(self) -> int:
        """Bytes kept for the next question."""
        return sum(one.held for one in self._done)

    def forget(self) -> None:
        """Free what is kept for the next question."""
        self._done = []

    def _about_epsilon(self, delta: float) -> Aim:
        rest = delta - self._infinite
        if rest < -1e-6 * delta:
            rest = delta  # no upper end is finite; the lower one is as near as finite losses allow
        rest = max(rest, 1e-3 * delta, math.exp(FARTHEST))
        parts = self._without_rare(rest)
        laws = [part.law for part in parts]
        saddle = saddle_at_delta(laws, rest)
        scale = _scale(saddle)
        if saddle.epsilon <= 0.0:
            saddle = saddle_at_epsilon(laws, 0.0)._replace(epsilon=0.0)
            # Far above H(0) a rough grid shows that ε is zero.
            distance = rest / math.exp(max(min(saddle.log_delta, 0.0), FARTHEST)) - 1.0
            scale = max(_scale(saddle), min(distance, 0.01 / self._tolerance) * saddle.spread)
        wanted = self._tolerance * saddle.tilt * scale
        return Aim("epsilon", delta, parts, saddle, scale, wanted)

    def _about_delta(self, epsilon: float) -> Aim:
        saddle = saddle_at_epsilon(self._laws, epsilon)
        far = saddle.log_delta < FARTHEST
        if far:
            saddle = saddle_at_delta(self._laws, math.exp(FARTHEST))
        if saddle.epsilon < epsilon - 4.0 / saddle.tilt - 2.0 * saddle.deviation:
            # The finite part is too small to resolve: it is bounded by that at a smaller ε.
            scale = max(_scale(saddle), 1.0 / saddle.tilt)
            return Aim("delta", epsilon, self._parts, saddle, scale, math.inf)
        saddle = saddle._replace(epsilon=epsilon)
        # An error of ε times the slope of log δ, or a relative error of δ where that is more.
        scale = max(_scale(saddle), 1.0 / saddle.tilt)
        wanted = min(self._tolerance * saddle.tilt * scale, MOST_NATS)
        return Aim("delta", epsilon, self._parts, saddle, scale, wanted)

    def _upper(self, asked: Aim) -> tuple[float, ComposedLaw]:
        """Return the upper end of an answer, and the law of the last grid.

        Raises
        ------
        PrecisionError
            No grid fits into memory.
        """
        spacing = self._spacings.first(asked.saddle, asked.scale)
        needed = self._spacings.needed(asked.saddle, asked.scale)
        for one in self._done:
            if one.plan.spacing <= needed and self._is_near(one, asked.saddle.epsilon):
                found = asked.upper(one, self._tolerance)
                if one.omitted(asked.point(found)) <= SHOWS * asked.wanted < math.inf:
                    return found, one
        hopeless = asked.name == "epsilon" and asked.at < self._infinite
        # Where no upper end is finite, none tells what a lower one needs.
        trim = TRIM**2 if hopeless else 1.0
        saddle, best, left = asked.saddle, math.inf, math.inf
        moved, beyond = asked.name == "delta", False
        for _ in range(MOST_GRIDS):
            one = self._law(asked, self._plan(asked, saddle, spacing, trim))
            found = asked.upper(one, self._tolerance)
            best, at = min(best, found), asked.point(found)
            if not moved and MISSED < abs(at - saddle.epsilon) * saddle.tilt < math.inf:
                # Few rare large losses: their variance says little about the profile at the answer.
                # Beyond the window there is none but the largest loss, which is seldom near it.
                near = at if beyond else min(at, one.high)
                moved, beyond = near == at, True
                saddle = self._moved(asked.parts, saddle, near)
                continue
            before, left = left, one.omitted(at)
            no_better = left > 0.5 * before or (left == math.inf and trim < 1.0)
            if left <= SHOWS * asked.wanted or hopeless or no_better:
                break
            trim *= TRIM
        if trim == 1.0:
            self._done = [one, *self._done[:1]]
            keep(self)
        return best, one

    def _is_near(self, one: ComposedLaw, epsilon: float) -> bool:
        """Tell whether a law was planned for a question like that about ``epsilon``.

        What lies far below its own answer was moved up, which shows in answers farther below.
        """
        planned = one.plan.saddle
        return one.covers(epsilon) and abs(epsilon - planned.epsilon) * planned.tilt <= SIMILAR

    def _law(self, asked: Aim, plan: GridPlan, last: float = math.inf) -> ComposedLaw:
        """Return the law of the plan, or one that fits into memory and is finer than ``last``."""
        while True:
            try:
                return ComposedLaw(asked.parts, plan, self._memory_cap)
            except TooLarge as refusal:
                plan = plan._replace(spacing=COARSER * plan.spacing)
                if not plan.spacing < min(last, plan.saddle.deviation):
                    raise TooWide(self._no_grid(asked, refusal.size)) from refusal

    def _no_grid(self, asked: Aim, size: int) -> str:
        return (
            f"{asked.name} must be bracketed within a relative {self._tolerance:g}, but a grid of"
            f" {size} points does not fit into memory_cap={self._memory_cap}. Raise memory_cap or"
            " tolerance"
        )

    def _plan(self, asked: Aim, saddle: Saddle, spacing: float, trim: float) -> GridPlan:
        wanted = self._tolerance * saddle.tilt * asked.scale
        saddle = saddle._replace(tilt=min(saddle.tilt, MOST_TILT / spacing))
        fine = math.log(trim * min(LEFT_OUT * wanted, MOST_LEFT_OUT))
        share = log_share([part.law for part in asked.parts], saddle)
        loss = fine + min(max(share, FAINTEST) + USUAL, 0.0)
        return GridPlan(saddle, spacing, fine + min(saddle.log_delta, 0.0), loss)

    def _infinite_upper(self) -> float:
        """Bound the mass at infinite loss."""
        log_finite = sum(
            n * math.log1p(-min(pair.infinite_mass, 1.0 - 1e-16)) for pair, n in self._used
        )
        return min(abs(math.expm1(log_finite)) * (1.0 + 1e-12), 1.0)

    def _without_rare(self, delta: float) -> tuple[GridPart, ...]:
        """Return the parts with losses too rare to matter at ``delta`` left out of the plan.

        They may rule the tilt, though they hardly count: their mass goes to infinite loss.
        """
        if self._spacings.pure:
            return self._parts
        rare = 0.02 * self._tolerance * delta / len(self._parts)
        return tuple(part if part.pure else part.without_rare(rare) for part in self._parts)

    def _moved(self, parts: Sequence[GridPart], saddle: Saddle, epsilon: float) -> Saddle:
        """Return the saddle point at ``epsilon``, for the same δ."""
        found = saddle_at_epsilon([part.law for part in parts], epsilon)
        return found._replace(epsilon=epsilon, log_delta=saddle.log_delta)


def _scale(saddle: Saddle) -> float:
    return max(abs(saddle.epsilon), 0.01 * saddle.spread, 1e-12)
